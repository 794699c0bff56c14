"""Parser for periods: quarters, halves, decades and centuries, and for spoken years and times (SPEC-005 §5.2)."""

from collections.abc import Sequence

from interlock.dpe.text.lexing import NUMBER, Lexeme, at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.moments import DateRead, Moment, full_year, only, year_at
from interlock.dpe.values.numerals import ORDINALS, TENS, UNITS, is_hyphen

_DECADES = {f"{word[:-1]}ies": value for word, value in TENS.items()}
_QUARTERS = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "final": 4,
    "last": 4,
    "1st": 1,
    "2nd": 2,
    "3rd": 3,
    "4th": 4,
}
# The words that a period or a time of day can begin with.
PERIOD_WORDS = frozenset(_DECADES.keys() | _QUARTERS.keys() | {"noon", "midnight", "half", "quarter"})
SUFFIXES = frozenset({"st", "nd", "rd", "th"})
_BEFORE_HOURS = word_set("at from until till by before after since around about past than")
_NOON_HOUR, _FIRST_OF_NIGHT = 12, 6
_PARTS_OF_DAY = {"morning": 0, "afternoon": 12, "evening": 12}
_AFTER_HOURS = word_set("in on and every until am pm o'clock . , ;") | {""}
_LEAST_PAST, _MOST_PAST = 5, 29
_JOINING = word_set("to until till and") | {"-", "–"}
_BEFORE_DOTTED = word_set("at from until till by before after between to and") | {"-", "–", ","}
_OPENING = word_set(
    """
    open opens opened opening close closes closed closing hours daily weekdays weekday weekends weekend monday mondays mon tuesday tuesdays
    tue tues wednesday wednesdays wed thursday thursdays thu thurs friday fridays fri saturday saturdays sat sunday sundays sun
    """
)
_PER = word_set("a an per % percent")
_PRICED = word_set("price prices priced cost costs share shares stock stocks index rate rates points fee fees worth")
_NEAR = 8
_STEP = 5  # minutes; hours of opening have no odd ones
_LAST_HOUR, _MINUTES = 24, 60
_DIGITS_OF_MINUTES, _DIGITS_OF_AN_HOUR = 2, 2


