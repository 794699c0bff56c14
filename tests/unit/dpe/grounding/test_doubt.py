"""Claims of which one cannot tell: they accuse nobody, ground nothing, are counted, and cost what the setting says."""

import dataclasses

import pytest

from interlock.domain.policy.enforcement import breaches
from interlock.domain.policy.policy_text import parse
from interlock.domain.risk.composite import Calibration, Floor, RiskSignals, compose
from interlock.domain.risk.grounding import GroundingMode
from interlock.domain.risk.risk import RiskLevel
from interlock.dpe.document import Distortion, Fact, NliScores
from interlock.dpe.grounding.attribution import NOTHING, ClaimEvidence
from interlock.dpe.grounding.doubt import ABOUT, ALIKE, FAINT_SUPPORT, LEAST_SUPPORT, NEAR, Doubts, cannot_tell
from interlock.dpe.request import Output, Request
from interlock.policy.report import read_findings
from tests.support.dpe import pipeline

LEASE = (
    "The rent is 1,150 pounds per month, due on the first day of the month.",
    "The Tenant may keep one cat. Dogs need the Landlord's written consent.",
)
ADVICE = "If anything is in dispute, it is worth talking to a tenants' advice service."
RIGHT = "The rent of 1,150 pounds per month is due on the first day of the month."


def evidence(support: float, *, denied: float = 0.0, near: float = NEAR) -> ClaimEvidence:
    plain = NliScores(0.0, 1.0 - denied, denied)
    return dataclasses.replace(
        NOTHING, similarity=near, scores=NliScores(support, 1.0 - support, 0.0), plain_scores=plain
    )


MOVED = Distortion("NUMBER_CHANGED", "4", "6", "f1")


@pytest.mark.req("DPE-2")
@pytest.mark.parametrize(
    ("found", "told"),
    [
        (evidence(0.3), True),
        (evidence(LEAST_SUPPORT), True),
        (evidence(LEAST_SUPPORT - 0.01, near=ABOUT), False),
        (evidence(LEAST_SUPPORT - 0.01, near=ABOUT - 0.01), True),
        (evidence(FAINT_SUPPORT - 0.01, denied=0.91), False),
        (evidence(FAINT_SUPPORT, denied=0.91), True),
        (dataclasses.replace(evidence(FAINT_SUPPORT, denied=0.91), reckoned=True), False),
        (dataclasses.replace(evidence(FAINT_SUPPORT, denied=0.91), tabular=True), False),
        (dataclasses.replace(evidence(0.01, near=ABOUT), tabular=True), True),
        (dataclasses.replace(evidence(0.01, near=ABOUT), tabular=True, moved=(MOVED,)), False),
        (evidence(FAINT_SUPPORT - 0.01, denied=0.89), True),
        (evidence(0.2, denied=0.99, near=NEAR - 0.01), True),
        (NOTHING, True),
    ],
)
def test_a_source_about_a_claim_may_deny_it_or_leave_it_without_support(found, told):
    """What no source is about is neither denied nor unsupported."""
    assert cannot_tell(found) is told


@pytest.mark.req("DPE-2")
@pytest.mark.parametrize(
    ("text", "source", "near", "told"),
    [
        ("Visitors get nothing for the wait.", "The wait is unpaid.", ALIKE - 0.01, True),
        ("Nothing about the shed changed.", "The shed was left unchanged.", ALIKE, True),
        ("There is no charge for late boats.", "Late boats are not charged for.", ALIKE, True),
        ("The pier is open to members alone.", "Members may use the pier.", ALIKE - 0.01, True),
        ("There is no charge for late boats.", "Late boats are charged for.", ALIKE, False),
        ("Late boats are charged for.", "Late boats are not charged for.", ALIKE - 0.01, False),
    ],
)
def test_the_model_is_not_heard_on_what_denies(text, source, near, told):
    """It mishears a denial in other words, but not against a sentence that is all but the claim and denies nothing."""
    denied = dataclasses.replace(evidence(0.2, denied=0.97, near=near), source=source)

    assert cannot_tell(denied, text=text) is told
    assert cannot_tell(dataclasses.replace(denied, reckoned=True), text=text) is False


@pytest.mark.req("DPE-2")
def test_a_row_whose_figures_are_all_accounted_for_is_not_denied_by_the_model():
    """It reads sentences; a figure that nothing accounts for leaves it its say."""
    row = dataclasses.replace(evidence(FAINT_SUPPORT, denied=0.95), tabular=True, settled=frozenset({"£18", "£6"}))

    assert cannot_tell(row, text="£18, at £6 an hour, but bring your card.")
    assert not cannot_tell(row, text="£20, at £6 an hour, but bring your card.")
    assert not cannot_tell(dataclasses.replace(row, moved=(MOVED,)), text="£18, at £6 an hour, but bring your card.")


