"""Parser for numbers in words: two hundred and fifty, half a million, two-thirds of, one in five, one and a half."""

from collections.abc import Sequence
from dataclasses import replace

from interlock.dpe.text.lexing import END, NUMBER, WORD, Lexeme, at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.numerals import PARTS, SCALES, TENS, UNITS, Number, scaled
from interlock.dpe.values.units import MEASURES

_AFTER_PART = word_set(
    "past to hour mile year season an a party parties person country state company firm witness doctor reader"
)


def read_share(tokens: Sequence[Lexeme], index: int) -> Number | None:
    """Read a share in words: half of, two-thirds of, a quarter of, one in five."""
    token = tokens[index]
    if at(tokens, index + 1).low == "in" and (token.low in UNITS or token.low == "a"):
        return _several_in(tokens, index)
    told = at(tokens, index + 1).low.endswith("ing")  # the account, the one ending in 4417
    if (
        token.low == "one"
        and not told
        and at(tokens, index + 2).low == "in"
        and (share := _one_thing_in(tokens, index))
    ):
        return share
    count, part = 1, index
    if token.low in {"a", "an"} or (token.low in UNITS and 0 < UNITS[token.low] < 10):
        count = UNITS.get(token.low, 1)
        part = index + 1
        if at(tokens, part).text == "-":
            part += 1
    word = at(tokens, part).low
    if word not in PARTS or (part == index and word != "half"):
        return None
    follows = at(tokens, part + 1).low
    takes_of = follows == "of" and at(tokens, part + 2).kind != NUMBER
    # It fell by a quarter: of what it was. By a quarter past eight is a time, and by a third party is somebody.
    takes_of = takes_of or (
        at(tokens, index - 1).low == "by" and part > index and follows not in _AFTER_PART and word != "second"
    )
    if not takes_of and not (word.endswith("s") and count > 1):
        return None
    if (
        word in {"quarter", "quarters", "half"}
        and at(tokens, part + 2).low == "the"
        and at(tokens, part + 3).low in {"year", "season"}
    ):
        return None
    return Number(count / PARTS[word], 0.02, part + 1, words=True, fraction=True)


def _one_in(tokens: Sequence[Lexeme], index: int) -> Number | None:
    """Read one in five, one in every 10: a share of a small count."""
    if tokens[index].low != "one":
        return None
    into = index + 1 if at(tokens, index + 1).low == "in" else index + 2  # one plot in six
    below = into + 2 if at(tokens, into + 1).low == "every" else into + 1
    among = _small_count(at(tokens, below))
    if among < 2 or 1900 <= among <= 2100:
        return None
    return Number(1 / among, 0.5 / among**2, below + 1, words=True, fraction=True)


def _several_in(tokens: Sequence[Lexeme], index: int) -> Number | None:
    """Read one in five and seven in ten. More than one in a number of digits is a place or a time: three in 2019."""
    several, among = UNITS.get(tokens[index].low, 1), UNITS.get(at(tokens, index + 2).low, 0)
    if several <= 1:
        return _one_in(tokens, index)
    return Number(several / among, 0.5 / among, index + 3, words=True, fraction=True) if among > several else None


def _one_thing_in(tokens: Sequence[Lexeme], index: int) -> Number | None:
    """Read one plot in six. A unit or a name after the number makes it a place or a time: one goal in 10 minutes."""
    thing = at(tokens, index + 1)
    share = _one_in(tokens, index) if thing.kind == WORD and thing.text.islower() else None
    after = at(tokens, share.end) if share is not None else END
    return share if share is not None and after.low not in MEASURES else None


def _small_count(token: Lexeme) -> int:
    digits = token.text.replace(",", "")
    if token.kind == WORD:
        return UNITS.get(token.low, 0)
    return int(digits) if digits.isdigit() and len(digits) < 8 else 0


