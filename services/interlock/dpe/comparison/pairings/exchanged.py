"""Exchanged words: a sentence that copies its source but for two phrases that traded places (SPEC-005 §5.3).

No parse is needed, so that it finds what the parser misreads: *port 22 is open and port 443 is closed*.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import key
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.text.wordlists import word_set

_LONGEST = 60
_LONGEST_PHRASE = 6
_JOINING = word_set("and or nor & as well both either neither with between , the a an")
_LISTING = word_set("and or nor & ,")
_MUTUAL = frozenset(map(key, predicates.SYMMETRIC | predicates.SAME_BOTH_WAYS))
_COPULAS = word_set("is are was were be been remains means equals the a an")


def exchanged(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the first of two phrases of *claim* that stand in each other's place in a source's sentence, or ``None``."""
    mine = _words(claim.text)
    if any(frame.predicate in predicates.SYMMETRIC for frame in claim.frames):
        return None
    if not mine or len(mine) > _LONGEST or any(_words(each.text) == mine for each in evidence.passages):
        return None
    for source in evidence.passages:
        its = _words(source.text)
        if len(its) == len(mine) and sorted(its) == sorted(mine):
            found = _exchange(mine, its)
            if found is not None:
                return Misbinding(ENTITY_SUBSTITUTED, "order", found[1], found[0], source.text, source.fact_id)
    return None


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for each in text.casefold().replace(",", " , ").split() if (word := each.strip(".;:!?\"'()“”")))


def _exchange(mine: Sequence[str], its: Sequence[str]) -> tuple[str, str] | None:
    """Return two phrases of *mine* whose exchange gives *its*, where the words between bind them to different places."""
    first = next((n for n, (a, b) in enumerate(zip(mine, its, strict=True)) if a != b), None)
    if first is None:
        return None
    last = len(mine) - next(n for n, (a, b) in enumerate(zip(reversed(mine), reversed(its), strict=True)) if a != b)
    inner, other = list(mine[first:last]), list(its[first:last])
    for size in range(1, min(_LONGEST_PHRASE, len(inner) - 1) + 1):
        for tail in range(1, min(_LONGEST_PHRASE, len(inner) - size) + 1):
            head, middle, end = inner[:size], inner[size : len(inner) - tail], inner[len(inner) - tail :]
            if [*end, *middle, *head] == other and _binds(middle):
                return " ".join(head), " ".join(end)
    return None


def _binds(middle: Sequence[str]) -> bool:
    """Whether the words between two phrases give them different roles: no list, no equation, nothing mutual."""
    words = set(middle)
    if not words or words <= _JOINING or words <= _COPULAS or (middle[0] in _LISTING and middle[-1] in _LISTING):
        return False
    return not any(key(word) in _MUTUAL for word in words)
