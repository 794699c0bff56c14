"""Premises: the parts of the envelope that each claim is scored against by NLI (SPEC-005 §4.3, §6.2).

The whole envelope does not fit the model, so each claim meets the parts that may support it, each pair once:

1. its nearest unit;
2. the window of the envelope that shares most words with its sentence, against that whole sentence: a premise that
   entails a sentence entails each claim cut from it, and the claim may have lost its subject in the cut;
3. its nearest unit with adjacent units of the same fact, or the whole fact if it is short;
4. its nearest units together, for a claim that only several facts support.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from interlock.dpe.claims.wording import hypothesis
from interlock.dpe.document import Claim
from interlock.dpe.grounding.envelope import Envelope, EvidenceUnit
from interlock.dpe.inference.port import Floats

Pair = tuple[str, str]


@dataclass(frozen=True)
class Proposal:
    """A claim's nearest unit, its similarity, the next nearest units, and the pairs to score, the unit's own first."""

    unit: int
    others: tuple[int, ...]
    similarity: float
    pairs: tuple[Pair, ...]


def proposal(claim: Claim, sentence: str, vector: Floats, envelope: Envelope, room: int) -> Proposal:
    """Return the pairs to score *claim* with. No premise has more than *room* tokens."""
    near = envelope.nearest(vector)
    unit, similarity = near[0]
    claim_hypothesis, sentence_hypothesis = hypothesis(claim.text), hypothesis(sentence)
    pairs = (
        (envelope.cut.units[unit].text, claim_hypothesis),
        (envelope.window(sentence, room), sentence_hypothesis),
        (around(envelope.cut.units, unit, room), claim_hypothesis),
        (envelope.collected([number for number, _ in near], room), claim_hypothesis),
    )
    return Proposal(
        unit=unit,
        others=tuple(number for number, _ in near[1:]),
        similarity=max(similarity, envelope.similarity(envelope.cut.units[unit].fact, vector)),
        pairs=tuple(pair for pair in dict.fromkeys(pairs) if pair[0]),
    )


def title_proposal(vector: Floats, envelope: Envelope) -> Proposal:
    """Return the proposal of a title that rests on its words, with nothing to score."""
    unit, similarity = envelope.nearest(vector)[0]
    return Proposal(unit, (), similarity, ())


def copy_proposal(unit: int) -> Proposal:
    """Return the proposal of a claim that copies a unit, with nothing to score."""
    return Proposal(unit, (), 1.0, ())


def around(units: Sequence[EvidenceUnit], unit: int, room: int) -> str:
    """Return a unit with neighbours of the same fact, added on both sides in turn while they fit."""
    first, last, total = unit, unit + 1, units[unit].tokens
    grew = True
    while grew:
        grew = False
        for number in (last, first - 1):
            fits = 0 <= number < len(units) and units[number].fact == units[unit].fact
            if fits and total + units[number].tokens <= room:
                total += units[number].tokens
                first, last = min(first, number), max(last, number + 1)
                grew = True
    return " ".join(each.text for each in units[first:last])
