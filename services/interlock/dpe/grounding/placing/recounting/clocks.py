"""Clocks: days and times that a row and a period make, and local times as UTC (SPEC-005 §5.2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from interlock.dpe.grounding.placing.recounting.grid import Figure, SheetRow, words_of
from interlock.dpe.grounding.placing.recounting.instants import DAY, Instant
from interlock.dpe.grounding.placing.recounting.sheet import Sheet
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.numerals import UNITS
from interlock.dpe.values.units import TIME

_DAYS = words_of("days nights")
_WEEKS = words_of("weeks")
_UTC = words_of("utc gmt zulu")
_OFFSET = pattern(r"(?:UTC|GMT)\s?([+\-−])\s?(\d{1,2})(?::(\d\d))?|T\d\d:\d\d(?::\d\d)?([+\-−])(\d\d):(\d\d)")
_TOLD_OFFSET = pattern(r"\b(\w+) hours? (ahead of|behind) (?:UTC|GMT)\b", ignore_case=True)
_MOST_PERIODS = 8
_MOST_BASES = 40
_NEGATIVE = frozenset({"-", "−"})


def follows(
    target: Instant, row: SheetRow, words: frozenset[str], sheet: Sheet, told: Callable[[Instant], bool]
) -> bool:
    """Whether a day or time is another one of its row, or of the row of the sources that it names, and a period away."""
    groups = sheet.nearest(words, row.about)
    if target.second is not None and (words & _UTC or re.search(r":\d\dZ", target.text)):
        every = [each for table in sheet.tables for found in table.rows for each in _instants([found])]
        near = [each for group in groups for each in _instants(group)]
        bases = [each for each in (near or every) if each.second is not None]
        if any(_is(target, each.moved(-off, each.year)) for each in bases for off in _offsets(sheet.text)):
            return True
    own = [each for each in _instants([row]) if each.text != target.text and told(each)]
    for group in [[], *([found] for rows in groups for found in rows)]:
        bases = [*own, *_instants(group)][:_MOST_BASES]
        periods = list(_periods([*group, row])) or [
            each for each in map(_period, sheet.rules_for(group, words)) if each
        ]
        if any(
            _is(target, base.moved(sign * each, target.year)) for base in bases for each in periods for sign in (1, -1)
        ):
            return True
    return False


def _is(target: Instant, made: Instant | None) -> bool:
    return made is not None and target.agrees(made)


def _instants(rows: Sequence[SheetRow]) -> list[Instant]:
    return [each for row in rows for cell in row.cells for each in cell.instants]


def _periods(rows: Sequence[SheetRow]) -> Iterator[float]:
    """Yield the periods of rows, in seconds: those with a unit of time, and counts under a key of days, nights or weeks."""
    for row in rows:
        for cell in row.cells:
            for figure in cell.figures:
                scale = DAY if cell.key & _DAYS else 7 * DAY if cell.key & _WEEKS else 0
                period = _period(figure) or (figure.stated * scale if not figure.unit else 0.0)
                if period:
                    yield period


def _period(figure: Figure) -> float:
    return figure.base if figure.unit == TIME else 0.0


def _offsets(text: str) -> Iterator[float]:
    """Yield how far the clocks of the sources are ahead of UTC, in seconds."""
    for found in _OFFSET.finditer(text):
        sign = -1 if (found[1] or found[4]) in _NEGATIVE else 1
        yield sign * (3600.0 * int(found[2] or found[5]) + 60.0 * int(found[3] or found[6] or 0))
    for found in _TOLD_OFFSET.finditer(text):
        number = int(found[1]) if found[1].isdigit() else UNITS.get(found[1].lower(), 0)
        if number:
            yield 3600.0 * number * (1 if found[2].lower() == "ahead of" else -1)
