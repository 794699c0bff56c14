"""Implied values: what wording alone asks to be calculated, without a word for the operation (SPEC-005 §5.2).

What is left of a stock, the age at a date, a part of a total, a price with its tax, a rate over another time, a sum of money in
months of rent. Each looks only at values whose own words fit: what was taken is subtracted because its source says *taken*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from interlock.dpe.text.lexing import WORD, at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import ValuesRead
from interlock.dpe.values.frames import stem
from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import MONEY, NUMBER, PERCENT, Value, comparable
from interlock.dpe.values.reckoning.derived import DOWN, UP, Operand, fits
from interlock.dpe.values.units import MEASURES, POUND, TIME, TIMES

_LEFT = word_set("left remaining remain remains balance still rest")
TAKEN = word_set(
    "taken took take used use spent spend booked sold paid withdrawn withdrew eaten drunk lost gave given broken broke returned"
    " cancelled absent consumed deducted minus less removed reserved occupied shipped planned scheduled approved expired departed"
    " planed damaged missing borrowed lent out"
)
GAINED = word_set(
    "carried carry carryover plus added extra additional bought received got gained deposited topped joined arrived delivered"
    " restocked bonus brought earned credited"
)
_PLUS = word_set("vat tax gst plus tip surcharge fee levy duty service interest premium markup")
_OFF = word_set("discount off rebate reduced reduction sale deducted less minus")
_WITH = word_set("with including included inclusive incl gross total altogether plus comes pay paid")
_AGED = word_set("age aged old turned when")
_BORN = word_set("born birth birthday founded established built opened launched dob")
_OTHERS = word_set("other others remaining rest left not without")
_EACH = word_set("each apiece per every")
_PER = word_set("per each every a an")
_TOTAL = word_set("total altogether all together sum lasts last takes take overall")
MOST_TOGETHER = 32
"""Operands of one scope that are paired: a question of hundreds of figures is one scope, and their pairs are the square of that."""
_SPEED, _LENGTH = "speed", "length"
_PERIODS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86_400.0, "week": 604_800.0}
_LONG_PERIODS = {"month": 1.0, "quarter": 3.0, "year": 12.0}
_ADVERBS = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "quarterly": "quarter"}
_ADVERBS |= {"yearly": "year", "annual": "year", "annually": "year", "a": "", "an": ""}


def follows(target: Value, reading: ValuesRead, operands: Sequence[Operand]) -> bool:
    """Whether a value of a claim follows from *operands* by what its wording implies."""
    if target.moment is not None or not target.amount or target.label or target.vague:
        return False
    words = [token.low for token in reading.tokens]
    found = [*_left(target, words, operands), *_age(target, words, operands), *_part(target, words, operands)]
    found += [*_taxed(target, words, operands), *_rate(target, words, operands), *_times(target, reading, operands)]
    found += [*_multiplied(target, words, operands), *_between(target, reading, operands)]
    found += [*_divided(target, words, operands), *_scaled(target, words, operands)]
    if any(fits(target, each) for each in found):
        return True
    return _all_but(target, reading, operands) or _periods_worth(target, reading, operands)


def _left(target: Value, words: Sequence[str], operands: Sequence[Operand]) -> Iterator[float]:
    """Yield what is left of a stock: what there was and came in, less all that was taken."""
    if not _LEFT & set(words):
        return
    alike = [each for each in operands if each.scope >= 0 and _measures(each.value, target)]
    groups = [[each for each in alike if each.scope == scope] for scope in {each.scope for each in alike}]
    for group in [*groups, alike]:
        taken = [each for each in group if each.near & TAKEN]
        gained = [each for each in group if each.near & GAINED and each not in taken]
        stock = [each for each in group if each not in taken and each not in gained and not each.value.bound]
        if taken:
            moved = sum(_in(each, target) for each in gained) - sum(_in(each, target) for each in taken)
            yield from (_in(each, target) + moved for each in stock)


def _measures(value: Value, target: Value) -> bool:
    """Whether a value counts what *target* counts; a field may leave the unit to its key."""
    if value.amount is None or value.fraction or value.label:
        return False
    return value.unit == target.unit or (not value.unit and target.unit == TIME and value.kind == NUMBER)


def _in(operand: Operand, target: Value) -> float:
    return (operand.value.amount or 0.0) * (1.0 if operand.value.unit else target.factor)


def _age(target: Value, words: Sequence[str], operands: Sequence[Operand]) -> Iterator[float]:
    """Yield the full years from a birth or a beginning to another date."""
    if not _AGED & set(words) or target.unit not in {"", TIME}:
        return
    dated = [(each, each.value.moment) for each in operands if each.value.moment and each.value.moment.years]
    for (one, start), (other, end) in permutations(dated, 2):
        if one.near & _BORN and not other.near & _BORN and (years := _full_years(start, end)) > 0:
            yield years * (target.factor if target.unit == TIME else 1.0)


def _full_years(start: Moment, end: Moment) -> int:
    if start.years is None or end.years is None:
        return 0
    years = end.years[0] - start.years[0]
    if start.months is None or end.months is None:
        return years
    before = (end.months[0], end.day or 31) < (start.months[0], start.day or 1)
    return years - before


def _together(operands: Sequence[Operand], *, least: int = 0) -> Iterator[tuple[Operand, Operand]]:
    """Yield each two operands of one scope, in both orders; of scopes from *least* on. A claim's own have -1."""
    scopes: dict[int, list[Operand]] = {}
    for each in operands:
        if each.scope >= least:
            scopes.setdefault(each.scope, []).append(each)
    for members in scopes.values():
        yield from permutations(members[:MOST_TOGETHER], 2)


