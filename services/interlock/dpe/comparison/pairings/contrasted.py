"""Contrasts turned round: *sold to the bank, not to Ms Ito*, where the source has it sold to Ms Ito (SPEC-005 §5.3).

What a claim sets apart with *not* at its end is looked for in the sources. A sentence states the opposite if it has that, denies
nothing, says nothing else that the claim does not say, and lacks but one word of the claim: the one that took its place.
"""

from __future__ import annotations

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.text.content_words import content_words
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.frames import STOP, stem

_TAIL = pattern(r",\s+not\s+((?:[\p{L}\p{N}'’.-]+\s*){1,5})[.!]?\s*\z", ignore_case=True)
_EITHER_WAY = "±"


def contrasted(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return what *claim* sets apart with *not* and its source states, or ``None``."""
    tail = _TAIL.search(claim.text)
    apart = _stems(tail[1]) if tail is not None else frozenset()
    if tail is None or not apart:
        return None
    rest = _stems(claim.text[: tail.start()])
    for source in evidence.passages:
        stated = _stems(source.text)
        others = stated - apart
        same = others and others <= rest and len(rest - stated) <= 1
        if apart <= stated and same and not has_negator(source.text):
            return Misbinding(
                NEGATION_FLIP, "contrast", tail[1].strip(), f"not {tail[1].strip()}", source.text, source.fact_id
            )
    return None


def _stems(text: str) -> frozenset[str]:
    """Return the stems of a text; words of a direction stay themselves, for *rose* and *fell* share a stem."""
    stemmed = {word: stem(word) for word in content_words(text) - STOP}
    return frozenset(word if found.startswith(_EITHER_WAY) else found for word, found in stemmed.items())
