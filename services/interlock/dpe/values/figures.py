"""Parser for figures: money, percentages, measures, ordinals, counts, and ranges of them (SPEC-005 §5.2)."""

from collections.abc import Sequence
from dataclasses import replace

from interlock.dpe.text import lexing
from interlock.dpe.text.lexing import SYMBOL, WORD, Lexeme, at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values import dates, numbers, numerals, units
from interlock.dpe.values.numerals import Number
from interlock.dpe.values.quantities import MONEY, NUMBER, ORDINAL, PERCENT, QUANTITY, Value

APPROXIMATE = word_set(
    "about around approximately approx roughly nearly almost some circa ca estimated ~ ≈ just near virtually well"
)
_ABOVE = frozenset(
    {"over", "above", "exceeding", "exceeded", "exceeds", ">", "≥", "beyond", "surpassing", "surpassed", "topped"}
)
_BELOW = frozenset({"under", "below", "<", "≤"})
# Phrases before a number, and the modifier that they stand for.
_PHRASES = {
    phrase: sign
    for sign, phrases in {
        ">": "more than,greater than,larger than,higher than,at least,in excess of,upwards of,no less than,no fewer "
        "than,"
        "not less than,not fewer than,a minimum of",
        "<": "less than,fewer than,lower than,smaller than,at most,up to,as many as,as much as,no more than,not more "
        "than,a maximum of",
        "~": "close to",
    }.items()
    for phrase in phrases.split(",")
}
_AFTER_PRONOUN = word_set("of another or that who which day thing such way can could may must should")
_BEFORE_PRONOUN = word_set("no this that each every the which any another")
_SEVERAL = word_set("several few couple many some")
_HALVED = frozenset({units.TIME, units.POUND, "length", "mass", "volume", "area"})
_OF_A, _FRACTION_OF = (["of", "a"], ["of", "an"]), 2
_CURRENCY_CODES = frozenset(unit.measure for unit in units.CURRENCIES.values())
# The lower-case words and symbols that a figure can begin with.
BEGINNINGS = frozenset(
    numerals.UNITS.keys()
    | numerals.TENS.keys()
    | numerals.ORDINALS.keys()
    | numerals.VAGUE.keys()
    | numerals.SCALES.keys()
    | units.CURRENCIES.keys()
    | units.MEASURES.keys()
    | {"a", "an", "half", "quarter", "twice", "thrice"}
)


def read_figure(tokens: Sequence[Lexeme], index: int) -> tuple[list[Value], int]:
    """Return the figure or figures that begin at a token, and the index after them."""
    ordinal = _read_ordinal(tokens, index)
    if ordinal:
        return [ordinal], ordinal.last
    factor = _read_factor(tokens, index) or _read_spoken_part(tokens, index)
    if factor:
        return [factor], factor.last
    value = _read_amount(tokens, index)
    return _read_range(tokens, value) if value else _read_vague(tokens, index)


def _read_amount(tokens: Sequence[Lexeme], index: int) -> Value | None:
    currency = units.read_currency_before(tokens, index)
    place = currency[1] if currency else index
    accounting = at(tokens, place).text == "(" and (currency is None or at(tokens, place).glued)
    place += accounting
    minus = currency is not None and at(tokens, place).text == "-" and at(tokens, place + 1).glued
    place += minus
    number = numbers.read_number(tokens, place, money=currency is not None)
    if number is None or _is_pronoun(tokens, index, number):
        return None
    if accounting:
        closed = _close_accounting(tokens, number, money=currency is not None)
        if closed is None:
            return None
        number = closed
    approximate, bound, first = _modifiers(tokens, index)
    value = _with_unit(tokens, number, currency[0] if currency else "")
    if value.amount is not None and (accounting or minus or first < index):
        value = replace(value, amount=-value.amount if value.unit != units.TEMPERATURE else _below_zero(value))
    return replace(
        value,
        first=first,
        approximate=approximate or _or_so(tokens, value.last),
        bound=bound or _or_more(tokens, value.last),
    )


def _below_zero(value: Value) -> float:
    """Negate a temperature in its own scale: -40 °F is -40 °C."""
    offset = -32.0 if value.factor != 1.0 else 0.0
    stated = (value.amount or 0.0) / value.factor - offset
    return (-stated + offset) * value.factor


def _close_accounting(tokens: Sequence[Lexeme], number: Number, *, money: bool) -> Number | None:
    """Read past the bracket of $(4.2) million and (3.1)%, which are negative. (15) alone is a parenthesis."""
    if at(tokens, number.end).text != ")":
        return None
    scale = numerals.SCALES.get(at(tokens, number.end + 1).low)
    if scale is not None and money:
        return replace(number, value=number.value * scale, step=number.step * scale, scale=scale, end=number.end + 2)
    percent = units.read_unit(tokens, number.end + 1)
    if money or (percent is not None and percent[0].measure == units.PERCENT):
        return replace(number, end=number.end + 1)
    return None


