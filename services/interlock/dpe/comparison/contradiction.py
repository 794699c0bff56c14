"""Stage 3c, contradictions: two claims of one answer that cannot both hold (SPEC-005 §5.4).

Every pair would be 561 runs of the model for 34 claims, so each claim meets its five nearest neighbours of the same
subject; ``across`` does the same between windows, for stage 6 (§8.2). What a pair says is told by disagreement.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from interlock.dpe.claims.wording import hypothesis
from interlock.dpe.comparison.disagreement import CONTRADICTED_ABOVE, classify, same_subject
from interlock.dpe.document import Claim
from interlock.dpe.inference.port import CONTRADICTION, Floats, Inference

__all__ = [
    "CONTRADICTED_ABOVE",
    "Contradiction",
    "across",
    "contradictions",
    "counted",
    "neighbours",
    "probabilities",
]

NEIGHBOURS = 5
NEAR_FROM = 0.50
Pair = tuple[int, int]


@dataclass(frozen=True)
class Contradiction:
    """Two claims, how surely they contradict each other, and how that was found; ``kind`` as in disagreement.py."""

    claim_id: str
    other_claim_id: str
    other_text: str
    probability: float
    severity: str
    method: str
    kind: str


def neighbours(claims: Sequence[Claim], vectors: Floats) -> list[Pair]:
    """Return the pairs worth comparing, earlier claim first: near in meaning, and of the same thing."""
    if len(claims) < 2:
        return []
    similar = vectors @ vectors.T
    np.fill_diagonal(similar, -1.0)
    return _of_one_subject(claims, ((min(a, b), max(a, b)) for a, b in _nearest(similar)))


def across(
    earlier: Sequence[Claim], earlier_vectors: Floats, later: Sequence[Claim], later_vectors: Floats
) -> list[Pair]:
    """Return the pairs worth comparing between windows, as indexes into *earlier* and *later* put together."""
    if not earlier or not later:
        return []
    pairs = ((b, len(earlier) + a) for a, b in _nearest(later_vectors @ earlier_vectors.T))
    return _of_one_subject([*earlier, *later], pairs)


def _nearest(similar: Floats) -> Iterable[Pair]:
    """Yield each row with its nearest columns."""
    for row, values in enumerate(similar):
        for column in np.argsort(-values, kind="stable")[:NEIGHBOURS]:
            if values[column] >= NEAR_FROM:
                yield row, int(column)


def _of_one_subject(claims: Sequence[Claim], pairs: Iterable[Pair]) -> list[Pair]:
    return sorted(pair for pair in set(pairs) if same_subject(claims[pair[0]], claims[pair[1]]))


async def probabilities(claims: Sequence[Claim], pairs: Sequence[Pair], inference: Inference) -> list[float]:
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


def contradictions(claims: Sequence[Claim], pairs: Sequence[Pair], likely: Sequence[float]) -> list[Contradiction]:
    """Return the contradictions among *pairs*, given how likely the model finds each."""
    found = []
    for (a, b), probability in zip(pairs, likely, strict=True):
        if seen := classify(claims[a], claims[b], probability):
            one, other = claims[a], claims[b]
            found.append(
                Contradiction(
                    claim_id=one.claim_id,
                    other_claim_id=other.claim_id,
                    other_text=other.text,
                    probability=seen.probability,
                    severity=seen.severity,
                    method=seen.method,
                    kind=seen.kind,
                )
            )
    return found


def counted(found: Iterable[Contradiction]) -> list[Contradiction]:
    """Return those that weigh: a minor inconsistency (LOW) is reported and no more."""
    return [each for each in found if each.severity != "LOW"]
