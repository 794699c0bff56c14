"""A chat request as the engine gets it: read in its roles by the sidecar, with the answer of a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from interlock.api.dpe.v1 import dpe_pb2
from interlock.dpe.request import Request
from interlock.dpe.servicer import read_request
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call import envelope
from interlock.sidecar.openai import chat, completion

SETTINGS = Settings()


def tool(name: str, parameters: Mapping[str, Any] | None = None, description: str = "") -> dict[str, Any]:
    """A declared function; its parameters are the properties of its schema."""
    schema = {"type": "object", "properties": dict(parameters or {})}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def asked(
    messages: str | Sequence[Mapping[str, Any]],
    answer: str | None = None,
    *,
    calls: Sequence[tuple[str, Any]] = (),
    tools: Sequence[Mapping[str, Any]] = (),
    interlock: Mapping[str, Any] | None = None,
) -> Request:
    """The analysis of an answer to a chat request; arguments of *calls* are JSON as text, or made into it."""
    listed = [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
    body: dict[str, Any] = {"model": "m", "messages": listed}
    body |= {"tools": list(tools)} if tools else {}
    body |= {"interlock": interlock} if interlock else {}
    evidence = envelope.of_chat(chat.read(body, SETTINGS), SETTINGS)
    said: dict[str, Any] = {"role": "assistant", "content": answer}
    if calls:
        said["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
            }
            for number, (name, given) in enumerate(calls)
        ]
    data = json.dumps({"choices": [{"index": 0, "message": said}]}).encode()
    outputs = completion.read(data, completion.AnswerAsked("m"), max_depth=32).outputs
    return read_request(
        dpe_pb2.AnalyzeRequest(
            query=evidence.query, prompt=evidence.prompt, facts=evidence.facts, outputs=outputs,
            said=evidence.said, tools=evidence.tools,
        )
    )  # fmt: skip
