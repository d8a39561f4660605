"""A server of the official SDK, in whichever version is installed, over stdio or, with a port, streamable HTTP.

Every call that reaches a tool is one line in the file that the environment variable CALLED names.
"""

import os
import sys

from pydantic import BaseModel

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context
    from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

    NEW = True
except ImportError:
    from mcp.server.fastmcp import Context, FastMCP

    NEW = False

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else None
if NEW:
    server = MCPServer("wiki", instructions="Ask for pages.")
else:
    server = FastMCP("wiki", instructions="Ask for pages.", host="127.0.0.1", port=PORT or 8000)


def called(tool: str) -> None:
    with open(os.environ["CALLED"], "a", encoding="utf-8") as file:
        file.write(tool + "\n")


@server.tool()
def read_page(id: str) -> str:
    """Reads a page."""
    called("read_page")
    if PORT is None and any(name.startswith("RULEKEEP_") for name in os.environ):
        raise ValueError("the gateway's environment reached the server")
    return f"page {id}"


@server.tool()
def delete_page(id: str) -> str:
    """Deletes a page."""
    called("delete_page")
    return "deleted"


@server.tool()
def send_email(id: str) -> str:
    """Sends an email."""
    called("send_email")
    return "sent"


@server.tool()
def read_broken(id: str) -> str:
    """Reads a page."""
    called("read_broken")
    raise ValueError("no such page")


@server.tool()
async def read_slowly(id: str, ctx: Context) -> str:
    """Reads a page."""
    called("read_slowly")
    await ctx.report_progress(1, 2)
    await ctx.report_progress(2, 2)
    return f"page {id}"


class Choice(BaseModel):
    approve: bool


if NEW:
    SCHEMA = {"type": "object", "properties": {"approve": {"type": "boolean"}}, "required": ["approve"]}

    @server.tool()
    async def read_asking(id: str, ctx: Context) -> str | InputRequiredResult:
        """Reads a page after a question."""
        called("read_asking")
        if ctx.request_context.protocol_version < "2026-07-28":
            answer = await ctx.elicit("Which page?", Choice)
            return f"{answer.action} {answer.data.approve}"
        if ctx.input_responses is None:
            params = ElicitRequestFormParams(message="Which page?", requested_schema=SCHEMA)
            asked = {"page": ElicitRequest(params=params)}
            return InputRequiredResult(input_requests=asked, request_state="state of the server")
        answer = ctx.input_responses["page"]
        return f"{answer.action} {answer.content['approve']}"

else:

    @server.tool()
    async def read_asking(id: str, ctx: Context) -> str:
        """Reads a page after a question."""
        called("read_asking")
        answer = await ctx.elicit("Which page?", Choice)
        return f"{answer.action} {answer.data.approve}"


@server.resource("wiki://page/{id}")
def page(id: str) -> str:
    """A page."""
    return f"page {id}"


@server.prompt()
def greet(name: str) -> str:
    """Greets."""
    return f"Hello {name}"


if PORT is None:
    server.run("stdio")
elif NEW:
    server.run("streamable-http", host="127.0.0.1", port=PORT)
else:
    server.run("streamable-http")
