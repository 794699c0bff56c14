"""What a request shows: its texts, indexed for the lookup of one value of a tool call (ATT-5).

Values are compared as far as they are stated, in any notation; names by their words, and by other names and codes of the same
thing (data/other_names.txt).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache
from typing import Any

from interlock.dpe.text.folding import fold
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import lines
from interlock.dpe.values.extraction import read
from interlock.dpe.values.forms import tidied
from interlock.dpe.values.frames import STOP, stem
from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import Value

_WORD = pattern(r"[\p{L}\p{N}\p{M}]+")
_TOKEN = pattern(r"[^\s,;:!?()\"]+")
_CODE = 3
_MOST_DATED = 4000
"""Characters of one text in which the day of today is looked for."""
_FROM_DAY = pattern(r"\b(\d{1,2})(?:st|nd|rd|th|\.)? ?(?:-|to|until|till|through|and|bis|und|au|al) ?\d{1,2}\b")
_BARE_DAY = pattern(
    r"\b(?:the|by|until|till|before|after) (\d{1,2})(?:st|nd|rd|th)(?: ?[,.;:?!)\n]|\z"
    r"| (?:to|for|at|please|and|if|instead|or|in the|around|then|with)\b)"
)
_MONTH_AHEAD = 31
_FAR = [-400, 400]
_NEAR_TODAY: tuple[tuple[Any, ...], ...] = (
    ("day after tomorrow|ubermorgen", 2, 2), ("tomorrow|demain|manana", 1, 1), ("morgen", 0, 1), ("yesterday|gestern|hier|ayer", -1, -1),
    ("today|tonight|now|heute|hoy|aujourd'hui|this (?:morning|afternoon|evening)", 0, 0), ("weekend|wochenende", 0, 13),
    ("(?:mon|tues|wednes|thurs|fri|satur|sun)days?|mon|tue|wed|thu|fri|sat|sun", -7, 14), ("next week", 1, 14), ("this week", -6, 6),
    ("last week|past week|previous week", -14, 0), ("this month", -31, 31), ("next month", 0, 62), ("last month", -62, 0),
    ("next (?:quarter|year)|(?:this|last) (?:quarter|year)|christmas|easter|new year|recent|latest|current|past|soon", -800, 800),
)  # fmt: skip
"""What tells a date by today, with the days from today that it may mean."""
_AHEAD = pattern(r"\bin (\d{1,3}) (day|week)s?\b")
_UNIT_DAYS = {"day": 1, "week": 7}
_TODAY = re.compile(
    r"\b(?:today(?:'s date)?|current (?:date|time|datetime|date and time)|date today)(?: is|:)? *(?:[a-z]+day,? *)?",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?<!\w)['\"“‘«„]([^'\"“”‘’«»\n]{2,60})['\"”’»“](?!\w)")
_SIGNS = "$€£¥₹"
_RELATIVE_DATE = pattern(
    r"\b(?:today|tonight|tomorrow|yesterday|now|(?:this|next|last|coming|past|previous|current) (?:week|weekend|month|year|quarter"
    r"|mon|tue|wed|thu|fri|sat|sun|day|few|[0-9]+)\w*|weekend|in (?:a|an|one|two|three|[0-9]+) (?:day|week|month|year|hour|minute)s?"
    r"|(?:[0-9]+|a|an|one|two|three) (?:day|week|month|year|hour)s? (?:ago|from now|later|before|after)|mon(?:day)?s?|tues?(?:day)?s?"
    r"|wed(?:nesday)?s?|thu(?:rs)?(?:day)?s?|fri(?:day)?s?|sat(?:urday)?s?|sun(?:day)?s?|recent|latest|current|soon|asap"
    r"|christmas|easter|new year|heute|morgen|gestern|demain|aujourd'hui|hier|mañana|hoy|ayer|mañana|nächste\w*|prochain\w*"
    r"|próxim\w*)\b",
    ignore_case=True,
)
_FEW = {"couple": 2.0, "pair": 2.0, "both": 2.0, "single": 1.0, "dozen": 12.0, "fortnight": 14.0, "weekend": 2.0, "week": 7.0,
        "half": 0.5, "quarter": 0.25, "twice": 2.0, "double": 2.0, "triple": 3.0, "once": 1.0}  # fmt: skip
_SPANS = {
    "half an hour": 1800.0, "half hour": 1800.0, "quarter of an hour": 900.0, "three quarters of an hour": 2700.0,
    "an hour and a half": 5400.0, "one and a half hours": 5400.0, "an hour": 3600.0, "a minute": 60.0, "a day": 86_400.0,
    "a week": 604_800.0, "a fortnight": 1_209_600.0, "a month": 2_629_800.0, "a year": 31_557_600.0, "overnight": 86_400.0,
    "halbe stunde": 1800.0, "eine stunde": 3600.0, "demi-heure": 1800.0, "une heure": 3600.0, "media hora": 1800.0,
}  # fmt: skip
_NUMBERS_ELSEWHERE = {
    word: float(number)
    for row in (
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "zéro un deux trois quatre cinq six sept huit neuf dix onze douze",
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
    )
    for number, word in enumerate(row.split())
}


def folded(text: str) -> str:
    """Return a text in lower case without diacritics and with plain signs."""
    return "".join(c for c in unicodedata.normalize("NFKD", fold(text).text.casefold()) if not unicodedata.combining(c))


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case without diacritics."""
    return list(_WORD.findall(folded(text)))