def _part(target: Value, words: Sequence[str], operands: Sequence[Operand]) -> Iterator[float]:
    """Yield a stated share of a stated total, what it leaves, and the share that two stated counts make."""
    for a, b in _together(operands):
        if b.value.amount is None or a.value.amount is None:
            continue
        share = a.value.amount if a.value.fraction else a.value.amount / 100 if a.value.kind == PERCENT else None
        if share is not None and b.value.unit == target.unit and b.value.kind != PERCENT and not b.value.fraction:
            yield share * b.value.amount
            if _OTHERS & set(words):
                yield b.value.amount - share * b.value.amount
        same = a.value.unit == b.value.unit and a.value.kind != PERCENT and not (a.value.fraction or b.value.fraction)
        if target.fraction and same and 0 < a.value.amount <= b.value.amount:
            yield a.value.amount / b.value.amount


def leaves(target: Value, operands: Sequence[Operand]) -> bool:
    """Whether a count is the rest of a stated total: 60 were *not* satisfied, where 140 of 200 were."""
    if target.moment is not None or not target.amount or target.label or target.vague:
        return False
    pairs = [(a, b) for a, b in _together(operands) if a.value.unit == b.value.unit]
    rests = [(b.value.amount or 0.0) - (a.value.amount or 0.0) for a, b in pairs if a.value.unit == target.unit]
    shares = [*_part(target, ("rest",), operands)]
    whole = 1.0 if target.fraction else 100.0
    if target.fraction or target.kind == PERCENT:
        shares += [whole - (each.value.amount or 0.0) for each in operands if _is_share_of(each.value, target)]
    return any(fits(target, each) for each in [*(rest for rest in rests if rest > 0), *shares])


def _is_share_of(value: Value, target: Value) -> bool:
    return (value.fraction and target.fraction) or (value.kind == PERCENT == target.kind)


def _taxed(target: Value, words: Sequence[str], operands: Sequence[Operand]) -> Iterator[float]:
    """Yield an amount with the percentage that its sentence adds to it, or without the one that it takes off."""
    if target.kind != MONEY:
        return
    for a, b in _together(operands, least=-1):
        if a.value.kind != PERCENT or b.value.unit != target.unit or a.value.amount is None:
            continue
        amount = b.value.amount or 0.0
        if a.near & _PLUS and _WITH & set(words):
            yield amount * (1 + a.value.amount / 100)
        if a.near & _OFF:
            yield amount * (1 - a.value.amount / 100)


def _rate(target: Value, words: Sequence[str], operands: Sequence[Operand]) -> Iterator[float]:
    """Yield a stated rate over another time: 1,800 litres per hour for 30 litres per minute."""
    wanted = _periods(words)
    for each in operands if wanted else ():
        if each.value.unit != target.unit or each.value.amount is None or each.value.unit == TIME:
            continue
        for table in (_PERIODS, _LONG_PERIODS):
            sizes = [
                (table[own], table[other])
                for own in _periods(each.near) & table.keys()
                for other in wanted & table.keys()
            ]
            yield from (each.value.amount * other / own for own, other in sizes if own != other)


def _periods(words: Sequence[str] | frozenset[str]) -> frozenset[str]:
    """Return the times that *per hour*, *an hour* or *hourly* name."""
    named = frozenset(_ADVERBS.get(word, word.removesuffix("s")) for word in words)
    return named & (_PERIODS.keys() | _LONG_PERIODS.keys())


def _times(target: Value, reading: ValuesRead, operands: Sequence[Operand]) -> Iterator[float]:
    """Yield how many times the value of what a claim names first is that of what it names next."""
    if target.unit == TIMES:
        yield from (one / other for one, other in _members(reading, operands))


