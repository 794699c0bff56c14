"""Stage 8, completeness: which information needs of the query the session has answered so far (SPEC-005 §10).

§10.2 calls a need covered when a sentence has a cosine above 0.70 with it. A question and its answer are less alike
than that: with a small embedding model the rule finds a third of the covered needs. So each sentence is assigned to its
nearest need, and a need is covered when a sentence is about it and assigned to it. A comparison is covered by comparing
words in a sentence that names what is compared, a question for a quantity by a number. ``dpe_attribution=cosine``
selects the plain rule. tests/wire/dpe/test_quality_wire.py measures both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from interlock.dpe.grounding.attribution import Method
from interlock.dpe.inference.port import Floats
from interlock.dpe.quality.queries import Need
from interlock.dpe.text.patterns import pattern

PLAIN_ABOVE = 0.70
ABOUT_FROM = 0.30
NEAREST_WITHIN = 0.03
COMPARED_FROM = 0.40
BANDS = (("COMPLETE", 0.90), ("MOSTLY_COMPLETE", 0.70), ("PARTIAL", 0.40))
_ROUNDING = 1e-9

_WORD = pattern(r"[\p{L}\p{N}]+")
_COMPARES = pattern(
    r"\b(?:while|whereas|unlike|both|than|compared?|comparison|contrast|similar(?:ly)?|differs?|different(?:ly)?|difference"
    r"|same|however|but|instead|neither|either|conversely|likewise|on the other hand|equally|respectively)\b",
    ignore_case=True,
)
_COUNTED = pattern(
    r"\bhow (?:many|much|long|tall|high|far|old|heavy|deep|wide|big|large|fast)\b"
    r"|^(?:height|length|width|weight|depth|population|distance|size|age|duration)\b",
    ignore_case=True,
)
_NUMBER = pattern(
    r"\p{N}|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy"
    r"|eighty|ninety|hundreds?|thousands?|millions?|billions?|dozens?|half|no|none|free|once|twice)\b",
    ignore_case=True,
)


@dataclass(frozen=True)
class Coverage:
    """One need, its cosine with the nearest sentence of the session, and whether it is covered."""

    need: Need
    relevance: float
    covered: bool


@dataclass(frozen=True)
class Completeness:
    """The needs, the share of them that is covered, and the band of that share."""

    needs: tuple[Coverage, ...]
    score: float
    level: str


def completeness(
    needs: Sequence[Need], vectors: Floats, sentences: Sequence[str], sentence_vectors: Floats, *, method: Method
) -> Completeness:
    """Return how complete a session is.

    *sentence_vectors* has one row for each of its *sentences*, over all windows.
    """
    if not sentences:
        found = tuple(Coverage(need, 0.0, covered=False) for need in needs)
    else:
        similar = vectors @ sentence_vectors.T
        found = tuple(
            Coverage(need, _relevance(similar[row]), covered=_covered(row, needs, similar, sentences, method))
            for row, need in enumerate(needs)
        )
    score = sum(coverage.covered for coverage in found) / len(found)
    return Completeness(found, score, level(score))


def level(score: float) -> str:
    """Return the band of a score (step 8.3)."""
    return next((name for name, bound in BANDS if score >= bound - _ROUNDING), "INCOMPLETE")


def _relevance(row: Floats) -> float:
    return min(1.0, max(-1.0, float(row.max())))


def _covered(row: int, needs: Sequence[Need], similar: Floats, sentences: Sequence[str], method: Method) -> bool:
    if method == "cosine":
        return bool(similar[row].max() > PLAIN_ABOVE)
    if needs[row].compared:
        return _is_compared(needs[row], similar[row], sentences)
    rivals = [n for n, need in enumerate(needs) if not need.compared]
    nearest = similar[rivals].max(axis=0)
    taken = (similar[row] >= ABOUT_FROM) & (similar[row] >= nearest - NEAREST_WITHIN)
    if not _COUNTED.search(needs[row].text):
        return bool(taken.any())
    return any(hit and _NUMBER.search(sentence) for hit, sentence in zip(taken, sentences, strict=True))


def _is_compared(need: Need, similar: Floats, sentences: Sequence[str]) -> bool:
    """Whether a sentence compares the items of a need.

    It needs a comparing word, and it or it and the sentence before must name two of the items.
    """
    items = [_stems(item) for item in need.compared]
    before: frozenset[str] = frozenset()
    for sentence, likeness in zip(sentences, similar, strict=True):
        words = _stems(sentence)
        if _COMPARES.search(sentence):
            named = sum(1 for item in items if item & (words | before) and _most(item, words | before))
            if named >= 2 or likeness >= COMPARED_FROM:
                return True
        before = words
    return False


def _most(item: frozenset[str], words: frozenset[str]) -> bool:
    return 2 * len(item & words) >= len(item)


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.removesuffix("s") for word in _WORD.findall(text.casefold()))