def _other_names() -> dict[str, frozenset[int]]:
    """Read the groups of names for one thing: each name with the numbers of its groups. Codes keep their case."""
    found: dict[str, set[int]] = {}
    for number, line in enumerate(lines("other_names.txt")):
        for name in line.split("|"):
            found.setdefault(_named(name), set()).add(number)
    return {name: frozenset(groups) for name, groups in found.items()}


def _named(name: str) -> str:
    """Return a name as it is looked up: a short code as written, anything else folded."""
    return name if is_code(name) else " ".join(words(name)) or name


def is_code(name: str) -> bool:
    """Whether a name is a short code such as USD, MUC or en-US."""
    return len(name) <= 6 and (
        name.isupper() or (len(name) == 2 and name.isascii()) or "-" in name or not name.isalnum()
    )


_GROUPS = _other_names()
_LONGEST_NAME = max(len(name.split()) for name in _GROUPS)


def groups_of(name: str) -> frozenset[int]:
    """Return the groups that a name belongs to; an argument may write a code in small letters."""
    found = _GROUPS.get(_named(name), frozenset()) | _GROUPS.get(name, frozenset())
    return found | _GROUPS.get(name.upper(), frozenset()) if len(name) == _CODE else found


def _groups_in(text: str) -> set[int]:
    """Return the groups of every name in a text. A code counts where it stands in capitals or is a sign."""
    found: set[int] = set()
    for token in _TOKEN.findall(text):
        found |= groups_of(token.strip(".'")) if token.isupper() else frozenset()
    for sign in _SIGNS:
        found |= _GROUPS[sign] if sign in text else frozenset()
    row = words(text)
    for size in range(1, _LONGEST_NAME + 1):
        for at in range(len(row) - size + 1):
            name = " ".join(row[at : at + size])
            found |= _GROUPS.get(name, frozenset()) if len(name) > _CODE else frozenset()
    return found


