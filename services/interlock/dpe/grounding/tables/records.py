"""Records: the rows and objects that a source states, each as one sentence with its subject (SPEC-003 §3).

A JSON object, a row of a table and a line of CSV say the same as prose does. ``{"year": 2023, "revenue_musd": 412}`` becomes
``year 2023, revenue $412 million``: the key gives the noun and the unit, the other fields give the subject. Fields of one
object thus stand in one unit of evidence, and those of another object in another.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.dpe.values.keys import Key, read_key

MOST_RECORDS = 400
MOST_DEPTH = 12
_LONGEST_VALUE = 160
_INHERITED = 4
_UNIT_KEYS = frozenset({"unit", "units", "currency", "uom"})
_MEASURED_KEYS = frozenset(
    {"amount", "value", "quantity", "total", "price", "result", "sum", "cost", "balance", "rate"}
)
_LETTER = re.compile(r"[^\W\d_]")
_YEAR = re.compile(r"(?:19|20)\d\d")
_DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True)
class Field:
    """A field of a record: its key, and its value as text would state it."""

    key: Key
    value: str

    @property
    def stated(self) -> str:
        """The field in words."""
        return f"{self.key.noun} {self.value}".strip()


@dataclass(frozen=True)
class Record:
    """The fields of one object or row. ``subject`` has the fields of the objects around it."""

    fields: tuple[Field, ...]
    subject: tuple[Field, ...] = ()

    @property
    def sentence(self) -> str:
        """The record as one sentence."""
        return ", ".join(field.stated for field in (*self.subject, *self.fields)) + "."


@dataclass(frozen=True)
class ReadSource:
    """A source as its records and the text around them. ``rest`` is the whole text where it has no record."""

    records: tuple[Record, ...]
    rest: str


def _is_rule(line: str) -> bool:
    """Whether a line is the one of dashes below the head of a table."""
    return "-" in line and set(line) <= set("-:| \t\r")


def read(content: str) -> ReadSource:
    """Return the records of a source. What is neither JSON nor a table is left as it is."""
    if content.lstrip()[:1] in {"{", "["}:
        found = _of_json(content)
        return ReadSource(found, "") if found else ReadSource((), content)
    if "|" in content:
        return _of_tables(content)
    rows = _of_csv(content)
    return ReadSource(rows, "") if rows else ReadSource((), content)


def _of_json(content: str) -> tuple[Record, ...]:
    """Return the records of a JSON document, or none where a part of it is no record: then all of it is read as text."""
    try:
        document = json.loads(content, object_pairs_hook=_Object, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return ()
    try:
        found = list(_objects(document, (), 0))
    except _UnfitError:
        return ()
    return tuple(found) if 0 < len(found) <= MOST_RECORDS else ()


class _Object(list[tuple[str, Any]]):
    """A JSON object with all its pairs, so that a duplicate key hides nothing."""


class _UnfitError(Exception):
    """A document that records cannot state."""


def _objects(node: Any, subject: tuple[Field, ...], depth: int) -> Iterator[Record]:
    if depth > MOST_DEPTH:
        raise _UnfitError
    if isinstance(node, _Object):
        yield from _object(node, subject, depth)
    elif isinstance(node, list):
        for child in node:
            yield from _objects(child, subject, depth + 1)
    elif node is not None:
        text = _scalar(node)
        yield Record((Field(subject[-1].key, text),), subject[:-1]) if subject else Record((Field(Key(""), text),))


def _object(node: _Object, subject: tuple[Field, ...], depth: int) -> Iterator[Record]:
    unit = next((_scalar(value) for key, value in node if key.lower() in _UNIT_KEYS and isinstance(value, str)), "")
    fields: list[Field] = []
    nested: list[tuple[str, Any]] = []
    for key, value in node:
        if isinstance(value, list) and not (value and all(not isinstance(each, list) for each in value)):
            if value:
                nested.append((key, value))
            continue
        if value is None or (key.lower() in _UNIT_KEYS and unit and any(k.lower() in _MEASURED_KEYS for k, _ in node)):
            continue
        named = read_key(key, unit if key.lower() in _MEASURED_KEYS else "")
        if isinstance(value, list):
            if isinstance(value, _Object):
                nested.append((key, value))
                continue
            fields.append(Field(named, _listed([named.written(_scalar(each)) for each in value])))
        else:
            fields.append(Field(named, named.written(_scalar(value))))
    if fields:
        yield Record(tuple(fields), subject)
    around = (*subject, *(field for field in fields if not _measures(field)))[:_INHERITED]
    for key, value in nested:
        named = read_key(key)
        yield from _objects(value, around if isinstance(value, list) and not isinstance(value, _Object)
                            else (*around, Field(Key(""), named.noun)), depth + 1)  # fmt: skip


def _scalar(value: Any) -> str:
    """Return a value as one line. A text of several lines or sentences is no field, and the document is read as text."""
    text = {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value
    written = " ".join(str(text).split())
    if len(written) > _LONGEST_VALUE or re.search(r"[.!?]\s+\S", written):
        raise _UnfitError
    return written.rstrip(".")


def _listed(values: Sequence[str]) -> str:
    return " and ".join([", ".join(values[:-1]), values[-1]]) if len(values) > 1 else "".join(values)


def _measures(field: Field) -> bool:
    """Whether a field states an amount, which is no subject of the records inside."""
    return bool(field.key.before or field.key.after)


def _of_tables(content: str) -> ReadSource:
    lines = content.splitlines()
    records: list[Record] = []
    rest: list[str] = []
    number = 0
    while number < len(lines):
        if (
            number + 2 < len(lines)
            and "|" in lines[number]
            and "|" in lines[number + 1]
            and _is_rule(lines[number + 1])
        ):
            head = _cells(lines[number])
            number += 2
            while number < len(lines) and "|" in lines[number]:
                records.append(_row(head, _cells(lines[number])))
                number += 1
        else:
            rest.append(lines[number])
            number += 1
    if not 0 < len(records) <= MOST_RECORDS:
        return ReadSource((), content)
    return ReadSource(tuple(record for record in records if record.fields), "\n".join(rest))


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().strip("*`_") for cell in inner.split("|")]


def _row(head: Sequence[str], cells: Sequence[str]) -> Record:
    """Return a row as a record. The unit of its first cell holds for cells whose header has none: ``Revenue ($m)``."""
    first = read_key(cells[0]) if cells else Key("")
    own = bool(first.before or first.after) and not (head and head[0])
    fields = []
    for place, cell in enumerate(cells):
        if not cell:
            continue
        key = read_key(head[place]) if place < len(head) else Key("")
        if place == 0:
            fields.append(Field(key, first.noun if own else cell))
        elif own and not (key.before or key.after):
            fields.append(Field(Key(key.noun), first.written(cell)))
        else:
            fields.append(Field(key, key.written(cell)))
    return Record(tuple(fields))


def _of_csv(content: str) -> tuple[Record, ...]:
    """Return the records of CSV: a head of names, and at least one row with as many cells and a figure.

    Unread, the cells of a row run together: ``120,150`` would be one number, and what an answer says of either is in no source.
    """
    lines = [line for line in content.splitlines() if line.strip()]
    if not 1 < len(lines) <= MOST_RECORDS:
        return ()
    for delimiter in _DELIMITERS:
        if delimiter not in lines[0]:
            continue
        try:
            rows = list(csv.reader(lines, delimiter=delimiter))
        except csv.Error:  # a cell above what its reader takes is no field of a record
            continue
        head = [cell.strip() for cell in rows[0]]
        even = len(head) > 1 and all(len(row) == len(head) for row in rows)
        figures = all(any(any(map(str.isdigit, cell)) for cell in row) for row in rows[1:])
        if even and figures and _is_head(head, rows[1:]):
            return tuple(_row(head, [cell.strip() for cell in row]) for row in rows[1:])
    return ()


def _is_head(cells: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether cells name columns: words, short names such as ``q1``, and years behind the first above what are no years."""
    named = [bool(_LETTER.search(cell)) and len(cell) <= 40 and not cell.endswith((".", "?", "!")) for cell in cells]
    return named[0] and all(
        is_name or (_YEAR.fullmatch(cell) and not any(_YEAR.fullmatch(row[place].strip()) for row in rows))
        for place, (is_name, cell) in enumerate(zip(named, cells, strict=True))
    )
