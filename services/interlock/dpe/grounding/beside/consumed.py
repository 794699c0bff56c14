"""Claims that rest on an earlier answer which this one is made from: of a sub-agent, or of a window that is merged (reading 16).

The words of an earlier answer are no source of their own. A claim that only they show has the grounding of that answer, and the
answer at least its risk, so that an orchestrator cannot make a sub-agent's invention LOW by repeating it. What the caller's own
facts show rests on those. A fact that repeats the earlier answer is the earlier answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from interlock.dpe.claims.reading import ChoiceReading, claim_sentences
from interlock.dpe.document import Claim
from interlock.dpe.grounding.attribution import Attribution, ClaimEvidence, Method, attribute
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.placing import calculated
from interlock.dpe.inference.language import Language
from interlock.dpe.inference.port import Inference
from interlock.dpe.request import ConsumedAnswer, Request

COPIED_FROM = 0.80
"""Share of an earlier answer's sentences from which a fact that holds them repeats that answer."""

_GROUNDED_FROM = 0.50
_WORD = re.compile(r"\w+")


def answers_by_fact(consumed: Sequence[ConsumedAnswer]) -> dict[str, ConsumedAnswer]:
    """Return the earlier answer that each fact holds, the riskiest where several do."""
    found: dict[str, ConsumedAnswer] = {}
    for answer in sorted(consumed, key=lambda one: one.score):
        found |= dict.fromkeys(answer.fact_ids, answer)
    return found


def own_facts(envelope: Envelope, consumed: Sequence[ConsumedAnswer]) -> Envelope:
    """Return the envelope without the units that are an earlier answer's words, or repeat them."""
    told = _repeating(envelope, consumed) | answers_by_fact(consumed).keys()
    units = envelope.cut.units
    kept = [place for place, unit in enumerate(units) if envelope.facts[unit.fact].id not in told]
    records = tuple(each for each in envelope.cut.records if envelope.facts[each[0]].id not in told)
    cut = replace(envelope.cut, units=tuple(units[place] for place in kept), records=records)
    return Envelope(cut, envelope.vectors[np.array(kept, dtype=int)], envelope.whole)


def _repeating(envelope: Envelope, consumed: Sequence[ConsumedAnswer]) -> set[str]:
    texts = {fact.id: _words(fact.content) for fact in envelope.facts}
    found: set[str] = set()
    for answer in consumed:
        said = [_words(unit.text) for unit in envelope.cut.units if envelope.facts[unit.fact].id in answer.fact_ids]
        said = [words for words in said if words.strip()]
        found |= {
            name
            for name, text in texts.items()
            if said and sum(words in text for words in said) >= COPIED_FROM * len(said)
        }
    return found


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def resting(
    claims: Sequence[Claim], evidence: Mapping[str, ClaimEvidence], consumed: Sequence[ConsumedAnswer]
) -> list[Claim]:
    """Return the claims whose best evidence is the words of an earlier answer."""
    by_fact = answers_by_fact(consumed)
    return [claim for claim in claims if evidence[claim.claim_id].fact_id in by_fact]


async def own_first(
    readings: Sequence[ChoiceReading],
    envelope: Envelope,
    evidence: Mapping[str, ClaimEvidence],
    request: Request,
    *,
    inference: Inference,
    language: Language,
    method: Method,
) -> Mapping[str, ClaimEvidence]:
    """Return the evidence with what the caller's own facts show in place of the words of an earlier answer."""
    checked = [claim for reading in readings for claim in reading.checked]
    claims = resting(checked, evidence, request.consumed)
    if not claims or not (own := own_facts(envelope, request.consumed)).cut.units:
        return evidence
    vectors = await inference.embed([claim.text for claim in claims])
    found = await calculated.evidence(
        claims, vectors, own, inference, language, titles={name for reading in readings for name in reading.titles},
        query=request.query, own=request.own_words, sentences=claim_sentences(readings),
    )  # fmt: skip
    own_ones = [claim for claim in claims if _grounded(claim, found[claim.claim_id], method)]
    return {**evidence, **{claim.claim_id: found[claim.claim_id] for claim in own_ones}}


def _grounded(claim: Claim, own: ClaimEvidence, method: Method) -> bool:
    return attribute(claim, own, flawed=bool(own.moved), method=method) is Attribution.CONTEXT_GROUNDED


@dataclass(frozen=True)
class OnAnswers:
    """What the claims of one choice that rest on earlier answers come to."""

    attributions: Mapping[str, Attribution]
    shares: Mapping[str, float]
    """How far each of them is grounded, 0.0 to 1.0."""
    unmeasured: frozenset[str]
    """Those that rest on an answer whose grounding was not measured."""
    score: float
    """The highest composite score of the answers that they rest on."""


def judged(
    attributions: Mapping[str, Attribution],
    evidence: Mapping[str, ClaimEvidence],
    consumed: Sequence[ConsumedAnswer],
    *,
    apart: Collection[str],
    required: bool,
) -> OnAnswers:
    """Return what rests on earlier answers: the claims that they show or nearly show, but those *apart*.

    *required*: only what is grounded is admitted, so that a grounding which was not measured is none.
    """
    by_fact = answers_by_fact(consumed)
    found = {
        name: by_fact[evidence[name].fact_id]
        for name, kind in attributions.items()
        if name not in apart
        and evidence[name].fact_id in by_fact
        and kind in {Attribution.CONTEXT_GROUNDED, Attribution.MIXED}
    }
    shown = {name: one for name, one in found.items() if attributions[name] is Attribution.CONTEXT_GROUNDED}
    free = frozenset(name for name, one in shown.items() if one.grounding is None and not required)
    shares = {name: one.grounding or 0.0 for name, one in shown.items() if name not in free}
    return OnAnswers(
        attributions={name: _attribution(shown[name]) for name, share in shares.items() if share < _GROUNDED_FROM},
        shares=shares,
        unmeasured=free,
        score=max((one.score for one in found.values()), default=0.0),
    )


def _attribution(answer: ConsumedAnswer) -> Attribution:
    """Return what a claim rests on that rests on an answer which is not grounded: what most of that answer rested on."""
    kinds = {kind.value: kind for kind in Attribution if kind is not Attribution.CONTEXT_GROUNDED}
    return kinds.get(answer.attribution, Attribution.UNVERIFIABLE)
