"""The adapters, with the real packages and neither a network nor a model."""

import asyncio
import json
import os
from importlib import import_module

import pytest


def package(name):
    """A framework, or the test is passed over; with RULEKEEP_REQUIRE_PEERS it fails instead."""
    if os.environ.get("RULEKEEP_REQUIRE_PEERS"):
        return import_module(name)
    return pytest.importorskip(name, reason=f"SKIPPED, nothing was tried: {name} is not installed")


def test_openai_agents_runs_what_is_allowed_and_tells_the_model_what_is_not(governor, outcomes):
    agents, testing = package("agents"), package("agents.testing")
    from rulekeep.adapters.openai_agents import guardrail

    ran = []
    guards = [guardrail(governor, "a")]

    @agents.function_tool(tool_input_guardrails=guards)
    def read_file(path: str) -> str:
        ran.append(path)
        return "the notes"

    @agents.function_tool(tool_input_guardrails=guards)
    def send_email(to: str) -> str:
        ran.append(to)
        return "sent"

    model = testing.ScriptedModel(
        [
            [testing.function_call("read_file", {"path": "/srv/a.txt"}, call_id="call-1")],
            [testing.function_call("send_email", {"to": "ann@example.com"}, call_id="call-2")],
            [testing.assistant_message("done")],
        ]
    )
    agent = agents.Agent(name="reader", model=model, tools=[read_file, send_email])
    run = agents.Runner.run_sync(agent, "go on", run_config=agents.RunConfig(tracing_disabled=True))
    outputs = [item.output for item in run.new_items if item.type == "tool_call_output_item"]
    assert outputs[0] == "the notes" and outputs[1].startswith("ESCALATE: ")
    assert ran == ["/srv/a.txt"]
    assert outcomes() == [("ALLOW", None), ("ESCALATE", None)]
    governor.call("outcome/report", {"agentId": "a", "callId": "call-1", "outcome": "SUCCESS"})
    assert outcomes()[0] == ("ALLOW", "SUCCESS")


def test_openai_agents_takes_a_guarded_function_as_a_tool(governor, outcomes):
    agents, testing = package("agents"), package("agents.testing")

    @agents.function_tool
    @governor.guard("a")
    def read_file(path: str) -> str:
        """Reads a file."""
        return "the notes"

    assert read_file.params_json_schema["required"] == ["path"]
    call = testing.function_call("read_file", {"path": "/srv/a.txt"}, call_id="call-1")
    model = testing.ScriptedModel([[call], [testing.assistant_message("done")]])
    agent = agents.Agent(name="reader", model=model, tools=[read_file])
    agents.Runner.run_sync(agent, "go on", run_config=agents.RunConfig(tracing_disabled=True))
    assert outcomes() == [("ALLOW", "SUCCESS")]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_langchain_runs_what_is_allowed_and_tells_the_model_what_is_not(governor, outcomes, asynchronous):
    chains, tools = package("langchain.agents"), package("langchain.tools")
    from langchain.messages import AIMessage, ToolMessage
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from rulekeep.adapters.langchain import RulekeepMiddleware

    ran = []

    @tools.tool
    def read_file(path: str) -> str:
        """Reads a file."""
        ran.append(path)
        return "the notes"

    @tools.tool
    def delete_file(path: str) -> str:
        """Deletes a file."""
        ran.append(path)
        return "gone"

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools, **kwargs):
            return self

    def asks(name, id, **arguments):
        return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": id}])

    script = [asks("read_file", "call-1", path="/srv/a.txt"), asks("delete_file", "call-2", path="/srv/a.txt")]
    # A call whose arguments do not fit the tool: LangChain answers it with an error and does not raise.
    script += [asks("read_file", "call-3", file="/srv/a.txt"), AIMessage("done")]
    agent = chains.create_agent(
        Model(messages=iter(script)), [read_file, delete_file], middleware=[RulekeepMiddleware(governor, "a")]
    )
    question = {"messages": [{"role": "user", "content": "go on"}]}
    answer = asyncio.run(agent.ainvoke(question)) if asynchronous else agent.invoke(question)
    told = [message for message in answer["messages"] if isinstance(message, ToolMessage)]
    assert [(message.tool_call_id, message.status) for message in told] == [
        ("call-1", "success"),
        ("call-2", "error"),
        ("call-3", "error"),
    ]
    assert told[0].content == "the notes" and told[1].content.startswith("DENY: ")
    assert ran == ["/srv/a.txt"]
    assert outcomes() == [("ALLOW", "SUCCESS"), ("DENY", None), ("ALLOW", "FAILURE")]


