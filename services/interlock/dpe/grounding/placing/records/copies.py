"""Copies: objects and rows that an answer writes down itself, held cell by cell against the grids of its sources (SPEC-005 §5.3).

The row is the one whose name stands in the object, the field the one with the words of its key. What an answer calls otherwise, or
has reckoned, is left alone: a difference is a finding where a field has two sides, has no value, or where the value stands elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from interlock.dpe.comparison.cues import ENTITY_SUBSTITUTED, NEGATION_FLIP, NUMBER_CHANGED
from interlock.dpe.document import Distortion
from interlock.dpe.grounding.placing.records.grids import Grid, GridCell, cell_of
from interlock.dpe.grounding.placing.records.words import content, named
from interlock.dpe.grounding.placing.scopes import plain
from interlock.dpe.grounding.tables import objects
from interlock.dpe.grounding.tables.record import Field, Pairs, Record
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.keys import Key, read_key
from interlock.dpe.values.quantities import comparable, same

_PIECE = pattern(r'"((?:[^"\\]|\\.){0,200})"|(-?\d[\d.]{0,30}(?:[eE][+-]?\d{1,3})?)|(true|false|null)|([{}\[\]:,])')
_KEYED = pattern(r'"[^"\n]{1,60}"\s*:')
_MOST_PIECES = 2000
_LITERALS: dict[str, Any] = {"true": True, "false": False, "null": None}


def is_object(text: str) -> bool:
    """Whether a text writes objects down."""
    return _KEYED.search(text) is not None


def of_objects(text: str, grids: Sequence[Grid]) -> Iterator[Distortion]:
    """Yield the fields of a text's objects that have another value than the row which the object names."""
    for record in objects.of_tree(_tree(text)):
        stated = [*record.fields, *(Field(key, "none") for key in record.absent)]
        for grid in grids:
            row = None if grid.turned else _row(stated, grid)
            if row is not None:
                yield from _compared(stated, grid, row)
            elif not grid.turned:
                yield from _exchanged(record, grid)


def of_row(label: str, cells: Sequence[tuple[str, str]], grids: Sequence[Grid]) -> Iterator[Distortion]:
    """Yield the cells of an answer's table that have another value than the source's, with its rows as rows or as columns."""
    for grid in grids:
        for head, written in cells:
            for name, key in ((label, head), (head, label)):
                row, place = _named(name, grid), _place(read_key(key), grid)
                if row is not None and place is not None and not (grid.turned and len(grid.columns) == 1):
                    yield from _differing(Field(read_key(key), read_key(key).written(written)), grid, row, place)


def _tree(text: str) -> list[Any]:
    """Return the pairs and objects of a text whose outer brackets may be missing."""
    found = [match.groups() for match in _PIECE.finditer(text)][:_MOST_PIECES]
    reader = _Reader(found)
    whole = reader.pairs(0)
    return [whole, *reader.apart] if whole else reader.apart


class _Reader:
    """Reads pieces of JSON as far as they go. ``apart`` are the objects that stand by themselves."""

    def __init__(self, pieces: Sequence[tuple[str | None, ...]]) -> None:
        self.pieces = pieces
        self.at = 0
        self.apart: list[Any] = []

    def pairs(self, depth: int) -> Pairs:
        """Return the pairs up to the end of an object."""
        found = Pairs()
        while self.at < len(self.pieces):
            text, _, _, mark = self.pieces[self.at]
            self.at += 1
            if mark == "}" and depth:
                break
            if mark in {"{", "["} and depth < objects.MOST_DEPTH:
                self.apart.append(self.pairs(depth + 1) if mark == "{" else self.members(depth + 1))
            elif text is not None and self._mark() == ":":
                self.at += 1
                found.append((text, self.value(depth)))
        return found

    def value(self, depth: int) -> Any:
        """Return the next value."""
        if self.at >= len(self.pieces) or depth >= objects.MOST_DEPTH:
            return None
        text, number, literal, mark = self.pieces[self.at]
        self.at += 1
        if mark == "{":
            return self.pairs(depth + 1)
        if mark == "[":
            return self.members(depth + 1)
        return _LITERALS.get(literal) if literal else (text if text is not None else number)

    def members(self, depth: int) -> list[Any]:
        """Return the members up to the end of a list."""
        found: list[Any] = []
        while self.at < len(self.pieces) and self._mark() != "]":
            if self._mark() in {",", ":", "}"}:
                self.at += 1
            else:
                found.append(self.value(depth))
        self.at += 1
        return found

    def _mark(self) -> str | None:
        return self.pieces[self.at][3] if self.at < len(self.pieces) else None


