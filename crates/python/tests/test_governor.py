"""The typed methods, errors, and what happens at the border between Python and Rust."""

import multiprocessing
import os
import pickle
import threading
import time
from functools import partial

import pytest
import rulekeep


def test_a_store_in_a_folder_is_there_when_it_is_opened_again(tmp_path):
    with rulekeep.Governor.open(tmp_path / "store", auto_register=True) as governor:
        proof_id = governor.enforce(agent_id="a", input="Summarize the meeting notes")["proofId"]
    with rulekeep.Governor.open(str(tmp_path / "store")) as governor:
        assert governor.query("a")["items"][0]["id"] == proof_id
        assert governor.verify()["valid"] is True


def test_each_method_makes_its_call(governor):
    parsed = governor.parse("a", {"tool": "read_file", "arguments": {"path": "/srv/a.txt"}}, {"environment": "test"})
    assert parsed["intent"]["requiredCapabilities"] == ["file:read"]
    verdict = governor.enforce(parsed["intent"])
    assert verdict["decision"] == "ALLOW"
    assert governor.report(verdict["proofId"], "SUCCESS", "done")["outcome"] == "SUCCESS"
    assert governor.query("a", pageSize=1, decision="ALLOW")["total"] == 1
    assert governor.stats("a")["successRate"] == 1
    assert governor.agents.get("a")["tier"] == "T4"
    assert governor.agents.suspend("a", "under review")["state"] == "suspended"
    assert governor.agents.resume("a")["state"] == "active"
    task = governor.tasks.open("a", "Read the file /srv/a.txt", maxCalls=5)
    call = {"path": "/srv/a.txt"}
    under = governor.enforce(agent_id="a", input={"tool": "read_file", "arguments": call}, task_id=task["taskId"])
    assert under["decision"] == "ALLOW"
    governor.tasks.observe(task["taskId"], "read_file", call, {"lines": 3})
    assert "mandate" in governor.tasks.say(task["taskId"], "And the file /srv/b.txt")
    assert governor.tasks.close(task["taskId"], "SUCCESS")["state"] == "closed"
    mail = governor.enforce(agent_id="a", input={"tool": "send_email", "arguments": {"to": "ann@example.com"}})
    assert governor.escalations.list(state="pending")["total"] == 1
    assert governor.escalations.wait(mail["proofId"], 0)["state"] == "pending"
    assert governor.escalations.approve(mail["proofId"], "mail-lead")["state"] == "approved"
    assert governor.escalations.claim(mail["proofId"], mail["intent"])["decision"] == "ALLOW"
    other = governor.enforce(agent_id="a", input={"tool": "send_email", "arguments": {"to": "bob@example.com"}})
    assert governor.escalations.reject(other["proofId"], "mail-lead", note="no")["state"] == "rejected"


def test_a_tasks_id_that_was_lost_is_refused(governor):
    with pytest.raises(rulekeep.RulekeepError) as caught:
        governor.enforce(agent_id="a", input="Read the file a.txt", task_id=None)
    assert caught.value.details == {"field": "taskId"}
    with pytest.raises(rulekeep.Denied, match="taskId"):
        governor.tool_call("a", "read_file", {"path": "a.txt"}, task_id=None).decide()


def test_an_error_has_its_code_details_and_status_and_survives_pickling(governor):
    with pytest.raises(rulekeep.RulekeepError) as caught:
        governor.enforce(agent_id="nobody", input="Summarize the meeting notes")
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert (error.code, error.http_status, error.details) == ("AGENT_NOT_FOUND", 404, {"agentId": "nobody"})
        assert "nobody" in error.message


def nested(depth):
    value = 1
    for _ in range(depth):
        value = {"a": value}
    return value