def _modifiers(tokens: Sequence[Lexeme], index: int) -> tuple[bool, str, int]:
    """Return whether a number is approximate, its bound, and its first token including a minus."""
    first = index
    before = at(tokens, index - 1)
    if (before.text == "-" and _is_minus(tokens, index - 1)) or before.low in {"minus", "negative"}:
        first -= 1
        before = at(tokens, first - 1)
    for length in (3, 2):
        phrase = " ".join(at(tokens, first - length + step).low for step in range(length))
        if phrase in _PHRASES:
            sign = _PHRASES[phrase]
            return sign == "~", sign.strip("~"), first
    bound = ">" if before.low in _ABOVE else "<" if before.low in _BELOW else ""
    return before.low in APPROXIMATE, bound, first


def _is_minus(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether a dash is a minus: adjacent to the number, and to nothing before it but an opening bracket."""
    token, before = tokens[index], at(tokens, index - 1)
    return at(tokens, index + 1).glued and (not token.glued or before.text in {"(", "[", "~", "$", "€", "£"})


def _is_pronoun(tokens: Sequence[Lexeme], index: int, number: Number) -> bool:
    """Whether one is a pronoun: one of them, no one, this one."""
    if number.end != index + 1 or tokens[index].low != "one":
        return False
    after = at(tokens, index + 1)
    alone = after.kind != WORD and after.text not in {"-", "%"}
    return alone or after.low in _AFTER_PRONOUN or at(tokens, index - 1).low in _BEFORE_PRONOUN


def _or_so(tokens: Sequence[Lexeme], index: int) -> bool:
    return at(tokens, index).low == "or" and at(tokens, index + 1).low == "so"


def _or_more(tokens: Sequence[Lexeme], index: int) -> str:
    """Return the bound that the words after a number give it: 100+, 50 or more, 18 and over."""
    low, follows = at(tokens, index).low, at(tokens, index + 1).low
    if low == "+" and at(tokens, index).glued:
        return ">"
    if low in {"or", "and"} and follows in {"more", "above", "greater", "older", "over"}:
        return ">"
    return "<" if low == "or" and follows in {"less", "fewer", "under", "below"} else ""


def _with_unit(tokens: Sequence[Lexeme], number: Number, currency: str) -> Value:
    """Give a number its unit: a currency before or after it, otherwise percent or a measure."""
    base = Value(
        NUMBER,
        "",
        0,
        0,
        amount=number.value,
        step=number.step,
        digits=number.digits,
        scale=number.scale,
        plain=number.plain,
        words=number.words,
        fraction=number.fraction,
        last=number.end,
    )
    if currency:
        trailing = units.read_currency_after(tokens, number.end)  # $5 million USD, £20 pounds
        end = trailing[1] if trailing and trailing[0].measure[-1] == currency[-1] else number.end
        return replace(base, kind=MONEY, unit=currency, last=end, plain=False)
    of = _FRACTION_OF if number.fraction and [at(tokens, number.end + n).low for n in (0, 1)] in _OF_A else 0
    after = units.read_unit(tokens, number.end + of) or units.read_currency_after(tokens, number.end)
    if after is None:
        return base
    unit, end = after
    kind = (
        PERCENT
        if unit.measure in {units.PERCENT, units.POINTS}
        else MONEY
        if unit.measure in _CURRENCY_CODES
        else QUANTITY
    )
    amount, step = (number.value + unit.offset) * unit.factor, number.step * unit.factor
    return replace(
        base, kind=kind, unit=unit.measure, amount=amount, step=step, factor=unit.factor, last=end, plain=False
    )


def _read_ordinal(tokens: Sequence[Lexeme], index: int) -> Value | None:
    """Read 21st, third, twenty-first."""
    token, follows = at(tokens, index), at(tokens, index + 1)
    if token.kind == lexing.NUMBER:
        suffixed = follows.glued and follows.low in {"st", "nd", "rd", "th"}
        parsed = numbers.parse_digits(token.text) if suffixed else None
        return Value(ORDINAL, "", 0, 0, amount=parsed[0], first=index, last=index + 2) if parsed else None
    if (
        token.low in numerals.TENS
        and numerals.is_hyphen(tokens, index + 1)
        and at(tokens, index + 2).low in numerals.ORDINALS
    ):
        amount = float(numerals.TENS[token.low] + numerals.ORDINALS[tokens[index + 2].low])
        return Value(ORDINAL, "", 0, 0, amount=amount, words=True, first=index, last=index + 3)
    if token.low not in numerals.ORDINALS or (
        token.low == "second" and at(tokens, index - 1).low in {"per", "a", "every"}
    ):
        return None
    return Value(ORDINAL, "", 0, 0, amount=float(numerals.ORDINALS[token.low]), words=True, first=index, last=index + 1)


def _read_factor(tokens: Sequence[Lexeme], index: int) -> Value | None:
    """Read twice, thrice and twofold."""
    low = tokens[index].low
    times = {"twice": 2, "thrice": 3}.get(low) or (numerals.UNITS.get(low[:-4]) if low.endswith("fold") else None)
    if not times:
        return None
    return Value(QUANTITY, "", 0, 0, amount=float(times), unit=units.TIMES, words=True, first=index, last=index + 1)


def _read_spoken_part(tokens: Sequence[Lexeme], index: int) -> Value | None:
    """Read half an hour, half a pound, a quarter of an hour, three quarters of a mile, a year and a half."""
    low, place, share = tokens[index].low, index, 0.0
    if low == "half" and at(tokens, index + 1).low in {"a", "an"}:
        place, share = index + 2, 0.5
    elif low in {"a", "one", "three"} and at(tokens, index + 1).low in {"quarter", "quarters"}:
        of = at(tokens, index + 2).low == "of" and at(tokens, index + 3).low in {"a", "an"}
        place, share = index + 4, (0.75 if low == "three" else 0.25) if of else 0.0
    elif low in {"a", "an", "one"} and " ".join(at(tokens, index + n).low for n in (2, 3, 4)) == "and a half":
        place, share = index + 1, 1.5
    unit = units.MEASURES.get(at(tokens, place).low) if share else None
    if unit is None or unit.measure not in _HALVED:
        return None
    return Value(
        QUANTITY, "", 0, 0, amount=share * unit.factor, step=unit.factor / 10, unit=unit.measure, factor=unit.factor,
        words=True, first=index, last=place + (4 if share > 1 else 1),
    )  # fmt: skip


def _read_vague(tokens: Sequence[Lexeme], index: int) -> tuple[list[Value], int]:
    """Read a size without a figure: thousands of, hundreds of millions, several hundred, months."""
    token = tokens[index]
    size = Value(NUMBER, "", 0, 0, vague=True, words=True, first=index, last=index + 1)
    if token.low in numerals.VAGUE:
        scale, end = numerals.VAGUE[token.low], index + 1
        if at(tokens, end).low == "of" and at(tokens, end + 1).low in numerals.VAGUE:
            scale, end = scale * numerals.VAGUE[tokens[end + 1].low], end + 2
        return [replace(size, amount=scale, scale=scale, last=end)], end
    if token.low in numerals.SCALES and len(token.low) > 3 and at(tokens, index - 1).low in _SEVERAL:
        scale = numerals.SCALES[token.low]
        return [replace(size, amount=scale, scale=scale)], index + 1
    unit = units.MEASURES.get(token.low) if token.kind == WORD and len(token.low) > 3 and token.text.islower() else None
    if unit is not None and unit.measure in {units.TIME, "length"} and token.low.endswith("s"):
        return [replace(size, kind=QUANTITY, amount=unit.factor, unit=unit.measure, factor=unit.factor)], index + 1
    return [], index + 1


def _read_range(tokens: Sequence[Lexeme], value: Value) -> tuple[list[Value], int]:
    """Read the other end of 3-5 million, between 3 and 5 %, 3 to 5 km. A unit or scale at one end holds for both."""
    place = value.last
    if value.kind == ORDINAL or not _joins(tokens, value, place) or dates.read_date(tokens, place + 1):
        return [value], place
    other = _read_amount(tokens, place + 1)
    if other is None or other.first != place + 1:
        return [value], place
    if value.kind == MONEY and other.kind == NUMBER:
        return [_scaled_alike(value, other), replace(other, kind=MONEY, unit=value.unit)], other.last
    if value.kind == NUMBER or (value.kind == MONEY and value.unit == other.unit):
        return [_scaled_alike(value, other), other], other.last
    return [value, other], other.last


def _joins(tokens: Sequence[Lexeme], value: Value, place: int) -> bool:
    mark, follows = at(tokens, place), at(tokens, place + 1)
    if mark.text == "-":
        return follows.kind in {lexing.NUMBER, SYMBOL} and follows.text != "-"
    return mark.low in {"to", "or"} or (mark.low == "and" and at(tokens, value.first - 1).low in {"between", "both"})


def _scaled_alike(value: Value, other: Value) -> Value:
    """Give the first end of a range the unit and the scale of the second: 3-5 million euros."""
    if value.amount is None or other.amount is None:
        return value
    smaller = value.amount <= other.amount / other.scale / other.factor
    scale = other.scale if value.scale == 1.0 and smaller else 1.0
    factor = other.factor if value.kind == NUMBER else 1.0
    return replace(
        value,
        kind=value.kind if value.kind == MONEY else other.kind,
        unit=value.unit or other.unit,
        amount=value.amount * scale * factor,
        step=value.step * scale * factor,
        scale=value.scale * scale,
        factor=factor,
        plain=value.plain and other.plain,
    )
