"""The vendors' Node packages over the streamed fronts hear what their Python packages hear: the table in docs/fronts.md (API-4, API-5).

``INTERLOCK_WRITE_PAGES=1`` writes the table into the page; without it the page is compared.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.toolchains import needs, run
from tests.support.paths import ROOT
from tests.support.servers.provider import Provider
from tests.support.servers.scripts import Script, chat
from tests.support.servers.streaming import streams
from tests.support.sidecar.listening import FRONTS, Heard, listened
from tests.support.sidecar.sidecar import running_sidecar
from tests.support.sidecar.world import ToldDpe

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [
    pytest.mark.req("API-4", "API-5"), pytest.mark.long, pytest.mark.timeout(300), needs("node", "npm"),
]  # fmt: skip

PAGE = ROOT / "docs" / "fronts.md"
BEGIN, END = "<!-- clients: generated -->\n", "<!-- end of clients -->\n"
NODE = ROOT / "tests" / "support" / "sidecar" / "node"
FIRST, SECOND, THIRD = "The sky is blue.", " The sea is wide.", " The hill is high."
GRAVE = " It is CRITICAL that this leaves."
HEADERS = {"CRP-Safety-Policy": "halt-on CRITICAL", "CRP-Stream-Final": "event"}
FUNCTION = {"name": "f", "description": "", "parameters": {"type": "object"}}
PACKAGES = {path: "@anthropic-ai/sdk" if path == "/v1/messages" else "openai" for path in FRONTS}

KINDS: Mapping[str, Script] = {
    "text in parts": chat(FIRST, SECOND, THIRD),
    "reasoning": chat(FIRST, SECOND, THIRD, reasoning="Let me see."),
    "tool call": chat(FIRST, SECOND, THIRD, call='{"at": "sky"}'),
    "ends by length": chat(FIRST, SECOND, THIRD, cut_off=True),
    "cut in the middle": chat(FIRST, SECOND, GRAVE),
    "provider breaks off": chat(FIRST, SECOND, THIRD),
}
"""What the provider streams, by what the column is about."""


def tools_of(path: str) -> dict[str, Any]:
    """Return the fields that declare a tool, in the words of an API; completions have none."""
    if path == "/v1/completions":
        return {}
    if path == "/v1/messages":
        return {"tools": [{"name": "f", "input_schema": FUNCTION["parameters"]}]}
    if path == "/v1/responses":
        return {"tools": [{"type": "function", **FUNCTION, "strict": False}]}
    return {"tools": [{"type": "function", "function": FUNCTION}]}


@pytest.fixture(scope="module")
def node(tmp_path_factory) -> Path:
    """The script with the packages that its lock file names."""
    folder = tmp_path_factory.mktemp("vendors") / "node"
    shutil.copytree(NODE, folder, ignore=shutil.ignore_patterns("node_modules"))
    run("npm", "ci", "--no-audit", "--no-fund", cwd=folder)
    return folder


class Listener:
    """The Node process, which is asked one stream at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def listened(self, path: str, said: Callable[[str], Awaitable[None]], **more: Any) -> dict[str, Any]:
        """Ask the front at *path* and listen to the end."""
        asked = {"path": path, "headers": HEADERS, "more": more}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        while line := await self._process.stdout.readline():
            heard: dict[str, Any] = json.loads(line)
            if "said" not in heard:
                return heard
            await said(heard["said"])
        raise AssertionError("the Node process ended")


@pytest.fixture
async def sidecar(tmp_path, upstream) -> AsyncIterator[Any]:
    limits = {"max_windows": 1000, "max_dag_nodes": 1000}
    async with running_sidecar(tmp_path, upstream=upstream, dpe=ToldDpe(), **limits) as running:
        yield running


@pytest.fixture
async def listener(node, sidecar) -> AsyncIterator[Listener]:
    process = await asyncio.create_subprocess_exec(
        "node", "listen.mjs", sidecar.http, cwd=node, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    yield Listener(process)
    assert process.stdin
    process.stdin.close()
    await process.wait()


def told(provider: Provider, kind: str) -> Callable[[str], Awaitable[None]]:
    """Let the provider begin its second sentence, and go on once the first was heard; return what is to be called then."""
    heard, script = threading.Event(), KINDS[kind]
    rest = [] if kind == "provider breaks off" else [*script.says[2:], *script.ends]
    streams(provider, [*script.begins, *script.says[:2], heard, *rest])

    async def said(_text: str) -> None:
        heard.set()

    return said


def shown(heard: Heard) -> dict[str, Any]:
    """Return what a Python client heard, as the Node script tells it."""
    error = type(heard.error).__name__ if heard.error else None
    return {
        "text": heard.text, "thought": heard.thought, "arguments": heard.arguments, "ended": heard.ended, "error": error,
    }  # fmt: skip


def cell(heard: Mapping[str, Any], python_error: str | None) -> str:
    """Return what the clients made of a stream, in a few words; their errors have names of their own."""
    if heard["error"]:
        names = dict.fromkeys([f"`{heard['error']}`", f"`{python_error}`"])
        return f"the first part, then {' / '.join(names)}"
    parts = [name for name, value in (("reasoning", heard["thought"]), ("tool call", heard["arguments"])) if value]
    return f"all of it{', with its ' + ' and '.join(parts) if parts else ''} (`{heard['ended']}`)"


async def test_node_hears_what_python_hears(sidecar, provider, listener):
    """Text, reasoning, tool calls, ends and errors are the same by both of a vendor's packages, and the page has them."""
    rows = []
    for path in FRONTS:
        cells = []
        for kind in KINDS:
            more = tools_of(path) if kind == "tool call" else {}
            if kind == "tool call" and not more:
                cells.append("—")
                continue
            python = shown(await listened(path, sidecar.http, said=told(provider, kind), headers=HEADERS, **more))
            heard = await listener.listened(path, told(provider, kind), **more)

            assert {**heard, "error": bool(heard["error"])} == {**python, "error": bool(python["error"])}, (path, kind)
            assert heard["text"].startswith(FIRST)
            cells.append(cell(heard, python["error"]))
        rows.append(f"| `{PACKAGES[path]}` (Node, Python) | `{path}` | {' | '.join(cells)} |\n")
    made = "".join(
        [f"| client | endpoint | {' | '.join(KINDS)} |\n", f"| {' | '.join(['---'] * (len(KINDS) + 2))} |\n", *rows]
    )
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    known, end, after = rest.partition(END)
    if os.environ.get("INTERLOCK_WRITE_PAGES"):
        PAGE.write_text(before + begin + made + end + after, encoding="utf-8")
        known = made

    assert end, "the page has no place for the table"
    assert known == made