def read_quarter(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Read Q3 2025, 3Q25, third quarter of 2025, H1 2024, first half of 2024."""
    span, end = _quarter_span(tokens, index)
    if span is None or (at(tokens, end).low == "of" and at(tokens, end + 1).low in {"a", "an"}):
        return None  # the last quarter of an hour is of no year
    stop = end
    while (
        at(tokens, stop).low in {"of", "the", "fiscal", "financial", "year", ",", "-", "'", "fy", "(", "ended"}
        and stop < end + 5
    ):
        stop += 1
    year = year_at(tokens, stop)
    token = at(tokens, stop)
    if year is None and token.kind == NUMBER and len(token.text) == 2 and token.glued and stop > 0:
        year = full_year(token.text)
    if year is None and at(tokens, index - 1).kind == NUMBER:  # 2025 Q3
        before = year_at(tokens, index - 1)
        return DateRead(Moment(only(before), span), end)
    return DateRead(Moment(only(year), span), stop + 1 if year else end)


def _quarter_span(tokens: Sequence[Lexeme], index: int) -> tuple[tuple[int, int] | None, int]:
    token, follows = at(tokens, index), at(tokens, index + 1)
    if token.text in {"Q", "H"} and follows.glued and follows.text in {"1", "2", "3", "4"}:
        return _part_span(token.text, int(follows.text)), index + 2
    if token.text in {"1", "2", "3", "4"} and follows.glued and follows.text in {"Q", "H"}:
        return _part_span(follows.text, int(token.text)), index + 2
    place = index + 1 if token.kind == NUMBER and follows.low in SUFFIXES and follows.glued else index
    number = _QUARTERS.get(token.low if place == index else token.text + follows.low)
    place += 1 + is_hyphen(tokens, place + 1)
    part = at(tokens, place).low
    if number is None or part not in {"quarter", "half"}:
        return None, index
    if part == "half" and not _is_half_of_year(tokens, place):
        return None, index
    return _part_span("Q" if part == "quarter" else "H", number), place + 1


def _is_half_of_year(tokens: Sequence[Lexeme], place: int) -> bool:
    """Whether a half is half of a year, not of a match or a century."""
    return any(year_at(tokens, place + step) for step in (1, 2, 3)) and at(tokens, place + 1).low in {
        "of",
        "fiscal",
    } | {at(tokens, place + 1).text}


def _part_span(part: str, number: int) -> tuple[int, int] | None:
    if part == "Q":
        return number * 3 - 2, number * 3
    return (number * 6 - 5, number * 6) if number <= 2 else None


def read_decade(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Read the 1990s, the '90s, the nineties, the nineteen-nineties."""
    token, follows = at(tokens, index), at(tokens, index + 1)
    if token.text == "'":
        token, follows, index = follows, at(tokens, index + 2), index + 1
    apostrophe = follows.text == "'" and follows.glued and at(tokens, index + 2).low == "s"
    plural = (follows.low == "s" and follows.glued) or apostrophe
    if token.kind == NUMBER and token.text.isdigit() and token.text.endswith("0") and plural:
        end = index + 2 + apostrophe
        if len(token.text) == 4:
            first = int(token.text)
            return DateRead(Moment((first, first + (99 if token.text.endswith("00") else 9))), end)
        if len(token.text) == 2 and int(token.text) >= 20:
            return DateRead(Moment(_decade(int(token.text))), end)
    if token.low in _DECADES and at(tokens, index - 1).low in {"the", "early", "late", "mid", "-"}:
        return DateRead(Moment(_decade(_DECADES[token.low])), index + 1)
    return None


def _decade(first: int) -> tuple[int, int]:
    start = 1900 + first if first >= 30 else 2000 + first
    return start, start + 9


def read_century(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Read the 19th century, the nineteenth century."""
    token, follows = at(tokens, index), at(tokens, index + 1)
    number, place = ORDINALS.get(token.low), index + 1
    if (
        token.kind == NUMBER
        and token.text.isdigit()
        and follows.low in SUFFIXES
        and follows.glued
        and len(token.text) <= 2
    ):
        number, place = int(token.text), index + 2
    elif token.low == "twenty" and is_hyphen(tokens, index + 1) and at(tokens, index + 2).low == "first":
        number, place = 21, index + 3
    place += is_hyphen(tokens, place)
    if not number or number > 30 or at(tokens, place).low != "century":
        return None
    first, last = number * 100 - 100, number * 100
    if is_before_christ(tokens, place + 1):
        first, last = -last, -first
    return DateRead(Moment((first, last)), place + 1)


def is_before_christ(tokens: Sequence[Lexeme], index: int) -> bool:
    return at(tokens, index).text in {"BC", "BCE"}


def read_spoken_year(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Read nineteen eighty-four and twenty twenty-five."""
    century = UNITS.get(at(tokens, index).low, TENS.get(at(tokens, index).low, 0))
    tens = TENS.get(at(tokens, index + 1).low, 0)
    if century not in range(15, 21) or not tens or at(tokens, index - 1).text == "-":
        return None
    end, rest = index + 2, 0
    if is_hyphen(tokens, end) and 0 < UNITS.get(at(tokens, end + 1).low, 0) < 10:
        rest, end = UNITS[tokens[end + 1].low], end + 2
    elif 0 < UNITS.get(at(tokens, end).low, 0) < 10:
        rest, end = UNITS[tokens[end].low], end + 1
    return DateRead(Moment(only(century * 100 + tens + rest)), end)


def read_clock(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Read 10:30, 17:05:09, 5 pm, 10.30 a.m., 6:30 in the evening and, behind a word such as *at*, 6 in the evening."""
    token, colon, minutes = at(tokens, index), at(tokens, index + 1), at(tokens, index + 2)
    if not token.text.isdigit() or len(token.text) > 2 or int(token.text) > 24:
        return None
    hour, minute, end = int(token.text), 0, index + 1
    timed = (
        colon.text == ":"
        and colon.glued
        and minutes.glued
        and len(minutes.text) == 2
        and minutes.text.isdigit()
        and int(minutes.text) < 60
    )
    if timed:
        minute, end = int(minutes.text), index + 3
        if at(tokens, end).text == ":" and at(tokens, end + 1).glued and at(tokens, end + 1).kind == NUMBER:
            end += 2
    half, end_of_half = half_of_day(tokens, end)
    if half is None and (timed or at(tokens, index - 1).low in _BEFORE_HOURS):
        half, end_of_half = _part_of_day(tokens, end, hour)
    if half is None or (timed and hour > _NOON_HOUR):
        return DateRead(Moment(minute=(hour * 60 + minute) % 1440), end) if timed else None
    if hour > _NOON_HOUR or hour == 0:
        return None
    return DateRead(Moment(minute=(hour % 12 + half) * 60 + minute), end_of_half)


def read_spoken_clock(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Read half past two, quarter to seven, ten past eight, 3 o'clock and, behind a word such as *at*, six in the evening.

    A time that does not say of which half of the day it is may be of either.
    """
    minute, place = _past(tokens, index)
    hour = _hour(tokens, place)
    if hour is None:
        return None
    end = place + 1
    clocked = at(tokens, end).low == "o'clock"
    end += clocked
    half, end_of_half = half_of_day(tokens, end)
    if half is None:
        half, end_of_half = _part_of_day(tokens, end, hour)
    told = clocked or place > index
    if half is None:
        return DateRead(Moment(minute=(hour % 12) * 60 + minute, either_half=True), end) if told else None
    if not told and at(tokens, index - 1).low not in _BEFORE_HOURS:
        return None  # two tablets, one in the morning
    return DateRead(Moment(minute=((hour % 12 + half) * 60 + minute) % 1440), end_of_half)


def _past(tokens: Sequence[Lexeme], index: int) -> tuple[int, int]:
    """Return the minutes that are told before an hour, negative ones before it comes, and the place of the hour."""
    token, joint = at(tokens, index), at(tokens, index + 1).low
    if joint == "past":
        spoken = {"half": 30, "quarter": 15}.get(token.low) or UNITS.get(token.low) or TENS.get(token.low)
        minutes = spoken or (int(token.text) if token.text.isdigit() and len(token.text) <= 2 else 0)
        quarters = token.low in {"half", "quarter"}
        return (minutes, index + 2) if quarters or _LEAST_PAST <= minutes <= _MOST_PAST else (0, index)
    if joint == "to" and (token.low == "quarter" or _is_spoken_to(tokens, index)):
        return -({"quarter": 15} | UNITS | TENS)[token.low], index + 2
    return 0, index


def _is_spoken_to(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether a number before *to* counts the minutes before an hour, *at ten to eight*, and opens no range: *at ten to twelve degrees*."""
    follows = at(tokens, index + 3)
    counts = at(tokens, index).low in {"five", "ten", "twenty"}
    return counts and at(tokens, index - 1).low in {"at", "until", "by"} and follows.low in _AFTER_HOURS


def _hour(tokens: Sequence[Lexeme], index: int) -> int | None:
    token = at(tokens, index)
    hour = UNITS.get(token.low) or (int(token.text) if token.text.isdigit() and len(token.text) <= 2 else 0)
    return hour if 1 <= hour <= _NOON_HOUR else None


def _part_of_day(tokens: Sequence[Lexeme], index: int, hour: int) -> tuple[int | None, int]:
    """Return 0 for the first half of the day and 12 for the second, and the index after *in the evening* or *at night*."""
    lows = [at(tokens, index + step).low for step in range(3)]
    if lows[:2] == ["in", "the"] and lows[2] in _PARTS_OF_DAY:
        return _PARTS_OF_DAY[lows[2]], index + 3
    if lows[:2] == ["at", "night"]:
        return (12 if _FIRST_OF_NIGHT <= hour < _NOON_HOUR else 0), index + 2
    return None, index


def half_of_day(tokens: Sequence[Lexeme], index: int) -> tuple[int | None, int]:
    """Return 0 for a.m. and 12 for p.m., and the index after it."""
    low = at(tokens, index).low
    if low in {"am", "pm"} and at(tokens, index).text != "Am":
        return (0 if low == "am" else 12), index + 1
    dotted = [at(tokens, index + step).low for step in range(4)]
    if dotted[0] in {"a", "p"} and dotted[1:] == [".", "m", "."] and at(tokens, index + 1).glued:
        return (0 if low == "a" else 12), index + 4
    return None, index


def read_noon(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    low = at(tokens, index).low
    return DateRead(Moment(minute=720 if low == "noon" else 0), index + 1) if low in {"noon", "midnight"} else None


def read_dotted_clock(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Read 8.30 and 18.30 in *Monday to Friday 8.30 to 18.30* and in *open until 18.30*. So is 10.30 a.m.; without a word for opening or a day it is a figure."""
    minute = _minute(at(tokens, index).text)
    if minute is None:
        return None
    half, end = half_of_day(tokens, index + 1)
    if half is not None:
        return DateRead(Moment(minute=minute % (_NOON_HOUR * _MINUTES) + half * _MINUTES), end)
    before, after = at(tokens, index - 1).low if index else "", at(tokens, index + 1).low
    ranges = (after in _JOINING and _minute(at(tokens, index + 2).text) is not None) or (
        before in _JOINING and index > 1 and _minute(at(tokens, index - 2).text) is not None
    )
    if not ranges and before not in _BEFORE_DOTTED:
        return None
    near = {each.low for each in tokens[max(0, index - _NEAR) : index + _NEAR]}
    behind = at(tokens, index + 3).low if after in _JOINING else after
    measured = behind in _PER or not near.isdisjoint(_PRICED) or minute % _STEP
    return None if measured or near.isdisjoint(_OPENING) else DateRead(Moment(minute=minute), index + 1)


def _minute(text: str) -> int | None:
    """Return the minute of the day that a text writes with a dot, or ``None``."""
    hour, dot, minutes = text.partition(".")
    if not (dot and hour.isdigit() and minutes.isdigit()) or len(minutes) != _DIGITS_OF_MINUTES:
        return None
    if len(hour) > _DIGITS_OF_AN_HOUR or int(hour) > _LAST_HOUR or int(minutes) >= _MINUTES:
        return None
    return (int(hour) * _MINUTES + int(minutes)) % (_LAST_HOUR * _MINUTES)
