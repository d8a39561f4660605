"""MCP Python SDK: middleware of a server. What is refused does not run, and the client gets an error result.

    server = MCPServer("notes", middleware=[RulekeepMiddleware(governor, "support-1", server="notes")])
"""

from collections.abc import Callable
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.types import CallToolResult

from ..errors import Denied
from ..governor import Governor


class RulekeepMiddleware:
    """Decides on each tool call, and reports its outcome; ``options`` are those of `rulekeep.ToolCall`.

    ``agent_id`` is the caller, or a function that names it by the request's context.
    """

    def __init__(self, governor: Governor, agent_id: str | Callable[[Any], str], **options: Any) -> None:
        self._governor, self._agent_id, self._options = governor, agent_id, options

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method != "tools/call":
            return await call_next(ctx)
        params = ctx.params or {}
        agent_id = self._agent_id if isinstance(self._agent_id, str) else self._agent_id(ctx)
        asked = (agent_id, params.get("name", ""), params.get("arguments") or {})
        try:
            async with self._governor.tool_call(*asked, **self._options) as call:
                result = await call_next(ctx)
                call.failed = bool(result.get("isError") if isinstance(result, dict) else getattr(result, "is_error", 0))
                return result
        except Denied as denied:
            refusal = {"decision": denied.decision, "reason": str(denied), "proofId": denied.proof_id}
            # Structured content would have to fit the schema of the tool's output.
            told = {"content": [{"type": "text", "text": str(denied)}], "isError": True}
            return CallToolResult.model_validate({**told, "_meta": {"rulekeep/refusal": refusal}})
