"""Stage 3c, contradictions: two claims of one answer that cannot both hold (SPEC-005 §5.4).

Every pair would be 561 runs of the model for 34 claims, so each claim meets its five nearest neighbours. Two claims
contradict each other only when they speak of the same thing: that France has 68 million people and Germany 84 million
is no contradiction, whatever a small model says, and neither are this year's figure and last year's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from interlock.dpe.document import Claim
from interlock.dpe.envelope import content_words
from interlock.dpe.inference import CONTRADICTION, Floats, Inference
from interlock.dpe.values import compare, extract, frame, same
from interlock.dpe.wording import hypothesis

CONTRADICTED_ABOVE = 0.75
NEIGHBOURS = 5
NEAR_FROM = 0.50
SAME_WORDS = 0.60
_NAMES = frozenset({"PERSON", "ORG", "GPE", "LOC", "NORP", "FAC", "PRODUCT", "EVENT", "LAW", "WORK_OF_ART"})
_RULES = {
    "NUMBER_CHANGED": ("numbers", "CRITICAL"),
    "MAGNITUDE_ALTERED": ("numbers", "CRITICAL"),
    "DATE_SHIFTED": ("dates", "HIGH"),
    "NEGATION_FLIP": ("negation", "HIGH"),
}


@dataclass(frozen=True)
class Contradiction:
    """Two claims of one answer, how surely they contradict each other, and how that was found."""

    claim_id: str
    other_claim_id: str
    other_text: str
    probability: float
    severity: str
    method: str


def neighbours(claims: Sequence[Claim], vectors: Floats) -> list[tuple[int, int]]:
    """Return the pairs worth comparing, earlier claim first: near in meaning, and of the same thing."""
    if len(claims) < 2:
        return []
    similar = vectors @ vectors.T
    np.fill_diagonal(similar, -1.0)
    pairs = {
        (min(a, int(b)), max(a, int(b)))
        for a in range(len(claims))
        for b in np.argsort(-similar[a], kind="stable")[:NEIGHBOURS]
        if similar[a, b] >= NEAR_FROM
    }
    return sorted(pair for pair in pairs if _same_subject(claims[pair[0]], claims[pair[1]]))


async def probabilities(claims: Sequence[Claim], pairs: Sequence[tuple[int, int]], inference: Inference) -> list[float]:
    """Return P(contradiction) of each pair.

    A contradiction holds both ways; what only one direction shows is an accident of the model. So the lower one counts,
    and the second is asked for only where the first is high enough.
    """
    texts = [hypothesis(claim.text) for claim in claims]
    found = await _contradicted([(texts[a], texts[b]) for a, b in pairs], inference)
    suspected = [row for row, probability in enumerate(found) if probability > CONTRADICTED_ABOVE]
    backward = await _contradicted([(texts[pairs[row][1]], texts[pairs[row][0]]) for row in suspected], inference)
    for row, probability in zip(suspected, backward, strict=True):
        found[row] = min(found[row], probability)
    return found


async def _contradicted(pairs: Sequence[tuple[str, str]], inference: Inference) -> list[float]:
    return [float(row[CONTRADICTION]) for row in await inference.nli(pairs)]


def contradictions(
    claims: Sequence[Claim], pairs: Sequence[tuple[int, int]], likely: Sequence[float]
) -> list[Contradiction]:
    """Return the contradictions among *pairs*, given how likely the model finds each."""
    frames = {number: frame(claims[number].text) for number in {number for pair in pairs for number in pair}}
    found = []
    for (a, b), probability in zip(pairs, likely, strict=True):
        kinds = {conflict.type for conflict in compare(frames[b], frames[a])}
        if judged := _judged(claims[a], claims[b], kinds, probability):
            method, severity, sure = judged
            found.append(Contradiction(claims[a].claim_id, claims[b].claim_id, claims[b].text, sure, severity, method))
    return found


def _judged(one: Claim, other: Claim, kinds: set[str], probability: float) -> tuple[str, str, float] | None:
    """Return method, severity and probability of a contradiction; ``None`` when there is none."""
    if "DATE_SHIFTED" not in kinds and _other_times(one.text, other.text):
        return None
    if kinds and _same_words(one.text, other.text):
        for kind, (method, severity) in _RULES.items():
            if kind in kinds:
                return method, severity, max(probability, CONTRADICTED_ABOVE)
    if probability > CONTRADICTED_ABOVE:
        return "nli", "HIGH", probability
    return None


def _other_times(one: str, other: str) -> bool:
    """Whether both say when, and not the same: this year's figure and last year's."""
    left, right = ([value for value in extract(text) if value.kind == "DATE"] for text in (one, other))
    return bool(left and right) and not any(same(a, b) for a in left for b in right)


def _same_subject(one: Claim, other: Claim) -> bool:
    """Whether both name something in common, or one of them names nothing at all."""
    left, right = _named(one), _named(other)
    return not left or not right or any(a & b for a in left for b in right)


def _named(claim: Claim) -> list[frozenset[str]]:
    return [words for entity in claim.entities if entity.label in _NAMES and (words := content_words(entity.text))]


def _same_words(one: str, other: str) -> bool:
    """Whether two claims say the same apart from their values."""
    left, right = _wording(one), _wording(other)
    return bool(left and right) and len(left & right) >= SAME_WORDS * len(left | right)


def _wording(text: str) -> frozenset[str]:
    bare = list(text)
    for value in extract(text):
        bare[value.start : value.end] = " " * (value.end - value.start)
    return content_words("".join(bare))
