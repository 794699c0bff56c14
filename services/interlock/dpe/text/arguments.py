"""The arguments of a tool call: each value with its place in the JSON (ATT-5, A-24).

A key that stands twice gives two values: one reader takes the first, another the last. Text that is no JSON is one value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]

from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.text import Text, joined, plain

MAX_DEPTH = 64
PROSE_WORDS = 6
"""Words from which a value may be prose, which says something and does not only name it."""

Path = tuple[str, ...]

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)
_SENTENCE = pattern(r"[.!?](?:\s|$)")


@dataclass(frozen=True)
class Argument:
    """One value of the arguments. ``path`` holds the keys that lead to it; items of a list have the path of the list."""

    path: Path
    value: str | float | bool | None
    start: int
    end: int
    """Span in the JSON, without the quotation marks of a string."""

    @property
    def key(self) -> str:
        """The last key; empty for a value that has none."""
        return self.path[-1] if self.path else ""


class _NoJsonError(Exception):
    """The text is no JSON that is read here."""


def arguments(text: str) -> list[Argument]:
    """Return the values of the arguments, in order; the whole text as one where it is no JSON."""
    if not text.strip():
        return []
    try:
        found, at = _value(text, 0, (), 0)
    except (_NoJsonError, ValueError, StopIteration):
        at = -1
    return found if at >= 0 and _SPACE.fullmatch(text, at) else [Argument((), text, 0, len(text))]


def keys(text: str) -> Iterator[str]:
    """Yield every key of the arguments that leads to a value."""
    for argument in arguments(text):
        yield from argument.path


def prose(text: str) -> Text:
    """Return those values that read as prose, one in a paragraph, with their places in the JSON."""
    parts = [_unescaped(text, argument) for argument in arguments(text) if is_prose(argument)]
    return joined(parts, "\n\n") if parts else plain("")


def only_text(text: str) -> Text:
    """Return the one string of arguments that hold nothing else, with its places; the arguments as they are otherwise."""
    found = arguments(text)
    if len(found) == 1 and found[0].path and isinstance(found[0].value, str):
        return _unescaped(text, found[0])
    return plain(text)


def is_prose(argument: Argument) -> bool:
    """Whether a value says something: some words that end as a sentence does."""
    value = argument.value
    return isinstance(value, str) and len(value.split()) >= PROSE_WORDS and _SENTENCE.search(value) is not None


def _unescaped(text: str, argument: Argument) -> Text:
    part = plain(text).part(argument.start, argument.end)
    if text[argument.start : argument.end] == argument.value:
        return part
    escapes = _ESCAPE.finditer(part.chars)
    return part.replaced([(one.start(), one.end(), json.loads(f'"{one.group()}"')) for one in escapes])


def _value(text: str, at: int, path: Path, depth: int) -> tuple[list[Argument], int]:
    if depth > MAX_DEPTH:
        raise _NoJsonError
    at = _after_space(text, at)
    opening = text[at : at + 1]
    if opening == "{":
        return _object(text, at + 1, path, depth)
    if opening == "[":
        return _list(text, at + 1, path, depth)
    if opening == '"':
        value, end = scanstring(text, at + 1, True)  # noqa: FBT003 - the C function takes no keyword
        return [Argument(path, value, at + 1, end - 1)], end
    if number := _NUMBER.match(text, at):
        return [Argument(path, float(number.group()), at, number.end())], number.end()
    for word, meant in _WORDS.items():
        if text.startswith(word, at):
            return [Argument(path, meant, at, at + len(word))], at + len(word)
    raise _NoJsonError


def _object(text: str, at: int, path: Path, depth: int) -> tuple[list[Argument], int]:
    found: list[Argument] = []
    at = _after_space(text, at)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"':
            raise _NoJsonError
        key, at = scanstring(text, at + 1, True)  # noqa: FBT003 - the C function takes no keyword
        at = _after_space(text, at)
        if text[at : at + 1] != ":":
            raise _NoJsonError
        more, at = _value(text, at + 1, (*path, key), depth + 1)
        found += more
        at = _next(text, at, "}")
    return found, at + 1


def _list(text: str, at: int, path: Path, depth: int) -> tuple[list[Argument], int]:
    found: list[Argument] = []
    at = _after_space(text, at)
    while text[at : at + 1] != "]":
        more, at = _value(text, at, path, depth + 1)
        found += more
        at = _next(text, at, "]")
    return found, at + 1


def _next(text: str, at: int, closing: str) -> int:
    """Return where the next member begins, or where the closing bracket stands."""
    at = _after_space(text, at)
    if text[at : at + 1] == ",":
        after = _after_space(text, at + 1)
        if text[after : after + 1] == closing:
            raise _NoJsonError
        return after
    if text[at : at + 1] != closing:
        raise _NoJsonError
    return at


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at
