"""The engine's pipeline: authority, explainability, conflicts, trace (SEED-5 §3, §6, §7, §9, §10)."""

from __future__ import annotations

import json

import pytest

from interlock.domain.decision.reading import canonical
from interlock.domain.decision.replay import replayed
from tests.support.decisions import (
    ANALYST,
    BRAKE,
    ML,
    PROTOCOL,
    RULES,
    STRATEGY,
    TRAINER,
    answer,
    decided,
    proposal,
    reasons,
    signal,
)

STOP = {"action": "STOP_EXPERIMENT", "risk": "HIGH", "agent": "strategy"}


@pytest.mark.req("DEC-4")
def test_the_profile_has_what_the_seed_names():
    """Four roles with their priorities, eight actions, ten signal types: data, not code."""
    assert RULES.roles == {"STRATEGY": 4, "PROTOCOL": 3, "ANALYST": 2, "TRAINER": 1}
    assert len(RULES.actions) == 8
    assert len(RULES.signals) == 10


@pytest.mark.req("DEC-4")
def test_score_is_priority_times_confidence_and_the_highest_wins():
    """A STRATEGY at 0.6 has 2.4, a PROTOCOL at 0.9 has 2.7."""
    low = proposal("strategy", "EXTEND_TRIALS", confidence="0.6", parameters={"trials": 5})
    trace = decided(answer(STRATEGY, low), answer(PROTOCOL, proposal()))

    assert trace["scores"] == {"protocol/p1": 2_700_000, "strategy/p1": 2_400_000}
    assert trace["chosen"]["agent"] == "protocol"
    assert trace["rejected"] == [
        {"agent": "strategy", "proposal_id": "p1", "reason": "OUTSCORED", "outcome": "CONFLICT"}
    ]


@pytest.mark.req("DEC-4")
@pytest.mark.parametrize(("confidence", "accepted"), [("0.8", True), ("0.7999999999", False), ("0.79", False)])
def test_high_risk_needs_0_8_whatever_its_priority(confidence, accepted):
    """A stop below 0.8 is rejected although a STRATEGY outranks everybody; rounding lifts nothing over the bound."""
    trace = decided(answer(STRATEGY, proposal(**STOP, confidence=confidence)))

    assert (trace["outcome"] == "STOP_EXPERIMENT") is accepted
    assert ("RISK_CONFIDENCE" in reasons(trace)) is not accepted


@pytest.mark.req("DEC-4")
def test_an_action_cannot_be_called_harmless():
    """A stop that says LOW has the risk of its action."""
    trace = decided(answer(STRATEGY, proposal(**{**STOP, "risk": "LOW"}, confidence="0.5")))

    assert reasons(trace) == ["RISK_CONFIDENCE"]


@pytest.mark.req("DEC-1", "DEC-7")
@pytest.mark.parametrize(
    ("agent", "sent", "reason"),
    [
        (TRAINER, {"agent": "trainer"}, "AUTHORITY_INSUFFICIENT"),
        (ANALYST, {"agent": "analyst"}, "AUTHORITY_INSUFFICIENT"),
        (PROTOCOL, {"action": "STOP_EXPERIMENT"}, "ACTION_UNDECLARED"),
        (PROTOCOL, {"action": "DROP_TABLES"}, "ACTION_UNKNOWN"),
        (PROTOCOL, {"risk": "HIGH"}, "RISK_ABOVE_DESCRIPTOR"),
        (BRAKE, {"agent": "brake", "action": "CONTINUE"}, "VETO_NOT_EMERGENCY"),
    ],
)
def test_what_an_agent_may_not_propose_is_rejected_by_name(agent, sent, reason):
    """Authority is the first filter: confidence 1 does not help."""
    trace = decided(answer(agent, proposal(**{"confidence": "1.0", **sent})))

    assert reasons(trace) == [reason]
    assert trace["chosen"] is None
    assert trace["outcome"] == "CONTINUE"


