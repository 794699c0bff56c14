"""A response that is held for a reviewer: the form in which it would be released, and the reasons of a decision (SPEC-012 §6).

The sidecar packs a response that it may not release, the audit log stores it encrypted, and the oversight service shows it.
The form is canonical JSON, so that all three read the same.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interlock.domain.signed import MalformedError, parse_json

FORM = 1
STREAMED = "-stream"
"""Ends the name of a form that leaves as server-sent events."""

CHAT, STREAM, TEXT = "chat", "chat-stream", "text"
RESPONSES, MESSAGES, COMPLETIONS = "responses", "messages", "completions"
FORMS = frozenset({TEXT, *(form + end for form in (CHAT, RESPONSES, MESSAGES, COMPLETIONS) for end in ("", STREAMED))})
"""Forms of a response: in words of the API that it leaves by, whole or as server-sent events, or a text from the caller. What is held is
a chat completion in all of them but the text."""

APPROVAL_REASONS = ("ACCURATE", "SOURCES_CHECKED", "RISK_ACCEPTED")
REJECTION_REASONS = ("INACCURATE", "UNSUPPORTED", "HARMFUL", "PERSONAL_DATA", "POLICY", "UNCLEAR")
"""Reasons for a reviewer's decision. They are fixed words instead of free text, because they remain in a chain that cannot be
erased."""

KEPT = frozenset({"HELD", "HALTED"})
"""Statuses of a window whose response a reviewer may release. No one is given it before."""

MAX_HELD_BYTES = 16_777_216
"""Largest held response, headers included."""

MAX_HALTED_BYTES = 2_097_152
"""Largest halted response that is kept for a reviewer, with its text and its facts. A larger one stays shut: what is too
large to be kept must not go uncharged."""

REPEAT_S = 60
"""How long the same claim receives a handed-out response again: the time in which a client retries after a lost connection."""


@dataclass(frozen=True)
class Held:
    """A held response in the form of its release. ``headers`` are the ones that were known when it was sealed."""

    form: str
    include_usage: bool
    """Whether a stream ends with its usage figures."""
    headers: Mapping[str, str]
    body: bytes
    decision: bytes
    """The decision, as the policy service answered it."""
    question: str
    """The question, for the reviewer only."""
    evidence: Mapping[str, str]
    """Facts that the analysis names, id → text, for the reviewer only: the report has their ids."""


def packed(held: Held) -> bytes:
    """Return the bytes to store."""
    values = {
        "body": _text(held.body), "decision": _text(held.decision), "evidence": dict(held.evidence), "form": held.form,
        "headers": dict(held.headers), "include_usage": held.include_usage, "question": held.question, "v": FORM,
    }  # fmt: skip
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode()


def unpacked(data: bytes) -> Held:
    """Return the packed response. Raises ``ValueError`` for anything else: an unreadable response is never released."""
    try:
        values: Any = parse_json(data)
        held = Held(
            form=values["form"], include_usage=values["include_usage"], headers=values["headers"],
            body=_bytes(values["body"]), decision=_bytes(values["decision"]), question=values["question"],
            evidence=values["evidence"],
        )  # fmt: skip
        sound = _sound(held) and type(values["v"]) is int and values["v"] == FORM and packed(held) == data
    except (MalformedError, KeyError, TypeError, ValueError, AttributeError, binascii.Error):
        sound = False
    if not sound:
        raise ValueError("not a held response")
    return held


def _sound(held: Held) -> bool:
    return (
        isinstance(held.form, str)
        and held.form in FORMS
        and type(held.include_usage) is bool
        and isinstance(held.question, str)
        and _texts(held.headers)
        and _texts(held.evidence)
    )


def readable_texts(held: Held) -> list[tuple[str, str]]:
    """Return every text that a reader of the response would get as (label, text), in the order of the choices."""
    if held.form == TEXT:
        return [("text", held.body.decode("utf-8", "replace"))]
    completion = json.loads(held.body)
    return [
        one for choice in completion["choices"] for one in _choice_texts(choice, many=len(completion["choices"]) > 1)
    ]


def _choice_texts(choice: Mapping[str, Any], *, many: bool) -> list[tuple[str, str]]:
    message = choice["message"]
    prefix = f"choice {choice['index']} " if many else ""
    found = [
        (name, message.get(field) or "")
        for name, field in (("answer", "content"), ("reasoning", "reasoning_content"), ("refusal", "refusal"))
    ]
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    calls += [message["function_call"]] if message.get("function_call") else []
    found += [(f"call of {call['name']}", call["arguments"] or "{}") for call in calls]
    return [(prefix + name, text) for name, text in found if text]


def _texts(values: object) -> bool:
    return isinstance(values, dict) and all(isinstance(value, str) for value in values.values())


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
