"""Tool calls that are decided before they run, and whose outcome is reported after."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import logging
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .errors import Denied, RulekeepError
from .types import Outcome, ToolInput, Verdict

if TYPE_CHECKING:
    from .governor import Governor

F = TypeVar("F", bound=Callable[..., Any])
_log = logging.getLogger("rulekeep")
_verdict: ContextVar[Verdict | None] = ContextVar("rulekeep_verdict", default=None)
NO_TASK = cast(str, object())
"""What ``task_id`` is where a call is for no task."""
# Requests that are at fault themselves: nothing is decided, and nothing runs.
_UNDECIDABLE = (400, 413, 422)


def current_verdict() -> Verdict | None:
    """The verdict under which the code runs; its ``constraints`` are for the tool to keep."""
    return _verdict.get()


class ToolCall:
    """A tool call, for ``with`` and ``async with``: decided on entry, its outcome reported on exit.

    Entry raises `Denied` unless the whole call is allowed: DEGRADE grants a part, and a tool that runs as a whole has no
    lesser form. ``wait`` is the number of seconds that entry waits for a reviewer after ESCALATE. An exception in the block
    is reported as FAILURE, and so is a block that sets `failed`.
    """

    verdict: Verdict
    """The decision, from entry on."""
    failed: bool = False
    """Whether the tool failed without an exception; the block sets it."""

    def __init__(
        self,
        governor: Governor,
        agent_id: str,
        tool: str,
        arguments: Any,
        *,
        server: str | None = None,
        call_id: str | None = None,
        task_id: str = NO_TASK,
        context: Mapping[str, Any] | None = None,
        wait: float = 0,
    ) -> None:
        self._governor, self._agent_id, self._task_id = governor, agent_id, task_id
        self._input: ToolInput = {"tool": tool, "arguments": arguments}
        if server is not None:
            self._input["server"] = server
        if call_id is not None:
            self._input["callId"] = call_id
        self._context, self._wait = context, wait
        self._token: Token[Verdict | None] | None = None

    def decide(self) -> Verdict:
        """Decides. Raises `Denied` unless the whole call is allowed."""
        try:
            verdict = self._governor.enforce(
                agent_id=self._agent_id, input=self._input, context=self._context, task_id=self._task_id
            )
        except RulekeepError as error:
            if error.http_status not in _UNDECIDABLE:
                raise
            refused = {"decision": "DENY", "reasoning": error.message, **error.details}
            raise Denied(cast(Verdict, refused)) from error
        if verdict["decision"] == "ESCALATE" and self._wait > 0:
            verdict = self._wait_for_reviewer(verdict)
        if verdict["decision"] != "ALLOW":
            raise Denied(verdict)
        return verdict

    def __enter__(self) -> ToolCall:
        return self._entered(self.decide())

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        self._leave()
        self._report(error)

    async def __aenter__(self) -> ToolCall:
        return self._entered(await asyncio.to_thread(self.decide))

    async def __aexit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        self._leave()
        await asyncio.to_thread(self._report, error)

    def _entered(self, verdict: Verdict) -> ToolCall:
        self.verdict = verdict
        self._token = _verdict.set(verdict)
        return self

    def _leave(self) -> None:
        if self._token is not None:
            _verdict.reset(self._token)

    def _report(self, error: BaseException | None) -> None:
        outcome: Outcome = "FAILURE" if self.failed or error is not None else "SUCCESS"
        try:
            self._governor.report(self.verdict["proofId"], outcome)
        except RulekeepError as unreported:
            # The tool has run: its result or its own exception is worth more to the caller than this one.
            _log.error("the outcome %s of %s is not recorded: %s", outcome, self.verdict["proofId"], unreported)

    def _wait_for_reviewer(self, verdict: Verdict) -> Verdict:
        escalations, end = self._governor.escalations, time.monotonic() + self._wait
        while (left := end - time.monotonic()) > 0:
            state = escalations.wait(verdict["proofId"], left)["state"]
            if state == "approved":
                claimed = escalations.claim(verdict["proofId"], verdict["intent"])
                return cast(Verdict, {**claimed, "intent": verdict["intent"]})
            if state != "pending":
                return cast(Verdict, {**verdict, "decision": "DENY", "reasoning": f"the escalation was {state}"})
        return verdict


def guard(
    governor: Governor,
    agent_id: str,
    tool: str | None = None,
    *,
    convert: Callable[[Any], Any] | None = None,
    **options: Any,
) -> Callable[[F], F]:
    """A decorator that decides on each call of a function, with its bound arguments, before it runs.

    ``tool`` is the function's name unless given. ``convert`` makes JSON values of arguments that are none, as ``default``
    of ``json.dumps`` does; without it such an argument is a `TypeError`. ``options`` are those of `ToolCall`.
    The parameters ``self`` and ``cls`` are not arguments.
    """

    def decorate(function: F) -> F:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"guard: {function.__qualname__} is a generator; it would run after its outcome is reported")
        signature, name = inspect.signature(function), tool or function.__name__

        def call(args: Any, kwargs: Any) -> ToolCall:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = {key: value for key, value in bound.arguments.items() if key not in ("self", "cls")}
            if convert is not None:
                arguments = json.loads(json.dumps(arguments, default=convert))
            return ToolCall(governor, agent_id, name, arguments, **options)

        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            with call(args, kwargs):
                return function(*args, **kwargs)

        @functools.wraps(function)
        async def guarded_async(*args: Any, **kwargs: Any) -> Any:
            async with call(args, kwargs):
                return await function(*args, **kwargs)

        return cast(F, guarded_async if inspect.iscoroutinefunction(function) else guarded)

    return decorate