@pytest.mark.req("DEC-1")
def test_a_veto_wins_over_every_score_and_is_guarded():
    """A TRAINER with VETO outranks a STRATEGY; below 0.8 it is nothing."""
    other = answer(STRATEGY, proposal("strategy", "CONTINUE", confidence="1.0"))
    sure = decided(other, answer(BRAKE, proposal(**{**STOP, "agent": "brake"}, confidence="0.85")))
    unsure = decided(other, answer(BRAKE, proposal(**{**STOP, "agent": "brake"}, confidence="0.7")))

    assert sure["chosen"]["agent"] == "brake"
    assert reasons(sure) == ["VETOED"]
    assert unsure["outcome"] == "CONTINUE"
    assert reasons(unsure) == ["RISK_CONFIDENCE"]


@pytest.mark.req("DEC-3")
@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({"rationale": ""}, "RATIONALE_EMPTY"),
        ({"rationale": " \n"}, "RATIONALE_EMPTY"),
        ({"confidence": "0.29"}, "CONFIDENCE_BELOW_MINIMUM"),
        ({"confidence": "0.0"}, "CONFIDENCE_BELOW_MINIMUM"),
    ],
)
def test_what_is_not_explained_is_rejected(sent, reason):
    """No rationale, or too little confidence."""
    assert reasons(decided(answer(PROTOCOL, proposal(**sent)))) == [reason]


@pytest.mark.req("DEC-3")
def test_what_should_be_said_is_warned_of():
    """No signals, signals that the agent was not given, no effect: accepted, with warnings."""
    silent = decided(answer(PROTOCOL, proposal(expected_effect="")))
    foreign = decided(answer(PROTOCOL, proposal(signals_used=["sig_of_nobody"])))

    assert silent["warnings"][0]["warnings"] == ["SIGNALS_UNNAMED", "EFFECT_UNNAMED"]
    assert foreign["warnings"][0]["warnings"] == ["SIGNALS_UNSEEN"]
    assert silent["chosen"] and foreign["chosen"]


@pytest.mark.req("DEC-3")
@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({"confidence": "nan"}, "PROPOSAL_CONFIDENCE_INVALID"),
        ({"confidence": "1.01"}, "PROPOSAL_CONFIDENCE_INVALID"),
        ({"confidence": "inf"}, "PROPOSAL_CONFIDENCE_INVALID"),
        ({"confidence": 0.9}, "PROPOSAL_CONFIDENCE_INVALID"),
        ({"agent": "strategy"}, "PROPOSAL_AGENT_FOREIGN"),
        ({"id": "a b"}, "PROPOSAL_ID_INVALID"),
        ({"risk": "NONE"}, "PROPOSAL_RISK_INVALID"),
        ({"parameters_json": '{"a": NaN}'}, "PROPOSAL_PARAMETERS_INVALID"),
        ({"parameters_json": '{"a": 1e999}'}, "PROPOSAL_PARAMETERS_INVALID"),
        ({"parameters_json": '{"a": 1, "a": 2}'}, "PROPOSAL_PARAMETERS_INVALID"),
        ({"parameters_json": json.dumps({"a": "x" * 5000})}, "PROPOSAL_PARAMETERS_INVALID"),
        ({"rationale": "x" * 1001}, "PROPOSAL_MALFORMED"),
        ({"signals_used": "all"}, "PROPOSAL_MALFORMED"),
    ],
)
def test_a_malformed_proposal_takes_its_whole_answer_with_it(sent, reason):
    """The bad one by its name, the good one beside it as unusable, and the agent is degraded."""
    good = proposal(id="good", action="CONTINUE")
    trace = decided(answer(PROTOCOL, proposal(**sent), good))

    assert sorted(reasons(trace)) == sorted([reason, "ANSWER_UNUSABLE"])
    account = next(one for one in trace["agents"] if one["agent"] == "protocol")
    assert (account["status_after"], account["spoke"]) == ("DEGRADED", "RULES")


@pytest.mark.req("DEC-3")
def test_an_id_twice_in_one_answer_is_refused_twice_and_belongs_to_its_agent():
    """Whichever came first does not matter; another agent's same id is another proposal."""
    twice = decided(answer(PROTOCOL, proposal(), proposal(rationale="other")), answer(STRATEGY, proposal(**STOP)))

    assert reasons(twice).count("PROPOSAL_ID_DUPLICATE") == 2
    assert twice["chosen"]["agent"] == "strategy"


@pytest.mark.req("DEC-3")
def test_an_answer_from_another_snapshot_counts_for_nothing():
    """A proposal that rests on an older state is not judged on this one."""
    trace = decided(answer(PROTOCOL, proposal(), snapshot="{}"))

    assert reasons(trace) == ["SNAPSHOT_STALE"]


