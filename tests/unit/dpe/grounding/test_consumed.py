"""What rests on an earlier answer has its grounding and at least its risk, whatever else there is (F-14)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain.risk.composite import Calibration, Floor, RiskSignals, compose
from interlock.domain.risk.risk import MEDIUM_FROM
from interlock.dpe.document import Fact, NliScores
from interlock.dpe.grounding.attribution import Attribution, ClaimEvidence
from interlock.dpe.grounding.beside import consumed
from interlock.dpe.grounding.envelope import Cut, Envelope, EvidenceUnit
from interlock.dpe.request import ConsumedAnswer

SURE = NliScores(1.0, 0.0, 0.0)
SHARES = st.floats(0.0, 1.0)
ANSWERS = st.builds(
    ConsumedAnswer, st.just("w"), st.just(frozenset({"child"})), SHARES, SHARES | st.none(), st.integers(0, 4)
)

pytestmark = pytest.mark.finding("F-14")


def on(fact: str) -> ClaimEvidence:
    return ClaimEvidence(fact, 0.9, "", SURE, "", SURE, plain_scores=SURE)


def envelope(*facts: tuple[str, str]) -> Envelope:
    given = tuple(Fact(name, text, 0.5) for name, text in facts)
    units = tuple(
        EvidenceUnit(number, part.strip() + ".", frozenset(), 5)
        for number, (_, text) in enumerate(facts)
        for part in text.split(".")
        if part.strip()
    )
    return Envelope(Cut(given, tuple(text for _, text in facts), units), np.eye(len(units)), np.eye(len(facts)))


@given(answer=ANSWERS, kind=st.sampled_from([Attribution.CONTEXT_GROUNDED, Attribution.MIXED]), required=st.booleans())
def test_a_claim_is_grounded_as_far_as_the_answer_that_it_rests_on(answer, kind, required):
    """Never more; the answer's score is the least of whatever rests on it, and a claim beside it is left alone."""
    found = consumed.judged(
        {"c1": kind, "c2": Attribution.CONTEXT_GROUNDED}, {"c1": on("child"), "c2": on("own")}, [answer],
        apart=(), required=required,
    )  # fmt: skip

    assert found.score == answer.score
    assert found.shares.keys() | found.unmeasured <= {"c1"}
    if kind is Attribution.CONTEXT_GROUNDED:
        assert found.shares.get("c1", 0.0) == (answer.grounding or 0.0)
        assert ("c1" in found.unmeasured) == (answer.grounding is None and not required)
    if "c1" in found.attributions:
        assert found.attributions["c1"] is not Attribution.CONTEXT_GROUNDED


@given(score=SHARES, signals=st.builds(RiskSignals, SHARES, SHARES, SHARES, SHARES))
def test_the_consumed_score_is_a_floor_and_lowers_nothing(score, signals):
    """From MEDIUM up it is named among the floors."""
    plain, held = (
        compose(signals, calibration=Calibration()),
        compose(signals, calibration=Calibration(), at_least=score),
    )

    assert held.score == max(plain.score, score)
    assert (Floor.CONSUMED_RISK in held.floors) == (score >= MEDIUM_FROM)


def test_a_fact_that_repeats_the_answer_is_the_answer():
    """However it is framed; a source that says much more, or something else, stays one."""
    words = "The lease ends in May. The rent is 900 euros"
    base = envelope(
        ("child", words),
        ("pasted", f"The agent says so. {words}"),
        ("source", "The rent is 900 euros. It is due on Mondays"),
    )
    own = consumed.own_facts(base, [ConsumedAnswer("w", frozenset({"child"}), 0.7, 0.0)])

    assert {base.facts[unit.fact].id for unit in own.cut.units} == {"source"}
    assert own.vectors.shape[0] == len(own.cut.units)
