"""Clients that know nothing of CRP: the plain ``openai`` package, as it is installed, and a proxy that strips cookies."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import httpx
import openai
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.support.sidecar.sidecar import NO_COOKIES

Message = dict[str, Any]


class PlainClients:
    """Makes clients, each with a transport of its own, and closes them."""

    def __init__(self) -> None:
        self._made: list[openai.AsyncOpenAI] = []

    def __call__(self, http: str, key: str = "sk-one", *, cookies: bool = True) -> openai.AsyncOpenAI:
        """Return the package's own client; without *cookies* its transport keeps none."""
        transport = None if cookies else httpx.AsyncClient(cookies=NO_COOKIES, trust_env=False)
        made = openai.AsyncOpenAI(base_url=f"{http}/v1", api_key=key, max_retries=0, http_client=transport)
        self._made.append(made)
        return made

    async def close(self) -> None:
        for client in self._made:
            await client.close()


@pytest.fixture
async def plain():
    """Plain clients of a test."""
    made = PlainClients()
    yield made
    await made.close()


@dataclass(frozen=True)
class Turn:
    """One answer, as its client got it."""

    text: str
    answer_id: str
    headers: Mapping[str, str]

    @property
    def session(self) -> str:
        return self.headers["crp-context-session-id"]

    @property
    def binding(self) -> str:
        return self.headers["crp-session-binding"]

    @property
    def window(self) -> int:
        return int(self.headers["crp-context-window"].split("/")[0])

    @property
    def lineage(self) -> int:
        """How many windows the answer continues, itself included."""
        return self.headers["crp-provenance-window-lineage"].count("->") + 1


@dataclass
class Chat:
    """A conversation as a plain loop holds it: it sends all of it each time."""

    client: openai.AsyncOpenAI
    messages: list[Message] = field(default_factory=list)
    stream: bool = False

    async def say(self, text: str, **more: Any) -> Turn:
        """Ask, and keep the answer."""
        self.messages.append({"role": "user", "content": text})
        turn = await asked(self.client, self.messages, stream=self.stream, **more)
        self.messages.append({"role": "assistant", "content": turn.text})
        return turn


async def asked(client: openai.AsyncOpenAI, messages: Sequence[Message], *, stream: bool = False, **more: Any) -> Turn:
    """Make one call with the package's own methods."""
    create = client.chat.completions.with_raw_response.create
    raw = await create(model="m", messages=list(messages), stream=stream, **more)
    if not stream:
        answer = raw.parse()
        return Turn(answer.choices[0].message.content or "", answer.id, raw.headers)
    chunks = [chunk async for chunk in raw.parse()]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    return Turn(text, chunks[0].id, raw.headers)


class StrippingProxy(AbstractContextManager["StrippingProxy"]):
    """A proxy in front of *http* that passes no cookie on, in either direction."""

    def __init__(self, http: str) -> None:
        self._to = http
        self._socket = socket.create_server(("127.0.0.1", 0))
        app = Starlette(routes=[Route("/{rest:path}", self._pass, methods=["POST"])])
        self._server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    async def _pass(self, request: Request) -> Response:
        kept = {name: value for name, value in request.headers.items() if name not in {"cookie", "host"}}
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.post(self._to + request.url.path, content=await request.body(), headers=kept)
        dropped = {"set-cookie", "content-length", "content-encoding", "transfer-encoding"}
        back = {name: value for name, value in answer.headers.items() if name not in dropped}
        return Response(answer.content, answer.status_code, back)

    def __enter__(self) -> StrippingProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()
