"""A provider that says what it is told to and misbehaves when it is told to: slow, failing, cut short, unreadable, huge, silent.

Where it is asked to stream it says a sentence at a time, and may break off or fall silent behind the second one.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from tests.faults.facts import Received
from tests.support.servers.provider import Provider, _Broken, completion, message
from tests.support.servers.streaming import spoken
from tests.support.sidecar.world import obedient

FAULTS = ("slow", "error", "busy", "cut", "garbage", "huge", "hang", "nothing", "stream", "break", "stall")
"""What it can do wrong with one request."""

BREAKS = {"break": "cut", "stall": "hang"}
"""What it does in the middle of a stream, and what stands for that where it is not asked to stream."""

SLOW_S = 0.7
SENTENCE_S = 0.03
"""Between two sentences of a stream."""
BREAKS_AT = 3
"""Pieces of a stream that come before it breaks: the role and two sentences."""
HUGE = 6_000_000


class RogueProvider(Provider):
    """Does the next of its *tricks* with each request, over and over; none: it is a good one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        obedient(self)
        self._whole = self._reply
        self.behave()

    def behave(self) -> None:
        """Be a good provider."""
        self._reply = self._good

    def _good(self, request: Request) -> Any:
        """Say what the question tells it to, sentence by sentence where it is asked to stream."""
        return self._said(request, "")

    def _said(self, request: Request, trick: str) -> Any:
        answer = self._whole(request)
        body = self.received[-1].body
        if not (isinstance(body, dict) and body.get("stream") and answer.status_code == 200):
            return self._trick(BREAKS[trick], request) if trick else answer
        text = json.loads(answer.body)["choices"][0]["message"]["content"]
        pieces = spoken(*re.findall(r".+?\.(?:\s|$)|.+$", text))
        made = _Broken if trick == "break" else StreamingResponse
        return made(_sentences(pieces, trick), media_type="text/event-stream")

    def misbehave(self, tricks: Sequence[str]) -> None:
        """Do *tricks* in turn; an empty one is a good answer."""
        turn = itertools.cycle(tricks)

        def reply(request: Request) -> Any:
            return self._trick(next(turn), request)

        self._reply = reply

    def _trick(self, trick: str, request: Request) -> Any:
        if trick in {"slow", "hang"}:
            return self._late(request, SLOW_S if trick == "slow" else 3600)
        if trick in BREAKS:
            return self._said(request, trick)
        return {
            "": lambda: self._good(request),
            "error": lambda: JSONResponse({"error": {"message": "it broke"}}, 500),
            "busy": lambda: JSONResponse({"error": {"message": "too many"}}, 429, {"retry-after": "1"}),
            "cut": lambda: _Broken(_pieces(), headers={"content-length": "500"}),
            "garbage": lambda: Response(b'{"choices": [nonsense', media_type="application/json"),
            "huge": lambda: JSONResponse(completion(message("x" * HUGE))),
            "nothing": lambda: Response(b"", media_type="application/json"),
            "stream": lambda: Response(b"data: {}\n\n", media_type="text/event-stream"),
        }[trick]()

    async def _late(self, request: Request, seconds: float) -> Response:
        body = self._good(request)  # while the request that was asked last is this one
        gone = asyncio.create_task(_gone(request))
        await asyncio.wait({gone}, timeout=seconds)
        gone.cancel()
        return body

    def seen(self, start: int) -> list[Received]:
        """What came since request *start*."""
        return [Received(one.headers, str(one.body)) for one in self.received[start:]]


async def _sentences(pieces: Sequence[bytes], trick: str) -> AsyncIterator[bytes]:
    for number, piece in enumerate(pieces):
        if trick and number == BREAKS_AT:
            if trick == "stall":
                await asyncio.Event().wait()  # until its client goes
            return
        await asyncio.sleep(SENTENCE_S)
        yield piece


async def _pieces() -> Any:
    yield b'{"choices": ['


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
