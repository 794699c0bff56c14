"""Rows: tables of text and CSV, each row as one record with the names of its columns (SPEC-003 §3)."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from interlock.dpe.grounding.tables.record import MOST_RECORDS, Field, ReadSource, Record
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.keys import Key, read_key

_LETTER = re.compile(r"[^\W\d_]")
_YEAR = re.compile(r"(?:19|20)\d\d")
_SIZE = pattern(r"\s*\([nN] ?= ?\d[\d,]{0,12}\)")
"""How many a column is of, which is no part of its name: *Placebo (n = 121)*."""
_DELIMITERS = (",", ";", "\t")
_BOOLEANS = {"t": "true", "f": "false"}
_OF_TIMES = frozenset({"month", "day", "weekday", "date", "period"})
_NAMES = (
    "January February March April May June July August September October November December"
    " Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
)
_IN_FULL = {name[:size].casefold(): name for name in _NAMES.split() for size in (3, 4) if len(name) > size}
"""Months and weekdays as a column has them, in full, as answers have them."""


def _is_rule(line: str) -> bool:
    """Whether a line is the one of dashes below the head of a table, with bars or with crosses where columns meet."""
    return "-" in line and ("|" in line or "+" in line) and set(line) <= set("-:|+ \t\r")


def of_tables(content: str) -> ReadSource:
    """Return the rows of the tables of a text, and what stands around them."""
    lines = content.splitlines()
    records: list[Record] = []
    rest: list[str] = []
    number = 0
    while number < len(lines):
        if number + 2 < len(lines) and "|" in lines[number] and _is_rule(lines[number + 1]):
            head = _cells(lines[number])
            number += 2
            body: list[list[str]] = []
            while number < len(lines) and "|" in lines[number]:
                body.append(_cells(lines[number]))
                number += 1
            records += [as_record(head, cells) for cells in _with_booleans(body)]
        else:
            rest.append(lines[number])
            number += 1
    if not 0 < len(records) <= MOST_RECORDS:
        return ReadSource((), content)
    return ReadSource(tuple(record for record in records if record.fields), "\n".join(rest))


def _with_booleans(rows: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Return rows with *true* and *false* for the *t* and *f* of columns that have nothing else, as a database prints them."""
    width = min((len(row) for row in rows), default=0)
    columns = {place for place in range(width) if {row[place] for row in rows} == set(_BOOLEANS)}
    return [[_BOOLEANS[cell] if place in columns else cell for place, cell in enumerate(row)] for row in rows]


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().strip("*`_") for cell in inner.split("|")]


def as_record(head: Sequence[str], cells: Sequence[str]) -> Record:
    """Return a row as a record. The unit of its first cell holds for cells whose header has none: ``Revenue ($m)``."""
    head = [_SIZE.sub("", each) for each in head]
    first = read_key(cells[0]) if cells else Key("")
    own = bool(first.before or first.after) and not (head and head[0])
    fields = []
    for place, cell in enumerate(cells):
        if not cell or cell == "NULL":  # as a database prints what has no value
            continue
        key = read_key(head[place]) if place < len(head) else Key("")
        value = _IN_FULL.get(cell.casefold(), cell) if key.noun.casefold() in _OF_TIMES else cell
        if place == 0:
            fields.append(Field(key, first.noun if own else value))
        elif own and not (key.before or key.after):
            fields.append(Field(Key(key.noun), first.written(value)))
        else:
            fields.append(Field(key, key.written(value)))
    return Record(tuple(fields))


def of_csv(content: str) -> tuple[Record, ...]:
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
            return tuple(as_record(head, [cell.strip() for cell in row]) for row in rows[1:])
    return ()


def _is_head(cells: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether cells name columns: words, short names such as ``q1``, and years behind the first above what are no years."""
    named = [bool(_LETTER.search(cell)) and len(cell) <= 40 and not cell.endswith((".", "?", "!")) for cell in cells]
    return named[0] and all(
        is_name or (_YEAR.fullmatch(cell) and not any(_YEAR.fullmatch(row[place].strip()) for row in rows))
        for place, (is_name, cell) in enumerate(zip(named, cells, strict=True))
    )
