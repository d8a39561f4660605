"""LangChain: middleware around tool calls. What is refused does not run, and the model reads why.

    agent = create_agent(model, tools, middleware=[RulekeepMiddleware(governor, "support-1")])
"""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ToolCallRequest
from langchain.messages import ToolMessage

from ..errors import Denied
from ..governor import Governor


class RulekeepMiddleware(AgentMiddleware[Any, Any, Any]):
    """Decides on each tool call of an agent, and reports its outcome; ``options`` are those of `rulekeep.ToolCall`."""

    def __init__(self, governor: Governor, agent_id: str, **options: Any) -> None:
        super().__init__()
        ask = governor.tool_call
        self._ask: Callable[[Any], Any] = lambda c: ask(agent_id, c["name"], c["args"], call_id=c["id"], **options)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        try:
            with self._ask(request.tool_call) as call:
                result = handler(request)
                call.failed = getattr(result, "status", None) == "error"
                return result
        except Denied as denied:
            return ToolMessage(str(denied), tool_call_id=request.tool_call["id"], status="error")

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Awaitable[Any]]) -> Any:
        try:
            async with self._ask(request.tool_call) as call:
                result = await handler(request)
                call.failed = getattr(result, "status", None) == "error"
                return result
        except Denied as denied:
            return ToolMessage(str(denied), tool_call_id=request.tool_call["id"], status="error")
