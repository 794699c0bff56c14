"""Numerals: number words, number suffixes, and the scales that multiply them (SPEC-005 §5.2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from interlock.dpe.text.lexing import SYMBOL, Lexeme, at

UNITS = {
    word: value
    for value, word in enumerate(
        (
            "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
            "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
        )
    )
}  # fmt: skip
TENS = {
    word: value * 10
    for value, word in enumerate(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), start=2
    )
}
SCALES = {
    "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "quadrillion": 1e15, "lakh": 1e5,
    "crore": 1e7, "dozen": 12.0, "mn": 1e6, "mln": 1e6, "mio": 1e6, "bn": 1e9, "bln": 1e9, "tn": 1e12, "trn": 1e12,
}  # fmt: skip
# Letters that scale an adjacent number: 1.2M, 70B, 10k.
SUFFIXES = {"k": 1e3, "K": 1e3, "M": 1e6, "MM": 1e6, "B": 1e9, "T": 1e12}
MONEY_SUFFIXES = {**SUFFIXES, "m": 1e6, "b": 1e9, "t": 1e12}
VAGUE = {
    "dozens": 12.0, "hundreds": 1e2, "thousands": 1e3, "millions": 1e6, "billions": 1e9, "trillions": 1e12,
    "lakhs": 1e5, "crores": 1e7,
}  # fmt: skip
PARTS = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4, "fifth": 5,
    "fifths": 5, "sixth": 6, "sixths": 6, "seventh": 7, "sevenths": 7, "eighth": 8, "eighths": 8, "ninth": 9,
    "ninths": 9, "tenth": 10, "tenths": 10,
}  # fmt: skip
ORDINALS = {
    word: value
    for value, word in enumerate(
        (
            "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
            "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
        ),
        start=1,
    )
} | {
    "twentieth": 20, "thirtieth": 30, "fortieth": 40, "fiftieth": 50, "sixtieth": 60, "seventieth": 70, "eightieth": 80,
    "ninetieth": 90, "hundredth": 100, "thousandth": 1000,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Number:
    """A parsed number.

    ``step`` is the place value of the last stated digit: 1.2 million has a step of 100,000.
    """

    value: float
    step: float
    end: int  # index of the first token after it
    scale: float = 1.0
    digits: str = ""  # significant digits as written, for digit swaps
    words: bool = False  # written in words
    plain: bool = False  # digits only: may be a year
    fraction: bool = False


def is_hyphen(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether a token is a hyphen that joins its neighbours."""
    return (
        at(tokens, index).kind == SYMBOL
        and at(tokens, index).text == "-"
        and at(tokens, index).glued
        and at(tokens, index + 1).glued
    )


def scaled(tokens: Sequence[Lexeme], number: Number, *, money: bool) -> Number:
    """Multiply by the scales that follow: 4.2 million, 5 hundred thousand, 1.2M, 10^6, 3 dozen."""
    number = _exponent(tokens, number)
    while True:
        index = number.end
        hyphen = at(tokens, index).text == "-" and at(tokens, index).glued and at(tokens, index + 1).glued
        token = at(tokens, index + hyphen)
        suffixes = MONEY_SUFFIXES if money else SUFFIXES
        if token.glued and not hyphen and number.scale == 1.0 and token.text in suffixes:
            scale = suffixes[token.text]
        elif token.low in SCALES and not _is_next_ordinal(tokens, index + hyphen):
            scale = SCALES[token.low]
        else:
            return number
        step = number.step if scale == SCALES["dozen"] else number.step * scale  # a dozen is an exact count
        number = replace(
            number,
            value=number.value * scale,
            step=step,
            scale=number.scale * scale,
            end=index + hyphen + 1,
            plain=False,
        )


def _is_next_ordinal(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether a scale word is part of an ordinal such as two hundred and first."""
    return at(tokens, index + 1).text == "-" and at(tokens, index + 2).low in ORDINALS and at(tokens, index + 2).glued


def _exponent(tokens: Sequence[Lexeme], number: Number) -> Number:
    """Read 10^6, and 3.2 x 10^6."""
    index = number.end
    if (
        at(tokens, index).low in {"x", "×", "·"}
        and at(tokens, index + 1).text == "10"
        and at(tokens, index + 2).text == "^"
    ):
        power, end = at(tokens, index + 3).text, index + 4
        factor = number.value
    elif number.value == 10 and number.plain and at(tokens, index).text == "^" and at(tokens, index).glued:
        power, end = at(tokens, index + 1).text, index + 2
        factor = 1.0
    else:
        return number
    if not power.isdigit() or int(power[:3]) > 24:
        return number
    scale = 10.0 ** int(power)
    return replace(number, value=factor * scale, step=number.step * scale, scale=scale, end=end, plain=False)
