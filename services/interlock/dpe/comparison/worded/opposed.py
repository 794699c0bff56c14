"""Opposed stances: a claim that takes the other side of what its source says of the same thing."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.limits import LimitKind
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.stances.held import Stance
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.numerals import UNITS

_LEAST = 3
_LIMITING = pattern(
    r"\b(?:only|except|unless|until|than|otherwise|apart from|other than|whether|thereafter|again|last|(?:but|and) not)\b",
    ignore_case=True,
)
"""What a sentence says of one case alone: a claim of the other case says the opposite, and may follow."""
_PREPOSITIONS = word_set("at by for from in into of off on out to under with without")
_UNITS = {
    "daily": "day", "weekly": "week", "monthly": "month", "quarterly": "quarter", "yearly": "year", "annual": "year", "annually": "year", "hourly": "hour",
}  # fmt: skip
_RATE = pattern(r"\b(?:an?|per|each|every) ([\p{L}]+)", ignore_case=True)
_PART = pattern(r"([\p{L}\d]+) of (?:(?:the|its|their|our|all|these|those) ){0,2}([\p{L}\d]+)", ignore_case=True)
_RECORD = pattern(r"[{|=\n]|\"\s*:")


def opposed(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the side that a claim takes against its sources, or ``None``."""
    if not claim.stances or _LIMITING.search(claim.text):
        return None
    prose = [each for each in evidence.passages if each.stances and not _RECORD.search(each.text)]
    for mine in claim.stances:
        told = [(its, source) for source in prose for its in source.stances if its.axis == mine.axis]
        against = [(_closeness(mine, its), its, source) for its, source in told if _opposes(mine, its)]
        if not against or mine.supposed or mine.awaited:
            continue
        most, its, source = max(against, key=lambda each: each[0])
        if most < _LEAST or its.supposed or its.awaited or _LIMITING.search(source.text):
            continue
        if any(_closeness(mine, each) >= most - 1 for each, _ in told if not _opposes(mine, each)):
            continue
        if not any(_excuses(mine, its, claim, source)):
            return Misbinding(NEGATION_FLIP, "stance", its.text, mine.text, source.text, source.fact_id, claim.content)
    return None


def _excuses(mine: Stance, its: Stance, claim: ReadSentence, source: ReadSentence) -> Iterator[bool]:
    """Yield what speaks against an opposition, one reason after the other."""
    said = {each.axis: each for each in claim.stances if each.place == mine.place}
    stated = {each.axis: each for each in source.stances if each.place == its.place}
    # The two phrases take one side of another question: *recovered* and *bounced back*.
    yield any(said[axis].holds == stated[axis].holds for axis in said.keys() & stated.keys())
    # The source has the claim's own word, of something else in the sentence.
    yield any(_same_words(each, mine) and each.axis == mine.axis for each in source.stances)
    # The source says how often twice: *€600 a year, paid each month*.
    yield mine.open and _unit(mine) in _rates(source.text)
    yield its.open and _unit(its) in _rates(claim.text)
    # Each counts its own part of a whole: *3 of the 22 wagons left the rails*, and *19 of the 22 stayed on them*.
    yield _count_two_parts(claim.text, source.text)
    # Each is of its own case: *when the owner dies*, and *when the boat is sold*.
    yield _are_two_cases(claim, source)
    # The claim takes both sides: *the first ten are free, so you are charged for two*.
    yield any(each.axis == mine.axis and each.side != mine.side for each in claim.stances)
    # The source sets the two sides beside each other, and the claim is not surely about the opposed one.
    beside = [each for each in source.stances if each.axis in stated and each.place != its.place]
    yield any(
        len(mine.near & its.near) <= len(mine.near & each.near)
        for each in beside
        if each.side != stated[each.axis].side
    )


def _unit(stance: Stance) -> str:
    """Return the span of time that a stance repeats, empty where it tells no frequency."""
    words = stance.text.casefold().split()
    return _UNITS.get(words[0], words[-1] if words[0] in {"per", "each", "every"} else "")


def _rates(text: str) -> frozenset[str]:
    words = text.casefold().split()
    return frozenset(match.group(1).casefold() for match in _RATE.finditer(text)) | {
        _UNITS[w] for w in words if w in _UNITS
    }


def _count_two_parts(claim: str, source: str) -> bool:
    """Whether two sentences count different parts of a whole."""
    mine, its = (
        {tuple(_number(word) for word in match.groups()) for match in _PART.finditer(text)} for text in (claim, source)
    )
    return any(one[1] == other[1] and one[0] != other[0] and all((*one, *other)) for one in mine for other in its)


def _number(word: str) -> str:
    low = word.casefold()
    return low if low.isdigit() else str(UNITS.get(low, ""))


def _are_two_cases(claim: ReadSentence, source: ReadSentence) -> bool:
    """Whether each sentence holds under a condition of its own, and the two have nothing in common."""
    mine, its = ([each.words for each in told.limits if each.kind is LimitKind.IF] for told in (claim, source))
    return bool(mine and its) and not any(one & other for one in mine for other in its)


def _same_words(one: Stance, other: Stance) -> bool:
    """Whether two phrases begin alike or one is a part of the other: *charge* and *charging*, *free* and *free of charge*."""
    mine, its = set(one.lemmas), set(other.lemmas)
    return mine <= its or its <= mine or (one.lemmas[:1] == other.lemmas[:1] and not mine & its <= _PREPOSITIONS)


def _opposes(mine: Stance, its: Stance) -> bool:
    """Whether two stances exclude each other. Where one alone is denied the other side may be what is meant, or nothing: no finding."""
    if _same_words(mine, its):
        return False
    if mine.denied or its.denied:
        return mine.denied is its.denied and not mine.open and mine.side != its.side
    return mine.side != its.side


def _closeness(mine: Stance, its: Stance) -> int:
    """Return how surely two stances are of one thing: shared words of their clauses, and those beside them twice. 0: they are not."""
    near, clause = mine.near & its.near, mine.clause & its.clause
    for ours, theirs in ((mine.names, its.names), (mine.figures, its.figures)):
        if ours and theirs and not ours & theirs:
            return 0
    if 2 * len(clause) < min(len(mine.clause), len(its.clause)):
        return 0
    whole = clause in {mine.clause, its.clause}
    return len(near) + len(clause) + int(whole)