@dataclass(frozen=True)
class Shown:
    """Texts of one kind, each with its id."""

    kind: str
    texts: tuple[tuple[str, str], ...]
    today: date | None = None
    """The day that a text of the request calls today."""

    @cached_property
    def folded(self) -> str:
        """All texts in lower case without diacritics."""
        return "\n".join(folded(text) for _, text in self.texts)

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word, and every word without a possessive or plural ending."""
        found = set(_WORD.findall(self.folded))
        return frozenset(found | {word.removesuffix("s") for word in found if len(word) > 3})

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of the content words."""
        return frozenset(stem(word) for word in self.words if word not in STOP)

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """Every figure and date that is stated."""
        forms = dict.fromkeys(form for _, text in self.texts for form in (text, tidied(text)))
        return tuple(value for form in forms for value in read(form).values if not value.vague)

    @cached_property
    def amounts(self) -> frozenset[float]:
        """Every amount that is stated, as written and in base units, and those that everyday words state."""
        found = {0.0 + (value.amount or 0.0) for value in self.values if value.amount is not None}
        found |= {(value.amount or 0.0) / value.factor for value in self.values if value.amount is not None}
        found |= {_FEW[word] for word in _FEW if word in self.words}
        found |= {number for word, number in _NUMBERS_ELSEWHERE.items() if word in self.words}
        found |= {float(word) for word in self.words if word.isascii() and word.isdigit() and len(word) <= 15}
        return frozenset(found)

    @cached_property
    def durations(self) -> frozenset[float]:
        """Every span of time that is stated, in seconds."""
        found = {value.amount or 0.0 for value in self.values if value.unit == "time"}
        return frozenset(found | {seconds for told, seconds in _SPANS.items() if told in self.folded})

    @cached_property
    def shares(self) -> frozenset[float]:
        """Every percentage that is stated."""
        return frozenset(value.amount or 0.0 for value in self.values if value.kind == "PERCENT")

    @cached_property
    def moments(self) -> tuple[Moment, ...]:
        """Every date and time that is stated, in each of its readings."""
        return tuple(reading for value in self.values if value.moment for reading in value.moment.readings())

    @cached_property
    def first_days(self) -> frozenset[int]:
        """The first days of ranges that leave the month to the last: from 12 to 15 October."""
        return frozenset(int(match[1]) for match in _FROM_DAY.finditer(self.folded))

    @cached_property
    def bare_days(self) -> frozenset[int]:
        """The days that stand without a month: *on the 12th*, which the calendar places."""
        return frozenset(int(match[1]) for match in _BARE_DAY.finditer(self.folded))

    def follows_soon(self, wanted: Moment) -> bool:
        """Whether a date is at most a month after one that is stated in full, or after today; always where none is stated."""
        stated = [_day_of(moment) for moment in self.moments] + [self.today]
        days, day = [each for each in stated if each is not None], _day_of(wanted)
        if day is None:
            return False
        return not days or any(0 <= (day - each).days <= _MONTH_AHEAD for each in days)

    @cached_property
    def relative_date(self) -> bool:
        """Whether a date is told by today: tomorrow, next week, on Friday."""
        return any(_RELATIVE_DATE.search(fold(text).text) for _, text in self.texts)

    def near_today(self, wanted: Moment) -> bool:
        """Whether a date may be one of those that are told by today; always where nothing says which day today is."""
        if self.today is None or wanted.years is None or wanted.months is None or wanted.day is None:
            return True
        try:
            days = (date(wanted.years[0], wanted.months[0], wanted.day) - self.today).days
        except ValueError:
            return False
        ranges = [span for told, *span in _NEAR_TODAY if re.search(rf"\b(?:{told})\b", self.folded)]
        ranges += [[int(n) * unit, int(n) * unit] for n, unit in self._days_ahead()]
        return any(least <= days <= most for least, most in ranges or [_FAR])

    def _days_ahead(self) -> Iterator[tuple[str, int]]:
        for match in _AHEAD.finditer(self.folded):
            yield match[1], _UNIT_DAYS[match[2]]

    @cached_property
    def groups(self) -> frozenset[int]:
        """The things that are named, under any of their names."""
        return frozenset(group for _, text in self.texts for group in _groups_in(text))

    @cached_property
    def quoted(self) -> bool:
        """Whether a few words stand in quotation marks: they are to be taken as they are."""
        return any(_QUOTED.search(text) for _, text in self.texts)

    @cached_property
    def spelled(self) -> frozenset[str]:
        """The first letters of every run of two to six words."""
        found = set()
        for _, text in self.texts:
            row = words(text)
            for size in range(2, 7):
                found |= {"".join(word[0] for word in row[at : at + size]) for at in range(len(row) - size + 1)}
        return frozenset(found)

    @property
    def empty(self) -> bool:
        """Whether there is no text."""
        return not self.texts

    def has_written(self, written: str) -> bool:
        """Whether a string stands there as it is written, not as a part of a longer word."""
        if not (wanted := folded(written)):
            return False
        at = self.folded.find(wanted)
        while at >= 0:
            before, after = self.folded[at - 1 : at] if at else "", self.folded[at + len(wanted) : at + len(wanted) + 1]
            if not (before.isalnum() and wanted[0].isalnum()) and not (after.isalnum() and wanted[-1].isalnum()):
                return True
            at = self.folded.find(wanted, at + 1)
        return False

    def has_signs(self, written: str) -> bool:
        """Whether the letters and digits of a string stand there, however they are set apart: +49 170 12 for +4917012."""
        signs = [re.escape(char) for char in folded(written) if char.isalnum()][:64]
        if not signs:
            return False
        return re.search(r"(?<![a-z0-9])" + r"[\s\-_./()#]{0,2}".join(signs) + r"(?![a-z0-9])", self.folded) is not None

    @cached_property
    def _rows(self) -> tuple[tuple[str, frozenset[str]], ...]:
        return tuple((name, frozenset(words(text))) for name, text in self.texts)

    def id_of(self, written: str) -> str:
        """Return the id of the text that shares most with a value; the first of those that share nothing."""
        wanted = frozenset(words(written))
        return max(self._rows, key=lambda row: len(wanted & row[1]), default=("", wanted))[0]


def _day_of(moment: Moment) -> date | None:
    if not (moment.years and moment.months and moment.day) or moment.years[0] != moment.years[1]:
        return None
    try:
        return date(moment.years[0], moment.months[0], moment.day)
    except ValueError:
        return None


def together(shown: Sequence[Shown]) -> Shown:
    """Return the texts of all kinds as one."""
    return _together(tuple(shown))


@lru_cache(maxsize=4)
def _together(shown: tuple[Shown, ...]) -> Shown:
    return Shown("", tuple(text for one in shown for text in one.texts), shown[0].today if shown else None)


def of_kinds(texts: Iterable[tuple[str, str, str]], order: Sequence[str]) -> Iterator[Shown]:
    """Yield the texts of each kind, given as (kind, id, text), in the *order* in which they are asked."""
    listed = list(texts)
    today = next((day for kind, _, text in listed if kind != "user" for day in _today_in(text)), None)
    for kind in order:
        yield Shown(kind, tuple((name, text) for its, name, text in listed if its == kind and text.strip()), today)


def _today_in(text: str) -> Iterator[date]:
    """Yield the day that a text calls today."""
    for label in _TODAY.finditer(text[:_MOST_DATED]):
        for value in read(text[label.end() : label.end() + 24]).values[:1]:
            told = value.moment
            if told and told.years and told.months and told.day and value.start <= 1 and told.years[0] == told.years[1]:
                with suppress(ValueError):
                    yield date(told.years[0], told.months[0], told.day)