def test_claude_agent_asks_before_a_tool_and_reports_after(governor, outcomes):
    package("claude_agent_sdk")
    from claude_agent_sdk import ClaudeAgentOptions
    from claude_agent_sdk._internal.query import Query
    from claude_agent_sdk.client import _configure_can_use_tool
    from rulekeep.adapters.claude_agent import can_use_tool, outcome_hooks

    hooks = outcome_hooks(governor, "a")
    options = _configure_can_use_tool(ClaudeAgentOptions(can_use_tool=can_use_tool(governor, "a"), hooks=hooks))

    class Transport:
        """What the SDK writes to the program behind it."""

        def __init__(self):
            self.written = []

        async def write(self, line):
            self.written.append(json.loads(line)["response"]["response"])

    async def main():
        transport = Transport()
        query = Query(transport=transport, is_streaming_mode=True, can_use_tool=options.can_use_tool)
        report = hooks["PostToolUse"][0].hooks[0]
        query.hook_callbacks = {"report": report}

        async def request(**fields):
            await query._handle_control_request({"request_id": "1", "request": fields})
            return transport.written[-1]

        async def asks(name, id, **arguments):
            return await request(subtype="can_use_tool", tool_name=name, input=arguments, tool_use_id=id)

        async def ended(event, id):
            data = {"hook_event_name": event, "tool_name": "Read", "tool_use_id": id}
            return await request(subtype="hook_callback", callback_id="report", input=data, tool_use_id=id)

        allowed = await asks("Read", "toolu_1", file_path="/srv/a.txt")
        assert allowed == {"behavior": "allow", "updatedInput": {"file_path": "/srv/a.txt"}}
        asked = await asks("mcp__mail__send_email", "toolu_2", to="ann@example.com")
        assert asked["behavior"] == "deny" and asked["message"].startswith("ESCALATE: ")
        denied = await asks("Bash", "toolu_3", command="rm -rf /")
        assert denied["behavior"] == "deny" and denied["message"].startswith("DENY: ")
        assert await ended("PostToolUseFailure", "toolu_1") == {}
        assert await ended("PostToolUse", "toolu_of_nobody") == {}

    asyncio.run(main())
    assert outcomes() == [("ALLOW", "FAILURE"), ("ESCALATE", None), ("DENY", None)]
    evidence = governor.call("proof/get", {"proofId": governor.query("a")["items"][1]["id"], "evidence": True})
    assert evidence["evidence"]["intent"]["context"]["facts"]["acts"][0]["server"] == "mail"


def test_mcp_answers_a_refused_call_with_an_error_result(governor, outcomes):
    mcp, servers = package("mcp"), package("mcp.server")
    from rulekeep.adapters.mcp_server import RulekeepMiddleware

    server = servers.MCPServer("files", middleware=[RulekeepMiddleware(governor, lambda ctx: "a", server="files")])
    ran = []

    @server.tool()
    def read_file(path: str) -> str:
        ran.append(path)
        if path == "/srv/none.txt":
            raise FileNotFoundError(path)
        return "the notes"

    @server.tool()
    def delete_file(path: str) -> str:
        ran.append(path)
        return "gone"

    async def main():
        async with mcp.Client(server) as client:
            assert len((await client.list_tools()).tools) == 2
            calls = [("read_file", "/srv/a.txt"), ("delete_file", "/srv/a.txt"), ("read_file", "/srv/none.txt")]
            return [await client.call_tool(name, {"path": path}) for name, path in calls]

    allowed, denied, failed = asyncio.run(main())
    assert allowed.content[0].text == "the notes" and not allowed.is_error
    refusal = denied.meta["rulekeep/refusal"]
    assert denied.is_error and denied.structured_content is None and refusal["decision"] == "DENY"
    assert refusal["proofId"].startswith("prf_")
    assert failed.is_error
    assert ran == ["/srv/a.txt", "/srv/none.txt"]
    assert outcomes() == [("ALLOW", "SUCCESS"), ("DENY", None), ("ALLOW", "FAILURE")]
