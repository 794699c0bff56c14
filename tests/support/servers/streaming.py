"""What a scripted provider streams: chunks, bytes and pauses that a test holds in its hand."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tests.support.servers.provider import Provider

DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def chunk(delta: Any = None, *, finish: str | None = None, index: int = 0, **more: Any) -> bytes:
    """One event of one choice."""
    choices = [{"index": index, "delta": delta or {}, "finish_reason": finish}]
    return event(
        {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "x", "choices": choices, **more}
    )


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def usage(counts: Any = None) -> bytes:
    return event({"object": "chat.completion.chunk", "choices": [], "usage": counts or USAGE})


def spoken(*texts: str, finish: str = "stop") -> list[bytes]:
    """A whole stream that says *texts*, one chunk each."""
    pieces = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": text}) for text in texts)]
    return [*pieces, chunk(finish=finish), usage(), DONE]


def answers_as_asked(provider: Provider, body: bytes, steps: Iterable[bytes]) -> None:
    """Answer with *steps* where the request asks to stream, and with *body* at once where it does not."""
    script = list(steps)

    async def pieces():
        for step in script:
            yield step

    def reply(_request: Request) -> Response:
        if provider.received[-1].body.get("stream"):
            return StreamingResponse(pieces(), media_type="text/event-stream")
        return Response(body, media_type="application/json")

    provider._reply = reply


def streams(
    provider: Provider, steps: Iterable[bytes | threading.Event], *, media_type: str = "text/event-stream"
) -> None:
    """Answer with these bytes; at an event wait until the test sets it."""
    script = list(steps)

    async def pieces():
        for step in script:
            if isinstance(step, threading.Event):
                await asyncio.to_thread(step.wait, 20)
            else:
                yield step

    def reply(_request: Request) -> Response:
        return StreamingResponse(pieces(), media_type=media_type)

    provider._reply = reply
