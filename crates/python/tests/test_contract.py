"""The cases of the contract, through the Python package. The Rust and Node runners go through the same file."""

import json
import os
import re
from pathlib import Path

import pytest
import rulekeep

FILE = Path(os.environ.get("RULEKEEP_CASES", Path(__file__).parents[2] / "server/tests/contract/cases.json"))
CASES = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def governor():
    with rulekeep.Governor.open(durability="buffered") as opened:
        opened.call("policy/load", {"text": CASES["policies"], "format": "toml"})
        yield opened


def filled(value, names):
    """A value with what its names stand for."""
    if isinstance(value, dict):
        if "$repeat" in value:
            text, count = value["$repeat"]
            return text * count
        return {key: filled(part, names) for key, part in value.items()}
    if isinstance(value, list):
        return [filled(part, names) for part in value]
    if isinstance(value, str) and value.startswith("$"):
        return names[value[1:]]
    return value


def assert_matches(found, expected, place):
    if not isinstance(expected, dict):
        if isinstance(expected, list):
            assert isinstance(found, list) and len(found) == len(expected), f"{place}: {found}"
            for number, (one, other) in enumerate(zip(found, expected)):
                assert_matches(one, other, f"{place}.{number}")
        else:
            assert found == expected and isinstance(found, bool) == isinstance(expected, bool), f"{place}: {found!r}"
    elif "$matches" in expected:
        assert isinstance(found, str) and re.search(expected["$matches"], found), f"{place}: {found!r}"
    else:
        assert isinstance(found, dict), f"{place}: {found!r}"
        for key, part in expected.items():
            if isinstance(part, dict) and "$absent" in part:
                assert key not in found, f"{place}.{key}: {found[key]!r}"
            else:
                assert key in found, f"{place}.{key} is absent: {found}"
                if not (isinstance(part, dict) and "$any" in part):
                    assert_matches(found[key], part, f"{place}.{key}")


def saved(result, path):
    for key in path.split("."):
        result = result[int(key)] if isinstance(result, list) else result[key]
    return result


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: case["name"])
def test_case(governor, case):
    names = {"agent": re.sub(r"\W+", "-", case["name"])}
    governor.agents.register(names["agent"], tier=case.get("tier", "T4"))
    for number, step in enumerate(case["steps"]):
        place = f"step {number} {step['method']}"
        try:
            result = governor.call(step["method"], filled(step["params"], names))
        except rulekeep.RulekeepError as error:
            assert "error" in step, f"{place}: {error}"
            found = {"code": error.code, "message": error.message, "httpStatus": error.http_status, "details": error.details}
            assert_matches(found, filled(step["error"], names), place)
            continue
        assert "result" in step, f"{place}: {result}"
        assert_matches(result, filled(step["result"], names), place)
        for name, path in step.get("save", {}).items():
            names[name] = saved(result, path)
