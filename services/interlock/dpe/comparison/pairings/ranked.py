"""Ranked: a claim that calls the one thing more than the other, or the most of all, against the figures of its source (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import permutations

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.comparison.groupings.dimensions import is_meant, named_measure, title_words
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.comparison.groupings.measured import Measured, Measures
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.units import TIME

_GENERAL = {
    "more": 1,
    "higher": 1,
    "larger": 1,
    "bigger": 1,
    "greater": 1,
    "less": -1,
    "fewer": -1,
    "lower": -1,
    "smaller": -1,
}
_SPECIFIC = {
    "heavier": (1, {"mass"}), "lighter": (-1, {"mass"}), "longer": (1, {"length", TIME}), "shorter": (-1, {"length", TIME}),
    "taller": (1, {"length"}), "older": (1, {TIME}), "younger": (-1, {TIME}),
    "cheaper": (-1, {"MONEY"}), "dearer": (1, {"MONEY"}), "pricier": (1, {"MONEY"}),
}  # fmt: skip
_MOST = {
    "heaviest": "heavier", "lightest": "lighter", "longest": "longer", "shortest": "shorter", "tallest": "taller",
    "oldest": "older", "youngest": "younger", "cheapest": "cheaper", "dearest": "dearer", "largest": "larger",
    "biggest": "bigger", "smallest": "smaller", "highest": "higher", "lowest": "lower",
}  # fmt: skip
_WORD = pattern(r"\b(" + "|".join([*_GENERAL, *_SPECIFIC]) + r")\b", ignore_case=True)
_SUPERLATIVE = pattern(r"\bthe (" + "|".join(_MOST) + r")\b", ignore_case=True)
_THAN = pattern(r"\sthan\s", ignore_case=True)
_EXCEEDS = pattern(r"\s(?:exceeds?|exceeded|outnumbers?|outnumbered|surpass(?:es|ed)?)\s(by\s)?", ignore_case=True)
_CLAUSES = pattern(r",\s|[;:—]\s?|\s(?:and|but|while|whereas|because|since|so|which)\s")
_LIMITED = word_set("second third next among under over half twice times per if of")
_LIMITED_PAIR = _LIMITED - {"of", "among"}
_STANDING = pattern(
    r"\b(?:ones?|the (?:two|three|four)|th(?:at|ose) of|the (?:number|amount|share) of|people|persons?)\b",
    ignore_case=True,
)
_FILLING = frozenset({"x", "yes"})
_OTHERS, _SIDES = 1, 2


def ranked(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the ranking of *claim* that the figures of a source refute, or ``None``."""
    if claim.text.rstrip().endswith("?") or not evidence.measures:
        return None
    for clause in _CLAUSES.split(claim.text.rstrip(".!")):
        if has_negator(clause):
            continue
        for stated, said in (*_compared(clause, evidence.measures), *_topped(clause, evidence.measures)):
            measures, wrong = stated
            return Misbinding(NEGATION_FLIP, "ranking", wrong, said, measures.text[:200], measures.fact_id)
    return None


def _compared(clause: str, known: Collection[Measures]) -> Iterator[tuple[tuple[Measures, str], str]]:
    """Yield what is wrong with *X is longer than Y* or *X exceeds Y*, where one source alone measures both.

    Where it gives several figures for both, such as the price on the list and the price paid, all of them refute the claim.
    """
    sides = _sides(clause)
    if sides is None or _LIMITED_PAIR & set(clause.lower().split()):
        return
    word, one, two = sides
    left, right = _words(one), _words(two)
    meant = [each for each in known if _fits(word, each) and is_meant(left | right, each)]
    found = [(each, pairs) for each in meant if (pairs := _pairs(left, right, each))]
    if len(found) != 1:
        return
    measures, pairs = found[0]
    if all(_refutes(mine, other, _side(word)) for mine, other in pairs) and all(
        _says_just_that(word, left, right, measures, *pair) for pair in pairs
    ):
        mine, other = pairs[0]
        yield (measures, f"{mine.value.text}, {other.value.text}"), clause.strip()


