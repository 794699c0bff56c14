"""Entailment, omissions and risk from what the stages found (SPEC-005 §6, §7, §12)."""

from __future__ import annotations

import pytest
from nupunkt import sent_spans

from interlock.domain.risk.composite import Amplifier, Calibration, Floor
from interlock.domain.risk.grounding import GroundingMode
from interlock.domain.risk.risk import RiskLevel
from interlock.dpe.document import Fact, NliScores
from interlock.dpe.grounding.attribution import Attribution
from interlock.dpe.grounding.entailment import weakest
from interlock.dpe.grounding.envelope import Envelope, cut
from interlock.dpe.grounding.omission import omissions
from interlock.dpe.risk import RiskFindings, amplifiers_for, assess
from tests.support.dpe import WordInference

GROUNDED, PARAMETRIC, MIXED, UNVERIFIABLE = Attribution
SURE = NliScores(1.0, 0.0, 0.0)


def findings(*kinds: Attribution, scores: NliScores | None = SURE, **fields) -> RiskFindings:
    values = {
        "empty": False, "fabrications": 0, "distortions": 0, "contradictions": 0, "hidden_characters": 0, **fields,
    }  # fmt: skip
    attributions = {f"c{n}": kind for n, kind in enumerate(kinds, 1)}
    return RiskFindings(attributions=attributions, weakest=scores if kinds else None, **values)


def risk(found: RiskFindings, *amplifiers: Amplifier):
    return assess(found, amplifiers, Calibration())


@pytest.mark.req("DPE-4")
def test_the_weakest_claim_counts():
    """Weakest link: no number of true claims carries one that does not follow (§6.2)."""
    low = NliScores(0.1, 0.2, 0.7)

    assert weakest([SURE, low, SURE]) is low
    assert weakest([]) is None


@pytest.mark.req("DPE-4")
def test_of_equally_weak_claims_the_contradicted_one_counts():
    """What is contradicted is worse than what is only unsupported."""
    neutral, contradicted = NliScores(0.1, 0.9, 0.0), NliScores(0.1, 0.0, 0.9)

    assert weakest([neutral, contradicted]) is contradicted


@pytest.mark.req("DPE-5")
def test_signals_are_shares_of_the_checked_claims():
    """One of four is not grounded and unverifiable (§7.2)."""
    found = risk(findings(GROUNDED, GROUNDED, GROUNDED, UNVERIFIABLE, scores=NliScores(0.6, 0.4, 0.0)))

    assert (found.signals.attribution, found.signals.specificity) == (0.25, 0.25)
    assert found.signals.entailment == pytest.approx(0.4)
    assert found.grounding == 0.75
    assert found.dominant is GROUNDED


@pytest.mark.req("DPE-5")
def test_a_grounded_answer_is_low():
    """Nothing wrong, nothing charged."""
    assert risk(findings(GROUNDED, GROUNDED)).composite.level is RiskLevel.LOW


@pytest.mark.req("DPE-5")
def test_an_answer_that_rests_on_nothing_is_critical():
    """No fact, no entailment, specific claims."""
    found = risk(findings(UNVERIFIABLE, UNVERIFIABLE, scores=NliScores(0.0, 1.0, 0.0)))

    assert found.composite.level is RiskLevel.CRITICAL


@pytest.mark.req("DPE-5")
@pytest.mark.parametrize(
    ("found", "floor"),
    [
        (findings(empty=True), Floor.EMPTY_RESPONSE),
        (findings(wordless=True), Floor.NO_CHECKABLE_CLAIM),
        (findings(*[GROUNDED] * 200, misattributions=1), Floor.MISATTRIBUTION_FOUND),
        (findings(GROUNDED, hidden_characters=1), Floor.HIDDEN_CHARACTERS),
        (findings(*[GROUNDED] * 200, fabrications=1), Floor.FABRICATION_FOUND),
        (findings(*[GROUNDED] * 200, distortions=1), Floor.DISTORTION_FOUND),
        (findings(*[GROUNDED] * 200, contradictions=1), Floor.CONTRADICTION_FOUND),
    ],
)
def test_no_finding_is_averaged_away(found, floor):
    """One distorted claim among two hundred, an empty answer, a hidden character: never LOW."""
    composite = risk(found).composite

    assert composite.floors == (floor,)
    assert composite.level is RiskLevel.MEDIUM


@pytest.mark.req("ATT-6")
def test_an_answer_without_a_claim_is_low_and_free():
    """Small talk asserts nothing that could be wrong."""
    composite = risk(findings()).composite

    assert (composite.score, composite.level, composite.floors) == (0.0, RiskLevel.LOW, ())


