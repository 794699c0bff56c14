"""Parser for numbers: digits in any grouping, fractions, and numbers in words (SPEC-005 §5.2)."""

from collections.abc import Sequence

from interlock.dpe.text.lexing import NUMBER, WORD, Lexeme, at
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values import units
from interlock.dpe.values.number_words import and_a_half, read_share, read_words
from interlock.dpe.values.numerals import Number, scaled

_GROUPED = pattern(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:'\d{3})+(?:[.,]\d+)?|\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?")
_EUROPEAN = pattern(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}")
_DECIMAL = pattern(r"\d+(?:\.\d+)?")
_COMMA_DECIMAL = pattern(r"\d+,\d{1,2}")
# A float holds 15 digits exactly, and no figure in prose has more. A longer run is an identifier.
_MOST_DIGITS = 15
_PARTS = frozenset({"2", "3", "4", "5", "8", "10", "16", "32", "64"})
_CUT = frozenset({"volume", "length", "mass", "area", units.POUND, units.TIME})


def read_number(tokens: Sequence[Lexeme], index: int, *, money: bool = False) -> Number | None:
    """Return the number that begins at a token, or ``None``. *money* reads 4.2m as millions."""
    token = at(tokens, index)
    if token.kind == NUMBER:
        found = _read_digits(tokens, index, money=money)
        return scaled(tokens, found, money=money) if found else None
    if token.kind == WORD:
        found = read_share(tokens, index) or read_words(tokens, index)
        return and_a_half(tokens, found) if found else None
    return None


def parse_digits(text: str) -> tuple[float, float] | None:
    """Return the value and the step of a run of digits and separators, or ``None`` if it is no number."""
    if sum(character.isdigit() for character in text) > _MOST_DIGITS:
        return None
    if _GROUPED.fullmatch(text):
        plain = text.replace("'", "") if "," not in text else text.replace(",", "").replace("'", "")
        plain = plain if "'" not in text else text.replace("'", "").replace(",", ".")
    elif _EUROPEAN.fullmatch(text):
        plain = text.replace(".", "").replace(",", ".")
    elif _DECIMAL.fullmatch(text):
        plain = text
    elif _COMMA_DECIMAL.fullmatch(text):
        plain = text.replace(",", ".")
    else:
        return None
    decimals = len(plain.partition(".")[2])
    return float(plain), 10.0**-decimals


def _read_digits(tokens: Sequence[Lexeme], index: int, *, money: bool) -> Number | None:
    token = tokens[index]
    parsed = parse_digits(token.text)
    if parsed is None:
        return None
    value, step = parsed
    mixed = _read_fraction(tokens, index)
    if mixed:
        return mixed
    grouped = _read_spaced_groups(tokens, index) or _read_parted_groups(tokens, index, money=money)
    if grouped:
        return grouped
    digits = "".join(character for character in token.text if character.isdigit()).strip("0")
    return Number(value, step, index + 1, digits=digits, plain=token.text.isdigit())


def _read_spaced_groups(tokens: Sequence[Lexeme], index: int) -> Number | None:
    """Read 1 200 000. Groups of three must end in zeros, so that a table row is not one number."""
    end, text = index + 1, tokens[index].text
    if not (text.isdigit() and len(text) <= 3 and text[0] != "0"):
        return None
    while (
        at(tokens, end).kind == NUMBER
        and len(tokens[end].text) == 3
        and tokens[end].text.isdigit()
        and _one_space(tokens, end)
    ):
        text += tokens[end].text
        end += 1
    if end == index + 1 or not text.endswith("000") or len(text) > _MOST_DIGITS:
        return None
    return Number(float(text), 1.0, end, digits=text.strip("0"))


def _read_parted_groups(tokens: Sequence[Lexeme], index: int, *, money: bool) -> Number | None:
    """Read 13, 000 from texts with spaces around punctuation. The last group is zeros, or it is money in two groups."""
    end, text = index + 1, tokens[index].text
    if not (text.isdigit() and len(text) <= 3 and text[0] != "0"):
        return None
    while (
        at(tokens, end).text == ","
        and at(tokens, end + 1).kind == NUMBER
        and len(tokens[end + 1].text) == 3
        and tokens[end + 1].text.isdigit()
        and _one_space(tokens, end + 1)
    ):
        text += tokens[end + 1].text
        end += 2
    groups = (end - index) // 2
    if not groups or not (text.endswith("000") or (money and groups > 1)) or len(text) > _MOST_DIGITS:
        return None
    return Number(float(text), 1.0, end, digits=text.strip("0"))


def _one_space(tokens: Sequence[Lexeme], index: int) -> bool:
    return tokens[index].start == tokens[index - 1].end + 1


def _read_fraction(tokens: Sequence[Lexeme], index: int) -> Number | None:
    """Read 1/2 with a fraction slash, and 3 1/2 with either slash."""
    whole, over = 0.0, index
    if (
        at(tokens, index + 1).kind == NUMBER
        and _is_slash(tokens, index + 2, plain=True)
        and tokens[index].text.isdigit()
    ):
        whole, over = float(tokens[index].text), index + 1
    elif not _is_slash(tokens, index + 1, plain=is_plain_fraction(tokens, index)):
        return None
    above, below = tokens[over].text, at(tokens, over + 2).text
    if (
        not (above.isdigit() and below.isdigit() and 0 < int(below[:4]) <= 100)
        or len(below) > 3
        or int(above[:4]) >= int(below)
    ):
        return None
    value = whole + int(above[:4]) / int(below)
    return Number(value, 0.01, over + 3, fraction=not whole)


def is_plain_fraction(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether 3/4 is three quarters: a unit that is cut into such parts, or *of*, follows it."""
    below, after = at(tokens, index + 2).text, at(tokens, index + 3)
    if below not in _PARTS or not _is_slash(tokens, index + 1, plain=True):
        return False
    unit = units.MEASURES.get(after.low) or units.MEASURES.get(f"{after.low} {at(tokens, index + 4).low}")
    return after.low in {"of", "-"} or (unit is not None and unit.measure in _CUT)


def _is_slash(tokens: Sequence[Lexeme], index: int, *, plain: bool) -> bool:
    token = at(tokens, index)
    return token.text == "\u2044" or (plain and token.text == "/" and token.glued and at(tokens, index + 1).glued)
