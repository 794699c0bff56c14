"""A real tool server of several tools, written with the official SDK: ``python -m tests.support.mcp_tools [PORT] [DESCRIPTION]``.

Without a port it serves over stdio. What was really done is appended to the file that MCP_DONE names.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("shop", instructions="Tools of a shop.")


class Answer(BaseModel):
    sure: bool


def done(what: str) -> None:
    with Path(os.environ["MCP_DONE"]).open("a") as file:
        file.write(what + "\n")


@server.tool(description=os.environ.get("MCP_PAY_SAYS", "Pay somebody."))
def pay(amount: float, to: str) -> str:
    done(f"pay {amount} {to}")
    return f"paid {amount} to {to}"


@server.tool()
def quote(city: str) -> dict[str, float]:
    """Tell a price, and what telling it cost."""
    done(f"quote {city}")
    return {"price": 99.5, "cost": 0.25}


@server.tool()
def fail() -> str:
    """Fail."""
    done("fail")
    raise ValueError("the till is closed")


@server.tool()
async def slow(seconds: float, ctx: Context) -> str:
    """Work for a while, and tell how far it is."""
    done("slow begun")
    await ctx.report_progress(1, 2, "half")
    await anyio.sleep(seconds)
    done("slow done")
    return "at last"


@server.tool()
async def ask(ctx: Context) -> str:
    """Ask the person behind the agent."""
    answer = await ctx.elicit("Are you sure?", Answer)
    return f"{answer.action} {getattr(answer, 'data', None)}"


@server.tool()
def die() -> str:
    """End the server at once."""
    done("die")
    os._exit(3)


@server.tool()
def environment() -> str:
    """Tell what the server was given."""
    return " ".join(sorted(os.environ))


@server.resource("note://today")
def note() -> str:
    """A note."""
    return "closed on Mondays"


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Greet {name}."


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    if port:
        server.run("streamable-http", host="127.0.0.1", port=port)
    else:
        server.run("stdio")
