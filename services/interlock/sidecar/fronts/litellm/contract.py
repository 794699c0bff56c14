"""LiteLLM's generic guardrail API: what it asks, by allow-list, and what it is told. Pure.

A question of another shape is refused, and a refusal is an answer as well: LiteLLM can be set to pass what a guardrail's error status
was about, and cannot be set to pass what was BLOCKED.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.domain.errors import Refused, invalid
from interlock.domain.headers import headers
from interlock.sidecar.openai import strictjson
from interlock.sidecar.openai.completion import AnswerAsked, Completion
from interlock.sidecar.openai.completion import read as read_completion
from interlock.sidecar.trail.response_headers import ResponseHeaders

PATH = "/beta/litellm_basic_guardrail_api"
"""The path that LiteLLM appends to the guardrail's address."""

REQUEST, RESPONSE = "request", "response"
HIDDEN = "[present]"
"""What LiteLLM gives for the value of a header that its guardrail may not see."""

_CALL_ID = re.compile(r"[\x21-\x7e]{1,256}", re.ASCII)
_NO_MODEL = "unnamed"

Lines = list[tuple[str, str]]


@dataclass(frozen=True)
class GuardrailQuestion:
    """What LiteLLM asks about a request, or about the answer to it."""

    about: str
    """REQUEST or RESPONSE."""
    call_id: str
    """Names the call: its request and its answer have the same."""
    key: str
    """What LiteLLM knows its caller by: the hash of the virtual key. Empty: LiteLLM asks nobody for a key."""
    lines: Lines
    """The headers of the client that LiteLLM passes on, names in lower case."""
    chat: Mapping[str, Any]
    """The request as a chat request; empty for an answer."""
    texts: Sequence[str]
    tool_calls: Sequence[Any]


def read(value: Any) -> GuardrailQuestion:
    """Return the question in a JSON *value*. Refused with LITELLM_QUESTION_INVALID, LITELLM_HEADER_HIDDEN or UNSUPPORTED_CONTENT."""
    given = _mapping(value, "body")
    about, call_id = given.get("input_type"), given.get("litellm_call_id")
    if about not in (REQUEST, RESPONSE):  # no set: what was sent may have no hash
        raise _invalid("input_type is request or response")
    if not isinstance(call_id, str) or not _CALL_ID.fullmatch(call_id):
        raise _invalid("litellm_call_id is 1 to 256 visible characters: without it no answer has its request")
    if given.get("images"):
        raise invalid("UNSUPPORTED_CONTENT", "only text content can be analysed", param="images")
    known, sent = _mapping(given.get("request_data"), "request_data"), _mapping(given.get("request_headers"), "headers")
    texts = _texts(given.get("texts"))
    return GuardrailQuestion(
        about=about,
        call_id=call_id,
        key=_text(known.get("user_api_key_hash"), "user_api_key_hash"),
        lines=_lines(sent),
        chat=_chat(given, texts) if about == REQUEST else {},
        texts=texts,
        tool_calls=_list(given.get("tool_calls"), "tool_calls"),
    )


def answer(question: GuardrailQuestion, model: str, *, max_depth: int) -> Completion:
    """Return the answer in a *question* about one, as *model* gave it. Refused with UPSTREAM_INVALID_RESPONSE.

    LiteLLM sends texts and calls without their choices: every text is one of its own, so that none hides behind another.
    """
    messages: list[dict[str, Any]] = [{"content": text} for text in question.texts] or [{"content": None}]
    messages[0]["tool_calls"] = list(question.tool_calls)
    choices = [{"index": number, "message": message} for number, message in enumerate(messages)]
    return read_completion(
        strictjson.dumps({"choices": choices}), AnswerAsked(model, len(choices)), max_depth=max_depth
    )


def passed() -> Mapping[str, str]:
    """Return what LiteLLM is told of a request that may go on, and of an answer that may be released."""
    return {"action": "NONE"}


def blocked(refused: Refused, reply: ResponseHeaders) -> Mapping[str, str]:
    """Return what LiteLLM is told of what may not pass. Its client reads the reason as the message of an error."""
    ids = {"session": reply.session_id, "window": reply.window_id, "held": refused.metadata.get("held_uri", "")}
    named = ", ".join(f"{name} {value}" for name, value in ids.items() if value)
    return {
        "action": "BLOCKED",
        "blocked_reason": f"{refused.reason}: {refused.message}" + (f" ({named})" if named else ""),
    }


def _chat(given: Mapping[str, Any], texts: Sequence[str]) -> Mapping[str, Any]:
    """Return the request as one for a chat; an API without messages has its texts as the user's."""
    rows = _list(given.get("structured_messages"), "structured_messages")
    messages = [_without_nulls(_mapping(row, "structured_messages")) for row in rows]
    tools = _list(given.get("tools"), "tools")
    return {
        "model": _text(given.get("model"), "model") or _NO_MODEL,
        "messages": messages or [{"role": "user", "content": text} for text in texts],
        **({"tools": tools} if tools else {}),
    }


def _lines(sent: Mapping[str, Any]) -> Lines:
    """Return the headers whose value was passed on. One of ours without its value would lose a protection that was asked for."""
    lines = [(str(name).lower(), _text(value, "request_headers")) for name, value in sent.items()]
    for name, value in lines:
        if value == HIDDEN and headers.is_ours(name):
            message = f"LiteLLM hides the value of {name}: list it in the guardrail's extra_headers"
            raise invalid("LITELLM_HEADER_HIDDEN", message, header=name)
    return [(name, value) for name, value in lines if value != HIDDEN]


def _texts(value: Any) -> list[str]:
    return [_text(one, "texts") for one in _list(value, "texts")]


def _without_nulls(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in row.items() if one is not None}


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise _invalid(f"{name} is an object")
    return value or {}


def _list(value: Any, name: str) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise _invalid(f"{name} is a list")
    return value or []


def _text(value: Any, name: str) -> str:
    if value is not None and not isinstance(value, str):
        raise _invalid(f"{name} is a text")
    return value or ""


def _invalid(message: str) -> Refused:
    return invalid("LITELLM_QUESTION_INVALID", message)