def _sides(clause: str) -> tuple[str, str, str] | None:
    """Return the comparative of a clause and what stands on both sides of it; ``None`` where it has not just one."""
    parts = _THAN.split(clause)
    found = list(_WORD.finditer(parts[0])) if len(parts) == _SIDES else []
    if len(found) == 1:
        return found[0].group().lower(), parts[0].replace(found[0].group(), " "), parts[1]
    exceeds = list(_EXCEEDS.finditer(clause))
    if len(parts) > 1 or len(exceeds) != 1 or exceeds[0][1] or _WORD.search(clause):
        return None
    return "more", clause[: exceeds[0].start()], clause[exceeds[0].end() :]


def _refutes(mine: Measured, other: Measured, side: int) -> bool:
    """Whether two figures are the other way round, or are one and the same."""
    return ((mine.value.amount or 0.0) - (other.value.amount or 0.0)) * side <= 0


def _pairs(left: frozenset[str], right: frozenset[str], measures: Measures) -> list[tuple[Measured, Measured]]:
    """Return the things on both sides: by words that each has alone, or by all words by which two differ, *list* prices of both."""
    others = [each for each in measures.things if measures.own(each) & right]
    if len(others) == 1:
        mine = [each for each in measures.things if each is not others[0] and measures.own(each) & left]
        if len(mine) == 1:
            return [(mine[0], others[0])]
    apart = [
        (len(one.words & two.words & (left | right)), one, two)
        for one, two in permutations(measures.things, _SIDES)
        if _stands(one.words - two.words, left, right) and _stands(two.words - one.words, right, left)
    ]
    nearest = max((shared for shared, _, _ in apart), default=0)
    return [(one, two) for shared, one, two in apart if shared == nearest]


def _stands(words: frozenset[str], side: frozenset[str], other: frozenset[str]) -> bool:
    return bool(words) and words <= side and not words & other


def _says_just_that(
    word: str, left: frozenset[str], right: frozenset[str], measures: Measures, *things: Measured
) -> bool:
    """Whether a clause compares what is measured: every other word stands with a figure or in the title, on both sides, or names the
    measure, or the adjective says what it is.
    """
    known = frozenset(each for thing in things for each in (*thing.words, *_words(thing.value.text)))
    units = {each for thing in things for each in thing.value.text.lower().split()}
    rest = {each for each in (left | right) - (left & right) - known - _FILLING if not each[0].isdigit()}
    rest -= units | named_measure(measures) | title_words(measures)
    return len(rest) <= (_OTHERS if word in _SPECIFIC else 0)


def _topped(clause: str, known: Collection[Measures]) -> Iterator[tuple[tuple[Measures, str], str]]:
    """Yield what is wrong with *X is the longest*, where one source alone measures several things of which X is one."""
    match = _SUPERLATIVE.search(clause)
    if match is None or _LIMITED & set(clause.lower().split()):
        return
    word, said = _MOST[match.group(1).lower()], _words(clause.replace(match.group(), " "))
    found = [(each, thing) for each in known if _fits(word, each) for thing in each.things if each.own(thing) & said]
    if len(found) != 1 or not _says_just_that(word, said, frozenset(), found[0][0], *found[0][0].things):
        return
    measures, mine = found[0]
    rivals = [
        each for each in measures.things if ((each.value.amount or 0.0) - (mine.value.amount or 0.0)) * _side(word) > 0
    ]
    if rivals:
        yield (measures, f"{mine.value.text}, {rivals[0].value.text}"), clause.strip()


def _side(word: str) -> int:
    return _GENERAL[word] if word in _GENERAL else _SPECIFIC[word][0]


def _fits(word: str, measures: Measures) -> bool:
    """Whether a comparative is of what the figures measure: *cheaper* of money, *taller* of a length."""
    value = measures.things[0].value
    return word in _GENERAL or bool({value.unit, value.kind} & _SPECIFIC[word][1])


def _words(text: str) -> frozenset[str]:
    return words_of("x " + _STANDING.sub(" ", text)) - _FILLING
