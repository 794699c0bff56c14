"""Figures of another thing: *the glass weighs 97 t*, where that is the plastic, and the glass weighs 140 t (SPEC-005 §5.3).

A source that gives figures of one unit for several things, in lines or side by side, tells what each of them measures. A claim that says
nothing but a thing and a figure, which is that of another thing and of it alone, has taken the figure of the wrong one.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.cues import NUMBER_CHANGED
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.comparison.groupings.dimensions import is_meant, named_measure, title_words
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.comparison.groupings.measured import Measured, Measures, figure
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import Value, comparable, same

_CLAUSES = pattern(r",\s|[;:—]\s?|\s(?:and|but|while|whereas|because|since|so|which|who|that)\s")
_COMPARES = pattern(
    r"\b(?:than|more|less|fewer|extra|additional|difference|differs?|left|remaining|total|altogether|together|average|saves?|saved"
    r"|instead|rather|by|or|from|plus|minus|only|if|other|another|both|each|every|all)\b",
    ignore_case=True,
)
"""Words by which a figure may be no plain figure of the thing: a difference, a sum, a case."""
_PART = pattern(r"\A\s+(?:out )?of\b|\A\s+in\s+\d", ignore_case=True)
_RECORDED = pattern(r"[\n{(|]")
"""Marks of a record, whose figures may be of another time: *calls: 612 (2023: 680)*."""
_BEFORE = pattern(r"\b(?:from|than|down|up|after|against|versus|of) *\z", ignore_case=True)
_EXCEPTED = pattern(r"\b(?:all|none|any|every\w*|no\w*) but\b", ignore_case=True)
_GENERAL = words_of("x amount amounts figure value set stands stand come comes came total given listed stated recorded shown report reported table list") - {"x"}  # fmt: skip
_MOST_WORDS = 14


def owned(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the figure that *claim* gives to the wrong one of several things, or ``None``."""
    text = claim.text.rstrip()
    if not evidence.measures or text.endswith("?") or _EXCEPTED.search(text) or _RECORDED.search(text):
        return None
    for clause in _CLAUSES.split(claim.text.rstrip(" .!")):
        mine = figure(list(read(clause).values)) if len(clause.split()) <= _MOST_WORDS else None
        if mine is None or has_negator(clause) or _COMPARES.search(clause) or _PART.search(clause[mine.end :]):
            continue
        said = words_of("x " + clause.replace(mine.text, " ")) - {"x"}
        beside = words_of("x " + text)  # the thing may be named in another clause: *in cash, parking costs 3 euros*
        found = [each for known in evidence.measures for each in _wrong(said, beside, mine, known)]
        known = [each for each in evidence.measures if _has(each, mine)]
        if len(found) == 1 and len(known) == 1:
            own, measures = found[0]
            return Misbinding(
                NUMBER_CHANGED, "figure", own.value.text, mine.text, measures.text[:200], measures.fact_id, about=claim.content
            )  # fmt: skip
    return None


def _has(measures: Measures, value: Value) -> bool:
    return any(comparable(value, each.value) and same(value, each.value) for each in measures.things)


def _wrong(
    said: frozenset[str], beside: frozenset[str], value: Value, measures: Measures
) -> Iterator[tuple[Measured, Measures]]:
    """Yield the thing that a clause names, where its figure is not the clause's and that of one other thing is."""
    if not comparable(value, measures.things[0].value):
        return
    holders = [each for each in measures.things if same(value, each.value)]
    if len(holders) != 1 or not is_meant(said, measures) or _count(measures, value) != 1:
        return
    named = _named(said, measures)
    if named is None or named is holders[0] or same(value, named.value):
        return
    if "{" in measures.text or any(_BEFORE.search(measures.text[: each.value.start]) for each in (named, holders[0])):
        return  # a loss after a profit of 0.4 million, 612 calls, down from 680
    own, its = named.words - holders[0].words, holders[0].words - named.words
    rest = said - named.words - named_measure(measures) - title_words(measures) - _GENERAL
    if own & said and its and not its & beside and not {each for each in rest if not each[0].isdigit()}:
        yield named, measures


def _named(said: frozenset[str], measures: Measures) -> Measured | None:
    """Return the one thing that most words of a clause name, or ``None``."""
    ranked = sorted(measures.things, key=lambda each: -len(each.words & said))
    most = len(ranked[0].words & said)
    return ranked[0] if most and len(ranked[1].words & said) < most else None


def _count(measures: Measures, value: Value) -> int:
    """Return how often the source states a figure, whatever it is about."""
    return sum(comparable(value, each) and same(value, each) for each in read(measures.text).values)
