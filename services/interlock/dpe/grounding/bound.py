"""Stage 3b, bindings: claims that put the source's words into the wrong slot (SPEC-005 §5.3).

A claim that a source entails by its words may still swap who did what to whom. The sentences of the answer, whose parse exists,
are compared with the evidence on its claims, parsed once and remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.comparison.bindings.compare import compare
from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import key
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence, passage
from interlock.dpe.comparison.bindings.reading import Passages
from interlock.dpe.document import Claim, Distortion, Sentence
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.placing.cells import taken
from interlock.dpe.grounding.placing.scopes import scopes
from interlock.dpe.grounding.support import content_stems
from interlock.dpe.inference.language import Cancelled, Language

_SHARED = 2
_MARKS = 2  # what is left between the units of a premise is no text
Distortions = Mapping[str, tuple[Distortion, ...]]


async def distortions(
    claims: Sequence[Claim],
    evidence: Mapping[str, ClaimEvidence],
    before: Distortions,
    *,
    readings: Sequence[ChoiceReading],
    parses: Mapping[Sentence, Any],
    envelope: Envelope,
    known: Passages,
    language: Language,
) -> dict[str, tuple[Distortion, ...]]:
    """Return the distortions *before* with the bindings of each claim that its sources contradict.

    *parses* has the parse of each sentence of prose.
    """
    checked = {claim.claim_id for claim in claims}

    def find(cancelled: Cancelled) -> dict[str, tuple[Distortion, ...]]:
        found: dict[str, tuple[Distortion, ...]] = {}
        for reading in readings:
            if not cancelled():
                own = [claim for claim in reading.checked if claim.claim_id in checked]
                sources = partial(_evidence, own, evidence, known, language)
                found |= _in_choice(own, reading, parses, sources)
        if envelope.cut.records:
            records = scopes(envelope)
            cells = {claim.claim_id: tuple(taken(claim, records)) for claim in claims if not cancelled()}
            found = with_bindings({name: each for name, each in cells.items() if each}, found)
        return found

    return with_bindings(before, await language.run(find, stage="3b"))


def with_bindings(found: Distortions, bound: Distortions) -> dict[str, tuple[Distortion, ...]]:
    """Return the distortions of each claim, those of its bindings last. What was found already is not found again."""
    merged = dict(found)
    for name, each in bound.items():
        types = {one.type for one in merged.get(name, ())}
        merged[name] = (*merged.get(name, ()), *(one for one in each if one.type not in types))
    return merged


def _in_choice(
    claims: Sequence[Claim],
    reading: ChoiceReading,
    parses: Mapping[Sentence, Any],
    read: Callable[[], Evidence],
) -> dict[str, tuple[Distortion, ...]]:
    told = {reading.sentences[claim.sentence_index] for claim in claims} & parses.keys()
    passages = {sentence: passage(parses[sentence]) for sentence in told}
    if not any(each.frames or each.limits for each in passages.values()):
        return {}
    sources = read()
    mentioned = frozenset(word for each in passages.values() for word in each.content)
    found: dict[str, list[Distortion]] = {}
    for sentence, told_by in passages.items():
        parts = [c for c in claims if reading.sentences[c.sentence_index] == sentence]
        for finding in compare(told_by, sources, mentioned):
            found.setdefault(_teller(parts, finding).claim_id, []).append(_distortion(finding))
    return {name: tuple(dict.fromkeys(each)) for name, each in found.items()}


def _evidence(
    claims: Sequence[Claim], evidence: Mapping[str, ClaimEvidence], known: Passages, language: Language
) -> Evidence:
    """Return the evidence on claims: their nearest units that share words with them, and what their best premises add.

    A parse costs more than all that is done with it, so that units about something else are left out.
    """
    units: dict[str, str] = {}
    for claim in claims:
        shown = evidence[claim.claim_id]
        units.setdefault(shown.source, shown.fact_id)
        stems = content_stems(claim.text)
        for fact_id, text in shown.others:
            if text not in units and len(stems & content_stems(text)) >= _SHARED:
                units[text] = fact_id
    for claim in claims:
        rest = evidence[claim.claim_id].premise
        for text in units:
            rest = rest.replace(text, "")
        if len(rest.split()) > _MARKS:
            units.setdefault(rest.strip(), evidence[claim.claim_id].fact_id)
    read: Mapping[str, tuple[ReadSentence, ...]] = known.of([text for text in units if text], language.nlp)
    return Evidence(tuple(replace(each, fact_id=units[text]) for text, found in read.items() for each in found))


def _teller(parts: Sequence[Claim], finding: Misbinding) -> Claim:
    """Return the claim of a sentence that a finding is about: the one with most of its words."""
    return max(parts, key=lambda claim: len(finding.about & set(map(key, claim.text.split()))))


def _distortion(finding: Misbinding) -> Distortion:
    return Distortion(finding.type, finding.source_value, finding.claim_value, finding.fact_id, finding.slot)
