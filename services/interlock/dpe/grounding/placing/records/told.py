"""What the sentences of an answer say of the rows of its sources' records, held against the cells (SPEC-005 §5.3).

*Two of the three stops have a shelter: A and B* names rows, a field and how many rows have it. Each row that a segment names is
held against its own cell: of two sides the other one, a value where the record has none, and the value that another row has are
findings. Where a segment hedges, says much else, or another text of the sources speaks of that row and field, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from interlock.dpe.comparison.cues import NEGATION_FLIP
from interlock.dpe.document import Distortion
from interlock.dpe.grounding.placing.records.amounts import amounts
from interlock.dpe.grounding.placing.records.conditions import denials
from interlock.dpe.grounding.placing.records.days import days_and_dates
from interlock.dpe.grounding.placing.records.fields import meant, spoken_of, strange, told
from interlock.dpe.grounding.placing.records.grids import Grid
from interlock.dpe.grounding.placing.records.held import EXISTS, HeldValue, is_placed, text_of, written
from interlock.dpe.grounding.placing.records.mentions import Mention, mentions
from interlock.dpe.grounding.placing.records.segments import RecordSegment, count_of, segments
from interlock.dpe.grounding.placing.records.worded import worded
from interlock.dpe.grounding.placing.records.words import RecordWord, says, stems_in, tokens
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.dates import MONTHS
from interlock.dpe.values.reckoning.weekdays import days_in

LIGHT = word_set(
    "date dates value values figure figures entry entries information data exception exceptions hand namely including too also currently present moment far listed list table record recorded shown entered"
    " given noted set registered attached assigned specified provided use uses used work works working run runs running go goes take takes"
    " come comes make makes remain remains stay stays exist exists find found see following respectively however contrast though"
    " want whole several total number please end use way thing things two three four five six seven eight nine ten apply applies"
)
_QUANTIFIERS = word_set("all every each")
_REFERRING = word_set("it its they their them there he his him she her here you your this")
_MOST_STRANGE = 3
_LEAST_ROWS = 2


@dataclass(frozen=True)
class RecordVerdict:
    """What the records say of a sentence: the findings, the records that bear it out, and whether they bear out all of it."""

    moved: tuple[Distortion, ...] = ()
    premises: tuple[str, ...] = ()
    whole: bool = False
    figures: frozenset[str] = frozenset()
    """The figures that are those of the rows to which it gives them."""


@dataclass
class ToldRow:
    """Holds the sentences of an answer against the records of its sources, one after the other."""

    sources: HeldValue
    asked: tuple[RecordWord, ...]
    _last: tuple[Grid, int, bool] | None = None
    _topics: dict[int, int] = field(default_factory=dict)
    _lead: bool = False
    _figures: frozenset[str] = frozenset()
    _open: dict[int, dict[int, bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, grid in enumerate(self.sources.grids):
            self._rows(number, grid, RecordSegment(self.asked))

    def of_sentence(self, text: str) -> RecordVerdict:
        """Return what the records say of the next sentence."""
        if text.rstrip().endswith("?"):
            return RecordVerdict()
        moved: list[Distortion] = []
        premises: list[str] = []
        item = self._item(text) if self._lead else None
        if item is not None:
            found = list(self.sources.held(*item[:4], holds=item[4], rest=0))
            moved += [each for each in found if isinstance(each, Distortion)]
            return RecordVerdict(tuple(moved), tuple(each for each in found if isinstance(each, str)))
        judged = [self._segment(each, moved, premises) for each in segments(text)]
        whole = bool(judged) and all(judged) and not moved
        figures, self._figures = self._figures, frozenset()
        self._lead = text.rstrip().endswith(":") and self._last is not None
        once = {(each.type, each.slot): each for each in reversed(moved)}
        return RecordVerdict(tuple(reversed(once.values())), tuple(dict.fromkeys(premises)), whole, figures)

    def _item(self, text: str) -> tuple[Grid, int, RecordSegment, list[Mention], bool] | None:
        """Return what a list item that begins with the name of a row says by the sentence above the list."""
        if self._last is None:
            return None
        (grid, place, holds), found = self._last, tokens(text)
        rows = mentions(grid, found)
        first = min(rows[0].places) if rows else len(found)
        if not rows or any(token.is_word for token in found[:first]):
            return None
        after = found[max(rows[0].places) + 1 : max(rows[0].places) + 2]
        if after and after[0].is_word:
            return None
        return grid, place, RecordSegment(found), rows[:1], holds

    def _segment(self, segment: RecordSegment, moved: list[Distortion], premises: list[str]) -> bool:
        """Hold a segment against the grid that it is about. Returns whether it agrees."""
        if segment.conditional:
            return False
        agreed = False
        for number, grid in enumerate(self.sources.grids):
            rows = self._rows(number, grid, segment)
            found = list(self._of_grid(number, grid, segment, rows))
            for each in found:
                if isinstance(each, Distortion):
                    moved.append(each)
                elif isinstance(each, frozenset):
                    self._figures |= each
                else:
                    premises.append(each)
                    agreed = True
        return agreed and not moved

    def _rows(self, number: int, grid: Grid, segment: RecordSegment) -> list[Mention]:
        found = mentions(grid, segment.tokens)
        if len(found) == 1:
            self._topics[number] = found[0].row
        elif found:
            self._topics.pop(number, None)
        return found

    def _of_grid(
        self, number: int, grid: Grid, segment: RecordSegment, rows: Sequence[Mention]
    ) -> Iterator[Distortion | str | frozenset[str]]:
        apart = frozenset(place for each in rows for place in each.places)
        counts = any(whole == len(grid.rows) for _, whole, _ in count_of(segment.words))
        if not rows and not counts:
            rows = _all_of(grid, segment) or self._topic(number, grid, segment)
            apart = frozenset(place for each in rows for place in each.places)
        columns = [] if segment.excepts else meant(grid, segment, apart)
        rest = self._strange(grid, segment, apart) if columns or apart or counts else []
        says_so: bool | None = None
        if not columns and len(rest) <= counts and (counts or apart):
            columns, says_so = self._carried(grid, segment)
        if grid.turned and not columns and apart:
            yield from self._parted(number, grid, segment, rows, rest)
        if len(columns) != 1 and grid.turned and len(grid.columns) == 1 and len(rows) >= _LEAST_ROWS:
            columns = [0] if spoken_of(stems_in(segment.tokens), grid.columns[0].stems) else columns
        if (
            len(columns) == 1
            and len(rest) <= _MOST_STRANGE
            and not segment.hedged
            and is_placed(grid, columns[0], segment, apart)
        ):
            place = columns[0]
            if says_so is None:
                says_so = told(grid, place, segment)
            if says_so is not None:
                if apart or counts:
                    self._last = (grid, place, says_so)
                judged = self.sources.held(grid, place, segment, rows, holds=says_so, rest=len(rest))
                yield from (each for each in judged if isinstance(each, Distortion) or not rest)
        yield from worded(grid, segment, rows, columns, self.sources.only_there)
        yield from amounts(grid, segment, rows, columns)
        if len(rows) == 1:
            yield from self.sources.members(grid, segment, rows[0].row)
            yield from days_and_dates(grid, segment, rows[0].row, self.sources.grids)

    def _topic(self, number: int, grid: Grid, segment: RecordSegment) -> list[Mention]:
        """Return the row that a segment without a name goes on about: the only one, or the last one named."""
        if len(grid.rows) == 1 and not grid.turned:
            return [Mention(0, frozenset())]
        topic = self._topics.get(number)
        if topic is None or grid.turned:
            return []
        goes_on = bool(_REFERRING.intersection(segment.words)) or not self._strange(grid, segment, frozenset())
        return [Mention(topic, frozenset())] if goes_on else []

    def _parted(
        self, number: int, grid: Grid, segment: RecordSegment, rows: Sequence[Mention], rest: Sequence[str]
    ) -> Iterator[Distortion | str]:
        """Yield the keys that a contrast parts otherwise than their object: *A and B are masked*, and then *C is not*.

        What they are said to be needs no word of the key, since the contrast names all keys of one object and only exchanges some.
        """
        cells = [row.cells[0] for row in grid.rows]
        if len(grid.columns) > 1 or len(cells) <= _LEAST_ROWS or any(c is None or c.positive is None for c in cells):
            return
        denied = bool(denials([token for token in segment.tokens if token.is_word]) % 2) != segment.excepts
        if len(rest) > 1 or (not rest and number not in self._open):
            self._open.pop(number, None)
            return
        if rest:
            self._open[number] = {}
        said = self._open[number]
        said |= {each.row: not denied for each in rows}
        own = {n: bool(cell and cell.positive) for n, cell in enumerate(cells)}
        if rest or said.keys() != own.keys() or sum(said.values()) != sum(own.values()):
            return
        for each in rows:
            if said[each.row] != own[each.row]:
                row, cell = grid.rows[each.row], cells[each.row]
                yield Distortion(
                    NEGATION_FLIP, cell.written if cell else "", written(segment), grid.fact_id, slot=row.name
                )
        if said == own:
            yield text_of(grid, 0)

    def _carried(self, grid: Grid, segment: RecordSegment) -> tuple[list[int], bool | None]:
        """Return the field that a segment without words of its own takes from the one before it, or from what was asked."""
        denied = bool(denials([token for token in segment.tokens if token.is_word]) % 2)
        if self._last is not None and self._last[0] is grid:
            before = self._last[2]
            return [self._last[1]], (not before if segment.excepts else not denied)
        if segment.excepts:
            return [], None
        columns = meant(grid, RecordSegment(self.asked), ())
        return (columns, not denied) if len(columns) == 1 else ([], None)

    def _strange(self, grid: Grid, segment: RecordSegment, apart: frozenset[int]) -> list[str]:
        known = {stem for token in self.asked if token.counts for stem in (token.stem,)}
        found = strange(grid, segment, apart, LIGHT | EXISTS, known)
        return [
            word for word in dict.fromkeys(found) if word not in MONTHS and not word[:1].isdigit() and not days_in(word)
        ]


def _all_of(grid: Grid, segment: RecordSegment) -> list[Mention]:
    """Return all rows, but for the excepted ones, where a segment speaks of every one: *each plan*, *all rooms but one*."""
    for place, token in enumerate(segment.tokens[:-1]):
        after = segment.tokens[place + 1]
        if after.low in {"of", "the"} and place + _LEAST_ROWS < len(segment.tokens):
            after = segment.tokens[place + _LEAST_ROWS]
        apart = {each.row for each in mentions(grid, segment.but)}
        of_kind = bool(apart) if grid.turned else any(says(after.stem, each) for each in grid.kinds)
        if token.low in _QUANTIFIERS and of_kind:
            return [Mention(n, frozenset({place})) for n in range(len(grid.rows)) if n not in apart]
    return []
