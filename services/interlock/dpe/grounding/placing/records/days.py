"""Days and dates: weekdays of a list and dates of a key that a segment gives otherwise (SPEC-005 §5.3).

*Monday to Friday* beside ``days: [mon, tue, thu]``; *closes on 2 May* where that is the day on which something else of the source is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interlock.dpe.comparison.cues import DATE_SHIFTED
from interlock.dpe.document import Distortion
from interlock.dpe.grounding.placing.records.grids import Grid
from interlock.dpe.grounding.placing.records.segments import RecordSegment
from interlock.dpe.grounding.placing.records.words import RecordWord, named, stems_in
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import Value, same
from interlock.dpe.values.reckoning.weekdays import days_in

_LETTERS = 3
_SHORT = {name: n for n, name in enumerate(["mon", "tue", "wed", "thu", "fri", "sat", "sun"])}


def days_and_dates(grid: Grid, segment: RecordSegment, row: int, grids: Sequence[Grid]) -> Iterator[Distortion]:
    """Yield the weekdays that are none of a row's list, and the dates that are those of another key."""
    text = _text(segment.tokens)
    stems = stems_in(segment.tokens)
    told = [value for value in read(text).values if _is_day(value)]
    for column, cell in zip(grid.columns, grid.rows[row].cells, strict=True):
        if cell is None or not named(stems, column.stems):
            continue
        listed = {_SHORT.get(item.casefold()[:_LETTERS]) for item in cell.items}
        if listed and None not in listed and _weekdays(text) - listed:
            yield Distortion(DATE_SHIFTED, cell.written, text, grid.fact_id, slot=column.noun)
        own = [value for value in cell.values if _is_day(value)]
        if len(own) != 1 or len(told) != 1 or same(own[0], told[0]) or _is_of_named(told[0], grid, row, stems):
            continue
        if _is_of_another(told[0], grid, grids):
            yield Distortion(DATE_SHIFTED, cell.written, told[0].text, grid.fact_id, slot=column.noun)


def _text(tokens: Sequence[RecordWord]) -> str:
    return " ".join(token.text for token in tokens)


def _is_day(value: Value) -> bool:
    return value.moment is not None and value.moment.day is not None and bool(value.moment.years)


def _weekdays(text: str) -> frozenset[int]:
    return frozenset[int]().union(*(each.days for each in days_in(text)))


def _is_of_named(told: Value, grid: Grid, row: int, stems: frozenset[str]) -> bool:
    """Whether a date is that of another key that the segment names as well: *received on 3 February and validated a week later*."""
    return any(
        cell is not None and named(stems, column.stems) and any(same(told, value) for value in cell.values)
        for column, cell in zip(grid.columns, grid.rows[row].cells, strict=True)
    )


def _is_of_another(told: Value, grid: Grid, grids: Sequence[Grid]) -> bool:
    """Whether a date stands under another key of the same source."""
    return any(
        same(told, value)
        for each in grids
        if each.fact_id == grid.fact_id
        for row in each.rows
        for cell in row.cells
        if cell is not None
        for value in cell.values
    )