def test_what_is_no_json_is_an_error_and_decides_nothing(governor):
    cyclic = {}
    cyclic["self"] = cyclic
    for context, expected in [
        ({"x": float("nan")}, rulekeep.RulekeepError),
        ({"x": float("inf")}, rulekeep.RulekeepError),
        ({"x": 2**70}, rulekeep.RulekeepError),
        ({"x": "\ud800"}, rulekeep.RulekeepError),
        ({1: "a", "1": "b"}, rulekeep.RulekeepError),
        ({"x": b"bytes"}, TypeError),
        (cyclic, ValueError),
        (nested(100_000), (RecursionError, rulekeep.RulekeepError)),
        (nested(200), rulekeep.RulekeepError),
    ]:
        with pytest.raises(expected):
            governor.enforce(agent_id="a", input="Read the file a.txt", context=context)
    assert governor.query("a")["total"] == 0


def test_an_option_that_is_wrong_is_named():
    with pytest.raises(rulekeep.RulekeepError) as caught:
        rulekeep.Governor.open(durability="never")
    assert (caught.value.code, caught.value.details) == ("INVALID_INPUT", {"field": "durability"})
    with pytest.raises(rulekeep.RulekeepError, match="POLICY_ERROR"):
        rulekeep.Governor.open(policies="no-such-file.toml")


def test_an_unknown_method_and_a_closed_governor_are_errors(governor):
    with pytest.raises(rulekeep.RulekeepError) as caught:
        governor.call("agent/promote", {})
    assert caught.value.details == {"field": "method"}
    governor.close()
    with pytest.raises(rulekeep.RulekeepError, match="STORAGE_UNAVAILABLE"):
        governor.enforce(agent_id="a", input="Read the file a.txt")


def test_other_threads_run_while_a_call_waits(governor):
    """An approval from another thread ends a call that waits for it."""
    mail = governor.enforce(agent_id="a", input={"tool": "send_email", "arguments": {"to": "ann@example.com"}})
    waited = {}

    def wait():
        started = time.monotonic()
        waited["state"] = governor.escalations.wait(mail["proofId"], 10)["state"]
        waited["seconds"] = time.monotonic() - started

    waiting = threading.Thread(target=wait)
    waiting.start()
    governor.escalations.approve(mail["proofId"], "mail-lead")
    waiting.join(9)
    assert waited["state"] == "approved" and waited["seconds"] < 9


def test_threads_share_a_governor(governor):
    def ask():
        for _ in range(50):
            assert governor.enforce(agent_id="a", input="Read the file a.txt")["decision"] == "ALLOW"

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert governor.query("a")["total"] == 200
    assert governor.verify()["valid"] is True


def test_policies_can_be_a_text_in_both_formats():
    toml = 'name = "p"\n[[rule]]\nid = "all"\neffect = "allow"\n'
    for text in (toml, '{"name": "p", "rule": [{"id": "all", "effect": "allow"}]}'):
        with rulekeep.Governor.open(policies=text, auto_register=True) as governor:
            assert governor.enforce(agent_id="a", input="Delete all customer records")["decision"] == "ALLOW"
    with pytest.raises(rulekeep.RulekeepError):
        rulekeep.Governor.open(policies="no-such-file.toml")
    assert rulekeep.__version__.count(".") == 2


def code_of(call):
    try:
        call()
    except rulekeep.RulekeepError as error:
        return error.code, "forked" in error.message
    return "none", False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_gets_an_error_and_the_parent_goes_on(tmp_path):
    with rulekeep.Governor.open(tmp_path / "store") as governor:
        governor.agents.register("a", tier="T4")
        before = governor.verify()["records"]

        def ask(results):
            decide = partial(governor.enforce, agent_id="a", input="Read notes.txt")
            for call in (decide, partial(governor.query, "a"), governor.verify):
                results.put(code_of(call))

        context = multiprocessing.get_context("fork")
        results = context.SimpleQueue()
        child = context.Process(target=ask, args=(results,))
        child.start()
        child.join(30)
        assert child.exitcode == 0
        assert [results.get() for _ in range(3)] == [("STORAGE_UNAVAILABLE", True)] * 3
        governor.enforce(agent_id="a", input="Read notes.txt")
        assert governor.verify()["records"] == before + 1
