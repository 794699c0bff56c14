"""Claims in another language than their sources: compared by figures, dates, codes and names (ATT-8).

The models cannot judge such prose, so that in the mode ``auto`` it is UNVERIFIABLE and not wrong by itself. A figure, a date or a
code that neither the sources nor the user's words have is a finding, and so is a person whom none of them names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from interlock.domain.risk.grounding import GroundingMode
from interlock.dpe.claims.reading import ChoiceReading, claim_sentences
from interlock.dpe.document import Claim
from interlock.dpe.grounding.given import basis
from interlock.dpe.grounding.placing.near import Told, converts, values_of
from interlock.dpe.request import Request
from interlock.dpe.text.names import plain
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.tongues import ENGLISH, MONTHS, NUMBER_WORDS, dates_in_english, tongue
from interlock.dpe.values.quantities import Value
from interlock.dpe.values.reach import in_reach
from interlock.dpe.values.reckoning.derived import Operand, derives
from interlock.dpe.values.reckoning.expressions import expressions

_SPACED = pattern(r"\b(\d{1,3})[ \x{00a0}\x{202f}](\d{3})\b")
"""Thousands as French and others group them: 4 200."""
_FIGURE = pattern(r"\d+(?:[.,]\d+)*")
_TIME = pattern(r"\b(\d{1,2})(?::|\s?h\s?)(\d{2})\b")
_HOUR = pattern(r"(?i)\b(\d{1,2})\s?(?:h\b|uhr\b|heures?\b|horas?\b|ore\b|uur\b)")
_ORDINAL = pattern(r"(?i)\b(\d{1,3})(?:er|re|e|ème|º|ª|o|a)\b")
_DATE = pattern(r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}[./]\d{1,2}[./]\d{4}\b")
_PART = pattern(r"\d+")
_CODE = pattern(r"\b[\p{Lu}\d]+(?:-[\p{Lu}\d]+)+\b|\b\p{Lu}+\d+[\p{Lu}\d]*\b")
_WORD = pattern(r"\p{L}+")
_NAME = pattern(r"\p{Lu}[\p{L}'’-]{2,}")
_DAY_OF_MONTH = pattern(r"\b(\d{1,2})\.? (\p{L}{3,})")
_ENGLISH_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_ALIKE = 0.8
_MOST_TIMES = 12
_MONTHS = 12
_MINUTES = 60
_CAPITALISES_NOUNS = "de"
_SURE_WORD = 3
"""Number words from this are figures; two is said of any pair."""


@dataclass(frozen=True)
class Stated:
    """What texts state that reads the same in any language."""

    figures: frozenset[float]
    times: frozenset[tuple[int, int]]
    months: frozenset[int]
    names: tuple[str, ...]
    text: str
    told: Told | None = None
    """The figures of the request, from which others may follow."""
    results: frozenset[float] = frozenset()
    """What the expressions of the answer make, and the sum of all of them."""
    dated: tuple[str, ...] = ()
    """The days and periods that the texts state in another language, as English writes them."""

    @staticmethod
    def of(texts: Sequence[str], told: Told | None = None) -> Stated:
        """Read *texts*. What earlier answers derived from stated figures is stated as well."""
        texts = [*texts, *(value.text for _, values, _ in (told.said if told else ()) for value in values)]
        whole = "\n".join(texts)
        words = [word.lower() for word in _WORD.findall(whole)]
        figures = {value for run in _FIGURE.findall(_TIME.sub(" ", whole)) for value in _values(run)}
        figures |= {float(known[word]) for known in NUMBER_WORDS.values() for word in words if word in known}
        months = {MONTHS[word] for word in words if word in MONTHS}
        for date in _DATE.findall(whole):
            months |= {int(part) for part in _PART.findall(date) if 1 <= int(part) <= _MONTHS}
            figures |= {float(part) for part in _PART.findall(date)}
        names = dict.fromkeys(plain(name) for name in _NAME.findall(whole))
        clocks = [value.moment.minute for value in (told.times if told else ()) if value.moment]
        clocks += [
            value.moment.minute for _, values, _ in (told.said if told else ()) for value in values if value.moment
        ]
        times = {divmod(minute, _MINUTES) for minute in clocks if minute is not None} | set(_times(whole))
        dated = tuple(dict.fromkeys(dates_in_english(whole)))
        return Stated(
            frozenset(figures), frozenset(times), frozenset(months), tuple(names), whole.lower(), told, dated=dated
        )

    def has_figure(self, run: str) -> bool:
        """Whether a figure is stated, in either notation, or is a stated one times a small stated number."""
        values = _values(run)
        if any(round(value, 2) in self.results for value in values):
            return True
        counts = [each for each in self.figures if each.is_integer() and 2 <= each <= _MOST_TIMES]
        return any(
            value in self.figures
            or any(round(value / count, 4) in self.figures for count in counts if value % 1 or value > 100)
            for value in values
        )

    def derives(self, run: str, around: Sequence[Value]) -> bool:
        """Whether a figure follows from those *around* it in its claim and from one that is stated: 175 °C for 350 °F."""
        target = next((value for value in around if value.text.startswith(run)), None)
        if target is None or self.told is None:
            return False
        others = [value for value in around if value.text != target.text]
        if any(converts(target, other) for other in (*others, *self.told.question)):
            return True
        return in_reach(target, others, [*self.told.question, *self.told.asked[:_MOST_TIMES]])

    def dates(self, day: int, month: str) -> bool:
        """Whether a day of a month follows from a date and a period that are stated: 14 days after 4 May."""
        if self.told is None or month not in MONTHS:
            return False
        operands = [Operand(value) for _, values, _ in self.told.facts for value in values]
        operands += [Operand(value) for value in values_of(self.dated)]
        targets = values_of([f"{day} {_ENGLISH_MONTHS[MONTHS[month] - 1]}"])
        return any(derives(target, frozenset({"until"}), operands) for target in targets)

    def names_like(self, word: str) -> bool:
        """Whether a name is stated in this or a similar form: Kopenhagen, Copenhagen."""
        wanted = plain(word)
        return any(
            wanted == name
            or (len(wanted) >= 5 and SequenceMatcher(None, wanted, name, autojunk=False).ratio() >= _ALIKE)
            for name in self.names
        )


@dataclass(frozen=True)
class Compared:
    """What a claim states that the sources do not, and whether it shares anything with them."""

    wrong: tuple[str, ...]
    anchored: bool


def _values(run: str) -> set[float]:
    """Return what a run of digits may mean: 1.234,5 and 1,234.5 and 1.5 and 1,5."""
    readings = {run.replace(",", ""), run.replace(".", "").replace(",", ".")}
    return {round(float(each), 4) for each in readings if each.count(".") <= 1 and len(each) <= 15}


def _hours(text: str) -> list[int]:
    return [int(hour) for hour in _HOUR.findall(text)]


def _times(text: str) -> list[tuple[int, int]]:
    return [(int(hours), int(minutes)) for hours, minutes in _TIME.findall(text)]


def compare(claim: Claim, spoken: str, stated: Stated) -> Compared:
    """Return how a claim in the language *spoken* compares with what is stated."""
    text, numbers = _SPACED.sub(r"\1\2", claim.text), NUMBER_WORDS.get(spoken, {})
    wrong: list[str] = []
    shared = 0
    for hours, minutes in _times(text):
        known = (hours, minutes) in stated.times
        shared, wrong = shared + known, wrong + ([] if known else [f"{hours}:{minutes:02}"])
    text = _TIME.sub(" ", text)
    for hour in _hours(text):
        known = (hour, 0) in stated.times or (not stated.times and float(hour) in stated.figures)
        shared, wrong = shared + known, wrong + ([] if known else [str(hour)])
    text = _ORDINAL.sub(r"\1", _HOUR.sub(" ", text))
    for code in _CODE.findall(text):
        known = code.lower() in stated.text
        shared, wrong = shared + known, wrong + ([] if known else [code])
    text = _CODE.sub(" ", text)
    for day in _DAY_OF_MONTH.finditer(text):
        if stated.dates(int(day[1]), day[2].lower()):
            text, shared = text.replace(day.group(), " "), shared + 1
    around = values_of([claim.text])
    for run in _FIGURE.findall(text):
        hour = run.isdigit() and (int(run), 0) in stated.times  # 8 Uhr, which the splitter may have cut
        known = hour or stated.has_figure(run) or stated.derives(run, around)
        shared, wrong = shared + known, wrong + ([] if known else [run])
    for word in _WORD.findall(text.lower()):
        if word in numbers:
            known = numbers[word] in stated.figures
            shared, wrong = shared + known, wrong + ([word] if not known and numbers[word] >= _SURE_WORD else [])
        elif word in MONTHS:
            known = MONTHS[word] in stated.months
            shared, wrong = shared + known, wrong + ([] if known else [word])
    # The names classifier takes German nouns for people.
    named = claim.entities if spoken != _CAPITALISES_NOUNS else ()
    people = [entity.text for entity in named if entity.label == "PERSON" and len(entity.text.split()) > 1]
    wrong += [name for name in people if not any(stated.names_like(part) for part in name.split())]
    shared += any(stated.names_like(name) for name in _NAME.findall(text)[:40])
    return Compared(tuple(dict.fromkeys(wrong)), shared > 0)


def compared(request: Request, readings: Sequence[ChoiceReading], texts: Sequence[str]) -> dict[str, Compared]:
    """Return the comparison of each checked claim that is in another language than the sources, by claim id."""
    asked = request.grounding_mode is GroundingMode.AUTO and not request.grounding_required
    if not asked or basis.mode(request) is GroundingMode.OPEN:
        return {}
    foreign = _foreign(readings, texts)
    if not foreign:
        return {}
    stated = Stated.of([*texts, request.own_words], Told.of(request))
    stated = replace(stated, results=results_of([claim for claim, _ in foreign]))
    return {claim.claim_id: compare(claim, spoken, stated) for claim, spoken in foreign}


def results_of(claims: Sequence[Claim]) -> frozenset[float]:
    """Return what the expressions that claims write out make, and the sum of all: a bill, item by item and in total."""
    made = list(dict.fromkeys(round(each.result, 2) for claim in claims for each in expressions(claim.text)))
    return frozenset([*made, round(sum(made), 2)])


def _foreign(readings: Sequence[ChoiceReading], texts: Sequence[str]) -> list[tuple[Claim, str]]:
    """Return the checked claims in a language that the sources are not in."""
    answers = {reading.index: tongue(" ".join(each.text for each in reading.sentences)) for reading in readings}
    sentences: Mapping[str, str] = claim_sentences(readings)
    spoken = [
        (claim, tongue(sentences[claim.claim_id]) or answers[reading.index])
        for reading in readings
        for claim in reading.checked
        if claim.claim_id not in reading.in_calls
    ]
    if all(each in {None, ENGLISH} for _, each in spoken):
        return []
    of_sources = {found for text in texts if (found := tongue(text))} or {ENGLISH}
    return [(claim, each) for claim, each in spoken if each and each not in {ENGLISH, *of_sources}]
