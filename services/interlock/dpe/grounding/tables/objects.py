"""Objects: a tree of keys and values, from JSON or a settings file, as one record for each object (SPEC-003 §3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from interlock.dpe.grounding.tables.record import MOST_RECORDS, Field, Pairs, Record, UnfitError
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.keys import Key, read_key

MOST_DEPTH = 12
_LONGEST_VALUE = 160
_INHERITED = 4
_SHORTENED = word_set("dr mr mrs ms prof st sgt rev jr sr v vs no approx dept est fig ed vol")
_UNIT_KEYS = frozenset({"unit", "units", "currency", "uom"})
_MEASURED_KEYS = frozenset(
    {"amount", "value", "quantity", "total", "price", "result", "sum", "cost", "balance", "rate"}
)


def of_tree(document: Any) -> tuple[Record, ...]:
    """Return the records of a tree, or none where a part of it is no record: then all of it is read as text."""
    try:
        found = list(_objects(document, (), 0))
    except UnfitError:
        return ()
    return tuple(found) if 0 < len(found) <= MOST_RECORDS else ()


def _objects(node: Any, subject: tuple[Field, ...], depth: int, kind: str = "") -> Iterator[Record]:
    if depth > MOST_DEPTH:
        raise UnfitError
    if isinstance(node, Pairs):
        yield from _object(node, subject, depth, kind)
    elif isinstance(node, list):
        for child in node:
            yield from _objects(child, subject, depth + 1, kind)
    elif node is not None:
        text = _scalar(node)
        yield Record((Field(subject[-1].key, text),), subject[:-1]) if subject else Record((Field(Key(""), text),))


def _object(node: Pairs, subject: tuple[Field, ...], depth: int, kind: str) -> Iterator[Record]:
    unit = next((_scalar(value) for key, value in node if key.lower() in _UNIT_KEYS and isinstance(value, str)), "")
    fields: list[Field] = []
    absent: list[Key] = []
    nested: list[tuple[str, Any]] = []
    for key, value in node:
        if isinstance(value, list) and not (value and all(not isinstance(each, list) for each in value)):
            if value:
                nested.append((key, value))
            continue
        if value is None:
            absent.append(read_key(key))
            continue
        if key.lower() in _UNIT_KEYS and unit and any(k.lower() in _MEASURED_KEYS for k, _ in node):
            continue
        named = read_key(key, unit if key.lower() in _MEASURED_KEYS else "")
        if isinstance(value, list):
            if isinstance(value, Pairs):
                nested.append((key, value))
                continue
            items = tuple(named.written(_scalar(each)) for each in value)
            fields.append(Field(named, _listed(items), items))
        else:
            fields.append(Field(named, named.written(_scalar(value))))
    if fields or absent:
        yield Record(tuple(fields), subject, tuple(absent), kind)
    around = (*subject, *(field for field in fields if not _measures(field)))[:_INHERITED]
    yield from _within(nested, around, depth)


def _within(nested: Sequence[tuple[str, Any]], around: tuple[Field, ...], depth: int) -> Iterator[Record]:
    """Yield the records of the objects and lists inside an object. A member of a list is of the kind that its key names."""
    for key, value in nested:
        named = read_key(key)
        if isinstance(value, list) and not isinstance(value, Pairs):
            yield from _objects(value, around, depth + 1, named.noun)
        else:
            yield from _objects(value, (*around, Field(Key(""), named.noun)), depth + 1)


def _scalar(value: Any) -> str:
    """Return a value as one line. A text of several lines or sentences is no field, and the document is read as text."""
    text = {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value
    written = " ".join(str(text).split())
    if len(written) > _LONGEST_VALUE:
        raise UnfitError
    if any(mark != "." or not _is_short(word) for word, mark in re.findall(r"(\w*)([.!?])\s+\S", written)):
        raise UnfitError
    return written.rstrip(".")


def _is_short(word: str) -> bool:
    """Whether a full stop behind a word ends no sentence: *H. de Boer*, *Dr. Rocha*."""
    return (len(word) == 1 and word.isupper()) or word.lower() in _SHORTENED


def _listed(values: Sequence[str]) -> str:
    return " and ".join([", ".join(values[:-1]), values[-1]]) if len(values) > 1 else "".join(values)


def _measures(field: Field) -> bool:
    """Whether a field states an amount, which is no subject of the records inside."""
    return bool(field.key.before or field.key.after)
