"""Words that exclude each other: *weekly* for *monthly*, *international flights* for *domestic flights* (SPEC-005 §5.3).

A claim is held against the one sentence of the sources that it follows most closely. Where that has another member of a set of which the
claim has one, and no sentence has the claim's, something was put in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from interlock.dpe.comparison.bindings.evidence import Evidence, about
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import lines

_SETS = tuple(
    {word: member for member, words in enumerate(line.split("|")) for word in words.split("=")}
    for line in lines("exclusive.txt")
)
_WORDS = sorted({word for each in _SETS for word in each}, key=lambda word: (-len(word), word))
_ANY = pattern(r"\b(" + "|".join(word.replace(" ", r"\s+") for word in _WORDS) + r")\b", ignore_case=True)
_COMPARED = pattern(r"\b(?:than|instead|rather|whereas|unlike|while|either|or|except|only)\b", ignore_case=True)


def excluded(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the word of *claim* that a word of its source excludes, or ``None``."""
    mine = _members(claim.text)
    if not mine or has_negator(claim.text) or _COMPARED.search(claim.text):
        return None
    stated = about(claim, evidence)
    if stated is None or has_negator(stated.text):
        return None
    theirs, everywhere = _members(stated.text), [_members(source.text) for source in evidence.passages]
    for number, own in mine.items():
        its = theirs.get(number, {})
        if (
            its
            and not its.keys() & own.keys()
            and not any(own.keys() & each.get(number, {}).keys() for each in everywhere)
        ):
            said, told = next(iter(own.values())), next(iter(its.values()))
            return Misbinding(ENTITY_SUBSTITUTED, "kind", told, said, stated.text, stated.fact_id, about=claim.content)
    return None


@lru_cache(maxsize=4096)
def _members(text: str) -> Mapping[int, Mapping[int, str]]:
    """Return the members that a text has of each set, by the numbers of both, with the word that stands for each."""
    found: dict[int, dict[int, str]] = {}
    for match in _ANY.finditer(text):
        word = " ".join(match[1].lower().split())
        for number, each in enumerate(_SETS):
            if word in each:
                found.setdefault(number, {})[each[word]] = match[1]
    return found