def _members(reading: ValuesRead, operands: Sequence[Operand]) -> Iterator[tuple[float, float]]:
    """Yield the amounts of two things that a claim names and compares, in the order in which it names them."""
    order = [stem(token.low) for token in reading.tokens if token.kind == WORD]
    for a, b in permutations([each for each in operands if each.value.amount and each.noun and each.scope >= 0], 2):
        if a.value.unit != b.value.unit or a.scope == b.scope or not a.noun & b.noun:
            continue
        own = [order.index(word) for word in a.noun - b.noun if word in order]
        other = [order.index(word) for word in b.noun - a.noun if word in order]
        if own and other and min(own) < min(other):
            yield a.value.amount or 0.0, b.value.amount or 0.0


def _between(target: Value, reading: ValuesRead, operands: Sequence[Operand]) -> Iterator[float]:
    """Yield by how much the first of two things that a claim names is above or below the other, as its words say."""
    words = {token.low for token in reading.tokens}
    up, down = bool(words & UP), bool(words & DOWN)
    alike = [each for each in operands if each.value.unit == target.unit]
    if up != down:
        yield from (abs(one - other) for one, other in _members(reading, alike) if (one > other) == up)


def _multiplied(target: Value, words: Sequence[str], operands: Sequence[Operand]) -> Iterator[float]:
    """Yield a stated count of things times what its sentence says of each: 3 floors with 24 rooms each, 12 lessons of 45 minutes."""
    for a, b in _together([each for each in operands if each.value.amount]):
        if a.value.kind != NUMBER or a.value.fraction or b.value.unit != target.unit:
            continue
        if a.near & _EACH or b.near & _EACH or (_TOTAL & set(words) and "of" in b.near):
            yield (a.value.amount or 0.0) * (b.value.amount or 0.0)


def _divided(target: Value, words: Sequence[str], operands: Sequence[Operand]) -> Iterator[float]:
    """Yield a rate that two measures of one sentence make: 5 minutes per kilometre, 12 km/h, for 10 km in 50 minutes."""
    for a, b in _together([each for each in operands if each.value.amount]):
        if a.value.unit == b.value.unit or not b.value.amount:
            continue
        if target.unit == _SPEED and a.value.unit == _LENGTH and b.value.unit == TIME:
            yield (a.value.amount or 0.0) / b.value.amount
        measured = any(
            unit.measure == b.value.unit and unit.factor == b.value.factor for unit in map(MEASURES.get, words) if unit
        )
        if a.value.unit == target.unit and _PER & set(words) and measured:
            yield (a.value.amount or 0.0) / (b.value.amount / b.value.factor)


def _scaled(target: Value, words: Sequence[str], operands: Sequence[Operand]) -> Iterator[float]:
    """Yield an amount for another number of the same: 500 g for 8 people, where 4 need 250 g."""
    if "for" not in words:
        return
    claimed = [each.value for each in operands if each.scope < 0 and each.value.kind == NUMBER and each.value.amount]
    for a, b in _together([each for each in operands if each.value.amount]):
        if a.value.unit == target.unit and b.value.kind == NUMBER and "for" in b.near:
            yield from ((a.value.amount or 0.0) * (each.amount or 0.0) / (b.value.amount or 1.0) for each in claimed)


def _all_but(target: Value, reading: ValuesRead, operands: Sequence[Operand]) -> bool:
    """Whether *all but two* is what two counts of one sentence leave: sixteen of the 18."""
    if (
        at(reading.tokens, target.first - 1).low not in {"but", "except"}
        or at(reading.tokens, target.first - 2).low != "all"
    ):
        return False
    pairs = permutations([each for each in operands if each.value.amount and each.scope >= 0], 2)
    return any(
        a.scope == b.scope
        and a.value.unit == b.value.unit
        and (b.value.amount or 0) - (a.value.amount or 0) == target.amount
        for a, b in pairs
    )


def _periods_worth(target: Value, reading: ValuesRead, operands: Sequence[Operand]) -> bool:
    """Whether an amount is so many periods of a rate: one and a half months' rent, two weeks' pay, three months of salary."""
    mark, place = at(reading.tokens, target.last), target.last
    if target.unit != TIME or target.amount is None or (mark.text not in {"'", "’"} and mark.low not in {"of", "s"}):
        return False
    while at(reading.tokens, place).kind != WORD or at(reading.tokens, place).low in {"of", "s", "the"}:
        place += 1
        if place >= len(reading.tokens):
            return False
    noun, count = stem(at(reading.tokens, place).low), target.amount / target.factor
    period = next((each for each in ("day", "week", "month", "quarter", "year") if each in target.text.lower()), "")
    money = [each for each in operands if (each.value.kind == MONEY or each.value.unit == POUND) and each.value.amount]
    claimed = {stem(token.low) for token in reading.tokens}
    rates = [each for each in money if noun in each.noun and period in _periods(each.near)]
    return any(
        comparable(a.value, rate.value)
        and (a.scope < 0 or a.noun & claimed)
        and abs((a.value.amount or 0.0) / (rate.value.amount or 1.0) - count) < (0.05 if target.approximate else 0.005)
        for rate in rates
        for a in money
    )
