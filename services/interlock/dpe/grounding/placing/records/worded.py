"""Values in words: what a segment gives to a row, *is under repair*, *on Friday*, and that another row has (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from interlock.dpe.comparison.cues import ENTITY_SUBSTITUTED
from interlock.dpe.document import Distortion
from interlock.dpe.grounding.placing.records.conditions import denials
from interlock.dpe.grounding.placing.records.fields import of_condition
from interlock.dpe.grounding.placing.records.grids import Grid, GridCell
from interlock.dpe.grounding.placing.records.mentions import Mention
from interlock.dpe.grounding.placing.records.segments import RecordSegment
from interlock.dpe.grounding.placing.records.words import beginnings, begins, says, tokens

_LEAST_ROWS = 2
_MOST_WORDS = 4
_ANSWERS = frozenset({"yes", "no", "y", "n"})
Stems = frozenset[str]


def worded(
    grid: Grid,
    segment: RecordSegment,
    rows: Sequence[Mention],
    columns: Sequence[int],
    only_there: Callable[[Stems, Grid, int], bool],
) -> Iterator[Distortion]:
    """Yield the values in words that a segment gives to a row and that another row has.

    *only_there* tells whether words are those of one column alone; where its key is named, *columns*, they need not be.
    """
    if not rows or len(grid.rows) < _LEAST_ROWS:
        return
    apart = frozenset(place for each in rows for place in each.places)
    first = beginnings(segment.tokens)
    for place in range(len(grid.columns)):
        heard = _heard(grid, place, segment, apart, first)
        if len(rows) >= _LEAST_ROWS and len(heard) == len(rows):
            yield from _in_turn(grid, place, rows, heard)
        elif len(heard) == 1 and (place in columns or only_there(heard[0][1], grid, place)):
            yield from _of_all(grid, place, segment, rows, heard[0][1])


def _heard(
    grid: Grid, place: int, segment: RecordSegment, apart: frozenset[int], first: frozenset[str]
) -> list[tuple[int, Stems]]:
    """Return the values of a column that a segment has, each with its place, in order; of two within each other the longer."""
    sided = of_condition(grid, place) is not None
    values = {
        cell.stems for row in grid.rows if (cell := row.cells[place]) is not None and _is_worded(cell, sided=sided)
    }
    column = grid.columns[place].stems | grid.kinds
    values = {each - column for each in values} - {frozenset()}
    if len(values) < _LEAST_ROWS:
        return []
    values = {each for each in values if begins(each, first)}
    found: list[tuple[int, Stems]] = []
    for each in values:
        places = [
            min(
                (n for n, t in enumerate(segment.tokens) if n not in apart and t.is_word and says(t.stem, stem)),
                default=-1,
            )
            for stem in each
        ]
        if min(places) >= 0 and max(places) - min(places) < len(each) + _LEAST_ROWS:
            found.append((min(places), each))
    return sorted((at, each) for at, each in found if not any(each < other for _, other in found))


def _is_worded(cell: GridCell, *, sided: bool) -> bool:
    plain = cell.positive is None or (cell.written.casefold() not in _ANSWERS and not sided)
    figures = all(any(map(str.isdigit, stem)) for stem in cell.stems)
    return not (cell.absent or cell.items or figures) and plain and 0 < len(cell.stems) <= _MOST_WORDS


def _in_turn(
    grid: Grid, place: int, rows: Sequence[Mention], heard: Sequence[tuple[int, Stems]]
) -> Iterator[Distortion]:
    """Yield the value of each row where rows and values take turns: *Ann is the cook and Bo the pilot*."""
    marks = [(min(each.places, default=-1), each.row) for each in rows]
    order = sorted([*((at, True) for at, _ in marks), *((at, False) for at, _ in heard)])
    if any(one[1] == other[1] for one, other in pairwise(order)):
        return
    for (_, row), (_, value) in zip(marks, heard, strict=True):
        yield from _differing(grid, place, row, value)


def _of_all(
    grid: Grid, place: int, segment: RecordSegment, rows: Sequence[Mention], value: Stems
) -> Iterator[Distortion]:
    denied = bool(denials([token for token in segment.tokens if token.is_word]) % 2)
    holders = [row.cells[place] for row in grid.rows]
    if not any(cell is not None and cell.stems >= value and _denies(cell) == denied for cell in holders):
        return
    for each in rows:
        yield from _differing(grid, place, each.row, value)


def _differing(grid: Grid, place: int, row: int, value: Stems) -> Iterator[Distortion]:
    """Yield the value of a row where another row has the one that is told, and where no other field of its own has it."""
    own, column = grid.rows[row].cells[place], grid.columns[place]
    sided = of_condition(grid, place) is not None
    if own is None or not _is_worded(own, sided=sided) or own.stems & value:
        return
    if any(label.written == own.written for label in grid.rows[row].labels):
        return  # the name itself
    if any(cell is not None and value <= cell.stems for cell in grid.rows[row].cells):
        return
    cells = [each.cells[place] for each in grid.rows]
    other = next(
        (cell for cell in cells if cell is not None and value <= cell.stems <= value | column.stems | grid.kinds), None
    )
    if other is not None:
        yield Distortion(ENTITY_SUBSTITUTED, own.written, other.written, grid.fact_id, slot=column.noun)


def _denies(cell: GridCell) -> bool:
    return bool(denials(tokens(cell.written)) % 2)
