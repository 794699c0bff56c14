"""The answers that a chat request carries, as turns: what was asked, and what was answered (requirements.md, ATT-1).

A turn is found again by its own two sides alone, whatever a client left out before it. Both sides are read in a canonical form,
because libraries rewrite what does not matter: white space (left out here), how characters are composed, the ids of tool calls,
the order of keys in arguments. The system's and the developer's messages are left out: they change between calls.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.domain.binding.digests import Digests

MOST_TURNS = 64
"""Latest turns that are looked up; a client that continues a conversation carries its latest ones."""

SHORT = 24
"""Visible characters below which an answer is weak; a wide character, such as an ideograph, counts twice."""
FEW_WORDS = 4
"""Words below which an answer is weak, unless it is written without spaces."""
LONG = 64
"""Visible characters from which an answer is strong without its words being counted."""

_LEFT_OUT = frozenset({"system", "developer"})
_PART = "\x1e"
"""Stands between the parts of one side. It counts as white space, so that no canonical text holds it."""
_BLANKS = b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
"""The white space of ASCII. In UTF-8 none of these bytes is a part of another character."""


@dataclass(frozen=True)
class HistoryTurn:
    """One answer, together with what it answered."""

    digest: str
    weak: bool
    """Whether so short or common an answer proves little by itself."""


def turns(messages: Sequence[Mapping[str, Any]], digests: Digests) -> tuple[HistoryTurn, ...]:
    """Return the turns of a request's checked *messages* in their order, the latest ``MOST_TURNS`` of them."""
    answers = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    starts = [0, *(place + 1 for place in answers)]
    spans = list(zip(starts, answers, strict=False))[-MOST_TURNS:]
    return tuple(turn(digests, _asked(messages[start:place]), messages[place]) for start, place in spans)


def pending(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return what the answer to a request will have answered: the messages after the last answer that it carries."""
    last = max((place for place, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    return _asked(messages[last + 1 :])


def turn(digests: Digests, asked: str, answer: Mapping[str, Any]) -> HistoryTurn:
    """Return the turn of an assistant message that answered *asked*, what ``pending`` returned for its request."""
    said = f"{_text(answer.get('content'))} {_text(answer.get('refusal'))}"
    calls = [_call(call["function"]) for call in answer.get("tool_calls") or ()]
    plain = _plain(said)
    weak = _says_little(said, plain) and not any(arguments != "{}" for _, arguments in calls)
    spelled = _PART.join([plain, *(part for call in calls for part in call)])
    return HistoryTurn(digests.of("turn", asked, spelled), weak)


def _asked(messages: Sequence[Mapping[str, Any]]) -> str:
    parts = ((one["role"], _plain(_text(one.get("content")))) for one in messages if one["role"] not in _LEFT_OUT)
    return _PART.join(part for pair in parts for part in pair)


def _text(content: Any) -> str:
    """Return the text of a message's content, its parts joined."""
    if not content or isinstance(content, str):
        return content or ""
    return " ".join(part.get("text") or part.get("refusal") or "" for part in content)


def _plain(text: str) -> str:
    """Return *text* without white space, its characters composed (NFC)."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).replace("\xa0", "").replace("\u3000", "")
    # Three times as fast as split and join: this is done for each message of each request.
    return text.encode("utf-8", "surrogatepass").translate(None, _BLANKS).decode("utf-8", "surrogatepass")


def _call(function: Mapping[str, Any]) -> tuple[str, str]:
    """Return a tool call's name and its arguments in one spelling; arguments that are no JSON are read as text."""
    given = function.get("arguments") or "{}"
    try:
        arguments = json.dumps(json.loads(given), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        arguments = _plain(given)
    return _plain(function["name"]), arguments


def _says_little(text: str, plain: str) -> bool:
    if len(plain) >= LONG:
        return False
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in plain)
    return len(plain) + wide < SHORT or (len(text.split()) < FEW_WORDS and not wide)
