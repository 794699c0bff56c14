"""The model provider of the suite: chat completions, streamed too, that replay what a scenario says.

What is answered depends on what the request asks, never on how many requests came before: the scenario by its instructions, the
turn by the user's last words, the step by the tool calls that were already made. So a framework may ask as often as it likes.
The caller's key tells whether a fault is planted in its conversation.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.agents.scenario import Fault, Round, Scenario, Turn

MODEL = "gpt-4.1-mini"
PIECE = 24
ANSWERING = "final_answer"
"""The tool by which smolagents takes an answer."""
STRUCTURED = "final_result"
"""The tool by which pydantic-ai takes a structured answer."""

Message = Mapping[str, Any]


@dataclass
class Script:
    """Answers requests from scenarios, and keeps every message it gave, by the caller's key."""

    scenarios: Sequence[Scenario]
    planted: dict[str, Fault] = field(default_factory=dict)
    given: dict[str, list[Message]] = field(default_factory=lambda: defaultdict(list))
    unknown: list[str] = field(default_factory=list)
    """Requests that no scenario answers: a mistake of the suite, and told at its end."""

    def app(self) -> Starlette:
        """Return the ASGI application."""
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
            ]
        )

    def turn_of(self, body: Mapping[str, Any]) -> tuple[Scenario, Turn, int] | None:
        """Return the scenario and turn that a request is about, and how many answers the turn already has."""
        texts = [(one["role"], text_of(one)) for one in body["messages"]]
        for scenario in self.scenarios:
            if any(scenario.system in text for _, text in texts):
                for place in range(len(texts) - 1, -1, -1):
                    turn = _asked(scenario, *texts[place])
                    if turn:
                        return scenario, turn, sum(role == "assistant" for role, _ in texts[place + 1 :])
        return None

    def answer(self, key: str, body: Mapping[str, Any]) -> Message | None:
        """Return the message for a request of the caller with *key*; ``None`` where no scenario knows it."""
        found = self.turn_of(body)
        if found is None:
            return None
        _scenario, turn, done = found
        fault = self.planted.get(key)
        fault = fault if fault and fault.turn == turn.number else None
        rounds = fault.rounds if fault and fault.rounds is not None else turn.rounds
        says = fault.says if fault and fault.says is not None else turn.says
        if done < len(rounds):
            return calling(rounds[done], f"{turn.number}{done}")
        return _answering(says, turn, declared(body))

    async def _chat(self, request: Request) -> Response:
        body = await request.json()
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        message = self.answer(key, body)
        if message is None:
            self.unknown.append(json.dumps(body)[:2000])
            error = {"message": "no scenario knows this", "type": "invalid_request_error", "param": None, "code": None}
            return JSONResponse({"error": error}, 404)
        self.given[key].append(message)
        if body.get("stream"):
            usage = (body.get("stream_options") or {}).get("include_usage", False)
            return StreamingResponse(_chunks(message, usage=usage), media_type="text/event-stream")
        return JSONResponse(completion(message))

    async def _models(self, _request: Request) -> Response:
        model = {"id": MODEL, "object": "model", "created": 1, "owned_by": "suite"}
        return JSONResponse({"object": "list", "data": [model]})


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message, whose content is a string or a list of parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def declared(body: Mapping[str, Any]) -> set[str]:
    """Return the names of the tools that a request declares."""
    return {tool["function"]["name"] for tool in body.get("tools") or ()}


def completion(message: Message) -> dict[str, Any]:
    """Return *message* as a chat completion."""
    choice = {"index": 0, "message": dict(message), "finish_reason": _finish(message)}
    return {
        "id": "chatcmpl-suite", "object": "chat.completion", "created": 1_700_000_000, "model": MODEL,
        "choices": [choice], "usage": _USAGE,
    }  # fmt: skip


_USAGE = {"prompt_tokens": 200, "completion_tokens": 60, "total_tokens": 260}


def _asked(scenario: Scenario, role: str, text: str) -> Turn | None:
    """Return the turn whose words stand in a message; the user's own, or a framework's around them."""
    if role in {"assistant", "tool", "system", "developer"}:
        return None
    return next((turn for turn in scenario.turns if turn.user in text), None)


def calling(calls: Round, number: str) -> Message:
    """Return the message of one round of tool calls; *number* makes their ids."""
    made = [_call(name, arguments, f"call_{number}{place}") for place, (name, arguments) in enumerate(calls)]
    return {"role": "assistant", "content": None, "tool_calls": made}


def _call(name: str, arguments: Mapping[str, Any], call_id: str) -> dict[str, Any]:
    text = json.dumps(arguments, ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def _answering(says: str, turn: Turn, tools: set[str]) -> Message:
    """Return the answer in the way the request wants it: as text, or by the framework's own tool for answers."""
    if turn.fields and STRUCTURED in tools:
        return calling(((STRUCTURED, json.loads(says)),), f"{turn.number}r")
    if ANSWERING in tools:
        return calling(((ANSWERING, {"answer": says}),), f"{turn.number}a")
    return {"role": "assistant", "content": says}


def _finish(message: Message) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


async def _chunks(message: Message, *, usage: bool) -> AsyncIterator[bytes]:
    head = {"id": "chatcmpl-suite", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": MODEL}
    for delta in _deltas(message):
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish(message)}]})
    if usage:
        yield _event({**head, "choices": [], "usage": _USAGE})
    yield b"data: [DONE]\n\n"


def _deltas(message: Message) -> Iterable[dict[str, Any]]:
    yield {"role": "assistant", "content": "" if message.get("content") is not None else None}
    content = message.get("content") or ""
    for start in range(0, len(content), PIECE):
        yield {"content": content[start : start + PIECE]}
    for index, call in enumerate(message.get("tool_calls") or ()):
        named = {"name": call["function"]["name"], "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": named}]}
        text = call["function"]["arguments"]
        for start in range(0, len(text), PIECE):
            piece = {"arguments": text[start : start + PIECE]}
            yield {"tool_calls": [{"index": index, "function": piece}]}


def _event(value: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()
