"""Reordered: a claim that turns round what its source says comes before what (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from interlock.dpe.comparison.bindings.clauses import loosely
from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.relations.agreement import agrees, is_turned, share
from interlock.dpe.comparison.bindings.relations.order import Order
from interlock.dpe.comparison.bindings.stretches.pieces import Piece
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.values.moments import Moment

_MOSTLY = 0.5
_NEARLY = 0.75
_SURE = 3  # words that two events share with the parts that date them


@dataclass(frozen=True)
class _Dated:
    """What a sentence, or a part of one, tells of a day: its words, the day, its place among all and the sentence."""

    words: frozenset[str]
    moment: Moment
    text: str
    source: ReadSentence


def reordered(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the order that *claim* turns round, or ``None``."""
    for own in (each for each in claim.orders if each.first and each.second):
        told = [(each, source) for source in evidence.passages for each in source.orders if each.first and each.second]
        if any(agrees(own, each) for each, _ in told):
            continue
        for each, source in told:
            if is_turned(own, each):
                return Misbinding(NEGATION_FLIP, "order", each.word, own.word, source.text, source.fact_id)
        for listed in evidence.steps:
            first, second = (_step(bag, listed) for bag in (own.first, own.second))
            if first is not None and second is not None and first > second:
                step = listed[second]
                return Misbinding(
                    NEGATION_FLIP, "order", f"step {second + 1}: {step.text}", own.word, step.text, step.fact_id
                )
        found = _against_dates(own, evidence) if not (has_negator(claim.text) or _tells_days(claim)) else None
        if found is not None:
            return found
    return _bounded_otherwise(claim, evidence)


def _bounded_otherwise(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the event from which on *claim* says that something is so that was so up to it, or the other way round; or ``None``."""
    told = [(each, source) for source in evidence.passages for each in source.told.boundaries]
    for own in claim.told.boundaries:
        same = [
            (each, source)
            for each, source in told
            if share(own.state, each.state) >= _NEARLY
            and len(own.state & each.state) > 1
            and share(own.event, each.event) >= _MOSTLY
        ]
        if same and all(each.until is not own.until for each, _ in same):
            each, source = same[0]
            return Misbinding(NEGATION_FLIP, "order", each.word, own.word, source.text, source.fact_id)
    return None


def _against_dates(own: Order, evidence: Evidence) -> Misbinding | None:
    """Return an order that the days of its two events are against: *the toll ended before the bridge opened*, in 1988 and in 1963."""
    dated = tuple(_dated(evidence))
    first, second = _told(own.first, dated), _told(own.second, dated)
    if first is None or second is None or not _is_later(dated[first].moment, dated[second].moment, told=second < first):
        return None
    one, other = dated[first], dated[second]
    if len(own.first & one.words) + len(own.second & other.words) < _SURE:
        return None
    return Misbinding(
        NEGATION_FLIP, "order", f"{other.text} before {one.text}", own.word, other.source.text, other.source.fact_id
    )


def _dated(evidence: Evidence) -> Iterator[_Dated]:
    """Yield the parts of sentences that tell of one day each, in order; a sentence that is not cut, whole."""
    for source in evidence.passages:
        parts: tuple[Piece, ...] = next((each for each in source.pieces if all(map(_days, each))), ())
        for part in parts or ((source.whole,) if source.whole is not None else ()):
            days = _days(part)
            if len(days) == 1:
                yield _Dated(frozenset(map(loosely, part.words)), days[0], part.text, source)


def _tells_days(claim: ReadSentence) -> bool:
    """Whether a claim names a day or a year itself, which is compared as a date: *before 2027*."""
    return claim.whole is not None and bool(_days(claim.whole))


def _days(part: Piece) -> list[Moment]:
    return [value.moment for value in part.values if value.moment is not None]


def _told(half: frozenset[str], dated: tuple[_Dated, ...]) -> int | None:
    """Return which dated part tells what a half of a claim tells, more closely than any other, or ``None``."""
    ranked = sorted(((len(half & each.words), -n) for n, each in enumerate(dated)), reverse=True)
    if len(ranked) < 2 or ranked[0][0] < max(1, _MOSTLY * len(half)) or ranked[1][0] == ranked[0][0]:
        return None
    return -ranked[0][1]


def _is_later(one: Moment, other: Moment, *, told: bool) -> bool:
    """Whether a day is surely after another: by its year, or by what is told of one year after the other, as *told* says."""
    parts = [(one.years, other.years), (one.months, other.months), (_single(one.day), _single(other.day))]
    parts.append((_single(one.minute), _single(other.minute)))
    for place, (mine, its) in enumerate(parts):
        if (mine is None) is not (its is None):
            return False
        if mine is None or its is None or mine == its:
            continue
        dated_before = any(mine is not None for mine, _ in parts[:place])
        return mine[0] > its[1] and (place == 0 or dated_before or told)
    return False


def _single(part: int | None) -> tuple[int, int] | None:
    return None if part is None else (part, part)


def _step(bag: frozenset[str], listed: tuple[ReadSentence, ...]) -> int | None:
    """Return the number of the step that a half of a claim is about, from 0, or ``None`` where that is not clear."""
    ranked = sorted(((len(bag & step.told.whole), -n) for n, step in enumerate(listed)), reverse=True)
    best, place = ranked[0]
    if not best or best < _MOSTLY * len(bag) or ranked[1][0] == best:
        return None
    return -place
