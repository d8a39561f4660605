"""The governor: a store in this process, and its calls."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from ._rulekeep import Gateway
from .guard import NO_TASK, ToolCall, guard
from .types import Intent, Outcome, Page, Parse, Record, Statistics, ToolInput, Verdict

F = TypeVar("F", bound=Callable[..., Any])
# Answers begin with their value: `json.loads` would look for blanks around it, on the way of every decision.
_DECODER = json.JSONDecoder()


class Governor:
    """A store of policies, agents and proofs. Threads may share it; other Python threads run during its calls."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.agents = Agents(self)
        self.tasks = Tasks(self)
        self.escalations = Escalations(self)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        policies: str | os.PathLike[str] | None = None,
        durability: str = "sync",
        auto_register: bool = False,
        confiner: str | os.PathLike[str] | None = None,
    ) -> Governor:
        """Opens the store in a folder, which is made where there is none; without a path, one in memory.

        ``policies`` is a TOML or JSON file, or the text of one; without it the set last in force applies, in a new store the recommended one.
        ``durability`` is ``sync`` (a decision is on disk before it is returned), ``buffered``, or ``sync-from:RISK``.
        ``auto_register`` registers unknown agents when they first ask. ``confiner`` is the program ``rulekeep``, by its path
        or its name, which confines the commands of `guard_command`.
        """
        folder, program = (None if name is None else Path(name) for name in (path, confiner))
        # A file's name has no line break and no brace.
        is_text = isinstance(policies, str) and ("\n" in policies or "{" in policies)
        rules = None if policies is None else str(policies) if is_text else Path(policies)
        return cls(Gateway.open(folder, rules, durability, auto_register, program))

    def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Makes any call of the sidecar's protocol by its name. The parameters and the answer are JSON values."""
        return _DECODER.raw_decode(self._gateway.call(method, json.dumps(params or {})))[0]

    def parse(self, agent_id: str, input: str | ToolInput, context: Mapping[str, Any] | None = None) -> Parse:
        """Parses an action request into an intent; decides and records nothing."""
        return cast(Parse, self.call("intent", {"agentId": agent_id, "input": input, "context": context}))

    def enforce(
        self,
        intent: Intent | None = None,
        *,
        agent_id: str | None = None,
        input: str | ToolInput | None = None,
        context: Mapping[str, Any] | None = None,
        task_id: str = NO_TASK,
    ) -> Verdict:
        """Decides, and records the decision: on an intent, or on the input of an agent, a text or a tool call.

        ``task_id`` is refused where it is `None`: without the id that was lost, the mandate would not bind.
        """
        params: dict[str, Any] = {"agentId": agent_id, "input": input} if intent is None else {"intent": intent}
        if context is not None:
            params["context"] = context
        if task_id is not NO_TASK:
            params["taskId"] = task_id
        return cast(Verdict, self.call("enforce", params))

    def report(self, proof_id: str, outcome: Outcome, note: str | None = None) -> Record:
        """Reports how a granted action ended. The first outcome stands."""
        return cast(Record, self.call("outcome/report", {"proofId": proof_id, "outcome": outcome, "note": note}))

    def query(self, agent_id: str, **narrow: Any) -> Page:
        """A page of the records of an agent. ``narrow`` takes the parameters of ``proof/query``, such as ``pageSize``."""
        return cast(Page, self.call("proof/query", {"entityId": agent_id, **narrow}))

    def stats(self, agent_id: str, **period: str) -> Statistics:
        """The statistics of an agent, perhaps ``from`` and ``to`` a time."""
        return cast(Statistics, self.call("proof/stats", {"entityId": agent_id, **period}))

    def verify(self) -> dict[str, Any]:
        """Verifies the chain of records."""
        return cast("dict[str, Any]", self.call("proof/verify"))

    def tool_call(self, agent_id: str, tool: str, arguments: Any, **options: Any) -> ToolCall:
        """A tool call, for ``with`` and ``async with``: decided before the block, reported after it. See `ToolCall`."""
        return ToolCall(self, agent_id, tool, arguments, **options)

    def guard(self, agent_id: str, tool: str | None = None, **options: Any) -> Callable[[F], F]:
        """A decorator that decides on each call of a function before it runs. See `rulekeep.guard.guard`."""
        return guard(self, agent_id, tool, **options)

    def guard_command(
        self,
        agent_id: str,
        command: Sequence[str],
        *,
        cwd: str | os.PathLike[str] = ".",
        context: Mapping[str, Any] | None = None,
        task_id: str = NO_TASK,
        wait: float = 0,
        **options: Any,
    ) -> subprocess.CompletedProcess[Any]:
        """Decides on a command, runs it with `subprocess.run` as far as the decision permits, and reports the outcome.

        A rule can permit it as a confined run if the governor has a ``confiner``. ``options`` are those of
        `subprocess.run`; a command has no ``shell``: name one, as in ``["bash", "-c", line]``. Raises `Denied` where it is
        not allowed.
        """
        if unfit := {"shell", "executable", "args"} & options.keys():
            raise TypeError(f"guard_command: {min(unfit)} would start another program than the one decided on")
        folder = str(Path(cwd).resolve())
        start = {"command": list(command), "folder": folder}
        asked = self.call("command/request", {"agentId": agent_id, "context": context, **start})
        tool, arguments = asked["input"]["tool"], asked["input"]["arguments"]
        call = ToolCall(self, agent_id, tool, arguments, context=asked["context"], task_id=task_id, wait=wait)
        with call:
            words = self.call("command/start", {"proofId": call.verdict["proofId"], **start})["command"]
            return subprocess.run(words, cwd=folder, **options)

    def close(self) -> None:
        """Writes everything down and releases the folder. Later calls fail."""
        self._gateway.close()

    def __enter__(self) -> Governor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Part:
    def __init__(self, governor: Governor) -> None:
        self._governor = governor

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        given = {name: value for name, value in params.items() if value is not None}
        return cast("dict[str, Any]", self._governor.call(method, given))


