"""Stage 3c, contradiction: two claims of one answer that cannot both hold (SPEC-005 §5.4).

The 561 pairs of 34 claims would be too many for the model, so each claim meets its five nearest neighbours of the same
subject. ``across`` does the same between windows, for stage 6 (§8.2). disagreement.py classifies a pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from interlock.dpe.claims.wording import hypothesis
from interlock.dpe.comparison.disagreement import CONTRADICTED_ABOVE, classify, same_subject
from interlock.dpe.comparison.distinct import distinct
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
_UNSURE_INSIDE = frozenset({"nli", "numbers"})
"""Methods that misread the parts of one sentence, which both hold: 24 of 38 won, and only 6 lost."""
Pair = tuple[int, int]


@dataclass(frozen=True)
class Contradiction:
    """A pair of contradicting claims, its probability, and the method that found it.

    ``kind`` is as in disagreement.py.
    """

    claim_id: str
    other_claim_id: str
    other_text: str
    probability: float
    severity: str
    method: str
    kind: str


def neighbours(claims: Sequence[Claim], vectors: Floats, cancelled: Callable[[], bool] = lambda: False) -> list[Pair]:
    """Return the pairs to compare, earlier claim first: similar claims of the same subject that state no distinct items.

    Once *cancelled* says so, the rest is left out.
    """
    if len(claims) < 2:
        return []
    similar = vectors @ vectors.T
    np.fill_diagonal(similar, -1.0)
    return _same_subject_pairs(claims, ((min(a, b), max(a, b)) for a, b in _nearest(similar)), cancelled)


def across(
    earlier: Sequence[Claim], earlier_vectors: Floats, later: Sequence[Claim], later_vectors: Floats
) -> list[Pair]:
    """Return the pairs to compare between windows, as indexes into the concatenation of *earlier* and *later*."""
    if not earlier or not later:
        return []
    pairs = ((b, len(earlier) + a) for a, b in _nearest(later_vectors @ earlier_vectors.T))
    return _same_subject_pairs([*earlier, *later], pairs)


def _nearest(similar: Floats) -> Iterable[Pair]:
    """Yield each row with its nearest columns."""
    for row, values in enumerate(similar):
        for column in np.argsort(-values, kind="stable")[:NEIGHBOURS]:
            if values[column] >= NEAR_FROM:
                yield row, int(column)


def _same_subject_pairs(
    claims: Sequence[Claim], pairs: Iterable[Pair], cancelled: Callable[[], bool] = lambda: False
) -> list[Pair]:
    return sorted(
        (a, b)
        for a, b in set(pairs)
        if not cancelled() and same_subject(claims[a], claims[b]) and _may_contradict(claims[a].text, claims[b].text)
    )


def _may_contradict(one: str, other: str) -> bool:
    """Whether two claims may be of one thing. A line that only announces the items below it states nothing beside them."""
    return not (one.rstrip().endswith(":") or other.rstrip().endswith(":") or distinct(one, other))


async def probabilities(claims: Sequence[Claim], pairs: Sequence[Pair], inference: Inference) -> list[float]:
    """Return P(contradiction) of each pair.

    A contradiction is symmetric; one that only one direction shows is an artefact of the model. So the lower of both
    probabilities counts, and the second direction is scored only when the first is high enough.
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
    claims: Sequence[Claim], pairs: Sequence[Pair], likely: Sequence[float], *, one_answer: bool = False
) -> list[Contradiction]:
    """Return the contradictions among *pairs*, given the model's probability of each.

    *one_answer*: the claims are those of one answer. Two parts of one sentence need more than the model or two figures.
    """
    found = []
    for (a, b), probability in zip(pairs, likely, strict=True):
        one, other = claims[a], claims[b]
        if _may_contradict(one.text, other.text) and (disagreement := classify(one, other, probability)):
            if one_answer and disagreement.method in _UNSURE_INSIDE and _in_one_sentence(one, other):
                continue
            found.append(
                Contradiction(
                    claim_id=one.claim_id,
                    other_claim_id=other.claim_id,
                    other_text=other.text,
                    probability=disagreement.probability,
                    severity=disagreement.severity,
                    method=disagreement.method,
                    kind=disagreement.kind,
                )
            )
    return found


def _in_one_sentence(one: Claim, other: Claim) -> bool:
    """Whether two claims were cut from one sentence."""
    places = [(claim.choice_index, claim.output_index, claim.sentence_index) for claim in (one, other)]
    return places[0] == places[1]


def counted(found: Iterable[Contradiction]) -> list[Contradiction]:
    """Return the contradictions that count. A minor inconsistency (LOW) is only reported."""
    return [each for each in found if each.severity != "LOW"]
