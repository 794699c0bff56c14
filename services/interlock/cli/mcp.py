"""``interlock mcp``: between an agent and its tool server, so that every call of a tool is an action at a kernel (KRN-10)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from interlock.cli.kernel_calls import sidecar_url
from interlock.cli.output import OK, Format, Output, plain, print_json, refusals
from interlock.domain.errors import invalid

COMMAND = Annotated[
    list[str] | None,
    typer.Argument(help="The tool server's command and its arguments, after --.", metavar="-- COMMAND"),
]
MAPPING = Annotated[
    Path | None, typer.Option("--map", help="YAML file: what each tool costs and does (docs/kernel.md).")
]
KERNEL = Annotated[
    str,
    typer.Option(
        "--kernel", help="Name of the kernel. Default: the mapping's, else INTERLOCK_KERNEL.", envvar="INTERLOCK_KERNEL"
    ),
]
CHILD = Annotated[str, typer.Option("--child", help="Child of the kernel that the calls are charged to.")]
UPSTREAM = Annotated[
    str, typer.Option("--upstream", help="URL of a tool server over streamable HTTP, instead of a command.")
]
LISTEN = Annotated[
    str, typer.Option("--listen", help="With --upstream: loopback address to serve on; port 0: any free one.")
]
SIDECAR = Annotated[
    str,
    typer.Option(
        "--sidecar",
        help="The sidecar. Default: OPENAI_BASE_URL, or the one here on INTERLOCK_SIDECAR_HTTP_PORT (7070).",
    ),
]
PINS = Annotated[
    Path | None,
    typer.Option("--pins", help="File of the tools' definitions. Default: one per server in INTERLOCK_STATE_DIR."),
]
TRUST = Annotated[
    str,
    typer.Option(
        "--trust", help="Definitions that are taken: first (as first seen), accepted (by a person alone), any."
    ),
]
ACCEPT = Annotated[
    list[str] | None, typer.Option("--accept", help="Accept the changed definition of this tool, and end.")
]
CHANGED = Annotated[
    bool, typer.Option("--changed", help="List the tools whose definition waits for a person, and end.")
]
PASSED = Annotated[
    list[str] | None,
    typer.Option("--pass-env", help="Variable that the tool server gets although it is ours, such as OPENAI_API_KEY."),
]
LARGEST = Annotated[int, typer.Option("--max-bytes", help="Largest message.", min=1024, max=1 << 30)]


def mcp(  # noqa: PLR0917 - typer reads the options from it
    command: COMMAND = None, mapping: MAPPING = None, kernel: KERNEL = "", child: CHILD = "", upstream: UPSTREAM = "",
    listen: LISTEN = "127.0.0.1:7090", sidecar: SIDECAR = "", pins: PINS = None, trust: TRUST = "first", accept: ACCEPT = None,
    changed: CHANGED = False, pass_env: PASSED = None, max_bytes: LARGEST = 4 << 20, output: Output = Format.TEXT,
) -> None:  # fmt: skip
    """Stand between an agent and a tool server (MCP): no call reaches the server without a permit of the kernel.

    Put it where the agent starts the server: `interlock mcp --map tools.yaml -- COMMAND`. For a server over HTTP, let the agent call
    --listen instead. What is refused comes back as a tool error with a reason. The caller is OPENAI_API_KEY.

    Exit 0: the agent closed its end. 1: the tool server ended by itself. 2: refused: no kernel, no server, a wrong mapping.

    Examples: interlock mcp --map tools.yaml -- npx some-server | interlock mcp --map tools.yaml --upstream http://127.0.0.1:8000/mcp |
    interlock mcp --accept pay -- npx some-server
    """
    from interlock.mcp import mapping as tools
    from interlock.mcp import serving
    from interlock.mcp.pins import Pins, Trust

    with refusals(output):
        if bool(command) == bool(upstream):
            raise invalid(
                "MCP_SERVER_UNNAMED", "name one tool server: its command after --, or its URL with --upstream"
            )
        if trust not in list(Trust):
            raise invalid("MCP_TRUST_INVALID", "--trust is first, accepted or any")
        server = command or [upstream]
        held = Pins(serving.pins_path(pins, server), Trust(trust))
        if accept or changed:
            _review(held, accept or (), output)
            return
        if mapping is None:
            raise invalid(
                "MCP_MAPPING_INVALID", "name the mapping of tools with --map; docs/kernel.md has one to begin with"
            )
        told = tools.load(mapping)
        name = kernel or told.kernel or ""
        if not name:
            raise invalid("MCP_KERNEL_UNNAMED", "name the kernel with --kernel, or in the mapping")
        plan = serving.ProxyPlan(name, told, held, child=child, sidecar=sidecar_url(sidecar), most_bytes=max_bytes)
        if upstream:
            asyncio.run(serving.serve_http(plan, upstream, listen))
            code = OK
        else:
            code = asyncio.run(serving.serve_stdio(plan, server, serving.environment_of(pass_env or ())))
    raise typer.Exit(code)


def _review(held: object, accept: list[str] | tuple[str, ...], output: Format) -> None:
    from interlock.mcp.pins import Pins

    assert isinstance(held, Pins)
    for tool in accept:
        held.accept(tool)
    waiting = held.pending()
    if output is Format.JSON:
        print_json({"accepted": list(accept), "waiting": waiting})
        return
    for line in [*(f"accepted {tool}" for tool in accept), *(f"waits for a person: {tool}" for tool in waiting)]:
        typer.echo(plain(line))
