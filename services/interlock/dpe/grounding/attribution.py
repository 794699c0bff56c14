"""Stage 2, attribution: which source each claim rests on (SPEC-005 §4).

Embeddings propose facts; NLI and the value comparison decide. §4.3 decides by cosine alone. With a small embedding
model its threshold of 0.75 finds 13 to 77 % of the supported claims and passes 9 to 32 % of the unsupported ones, so a
changed number counts as grounded. The cosine is reported as the similarity, and ``dpe_attribution=cosine`` selects the
plain rule, with P(entailment) as the model gives it.

Each claim is scored against up to four premises (premises.py), without duplicates, until one surely entails it. The
best score counts, calibrated to the probability that the claim is supported (support.py). A claim that is more likely
supported than not is CONTEXT_GROUNDED, unless one of its values or names is missing from the envelope or conflicts with
the source, or its best premise surely contradicts it. In those cases, or when the claim is close to a fact without
following from it, it is MIXED.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal

from interlock.dpe.claims.wording import plain_figures, uncut
from interlock.dpe.document import Claim, Distortion, NliScores
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.premises import Proposal, copy_proposal, proposal, title_proposal
from interlock.dpe.grounding.support import Vocabulary, calibrated
from interlock.dpe.grounding.verbatim import Copies
from interlock.dpe.inference.fairness import paced
from interlock.dpe.inference.port import CONTRADICTION, ENTAILMENT, NEUTRAL, Floats, Inference
from interlock.dpe.text.content_words import content_words
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.notation import in_notation_of

GROUNDED_ENTAILMENT = 0.50
SURE_ENTAILMENT = 0.80
MIXED_ENTAILMENT = 0.25
DENIED_ABOVE = 0.75  # P(contradiction) of the best premise, as in §8.2
GROUNDED_COSINE = 0.75
MIXED_COSINE = 0.60
GENERIC_BELOW = 0.30
PREMISE_TOKENS = 150
CLAIM_TOKENS = 100
SPARE_TOKENS = 4  # the full stop added to a claim, and what other tokenizers add when texts are joined

Method = Literal["nli", "cosine"]
TITLE_WORDS = word_set(
    """
    additional advantage answer background benefit cause caveat comparison con conclusion consideration context
    detail difference disadvantage effect example explanation fact feature finding history impact important
    information introduction key limitation main note number option overview part point pro process purpose
    question reason recommendation reference requirement result risk similarity source step summary takeaway
    timeline tip type
    """
)
"""Words that headings of any answer use. A title may use them besides the words of envelope and query."""

NO_EVIDENCE = NliScores(entailment=0.0, neutral=1.0, contradiction=0.0)
ENTAILED = NliScores(entailment=1.0, neutral=0.0, contradiction=0.0)


class Attribution(IntEnum):
    """The kinds of source of a claim (§4.2). The numbers are those of the proto."""

    CONTEXT_GROUNDED = 1
    PARAMETRIC = 2
    MIXED = 3
    UNVERIFIABLE = 4


@dataclass(frozen=True)
class ClaimEvidence:
    """The evidence of the envelope on one claim.

    ``scores`` are those of the best premise, calibrated; ``plain_scores`` are the same as the model gave them.
    ``source`` is the nearest unit, and ``source_scores`` are its uncalibrated scores. ``others`` are the next nearest
    units, each with the id of its fact. ``settled`` are the values that calculation accounts for, ``moved`` those that the claim
    takes from another record (calculated.py). ``tabular``: the source is a record.
    ``calculated``: a record or a calculation bears out every value of the claim. ``copied``: it is a sentence of the sources.
    ``agreed``: the fields of a record have the states that it gives them (states.py). ``reckoned``: figures of it that nothing
    states are within reach of stated ones (within_reach.py).
    """

    fact_id: str
    similarity: float
    source: str
    source_scores: NliScores
    premise: str
    scores: NliScores
    others: tuple[tuple[str, str], ...] = ()
    plain_scores: NliScores = NO_EVIDENCE
    settled: frozenset[str] = frozenset()
    moved: tuple[Distortion, ...] = ()
    tabular: bool = False
    calculated: bool = False
    copied: bool = False
    agreed: bool = False
    reckoned: bool = False

    def plain(self) -> ClaimEvidence:
        """Return the evidence of the plain rule of §6, with uncalibrated scores."""
        return replace(self, scores=self.plain_scores)


NOTHING = ClaimEvidence("", 0.0, "", NO_EVIDENCE, "", NO_EVIDENCE)


def limits(inference: Inference) -> tuple[int, int]:
    """Return the token limits of a claim and of a premise, so that every pair fits the model untruncated."""
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
    sentences: Mapping[str, str] | None = None,
) -> dict[str, ClaimEvidence]:
    """Return the evidence on each claim by its id. *vectors* has one row for each claim.

    *titles* are the ids of claims that assert nothing; one whose words all occur in the envelope or the query rests on
    it. *sentences* has the sentence that each claim was cut from. A sentence too long for the model is ignored.
    """
    if not envelope.cut.units:
        return {claim.claim_id: NOTHING for claim in claims}
    claim_room, room = limits(inference)
    context_stems = (
        _stems(word for unit in envelope.cut.units for word in unit.words) | _stems(content_words(query)) | TITLE_WORDS
    )
    texts = _usable_sentences(claims, sentences or {}, inference, claim_room)
    copies = Copies.of(envelope.cut.units)
    copied = await paced(copies.of_claim(claim.text, text) for claim, text in zip(claims, texts, strict=True))
    proposals = await paced(
        copy_proposal(unit)
        if unit is not None
        else title_proposal(vector, envelope)
        if claim.claim_id in titles and _stems(content_words(claim.text)) <= context_stems
        else proposal(claim, text, vector, envelope, room)
        for claim, text, vector, unit in zip(claims, texts, vectors, copied, strict=True)
    )
    scores = await _score_proposals(proposals, inference)
    vocabulary = Vocabulary.of([*envelope.cut.texts, query])
    found = await paced(
        replace(_best_evidence(envelope, each, answers, vocabulary.strange(claim.text)), copied=unit is not None)
        for claim, each, answers, unit in zip(claims, proposals, scores, copied, strict=True)
    )
    return {claim.claim_id: each for claim, each in zip(claims, found, strict=True)}


def _usable_sentences(
    claims: Sequence[Claim], sentences: Mapping[str, str], inference: Inference, room: int
) -> list[str]:
    """Return the sentence of each claim, or the claim where there is no sentence or it is too long."""
    texts = [sentences.get(claim.claim_id, claim.text) for claim in claims]
    other = list(dict.fromkeys(text for claim, text in zip(claims, texts, strict=True) if text != claim.text))
    short = (
        {text for text, size in zip(other, inference.tokens(other), strict=True) if size <= room} if other else set()
    )
    return [text if text in short else claim.text for claim, text in zip(claims, texts, strict=True)]


async def _score_proposals(proposals: Sequence[Proposal], inference: Inference) -> list[list[NliScores]]:
    """Return the NLI scores of each proposal's pairs, in order.

    Scoring stops once a premise surely entails the claim.
    """
    scores: list[list[NliScores]] = [[] for _ in proposals]
    for turn in range(max((len(each.pairs) for each in proposals), default=0)):
        pending = [
            number for number, each in enumerate(proposals) if turn < len(each.pairs) and not _sure(scores[number])
        ]
        answers = await score_pairs([proposals[number].pairs[turn] for number in pending], inference)
        for number, answer in zip(pending, answers, strict=True):
            scores[number].append(answer)
    return scores


def _sure(answers: Sequence[NliScores]) -> bool:
    return any(answer.entailment >= SURE_ENTAILMENT for answer in answers)


async def score_pairs(pairs: Sequence[tuple[str, str]], inference: Inference) -> list[NliScores]:
    """Return the NLI scores of each (premise, hypothesis), with the values of both in one notation."""
    whole = ((uncut(premise, hypothesis), hypothesis) for premise, hypothesis in pairs)
    rows = await inference.nli(
        await paced((plain_figures(premise), plain_figures(in_notation_of(claim, premise))) for premise, claim in whole)
    )
    return [NliScores(float(row[ENTAILMENT]), float(row[NEUTRAL]), float(row[CONTRADICTION])) for row in rows]


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word.removesuffix("s") for word in words)


def _best_evidence(envelope: Envelope, proposed: Proposal, scores: Sequence[NliScores], strange: int) -> ClaimEvidence:
    unit = envelope.cut.units[proposed.unit]
    if not scores:
        return ClaimEvidence(
            envelope.facts[unit.fact].id,
            proposed.similarity,
            unit.text,
            ENTAILED,
            unit.text,
            ENTAILED,
            plain_scores=ENTAILED,
        )
    best = max(range(len(scores)), key=lambda n: scores[n].entailment)
    return ClaimEvidence(
        fact_id=envelope.facts[unit.fact].id,
        similarity=proposed.similarity,
        source=unit.text,
        source_scores=scores[0],
        premise=proposed.pairs[best][0],
        scores=calibrated(scores[best], strange),
        others=tuple((envelope.facts[u.fact].id, u.text) for u in map(envelope.cut.units.__getitem__, proposed.others)),
        plain_scores=scores[best],
    )


def supported(evidence: ClaimEvidence, method: Method) -> bool:
    """Whether the evidence supports a claim, before any flaw of it counts."""
    if method == "cosine":
        return evidence.similarity >= GROUNDED_COSINE
    return evidence.scores.entailment >= GROUNDED_ENTAILMENT


def attribute(claim: Claim, evidence: ClaimEvidence, *, flawed: bool, method: Method) -> Attribution:
    """Return the kind of source of *claim*.

    *flawed*: a value or name in it is fabricated or conflicts with its source.
    """
    if method == "cosine":
        grounded, partly = evidence.similarity >= GROUNDED_COSINE, evidence.similarity >= MIXED_COSINE
    else:
        entailment = evidence.scores.entailment
        contradicted = evidence.plain_scores.contradiction > DENIED_ABOVE
        grounded = entailment >= GROUNDED_ENTAILMENT and not flawed and not contradicted
        partly = entailment >= MIXED_ENTAILMENT or evidence.similarity >= MIXED_COSINE
    if grounded:
        return Attribution.CONTEXT_GROUNDED
    if partly:
        return Attribution.MIXED
    return Attribution.PARAMETRIC if claim.specificity < GENERIC_BELOW else Attribution.UNVERIFIABLE