@pytest.mark.req("ATT-8")
def test_in_open_mode_content_without_a_source_raises_nothing():
    """SPEC-003 §13.2: it is expected. What was not measured has no value, and is not 0."""
    found = risk(findings(UNVERIFIABLE, PARAMETRIC, mode=GroundingMode.OPEN))

    assert found.composite.level is RiskLevel.LOW
    assert (found.grounding, found.signals.attribution, found.signals.entailment) == (None, None, None)


@pytest.mark.req("ATT-8")
def test_in_open_mode_the_other_findings_count_in_full():
    """The weights of what was not measured go to what was: half of the claims contradicted is no small matter."""
    wrong = risk(findings(*[UNVERIFIABLE] * 2, contradictions=2, fabrications=3, mode=GroundingMode.OPEN))

    assert wrong.composite.base == pytest.approx(1.0 - wrong.fidelity)
    assert wrong.composite.level >= RiskLevel.HIGH


@pytest.mark.req("ATT-8")
@pytest.mark.parametrize("kind", [PARAMETRIC, UNVERIFIABLE])
def test_in_strict_mode_one_claim_from_memory_is_a_finding(kind):
    """SPEC-003 §13.2: however many claims around it are grounded."""
    strict = risk(findings(*[GROUNDED] * 200, kind, mode=GroundingMode.STRICT)).composite
    preferred = risk(findings(*[GROUNDED] * 200, kind)).composite

    assert (strict.floors, strict.level) == ((Floor.PARAMETRIC_CONTENT,), RiskLevel.MEDIUM)
    assert preferred.level is RiskLevel.LOW


@pytest.mark.req("DPE-5")
def test_without_claims_there_are_no_scores():
    """What was not measured is absent, not perfect."""
    found = risk(findings())

    assert (found.grounding, found.fidelity, found.dominant) == (None, None, None)


@pytest.mark.req("DPE-5")
def test_of_equally_many_the_worse_attribution_dominates():
    """A tie is not told in the answer's favour."""
    assert risk(findings(GROUNDED, UNVERIFIABLE)).dominant is UNVERIFIABLE


@pytest.mark.req("DPE-14")
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({}, []),
        ({"personal_data": True}, [Amplifier.GDPR_PII]),
        ({"loop_depth": 3}, []),
        ({"loop_depth": 4}, [Amplifier.LOOP_DEPTH]),
        ({"high_risk": True}, [Amplifier.EU_AI_ACT_HIGH_RISK]),
        ({"domain": "financial", "high_risk": True}, [Amplifier.EU_AI_ACT_HIGH_RISK, Amplifier.FINANCIAL_OR_MEDICAL]),
        ({"domain": "medical"}, [Amplifier.FINANCIAL_OR_MEDICAL]),
        ({"domain": "creative"}, []),
    ],
)
def test_amplifiers_need_their_condition(condition, expected):
    """Each condition of §17 whose signal exists, and no other."""
    values = {"personal_data": False, "loop_depth": 0, "domain": "", "high_risk": False, **condition}

    assert amplifiers_for(**values) == expected


@pytest.mark.req("DPE-10")
@pytest.mark.parametrize(
    ("importance", "severity"), [(0.69, None), (0.70, "MEDIUM"), (0.80, "HIGH"), (0.90, "CRITICAL"), (1.0, "CRITICAL")]
)
async def test_severity_of_an_omission_follows_importance(importance, severity):
    """From 0.70 up a fact that is left out is an omission (§12.2)."""
    found = await left_out("Milk is white.", Fact("f1", "The tower is tall.", importance))

    assert [o.severity for o in found] == ([severity] if severity else [])


@pytest.mark.req("DPE-10")
async def test_what_is_said_is_not_omitted():
    """A sentence that covers the fact, or a claim that was shown to rest on it."""
    fact = Fact("f1", "The tower is tall.", 0.9)

    assert await left_out("The tower is very tall.", fact) == []
    assert await left_out("Milk is white.", fact, used={"f1"}) == []


@pytest.mark.req("DPE-10")
async def test_an_empty_answer_omits_everything_important():
    """Silence covers nothing."""
    found = await left_out("", Fact("f1", "One thing.", 0.9), Fact("f2", "Another thing.", 0.2))

    assert [(o.fact_id, o.similarity) for o in found] == [("f1", 0.0)]


async def left_out(said: str, *facts: Fact, used=frozenset()):
    twin = WordInference()
    made = cut(facts, limit=50, count=twin.tokens, split=sent_spans)
    rows = await twin.embed([*(unit.text for unit in made.units), *made.texts])
    envelope = Envelope(made, rows[: len(made.units)], rows[len(made.units) :])
    return omissions(envelope, await twin.embed([said] if said else []), used)
