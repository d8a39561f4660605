"""OpenAI Agents SDK: a tool input guardrail. What is refused does not run, and the model reads why.

    @function_tool(tool_input_guardrails=[guardrail(governor, "support-1")])
    def send_email(to: str, body: str) -> str: ...

A guardrail does not see how the tool ends. Where the tool is your own function, `Governor.guard` below `function_tool`
decides and reports the outcome too.
"""

import asyncio
import json
from typing import Any

from agents import ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolInputGuardrailData

from ..errors import Denied
from ..governor import Governor


def guardrail(governor: Governor, agent_id: str, **options: Any) -> ToolInputGuardrail[Any]:
    """A guardrail for ``tool_input_guardrails``; ``options`` are those of `rulekeep.ToolCall`."""

    async def rulekeep(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        asked = data.context
        try:
            arguments = json.loads(asked.tool_arguments or "{}")
        except ValueError:
            return ToolGuardrailFunctionOutput.reject_content("DENY: the arguments are not JSON")
        call = governor.tool_call(agent_id, asked.tool_name, arguments, call_id=asked.tool_call_id, **options)
        try:
            verdict = await asyncio.to_thread(call.decide)
        except Denied as denied:
            return ToolGuardrailFunctionOutput.reject_content(str(denied), output_info=denied.verdict)
        return ToolGuardrailFunctionOutput.allow(output_info=verdict)

    return ToolInputGuardrail(guardrail_function=rulekeep, name="rulekeep")
