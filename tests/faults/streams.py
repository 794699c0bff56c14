"""What a client makes of an answer that leaves in parts: everything that it received, also where it got no further than that."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from interlock.api.sidecar.v1 import sidecar_pb2
from tests.faults.facts import MESSAGES, PARTS, RELEASED, RESPONSES
from tests.faults.verifier import VERDICTS

PATHS = {PARTS: "/v1/chat/completions", RESPONSES: "/v1/responses", MESSAGES: "/v1/messages"}
"""Ways in over HTTP that ask for parts, and where they are."""

FINAL = {"crp-stream-final": "event"}
"""Asks for the final values, and with it for parts."""

HALTED, BROKEN_OFF = 451, 503
"""Status of a stream that ends with the error of a verdict, or with another one. It had begun with 200."""


def body_of(entry: str, text: str) -> dict[str, Any]:
    """Return the request that asks for an answer with *text*, as that way in wants it."""
    said = [{"role": "user", "content": f"Say: {text}"}]
    if entry == RESPONSES:
        return {"model": "m", "input": f"Say: {text}", "stream": True}
    if entry == MESSAGES:
        return {"model": "m", "max_tokens": 500, "messages": said, "stream": True}
    return {"model": "m", "messages": said, **({"stream": True} if entry == PARTS else {})}


def long_text(number: int, risk: str) -> str:
    """Return an answer of several sentences, each as long as all before it, that no other call of a run asks for."""
    return (
        f"Piece {number:030d} begins. It goes on with words that nobody has to remember later. "
        "A longer passage comes behind them, so that one more part of what is said here may leave before the rest of it is there. "
        f"Its risk is {risk}."
    )


@dataclass
class Heard:
    """One stream as it came in."""

    text: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    """What is known at the beginning, and the final values once they are there."""
    ended: bool = False
    """Whether its end came: the whole answer is there."""
    error: Mapping[str, Any] = field(default_factory=dict)
    """The error that it ended with."""

    def outcome(self) -> dict[str, Any]:
        """Return what became of it, as a call keeps it."""
        found: dict[str, Any] = {"headers": self.headers}
        if self.error:
            reason = str(self.error.get("reason", ""))
            status = HALTED if reason in VERDICTS else BROKEN_OFF
            return found | {"status": status, "reason": reason, "shown": self.error.get("metadata") or {}}
        return found | ({"status": RELEASED} if self.ended else {"status": 0, "reason": "broken off"})

    async def over_http(self, response: httpx.Response) -> None:
        """Read a stream of events, of any of the APIs."""
        self.headers |= {name: value for name, value in response.headers.items() if name.startswith("crp-")}
        async for event in _events(response):
            self._event(event)

    async def over_rpc(self, call: Any) -> sidecar_pb2.DispatchResponse:
        """Read the messages of a DispatchStream, and return the last one's answer."""
        whole = sidecar_pb2.DispatchResponse()
        async for one in call:
            if one.WhichOneof("content") == "whole":
                whole = one.whole
                self.headers |= {name.lower(): value for name, value in whole.outcome.headers.items()}
                self.ended = True
            else:
                self.text += one.part.reasoning + one.part.text
                self._began({str(name): str(value) for name, value in await call.initial_metadata() or ()})
        return whole

    def _began(self, known: Mapping[str, str]) -> None:
        self.headers |= {name: value for name, value in known.items() if name.startswith("crp-")}

    def _event(self, data: str) -> None:
        if data == "[DONE]":
            self.ended = True
            return
        said = json.loads(data)
        if "crp" in said:
            self.headers |= {name.lower(): value for name, value in said["crp"].items()}
        elif "reason" in said:
            self.error = said
        kind = said.get("type", "")
        if kind in {"response.completed", "message_stop"}:
            self.ended = True
        elif kind == "response.output_text.delta":
            self.text += said["delta"]
        elif kind == "content_block_delta":
            self.text += said["delta"].get("text", "")
        for choice in said.get("choices", ()):
            self.text += choice["delta"].get("content") or ""


async def _events(response: httpx.Response) -> AsyncIterator[str]:
    """Yield the data of each event that came whole."""
    data = ""
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            data = line[6:]
        elif not line and data:
            yield data
            data = ""
