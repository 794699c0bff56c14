"""The six guards, each by its figures (SEED-5 §8)."""

from __future__ import annotations

import json

import pytest

from tests.support.decisions import PROTOCOL, STRATEGY, answer, decided, proposal, reasons, rules_with

pytestmark = pytest.mark.req("DEC-5")


def tried(action, *, agent=STRATEGY, snapshot=None, parameters=None, rules=None, confidence="0.9", **more):
    """The trace of one proposal on a snapshot."""
    held = json.dumps({"trial_active": False, "budget": {"limit": 100, "used": 40}} if snapshot is None else snapshot)
    one = proposal(agent["name"], action, parameters=parameters or {}, confidence=confidence)
    with_rules = {"rules": rules} if rules else {}
    return decided(answer(agent, one, snapshot=held), snapshot=held, **with_rules, **more)


@pytest.mark.parametrize(
    ("trials", "used", "reason"),
    [(60, 40, ""), (61, 40, "BUDGET_EXCEEDED"), (0, 100, "BUDGET_EXCEEDED"), (-1, 40, "BUDGET_COST_UNKNOWN"),
     ("many", 40, "BUDGET_COST_UNKNOWN"), (True, 40, "BUDGET_COST_UNKNOWN")],
)  # fmt: skip
def test_what_is_proposed_must_be_affordable(trials, used, reason):
    """Up to what is left, and nothing once the limit is reached."""
    snapshot = {"budget": {"limit": 100, "used": used}}
    trace = tried("EXTEND_TRIALS", snapshot=snapshot, parameters={"trials": trials})

    assert reasons(trace) == ([reason] if reason else [])


def test_a_guard_without_its_figure_blocks():
    """A snapshot that says nothing of the budget or of trials allows neither."""
    assert reasons(tried("EXTEND_TRIALS", snapshot={}, parameters={"trials": 1})) == ["BUDGET_UNKNOWN"]
    assert reasons(tried("SWITCH_HPO", agent=PROTOCOL, snapshot={})) == ["STABILITY_UNKNOWN"]
    assert reasons(tried("MUTATE_SEARCH")) == ["MUTATION_UNSTATED"]


@pytest.mark.parametrize(
    ("shrink", "diversity", "reason"),
    [(50, 0.2, ""), (50.1, 0.5, "MUTATION_SHRINK"), (-1, 0.5, "MUTATION_SHRINK"), (10, 0.19, "MUTATION_DIVERSITY")],
)
def test_a_mutation_keeps_the_search_wide_enough(shrink, diversity, reason):
    """It shrinks by so much at most and leaves so much diversity."""
    trace = tried("MUTATE_SEARCH", parameters={"shrink_percent": shrink, "diversity": diversity})

    assert reasons(trace) == ([reason] if reason else [])


@pytest.mark.parametrize("action", ["SWITCH_HPO", "CHANGE_PROTOCOL"])
def test_nothing_is_switched_during_a_trial(action):
    """While a trial runs, method and protocol stay."""
    assert reasons(tried(action, agent=PROTOCOL, snapshot={"trial_active": True})) == ["STABILITY_TRIAL_ACTIVE"]
    assert tried(action, agent=PROTOCOL, snapshot={"trial_active": False})["outcome"] == action


def test_a_loop_ends_in_nothing_but_going_on_and_stopping():
    """After max_cycles no action adapts anything; CONTINUE and the emergency stop remain."""
    over = {"cycle": 11, "rules": rules_with(max_cycles=10)}

    assert reasons(tried("EXTEND_TRIALS", parameters={"trials": 1}, **over)) == ["LOOP_EXHAUSTED"]
    assert tried("CONTINUE", **over)["chosen"]
    assert tried("STOP_EXPERIMENT", **over)["outcome"] == "STOP_EXPERIMENT"


@pytest.mark.parametrize(
    ("accepted", "reason"),
    [([4], "COOLDOWN_ACTIVE"), ([3], ""), ([1, 2, 3], "COOLDOWN_FREQUENCY"), ([], "")],
)
def test_an_action_cools_down_and_is_not_too_frequent(accepted, reason):
    """Three cycles of pause, three times in twenty cycles: no storm."""
    memory = {"SWITCH_HPO": accepted} if accepted else {}
    trace = tried("SWITCH_HPO", agent=PROTOCOL, cycle=7, memory=memory)

    assert reasons(trace) == ([reason] if reason else [])
    if not reason:
        assert trace["after"]["memory"] == {"SWITCH_HPO": [*accepted, 7]}


def test_every_check_is_in_the_trace_with_its_figures():
    """Who reads the trace sees what was compared with what."""
    trace = tried("EXTEND_TRIALS", parameters={"trials": 61})

    assert trace["guardrail_checks"] == [
        "strategy/p1 budget: costs 61, 60 of 100 is left: BUDGET_EXCEEDED",
        "strategy/p1 risk: MEDIUM, confidence 900000, HIGH needs 800000: ok",
        "strategy/p1 loop: cycle 7 of 1000: ok",
    ]
