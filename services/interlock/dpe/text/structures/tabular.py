"""Rows of CSV and of SQL: what is stated under a head or a name of a column in an answer (SPEC-005 §3).

Unread, the cells of a row run together: ``120,150`` would be one number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.structures.parts import KeyedRow, KeyedValue

_LONGEST = 32_000
_VALUE = re.compile(r"\s*(?:'((?:[^'\\]|''|\\.)*)'|([^,()'\s][^,()'\n]*))\s*")
_LETTER = re.compile(r"[^\W\d_]")
_YEAR = re.compile(r"(?:19|20)\d\d")
_INSERT = pattern(
    r"\s*INSERT\s+(?:OR\s+\w+\s+)?INTO\s+[\w.\"`]{1,80}\s*\(([^()]{1,400})\)\s*VALUES\s*", ignore_case=True
)
_LONGEST_HEAD = 40
_LEAST_ROWS = 2
_DELIMITERS = (",", ";", "\t")


def csv(chars: str) -> list[KeyedRow] | None:
    """Return the rows of a text all of whose lines have as many cells as its head, or ``None``."""
    if len(chars) > _LONGEST or "\n" not in chars:
        return None
    lines = _lines(chars)
    for delimiter in _DELIMITERS:
        if len(lines) < _LEAST_ROWS or delimiter not in chars[slice(*lines[0])]:
            continue
        rows = [_cells(chars, *line, delimiter) for line in lines]
        if any(row is None or len(row) != len(rows[0] or ()) for row in rows):
            continue
        head, *body = [[(start, end) for start, end in row or ()] for row in rows]
        names = [chars[start:end] for start, end in head]
        if len(names) > 1 and _is_head(names, [[chars[start:end] for start, end in row] for row in body]):
            return [
                KeyedRow(
                    tuple(KeyedValue(name, *span) for name, span in zip(names, row, strict=True) if span[1] > span[0])
                )
                for row in body
            ]
    return None


def inserted(chars: str) -> list[KeyedRow] | None:
    """Return the rows that a statement of SQL inserts, or ``None`` for another text."""
    head = _INSERT.match(chars) if len(chars) <= _LONGEST else None
    if head is None:
        return None
    names = [each.strip().strip('"`') for each in head[1].split(",")]
    at, rows = head.end(), list[KeyedRow]()
    while chars[at : at + 1] == "(":
        cells, at = _tuple(chars, at + 1)
        if len(cells) != len(names):
            return None
        rows.append(
            KeyedRow(
                tuple(KeyedValue(name, *span) for name, span in zip(names, cells, strict=True) if span[1] > span[0])
            )
        )
        at = _behind(chars, at, ",")
    return rows if rows and not chars[at:].strip("; \t\n") else None


def _tuple(chars: str, at: int) -> tuple[list[tuple[int, int]], int]:
    """Return the cells up to a closing bracket and the place behind it, or no cells."""
    cells: list[tuple[int, int]] = []
    while at < len(chars):
        cell = _VALUE.match(chars, at)
        if cell is None:
            break
        start, end = cell.span(1) if cell[1] is not None else cell.span(2)
        cells.append((start, start + len(chars[start:end].rstrip())))
        at = cell.end() + 1
        if chars[cell.end() : at] == ")":
            return cells, at
        if chars[cell.end() : at] != ",":
            break
    return [], len(chars)


def _behind(chars: str, at: int, mark: str) -> int:
    while at < len(chars) and (chars[at].isspace() or chars[at] == mark):
        at += 1
    return at


def _lines(chars: str) -> list[tuple[int, int]]:
    found, at = [], 0
    for line in chars.splitlines(keepends=True):
        if line.strip():
            found.append((at, at + len(line.rstrip("\r\n"))))
        at += len(line)
    return found


def _cells(chars: str, start: int, end: int, delimiter: str) -> list[tuple[int, int]] | None:
    """Return the spans of the cells of a line, or ``None`` where a quote does not close."""
    return list(_spans(chars, start, end, delimiter)) if chars.count('"', start, end) % 2 == 0 else None


def _spans(chars: str, start: int, end: int, delimiter: str) -> Iterator[tuple[int, int]]:
    quoted, first = False, start
    for place in range(start, end + 1):
        if place < end and chars[place] == '"':
            quoted = not quoted
        elif place == end or (chars[place] == delimiter and not quoted):
            yield _bare(chars, first, place)
            first = place + 1


def _bare(chars: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without white space and quotes at its ends."""
    while start < end and (chars[start].isspace() or chars[start] == '"'):
        start += 1
    while end > start and (chars[end - 1].isspace() or chars[end - 1] == '"'):
        end -= 1
    return start, end


def _is_head(names: list[str], rows: list[list[str]]) -> bool:
    """Whether cells name columns: short, without spaces or full stops behind them, no figures but years, and above what is no prose."""
    named = all(
        (_LETTER.search(each) or _YEAR.fullmatch(each)) and len(each) <= _LONGEST_HEAD and each[-1:] not in ".?!"
        for each in names
    )
    figures = all(any(any(map(str.isdigit, cell)) for cell in row) for row in rows)
    compact = all("," not in "".join(names) and len(each.split()) <= 4 for each in names)
    return bool(named and compact and (figures or len(names) > _LEAST_ROWS) and _LETTER.search(names[0]))