@pytest.mark.req("DEC-4")
def test_ties_go_to_the_surer_then_the_less_risky_then_by_name():
    """Equal scores are decided by a stated rule."""
    other = {**PROTOCOL, "name": "another"}
    by_name = decided(answer(PROTOCOL, proposal()), answer(other, proposal("another")))
    by_risk = decided(answer(PROTOCOL, proposal()), answer(other, proposal("another", risk="MEDIUM")))

    assert by_name["chosen"]["agent"] == "another"
    assert by_risk["chosen"]["agent"] == "protocol"


@pytest.mark.req("DEC-2")
def test_observers_are_heard_in_the_same_cycle_and_proposers_in_the_next():
    """Signals of those that propose are carried over: nobody answers to what it could not have seen."""
    low = signal("budget_low", "strategy", payload={"utilization": 0.9})
    trace = decided(answer(ANALYST, signals=[signal()]), answer(STRATEGY, signals=[low]))
    [carried] = trace["after"]["carried"]
    following = decided(carried=[carried])

    assert len(trace["signals"]) == 1
    assert carried["type"] == "budget_low"
    assert following["signals"] == [carried["id"]]


@pytest.mark.req("DEC-2")
@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({"kind": "weather"}, "SIGNAL_TYPE_UNKNOWN"),
        ({"kind": "budget_low", "payload": {"utilization": 1}}, "SIGNAL_UNDECLARED"),
        ({"source": "trainer"}, "SIGNAL_SOURCE_FOREIGN"),
        ({"confidence": "-0.1"}, "SIGNAL_CONFIDENCE_INVALID"),
        ({"confidence": "nan"}, "SIGNAL_CONFIDENCE_INVALID"),
        ({"at": "0.0"}, "SIGNAL_CLOCK_PAST"),
        ({"at": "1e12"}, "SIGNAL_CLOCK_FUTURE"),
        ({"at": "-1.0"}, "SIGNAL_CLOCK_INVALID"),
        ({"payload": {"metric": 1, "slope": 0.0}}, "SIGNAL_PAYLOAD_INVALID"),
        ({"payload": {"metric": "loss"}}, "SIGNAL_PAYLOAD_INVALID"),
        ({"payload": {"metric": "loss", "slope": 0, "more": 1}}, "SIGNAL_PAYLOAD_INVALID"),
    ],
)
def test_a_signal_that_is_not_as_declared_is_left_out_by_name(sent, reason):
    """Type, source, confidence, clock and payload."""
    trace = decided(answer(ANALYST, signals=[signal(**sent)]))

    assert [one["reason"] for one in trace["signals_rejected"]] == [reason]
    assert trace["signals"] == []


@pytest.mark.req("DEC-2")
def test_the_execution_layer_gives_signals_and_cannot_speak_for_an_agent():
    """Its own parts are sources; an agent's name is not."""
    done = signal("trial_completed", "executor", payload={"trial": 1, "value": 0.5})
    trace = decided(given=[done, signal("trial_completed", "trainer", payload={"trial": 2, "value": 1.0}), done])

    assert len(trace["signals"]) == 1
    assert sorted(one["reason"] for one in trace["signals_rejected"]) == ["SIGNAL_DUPLICATE", "SIGNAL_SOURCE_FOREIGN"]


@pytest.mark.req("DEC-6")
def test_a_trace_is_replayed_byte_for_byte_or_tells_where_it_parts():
    """The recorded text is made again; a changed decision, another definition and no trace at all are told apart."""
    text = canonical(decided(answer(PROTOCOL, proposal()), answer(STRATEGY, proposal(**STOP))))
    forged = json.loads(text)
    forged["chosen"]["target"] = "everything"
    other = json.dumps({**json.loads(ML), "limits": {"min_confidence": 0.95}})

    assert replayed(ML, text).is_same
    assert replayed(ML, canonical(forged)).differs_at == "chosen.target"
    assert replayed(ML, text + " ").differs_at == "form"
    assert not replayed(other, text).is_same
    assert replayed(ML, "[]").differs_at == "trace"
    assert replayed("{}", text).differs_at == "definition"
