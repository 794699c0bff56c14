"""Stage 2, attribution: what each claim rests on (SPEC-005 §4).

Embeddings propose facts, NLI and the value comparer decide. §4.3 decides by cosine alone; with a small embedding model
its 0.75 finds 13 to 77 % of the supported claims and passes 9 to 32 % of the unsupported ones, so that a changed
number counts as grounded. The cosine is reported as the similarity, and ``dpe_attribution=cosine`` selects the plain
reading.

Each claim is put to NLI against three premises, alike ones once, until one surely entails it: its nearest unit; the
window of the envelope that shares most words with it; and its nearest units together, for what only several facts
support. The best of them counts. One that a model finds entailed is CONTEXT_GROUNDED unless a value or a name in it is missing from the envelope
or conflicts with its source; then, or when it is close to a fact without following from it, it is MIXED.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from interlock.dpe.document import Claim, NliScores
from interlock.dpe.envelope import Envelope, content_words
from interlock.dpe.inference import CONTRADICTION, ENTAILMENT, NEUTRAL, Floats, Inference
from interlock.dpe.text import words_of
from interlock.dpe.wording import hypothesis

GROUNDED_ENTAILMENT = 0.50
SURE_ENTAILMENT = 0.80
MIXED_ENTAILMENT = 0.25
GROUNDED_COSINE = 0.75
MIXED_COSINE = 0.60
GENERIC_BELOW = 0.30
PREMISE_TOKENS = 150
_PREMISES = 3
CLAIM_TOKENS = 100
SPARE_TOKENS = 4  # a full stop that a claim gets, and what joining texts may add with other tokenizers

Method = Literal["nli", "cosine"]
TITLE_WORDS = words_of(
    """
    additional advantage answer background benefit cause caveat comparison con conclusion consideration context
    detail difference disadvantage effect example explanation fact feature finding history impact important
    information introduction key limitation main note number option overview part point pro process purpose
    question reason recommendation reference requirement result risk similarity source step summary takeaway
    timeline tip type
    """
)
"""What headings are made of in any answer: beside the words of envelope and query, what a title may say freely."""

NO_EVIDENCE = NliScores(entailment=0.0, neutral=1.0, contradiction=0.0)
SAID = NliScores(entailment=1.0, neutral=0.0, contradiction=0.0)


class Attribution(IntEnum):
    """What a claim rests on (§4.2); the numbers are those of the proto."""

    CONTEXT_GROUNDED = 1
    PARAMETRIC = 2
    MIXED = 3
    UNVERIFIABLE = 4


@dataclass(frozen=True)
class Evidence:
    """What the envelope says about one claim.

    ``scores`` are those of the best premise; ``source`` is the nearest unit, ``source_scores`` are its own; ``others``
    are the next nearest units, each with the id of its fact.
    """

    fact_id: str
    similarity: float
    source: str
    source_scores: NliScores
    premise: str
    scores: NliScores
    others: tuple[tuple[str, str], ...] = ()


NOTHING = Evidence("", 0.0, "", NO_EVIDENCE, "", NO_EVIDENCE)


def limits(inference: Inference) -> tuple[int, int]:
    """Return the most tokens of a claim and of a premise, so that every pair fits the model uncut."""
    room = inference.max_pair_tokens - SPARE_TOKENS
    claim = min(CLAIM_TOKENS, room * 2 // 5)
    return claim, min(PREMISE_TOKENS, room - claim)


async def evidence(
    claims: Sequence[Claim],
    vectors: Floats,
    envelope: Envelope,
    inference: Inference,
    *,
    titles: Collection[str],
    query: str,
) -> dict[str, Evidence]:
    """Return the evidence on each claim by its id; *vectors* has a row for each claim.

    *titles* are the claims that assert nothing: one whose words are all in the envelope or the query rests on it.
    """
    if not envelope.cut.units:
        return {claim.claim_id: NOTHING for claim in claims}
    room = limits(inference)[1]
    known = (
        _stems(word for unit in envelope.cut.units for word in unit.words) | _stems(content_words(query)) | TITLE_WORDS
    )
    proposals = [
        _title(envelope, vector)
        if claim.claim_id in titles and _stems(content_words(claim.text)) <= known
        else _premises(claim, vector, envelope, room)
        for claim, vector in zip(claims, vectors, strict=True)
    ]
    scores: list[list[NliScores]] = [[] for _ in claims]
    for turn in range(_PREMISES):
        asked = [
            number
            for number, proposal in enumerate(proposals)
            if turn < len(proposal.premises) and not _sure(scores[number])
        ]
        pairs = [(proposals[number].premises[turn], hypothesis(claims[number].text)) for number in asked]
        for number, answer in zip(asked, scored(await inference.nli(pairs)), strict=True):
            scores[number].append(answer)
    return {
        claim.claim_id: _weighed(envelope, proposal, answers)
        for claim, proposal, answers in zip(claims, proposals, scores, strict=True)
    }


def _sure(answers: Sequence[NliScores]) -> bool:
    return any(answer.entailment >= SURE_ENTAILMENT for answer in answers)


def scored(rows: Floats) -> list[NliScores]:
    """Return the rows that the model answered as scores."""
    return [NliScores(float(row[ENTAILMENT]), float(row[NEUTRAL]), float(row[CONTRADICTION])) for row in rows]


@dataclass(frozen=True)
class _Proposal:
    unit: int
    others: tuple[int, ...]
    similarity: float
    premises: tuple[str, ...]


def _premises(claim: Claim, vector: Floats, envelope: Envelope, room: int) -> _Proposal:
    """Return the nearest unit and the premises to try: that unit first, and no premise twice."""
    near = envelope.nearest(vector)
    unit, similarity = near[0]
    premises = (
        envelope.cut.units[unit].text,
        envelope.window(claim.text, room),
        envelope.collected([number for number, _ in near], room),
    )
    whole = envelope.similarity(envelope.cut.units[unit].fact, vector)
    others = tuple(number for number, _ in near[1:])
    return _Proposal(unit, others, max(similarity, whole), tuple(p for p in dict.fromkeys(premises) if p))


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word.removesuffix("s") for word in words)


def _title(envelope: Envelope, vector: Floats) -> _Proposal:
    unit, similarity = envelope.nearest(vector)[0]
    return _Proposal(unit, (), similarity, ())


def _weighed(envelope: Envelope, proposal: _Proposal, scores: Sequence[NliScores]) -> Evidence:
    unit = envelope.cut.units[proposal.unit]
    if not scores:
        return Evidence(envelope.facts[unit.fact].id, proposal.similarity, unit.text, SAID, unit.text, SAID)
    best = max(range(len(scores)), key=lambda n: scores[n].entailment)
    return Evidence(
        fact_id=envelope.facts[unit.fact].id,
        similarity=proposal.similarity,
        source=unit.text,
        source_scores=scores[0],
        premise=proposal.premises[best],
        scores=scores[best],
        others=tuple((envelope.facts[u.fact].id, u.text) for u in map(envelope.cut.units.__getitem__, proposal.others)),
    )


def attribute(claim: Claim, found: Evidence, *, flawed: bool, method: Method) -> Attribution:
    """Return what *claim* rests on; *flawed* when a value or name of it is made up or conflicts with its source."""
    if method == "cosine":
        grounded, partly = found.similarity >= GROUNDED_COSINE, found.similarity >= MIXED_COSINE
    else:
        entailment = found.scores.entailment
        grounded = entailment >= GROUNDED_ENTAILMENT and not flawed
        partly = entailment >= MIXED_ENTAILMENT or found.similarity >= MIXED_COSINE
    if grounded:
        return Attribution.CONTEXT_GROUNDED
    if partly:
        return Attribution.MIXED
    return Attribution.PARAMETRIC if claim.specificity < GENERIC_BELOW else Attribution.UNVERIFIABLE
