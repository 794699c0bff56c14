"""Parser for numbers that identify: list markers, Article 22, version 3.1, GPT-4, telephone numbers (SPEC-005 §5.2)."""

from collections.abc import Sequence

from interlock.dpe.text.lexing import NUMBER, WORD, Lexeme, at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values import dates, numbers, numerals, units
from interlock.dpe.values.quantities import NUMBER as KIND_NUMBER
from interlock.dpe.values.quantities import Value

_KINDS = {
    "article": "articles article art", "section": "section sections sec §", "clause": "clause clauses",
    "chapter": "chapter chapters", "annex": "annex", "appendix": "appendix", "table": "table tables",
    "figure": "figure figures fig", "page": "page pages", "paragraph": "paragraph paragraphs para",
    "version": "version versions v ver", "regulation": "regulation", "directive": "directive", "rule": "rule",
    "recital": "recital recitals", "rfc": "rfc", "iso": "iso", "step": "step", "item": "item", "question": "question",
    "id": "id", "isbn": "isbn", "room": "room", "flight": "flight", "channel": "channel",
}  # fmt: skip
LABELS = {spelling: kind for kind, spellings in _KINDS.items() for spelling in spellings.split()}
_VERSIONED = frozenset(
    {"python", "java", "tls", "http", "usb", "node", "ios", "android", "windows", "ubuntu", "bluetooth", "unicode"}
)
# Prefixes before a hyphen, so that the number after it is a number: mid-2020, pre-1990, sub-30.
_PREFIXES = word_set("mid pre post early late q h fy cy non sub over under us c ca")
_CURRENCY_CODES = frozenset(unit.measure for unit in units.CURRENCIES.values())
BEGINNINGS = LABELS.keys() | _VERSIONED


def is_list_marker(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether a number only marks a list item: 1. or 2) at the start of a line."""
    token, mark, item = tokens[index], at(tokens, index + 1), at(tokens, index + 2)
    if token.kind != NUMBER or not token.opens_line or not token.text.isdigit() or len(token.text) > 2:
        return False
    return mark.text in {".", ")"} and mark.glued and item.text != "" and not item.glued


def reference_end(tokens: Sequence[Lexeme], index: int) -> int:
    """Return the index after a reference such as [12] or [3, 5-7], or 0."""
    if tokens[index].text != "[":
        return 0
    end = index + 1
    while at(tokens, end).text in {",", "-"} or (at(tokens, end).text.isdigit() and len(at(tokens, end).text) <= 3):
        end += 1
    return end + 1 if end > index + 1 and at(tokens, end).text == "]" else 0


def name_end(tokens: Sequence[Lexeme], index: int) -> int:
    """Return the index after a name with digits (B2B, COVID-19, GPT-4, 5G), or 0."""
    token, follows, third = tokens[index], at(tokens, index + 1), at(tokens, index + 2)
    if token.kind == NUMBER:
        return index + 2 if token.text.isdigit() and follows.glued and follows.text in {"G", "D"} else 0
    if token.kind != WORD:
        return 0
    if follows.kind == NUMBER and follows.glued and not _may_precede(token, follows):
        return _end_of_word(tokens, index + 1)
    hyphen = numerals.is_hyphen(tokens, index + 1) and third.kind == NUMBER
    if hyphen and token.capital and token.low not in dates.MONTHS and token.low not in _PREFIXES:
        return _end_of_word(tokens, index + 2)
    return 0


def _may_precede(token: Lexeme, number: Lexeme) -> bool:
    """Whether a number adjacent to this word stays a number: US$5, Q3, FY25, v2."""
    if token.text in {"Q", "H"}:
        return number.text in {"1", "2", "3", "4"}
    return token.low in units.CURRENCIES or token.low in LABELS or token.text in {"FY", "CY", "c"}


def _end_of_word(tokens: Sequence[Lexeme], index: int) -> int:
    index += 1
    while at(tokens, index).glued and at(tokens, index).kind in {WORD, NUMBER}:
        index += 1
    return index


def read_label(tokens: Sequence[Lexeme], index: int) -> tuple[list[Value], int] | None:
    """Read an identifying number: Article 22(1), v2, Directive (EU) 2019/790, 1.2.3, 24/7, a telephone number."""
    token = tokens[index]
    if token.kind == NUMBER or token.text in {"+", "("}:
        return _read_telephone(tokens, index) or _read_version(tokens, index) or _read_slashed(tokens, index)
    kind = LABELS.get(token.low)
    if kind is None and token.capital and token.low in _VERSIONED and "." in at(tokens, index + 1).text:
        kind = "version"
    if kind is None:
        return None
    place = _after_words(tokens, index + 1)
    if at(tokens, place).kind != NUMBER or _is_amount(tokens, place):
        return None
    return _labels(tokens, kind, index, place)


def _is_amount(tokens: Sequence[Lexeme], place: int) -> bool:
    """Whether the number behind a label's word is an amount: a room 1,450 NOK a night, a table 90 euros."""
    after = at(tokens, place + 1)
    return (
        "," in tokens[place].text or after.text == "%" or after.low in units.CURRENCIES or after.text in _CURRENCY_CODES
    )


