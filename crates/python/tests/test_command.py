"""Commands under a guard: decided, started as far as they are granted, reported."""

import os
import shutil
import subprocess

import pytest
import rulekeep

RULES = """
name = "commands"

[[rule]]
id = "code-is-confined"
effect = "allow"
when = "has(context.confinable)"
constraints = { confine = "workspace" }

[[rule]]
id = "others-run"
effect = "allow"
when = "!has(context.confinable)"
match.capabilities = ["*:read", "*:execute"]
"""


def opened(tmp_path, **options):
    file = tmp_path / "policies.toml"
    file.write_text(RULES, encoding="utf-8")
    governor = rulekeep.Governor.open(policies=file, durability="buffered", **options)
    governor.agents.register("a", tier="T4")
    return governor


def outcomes(governor):
    items = governor.query("a", order="oldest")["items"]
    return [(record["decision"], record.get("outcome")) for record in items]


def test_a_command_runs_where_it_is_allowed_and_is_reported(tmp_path):
    governor = opened(tmp_path)
    done = governor.guard_command("a", ["sh", "-c", "pwd; exit 3"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, f"{tmp_path}\n")
    with pytest.raises(rulekeep.Denied):
        governor.guard_command("a", ["git", "push"], cwd=tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        governor.guard_command("a", ["sleep", "5"], cwd=tmp_path, timeout=0.1)
    assert outcomes(governor) == [("ALLOW", "SUCCESS"), ("DENY", None), ("ALLOW", "FAILURE")]


def test_another_program_than_the_one_decided_on_is_refused(tmp_path):
    with pytest.raises(TypeError, match="executable"):
        opened(tmp_path).guard_command("a", ["true"], cwd=tmp_path, executable="/bin/false")


def test_a_command_that_a_decision_confines_writes_its_folder_only(tmp_path):
    program = os.environ.get("RULEKEEP_PROGRAM") or shutil.which("rulekeep")
    if program is None:
        pytest.skip("no program rulekeep")
    try:
        governor = opened(tmp_path, confiner=program)
    except rulekeep.RulekeepError as error:
        pytest.skip(str(error))
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir()
    (work / "Makefile").write_text(f"all:\n\techo made > out\n\techo a > {outside}\n", encoding="utf-8")
    governor.guard_command("a", ["make", "-k"], cwd=work, capture_output=True)
    assert (work / "out").read_text(encoding="utf-8") == "made\n" and not outside.exists()
