"""Figures that follow from lines of the sources that a claim names by its words, not by repeating them (SPEC-005 §5.2).

*You can cancel until 9 June* states neither the appointment of 10 June nor the 24 hours before it; *the run took 12 minutes and 34
seconds* is the field ``duration_s``. Each rule asks for a word that leads to the line, or for the only figure that can be meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, permutations

from interlock.dpe.grounding.placing.near import Near, converts, values_of
from interlock.dpe.grounding.placing.reaches.days import is_told, is_told_time
from interlock.dpe.grounding.placing.reaches.parts import is_multiple_told, is_part, is_share_of_two
from interlock.dpe.grounding.placing.reaches.rest import is_rest_or_sum
from interlock.dpe.grounding.placing.reaches.rows import counts_cells, counts_rows
from interlock.dpe.grounding.placing.reaches.spans import differ_by
from interlock.dpe.grounding.support import content_stems
from interlock.dpe.text.memory.remembered import LONG, remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import read
from interlock.dpe.values.keys import read_key
from interlock.dpe.values.quantities import NUMBER, Value, same
from interlock.dpe.values.reach import between_stamps, differs, in_reach
from interlock.dpe.values.reckoning.derived import DIFFERS
from interlock.dpe.values.reckoning.expressions import expressions
from interlock.dpe.values.units import TIME

_LINES = pattern(r"[.!?;]\s+|[\n{}\[\]]+|,\s*\"")
_ROWS = pattern(r"\n+|[{}]")
_FIELD = pattern(r"([\p{L}][\p{L}\d_]*)[\"']?\s*[:=]\s*(-?\d+(?:\.\d+)?)\s*(?:[,}\]\n;]|$)")
_EQUALLY = pattern(r"\b(?:equal(?:ly)?|evenly|fifty-fifty|in equal (?:parts|shares))\b", ignore_case=True)
_NAMES = pattern(r"\p{Lu}\p{Ll}+(?:, \p{Lu}\p{Ll}+)*,? and \p{Lu}\p{Ll}+")
_SLASHED = pattern(r"(\d{1,4})/(\d{1,4})")
_OPERATES = pattern(r"[×*÷+=]|\bx\b|\btimes\b")
_OF_CALENDAR = {
    365.0: (word_set("day days daily"), word_set("year years yearly annual annually")),
    52.0: (word_set("week weeks weekly"), word_set("year years yearly annual annually")),
    12.0: (word_set("month months monthly"), word_set("year years yearly annual annually")),
    7.0: (word_set("day days daily"), word_set("week weeks weekly")),
    24.0: (word_set("hour hours hourly"), word_set("day days daily")),
    60.0: (word_set("minute minutes"), word_set("hour hours hourly")),
}
_LAST = word_set("last final end ends ended until")
_WEEKLY = pattern(r"\b(?:weekly|every week|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b", ignore_case=True)
_LONGEST_SERIES = 60
_DAY = 86_400.0
_MOST_DATES, _MOST_PERIODS, _MOST_ALIKE, _FEW_STAMPS = 4, 4, 8, 3
_LEAST_SHARE, _MOST_SHARES = 2, 12
_MOST_COUNTED, _MOST_CELLS = 12, 8


def follows(value: Value, near: Near) -> bool:
    """Whether a figure follows from lines of the sources that the words of its sentence lead to."""
    told = near.told
    if told is None:
        return False
    if value.moment is not None:
        dated = value.moment.day is not None and (_is_dated(value, near) or is_told(value, near))
        return dated or is_told_time(value, near)
    return (
        _is_measured(value, told.contents)
        or _is_of_calendar(value, near)
        or _is_share(value, near)
        or _is_ratio(value, near)
        or _is_worked_out(value, near)
        or _is_scaled(value, near)
        or of_named_row(value, near)
        or _is_sum_of_rows(value, near)
        or between_stamps(value, *_stamps(near))
        or is_part(value, near)
        or is_share_of_two(value, near)
        or is_multiple_told(value, near)
        or differ_by(value, near)
        or counts_rows(value, near)
        or counts_cells(value, near)
        or is_rest_or_sum(value, near)
        or (bool(near.words & DIFFERS) and any(differs(value, each[:_MOST_ALIKE]) for each in told.keyed.values()))
    )


@remembered(bytes_a_character=30, from_length=LONG)
def _lines(content: str) -> tuple[tuple[frozenset[str], tuple[Value, ...]], ...]:
    """Return the words and the figures of each sentence, line or field of a source that has figures."""
    lines = ((line, values_of([line])) for line in _LINES.split(content) if line and any(map(str.isdigit, line)))
    return tuple((content_stems(line), tuple(values)) for line, values in lines if values)


@remembered(bytes_a_character=30, from_length=LONG)
def _rows(content: str) -> tuple[tuple[frozenset[str], tuple[Value, ...]], ...]:
    """Return the words and the figures of each row of a table and each object of a list."""
    return tuple((content_stems(row), tuple(read(row).values)) for row in _with_figures(content))


def _with_figures(content: str) -> list[str]:
    return [row for row in _ROWS.split(content) if row and any(map(str.isdigit, row))]


def _is_dated(value: Value, near: Near) -> bool:
    """Whether a date is a period away from a date, both named by the claim or standing in lines that share a word with it.

    Where the sources have a single date, every period of theirs is counted from it.
    """
    stems = content_stems(near.text)
    lines = [line for content in (near.told.contents if near.told else ()) for line in _lines(content)]
    about = [each for words, values in lines if words & stems for each in values]
    periods = [each for each in [*near.own, *about] if each.unit == TIME and each.amount and each.amount >= _DAY]
    every = [each for _, values in lines for each in values if _is_day(each)]
    dates = [each for each in [*near.own, *about] if _is_day(each)] or every
    if len({each.moment for each in every}) == 1:
        dates = [*dates, *every]
    own = [each for each in _distinct(dates) if each.text != value.text][:_MOST_DATES]
    if near.words & _LAST and _WEEKLY.search(" ".join([near.text, *near.told.contents] if near.told else [])):
        counts = {
            each.amount for each in near.own if not each.unit and each.amount and 1 < each.amount <= _LONGEST_SERIES
        }
        weeks = [each for count in sorted(counts) for each in read(f"{7 * (int(count) - 1)} days").values]
        if in_reach(value, weeks[:_MOST_PERIODS], own):
            return True  # eight Tuesdays from 5 May end on 23 June
    return in_reach(value, _distinct(periods)[:_MOST_PERIODS], own)


def _is_day(value: Value) -> bool:
    return value.moment is not None and value.moment.day is not None


def _distinct(values: Sequence[Value]) -> list[Value]:
    return list({(value.amount, value.unit, value.moment): value for value in reversed(values)}.values())[::-1]


def _is_measured(value: Value, contents: Sequence[str]) -> bool:
    """Whether a source states the figure in a field whose key has its unit: ``duration_s: 754``, ``ssd_gb: 1000``."""
    return bool(value.unit) and any(
        same(value, each) or converts(value, each) for content in contents for each in _measured(content)
    )


@remembered(bytes_a_character=10, from_length=LONG)
def _measured(content: str) -> tuple[Value, ...]:
    written = ((read_key(key), number) for key, number in _FIELD.findall(content))
    grouped = ((key, f"{int(n):,}" if n.isdigit() else n) for key, n in written if key.after)  # 2000 GB is no year
    return tuple(each for key, number in grouped for each in read(f"{number}{key.after}").values)


def _is_of_calendar(value: Value, near: Near) -> bool:
    """Whether a bare factor is what a year has of weeks, or a day of hours, where both are spoken of: *52 × 6*."""
    words = near.words | (near.told.words if near.told else frozenset())
    one, whole = _OF_CALENDAR.get(value.amount or 0.0, (frozenset(), frozenset()))
    bare = value.kind == NUMBER and not value.unit
    return bare and bool(words & one) and bool(words & whole) and _OPERATES.search(near.text) is not None


def _is_share(value: Value, near: Near) -> bool:
    """Whether a fraction is what each of so many named ones gets of what a source divides equally among them."""
    if not value.fraction or not value.amount or near.told is None:
        return False
    parts = round(1 / value.amount)
    listed = [1 + found.count(",") + 1 - found.count(", and") for found in _NAMES.findall(near.text)]
    even = any(_EQUALLY.search(content) is not None for content in near.told.contents)
    return even and _LEAST_SHARE <= parts <= _MOST_SHARES and abs(parts * value.amount - 1) < 1e-6 and parts in listed


def _is_ratio(value: Value, near: Near) -> bool:
    """Whether a fraction that is reckoned with is one of two stated numbers: *28 × 3/5*."""
    found = _SLASHED.fullmatch(value.text)
    if found is None or near.told is None or _OPERATES.search(near.text) is None:
        return False
    stated = [*near.told.question, *near.asked, *(each for _, values, _ in near.told.facts for each in values)]
    amounts = {(each.amount or 0.0) / each.factor for each in stated}
    return {float(found[1]), float(found[2])} <= amounts


def _stamps(near: Near) -> tuple[list[Value], list[Value]]:
    """Return the days with a time of day that the claim names, and all that the sources state."""
    stated = list(_stamped([each for _, values, _ in (near.told.facts if near.told else ()) for each in values]))
    clocks = {each.moment.minute for each in near.own if each.moment is not None}
    named = [each for each in stated if each.moment is not None and each.moment.minute in clocks]
    return (stated if len(stated) <= _FEW_STAMPS else named), stated


def _stamped(values: Sequence[Value]) -> Iterator[Value]:
    """Yield the moments that state a day and a time, together or next to each other: 7 April at 18:20."""
    for value in values:
        if _is_day(value) and value.moment is not None and value.moment.minute is not None:
            yield value
    for one, other in pairwise(values):
        if one.moment is None or other.moment is None or not 0 <= other.first - one.last <= 1:
            continue
        if _is_day(one) and one.moment.minute is None and other.moment.day is None and other.moment.minute is not None:
            yield replace(one, moment=replace(one.moment, minute=other.moment.minute))


def _is_worked_out(value: Value, near: Near) -> bool:
    """Whether the sentence writes out how a figure is made, *Eight guests (60 − 43 − 9)*, of figures that something states."""
    if not value.amount or value.moment is not None or near.told is None:
        return False
    made = [each for each in expressions(near.text) if _rounds_to(each.result, value)]
    if not made:
        return False
    stated = [*near.told.question, *near.asked, *near.beside, *near.results, *_figures(near)]
    amounts = {abs(each.amount or 0.0) / each.factor for each in stated}
    small = {float(each) for each in range(2, _MOST_COUNTED + 1)}
    return any(set(each.operands) <= amounts | small and not set(each.operands) <= small for each in made)


def _figures(near: Near) -> list[Value]:
    return [each for _, values, _ in (near.told.facts if near.told else ()) for each in values]


def _rounds_to(result: float, value: Value) -> bool:
    stated, step = abs(value.amount or 0.0) / value.factor, value.step / value.factor
    return abs(abs(result) - stated) <= step / 2 * (2.0 if value.approximate else 1.0) * (1 + 1e-9) + 1e-9


def _is_scaled(value: Value, near: Near) -> bool:
    """Whether an answer scales what a source lists by a factor that it tells, *multiply everything by 1.5*, and this is one of the results."""
    if not value.unit or not value.amount or not near.factors:
        return False
    alike = [each.amount for each in _figures(near) if each.unit == value.unit and each.amount]
    return any(
        abs(amount * factor - value.amount) <= value.step / 2 + 1e-9 for amount in alike for factor in near.factors
    )


def of_named_row(value: Value, near: Near) -> bool:
    """Whether a figure is the sum of the cells of a row that the claim names, or one of two cells by the other."""
    if not value.amount or value.moment is not None or near.told is None or value.words:
        return False
    stems = content_stems(near.claim)
    for content in near.told.contents:
        if len(_with_figures(content)) < 2:
            continue
        rows = [(words, [each for each in values if each.amount]) for words, values in _rows(content)]
        rows = [(words, values) for words, values in rows if 1 < len(values) <= _MOST_CELLS]
        common = frozenset.intersection(*(words for words, _ in rows)) if len(rows) > 1 else None
        if common is None:
            continue
        for words, values in rows:
            if stems & (words - common) and any(_rounds_to(each, value) for each in _of_cells(values)):
                return True
    return False


def _of_cells(values: Sequence[Value]) -> Iterator[float]:
    amounts = [(each.amount or 0.0) / each.factor for each in values if not each.vague]
    yield sum(amounts)
    yield from (one / other for one, other in permutations(amounts, 2) if one > other)


def _is_sum_of_rows(value: Value, near: Near) -> bool:
    """Whether a figure is the sum of the rows of the answer that have a word of the claim: *Support worked 37.5 hours in total*."""
    if not value.amount or value.moment is not None:
        return False
    for stem in content_stems(near.claim):
        amounts = [
            values[-1].amount / values[-1].factor for words, values in near.rows if stem in words and values[-1].amount
        ]
        if 1 < len(amounts) < len(near.rows) and _rounds_to(sum(amounts), value):
            return True
    return False
