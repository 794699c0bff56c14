"""Whether texts show one value of a tool call, by the form of the value (ATT-5).

A normalised form rests on what was said: 2026-06-03 on *June 3rd*, 5400 seconds on *90 minutes*, *Paris, France* on *Paris*,
*MUC* on *München*. An address, a path or an identifier must stand there as it is.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote_plus

from interlock.dpe.grounding.tools.shown import Shown, groups_of, words
from interlock.dpe.request import INSTRUCTION, USER
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values import moments
from interlock.dpe.values.extraction import read
from interlock.dpe.values.frames import STOP, stem
from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import Value

EMAIL = pattern(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
URL = pattern(r"(?:https?://|ftp://|www\.)[^\s<>\"']+", ignore_case=True)
_PATH = pattern(r"(?:~|\.{1,2})?/[\w.@%+~/ -]*|[A-Za-z]:\\[^\n]*|[\w-]+(?:/[\w.-]+)*\.[A-Za-z][A-Za-z0-9]{1,5}")
_ISO = pattern(r"(\d{4})-(\d{2})(?:-(\d{2}))?(?:[T ](\d{2}):(\d{2})(?::\d{2}(?:\.\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?")
_CODE = pattern(r"[#\w\p{L}+][\w\p{L}./#:+ -]*")
_QUARTER = pattern(r"(?:(?P<year>\d{4})[- /]?)?[Qq](?P<number>[1-4])(?:[- /]?(?P<after>\d{4}))?")
_ORDINALS = ("first", "second", "third", "fourth")
_TIMES = (1.0, 60.0, 3600.0, 86_400.0, 604_800.0, 2_629_800.0, 31_557_600.0, 0.001)
_SMALL_UNIT = pattern(r"\b(?:cents?|pence|pennies|minor|smallest)\b|_cents?\b", ignore_case=True)
_PERCENT = 100.0
_DAY = 1440
_MOST_DERIVED = 8
_ENDS = pattern(r"end|until|to_|finish|checkout|check_out|return|departure|due|expir|till", ignore_case=True)
_USUAL_MINUTES = frozenset({15, 30, 45, 60, 90, 120})
_QUALIFIERS = word_set(
    "city town state county province region country republic municipality district of the and de la le international airport"
    " station street avenue inc ltd gmbh corp company co llc plc ag sa university hotel restaurant mr mrs ms dr"
)
_LONGEST_CODE = 6
_LEAST_DIGITS = 3


@dataclass(frozen=True)
class Asked:
    """What a value is for: its key and what the schema says of it, as one text."""

    key: str
    description: str = ""

    @property
    def about(self) -> str:
        return f"{self.key} {self.description}"


def number(value: float, asked: Asked, shown: Shown) -> bool:
    """Whether a number is stated, in its own unit or in that of its key; or is the product or the sum of two that are."""
    if _among(value, shown.amounts) or _among(abs(value), shown.amounts):
        return True
    if any(_among(value * unit, shown.durations) for unit in _TIMES):
        return True
    if _among(value * _PERCENT, shown.shares) or _among(1 - value, (share / _PERCENT for share in shown.shares)):
        return True
    if _SMALL_UNIT.search(asked.about) and _among(value / _PERCENT, shown.amounts):
        return True
    if value.is_integer() and shown.has_signs(str(int(value))):
        return True
    return _part_of_a_date(value, asked.key.lower(), shown) or _derived(value, shown) or _next_to_a_bound(value, shown)


def _among(value: float, stated: Iterable[float]) -> bool:
    return any(abs(value - one) <= 1e-9 * max(1.0, abs(value)) for one in stated)


def _part_of_a_date(value: float, key: str, shown: Shown) -> bool:
    stated = shown.moments
    if "year" in key:
        return shown.relative_date or any(m.years and m.years[0] <= value <= m.years[1] for m in stated)
    if "month" in key:
        return shown.relative_date or any(m.months and m.months[0] <= value <= m.months[1] for m in stated)
    if "day" in key and shown.relative_date:
        return True
    if "hour" in key:
        return any(m.minute is not None and m.minute // 60 == value for m in stated)
    if "minute" in key:
        return value == 0 or any(m.minute is not None and m.minute % 60 == value for m in stated)
    return any(m.day == value for m in stated) if "day" in key else False


def _derived(value: float, shown: Shown) -> bool:
    """Whether a number follows from two that the user states; from many stated numbers nearly anything would."""
    stated = {v.amount for v in shown.values if v.amount is not None and v.unit != "time"}
    if not 2 <= len(stated) <= _MOST_DERIVED:
        return False
    return any(
        _among(value, (one * other, one + other, abs(one - other))) for one, other in itertools.combinations(stated, 2)
    )


def _next_to_a_bound(value: float, shown: Shown) -> bool:
    """Whether a whole number is the first one beyond a stated bound: 2021 for *after 2020*."""
    return value.is_integer() and any(
        re.search(
            rf"\b(?:after|before|over|under|above|below|than|since|until|nach|vor|après|avant) {int(bound)}\b",
            shown.folded,
        )
        for bound in (value - 1, value + 1)
    )


def address(written: str, shown: Shown) -> bool:
    """Whether an e-mail address stands there, or every part of a URL does and its host as it is."""
    if EMAIL.fullmatch(written):
        return shown.has_written(written)
    bare = re.sub(r"^(?:https?://|ftp://)?(?:www\.)?", "", unquote_plus(written), flags=re.IGNORECASE).rstrip("/")
    host = re.split(r"[/?#]", bare, maxsplit=1)[0]
    return shown.has_written(bare) or (shown.has_written(host) and _all_words(words(bare[len(host) :]), shown))


def is_path(written: str) -> bool:
    """Whether a string is the path or the name of a file."""
    return _PATH.fullmatch(written) is not None and not _ISO.fullmatch(written) and not _is_figure(written)


def path(written: str, shown: Shown) -> bool:
    """Whether the path stands there, or each of its parts does."""
    bare = written.strip("./~")
    parts = [part for part in re.split(r"[/\\]", bare) if part and part != "."]
    return (
        not parts or shown.has_written(bare) or (".." not in written and all(shown.has_written(part) for part in parts))
    )


def moment(written: str) -> Moment | None:
    """Return the date or time that a string is, ``None`` when it is something else."""
    if iso := _ISO.fullmatch(written.strip()):
        year, month, day = int(iso[1]), int(iso[2]), int(iso[3]) if iso[3] else None
        minute = int(iso[4]) * 60 + int(iso[5]) if iso[4] else None
        return Moment((year, year), (month, month), day, None, minute or None)
    values = read(written).values
    if (
        values
        and all(value.moment for value in values)
        and sum(len(v.text) for v in values) >= len(written.strip()) - 8
    ):
        parts = [value.moment for value in values if value.moment]
        return Moment(
            next((m.years for m in parts if m.years), None), next((m.months for m in parts if m.months), None),
            next((m.day for m in parts if m.day), None), next((m.weekday for m in parts if m.weekday is not None), None),
            next((m.minute for m in parts if m.minute is not None), None),
            next((m.other for m in parts if m.other), None),
        )  # fmt: skip
    return None


def dated(wanted: Moment, asked: Asked, shown: Shown) -> bool:
    """Whether a date or time is stated; what the texts leave to the calendar (tomorrow, the year) is not judged."""
    return _has_day(wanted, shown) and _has_time(wanted, asked, shown)


def _has_day(wanted: Moment, shown: Shown) -> bool:
    day = Moment(wanted.years, wanted.months, wanted.day, wanted.weekday, None, wanted.other)
    stated = shown.moments
    if day == Moment() or any(moments.covers(other, day) for other in stated):
        return True
    for reading in day.readings():
        without_year = Moment(None, reading.months, reading.day)
        in_range = reading.day in shown.first_days and any(_in_month(other, reading) for other in stated)
        named = without_year != Moment() and any(
            moments.covers(other, without_year) and _may_be_in(other, reading) for other in stated
        )
        if in_range or named:
            return not _other_years(stated, reading)
    if shown.kind == USER and wanted.day in shown.bare_days and shown.follows_soon(wanted):
        return True
    told_by_today = shown.relative_date and shown.kind != INSTRUCTION
    told_by_today = told_by_today and not any(o.day is not None and o.months for o in stated)
    return (told_by_today and shown.near_today(wanted)) or _bounds_a_period(wanted, stated)


def _bounds_a_period(wanted: Moment, stated: Iterable[Moment]) -> bool:
    """Whether a date is in a month or a year that is named as a whole: its first and its last day bound it."""
    if wanted.day is not None and any(o.day is None and _in_month(o, wanted) for o in stated):
        return True
    return bool(wanted.months) and any(
        o.months is None and o.day is None and o.years and o.years == wanted.years for o in stated
    )


def _in_month(stated: Moment, wanted: Moment) -> bool:
    return stated.months is not None and stated.months == wanted.months and _may_be_in(stated, wanted)


def _may_be_in(stated: Moment, wanted: Moment) -> bool:
    return stated.years is None or wanted.years is None or stated.years[0] <= wanted.years[0] <= stated.years[1]


def _other_years(stated: Iterable[Moment], wanted: Moment) -> bool:
    """Whether years are stated, and another one is wanted."""
    years = [one.years for one in stated if one.years and one.day is None and one.months is None]
    return bool(years) and wanted.years is not None and all(not y[0] <= wanted.years[0] <= y[1] for y in years)


def _has_time(wanted: Moment, asked: Asked, shown: Shown) -> bool:
    if wanted.minute is None or wanted.minute in (0, _DAY - 1):
        return True
    stated = {m.minute for m in shown.moments if m.minute is not None}
    hours = {int(amount) * 60 for amount in shown.amounts if amount in range(1, 25)}
    stated |= hours | {hour + _DAY // 2 for hour in hours if hour <= _DAY // 2}
    stated |= _by_words(shown)
    if wanted.minute in stated:
        return True
    spans = {int(span) // 60 for span in shown.durations} | (_USUAL_MINUTES if _ENDS.search(asked.key) else frozenset())
    return any((wanted.minute - span) % _DAY in stated for span in spans)


def _by_words(shown: Shown) -> set[int]:
    """Return times that are told in words: noon, half past six, quarter to nine."""
    found = {720} if shown.words & {"noon", "midday", "lunch", "mittag", "midi"} else set()
    found |= {540, 480, 600} if shown.words & {"morning", "morgens", "matin"} else set()
    found |= {840, 900, 780} if shown.words & {"afternoon", "nachmittag"} else set()
    found |= {1080, 1140, 1200} if shown.words & {"evening", "tonight", "dinner", "abend", "soir"} else set()
    for match in re.finditer(r"\b(half past|quarter past|quarter to|halb) (\w+)", shown.folded):
        hour = next((int(v.amount) for v in read(match[2]).values if v.amount is not None), None)
        if hour is not None:
            shift = {"half past": 30, "quarter past": 15, "quarter to": -15, "halb": -30}[match[1]]
            found |= {hour * 60 + shift, (hour + 12) * 60 + shift}
    return found


def figure(written: str) -> Value | None:
    """Return the figure that a string is, such as 2,500.00, $40 or 15%; ``None`` when it is something else."""
    values = read(written).values
    if len(values) == 1 and values[0].amount is not None and len(values[0].text) >= len(written.strip()) - 1:
        return values[0]
    return None


def _is_figure(written: str) -> bool:
    return figure(written) is not None


def is_identifier(written: str) -> bool:
    """Whether a string is an identifier: one with a digit, or several digits set apart."""
    digits = sum(c.isdigit() for c in written)
    one_word = " " not in written.strip()
    in_first = any(c.isdigit() for c in written.strip().split(" ", 1)[0])
    return in_first and _CODE.fullmatch(written) is not None and (one_word or digits >= len(written) // 2)


def identifier(written: str, shown: Shown) -> bool:
    """Whether an identifier stands there, also with its kind told in words: ORD-4711 for *order 4711*."""
    if shown.has_signs(written) or _is_quarter(written, shown):
        return True
    letters, digits = re.sub(r"[^A-Za-z]", "", written).lower(), re.sub(r"\D", "", written)
    if len(digits) < _LEAST_DIGITS:
        return False
    if written.lstrip().startswith("+") and len(digits) > _LONGEST_CODE:
        return any(shown.has_signs(digits[at:]) or shown.has_signs("0" + digits[at:]) for at in (1, 2, 3))
    return bool(letters) and shown.has_signs(digits) and any(_abbreviates(letters, word) for word in shown.words)


def _is_quarter(written: str, shown: Shown) -> bool:
    """Whether a code names a quarter that is told in words: 2025-Q2 for *the second quarter of 2025*."""
    found = _QUARTER.fullmatch(written.strip())
    if found is None:
        return False
    number, year = int(found["number"]), found["year"] or found["after"]
    told = rf"\b(?:q{number}|{_ORDINALS[number - 1]} quarter|quarter {number}|{number}(?:st|nd|rd|th) quarter)\b"
    return (not year or shown.has_signs(year)) and re.search(told, shown.folded) is not None


def name(written: str, shown: Shown) -> bool:
    """Whether a name stands there: by its words, another name of the same thing, or initials."""
    if groups_of(written) & shown.groups:
        return True
    row = [word for word in words(written) if word not in STOP]
    if _all_words(row, shown):
        return True
    head = re.split(r"[,(]", written, maxsplit=1)[0].strip()
    if head and head != written.strip() and name(head, shown):
        return True  # Paris, France: what stands behind tells only which Paris
    kept = [word for word in row if word not in _QUALIFIERS]
    if kept and len(kept) < len(row) and _all_words(kept, shown):
        return True
    if len(row) == 1 and written.strip().isupper() and 2 <= len(row[0]) <= _LONGEST_CODE:
        return row[0] in shown.spelled or (len(row[0]) > 2 and any(_abbreviates(row[0], word) for word in shown.words))
    initials = "".join(word[0] for word in row)
    return len(row) > 1 and initials in shown.words


def _all_words(row: Iterable[str], shown: Shown) -> bool:
    listed = list(row)
    return bool(listed) and all(
        word in shown.words or word.removesuffix("s") in shown.words or stem(word) in shown.stems or word in STOP
        for word in listed
    )


def _abbreviates(letters: str, word: str) -> bool:
    """Whether *letters* stand in a longer word in this order, from its first on: TSLA in Tesla."""
    if not word.startswith(letters[:1]) or len(word) <= len(letters):
        return False
    rest = iter(word)
    return all(letter in rest for letter in letters)


def related(text: str, shown: Shown) -> bool:
    """Whether a free text has a content word of the shown texts in any form."""
    return any(stem(word) in shown.stems for word in words(text) if word not in STOP and len(word) > 1)