def _after_words(tokens: Sequence[Lexeme], place: int) -> int:
    """Skip what stands between a label's word and its number: the dot of Art., (EU), No., #."""
    place += at(tokens, place).text == "." and at(tokens, place).glued
    if at(tokens, place).text == "(" and at(tokens, place + 2).text == ")" and at(tokens, place + 1).text.isupper():
        place += 3
    if at(tokens, place).low in {"no", "number", "§", "#"}:
        place += 1
        place += at(tokens, place).text == "." and at(tokens, place + 1).kind == NUMBER
    return place


def _labels(tokens: Sequence[Lexeme], kind: str, first: int, place: int) -> tuple[list[Value], int]:
    """Read the number of a label, and further ones: Articles 9 and 10, pages 3-5."""
    found: list[Value] = []
    while True:
        end = _end_of_label(tokens, place)
        written = "".join(token.text for token in tokens[place:end])
        found.append(_label(kind, written, first, end))
        follows = at(tokens, end + 1)
        joined = (
            at(tokens, end).low in {"-", "and", "to", "or"}
            and follows.kind == NUMBER
            and follows.text.isdigit()
            and len(follows.text) < 4
        )
        if not joined or at(tokens, end + 2).kind == WORD or at(tokens, end + 2).text == "%":
            return found, end
        first = place = end + 1


def _end_of_label(tokens: Sequence[Lexeme], place: int) -> int:
    """Return the index after a label's number: 5.3, 2016/679, 22(1)(d)."""
    end = place + 1
    while True:
        mark, inner = at(tokens, end), at(tokens, end + 1)
        if mark.text == "/" and mark.glued and inner.glued and inner.kind == NUMBER:
            end += 2
        elif mark.text == "(" and mark.glued and at(tokens, end + 2).text == ")" and len(inner.text) <= 3:
            end += 3
        else:
            return end


def _label(kind: str, written: str, first: int, last: int) -> Value:
    return Value(KIND_NUMBER, "", 0, 0, unit=f"label:{kind}", label=written, first=first, last=last)


def _read_version(tokens: Sequence[Lexeme], index: int) -> tuple[list[Value], int] | None:
    token = tokens[index]
    if token.text.count(".") < 2 or numbers.parse_digits(token.text) is not None or dates.read_date(tokens, index):
        return None
    return [_label("version", token.text, index, index + 1)], index + 1


def _read_slashed(tokens: Sequence[Lexeme], index: int) -> tuple[list[Value], int] | None:
    """Read 24/7 and 9/11, which are no fractions. 1/2 before a unit or of is one and is not read here."""
    token, slash, other = tokens[index], at(tokens, index + 1), at(tokens, index + 2)
    if slash.text != "/" or not (slash.glued and other.glued) or not (token.text.isdigit() and other.text.isdigit()):
        return None
    if numbers.is_plain_fraction(tokens, index):
        return None
    if at(tokens, index + 3).text == "/" or len(token.text) > 3 or len(other.text) > 3:
        return None
    return [_label("slash", f"{token.text}/{other.text}", index, index + 3)], index + 3


def _read_telephone(tokens: Sequence[Lexeme], index: int) -> tuple[list[Value], int] | None:
    """Read groups of digits joined by hyphens, dots or a country code.

    +1 212-555-0199, (212) 555-0199, 212.555.0199.
    """
    end, digits, groups = index, "", 0
    tied = at(tokens, index).text in {"+", "("}
    while True:
        token = at(tokens, end)
        if token.kind == NUMBER and token.text.replace(".", "").isdigit():
            digits += token.text.replace(".", "")
            groups += 1 + token.text.count(".")
        elif not (token.text in {"-", "(", ")", "+", "/"} and groups < 6 and (token.glued or tied or end == index)):
            break
        end += 1
        if end - index > 12 or not (at(tokens, end).glued or tied):
            break
    while end > index and tokens[end - 1].kind != NUMBER:
        end -= 1
    enough = 10 <= len(digits) <= 15 and groups >= 3
    if (
        not enough
        or (not tied and at(tokens, index + 1).text != "-" and "." not in at(tokens, index).text)
        or dates.read_date(tokens, index)
    ):
        return None
    return [_label("telephone", digits, index, end)], end
