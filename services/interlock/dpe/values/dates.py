"""Parser for dates: days, months, years and weekdays, and through periods.py spans and times (SPEC-005 §5.2).

Words relative to the day of reading (yesterday, last year) are no dates.
"""

from collections.abc import Sequence

from interlock.dpe.text.lexing import NUMBER, WORD, Lexeme, at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.moments import DateRead, Moment, full_year, only, year_at
from interlock.dpe.values.numerals import ORDINALS, TENS, UNITS, is_hyphen
from interlock.dpe.values.periods import (
    PERIOD_WORDS,
    SUFFIXES,
    is_before_christ,
    read_century,
    read_clock,
    read_decade,
    read_dotted_clock,
    read_noon,
    read_quarter,
    read_spoken_clock,
    read_spoken_year,
)

MONTHS = {
    name: month
    for month, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
            "september sept sep", "october oct", "november nov", "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
WEEKDAYS = {
    form: day
    for day, names in enumerate(
        (
            "monday mondays mon",
            "tuesday tuesdays tue tues",
            "wednesday wednesdays wed",
            "thursday thursdays thu thur thurs",
            "friday fridays fri",
            "saturday saturdays sat",
            "sunday sundays sun",
        )
    )
    for form in names.split()
}
"""Names of the days in full, in the plural and in short forms, with their number from Monday on."""
# Words before a bare number that make it a year, and before a month name that is also a word.
_YEAR_CUES = word_set(
    "in since until till by from during of before after circa ca early late mid year years through between and or "
    "around to than the fy cy spring summer autumn fall winter january february march april may june july august "
    "september october november december"
)
_MONTH_CUES = word_set(
    "in of by since until till from to through during before after early late mid last next this between and every"
)
_TO_ANOTHER_DAY = frozenset({"to", "until", "till", "through", "and"})
_LEAST_OF_WEEKDAY = 6  # letters of Monday; Sun and Wed are also words
_DIGITS_OF_A_MONTH = 2
_FIRST_OF_LABELS, _LAST_OF_LABELS = 1900, 2100
_LONGEST_SPAN = 120  # maximum years of a span: 2007-2008
# The lower-case words that a date can begin with.
BEGINNINGS = frozenset(MONTHS.keys() | WEEKDAYS.keys() | ORDINALS.keys() | TENS.keys() | UNITS.keys() | PERIOD_WORDS)


def read_date(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Return the date that begins at a token, or ``None``. The longest form wins."""
    token = at(tokens, index)
    if token.kind == NUMBER:
        return (
            _read_iso(tokens, index)
            or _read_slashed(tokens, index)
            or _read_month_of_year(tokens, index)
            or read_clock(tokens, index)
            or read_spoken_clock(tokens, index)
            or read_dotted_clock(tokens, index)
            or _read_day_first(tokens, index)
            or _read_first_of_days(tokens, index)
            or read_quarter(tokens, index)
            or read_decade(tokens, index)
            or read_century(tokens, index)
            or _read_year(tokens, index)
        )
    if token.kind == WORD:
        return (
            _read_month_first(tokens, index)
            or read_quarter(tokens, index)
            or _read_weekday(tokens, index)
            or _read_day_first(tokens, index)
            or read_decade(tokens, index)
            or read_century(tokens, index)
            or read_noon(tokens, index)
            or read_spoken_clock(tokens, index)
            or read_spoken_year(tokens, index)
        )
    return read_decade(tokens, index) if token.text == "'" else None


def _read_iso(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Read 2026-05-25 and 2026/05/25, with or without a time."""
    year, first, month, second, day = (at(tokens, index + step) for step in range(5))
    if first.text not in {"-", "/", "."} or second.text != first.text or not (first.glued and day.glued):
        return None
    if len(year.text) != 4 or not (year.text.isdigit() and _in(month, 12) and _in(day, 31)):
        return None
    end, minute = index + 5, None
    if at(tokens, end).low == "t" and at(tokens, end).glued and at(tokens, end + 1).kind == NUMBER:
        clock = read_clock(tokens, end + 1)
        end = clock.end if clock else end + 2
        minute = (clock.moment.minute or None) if clock else None  # midnight stands for a day without a time
        while at(tokens, end).glued and at(tokens, end).low in {":", "z", "+"} | {
            at(tokens, end).low if at(tokens, end).kind == NUMBER else "z"
        }:
            end += 1
    number = int(month.text)
    return DateRead(Moment(only(int(year.text)), (number, number), int(day.text), minute=minute), end)


def _in(token: Lexeme, most: int) -> bool:
    return token.text.isdigit() and len(token.text) <= 2 and 1 <= int(token.text) <= most


def _read_slashed(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Read 25/05/2026, 5/25/26, 25.05.2026. If the order is ambiguous, both readings are kept."""
    first, mark, second, again, last = (at(tokens, index + step) for step in range(5))
    if first.text.count(".") == 2:
        return _read_dotted(first.text, index)
    if (
        mark.text not in {"/", "-"}
        or again.text != mark.text
        or not (mark.glued and second.glued and again.glued and last.glued)
    ):
        return None
    if not (_in(first, 31) and _in(second, 31)) or not (last.text.isdigit() and len(last.text) in {2, 4}):
        return None
    return _day_and_month(int(first.text), int(second.text), full_year(last.text), index + 5)


def _read_month_of_year(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Read 09/2021, as labels and forms write a month: two digits and a year of four."""
    month, mark, year = (at(tokens, index + step) for step in range(3))
    if mark.text != "/" or not (mark.glued and year.glued) or at(tokens, index + 3).text == "/":
        return None
    if len(month.text) != _DIGITS_OF_A_MONTH or not _in(month, 12) or not (year.text.isdigit() and len(year.text) == 4):
        return None
    if not _FIRST_OF_LABELS <= int(year.text) <= _LAST_OF_LABELS:
        return None
    number = int(month.text)
    return DateRead(Moment(only(int(year.text)), (number, number)), index + 3)


def _read_dotted(text: str, index: int) -> DateRead | None:
    parts = text.split(".")
    if (
        not all(part.isdigit() for part in parts)
        or [len(part) for part in parts[:2]] > [2, 2]
        or len(parts[2]) not in {2, 4}
    ):
        return None
    if len(parts[2]) == 2 and not (len(parts[0]) == len(parts[1]) == 2):
        return None  # more likely a version
    return _day_and_month(int(parts[0]), int(parts[1]), full_year(parts[2]), index + 1)


def _day_and_month(first: int, second: int, year: int, end: int) -> DateRead | None:
    if not (0 < first <= 31 and 0 < second <= 31) or (first > 12 and second > 12):
        return None
    day, month = (first, second) if second <= 12 else (second, first)
    ambiguous = first <= 12 and second <= 12 and first != second
    return DateRead(Moment(only(year), (month, month), day, other=(day, month) if ambiguous else None), end)


def _read_day_first(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Read 25 May 2026, 25th of May, the twenty-fifth of May, 25-May-2026."""
    day, end = _read_day(tokens, index)
    if day is None:
        return None
    if at(tokens, end).low == "of" or is_hyphen(tokens, end):
        end += 1
    month = month_at(tokens, end)
    if month is None:
        return None
    end += 1 + (at(tokens, end + 1).text == "." and len(tokens[end].text) < 5)
    if at(tokens, end).text == "," or is_hyphen(tokens, end):
        year, stop = year_at(tokens, end + 1), end + 2
    else:
        year, stop = year_at(tokens, end), end + 1
    return DateRead(Moment(only(year), (month, month), day), stop if year else end)


def _read_first_of_days(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Read the 23 of 23 to 26 June 2026, whose month and year stand with the other day."""
    day, end = _read_day(tokens, index)
    if day is None or not (is_hyphen(tokens, end) or at(tokens, end).low in _TO_ANOTHER_DAY):
        return None
    other = _read_day_first(tokens, end + 1)
    if other is None or other.moment.day is None or other.moment.day <= day:
        return None
    return DateRead(Moment(other.moment.years, other.moment.months, day), end)


def _read_day(tokens: Sequence[Lexeme], index: int) -> tuple[int | None, int]:
    token, follows = at(tokens, index), at(tokens, index + 1)
    if _in(token, 31):
        return int(token.text), index + 2 if follows.glued and follows.low in SUFFIXES else index + 1
    ordinal = ORDINALS.get(token.low)
    if token.low in TENS and is_hyphen(tokens, index + 1) and at(tokens, index + 2).low in ORDINALS:
        ordinal, index = TENS[token.low] + ORDINALS[tokens[index + 2].low], index + 2
    return (ordinal, index + 1) if ordinal and ordinal <= 31 else (None, index)


def month_at(tokens: Sequence[Lexeme], index: int) -> int | None:
    token = at(tokens, index)
    return MONTHS.get(token.low) if token.capital or len(token.text) > 5 else None


def _read_month_first(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Read May 25, 2026; May 25th; May 2026; May."""
    month = month_at(tokens, index)
    if month is None:
        return None
    end = index + 1 + (at(tokens, index + 1).text == "." and len(tokens[index].text) < 5)
    if at(tokens, end).low == "of" and year_at(tokens, end + 1):
        return DateRead(Moment(only(year_at(tokens, end + 1)), (month, month)), end + 2)
    comma = at(tokens, end).text == "," or is_hyphen(tokens, end)
    if year_at(tokens, end + comma):
        return DateRead(Moment(only(year_at(tokens, end + comma)), (month, month)), end + comma + 1)
    day, stop = _read_day(tokens, end + (at(tokens, end).low == "the"))
    if day is not None and at(tokens, stop).text != "%":
        comma = at(tokens, stop).text == ","
        year = year_at(tokens, stop + comma)
        return DateRead(Moment(only(year), (month, month), day), stop + comma + 1 if year else stop)
    return DateRead(Moment(None, (month, month)), end) if _stands_alone(tokens, index, end) else None


def _stands_alone(tokens: Sequence[Lexeme], index: int, end: int) -> bool:
    """Whether a month name without day and year is a month. May, March and the short forms are also words."""
    before = at(tokens, index - 1)
    if len(tokens[index].text) > 5:
        return True
    if tokens[index].low in {"may", "march", "jan", "mar", "jun", "dec"}:
        return before.low in _MONTH_CUES and not at(tokens, end).capital
    return not before.capital and not at(tokens, end).capital


def _read_weekday(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    token = at(tokens, index)
    weekday = WEEKDAYS.get(token.low)
    if weekday is None or not (token.capital or len(token.text) >= _LEAST_OF_WEEKDAY):
        return None
    comma = index + 1 + (at(tokens, index + 1).text == ".")
    comma += at(tokens, comma).text == ","
    inner = _read_month_first(tokens, comma) or _read_day_first(tokens, comma)
    if inner and inner.moment.day:
        return DateRead(Moment(inner.moment.years, inner.moment.months, inner.moment.day, weekday), inner.end)
    return DateRead(Moment(weekday=weekday), index + 1) if len(token.text) >= _LEAST_OF_WEEKDAY else None


def _read_year(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Read a bare year if its context makes it one; see ``_is_year``."""
    token = at(tokens, index)
    if token.text.isdigit() and len(token.text) <= 5 and is_before_christ(tokens, index + 1):
        return DateRead(Moment(only(-int(token.text))), index + 2)
    year = year_at(tokens, index)
    return DateRead(Moment(only(year)), index + 1) if year and _is_year(tokens, index) else None


def _is_year(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether a bare number of four digits is a year and not a count."""
    before, after = at(tokens, index - 1), at(tokens, index + 1)
    year = int(tokens[index].text)
    if before.text in {"$", "€", "£", "#"} or after.text == "%" or before.low in {"no", "number"}:
        return False
    if (
        before.low == "from"
        and after.low == "to"
        and year_at(tokens, index + 2) is None
        and at(tokens, index + 2).kind == NUMBER
    ):
        return False  # from 2000 to 600000 supporters
    if (
        year >= 1500
        and after.text == "-"
        and after.glued
        and 0 <= (year_at(tokens, index + 2) or 0) - year <= _LONGEST_SPAN
    ):
        return True  # 2007-2008
    if before.low in _YEAR_CUES or is_hyphen(tokens, index - 1) or before.text in {"(", "'", "/"}:
        return 1100 <= year <= 2100 or before.low in {"in", "year"}
    counted = (
        after.kind == WORD
        and after.text.islower()
        and after.low.endswith(("s", "people", "men", "women", "children"))
        and after.low not in {"was", "is", "has", "as"}
    )
    return 1500 <= year <= 2100 and not counted and not after.glued
