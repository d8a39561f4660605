"""Functions under a guard: decided first, run where allowed, reported after."""

import asyncio
import threading

import pytest
import rulekeep


def test_an_allowed_function_runs_with_its_verdict_and_is_reported(governor, outcomes):
    @governor.guard("a")
    def read_file(path: str, lines: int = 3) -> str:
        """Reads."""
        assert outcomes() == [("ALLOW", None)]
        return f"{lines} lines of {path}, of {rulekeep.current_verdict()['constraints']['maxRecords']}"

    assert read_file("/srv/a.txt") == "3 lines of /srv/a.txt, of 7"
    assert outcomes() == [("ALLOW", "SUCCESS")]
    assert rulekeep.current_verdict() is None
    assert (read_file.__name__, read_file.__doc__) == ("read_file", "Reads.")


def test_a_refused_function_does_not_run(governor, outcomes):
    @governor.guard("a")
    def delete_file(path: str) -> None:
        raise AssertionError("it ran")

    with pytest.raises(rulekeep.Denied) as caught:
        delete_file("/srv/a.txt")
    assert caught.value.decision == "DENY" and caught.value.proof_id.startswith("prf_")
    assert outcomes() == [("DENY", None)]


def test_an_exception_goes_on_and_is_reported_as_failure(governor, outcomes):
    @governor.guard("a")
    def read_file(path: str) -> None:
        raise FileNotFoundError(path)

    with pytest.raises(FileNotFoundError):
        read_file("/srv/a.txt")
    assert outcomes() == [("ALLOW", "FAILURE")]


def test_the_policy_sees_bound_arguments_and_defaults(governor):
    class Tools:
        @governor.guard("a", "read_file")
        def fetch(self, path, *rest, limit=10, **more):
            return rulekeep.current_verdict()["proofId"]

    proof_id = Tools().fetch("/srv/a.txt", 1, 2, unit="lines")
    evidence = governor.call("proof/get", {"proofId": proof_id, "evidence": True})["evidence"]
    assert evidence["intent"]["context"]["target"] == "/srv/a.txt"
    with pytest.raises(TypeError):
        Tools().fetch()


def test_a_coroutine_is_guarded_where_it_is_awaited(governor, outcomes):
    @governor.guard("a")
    async def read_file(path: str) -> str:
        await asyncio.sleep(0)
        return rulekeep.current_verdict()["decision"]

    @governor.guard("a")
    async def delete_file(path: str) -> None:
        raise AssertionError("it ran")

    assert asyncio.run(read_file("/srv/a.txt")) == "ALLOW"
    with pytest.raises(rulekeep.Denied):
        asyncio.run(delete_file("/srv/a.txt"))
    assert outcomes() == [("ALLOW", "SUCCESS"), ("DENY", None)]


def test_a_cancelled_coroutine_is_reported_as_failure(governor, outcomes):
    async def main():
        started = asyncio.Event()

        @governor.guard("a")
        async def read_file(path: str) -> None:
            started.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(read_file("/srv/a.txt"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert outcomes() == [("ALLOW", "FAILURE")]


def test_a_generator_is_refused_when_it_is_decorated(governor):
    with pytest.raises(TypeError, match="generator"):

        @governor.guard("a")
        def read_file(path: str):
            yield path


def test_arguments_that_are_no_json_are_converted_or_refused(governor, tmp_path):
    def read_file(path):
        return str(path)

    with pytest.raises(TypeError):
        governor.guard("a")(read_file)(tmp_path)
    assert governor.guard("a", convert=str)(read_file)(tmp_path) == str(tmp_path)


def test_a_request_that_cannot_be_decided_is_denied(governor):
    @governor.guard("a")
    def read_file(path: str) -> None:
        raise AssertionError("it ran")

    with pytest.raises(rulekeep.Denied) as caught:
        read_file("x" * 70_000)
    assert caught.value.decision == "DENY" and caught.value.proof_id is None
    with pytest.raises(rulekeep.RulekeepError, match="AGENT_NOT_FOUND"):
        governor.tool_call("nobody", "read_file", {}).__enter__()


def test_a_guard_under_a_task_is_inside_its_mandate(governor):
    task = governor.tasks.open("a", "Read the file /srv/a.txt")["taskId"]

    @governor.guard("a", task_id=task)
    def read_file(path: str) -> str:
        return "read"

    assert read_file("/srv/a.txt") == "read"
    governor.tasks.close(task)
    with pytest.raises(rulekeep.RulekeepError, match="CONFLICT"):
        read_file("/srv/a.txt")


@pytest.mark.parametrize("answer", ["approve", "reject"])
def test_an_escalation_waits_for_its_reviewer(governor, outcomes, answer):
    @governor.guard("a", wait=30)
    def send_email(to: str) -> str:
        return f"sent to {to}"

    def review():
        while not (pending := governor.escalations.list(state="pending")["items"]):
            pass
        getattr(governor.escalations, answer)(pending[0]["id"], "mail-lead")

    reviewer = threading.Thread(target=review)
    reviewer.start()
    try:
        if answer == "approve":
            assert send_email("ann@example.com") == "sent to ann@example.com"
        else:
            with pytest.raises(rulekeep.Denied) as caught:
                send_email("ann@example.com")
            assert str(caught.value) == "DENY: the escalation was rejected"
    finally:
        reviewer.join()
    assert (("ALLOW", "SUCCESS") in outcomes()) == (answer == "approve")


def test_an_escalation_that_nobody_waits_for_is_refused_with_its_id(governor):
    with pytest.raises(rulekeep.Denied) as caught:
        with governor.tool_call("a", "send_email", {"to": "ann@example.com"}):
            raise AssertionError("it ran")
    assert caught.value.decision == "ESCALATE"
    assert governor.escalations.list(state="pending")["items"][0]["proofId"] == caught.value.proof_id


def test_a_block_says_that_its_tool_failed(governor, outcomes):
    with governor.tool_call("a", "read_file", {"path": "/srv/a.txt"}) as call:
        call.failed = True
    assert outcomes() == [("ALLOW", "FAILURE")]


def test_an_outcome_that_is_not_recorded_is_logged_and_the_result_kept(governor, caplog):
    @governor.guard("a")
    def read_file(path: str) -> str:
        governor.close()
        return "read"

    assert read_file("/srv/a.txt") == "read"
    assert "SUCCESS" in caplog.text and "STORAGE_UNAVAILABLE" in caplog.text