@pytest.mark.req("DPE-14")
def test_doubt_orders_answers_of_the_class_low_and_raises_none_above_it():
    """Two answers without a finding: the one with more doubt is no worse than LOW, and ranks behind."""
    clean = RiskSignals(0.0, 0.0, 0.0, 0.0)
    scores = [compose(clean, calibration=Calibration(), doubt=doubt) for doubt in (0.0, 0.4, 1.0, 7.0)]

    assert [one.score for one in scores] == sorted(one.score for one in scores)
    assert scores[0].score < scores[1].score < scores[2].score
    assert {one.level for one in scores} == {RiskLevel.LOW}
    risky = RiskSignals(1.0, 1.0, 1.0, 1.0)
    assert compose(risky, calibration=Calibration(), doubt=1.0) == compose(risky, calibration=Calibration())


async def judged(answer: str, doubts: Doubts = Doubts.FREE, **asked: object):
    facts = tuple(Fact(f"f{number}", text, 0.5) for number, text in enumerate(LEASE))
    request = Request(outputs=(Output(0, answer),), facts=facts, **asked)  # type: ignore[arg-type]
    return await dataclasses.replace(pipeline(), doubts=doubts).analyse(request)


@pytest.mark.models
@pytest.mark.req("DPE-2", "ATT-8")
async def test_advice_beside_a_grounded_statement_costs_nothing_and_is_counted():
    """It is not grounded, and nothing speaks against it."""
    report = await judged(f"{RIGHT} {ADVICE}")

    assert (report.risk_level, report.cannot_tell_count) == (RiskLevel.LOW, 1)
    assert [claim.cannot_tell for claim in report.claims] == [False, True]
    assert report.grounding_pct == 1.0
    assert "speak against 1 of its statements" in report.meaning


@pytest.mark.models
@pytest.mark.req("DPE-2", "POL-3")
@pytest.mark.parametrize("more", [{}, {"grounding_required": True}])
async def test_a_policy_can_name_it(more):
    """Half of the checked claims are in doubt: ``max-cannot-tell`` halts below that share, whether proof is asked for or not."""
    found = read_findings(await judged(f"{RIGHT} {ADVICE}", **more))

    assert breaches(parse("max-cannot-tell 0.50"), found) == []
    assert [one.type for one in breaches(parse("max-cannot-tell 0.49"), found)] == ["CANNOT_TELL_ABOVE_MAXIMUM"]
    assert breaches(parse("max-cannot-tell 0.00"), read_findings(await judged(RIGHT, **more))) == []


@pytest.mark.models
@pytest.mark.req("DPE-2", "ATT-8")
async def test_where_doubt_is_a_risk_the_answer_is_medium():
    """The setting ``dpe_cannot_tell: medium``, as in the profile regulated."""
    report = await judged(f"{RIGHT} {ADVICE}", Doubts.RAISE)

    assert (report.risk_level, list(report.floors)) == (RiskLevel.MEDIUM, [Floor.CANNOT_TELL.value])
    assert (await judged(RIGHT, Doubts.RAISE)).risk_level == RiskLevel.LOW


@pytest.mark.models
@pytest.mark.req("DPE-2", "ATT-8")
@pytest.mark.parametrize("asked", [{"grounding_required": True}, {"grounding_mode": GroundingMode.STRICT}])
async def test_who_asks_for_proof_gets_no_doubt_for_free(asked):
    """A policy that requires grounding and the mode context-strict measure every claim; what is in doubt is told all the same."""
    report = await judged(f"{RIGHT} {ADVICE}", **asked)

    assert report.cannot_tell_count == 1
    assert report.grounding_pct == 0.5
    assert report.risk_level > RiskLevel.LOW


@pytest.mark.models
@pytest.mark.req("DPE-2")
@pytest.mark.parametrize(
    "wrong",
    ["The rent of 1,350 pounds per month is due on the first day of the month.", "The rent is paid to Joanna Pike."],
)
async def test_what_something_speaks_against_is_no_doubt(wrong):
    """A changed value, a name that nobody said."""
    report = await judged(wrong)

    assert report.cannot_tell_count == 0
    assert report.risk_level > RiskLevel.LOW