class Agents(_Part):
    """The agents. ``docs/reference/calls.md`` lists the parameters of each call."""

    def register(self, agent_id: str, **params: Any) -> dict[str, Any]:
        """Registers an agent, perhaps at a ``tier`` or a ``score``."""
        return self._call("agent/register", agentId=agent_id, **params)

    def get(self, agent_id: str) -> dict[str, Any]:
        """The trust in an agent."""
        return self._call("agent/get", agentId=agent_id)

    def suspend(self, agent_id: str, note: str | None = None) -> dict[str, Any]:
        """Refuses everything that the agent asks from now on."""
        return self._call("agent/suspend", agentId=agent_id, note=note)

    def resume(self, agent_id: str, note: str | None = None) -> dict[str, Any]:
        """Ends a suspension."""
        return self._call("agent/resume", agentId=agent_id, note=note)


class Tasks(_Part):
    """The tasks, whose mandates bound what an agent may do."""

    def open(self, agent_id: str, input: str, **params: Any) -> dict[str, Any]:
        """Opens a task with the user's own words."""
        return self._call("task/open", agentId=agent_id, input=input, **params)

    def say(self, task_id: str, input: str) -> dict[str, Any]:
        """Adds further words of the user."""
        return self._call("task/say", taskId=task_id, input=input)

    def observe(self, task_id: str, tool: str, arguments: Any, result: Any, server: str | None = None) -> None:
        """Tells what a tool call under the task returned."""
        call = {"name": tool, "arguments": arguments, **({} if server is None else {"server": server})}
        self._governor.call("task/observe", {"taskId": task_id, "call": call, "result": result})

    def close(self, task_id: str, outcome: Outcome | None = None) -> dict[str, Any]:
        """Closes a task, and those delegated from it."""
        return self._call("task/close", taskId=task_id, outcome=outcome)


class Escalations(_Part):
    """The escalations: decisions that wait for a reviewer. An id may be that of the proof record that asks."""

    def list(self, **narrow: Any) -> dict[str, Any]:
        """A page of escalations, perhaps of a ``state`` or an ``agentId``."""
        return self._call("escalation/list", **narrow)

    def wait(self, id: str, seconds: float = 0) -> dict[str, Any]:
        """The escalation as soon as it is no longer pending, or after at most ten seconds."""
        return self._call("escalation/wait", id=id, timeoutMs=int(min(max(seconds, 0), 10) * 1000))

    def approve(self, id: str, reviewer: str, **params: Any) -> dict[str, Any]:
        """Approves in the name of a reviewer, for whom the caller vouches."""
        return self._call("escalation/approve", id=id, reviewer=reviewer, **params)

    def reject(self, id: str, reviewer: str, **params: Any) -> dict[str, Any]:
        """Rejects in the name of a reviewer, for whom the caller vouches."""
        return self._call("escalation/reject", id=id, reviewer=reviewer, **params)

    def claim(self, id: str, intent: Intent) -> Verdict:
        """Claims an approval for exactly the intent that was escalated; once."""
        return cast(Verdict, self._call("escalation/claim", id=id, intent=intent))
