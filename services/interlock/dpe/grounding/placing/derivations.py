"""Derivations: which values of a claim follow from those of the sources, by what its words name, imply or write out (SPEC-005 §5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from interlock.dpe.grounding.placing.scopes import Scope, Scopes
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import ValuesRead
from interlock.dpe.values.quantities import NUMBER, Value, same
from interlock.dpe.values.reckoning import apart, implied, relative
from interlock.dpe.values.reckoning.compared import compares
from interlock.dpe.values.reckoning.derived import Operand, derives, words_of
from interlock.dpe.values.reckoning.elliptic import filled
from interlock.dpe.values.reckoning.equations import equations, series_step
from interlock.dpe.values.reckoning.frequencies import frequencies
from interlock.dpe.values.reckoning.rated import rated
from interlock.dpe.values.units import ANGLE, TEMPERATURE, TIME, TIMES

MOST_BEYOND = 16
MOST_TOKENS = 45
_ROUNDS = 2
_FOR = frozenset({"for"})
_FACTORS = {
    2.0: word_set("double doubles doubled doubling twice exponential exponentially"),
    3.0: word_set("triple triples tripled tripling thrice"),
    0.5: word_set("half halve halves halved halving"),
    10.0: word_set("tenfold"),
}


def derived(
    reading: ValuesRead,
    values: Sequence[Value],
    stated: set[int],
    pool: Sequence[Scope],
    *,
    said: Sequence[Scope],
    known: Scopes,
) -> set[int]:
    """Return which values follow from others. A value that was derived may be an operand of the next.

    A value that is stated somewhere may follow as well: the instalment that happens to equal the deposit.
    """
    words = words_of(reading.tokens)
    own = {n: Operand(values[n], frozenset(), -1) for n in stated}
    shown = [operand for scope in pool for operand in scope.operands]
    used = [each for each in shown if any(same(each.value, values[n]) for n in stated)]
    asked = [operand for scope in said for operand in scope.operands]
    operands = list(dict.fromkeys([*own.values(), *used, *shown, *asked]))
    wider = list(dict.fromkeys([*operands, *_beyond(known, pool)]))
    counts = [
        each.value.amount
        for each in operands
        if each.value.kind == NUMBER and each.value.amount and each.value.amount.is_integer()
    ]
    made = _equated(reading, values, asked, known)
    if len(reading.tokens) > MOST_TOKENS and not any(scope.slots for scope in pool):
        return made  # in prose of so many words every operation is named, and some result fits by chance
    texts = [scope.text for scope in (known.all if len(known.all) <= MOST_BEYOND else pool)]
    for _ in range(_ROUNDS):
        for group in _compounds(values):
            if set(group) <= made:
                continue
            target = _joined([values[n] for n in group])
            further = [each for each in wider if each.scope >= 0 or not same(each.value, target)]
            timed = target.moment is not None or target.unit == TIME
            others = (
                further if timed else [each for each in operands if each.scope >= 0 or not same(each.value, target)]
            )
            found = derives(target, words, others, counts) or implied.follows(target, reading, further)
            # What a source states is in its place or not: that other figures make it too says nothing of that.
            if found or (
                not set(group) & stated and _follows(target, reading, others, further, texts=texts, counts=counts)
            ):
                made |= set(group)
                operands.insert(0, Operand(target, frozenset(), -1))
    literal = {n for n in stated if any(values[n].amount == each.value.amount for each in shown)}
    made |= rated(reading, values, texts) - literal
    return made | _dated_together(values, stated | made, words, wider)


def _follows(
    target: Value,
    reading: ValuesRead,
    near: Sequence[Operand],
    operands: Sequence[Operand],
    *,
    texts: Sequence[str],
    counts: Sequence[float],
) -> bool:
    """Whether a value that no source states follows from figures without a unit, from lines that the claim names, from the time
    between two dates, or from how a source puts it beside another value.
    """
    if target.unit == TIMES and any(one.start <= target.start < one.end for one in frequencies(reading.text)):
        return False  # twice a week is no ratio
    if target.unit == ANGLE and any(each.value.unit == TEMPERATURE for each in operands):
        target = replace(target, unit=TEMPERATURE)
    words, full = words_of(reading.tokens), filled(target, operands)
    return (
        derives(target, words, filled(target, near), counts)
        or compares(target, reading, full)
        or apart.lies_between(target, reading, operands)
        or relative.stands_to_another(target, texts, words)
        or relative.is_share(target, full)
    )


def _dated_together(
    values: Sequence[Value], known: set[int], words: frozenset[str], operands: Sequence[Operand]
) -> set[int]:
    """Return a date and a period that a stated date bears out together: in August 2025 he will have been here for ten years."""
    untold = [(n, value) for n, value in enumerate(values) if n not in known]
    dates = [(n, value) for n, value in untold if value.moment is not None]
    periods = [(n, value) for n, value in untold if value.unit == TIME and value.amount]
    if len(dates) != 1 or len(periods) != 1:
        return set()
    ((date, target),), ((period, value),) = dates, periods
    stated = [each for each in operands if each.scope >= 0 and each.value.moment is not None]
    return {date, period} if derives(target, words, [*stated, Operand(value, scope=-1, near=_FOR)]) else set()


def _beyond(known: Scopes, pool: Sequence[Scope]) -> Iterator[Operand]:
    """Yield the operands of scopes that share no word with a claim, where so few of their kind are stated that none is another's."""
    rest = [scope for scope in known.all if scope not in pool]
    operands = [operand for scope in rest for operand in scope.operands]
    if len(operands) + sum(len(scope.operands) for scope in pool) <= MOST_BEYOND:
        yield from operands