def read_words(tokens: Sequence[Lexeme], index: int) -> Number | None:
    """Read a number in words: two hundred and fifty thousand, half a million, a dozen, three point five."""
    low = tokens[index].low
    if low in {"half", "quarter"} and at(tokens, index + 1).low in {"a", "an"} and at(tokens, index + 2).low in SCALES:
        part = 0.5 if low == "half" else 0.25
        scale = SCALES[tokens[index + 2].low]
        return Number(part * scale, 0.1 * scale, index + 3, scale=scale, words=True)
    if low in {"a", "an"}:
        if at(tokens, index + 1).low not in SCALES or len(at(tokens, index + 1).low) < 4:
            return None
        return _word_sum(tokens, index + 1, group=1.0)
    return _word_sum(tokens, index, group=None) if low in UNITS or low in TENS else None


def _word_sum(tokens: Sequence[Lexeme], index: int, *, group: float | None) -> Number | None:
    """Sum number words from left to right. *group* is the number before the first scale."""
    total, current, step, scale = 0.0, group or 0.0, 1.0, 1.0
    seen = "scale" if group else ""
    end, place = index, index
    while True:
        token = at(tokens, place)
        if (
            token.low in UNITS
            and seen in {"", "hundred", "scale", "tens"}
            and not (seen == "tens" and UNITS[token.low] > 9)
        ):
            current, seen, step = current + UNITS[token.low], "units", 1.0
        elif token.low in TENS and seen in {"", "hundred", "scale"}:
            current, seen, step = current + TENS[token.low], "tens", 1.0
        elif token.low == "hundred" and (seen in {"units", "tens", ""} or (group and end == index)):
            current, seen, step = (current or 1.0) * 100, "hundred", 1.0
        elif (
            token.low in SCALES
            and len(token.low) > 3
            and (seen in {"units", "tens", "hundred"} or (group and end == index))
        ):
            scale = SCALES[token.low]
            total, current, seen, step = total + (current or 1.0) * scale, 0.0, "scale", scale
            step = 1.0 if scale == SCALES["dozen"] else scale  # a dozen is an exact count
        else:
            break
        end = place + 1
        place = _next_word(tokens, end, after=seen)
    if end == index:
        return None
    number = Number(total + current, step, end, scale=scale, words=True)
    return _point(tokens, number)


def _next_word(tokens: Sequence[Lexeme], index: int, *, after: str) -> int:
    """Skip the hyphen of twenty-five and the and of two hundred and five."""
    if at(tokens, index).text == "-" and at(tokens, index).glued and at(tokens, index + 1).glued:
        return index + 1
    follows = at(tokens, index + 1).low
    if after in {"hundred", "scale"} and at(tokens, index).low == "and" and (follows in UNITS or follows in TENS):
        return index + 1
    return index


def _point(tokens: Sequence[Lexeme], number: Number) -> Number:
    """Read three point five, and its scale."""
    if at(tokens, number.end).low != "point" or at(tokens, number.end + 1).low not in UNITS or number.value >= 1000:
        return number
    end, digits = number.end + 1, ""
    while at(tokens, end).low in UNITS and UNITS[tokens[end].low] < 10:
        digits += str(UNITS[tokens[end].low])
        end += 1
    if not digits:
        return number
    value = float(f"{int(number.value)}.{digits}")
    return scaled(tokens, replace(number, value=value, step=10.0 ** -len(digits), end=end, scale=1.0), money=False)


def and_a_half(tokens: Sequence[Lexeme], number: Number) -> Number:
    """Read one and a half, two and three quarters, a million and a half, and their scale."""
    index = number.end
    if at(tokens, index).low != "and" or number.fraction:
        return number
    count, part = (1, index + 2) if at(tokens, index + 1).low in {"a", "one"} else (3, index + 2)
    if at(tokens, index + 1).low not in {"a", "one", "three"} or at(tokens, part).low not in {
        "half",
        "quarter",
        "quarters",
    }:
        return number
    whole = number.scale if number.scale > 1 else 1.0
    value = number.value + count / PARTS[tokens[part].low] * whole
    grown = replace(number, value=value, step=0.1 * whole, end=part + 1)
    return scaled(tokens, grown, money=False) if whole == 1.0 else grown
