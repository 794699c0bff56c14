"""Fields that a stretch of a sentence is about, and what it says of them: that they hold, that they do not, or nothing sure (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from interlock.dpe.grounding.placing.records.conditions import OFF, Side, denials, sides, tells_plain
from interlock.dpe.grounding.placing.records.grids import Grid
from interlock.dpe.grounding.placing.records.segments import RecordSegment
from interlock.dpe.grounding.placing.records.words import beginnings, begins, named, says, stems_in
from interlock.dpe.text.wordlists import word_set

MOST_MEANT = 1
_LEAST_SIDED = 2
_LIMITING = word_set("only exclusively solely")


def of_condition(grid: Grid, place: int) -> Side | None:
    """Return the condition of a column, of its key or of all of its cells: *approved*, *rejected*."""
    column = grid.columns[place]
    if column.side is not None:
        return column.side
    cells = [row.cells[place] for row in grid.rows]
    conditions = {cell.condition for cell in cells if cell is not None and not cell.absent}
    if len(conditions) != 1 or None in conditions or len(cells) < _LEAST_SIDED:
        return None
    return Side(next(iter(conditions)) or 0, positive=True)


def meant(grid: Grid, segment: RecordSegment, apart: Collection[int]) -> list[int]:
    """Return the columns whose key a segment names, of several those with the most words. *apart* are the places of names of rows."""
    own = [token for n, token in enumerate(segment.tokens) if n not in apart]
    stems = stems_in(own)
    conditions = {each.condition for each in sides(segment.words)}
    first = beginnings(own)
    found: dict[int, int] = {}
    for place, column in enumerate(grid.columns):
        if column.stems and column.stems <= grid.kinds and len(grid.columns) > 1:
            continue  # the word for a row: *two of the stops*
        if not conditions and not (column.stems and begins(column.stems, first)):
            continue
        side = of_condition(grid, place)
        by_side = side is not None and side.condition in conditions
        if column.stems and named(stems, column.stems):
            found[place] = 2 * len(column.stems) + by_side
        elif by_side and (not column.stems or column.side is None):
            found[place] = 1
    most = max(found.values(), default=0)
    return [place for place, weight in found.items() if weight == most]


def told(grid: Grid, place: int, segment: RecordSegment) -> bool | None:
    """Return whether a segment says that a field holds, or ``None`` where that is not sure."""
    column, side = grid.columns[place], of_condition(grid, place)
    words = [token for token in segment.tokens if token.is_word]
    if denials(words) > 1 or (len(grid.rows) == 1 and _LIMITING.intersection(segment.words)):
        return None
    denied = bool(denials(words))
    of_key = {n for n, token in enumerate(words) if any(says(token.stem, each) for each in column.stems)}
    spoken = [each for each in sides(segment.words) if not each.places <= of_key]
    if "off" in segment.words and not any(each.condition == OFF for each in spoken):
        return None
    if side is not None:
        own = [each for each in spoken if each.condition == side.condition]
        others = [each for each in spoken if each.condition != side.condition]
        if own and not (column.stems and others):  # *public access is off*: the word is a part of the name
            return ((own[0].positive == side.positive) != denied) if len({o.positive for o in own}) == 1 else None
        spoken = others
        if not spoken and not column.stems:
            return None
    if len({(each.condition, each.positive) for each in spoken}) > MOST_MEANT:
        return None
    positive = tells_plain(spoken[0], segment.words) if spoken else True
    return None if positive is None else positive != denied


def strange(
    grid: Grid, segment: RecordSegment, apart: Collection[int], light: Collection[str], known: Collection[str]
) -> list[str]:
    """Return the words of a segment that neither name a row or a key nor are small: what else it says."""
    columns = [stem for column in grid.columns for stem in column.stems]
    of_sides = _side_places(segment)
    return [
        token.low
        for n, token in enumerate(segment.tokens)
        if token.counts and n not in apart and n not in of_sides and token.low not in light and token.stem not in known
        and not any(says(token.stem, each) for each in (*columns, *grid.kinds))
    ]  # fmt: skip


def _side_places(segment: RecordSegment) -> frozenset[int]:
    places = [n for n, token in enumerate(segment.tokens) if token.is_word]
    return frozenset(places[n] for each in sides(segment.words) for n in each.places)


def spoken_of(stems: Sequence[str] | frozenset[str], keys: Collection[str]) -> bool:
    """Whether words name any word of a key."""
    return any(says(stem, each) for stem in stems for each in keys)
