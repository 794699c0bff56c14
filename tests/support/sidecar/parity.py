"""The parity matrix: what becomes of an answer of each kind, by the API that asks, the API of the provider, and streaming (API-5).

A cell is filled by calls: one with an answer that nothing is found in, and one that hides a grave word in just the part that the cell
is about. *Released after analysis*: the first is released with that part, and the second is halted without it. The judge finds the
word wherever it is handed it, so that the matrix is about the fronts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from interlock.runtime.settings.model import Settings
from tests.support.servers.provider import Provider, anthropic, completion, message, tool_call
from tests.support.servers.scripts import SCRIPTS
from tests.support.servers.streaming import answers_as_asked
from tests.support.sidecar.sidecar import RunningSidecar, reason_of

N, TOOLS, REASONING, STRUCTURED, LENGTH = "n = 2", "tool calls", "reasoning", "structured output", "ends by length"
FAILS, BREAKS = "ends by error", "breaks off"
FEATURES = (N, TOOLS, REASONING, STRUCTURED, LENGTH, FAILS, BREAKS)
COLUMNS = ("text", *FEATURES)
RELEASED = "released"
GRAVE, FINE = "CRITICAL", "harmless"
HALTS = {"crp-safety-policy": "halt-on CRITICAL"}
PROVIDERS: tuple[str, ...] = get_args(Settings.model_fields["upstream_api"].annotation)
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}

Features = frozenset[str]


@dataclass(frozen=True)
class Said:
    """What a provider says: the grave word, or a harmless one, in one of its parts."""

    features: Features
    part: str
    word: str

    def of(self, part: str) -> str:
        return self.word if part == self.part else "plain"

    @property
    def texts(self) -> list[str]:
        first = json.dumps({"q": self.of(STRUCTURED)}) if STRUCTURED in self.features else f"It is {self.of('text')}."
        return [first, *([f"It is {self.of(N)} too."] if N in self.features else [])]

    @property
    def reasoning(self) -> str:
        return f"I think that it is {self.of(REASONING)}." if REASONING in self.features else ""

    @property
    def arguments(self) -> str:
        return json.dumps({"q": self.of(TOOLS)}) if TOOLS in self.features else ""


def parts(features: Features) -> list[str]:
    """The parts of an answer that say something."""
    said = [STRUCTURED if STRUCTURED in features else "text"]
    return [*said, *(one for one in (N, TOOLS, REASONING) if one in features)]


def _chat(features: Features) -> dict[str, Any]:
    function = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
    more: dict[str, Any] = {"n": 2} if N in features else {}
    more |= {"tools": [function]} if TOOLS in features else {}
    more |= {"reasoning_effort": "low"} if REASONING in features else {}
    wanted = {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}
    more |= {"response_format": wanted} if STRUCTURED in features else {}
    return {"messages": [{"role": "user", "content": "What is it?"}], **more}


def _completions(features: Features) -> dict[str, Any]:
    more = _chat(features - {REASONING})
    del more["messages"]
    return {"prompt": "What is it?", **more}


def _messages(features: Features) -> dict[str, Any]:
    more: dict[str, Any] = {"n": 2} if N in features else {}
    more |= {"tools": [{"name": "f", "input_schema": SCHEMA}]} if TOOLS in features else {}
    more |= {"thinking": {"type": "enabled", "budget_tokens": 1024}} if REASONING in features else {}
    wanted = {"format": {"type": "json_schema", "schema": SCHEMA}}
    more |= {"output_config": wanted} if STRUCTURED in features else {}
    return {"max_tokens": 4096, "messages": [{"role": "user", "content": "What is it?"}], **more}


def _responses(features: Features) -> dict[str, Any]:
    more: dict[str, Any] = {"n": 2} if N in features else {}
    more |= (
        {"tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}]}
        if TOOLS in features
        else {}
    )
    more |= {"reasoning": {"effort": "low"}} if REASONING in features else {}
    wanted = {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA}}
    more |= {"text": wanted} if STRUCTURED in features else {}
    return {"input": "What is it?", **more}


REQUESTS: Mapping[str, Callable[[Features], dict[str, Any]]] = {
    "/v1/chat/completions": _chat,
    "/v1/completions": _completions,
    "/v1/messages": _messages,
    "/v1/responses": _responses,
}
"""How each API asks for what a cell is about. A front that is not in here fails the matrix: it has to be added."""


def _as_chat(said: Said) -> dict[str, Any]:
    calls = {"tool_calls": [tool_call("f", said.arguments)]} if said.arguments else {}
    thought = {"reasoning_content": said.reasoning} if said.reasoning else {}
    first, *others = said.texts
    body = completion(message(first, **calls, **thought), *map(message, others))
    body["choices"][0]["finish_reason"] = "length" if LENGTH in said.features else "tool_calls" if calls else "stop"
    return body


def _as_message(said: Said) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = (
        [{"type": "thinking", "thinking": said.reasoning, "signature": "s"}] if said.reasoning else []
    )
    blocks += [{"type": "text", "text": said.texts[0]}]
    blocks += (
        [{"type": "tool_use", "id": "t", "name": "f", "input": json.loads(said.arguments)}] if said.arguments else []
    )
    end = "max_tokens" if LENGTH in said.features else "tool_use" if said.arguments else "end_turn"
    return anthropic(*blocks, stop_reason=end)


def _as_response(said: Said) -> dict[str, Any]:
    text = {"type": "output_text", "text": said.texts[0], "annotations": []}
    thought = [{"type": "summary_text", "text": said.reasoning}]
    call = {
        "type": "function_call",
        "id": "fc",
        "call_id": "c",
        "name": "f",
        "arguments": said.arguments,
        "status": "completed",
    }
    output: list[dict[str, Any]] = [{"type": "reasoning", "id": "rs", "summary": thought}] if said.reasoning else []
    output += [{"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [text]}]
    output += [call] if said.arguments else []
    ended = (
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        if LENGTH in said.features
        else {}
    )
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    return {"id": "resp", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": output,
            "usage": usage, **ended}  # fmt: skip


ANSWERS: Mapping[str, Callable[[Said], dict[str, Any]]] = {
    "chat": _as_chat, "messages": _as_message, "responses": _as_response,
}  # fmt: skip
"""How a provider of each API says it at once."""


def _steps(api: str, said: Said) -> list[bytes]:
    """How it says it where it is asked to stream; one that breaks off ends within an event."""
    script = SCRIPTS[api](said.texts[0], reasoning=said.reasoning, call=said.arguments, cut_off=LENGTH in said.features)
    return [*script.begins, *script.says, b'data: {"ch\n\n'] if BREAKS in said.features else script.whole


async def cell(sidecar: RunningSidecar, provider: Provider, path: str, features: Features, *, stream: bool) -> str:
    """What becomes of an answer with *features*: ``RELEASED``, or refused with its reason. Raises where it leaves unjudged."""
    api = sidecar.settings.upstream_api
    asked = {"model": "m", **REQUESTS[path](features), **({"stream": True} if stream else {})}

    async def told(part: str, word: str) -> Any:
        said = Said(features, part, word)
        body = json.dumps(ANSWERS[api](said)).encode()
        if FAILS in features:
            provider.fails(500)
        else:
            answers_as_asked(provider, body[:-40] if BREAKS in features else body, _steps(api, said))
        return await sidecar.client.post(path, json=asked, headers=HALTS)

    for part in parts(features):
        fine, grave = await told(part, FINE), await told(part, GRAVE)
        assert GRAVE not in grave.text.replace(f"{GRAVE}_HALLUCINATION_RISK", "").replace(f"halt-on {GRAVE}", ""), (
            f"{path}: the {part} of {sorted(features)} left unjudged"
        )
        if fine.status_code != 200:
            assert grave.status_code == fine.status_code, (fine.text, grave.text)
            return f"refused ({reason_of(fine)})"
        assert grave.status_code == 451, grave.text
        assert fine.headers["content-type"].startswith("text/event-stream" if stream else "application/json")
        assert part == REASONING or FINE in fine.text, f"{path}: the {part} of {sorted(features)} was not released"
    return RELEASED


async def row(sidecar: RunningSidecar, provider: Provider, path: str, *, stream: bool) -> list[str]:
    """The cells of one endpoint, one feature each."""
    sets = [frozenset[str](), *(frozenset({one}) for one in FEATURES)]
    return [await cell(sidecar, provider, path, features, stream=stream) for features in sets]


def table(rows: Sequence[tuple[str, str, bool, Sequence[str]]]) -> str:
    """The rows as Markdown."""
    head = ["endpoint", "provider asked by", "streamed", *COLUMNS]
    lines = [head, ["---"] * len(head)]
    lines += [[f"`{path}`", f"`{api}`", "yes" if stream else "no", *cells] for path, api, stream, cells in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
