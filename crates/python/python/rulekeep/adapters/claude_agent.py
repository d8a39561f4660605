"""Claude Agent SDK: ``can_use_tool``, which is asked about calls that the SDK's own rules do not permit, and hooks for outcomes.

    ClaudeAgentOptions(can_use_tool=can_use_tool(governor, "coder"), hooks=outcome_hooks(governor, "coder"))
"""

import asyncio
from typing import Any

from claude_agent_sdk import CanUseTool, HookMatcher, PermissionResultAllow, PermissionResultDeny

from ..errors import Denied, RulekeepError
from ..governor import Governor


def can_use_tool(governor: Governor, agent_id: str, **options: Any) -> CanUseTool:
    """A callback that decides on tool calls; ``options`` are those of `rulekeep.ToolCall`."""
    async def decide(name: str, arguments: dict[str, Any], context: Any) -> PermissionResultAllow | PermissionResultDeny:
        server, _, tool = name.removeprefix("mcp__").partition("__") if name.startswith("mcp__") else (None, "", name)
        call = governor.tool_call(agent_id, tool, arguments, server=server, call_id=context.tool_use_id, **options)
        try:
            await asyncio.to_thread(call.decide)
        except Denied as denied:
            return PermissionResultDeny(message=str(denied))
        return PermissionResultAllow()
    return decide


def outcome_hooks(governor: Governor, agent_id: str) -> dict[Any, list[HookMatcher]]:
    """Hooks that report how each call that was decided on ended. A call that nobody asked about has no record."""
    async def report(event: Any, _id: str | None, _context: Any) -> Any:
        outcome = "SUCCESS" if event["hook_event_name"] == "PostToolUse" else "FAILURE"
        asked = {"agentId": agent_id, "callId": event["tool_use_id"], "outcome": outcome}
        try:
            await asyncio.to_thread(governor.call, "outcome/report", asked)
        except RulekeepError as error:
            if error.code != "PROOF_NOT_FOUND":
                raise
        return {}
    return {event: [HookMatcher(hooks=[report])] for event in ("PostToolUse", "PostToolUseFailure")}
