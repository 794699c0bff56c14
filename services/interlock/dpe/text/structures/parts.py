"""Parts of a structure: a value with its key, and a row with its heads (SPEC-005 §3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

MOST_PATH = 120
_MOST_NAME = 40
_NUMERAL = re.compile(r"-?\d[\d.eE+-]*|true|false|null|none|yes|no", re.IGNORECASE)
_FIGURE = re.compile(r"-?\d[\d.]*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-]+")


@dataclass(frozen=True)
class KeyedValue:
    """A value at a span of a text, with the words of its key and of the objects around it."""

    label: str
    start: int
    end: int


@dataclass(frozen=True)
class KeyedRow:
    """The cells of a row at spans of a text, each with the head of its column."""

    cells: tuple[KeyedValue, ...]


StructurePart = KeyedValue | KeyedRow


@dataclass(frozen=True)
class PlacedScalar:
    """A value of a tree with its span, without quotes."""

    text: str
    start: int
    end: int


class KeyedMembers(list[tuple[str, Any]]):
    """The pairs of an object, so that a duplicate key hides nothing."""


def key_words(key: str) -> str:
    """Return the words of a key in camel case or snake case. A code, *BT-10*, is one word."""
    if any(map(str.isdigit, key)) and not any(map(str.islower, key)):
        return key
    return " ".join(_CAMEL.sub(" ", key).split())


def leaves(document: Any, path: tuple[str, ...] = (), behind: str = "") -> Iterator[KeyedValue]:
    """Yield each value of a tree with the words of its path. *behind* is what the tree of plain pairs states of each of its keys."""
    todo: list[tuple[tuple[str, ...], Any]] = [(path, document)]
    while todo:
        path, node = todo.pop()
        if sum(map(len, path)) > MOST_PATH:
            path = ()
        if isinstance(node, KeyedMembers):
            todo += [((*path, key_words(key)), child) for key, child in reversed(node)]
        elif isinstance(node, list) and _are_figures(node):
            yield KeyedValue(" ".join((*path, behind)).strip(), node[0].start, node[-1].end)
        elif isinstance(node, list):
            todo += [((*path, *_named(node, child)), child) for child in reversed(node)]
        elif node.end > node.start:
            yield KeyedValue(" ".join((*path, behind)).strip(), node.start, node.end)


def _are_figures(nodes: Sequence[Any]) -> bool:
    """Whether a list has figures alone, *[2, 2]*, which are read together: none of them contradicts another."""
    return len(nodes) > 1 and all(isinstance(each, PlacedScalar) and _FIGURE.fullmatch(each.text) for each in nodes)


def _named(nodes: Sequence[Any], node: Any) -> Iterator[str]:
    """Yield the name of an object among several of a list, so that its fields are told from the others'."""
    if len(nodes) > 1 and isinstance(node, KeyedMembers) and len(node) > 1:
        name = _name_of(node, [each for each in nodes if isinstance(each, KeyedMembers)])
        if name:
            yield name


def _name_of(node: KeyedMembers, nodes: Sequence[KeyedMembers]) -> str:
    """Return the first text of an object that no other one has under its key, or the first text of all."""
    texts = [(key, child.text) for key, child in node if isinstance(child, PlacedScalar) and _may_name(child.text)]
    for key, text in texts:
        if (
            sum(any(k == key and isinstance(c, PlacedScalar) and c.text == text for k, c in each) for each in nodes)
            == 1
        ):
            return text
    return texts[0][1] if texts else ""


def _may_name(text: str) -> bool:
    return 0 < len(text) <= _MOST_NAME and not _NUMERAL.fullmatch(text) and any(map(str.isalnum, text))
