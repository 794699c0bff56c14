"""A model provider for tests: a real HTTP server that speaks the OpenAI API and does what a test tells it to.

It keeps every request with its headers, so that a test can say what reached the provider and how often.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

Reply = Callable[[Request], Any]


@dataclass(frozen=True)
class Received:
    """One request as it came."""

    path: str
    headers: tuple[tuple[str, str], ...]
    body: Any

    def header(self, name: str) -> str | None:
        return dict(self.headers).get(name)


def message(content: str | None = None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def tool_call(name: str, arguments: str, call_id: str = "call_1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def anthropic(*blocks: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A message of Anthropic's with these blocks."""
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "test-model", "content": [dict(one) for one in blocks],
        "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 5}, **more,
    }  # fmt: skip


def completion(*messages: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A chat completion with one choice per message."""
    choices = [{"index": i, "message": dict(one), "finish_reason": "stop"} for i, one in enumerate(messages)]
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": "test-model",
        "choices": choices, "usage": usage, **more,
    }  # fmt: skip


LISTED = {
    "object": "list",
    "data": [{"id": "test-model", "object": "model", "created": 1, "owned_by": "tests", "secret": "not for clients"}],
    "extra": 1,
}


@dataclass
class Provider:
    """Answers with whatever was set last; before anything is set the answer is fine."""

    received: list[Received] = field(default_factory=list)
    asked: threading.Event = field(default_factory=threading.Event)
    """Set when a request has come in."""

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what was received and told."""
        self.received.clear()
        self.asked.clear()
        self.answers("The answer is fine.")
        self.lists(LISTED)
        self.embeds([0.25, -0.5])

    def answers(self, *texts: str) -> None:
        """Answer with one choice per text."""
        self.completes(completion(*(message(text) for text in texts)))

    def completes(self, body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self._reply = lambda _request: JSONResponse(body, status, headers)

    def lists(self, body: Any, *, status: int = 200) -> None:
        """Answer the question for models with *body*."""
        self._listed, self._listed_status = body, status

    def embeds(self, *vectors: Any, **more: Any) -> None:
        """Answer requests for embeddings with these vectors, and with *more* around them."""
        rows = [{"object": "embedding", "index": i, "embedding": one} for i, one in enumerate(vectors)]
        usage = {"prompt_tokens": 3, "total_tokens": 3}
        self._vectors = {"object": "list", "data": rows, "model": "test-embedding", "usage": usage, **more}

    def in_turn(self, texts: Sequence[str]) -> None:
        """Answer with the next text each time; the last one stays."""
        waiting = list(texts)

        def reply(_request: Request) -> Response:
            return JSONResponse(completion(message(waiting.pop(0) if len(waiting) > 1 else waiting[0])))

        self._reply = reply

    def fails(self, status: int, body: Any = None, headers: Mapping[str, str] | None = None) -> None:
        error = {"error": {"message": "the provider says no", "type": "provider_error", "code": "no", "param": None}}
        self.completes(error if body is None else body, status=status, headers=headers)

    def says(self, content: bytes, *, media_type: str = "application/json", headers: Mapping[str, str] | None = None):
        """Answer 200 with these very bytes."""
        self._reply = lambda _request: Response(content, headers=headers, media_type=media_type)

    def hangs(self) -> None:
        """Never answer; ends with the connection."""

        async def reply(request: Request) -> Response:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            return Response()

        self._reply = reply

    def waits_for(self, event: threading.Event, *texts: str) -> None:
        """Answer when *event* is set, with the next text each time; the last one stays."""
        waiting = list(texts or ("The answer is fine.",))

        async def reply(_request: Request) -> Response:
            await asyncio.to_thread(event.wait, 20)
            return JSONResponse(completion(message(waiting.pop(0) if len(waiting) > 1 else waiting[0])))

        self._reply = reply

    def closes_mid_body(self) -> None:
        """Promise more bytes than are sent, then close."""

        async def pieces():
            yield b'{"choices": ['

        self._reply = lambda _request: _Broken(pieces(), headers={"content-length": "500"})

    async def _chat(self, request: Request) -> Response:
        raw = await request.body()
        body = json.loads(raw) if raw else None
        self.received.append(Received(request.scope["path"], tuple(request.headers.items()), body))
        self.asked.set()
        reply = self._reply(request)
        return await reply if asyncio.iscoroutine(reply) else reply

    async def _models(self, request: Request) -> Response:
        self.received.append(Received(request.scope["path"], tuple(request.headers.items()), None))
        return JSONResponse(self._listed, self._listed_status, headers={"set-cookie": "provider=1"})

    async def _embeddings(self, request: Request) -> Response:
        raw = await request.body()
        self.received.append(Received(request.scope["path"], tuple(request.headers.items()), json.loads(raw)))
        return JSONResponse(self._vectors)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/responses", self._chat, methods=["POST"]),
                Route("/v1/messages", self._chat, methods=["POST"]),
                Route("/v1/embeddings", self._embeddings, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
            ]
        )


class _Broken(StreamingResponse):
    async def __call__(self, scope, receive, send):
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for piece in self.body_iterator:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        raise ConnectionResetError


class RunningProvider:
    """The provider on a free port, in a thread, for as long as the ``with`` block lasts."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._server = uvicorn.Server(
            uvicorn.Config(
                provider.app(), log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1
            )
        )
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def __enter__(self) -> RunningProvider:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()
