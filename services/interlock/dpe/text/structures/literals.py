"""Literals: objects and lists as JSON and programs write them, with the span of each value (SPEC-005 §3).

``stock = {"BT-10": {"bin": "A3"}}`` of a program and ``{name: 'Ada', active: True,}`` state what JSON does. Keys may be bare, quotes
single, and a comma may stand behind the last value.
"""

from __future__ import annotations

import re
from typing import Any

from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.structures.parts import KeyedMembers, KeyedValue, PlacedScalar, key_words, leaves

_MOST_DEPTH = 12
_LONGEST = 32_000
_OPENS = pattern(
    r"\s*(?:(?:(?:export|const|let|var|val|final)\s+){0,3}([\p{L}_$][\w.$]{0,60})(?:\s{0,3}:\s{0,3}[\w<>\[\], .]{1,60})?\s{0,3}=\s{0,3})?"
)
_CLOSES = pattern(r"\s{0,20}(?:as const)?\s{0,20};?\s*")
_BLANK = re.compile(r"(?:\s+|(?:#|//)[^\n]*)")
_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'")
_BARE = re.compile(r"-?[\w.$+-]+")
_CLOSING = {"{": "}", "[": "]", "(": ")"}


class _UnreadableError(Exception):
    """A text that is no literal."""


def read(chars: str) -> list[KeyedValue] | None:
    """Return the values of a text that is one object or list, alone or given to a name, or ``None``."""
    opening = _OPENS.match(chars)
    if opening is None or len(chars) > _LONGEST or chars[opening.end() : opening.end() + 1] not in {"{", "["}:
        return None
    reader = _Reader(chars, opening.end())
    try:
        document = reader.value(0)
    except _UnreadableError:
        return None
    if _CLOSES.fullmatch(chars[reader.at :]) is None:
        return None
    flat = isinstance(document, KeyedMembers) and all(isinstance(child, PlacedScalar) for _, child in document)
    found = list(leaves(document, behind=key_words(opening[1]) if opening[1] and flat else ""))
    return found or None


class _Reader:
    def __init__(self, chars: str, at: int) -> None:
        self._chars, self.at = chars, at

    def value(self, depth: int) -> Any:
        """Return the value at the current place, and go behind it."""
        opens = self._next()
        if opens not in _CLOSING:
            return self._scalar()
        if depth >= _MOST_DEPTH:
            raise _UnreadableError
        self.at += 1
        found: list[Any] = KeyedMembers() if opens == "{" else []
        while self._next() != _CLOSING[opens]:
            if isinstance(found, KeyedMembers):
                key = self._scalar().text
                if self._next() != ":":
                    raise _UnreadableError
                self.at += 1
                found.append((key, self.value(depth + 1)))
            else:
                found.append(self.value(depth + 1))
            if self._next() == ",":
                self.at += 1
            elif self._next() != _CLOSING[opens]:
                raise _UnreadableError
        self.at += 1
        return found

    def _next(self) -> str:
        while blank := _BLANK.match(self._chars, self.at):
            self.at = blank.end()
        return self._chars[self.at : self.at + 1]

    def _scalar(self) -> PlacedScalar:
        quoted = _STRING.match(self._chars, self.at)
        if quoted is not None:
            self.at = quoted.end()
            return PlacedScalar(quoted[0][1:-1], quoted.start() + 1, quoted.end() - 1)
        bare = _BARE.match(self._chars, self.at)
        if bare is None:
            raise _UnreadableError
        self.at = bare.end()
        return PlacedScalar(bare[0], bare.start(), bare.end())
