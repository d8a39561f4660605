"""A client of the official SDK, in whichever version is installed, that tries everything through the gateway and prints
what it saw as one line of JSON.

    client.py MODE URL
    client.py MODE COMMAND ARGUMENT...

MODE is `legacy` for the session-based revisions, or `auto` for what the SDK negotiates; `auto-silent` and `legacy-silent`
do not declare elicitation.
"""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack

try:
    from mcp import Client
    from mcp_types import ElicitResult

    NEW = True
except ImportError:
    from mcp import ClientSession
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamablehttp_client
    from mcp.types import ElicitResult

    NEW = False

from mcp.client.stdio import StdioServerParameters

questions: list[str] = []
progress: list[float] = []


async def answer(_context, params) -> ElicitResult:
    questions.append(params.message)
    return ElicitResult(action="accept", content={"approve": True})


async def told(done, total, message) -> None:
    progress.append(done)


def dumped(value) -> dict:
    return json.loads(value.model_dump_json(by_alias=True, exclude_none=True))


async def tried(calling) -> dict:
    try:
        return dumped(await calling)
    except Exception as error:  # noqa: BLE001: whatever it is, it is what the client sees
        return {"error": str(error), "kind": type(error).__name__}


async def main(mode: str, where: list[str]) -> None:
    seen: dict = {}
    elicitation = None if mode.endswith("-silent") else answer
    is_url = where[0].startswith("http")
    command = StdioServerParameters(command=where[0], args=where[1:], env=dict(os.environ))
    async with AsyncExitStack() as stack:
        if NEW:
            target = where[0] if is_url else command
            client = Client(target, mode=mode.removesuffix("-silent"), elicitation_callback=elicitation, cache=None)
            await stack.enter_async_context(client)
            seen["version"] = client.protocol_version
            seen["server"] = client.server_info.name
            seen["instructions"] = client.instructions
        else:
            transport = streamablehttp_client(where[0]) if is_url else stdio_client(command)
            streams = await stack.enter_async_context(transport)
            client = await stack.enter_async_context(
                ClientSession(streams[0], streams[1], elicitation_callback=elicitation)
            )
            opened = await client.initialize()
            seen["version"] = opened.protocolVersion
            seen["server"] = opened.serverInfo.name
            seen["instructions"] = opened.instructions
        tools = dumped(await client.list_tools())
        seen["tools"] = [tool["name"] for tool in tools["tools"]]
        seen["scope"] = tools.get("cacheScope")
        for name in ("read_page", "delete_page", "send_email", "read_broken", "read_asking", "no_tool"):
            seen[name] = await tried(client.call_tool(name, {"id": "7"}))
        seen["read_slowly"] = await tried(client.call_tool("read_slowly", {"id": "7"}, progress_callback=told))
        seen["resource"] = await tried(client.read_resource("wiki://page/7"))
        seen["prompt"] = await tried(client.get_prompt("greet", {"name": "Ann"}))
    seen["questions"], seen["progress"] = questions, progress
    print(json.dumps(seen))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
