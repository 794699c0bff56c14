"""Amounts: figures that a segment gives to a field or a row, and that another field or row has (SPEC-005 §5.3).

*20 shared users* where its row has 6; *off-peak every 20 minutes* where that is the peak; *7% on the low dose, 3% on the high dose*
with the two exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from interlock.dpe.comparison.cues import NUMBER_CHANGED
from interlock.dpe.document import Distortion
from interlock.dpe.grounding.placing.records.grids import Grid, GridCell
from interlock.dpe.grounding.placing.records.mentions import Mention
from interlock.dpe.grounding.placing.records.segments import RecordSegment, count_of
from interlock.dpe.grounding.placing.records.words import RecordWord, named, stems_in, tokens
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.numerals import UNITS

_COMPARED = word_set(
    "more less fewer short spare over under up least most about nearly almost around roughly than another additional extra each per between"
    " difference total together sum average increase decrease from until till before after within rather not"
)
_LEAST_PAIRS = 2


def amounts(
    grid: Grid, segment: RecordSegment, rows: Sequence[Mention], columns: Sequence[int]
) -> Iterator[Distortion | str | frozenset[str]]:
    """Yield the figures of a segment that are another field's or another row's; of rows that all have theirs, the text and figures."""
    if not any(map(_figure, segment.tokens)) or set(segment.words) & _COMPARED or count_of(segment.words):
        return
    if len(rows) == 1:
        yield from _before_key(grid, segment, rows[0])
        yield from _contrasted(grid, segment, rows[0])
    elif len(columns) == 1 and len(rows) >= _LEAST_PAIRS:
        yield from _paired(grid, segment, rows, columns[0])


def _figure(token: RecordWord) -> str:
    """Return the figure that a token is, or an empty text."""
    if token.low[:1].isdigit():
        return token.low.replace(",", "")
    return str(UNITS[token.low]) if token.low in UNITS and token.low != "one" else ""


def _figures(cell: GridCell | None) -> frozenset[str]:
    if cell is None or cell.absent:
        return frozenset()
    return frozenset(figure for token in tokens(cell.written) if (figure := _figure(token)))


def _before_key(grid: Grid, segment: RecordSegment, row: Mention) -> Iterator[Distortion]:
    """Yield the count before the words of a key, *20 shared users*, that its row does not have and another one has."""
    for place, column in enumerate(grid.columns):
        own = grid.rows[row.row].cells[place]
        others = [each.cells[place] for n, each in enumerate(grid.rows) if n != row.row]
        size = len(column.stems)
        for at, token in enumerate(segment.tokens):
            figure = _figure(token)
            after = segment.tokens[at + 1 : at + 1 + size]
            if not figure or not size or not named(stems_in(after), column.stems) or not _figures(own):
                continue
            if figure not in _figures(own) and any(figure in _figures(each) for each in others):
                yield _changed(grid, row.row, place, token.text)


def _contrasted(grid: Grid, segment: RecordSegment, row: Mention) -> Iterator[Distortion]:
    """Yield the figure of a field whose key differs by one word, *peak* and *offpeak*, where a segment has the other word."""
    stems = stems_in([token for n, token in enumerate(segment.tokens) if n not in row.places])
    cells = grid.rows[row.row].cells
    told = [figure for token in segment.tokens if (figure := _figure(token))]
    if len(told) != 1:
        return
    for one, mine in enumerate(grid.columns):
        for other, theirs in enumerate(grid.columns):
            apart, beside = mine.stems - theirs.stems, theirs.stems - mine.stems
            if len(apart) != 1 or len(beside) != 1 or not mine.stems & theirs.stems:
                continue
            if not _alone(stems, apart, beside) or _alone(stems, beside, apart):
                continue
            wrong = _figures(cells[other]) - _figures(cells[one])
            if told[0] in wrong and len(_figures(cells[one])) == 1:
                yield _changed(grid, row.row, one, told[0])


def _alone(stems: frozenset[str], own: frozenset[str], other: frozenset[str]) -> bool:
    """Whether a segment has the word of one key by itself: *peak*, but not within *off-peak*."""
    word, longer = next(iter(own)), next(iter(other))
    within = longer != word and longer.endswith(word) and longer in stems
    return named(stems, own) and not within


def _paired(
    grid: Grid, segment: RecordSegment, rows: Sequence[Mention], place: int
) -> Iterator[Distortion | str | frozenset[str]]:
    """Yield the figure of each row where rows and figures take turns, and the figure is another's of these rows."""
    cells = {each.row: _figures(grid.rows[each.row].cells[place]) for each in rows}
    known = frozenset().union(*cells.values())
    apart = {n for each in rows for n in each.places}
    told = [
        (n, figure)
        for n, t in enumerate(segment.tokens)
        if n not in apart and (figure := "1" if t.low == "one" else _figure(t))
    ]
    marks = [(min(each.places), each.row) for each in rows]
    if len(told) != len(marks) or any(figure not in known for _, figure in told) or not all(cells.values()):
        return
    first = [(a[0] < b[0]) for a, b in zip(marks, told, strict=True)]
    inside = sorted([*((n, "row") for n, _ in marks), *((n, "figure") for n, _ in told)])
    if len(set(first)) != 1 or any(a[1] == b[1] for a, b in pairwise(inside)):
        return
    wrong = [(row, at, figure) for (_, row), (at, figure) in zip(marks, told, strict=True) if figure not in cells[row]]
    for row, at, _ in wrong:
        yield _changed(grid, row, place, segment.tokens[at].text)
    if not wrong:
        yield " ".join(grid.texts)
        yield frozenset(figure for _, figure in told)


def _changed(grid: Grid, row: int, place: int, told: str) -> Distortion:
    noun, cell = grid.columns[place].noun, grid.rows[row].cells[place]
    return Distortion(NUMBER_CHANGED, cell.written if cell else "", told, grid.fact_id, slot=noun)
