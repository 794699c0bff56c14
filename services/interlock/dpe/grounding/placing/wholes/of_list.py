"""Totals, averages and extremes that a claim gives of a column or a list, and that are others (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from interlock.dpe.comparison.cues import NUMBER_CHANGED
from interlock.dpe.document import Distortion
from interlock.dpe.grounding.placing.misplaced import EXACT, LEAST, MOST, holds
from interlock.dpe.grounding.placing.scopes import Scope, plain, stems_of
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import ValuesRead, read
from interlock.dpe.values.frames import stem
from interlock.dpe.values.quantities import ORDINAL, Value, comparable, same

_LISTS = frozenset({",", "and", "or", "&", "/"})
_LEAST_LISTED = 3
_LEAST_ROWS = 3
_TOTALS = word_set("total totals totalled totaled sum altogether combined overall")
_MEANS = word_set("average averages averaged mean")
_OF_A_PART = word_set(
    "first last other others rest remaining without except excluding excluded both half some most only between from until since before"
    " after besides than over under above below more less least per each every increase decrease rise fall change difference share"
)
"""Words beside which a total is not that of a whole column, or not a total."""
TOTAL, AVERAGE = "total", "average"
"""Slots of what a column comes to."""


def not_of_list(
    reading: ValuesRead, values: Sequence[Value], scopes: Sequence[Scope], topic: str = ""
) -> Iterator[Distortion]:
    """Yield a value that a claim calls the least, the most, the total or the average of what is listed, and that is not.

    *topic* is what was asked and said before: a total may be that of the row that it is about.
    """
    yield from _not_of_column(reading, values, scopes, topic)
    yield from _not_extreme_of_list(reading, values, scopes)


def _not_of_column(
    reading: ValuesRead, values: Sequence[Value], scopes: Sequence[Scope], topic: str
) -> Iterator[Distortion]:
    """Yield a value that a claim calls the total or the average of a column whose header it has, and that is not."""
    words = {token.low for token in reading.tokens}
    if words & _OF_A_PART or bool(words & _TOTALS) == bool(words & _MEANS):
        return
    amounts = [value for value in values if value.amount is not None and value.kind != ORDINAL]
    columns = list(_columns(reading.text, scopes)) if len(amounts) == 1 else []
    if len(columns) != 1:
        return
    (value,), (column, fact_id) = amounts, columns[0]
    if _is_of_topic(value, scopes, fact_id, topic):
        return
    whole = sum(each.amount or 0.0 for each in column)
    made = whole if words & _TOTALS else whole / len(column)
    stated = (value.amount or 0.0) if value.unit else (value.amount or 0.0) * column[0].factor
    slack = value.step * (2.0 if value.approximate else 0.5) * (1.0 if value.unit else column[0].factor)
    if value.unit in {"", column[0].unit} and abs(stated - made) > slack + EXACT:
        slot = TOTAL if words & _TOTALS else AVERAGE
        yield Distortion(NUMBER_CHANGED, f"{made / column[0].factor:g}", value.text, fact_id, slot=slot)


def _is_of_topic(value: Value, scopes: Sequence[Scope], fact_id: str, topic: str) -> bool:
    """Whether a value is that of a row that was spoken of before: *her total is 38 hours*, after *she works nights*."""
    folded = f" {plain(topic)} "
    rows = (scope for scope in scopes if scope.fact_id == fact_id and scope.slots)
    return any(f" {mark} " in folded for row in rows if holds(value, row) for mark in row.marks)


def _columns(text: str, scopes: Sequence[Scope]) -> Iterator[tuple[list[Value], str]]:
    """Yield the columns of amounts whose header a text has, of tables of which it names no row and that have no row of totals."""
    stems = stems_of(text)
    groups: dict[frozenset[str], list[Scope]] = {}
    for scope in scopes:
        if scope.slots:
            groups.setdefault(scope.group, []).append(scope)
    for rows in groups.values():
        marks = {mark for row in rows for mark in row.marks}
        named = any(stems & stems_of(mark) for mark in marks) or marks & (_TOTALS | _MEANS)
        if len(rows) < _LEAST_ROWS or named or len({len(row.slots) for row in rows}) > 1:
            continue
        for cells in zip(*(row.slots for row in rows), strict=True):
            column = [cell.values[0] for cell in cells if len(cell.values) == 1 and cell.values[0].amount is not None]
            noun = cells[0].noun
            if (
                noun
                and noun <= stems
                and len(column) == len(rows)
                and all(comparable(column[0], each) for each in column)
            ):
                yield column, rows[0].fact_id


def _not_extreme_of_list(reading: ValuesRead, values: Sequence[Value], scopes: Sequence[Scope]) -> Iterator[Distortion]:
    """Yield a value that a claim calls the least or the most of a list, *packs of 10, 20 and 50*, and that is another of it."""
    for value, extreme, scope in _of_lists(reading, values, scopes):
        if not same(value, extreme):
            yield Distortion(NUMBER_CHANGED, extreme.text, value.text, scope.fact_id)


def is_extreme(reading: ValuesRead, value: Value, scopes: Sequence[Scope]) -> bool:
    """Whether a value is the least or the most of a list, as the claim says."""
    return any(same(value, extreme) for _, extreme, _ in _of_lists(reading, [value], scopes))


def _of_lists(
    reading: ValuesRead, values: Sequence[Value], scopes: Sequence[Scope]
) -> Iterator[tuple[Value, Value, Scope]]:
    """Yield each value of a list that a claim gives for its extreme, with that extreme."""
    words = [token.low for token in reading.tokens]
    place = next((n for n, word in enumerate(words) if word in LEAST | MOST), None)
    if place is None or words[max(0, place - 1)] in {"second", "third", "next"} or place + 1 >= len(words):
        return
    noun, pick = stem(words[place + 1]), (min if words[place] in LEAST else max)
    for scope in scopes:
        listed = [] if scope.slots or noun not in scope.stems else _listed(scope.text)
        for value in values:
            if any(same(value, each) for each in listed):
                yield value, pick(listed, key=lambda each: each.amount or 0.0), scope


def _listed(text: str) -> list[Value]:
    """Return the values of the only list of amounts in a text, or nothing."""
    reading = read(text)
    amounts = [value for value in reading.values if value.amount is not None and not value.vague and not value.label]
    together = all(
        {token.low for token in reading.tokens[one.last : other.first]} <= _LISTS and one.last < other.first
        for one, other in pairwise(amounts)
    )
    return (
        amounts
        if len(amounts) >= _LEAST_LISTED and together and all(comparable(amounts[0], v) for v in amounts)
        else []
    )
