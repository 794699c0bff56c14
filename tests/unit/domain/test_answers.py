"""The rules of answers that govern a call (A-52)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain.answers.governing import (
    ToldDecision,
    ToldSettlement,
    decision_fault,
    policy_fault,
    settlement_fault,
    standing_fault,
)
from interlock.domain.breaker import BreakerState, breaker_state
from interlock.domain.budget import FULL, Micros, charge
from interlock.domain.policy.directives import policy_hash

DELIVERED = ToldDecision(
    action="DELIVER", reason="", halt_reason="", remedies=0, observed=False, breaker=1, budget=FULL, charge=Micros(0)
)
MICROS = st.integers(0, FULL).map(Micros)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, ""),
        ({"action": "UNSPECIFIED"}, "ACTION"),
        ({"reason": "SAFETY_HALT"}, "REASON"),
        ({"halt_reason": "X"}, "REASON"),
        ({"action": "HALT"}, "REASON"),
        ({"action": "HALT", "reason": "SAFETY_HALT", "halt_reason": "X"}, ""),
        ({"remedies": 1}, "REMEDIES"),
        ({"action": "REDISPATCH"}, "REMEDIES"),
        ({"action": "REDISPATCH", "remedies": 2}, ""),
        ({"action": "CONTINUE"}, ""),
        ({"breaker": int(BreakerState.OPEN)}, "BREAKER"),
        ({"budget": Micros(300_000), "charge": Micros(200_000)}, "BREAKER"),
        ({"budget": Micros(300_000), "charge": Micros(199_999)}, ""),
        ({"budget": Micros(300_000), "charge": Micros(200_000), "observed": True}, ""),
    ],
)
def test_a_decision_fits_its_action(changes, fault):
    """Nothing is delivered for a reason to halt, halted for none, or delivered by a session that is spent."""
    assert decision_fault(replace(DELIVERED, **changes)) == fault


@given(MICROS, MICROS, MICROS)
def test_a_settlement_is_what_was_left_less_the_charge(start, cost, other):
    """At most that; and its breaker is never milder than its budget."""
    path = charge(start, cost)
    budget = min(path, other)
    told = ToldSettlement(
        path_budget=path, session_budget=budget, breaker=breaker_state(budget), ceiling=start, charge=cost
    )

    assert settlement_fault(told) == ""
    assert settlement_fault(replace(told, path_budget=path + 1)) in {"BUDGET_RISES", "BUDGET_RANGE"}
    if told.breaker > BreakerState.CLOSED:
        assert settlement_fault(replace(told, breaker=told.breaker - 1)) == "BREAKER"


def test_where_a_session_stands_is_in_range():
    """No breaker, an unknown one and a budget out of range are no standing; a breaker that is more open is one."""
    assert standing_fault(FULL, 0) == standing_fault(FULL, 4) == "BREAKER"
    assert standing_fault(FULL + 1, 1) == standing_fault(-1, 3) == "BUDGET_RANGE"
    assert standing_fault(FULL, 3) == ""


def test_a_policy_has_its_own_hash():
    """Also the policy that demands nothing: its hash is there."""
    assert policy_fault("", policy_hash("")) == policy_fault("halt-on HIGH", policy_hash("halt-on HIGH")) == ""
    assert policy_fault("", "") == policy_fault("halt-on HIGH", policy_hash("")) == "POLICY_HASH"
