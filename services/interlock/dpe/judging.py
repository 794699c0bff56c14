"""Judgement of one choice from the findings of the stages: attributions, omissions, weakest claim and risk (SPEC-005).

No model runs here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from interlock.domain.risk.composite import Amplifier, Calibration
from interlock.domain.risk.grounding import GroundingMode
from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.comparison.contradiction import Contradiction, counted
from interlock.dpe.comparison.cues import DATE_SHIFTED, ENTITY_SUBSTITUTED, NEGATION_FLIP, NORM, NUMBER_CHANGED
from interlock.dpe.document import Claim, Distortion, NliScores
from interlock.dpe.grounding import attribution, doubt, entailment, omission
from interlock.dpe.grounding.attribution import Attribution, ClaimEvidence
from interlock.dpe.grounding.beside import consumed as grounding_consumed
from interlock.dpe.grounding.beside.apart import ALL_JUDGED, Apart
from interlock.dpe.grounding.beside.consumed import OnAnswers
from interlock.dpe.grounding.citations import WRONG_SOURCE, Misattribution
from interlock.dpe.grounding.doubt import Doubts
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.fidelity import Flaws
from interlock.dpe.grounding.said import NOTHING_SAID, SaidEvidence
from interlock.dpe.grounding.tools.calls import JudgedCall
from interlock.dpe.inference.port import Floats
from interlock.dpe.report.message import Choice
from interlock.dpe.request import RESULT, SOURCE, ConsumedAnswer
from interlock.dpe.risk import RiskFindings, assess
from interlock.dpe.values.cells import cells_of, is_of_structure
from interlock.dpe.values.extraction import extract

_MOST_WORDS, _MOST_LETTERS = 120, 1500
_LEAST_PARTS = 3

_CONFIRMABLE = frozenset({NUMBER_CHANGED, DATE_SHIFTED, ENTITY_SUBSTITUTED})
"""Types whose findings stand nine times as often on unfaithful answers as on faithful ones where another reading agrees (docs/quality.md)."""
_CONTRADICTED, _SURELY_CONTRADICTED = 0.5, 0.8
"""Contradiction from which a claim that a rule finds bent, or to hold a value of nowhere, is taken as contradicted too."""
"""The longest sentence that anybody writes."""


def judge_choice(
    reading: ChoiceReading,
    envelope: Envelope,
    evidence: Mapping[str, ClaimEvidence],
    flaws: Flaws,
    contradictions: Sequence[Contradiction],
    *,
    vectors: Floats,
    amplifiers: Sequence[Amplifier],
    method: attribution.Method,
    calibration: Calibration,
    between: int = 0,
    mode: GroundingMode = GroundingMode.PREFERRED,
    misattributed: Sequence[Misattribution] = (),
    said: SaidEvidence = NOTHING_SAID,
    calls: Sequence[JudgedCall] = (),
    beside: Apart = ALL_JUDGED,
    doubts: Doubts = Doubts.FREE,
    consumed: Sequence[ConsumedAnswer] = (),
) -> Choice:
    """Return everything about one choice.

    *vectors* has one row for each sentence and claim of it; *between* counts contradictions among merged answers. Entailment is
    not measured in the mode ``open``, nor for the claims *beside* the sources.
    """
    contradictions = [each for each in contradictions if not _borne_out(each, evidence)]
    reading = _without_compositions(reading, evidence, flaws, contradictions)
    found = _judged(reading, evidence, flaws, said, calls, method=method)
    free = found.lookups - beside.unmeasured
    untold = free
    if method == "nli":
        untold |= _cannot_tell(reading, found, evidence, contradictions, misattributed) - beside.unmeasured
    on_answers = _on_answers(found, beside, consumed, required=doubts is Doubts.COUNT)
    findings = _findings(
        reading, found, calls, beside, contradictions=len(counted(contradictions)) + between, mode=mode,
        misattributed=misattributed, cannot_tell=(free if doubts is Doubts.COUNT else untold) - on_answers.shares.keys(),
        doubts=doubts, on_answers=on_answers,
    )  # fmt: skip
    return Choice(
        index=reading.index,
        claims=[*reading.claims, *(each.claim for call in calls for each in call.claims)],
        evidence=found.evidence,
        attributions=found.attributions,
        fabrications=found.fabrications,
        distortions=found.distortions,
        contradictions=contradictions,
        omissions=omission.omissions(envelope, vectors, {found.evidence[name].fact_id for name in found.kinds}),
        weakest=findings.weakest,
        risk=assess(findings, amplifiers, calibration),
        misattributed=misattributed,
        kinds=found.kinds,
        calls=tuple(calls),
        cannot_tell=untold,
        mode=GroundingMode.OPEN if beside.open_all(found.attributions) else mode,
    )


def _on_answers(found: _Judged, beside: Apart, consumed: Sequence[ConsumedAnswer], *, required: bool) -> OnAnswers:
    """Return what rests on answers that were *consumed*, and note in *found* that it rests on them."""
    other = {name for name, kind in found.kinds.items() if kind != SOURCE}
    on_answers = grounding_consumed.judged(
        found.attributions, found.evidence, consumed, apart=beside.unmeasured | other, required=required
    )
    found.attributions.update(on_answers.attributions)
    found.kinds.update(dict.fromkeys((*on_answers.shares, *on_answers.unmeasured), RESULT))
    return on_answers


def _findings(
    reading: ChoiceReading,
    found: _Judged,
    calls: Sequence[JudgedCall],
    beside: Apart,
    *,
    contradictions: int,
    mode: GroundingMode,
    misattributed: Sequence[Misattribution],
    cannot_tell: frozenset[str],
    doubts: Doubts,
    on_answers: OnAnswers,
) -> RiskFindings:
    return RiskFindings(
        empty=reading.empty,
        attributions=found.attributions,
        fabrications=len({text for texts in found.fabrications.values() for text in texts}),
        distortions=sum(map(bool, found.distortions.values())),
        misbindings=sum(any(map(_is_misbinding, each)) for each in found.distortions.values()),
        confirmed=sum(_is_confirmed(found, name) for name in found.evidence),
        contradictions=contradictions,
        weakest=_weakest(found, mode, beside.unmeasured | cannot_tell),
        weakest_of_all=_weakest(found, mode, beside.unmeasured),
        hidden_characters=reading.hidden,
        addresses_judge=reading.addressed,
        misattributions=_misattributions(misattributed),
        mode=mode,
        wordless=reading.unread,
        unmeasured=beside.unmeasured | on_answers.unmeasured,
        shares=on_answers.shares,
        consumed_score=on_answers.score,
        cannot_tell=cannot_tell,
        doubt_raises=doubts is Doubts.RAISE,
        unread=beside.unread_most(found.attributions),
        calls=_findings_of(calls),
    )


def _is_written(sentence: str) -> bool:
    """Whether a text may be a sentence that somebody wrote, and no run of words or signs without an end."""
    return len(sentence) <= _MOST_LETTERS and len(sentence.split()) <= _MOST_WORDS


def _is_misbinding(found: Distortion) -> bool:
    """Whether a filler or a limit is in another slot. A predicate that looks turned is so too often in a faithful answer; a norm is not."""
    return bool(found.slot) and (found.type != NEGATION_FLIP or found.slot == NORM)


def _is_confirmed(found: _Judged, name: str) -> bool:
    """Whether a claim is bent by a rule and contradicted by the model or by calculation.

    A value that is nowhere in the sources needs a surer model than one that stands there otherwise.
    """
    contradiction = found.evidence[name].scores.contradiction
    if any(each.type in _CONFIRMABLE for each in found.distortions.get(name, ())):
        return contradiction >= _CONTRADICTED
    return contradiction >= _SURELY_CONTRADICTED and bool(found.fabrications.get(name))


def _weakest(found: _Judged, mode: GroundingMode, apart: frozenset[str]) -> NliScores | None:
    if mode is GroundingMode.OPEN:
        return None
    return entailment.weakest([one.scores for name, one in found.evidence.items() if name not in apart])


def _misattributions(misattributed: Sequence[Misattribution]) -> int:
    return sum(each.kind == WRONG_SOURCE or not each.claim_id for each in misattributed)


def _findings_of(calls: Sequence[JudgedCall]) -> frozenset[str]:
    return frozenset(finding for call in calls for finding in call.findings)


@dataclass(frozen=True)
class _Judged:
    """The checked claims of a choice, those of its tool calls among them, by claim id."""

    evidence: dict[str, ClaimEvidence]
    attributions: dict[str, Attribution]
    fabrications: dict[str, tuple[str, ...]]
    distortions: dict[str, tuple[Distortion, ...]]
    kinds: dict[str, str]
    """What each grounded claim rests on."""
    lookups: frozenset[str]
    """Arguments of calls that only look something up, and that nothing shows."""


def _judged(
    reading: ChoiceReading,
    evidence: Mapping[str, ClaimEvidence],
    flaws: Flaws,
    said: SaidEvidence,
    calls: Sequence[JudgedCall],
    *,
    method: attribution.Method,
) -> _Judged:
    names = [claim.claim_id for claim in reading.checked]
    found = _Judged(
        evidence={name: evidence[name] if method == "nli" else evidence[name].plain() for name in names},
        attributions={},
        fabrications={name: flaws.fabrications.get(name, ()) for name in names},
        distortions={name: flaws.distortions.get(name, ()) for name in names},
        kinds={},
        lookups=frozenset(each.claim.claim_id for call in calls for each in call.claims if each.looks_up),
    )
    for claim in reading.checked:
        name = claim.claim_id
        flawed = bool(found.fabrications[name] or found.distortions[name])
        found.attributions[name] = attribution.attribute(claim, found.evidence[name], flawed=flawed, method=method)
        if found.attributions[name] is Attribution.CONTEXT_GROUNDED:
            found.kinds[name] = SOURCE
    for name in _on_words(reading.checked, evidence, said, flaws, grounded=found.kinds.keys(), method=method):
        words = said.by_claim[name]
        found.evidence[name] = words if method == "nli" else words.plain()
        found.attributions[name], found.kinds[name] = Attribution.CONTEXT_GROUNDED, said.kinds[words.fact_id]
    for each in (each for call in calls for each in call.claims):
        name = each.claim.claim_id
        found.evidence[name], found.attributions[name] = each.evidence, each.attribution
        found.fabrications[name], found.distortions[name] = each.fabricated, ()
        found.kinds.update({name: each.kind} if each.kind else {})
    return found


def _borne_out(found: Contradiction, evidence: Mapping[str, ClaimEvidence]) -> bool:
    """Whether the sources bear out the claims of a contradiction that only the model sees, or that a limit alone makes.

    What the sources support is not contradicted by what else they support, nor by an earlier answer. A limit (*above 20,000*) is
    no measurement; where calculation shows every figure, neither does another figure contradict it.
    """
    own = [evidence[name] for name in (found.claim_id, found.other_claim_id) if name in evidence]
    borne = [attribution.supported(each, "nli") for each in own]
    # Between two sentences of an answer the model has to be as sure as it has to be against a source.
    sure = found.probability > doubt.SURELY_DENIED
    if own and found.method == "nli" and (all(borne) or (any(borne) and not sure)):
        return True
    if not own or not all(each.calculated for each in own):
        return False
    return found.method == "nli" or any(value.bound for value in extract(found.other_text))


def _on_words(
    claims: Sequence[Claim],
    evidence: Mapping[str, ClaimEvidence],
    said: SaidEvidence,
    flaws: Flaws,
    *,
    grounded: Collection[str],
    method: attribution.Method,
) -> list[str]:
    """Return the claims that rest on no source, that none denies, and that rest on what the user or the system asserts."""
    return [
        claim.claim_id
        for claim in claims
        if claim.claim_id not in {*grounded, *flaws.fabrications, *flaws.distortions}
        and claim.claim_id in said.by_claim
        and not doubt.is_denied(evidence[claim.claim_id], above=attribution.DENIED_ABOVE)
        and attribution.attribute(claim, said.by_claim[claim.claim_id], flawed=False, method=method)
        is Attribution.CONTEXT_GROUNDED
    ]


def _cannot_tell(
    reading: ChoiceReading,
    found: _Judged,
    evidence: Mapping[str, ClaimEvidence],
    contradictions: Sequence[Contradiction],
    misattributed: Sequence[Misattribution],
) -> frozenset[str]:
    """Return the claims of which one cannot tell, by id. The parts of a text without an end are no statements to be in doubt of."""
    opposed = {name for each in contradictions for name in (each.claim_id, each.other_claim_id)}
    opposed |= {each.claim_id for each in misattributed}
    parts = _parts_of_structure(reading)
    return frozenset(
        claim.claim_id
        for claim in reading.checked
        if _is_written(reading.sentences[claim.sentence_index].text)
        and found.attributions[claim.claim_id] is not Attribution.CONTEXT_GROUNDED
        and not (found.fabrications[claim.claim_id] or found.distortions[claim.claim_id])
        and claim.claim_id not in opposed
        and (
            doubt.cannot_tell(evidence[claim.claim_id], text=claim.text)
            or _is_unread(claim, evidence[claim.claim_id], parts)
        )
    )


def _parts_of_structure(reading: ChoiceReading) -> frozenset[str]:
    """Return the rows and fields of an answer that has at least some of them: of an object, a table, a form."""
    found = frozenset(claim.claim_id for claim in reading.checked if is_of_structure(claim.text))
    return found if len(found) >= _LEAST_PARTS else frozenset()


def _is_unread(claim: Claim, evidence: ClaimEvidence, parts: frozenset[str]) -> bool:
    """Whether a claim is a row or a field, which the model reads badly, and that nothing refutes.

    It is held against the records and texts cell by cell: a wrong cell is a finding. That the model hears no support of *Free: 9* says
    nothing, and that it denies one field does only where it is sure.
    """
    if claim.claim_id not in parts or evidence.moved:
        return False
    return cells_of(claim.text) is not None or not doubt.is_denied(evidence)


def _without_compositions(
    reading: ChoiceReading, evidence: Mapping[str, ClaimEvidence], flaws: Flaws, contradictions: Sequence[Contradiction]
) -> ChoiceReading:
    """Return a reading without the checked claims that a tool call's text makes and that nothing speaks against.

    The text of a message to be sent is composed, so that it need not follow from a source. It may not bend one. Names and
    figures in it that nothing shows are found with the call (``tools``).
    """
    if not reading.in_calls:
        return reading
    opposed = {name for each in contradictions for name in (each.claim_id, each.other_claim_id)}
    kept = [
        claim
        for claim in reading.checked
        if claim.claim_id not in reading.in_calls
        or flaws.distortions.get(claim.claim_id)
        or claim.claim_id in opposed
        or evidence[claim.claim_id].plain_scores.contradiction > attribution.DENIED_ABOVE
    ]
    unchecked = reading.in_calls - {claim.claim_id for claim in kept}
    return replace(reading, checked=kept, claims=[c for c in reading.claims if c.claim_id not in unchecked])


def worst_views(choices: Sequence[Choice]) -> list[Choice]:
    """Return each choice once: its worst reading, with the findings that only its other readings show."""
    readings: dict[int, list[Choice]] = {}
    for choice in choices:
        readings.setdefault(choice.index, []).append(choice)
    return [_worst(group) for group in readings.values()]


def _worst(readings: Sequence[Choice]) -> Choice:
    worst = kept = max(readings, key=lambda reading: reading.risk.composite.score)
    for reading in readings:
        kept = kept if reading is worst else _with_findings(kept, reading)
    return kept


def _with_findings(kept: Choice, other: Choice) -> Choice:
    """Return *kept* with the flawed and contradicting claims of another reading, and with its floors."""
    flaws, pairs = {_flaw(kept, claim) for claim in kept.claims}, {pair for pair, _ in _contradictions_by_place(kept)}
    found = [each for pair, each in _contradictions_by_place(other) if pair not in pairs]
    named = {name for each in found for name in (each.claim_id, each.other_claim_id)}
    claims = [
        claim
        for claim in other.claims
        if claim.claim_id in named or (any((flaw := _flaw(other, claim))[1:]) and flaw not in flaws)
    ]
    names = [claim.claim_id for claim in claims if claim.claim_id in other.attributions]
    composite = kept.risk.composite
    floors = [*composite.floors, *(floor for floor in other.risk.composite.floors if floor not in composite.floors)]
    return replace(
        kept,
        claims=[*kept.claims, *claims],
        evidence={**kept.evidence, **{name: other.evidence[name] for name in names}},
        attributions={**kept.attributions, **{name: other.attributions[name] for name in names}},
        fabrications={**kept.fabrications, **{name: other.fabrications[name] for name in names}},
        distortions={**kept.distortions, **{name: other.distortions[name] for name in names}},
        kinds={**kept.kinds, **{name: other.kinds[name] for name in names if name in other.kinds}},
        contradictions=[*kept.contradictions, *found],
        risk=replace(kept.risk, composite=replace(composite, floors=tuple(floors))),
    )


def _place(claim: Claim) -> tuple[int, int, int]:
    return claim.output_index, claim.start, claim.end


def _flaw(reading: Choice, claim: Claim) -> tuple[tuple[int, int, int], tuple[str, ...], frozenset[str]]:
    """Return the span of a claim, its fabrications and the types of its distortions."""
    distortions = reading.distortions.get(claim.claim_id, ())
    return _place(claim), reading.fabrications.get(claim.claim_id, ()), frozenset(each.type for each in distortions)


def _contradictions_by_place(reading: Choice) -> list[tuple[object, Contradiction]]:
    """Return the contradictions of a reading, each keyed by the spans of its claims.

    A claim of an earlier window has no span; its text is the key.
    """
    places = {claim.claim_id: _place(claim) for claim in reading.claims}
    return [
        ((places[each.claim_id], places.get(each.other_claim_id, each.other_text)), each)
        for each in reading.contradictions
    ]
