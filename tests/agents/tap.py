"""A wire tap between agent and sidecar: it passes every byte on and keeps what went over.

The agents show only what their framework shows. Statuses, headers and the very answer are read here.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.agents import responses
from tests.agents.provider import Message, Script

HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "upgrade", "te", "trailer"}


@dataclass
class Exchange:
    """One request of an agent, its response, and what the provider had said meanwhile."""

    path: str

    key: str
    request: Mapping[str, Any]
    sent: Mapping[str, str]
    """Request headers."""
    status: int
    headers: Mapping[str, str]
    body: bytes
    provided: Sequence[Message]

    @property
    def message(self) -> Message:
        """The message that the agent got, put together from its stream where it was one."""
        if self.path == responses.PATH:
            return responses.message_of(self.body)
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            return streamed(self.body)
        return json.loads(self.body)["choices"][0]["message"]


def streamed(body: bytes) -> Message:
    """Return the message of a stream of server-sent events."""
    content: str | None = None
    calls: dict[int, dict[str, Any]] = {}
    for line in body.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line.removeprefix("data: ")).get("choices", ()):
            delta = choice["delta"]
            if delta.get("content") is not None:
                content = (content or "") + delta["content"]
            for piece in delta.get("tool_calls") or ():
                call = calls.setdefault(piece["index"], {"name": "", "arguments": ""})
                call["name"] += piece["function"].get("name") or ""
                call["arguments"] += piece["function"].get("arguments") or ""
    made = [{"type": "function", "function": call} for _, call in sorted(calls.items())]
    return {"role": "assistant", "content": content, "tool_calls": made}


def same(one: Message, other: Message) -> bool:
    """Return whether two messages say the same, byte for byte: their text and their calls."""
    return _said(one) == _said(other)


def _said(message: Message) -> tuple[str, list[tuple[str, str]]]:
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
    return message.get("content") or "", calls


LAST_EVENTS = (b"data: [DONE]", b"event: response.completed")
"""Ends of streams; an agent may be gone behind them, before the connection is."""

LAST_ONE_S = 10
"""How long an exchange may take to be kept once its agent has ended."""


@dataclass
class Tap:
    """Passes requests to *target* and keeps the exchanges in order."""

    target: str
    script: Script
    exchanges: list[Exchange] = field(default_factory=list)
    under_way: int = 0
    """Answers that are being passed on."""

    def made_since(self, before: int) -> list[Exchange]:
        """Return the exchanges behind the first *before*, once all have ended: an agent may be gone before its last one is kept."""
        ends = time.monotonic() + LAST_ONE_S
        while self.under_way and time.monotonic() < ends:
            time.sleep(0.01)
        return self.exchanges[before:]

    def app(self) -> Starlette:
        """Return the ASGI application."""
        return Starlette(routes=[Route("/{path:path}", self._pass, methods=["GET", "POST", "DELETE"])])

    async def _pass(self, request: Request) -> Response:
        raw = await request.body()
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        before = len(self.script.given[key])
        onward = httpx.Request(
            request.method,
            f"{self.target}{request.url.path}",
            headers=[(n, v) for n, v in request.headers.items() if n not in HOP],
            content=raw,
            extensions={"timeout": {"connect": 10, "read": 120, "write": 10, "pool": 10}},
        )
        # A transport, not a client: a client would keep cookies of its own.
        transport = httpx.AsyncHTTPTransport()
        answer = await transport.handle_async_request(onward)
        headers = {name: value for name, value in answer.headers.items() if name not in HOP}

        pieces: list[bytes] = []

        def keep() -> None:
            provided = self.script.given[key][before:]
            sent = dict(request.headers.items())
            asked = json.loads(raw or b"{}")
            asked = responses.as_chat(asked) if request.url.path == responses.PATH else asked
            self.exchanges.append(
                Exchange(request.url.path, key, asked, sent, answer.status_code, headers, b"".join(pieces), provided)
            )

        async def passing() -> AsyncIterator[bytes]:
            whole = False
            try:
                async for piece in answer.aiter_raw():
                    pieces.append(piece)
                    yield piece
                whole = True
            finally:
                if whole or any(last in pieces[-1] for last in LAST_EVENTS if pieces):
                    keep()
                self.under_way -= 1
                await answer.aclose()
                await transport.aclose()

        self.under_way += 1
        return StreamingResponse(passing(), answer.status_code, headers)


class Served:
    """An application on a free port, in a thread, for as long as the ``with`` block lasts."""

    def __init__(self, app: Starlette) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    @property
    def url(self) -> str:
        """Base URL without a path."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()
