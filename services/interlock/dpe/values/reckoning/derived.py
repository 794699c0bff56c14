"""Derived values: whether a value follows from others by the operation that the words beside it name (SPEC-005 §5.2).

A sum, a difference, a product, a share, a change in per cent, a duration between two times, a date and a period. The search is
bounded: each operation is tried only where a word of the claim names it, over at most ``MOST_OPERANDS`` values and no deeper than
two operands, except for sums of a whole group. A result is rounded as people do it, to the digits that are stated, and to a unit
of the last digit after *about*. Pure functions of their arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from interlock.dpe.text.lexing import WORD, Lexeme
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import MONEY, NUMBER, ORDINAL, PERCENT, QUANTITY, Value
from interlock.dpe.values.reckoning import calendar
from interlock.dpe.values.units import PERCENT as PERCENT_UNIT
from interlock.dpe.values.units import POINTS, TIME, TIMES

MOST_OPERANDS = 48
MOST_COUNT = 1000
_LATE = 28  # the end of a month

UP = word_set(
    "increase increased increases increasing rise rose risen rises rising grew grow grows grown growth gain gained higher more up"
    " widened improved improvement climbed jumped raise raised raising added extra longer older above expanded"
    " lengthen lengthened lengthens lengthening extended prolonged"
)
DOWN = word_set(
    "decrease decreased decreases decreasing fell fall falls fallen falling drop dropped drops decline declined lower less down"
    " narrowed loss lost cut reduced reduction shrank shorter cheaper younger below fewer saved saves saving savings save"
    " shorten shortened shortens shortening trimmed slashed"
)
DIFFERS = (
    UP
    | DOWN
    | word_set(
        "difference differ gap change changed apart between left remaining remain remains over margin faster slower beneath under short"
        " ahead behind than dearer pricier heavier lighter taller warmer colder sooner lowered lowers lowering"
    )
)
_SHARES = word_set("margin share of percent rate ratio part proportion portion fraction makes accounts")
_SUMS = word_set(
    "total totals totalling totaling together altogether combined sum sums all overall both adds add in between"
)
_PRODUCTS = word_set(
    "× x * times for both each all every total totals per apiece together comes altogether annual annually yearly year week month"
    " paid charged charge pay cost costs sum"
)
_DIVIDES = word_set(
    "each per apiece monthly weekly daily quarterly share split instalment instalments installment installments every equal divided"
)
_MEANS = word_set("average averages mean averaging averaged")
_LASTS = word_set(
    "takes take took lasts last lasted long duration journey trip ride flight hours hour minutes minute days day weeks weeks months"
    " years year old aged age apart between after later earlier for in"
)
_ENDS = word_set(
    "until till expires expire expired ends end ended runs run by due through valid from starts start before after later on arrive"
    " arrives lasts covered"
)
_LAST = word_set("last final end ends ended finish finishes over until")
_AGES = word_set("be is was turns turned reaches reached aged age retires retire when")
_BORN = word_set("born birth birthday")
_OLDEST = 120
_BEYOND = 4 / 3
"""How far beyond a bound that it is told with a result may be: nobody calls five hours more than three."""
_PER = {
    12.0: ("month", "year"),
    52.0: ("week", "year"),
    7.0: ("day", "week"),
    24.0: ("hour", "day"),
    4.0: ("quarter", "year"),
}


@dataclass(frozen=True)
class Operand:
    """A value that a calculation may use, with the words of its clause and the group that it is compared in.

    ``scope`` numbers the sentence or record that states it, below 0 for the claim itself. ``when`` is the year of that record,
    ``None`` without one. ``near`` are the words of its clause or key as they are written, in lower case, ``follows`` is
    the word right after it.
    """

    value: Value
    noun: frozenset[str] = frozenset()
    scope: int = 0
    when: int | None = None
    near: frozenset[str] = frozenset()
    follows: str = ""


def words_of(tokens: Sequence[Lexeme]) -> frozenset[str]:
    """Return the lower-case words and signs of a claim, among which the operations are named."""
    return frozenset(token.low for token in tokens if token.kind == WORD or token.text in {"×", "*", "+", "="})


def derives(target: Value, words: frozenset[str], operands: Sequence[Operand], counts: Sequence[float] = ()) -> bool:
    """Whether *target* follows from *operands* by an operation that *words* name. *counts* are multipliers that the text states."""
    usable = [each for each in operands if not each.value.vague and each.value.kind != ORDINAL][:MOST_OPERANDS]
    if target.moment is not None:
        at_end = target.moment.day is None and {"end", "of"} <= words
        found = (each for each in _dates(target.moment, words, usable) if not at_end or (each.day or 31) >= _LATE)
        return any(same_moment(target.moment, each) for each in found)
    if target.amount is None or target.label:
        return False
    return any(fits(target, result) for result in _results(target, words, usable, counts))


def _results(
    target: Value, words: frozenset[str], operands: Sequence[Operand], counts: Sequence[float]
) -> Iterator[float]:
    alike = [each for each in operands if each.value.amount is not None and each.value.unit == target.unit]
    if words & DIFFERS:
        yield from _differences(target, words, alike, operands)
    if target.unit == PERCENT_UNIT and words & (_SHARES | DIFFERS):
        yield from _shares(words, operands)
    if target.unit == TIMES or words & {"times", "twice", "double", "doubled", "half", "halved", "triple"}:
        yield from (_amount(a) / _amount(b) for a, b in _pairs(operands) if _amount(b))
    if words & _SUMS or "+" in words:
        yield from _sums(alike)
    if words & _MEANS:
        yield from (sum(group) / len(group) for group in _groups(alike))
    if words & _PRODUCTS:
        yield from _products(words, alike, counts)
    if target.unit == TIME and words & _LASTS:
        yield from _durations(operands)


def _differences(
    target: Value, words: frozenset[str], alike: Sequence[Operand], operands: Sequence[Operand]
) -> Iterator[float]:
    pool = [each for each in operands if each.value.unit == PERCENT_UNIT] if target.unit == POINTS else alike
    for a, b in combinations(pool, 2):
        if _belong(a, b) and (change := _change(a, b, words)) is not None:
            yield abs(change)


def _change(a: Operand, b: Operand, words: frozenset[str]) -> float | None:
    """Return how much the later of two values is above the earlier, or ``None`` where the words say the opposite."""
    if a.when is None or b.when is None or a.when == b.when:
        return _amount(a) - _amount(b)
    earlier, later = (a, b) if a.when < b.when else (b, a)
    change = _amount(later) - _amount(earlier)
    up, down = bool(words & UP), bool(words & DOWN)
    return None if up != down and change != 0 and (change > 0) != up else change


def _shares(words: frozenset[str], operands: Sequence[Operand]) -> Iterator[float]:
    for a, b in permutations([each for each in operands if each.value.kind in {MONEY, NUMBER, QUANTITY}], 2):
        if a.value.unit != b.value.unit or not _amount(b):
            continue
        if words & DIFFERS and _belong(a, b) and (change := _change(a, b, words)) is not None:
            base = b if a.when is None or b.when is None or b.when < a.when else a
            yield abs(change) / abs(_amount(base)) * 100 if _amount(base) else 0.0
        if words & _SHARES and a.scope == b.scope and abs(_amount(a)) <= abs(_amount(b)):
            yield _amount(a) / _amount(b) * 100


def _groups(alike: Sequence[Operand]) -> Iterator[list[float]]:
    """Yield the values of each attribute that several records state, and those of each sentence."""
    for members in ({each.noun for each in alike}, {each.scope for each in alike}):
        for key in members:
            group = [_amount(each) for each in alike if key in (each.noun, each.scope)]
            if len(group) > 1:
                yield group


def _sums(alike: Sequence[Operand]) -> Iterator[float]:
    yield from (sum(group) for group in _groups(alike))
    yield from (_amount(a) + _amount(b) for a, b in combinations(alike, 2) if _belong(a, b))


def _products(words: frozenset[str], alike: Sequence[Operand], counts: Sequence[float]) -> Iterator[float]:
    factors = {each for each in counts if 1 < each <= MOST_COUNT}
    factors |= {2.0} if words & {"both", "two", "couple"} else set()
    alike = [each for each in alike if each.value.unit != TIME or words & {"×", "*", "each"}]  # 4 hours are not 4 days
    factors |= {n for n, (_, whole) in _PER.items() if words & {whole, f"{whole}s", f"{whole}ly", "annual", "annually"}}
    for each in alike:
        yield from (_amount(each) * factor for factor in factors)
        if words & _DIVIDES:
            yield from (
                _amount(each) / factor for factor in factors | ({12.0} if words & {"month", "monthly"} else set())
            )


def _durations(operands: Sequence[Operand]) -> Iterator[float]:
    """Yield the seconds between two times of one record or sentence, and between two dates."""
    placed = [each for each in operands if each.value.moment is not None]
    for a, b in combinations(placed, 2):
        first, second = a.value.moment, b.value.moment
        if first is None or second is None:
            continue
        if first.minute is not None and second.minute is not None and a.scope == b.scope:
            between = (second.minute - first.minute) % calendar.DAY_MINUTES
            yield between * 60.0
            yield (calendar.DAY_MINUTES - between) * 60.0
        if _of_one(a, b) or (first.years and second.years):
            yield from calendar.between(first, second)


def _dates(target: Moment, words: frozenset[str], operands: Sequence[Operand]) -> Iterator[Moment]:
    """Yield the dates that a date and a period make, and the weekdays of the dates that are stated.

    The words of the claim name the operation, or those beside the period in its source: *three weeks before the opening*.
    """
    dated = [(each, each.value.moment) for each in operands if each.value.moment is not None]
    if target.weekday is not None:
        for _, moment in dated:
            if (day := calendar.day_of(moment)) is not None:
                yield Moment(moment.years, moment.months, moment.day, day.weekday())
    claimed = words if words & _ENDS else frozenset()
    for period in (each for each in operands if each.value.unit == TIME and each.value.amount):
        for one, moment in dated:
            near = period.near if calendar.relates(period.near) and (claimed or _of_one(one, period)) else claimed
            if near:
                yield from calendar.moved(moment, period.value, near, period.follows)
    yield from _counted_dates(words, operands)


def _of_one(a: Operand, b: Operand) -> bool:
    """Whether two values stand in one sentence, in sentences that share a word, or one of them in the claim."""
    return a.scope == b.scope or min(a.scope, b.scope) < 0 or bool(a.noun & b.noun)


def _counted_dates(words: frozenset[str], operands: Sequence[Operand]) -> Iterator[Moment]:
    """Yield the last date of a series of so many, and the birthday on which somebody has an age."""
    counts = [
        each
        for each in operands
        if each.value.kind == NUMBER and (each.value.amount or 0.5).is_integer() and 1 < _amount(each) <= _OLDEST
    ]
    for one in (each for each in operands if each.value.moment is not None):
        moment = one.value.moment or Moment()
        for count in counts:
            if one.scope == count.scope and words & _LAST:
                yield from calendar.in_series(moment, int(_amount(count)), one.noun | one.near | count.near)
            if words & _AGES and one.near & _BORN:
                yield from calendar.in_years(moment, int(_amount(count)))


def same_moment(target: Moment, found: Moment) -> bool:
    """Whether a date states nothing but what was found: January 2027 for 14 January 2027."""
    pairs = (
        (target.years, found.years), (target.months, found.months), (target.day, found.day),
        (target.weekday, found.weekday), (target.minute, found.minute),
    )  # fmt: skip
    return all(stated is None or stated == made for stated, made in pairs)


def _pairs(operands: Sequence[Operand]) -> Iterable[tuple[Operand, Operand]]:
    amounts = [each for each in operands if each.value.amount]
    return ((a, b) for a, b in permutations(amounts, 2) if a.value.unit == b.value.unit and _belong(a, b))


def _belong(a: Operand, b: Operand) -> bool:
    """Whether two values are of one attribute, or stand in one sentence that names none."""
    if a.noun and b.noun and a.scope != b.scope:
        return a.noun == b.noun or bool(a.noun & b.noun and (a.noun <= b.noun or b.noun <= a.noun))
    return a.scope == b.scope or a.noun == b.noun


def _amount(operand: Operand) -> float:
    return operand.value.amount or 0.0


def fits(target: Value, result: float) -> bool:
    """Whether a result, rounded to the digits that the target states, is the target."""
    stated = abs(target.amount or 0.0)
    slack = target.step / 2 if target.kind != QUANTITY else min(target.step, target.factor) / 2
    exact = target.kind == NUMBER and target.step >= 1 and not target.approximate
    slack = min(slack, 0.5) if exact else slack * (2 if target.approximate else 1)
    if target.kind == PERCENT or target.unit == POINTS:
        slack = target.step * (1.0 if target.approximate else 0.55)
    return abs(stated - abs(result)) <= slack * (1 + 1e-9) and result != 0


def keeps_bound(target: Value, result: float) -> bool:
    """Whether a result is a little beyond what a target gives as its bound: 3 hours 40 minutes, for more than three hours."""
    stated, result = abs(target.amount or 0.0), abs(result)
    low, high = {">": (1.0, _BEYOND), "<": (1 / _BEYOND, 1.0)}.get(target.bound, (1.0, 1.0))
    return stated * low < result < stated * high