def _equated(reading: ValuesRead, values: Sequence[Value], asked: Sequence[Operand], known: Scopes) -> set[int]:
    """Return the values of the equations that a claim writes out, that are right, and whose operands have a source."""
    operands = [*asked, *(each for scope in known.all for each in scope.operands)]
    places = {(value.start, value.end): n for n, value in enumerate(values)}
    found: set[int] = set()
    for equation in equations(reading):
        whole = [reading.values[n] for n in (*equation.operands, equation.result)]
        group = [places[value.start, value.end] for value in whole if (value.start, value.end) in places]
        left = whole[:-1]
        sourced = all(_has_figure(value, operands) for value in left) or _goes_on(left, operands, known)
        if equation.right and len(group) == len(whole) and sourced:
            found |= set(group)
    return found


def _has_figure(value: Value, operands: Sequence[Operand]) -> bool:
    return any(same(value, each.value) or _same_figure(value, each.value) for each in operands)


def _same_figure(value: Value, other: Value) -> bool:
    """Whether two values have one figure, whatever their units: the 0.2 of an equation and 0.2 seconds."""
    if value.amount is None or other.amount is None:
        return False
    return (not value.unit or not other.unit) and abs(value.amount / value.factor - other.amount / other.factor) < 1e-9


def _goes_on(left: Sequence[Value], operands: Sequence[Operand], known: Scopes) -> bool:
    """Whether amounts go on from a stated one by a stated factor: 0.2, 0.4, 0.8 from a delay of 0.2 that doubles."""
    factor = series_step([value.amount or 0.0 for value in left])
    if factor is None or not _has_figure(left[0], operands):
        return False
    named = _FACTORS.get(round(factor, 6), frozenset())
    told = any(named & set(scope.text.lower().replace(",", " ").replace(".", " ").split()) for scope in known.all)
    return told or any(each.value.amount == factor for each in operands)


def _compounds(values: Sequence[Value]) -> Iterator[tuple[int, ...]]:
    """Yield each value, and a time in two units as one: 4 hours and 46 minutes."""
    place = 0
    while place < len(values):
        value = values[place]
        following = values[place + 1] if place + 1 < len(values) else None
        near = following is not None and following.first - value.last <= 1
        if near and following is not None and value.unit == following.unit == TIME and value.factor > following.factor:
            yield place, place + 1
            place += 2
        else:
            yield (place,)
            place += 1


def _joined(parts: Sequence[Value]) -> Value:
    last = parts[-1]
    return replace(
        last, amount=sum(part.amount or 0.0 for part in parts), approximate=any(p.approximate for p in parts)
    )
