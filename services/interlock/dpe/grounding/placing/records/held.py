"""Rows held against their cells: what a segment says of a field of some rows, of their values in words, and of their lists (SPEC-005 §5.3).

A finding is of one of two sides the other one, a value where the record has none, a value or a member that another row has. Where
another text of the sources speaks of that row and field, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interlock.dpe.comparison.cues import ENTITY_SUBSTITUTED, NEGATION_FLIP, NUMBER_CHANGED
from interlock.dpe.document import Distortion
from interlock.dpe.grounding.placing.records.conditions import sides
from interlock.dpe.grounding.placing.records.fields import of_condition, spoken_of
from interlock.dpe.grounding.placing.records.grids import Grid, GridCell, GridColumn
from interlock.dpe.grounding.placing.records.members import strangers
from interlock.dpe.grounding.placing.records.mentions import Mention
from interlock.dpe.grounding.placing.records.segments import RecordSegment, count_of
from interlock.dpe.grounding.placing.records.words import content, named, says, stems_in
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import same

EXISTS = word_set(
    "offers offer offered includes include comes scheduled recorded entered listed given noted set configured attached assigned registered specified named provided defined stored gives offers offer includes"
    " shows lists names linked logged documented filed has have exists there"
)
_EMPTY = word_set(
    "empty blank null unknown undefined missing unset unspecified unassigned vacant tba tbd pending lacks lacking unlimited field key"
    " nothing awaiting awaited open waiting"
)
_MOST_STRANGE = 2
_LEAST_ROWS = 2


@dataclass(frozen=True)
class HeldValue:
    """The grids of the sources, and the stems of what else the sources say, each with the id of its fact."""

    grids: Sequence[Grid]
    texts: Sequence[tuple[str, frozenset[str]]]

    def held(
        self, grid: Grid, place: int, segment: RecordSegment, rows: Sequence[Mention], *, holds: bool, rest: int
    ) -> Iterator[Distortion | str]:
        column = grid.columns[place]
        yield from _counted(grid, place, segment, rows, holds=holds) if rest <= _MOST_STRANGE else ()
        for each in rows:
            cell = grid.rows[each.row].cells[place]
            if cell is None:
                continue
            if (cell.absent or _is_nought(cell)) and not holds:
                yield text_of(grid, each.row)
            elif self._told_elsewhere(grid, each.row, place, segment) and not _of_sibling(
                grid, each.row, place, segment
            ):
                continue
            elif cell.absent:
                if _asserts(segment, grid, place):
                    yield Distortion(
                        NEGATION_FLIP,
                        "none",
                        written(segment),
                        grid.fact_id,
                        slot=_slot(grid, each.row, place),
                    )
            elif not holds and _is_counted(cell) and _denies_key(segment, column):
                yield Distortion(
                    NUMBER_CHANGED,
                    cell.written,
                    written(segment),
                    grid.fact_id,
                    slot=_slot(grid, each.row, place),
                )
            elif cell.positive is not None and rest <= _MOST_STRANGE and (_is_plain(cell) or sides(segment.words)):
                if cell.positive == holds:
                    yield text_of(grid, each.row)
                else:
                    yield Distortion(
                        NEGATION_FLIP, cell.written, written(segment), grid.fact_id, slot=_slot(grid, each.row, place)
                    )  # fmt: skip

    def _told_elsewhere(self, grid: Grid, row: int, place: int, segment: RecordSegment) -> bool:
        """Whether a text of the sources speaks of a field of a row, so that it may say otherwise than the record."""
        labels, column, side = grid.rows[row].labels, grid.columns[place], of_condition(grid, place)
        several = len(grid.rows) > 1
        for fact_id, text in self.texts:
            if fact_id == grid.fact_id:
                continue
            if several and not any(named(text, label.stems) for label in labels):
                continue
            if named(text, column.stems):
                return True
            if not column.stems and side is not None and several:
                spoken = {stem for token in segment.tokens if token.counts for stem in (token.stem,)}
                if text & spoken - {stem for label in labels for stem in label.stems}:
                    return True
        return False

    def members(self, grid: Grid, segment: RecordSegment, row: int) -> Iterator[Distortion]:
        """Yield what a segment counts among the members of a list of a row, and that is none of them."""
        for column, cell in zip(grid.columns, grid.rows[row].cells, strict=True):
            if cell is None or len(cell.items) < _LEAST_ROWS:
                continue
            keys = frozenset(content(column.noun)) | grid.section
            for each in strangers(segment.tokens, cell.items):
                if self._is_foreign(each, grid, cell, keys, stems_in(segment.tokens)):
                    yield Distortion(ENTITY_SUBSTITUTED, cell.written, each, grid.fact_id, slot=column.noun)

    def _is_foreign(self, name: str, grid: Grid, cell: GridCell, keys: frozenset[str], stems: frozenset[str]) -> bool:
        """Whether it is sure enough that a stranger is none of a list: its key is named, all members are told, or it is of their kind."""
        own = frozenset(content(name))
        known = [text for fact_id, text in self.texts if fact_id != grid.fact_id and own <= text]
        all_told = all(named(stems, content(item)) for item in cell.items)
        if not spoken_of(stems, keys) and (known or not (all_told or self._stands(own))):
            return False
        return not any(spoken_of(text, keys) or spoken_of(text, cell.stems) for text in known)

    def _stands(self, own: frozenset[str]) -> bool:
        """Whether words stand in a cell of the records, so that they may be one of a kind with others."""
        return any(
            cell is not None and own <= cell.stems for grid in self.grids for row in grid.rows for cell in row.cells
        )

    def only_there(self, heard: frozenset[str], grid: Grid, place: int) -> bool:
        """Whether words are those of one field alone, in all that the sources say."""
        others = [
            cell.stems
            for each in self.grids
            for row in each.rows
            for n, cell in enumerate(row.cells)
            if cell is not None and (each.fact_id, each.columns[n].noun) != (grid.fact_id, grid.columns[place].noun)
            and not (each.turned and each.fact_id == grid.fact_id)
        ]  # fmt: skip
        return not any(heard & each for each in (*others, *(text for name, text in self.texts if name != grid.fact_id)))


def _counted(
    grid: Grid, place: int, segment: RecordSegment, rows: Sequence[Mention], *, holds: bool
) -> Iterator[Distortion | str]:
    """Yield a count of the rows that have a field, *two of the three stops*, that is another one, or the records where it is right."""
    cells = [row.cells[place] for row in grid.rows]
    if any(cell is None or cell.positive is None for cell in cells):
        return
    right = sum(cell is not None and cell.positive == holds for cell in cells)
    of_kind = any(says(token.stem, each) for token in segment.tokens for each in grid.kinds)
    for count, whole, _ in count_of(segment.words):
        if whole == len(cells) and (rows or of_kind or len(cells) > _LEAST_ROWS):
            if count == right:
                yield " ".join(grid.texts)
            else:
                yield Distortion(
                    NUMBER_CHANGED, str(right), written(segment), grid.fact_id, slot=grid.columns[place].noun
                )


def _asserts(segment: RecordSegment, grid: Grid, place: int) -> bool:
    """Whether a segment gives a value to a key that has none."""
    words = set(segment.words)
    if words & _EMPTY or not (words & EXISTS or sides(segment.words)):
        return False
    return bool(grid.columns[place].stems) or grid.turned


def is_placed(grid: Grid, place: int, segment: RecordSegment, apart: frozenset[int]) -> bool:
    """Whether it is clear what a key is of that names a state alone, *enabled*: its row is named, or its section."""
    if grid.columns[place].stems or apart or len(grid.rows) > 1:
        return True
    return named(stems_in(segment.tokens), grid.section)


def _of_sibling(grid: Grid, row: int, place: int, segment: RecordSegment) -> bool:
    """Whether a segment states a figure or a date that another row has under a key, where its own row has none."""
    own = grid.rows[row].cells[place]
    others = [each.cells[place] for n, each in enumerate(grid.rows) if n != row]
    stated = read(written(segment)).values
    return own is not None and own.absent and any(
        same(value, theirs) for cell in others if cell is not None for theirs in cell.values for value in stated
    )  # fmt: skip


def _slot(grid: Grid, row: int, place: int) -> str:
    """Return what a finding is about: the key, which is the row of an object that stands as a column."""
    return grid.rows[row].name if grid.turned and len(grid.columns) == 1 else grid.columns[place].noun


def _is_plain(cell: GridCell) -> bool:
    """Whether a field says *yes* or *no*. What is *closed* or *free* is told by words for that."""
    return cell.written.casefold() in {"yes", "no", "y", "n"}


def _is_counted(cell: GridCell) -> bool:
    return cell.positive is None and len(cell.values) == 1 and bool(cell.values[0].amount)


def _denies_key(segment: RecordSegment, column: GridColumn) -> bool:
    """Whether a segment says that there is none of a key: *no free places*."""
    size = len(column.stems)
    return any(
        token.low in {"no", "without", "zero"} and named(stems_in(segment.tokens[n + 1 : n + 1 + size]), column.stems)
        for n, token in enumerate(segment.tokens)
    )


def _is_nought(cell: GridCell) -> bool:
    """Whether a field states that there is nothing: *surcharge: 0*."""
    return len(cell.values) == 1 and cell.values[0].amount == 0


def text_of(grid: Grid, row: int) -> str:
    return grid.texts[row] if not grid.turned and row < len(grid.texts) else " ".join(grid.texts[:1])


def written(segment: RecordSegment) -> str:
    return " ".join(token.text for token in segment.tokens)
