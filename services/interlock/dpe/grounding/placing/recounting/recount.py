"""Recounts: which figures of an answer follow from the rows of the answer and of the sources (SPEC-005 §5.2).

An answer that is a table or an object states results: line totals, what they come to, the end of a meeting, a timeout in another
unit. Each follows in one step from cells of its own record, of the row of the sources that it names, from a column, or from a rule
that holds for its row. What was shown to follow is a base for what follows from it: line totals first, then the sum of the goods,
then the sum to pay. A figure that no step makes stays what it was. Pure functions.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from interlock.dpe.grounding.placing.recounting import clocks, totals
from interlock.dpe.grounding.placing.recounting.grid import Figure, SheetCell, SheetRow, figures_of, words_of
from interlock.dpe.grounding.placing.recounting.instants import Instant, apart, instants_of
from interlock.dpe.grounding.placing.recounting.sheet import Sheet
from interlock.dpe.grounding.placing.recounting.steps import (
    counted_as,
    digits_of,
    is_converted,
    is_made,
    is_one_of,
    of_row,
)
from interlock.dpe.values.units import PERCENT, TIME

MOST_TARGETS = 120
MOST_CHARS = 60_000
_ROUNDS = 6
_EXACT = 3
_MOST_GROUPS = 6
_SHORT = 3


@dataclass(frozen=True)
class ToldPlace:
    """A figure or an instant of an answer where it stands."""

    row: SheetRow
    cell: SheetCell
    figure: Figure | None
    instant: Instant | None = None

    @property
    def context(self) -> frozenset[str]:
        """The words that say what it is of: its key, and the cells and objects beside it that name something."""
        if not self.cell.key:
            return self.row.words
        names = (each.words for each in self.row.cells if not each.figures)
        return self.cell.key.union(*names)


@dataclass
class _Recount:
    """One answer, and what of it is not settled yet."""

    sheet: Sheet
    places: dict[str, list[ToldPlace]]
    open: set[str] = field(default_factory=set)

    def known(self, figure: Figure) -> bool:
        """Whether a figure is stated by a source, or was shown to follow."""
        return round(abs(figure.stated), 6) not in self._unknown

    def told(self, instant: Instant) -> bool:
        """The same of a day or a time."""
        return not any(place.instant is not None and place.instant.agrees(instant) for place in self._unsettled())

    def __post_init__(self) -> None:
        self._refresh()

    def _unsettled(self) -> Iterator[ToldPlace]:
        return (place for text in self.open for place in self.places[text])

    def _refresh(self) -> None:
        figures = (place.figure for place in self._unsettled() if place.figure is not None)
        self._unknown = frozenset(round(abs(each.stated), 6) for each in figures)

    def settle(self) -> None:
        """Go over what is open until nothing more follows."""
        for _ in range(_ROUNDS):
            made = {text for text in self.open if all(self._follows(place) for place in self.places[text])}
            self.open -= made
            self._refresh()
            if not made:
                return

    def _follows(self, place: ToldPlace) -> bool:
        if place.instant is not None:
            return clocks.follows(place.instant, place.row, place.context, self.sheet, self.told)
        return place.figure is not None and self._is_counted(place.figure, place)

    def _is_counted(self, target: Figure, place: ToldPlace) -> bool:
        own = [
            each
            for cell in place.row.cells
            for each in cell.figures
            if each.stated != target.stated and self.known(each)
        ]
        groups = self.sheet.nearest(place.context, place.row.about)[:_MOST_GROUPS]
        if self._is_converted(target, place, own, groups) or self._is_time(target, place, groups):
            return True
        if _is_stated_otherwise(target, place, groups):
            return False
        return self._of_a_row(target, own, groups, place) or self._is_total(target, place)

    def _is_converted(
        self, target: Figure, place: ToldPlace, own: Sequence[Figure], groups: Sequence[Sequence[SheetRow]]
    ) -> bool:
        near = [cell for group in groups if len(group) == 1 for row in group for cell in row.cells]
        rows = (row for table in self.sheet.tables for row in table.rows)
        keyed = [cell for row in rows for cell in row.cells if cell.key & place.cell.key]
        # The row that is named has the field: another row's is not meant.
        chosen = [cell for cell in near if cell.key & place.cell.key] or [*near, *keyed]
        return is_converted(target, [*own, *(each for cell in chosen for each in cell.figures)])

    def _is_time(self, target: Figure, place: ToldPlace, groups: Sequence[Sequence[SheetRow]]) -> bool:
        """Whether a duration lies between two instants of its row, or of a row of the sources that it names."""
        if target.unit != TIME:
            return False
        rows = [[place.row], *([row] for group in groups for row in group), *groups]
        for group in rows:
            instants = [each for row in group for cell in row.cells for each in cell.instants]
            if is_one_of(target, (each / target.factor for each in apart(instants, instants) if each)):
                return True
        return False

    def _of_a_row(
        self, target: Figure, own: Sequence[Figure], groups: Sequence[Sequence[SheetRow]], place: ToldPlace
    ) -> bool:
        rows = [[], *([row] for group in groups for row in group)]
        if not place.cell.key:  # what a sentence makes of sentences is for the rules of prose
            rows = [group for group in rows if any(cell.key for row in group for cell in row.cells)]
        for group in rows:
            cells = [each for row in group for cell in row.cells for each in cell.figures]
            rules = self.sheet.rules_for(group, place.context) if group else []
            if not target.stated:
                if any(not each.stated for each in cells) or _has_twins(cells):
                    return True
                continue
            if is_made(target, of_row(target, [*cells, *own], rules)):
                return True
        return False

    def _is_total(self, target: Figure, place: ToldPlace) -> bool:
        words = place.context | place.row.about
        if not (words & totals.TOTALS or digits_of(target) >= _EXACT or place.cell.key == frozenset()):
            return False
        beside = list(totals.beside(target, place.cell, place.row, self.known))
        sums: list[float] = []
        for name in dict.fromkeys(row.table for row in self.sheet.answer):
            rows = [row for row in self.sheet.answer if row.table == name and row is not place.row]
            same = place.row.table == name
            keys = (
                {place.cell.key}
                if same and place.cell.key
                else {cell.key for row in rows for cell in row.cells if cell.figures}
            )
            for key in keys - {frozenset()}:
                cell = SheetCell(key, "", frozenset(), (), ())
                sums += totals.of_column(target, cell, rows, words | place.row.words, self.known)
        sums += self._of_nested(place)
        if is_one_of(target, [*beside, *sums]):
            return True
        made = [
            each
            for table in self.sheet.tables
            for each in totals.of_rows(target, table, words | place.row.words, lambda _: True)
        ]
        return is_made(target, made) or is_made(target, self._with_more(target, place, [*sums, *made]))

    def _with_more(self, target: Figure, place: ToldPlace, sums: Sequence[float]) -> Iterator[float]:
        """Yield sums with one more field of their object, or with a rate of the sources: with shipping, less a discount, with tax."""
        own = [each for cell in place.row.cells for each in cell.figures if each.stated != target.stated]
        more = [counted_as(each, target) for each in own if self.known(each) and each.unit != PERCENT]
        rates = [each.stated / 100 for each in self.sheet.rates]
        for one in sums:
            yield from (one + sign * each for each in more for sign in (1, -1))
            yield from (one * scale for each in rates for scale in (each, 1 + each, 1 - each))

    def _of_nested(self, place: ToldPlace) -> Iterator[float]:
        """Yield the sum of the totals of the objects inside the object of a figure."""
        found: dict[frozenset[str], list[Figure]] = {}
        for row in self.sheet.answer:
            for cell in row.cells:
                inside = row is not place.row and row.about > place.row.about
                if inside and cell.key & totals.TOTALS and len(cell.figures) == 1:
                    found.setdefault(cell.key, []).append(cell.figures[0])
        yield from (
            sum(abs(each.stated) for each in figures)
            for figures in found.values()
            if len(figures) > 1 and all(map(self.known, figures))
        )


def _is_stated_otherwise(target: Figure, place: ToldPlace, groups: Sequence[Sequence[SheetRow]]) -> bool:
    """Whether the row that is named has another figure under the very key: only that one counts, not what others make."""
    named = [row for group in groups if len(group) == 1 for row in group]
    figures = (each for row in named for cell in row.cells if cell.key == place.cell.key for each in cell.figures)
    return bool(place.cell.key) and any(each.unit in {"", target.unit} for each in figures)


def _has_twins(cells: Sequence[Figure]) -> bool:
    """Whether two figures of a row are the same, so that nothing lies between them."""
    kinds = [(each.stated, each.unit) for each in cells if each.stated]
    return len(set(kinds)) < len(kinds)


@dataclass(frozen=True)
class Recounted:
    """Those of the figures without a source that follow from rows, and the totals of objects and tables that do not."""

    made: frozenset[str] = frozenset()
    firm: frozenset[str] = frozenset()
    """What stands under a key of a total is the sum of something: that free operations reach it says nothing."""


def recounted(untold: Collection[str], answers: Sequence[str], sources: Sequence[str]) -> Recounted:
    """Return which of the *untold* figures of an answer follow from rows of it and of the sources."""
    figured = [text for text in untold if any(map(str.isdigit, text))][:MOST_TARGETS]
    if not figured or not sources:
        return Recounted()
    sheet = Sheet.of(answers, _first(sources))
    places = {text: found for text in figured if (found := list(_places(text, sheet)))}
    if not places:
        return Recounted()
    work = _Recount(sheet, places, set(places))
    work.settle()
    made = (set(places) - work.open) | {
        text for text in work.open if all(_is_numbered(each, sheet.text) for each in places[text])
    }
    units = (text for text in untold if text not in places and len(text) <= _SHORT and text.isalpha())
    measured = {unit for unit in units if any(_measured(unit, text, answers) for text in made)}
    firm = {text for text in work.open - made if any(_is_keyed_total(place) for place in places[text])}
    return Recounted(frozenset(made | measured), frozenset(firm))


def _first(sources: Sequence[str]) -> list[str]:
    """Return the sources up to so many characters: of what stands behind them nothing is made, and a figure without a source stays one."""
    ends = accumulate(map(len, sources))
    return [source for source, end in zip(sources, ends, strict=True) if end <= MOST_CHARS]


def _is_keyed_total(place: ToldPlace) -> bool:
    return place.figure is not None and bool(place.cell.key & totals.TOTALS)


def _is_numbered(place: ToldPlace, text: str) -> bool:
    """Whether a source has a key and its number in one word: ``"line": 2`` for line2."""
    if place.figure is None or len(place.cell.key) != 1:
        return False
    (word,) = place.cell.key
    return re.search(rf"\b{re.escape(word)}[ _-]?0*{place.figure.stated:g}\b", text, re.IGNORECASE) is not None


def _measured(unit: str, figure: str, answers: Sequence[str]) -> bool:
    """Whether a short word is the unit of a figure: the K of 233.15 K."""
    found = [re.search(rf"{re.escape(figure)}\s?{re.escape(unit)}\b", text) for text in answers]
    return any(found) and all(len(re.findall(rf"\b{re.escape(unit)}\b", text)) <= 1 for text in answers)


def _places(text: str, sheet: Sheet) -> Iterator[ToldPlace]:
    """Yield where a figure stands in an answer. A line of CSV that was read as one is all of its figures that no source states."""
    parts = next(csv.reader([text]), []) if "," in text else []
    if len(parts) > 1 and re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", text) is None:
        yield from _of_line(parts, sheet)
        return
    # Alone, 2100 reads as a year.
    figures = (Figure(float(text), 1.0, text=text),) if text.isdecimal() else figures_of(text)
    instants = instants_of(text)
    for row in sheet.answer:
        for cell in row.cells:
            for figure in cell.figures:
                if any(_is(figure, each) for each in figures):
                    yield ToldPlace(row, cell, figure)
            for instant in cell.instants:
                if not figures and any(instant.text == each.text for each in instants):
                    yield ToldPlace(row, cell, None, instant)


def _of_line(parts: Sequence[str], sheet: Sheet) -> Iterator[ToldPlace]:
    words = words_of(sheet.text)
    for row in sheet.answer:
        line = ",".join(cell.text for cell in row.cells)
        cells = [part.strip() for part in parts]
        own = [cell for cell in row.cells if any(_holds(cell, part) for part in cells)]
        if len(own) < len(cells) or not cells or not line:
            continue
        if not all(words_of(part) <= words for part in cells if not figures_of(part)):
            return
        for cell in own:
            for figure in cell.figures:
                if round(abs(figure.stated), 6) not in sheet.stated:
                    yield ToldPlace(row, cell, figure)


def _holds(cell: SheetCell, part: str) -> bool:
    return cell.text == part or any(_is(one, other) for one in cell.figures for other in figures_of(part))


def _is(one: Figure, other: Figure) -> bool:
    return abs(one.stated) == abs(other.stated) and (one.unit == other.unit or not one.unit or not other.unit)
