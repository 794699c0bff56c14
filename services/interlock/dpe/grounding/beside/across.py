"""Claims in another language than their sources: compared by figures, dates, codes and names (ATT-8).

The models cannot judge such prose, so that in the mode ``auto`` it is UNVERIFIABLE and not wrong by itself. A figure, a date or a
code that neither the sources nor the user's words have is a finding, and so is a person whom none of them names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from interlock.domain.risk.grounding import GroundingMode
from interlock.dpe.claims.reading import ChoiceReading, claim_sentences
from interlock.dpe.document import Claim
from interlock.dpe.grounding import basis
from interlock.dpe.request import Request
from interlock.dpe.text.names import plain
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.tongues import ENGLISH, MONTHS, NUMBER_WORDS, tongue

_FIGURE = pattern(r"\d+(?:[.,]\d+)*")
_TIME = pattern(r"\b(\d{1,2})(?::|\s?h\s?)(\d{2})\b")
_DATE = pattern(r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}[./]\d{1,2}[./]\d{4}\b")
_PART = pattern(r"\d+")
_CODE = pattern(r"\b[\p{Lu}\d]+(?:-[\p{Lu}\d]+)+\b|\b\p{Lu}+\d+[\p{Lu}\d]*\b")
_WORD = pattern(r"\p{L}+")
_NAME = pattern(r"\p{Lu}[\p{L}'’-]{2,}")
_ALIKE = 0.8
_MOST_TIMES = 12
_MONTHS = 12
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

    @staticmethod
    def of(texts: Sequence[str]) -> Stated:
        """Read *texts*."""
        whole = "\n".join(texts)
        words = [word.lower() for word in _WORD.findall(whole)]
        figures = {value for run in _FIGURE.findall(_TIME.sub(" ", whole)) for value in _values(run)}
        figures |= {float(known[word]) for known in NUMBER_WORDS.values() for word in words if word in known}
        months = {MONTHS[word] for word in words if word in MONTHS}
        for date in _DATE.findall(whole):
            months |= {int(part) for part in _PART.findall(date) if 1 <= int(part) <= _MONTHS}
            figures |= {float(part) for part in _PART.findall(date)}
        names = dict.fromkeys(plain(name) for name in _NAME.findall(whole))
        return Stated(frozenset(figures), frozenset(_times(whole)), frozenset(months), tuple(names), whole.lower())

    def has_figure(self, run: str) -> bool:
        """Whether a figure is stated, in either notation, or is a stated one times a small stated number."""
        values = _values(run)
        counts = [each for each in self.figures if each.is_integer() and 2 <= each <= _MOST_TIMES]
        return any(
            value in self.figures
            or any(round(value / count, 4) in self.figures for count in counts if value % 1 or value > 100)
            for value in values
        )

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


def _times(text: str) -> list[tuple[int, int]]:
    return [(int(hours), int(minutes)) for hours, minutes in _TIME.findall(text)]


def compare(claim: Claim, spoken: str, stated: Stated) -> Compared:
    """Return how a claim in the language *spoken* compares with what is stated."""
    text, numbers = claim.text, NUMBER_WORDS.get(spoken, {})
    wrong: list[str] = []
    shared = 0
    for hours, minutes in _times(text):
        known = (hours, minutes) in stated.times
        shared, wrong = shared + known, wrong + ([] if known else [f"{hours}:{minutes:02}"])
    text = _TIME.sub(" ", text)
    for code in _CODE.findall(text):
        known = code.lower() in stated.text
        shared, wrong = shared + known, wrong + ([] if known else [code])
    text = _CODE.sub(" ", text)
    for run in _FIGURE.findall(text):
        known = stated.has_figure(run)
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
    stated = Stated.of([*texts, request.own_words])
    return {claim.claim_id: compare(claim, spoken, stated) for claim, spoken in foreign}


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