def _row(stated: Sequence[Field], grid: Grid) -> int | None:
    """Return the only row whose first names stand in an object, or else the only one that any of its names tell."""
    if len(grid.rows) == 1:
        return None
    for most in (1, None):
        found = {row for each in stated if (row := _named(each.value, grid, most)) is not None}
        if len(found) == 1:
            return next(iter(found))
    return None


def _named(name: str, grid: Grid, most: int | None = None) -> int | None:
    written = plain(name)
    found = [
        n for n, row in enumerate(grid.rows) if any(plain(label.written) == written for label in row.labels[:most])
    ]
    return found[0] if written and len(found) == 1 else None


def _place(key: Key, grid: Grid) -> int | None:
    """Return the column of a key: the one with its words, or the only one that words for the same name."""
    stems = frozenset(content(key.noun)) if key.noun else frozenset()
    nouns = [frozenset(content(column.noun)) for column in grid.columns]
    exact = [n for n, each in enumerate(nouns) if each == stems]
    near = exact or [n for n, each in enumerate(nouns) if stems and named(stems, each) and named(each, stems)]
    return near[0] if len(near) == 1 else None


def _compared(stated: Sequence[Field], grid: Grid, row: int) -> Iterator[Distortion]:
    for each in stated:
        place = _place(each.key, grid)
        if place is not None:
            yield from _differing(each, grid, row, place)


def _differing(stated: Field, grid: Grid, row: int, place: int) -> Iterator[Distortion]:
    own, told = grid.rows[row].cells[place], cell_of(stated)
    others = [each.cells[place] for n, each in enumerate(grid.rows) if n != row]
    if own is None:
        return
    kind = _kind(own, told, [cell for cell in others if cell is not None])
    if kind:
        noun = grid.columns[place].noun
        yield Distortion(kind, own.written, stated.value, grid.fact_id, slot=noun)


def _kind(own: GridCell, told: GridCell, others: Sequence[GridCell]) -> str:
    """Return the type of a difference that is surely one, or an empty text."""
    if own.absent or told.absent:
        if own.absent and told.absent:
            return ""
        taken = own.absent and any(_alike(told, each) for each in others)
        return NUMBER_CHANGED if taken and told.values else ENTITY_SUBSTITUTED if taken else ""
    if own.positive is not None and told.positive is not None:
        return NEGATION_FLIP if own.positive != told.positive and own.condition == told.condition else ""
    if _alike(own, told) or not any(_alike(told, each) for each in others):
        return ""
    if bool(own.values) != bool(told.values) or (own.values and not _are_comparable(own, told)):
        return ""  # a dose in tablets told in milligrams
    return NUMBER_CHANGED if told.values else ENTITY_SUBSTITUTED


def _are_comparable(own: GridCell, told: GridCell) -> bool:
    return any(comparable(one, other) for one in own.values for other in told.values)


def _alike(one: GridCell, other: GridCell) -> bool:
    if one.absent or other.absent:
        return one.absent and other.absent
    if one.values and other.values:
        return any(same(a, b) or (a.digits and a.digits == b.digits) for a in one.values for b in other.values)
    return plain(one.written) == plain(other.written) or bool(one.stems and one.stems == other.stems)


def _exchanged(record: Record, grid: Grid) -> Iterator[Distortion]:
    """Yield the names that an object gives to what another row is: *admin: Leif*, where Leif is the member."""
    for stated in record.fields:
        row = _named(stated.value, grid)
        key = frozenset(content(stated.key.noun)) if stated.key.noun else frozenset()
        for place in range(len(grid.columns)) if row is not None else ():
            own = grid.rows[row].cells[place] if row is not None else None
            holders = [each for each in grid.rows if (cell := each.cells[place]) is not None and cell.stems == key]
            if own is not None and key and len(holders) == 1 and own.stems != key:
                noun = grid.columns[place].noun
                holder = holders[0].labels[0].written if holders[0].labels else ""
                yield Distortion(ENTITY_SUBSTITUTED, holder, stated.value, grid.fact_id, slot=stated.key.noun or noun)
