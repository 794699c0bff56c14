"""What it costs to find the session of a call that brings no token: CPU of a plain client's call over that of a call with one.

    python -m bench.binding

The mesh of ``bench.sidecar`` in one process, asked over HTTP, with a provider that answers at once. Three clients send the same
conversations, whole with each call: one with the token of each answer, one with the cookie, one with neither. Their turns
are interleaved, so that all are as long and as warm. CPU is that of the mesh, in nanoseconds as the kernel counts it, and the
difference is the median of those of the same turn. Valkey's share, whose scripts run for the call, is told apart.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.length import cpu_ns
from bench.sidecar import Children, open_mesh, ready
from interlock.runtime.http.server import WebServer, listen
from interlock.runtime.settings.model import Settings
from tests.support.sidecar.sidecar import NO_COOKIES
from tests.support.valkey import Valkey

CONVERSATIONS, TURNS = 24, 12
TARGET_MS = 0.3
CLIENTS = ("token", "cookie", "conversation")


class Client:
    """One client's conversation: it sends all of it each time, and says in its own way which session that is."""

    def __init__(self, base_url: str, kind: str) -> None:
        jar = None if kind == "cookie" else NO_COOKIES
        self.kind, self.token = kind, ""
        self.messages: list[dict[str, str]] = []
        self._http = httpx.AsyncClient(base_url=base_url, cookies=jar, trust_env=False, timeout=30)

    async def say(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})
        headers = {"authorization": f"Bearer sk-{self.kind}"}
        if self.kind == "token" and self.token:
            headers["crp-session-token"] = self.token
        began = len(self.messages) == 1
        reply = await self._http.post(
            "/v1/chat/completions", json={"model": "m", "messages": self.messages}, headers=headers
        )
        if reply.status_code != 200 or reply.headers["crp-session-binding"] not in (
            {"caller"} if began else {self.kind}
        ):
            raise SystemExit(
                f"{self.kind}: {reply.status_code} {reply.headers.get('crp-session-binding')} {reply.text[:400]}"
            )
        self.token = reply.headers["crp-set-session"].partition(";")[0].removeprefix("token=")
        self.messages.append(reply.json()["choices"][0]["message"])

    async def close(self) -> None:
        await self._http.aclose()


async def serve_provider() -> None:
    async def answer(request: Request) -> JSONResponse:
        asked = (await request.json())["messages"]
        text = f"This is what is known about it: {asked[-1]['content']} It is answer number {len(asked)}."
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        return JSONResponse({"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": "m",
                             "choices": [choice], "usage": usage})  # fmt: skip

    app = Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])
    listener = listen(Settings(), 0, "provider")
    ready(listener.getsockname()[1])
    await uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")).serve([listener])


async def serve_front() -> None:
    """One process: the real services over the local channel behind their HTTP front."""
    settings = Settings()
    sidecar = await open_mesh(settings)
    ready(await WebServer(sidecar.http_app, settings, listen(settings, 0, "http"), front=True).start())
    await asyncio.Event().wait()


async def measure(base_url: str, processes: dict[str, int]) -> dict[tuple[str, str], list[list[float]]]:
    """Return milliseconds of CPU by client and process, for each conversation the turns after its first."""
    found: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for number in range(CONVERSATIONS + 1):
        clients = [Client(base_url, kind) for kind in CLIENTS]
        used: Any = defaultdict(list)
        for turn in range(TURNS):
            # Who comes first takes turns too.
            for client in clients[(number + turn) % 3 :] + clients[: (number + turn) % 3]:
                begun = {name: cpu_ns([pid]) for name, pid in processes.items()}
                await client.say(f"What is to be said about subject {number}, in part {turn}, for somebody new to it?")
                for name, pid in processes.items():
                    used[client.kind, name].append((cpu_ns([pid]) - begun[name]) / 1e6)
        for client in clients:
            await client.close()
        if number:  # the first one warms
            for key, values in used.items():
                found[key].append(values[1:])
    return found


def added(found: dict[tuple[str, str], list[list[float]]], kind: str, process: str) -> float:
    """Return the median over all turns of what a client's call takes more than the same turn's with a token, ms."""
    pairs = zip(found[kind, process], found["token", process], strict=True)
    return statistics.median(mine - theirs for own, base in pairs for mine, theirs in zip(own, base, strict=True))


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "valkey").mkdir()
        with Valkey(folder / "valkey") as valkey:
            children = Children(folder, valkey.url)
            try:
                provider = children.start(["bench.binding", "provider"], "provider")["port"]
                upstream = {"INTERLOCK_UPSTREAM_BASE_URL": f"http://127.0.0.1:{provider}/v1"}
                port = children.start(["bench.binding", "front"], "front", **upstream)["port"]
                assert valkey.process is not None
                processes = {"mesh": children.processes[1].pid, "valkey": valkey.process.pid}
                found = asyncio.run(measure(f"http://127.0.0.1:{port}", processes))
            except BaseException:
                print((folder / "front.log").read_text()[-3000:], file=sys.stderr)
                raise
            finally:
                children.stop()
    token = statistics.median(each for values in found["token", "mesh"] for each in values)
    figures: dict[str, tuple[float, float | None, str, str]] = {
        "binding: CPU of a call with a token": (token, None, "", "ms")
    }
    for kind in CLIENTS[1:]:
        figures[f"binding: CPU that {kind} adds to it"] = (added(found, kind, "mesh"), TARGET_MS, "lower", "ms")
        figures[f"binding: CPU of Valkey that {kind} adds"] = (added(found, kind, "valkey"), None, "", "ms")
        figures[f"binding: CPU with {kind} over a token's"] = (
            1 + added(found, kind, "mesh") / token, None, "", "ratio",
        )  # fmt: skip
    names = ("value", "target", "better", "unit")
    print(json.dumps({figure: dict(zip(names, row, strict=True)) for figure, row in figures.items()}))


ROLES = {"provider": serve_provider, "front": serve_front}

if __name__ == "__main__":
    uvloop.run(ROLES[sys.argv[1]]()) if len(sys.argv) > 1 else main()
