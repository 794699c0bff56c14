"""Laws of the decision engine (SEED-5 §7; DEC-4): order does not matter, nothing unauthorised is accepted, every end has a name."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.domain.decision.agents import AgentStanding
from interlock.domain.decision.engine import decide, snapshot_hash
from interlock.domain.decision.reading import canonical
from interlock.domain.decision.replay import replayed
from interlock.domain.decision.words import ActionRisk, AgentAuthority, AgentStatus
from tests.support.decisions import BRAKE, EVERYBODY, ML, NOW_US, RULES, answer, proposal
from tests.support.decisions import inputs as inputs_of

AGENTS = (*EVERYBODY, BRAKE)
NUMBERS = st.sampled_from([*["0.3", "0.5", "0.79", "0.8", "0.9", "1.0"] * 6, "0.0", "nan", "-1.0", "2.0", "x", ""])
TEXTS = st.sampled_from([*["because"] * 20, "", " ", "x" * 1001, "\x00"])
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PARAMETERS = st.sampled_from(
    [
        "{}",
        '{"trials": 10}',
        '{"trials": 1000}',
        '{"shrink_percent": 10, "diversity": 0.5}',
        "[",
        "NaN",
        '{"trials": 1e999}',
    ]
)
SNAPSHOTS = st.sampled_from(
    ['{"trial_active": false, "budget": {"limit": 100, "used": 40}}', '{"trial_active": true}', "{}", '{"budget": 7}']
)


@st.composite
def proposals(draw: st.DrawFn, agent: str) -> Any:
    """A proposal, mostly well formed."""
    if draw(st.integers(0, 19)) == 0:
        return draw(ANYTHING)
    return {
        "id": draw(st.sampled_from(["", "a", "b", "c"])), "agent": draw(st.sampled_from([agent] * 9 + ["strategy"])),
        "action": draw(st.sampled_from([*RULES.actions, "DROP_TABLES"])), "target": "t",
        "parameters_json": draw(PARAMETERS), "expected_effect": "e", "risk": draw(st.sampled_from([*[*ActionRisk.__members__] * 6, "?"])),
        "confidence": draw(NUMBERS), "rationale": draw(TEXTS), "signals_used": draw(st.lists(st.text(max_size=3), max_size=2)),
    }  # fmt: skip


@st.composite
def signals(draw: st.DrawFn, source: str) -> Any:
    """A signal, mostly well formed."""
    if draw(st.integers(0, 19)) == 0:
        return draw(ANYTHING)
    return {
        "type": draw(st.sampled_from([*RULES.signals, "weather"])), "source": source, "confidence": draw(NUMBERS),
        "at": draw(st.sampled_from([repr(NOW_US / 1e6), "0.0", "nan"])),
        "payload_json": draw(st.sampled_from(['{"utilization": 0.9}', '{"metric": "loss", "slope": 0}', "{}", "]"])),
    }  # fmt: skip


@st.composite
def cycles(draw: st.DrawFn) -> dict[str, Any]:
    """The inputs of a cycle."""
    snapshot = draw(SNAPSHOTS)
    agents = []
    for agent in draw(st.permutations(AGENTS))[: draw(st.integers(0, len(AGENTS)))]:
        status = draw(st.sampled_from([AgentStatus.ACTIVE] * 4 + [AgentStatus.DEGRADED, AgentStatus.PROBATION]))
        agents.append({
            "descriptor": {**agent, "authority": draw(st.sampled_from([*AgentAuthority.__members__, *[agent["authority"]] * 4]))},
            "standing": AgentStanding(status).told(), "arrival": draw(st.sampled_from(["ANSWERED"] * 5 + ["LATE", "LEFT"])),
            "snapshot_hash": draw(st.sampled_from([snapshot_hash(snapshot)] * 9 + [""])),
            "signals": draw(st.lists(signals(agent["name"]), max_size=2)),
            "proposals": draw(st.lists(proposals(agent["name"]), max_size=3)), "faults": {},
        })  # fmt: skip
    return {
        "experiment": "x", "cycle": draw(st.sampled_from([1, 7, 1001])), "at_us": NOW_US, "snapshot": snapshot,
        "given": draw(st.lists(signals("executor"), max_size=2)), "carried": [], "agents": agents,
        "memory": draw(st.sampled_from([{}, {"SWITCH_HPO": [6]}, {"MUTATE_SEARCH": [1, 2, 3]}])),
    }  # fmt: skip


def lawful(inputs: dict[str, Any], trace: dict[str, Any]) -> None:
    """What is accepted was declared, within its agent's authority and risk, explained, and passed each of its guards."""
    chosen = trace["chosen"]
    if chosen is None:
        assert trace["outcome"] == "CONTINUE"
        assert trace["final_parameters"] == {}
        return
    agent = next(one["descriptor"] for one in inputs["agents"] if one["descriptor"]["name"] == chosen["agent"])
    risk = max(ActionRisk[chosen["risk_level"]], RULES.actions[chosen["action_type"]].risk)

    assert agent["authority"] in {"PROPOSE", "VETO"}
    assert chosen["action_type"] in agent["outputs"]
    assert agent["authority"] == "PROPOSE" or RULES.actions[chosen["action_type"]].emergency
    assert risk <= ActionRisk[agent["risk"]]
    assert risk < ActionRisk.HIGH or chosen["confidence_micros"] >= 800_000
    assert chosen["rationale"].strip() and chosen["confidence_micros"] >= 300_000
    place = f"{chosen['agent']}/{chosen['id']} "
    checks = [line for line in trace["guardrail_checks"] if line.startswith(place)]
    assert len(checks) >= 2 and all(line.endswith(": ok") for line in checks)


@pytest.mark.req("DEC-4", "DEC-6")
@settings(max_examples=40)
@given(cycles(), st.randoms(use_true_random=False))
def test_equal_inputs_give_equal_bytes_in_whatever_order_they_came(inputs, random):
    """Agents, proposals and signals may arrive in any order; the trace is the same text, and replays."""
    text = canonical(decide(RULES, inputs))
    shuffled = json.loads(json.dumps(inputs))
    for one in shuffled["agents"]:
        random.shuffle(one["signals"])
        random.shuffle(one["proposals"])
    random.shuffle(shuffled["agents"])
    random.shuffle(shuffled["given"])

    assert canonical(decide(RULES, shuffled)) == text
    assert replayed(ML, text).is_same


@pytest.mark.req("DEC-1", "DEC-4", "DEC-5", "DEC-7")
@settings(max_examples=60)
@given(cycles())
def test_nothing_unauthorised_or_unguarded_is_ever_accepted(inputs):
    """What is chosen was declared, is within its agent's authority and risk, was explained, and passed each guard."""
    lawful(inputs, decide(RULES, inputs))


@pytest.mark.req("DEC-3", "DEC-4")
@settings(max_examples=40)
@given(cycles())
def test_every_proposal_ends_accepted_or_rejected_by_a_name(inputs):
    """As many ends as proposals: of agents that spoke, or could not, and of the rules that spoke for them."""
    trace = decide(RULES, inputs)
    sent = sum(len(one["proposals"]) for one in inputs["agents"])
    by_rules = sum(one["by"] == "RULES" for one in trace["proposals_considered"])

    assert len(trace["rejected"]) + (trace["chosen"] is not None) == sent + by_rules
    assert all(one["reason"].isupper() and one["outcome"] for one in trace["rejected"])
    signals_sent = sum(len(one["signals"]) for one in inputs["agents"]) + len(inputs["given"])
    assert len(trace["signals"]) + len(trace["signals_rejected"]) + len(trace["after"]["carried"]) == signals_sent


@pytest.mark.req("DEC-4")
@settings(max_examples=40)
@given(cycles(), st.sampled_from(["0.95", "1.0"]))
def test_more_confidence_never_loses(inputs, surer):
    """The accepted proposal stays accepted when its agent is surer of it."""
    chosen = decide(RULES, inputs)["chosen"]
    if chosen is None or chosen["by"] == "RULES" or chosen["confidence_micros"] > 950_000:
        return
    lifted = json.loads(json.dumps(inputs))
    for one in lifted["agents"]:
        for sent in one["proposals"]:
            if one["descriptor"]["name"] == chosen["agent"] and sent["id"] == chosen["id"]:
                sent["confidence"] = surer
    again = decide(RULES, lifted)["chosen"]

    assert again is not None
    if chosen["id"] in {"a", "b", "c"}:
        assert (again["agent"], again["id"]) == (chosen["agent"], chosen["id"])


def drawn(random: Random) -> dict[str, Any]:
    """The inputs of a cycle, much faster than Hypothesis draws them, and mostly sound: many of these accept something."""
    snapshot = random.choice(
        ['{"trial_active": false, "budget": {"limit": 100, "used": 40}}', '{"trial_active": true}']
    )
    agents = []
    for agent in random.sample(AGENTS, random.randint(1, len(AGENTS))):
        declared = [one for one in agent["outputs"] if one in RULES.actions]
        sent = [
            proposal(
                agent["name"], random.choice([*declared * 6, *RULES.actions, "DROP_TABLES"]), id=f"p{number}",
                confidence=random.choice([*["0.29", "0.3", "0.79", "0.8", "1.0"] * 8, "0.0", "nan"]),
                risk=random.choice([*ActionRisk.__members__]), rationale=random.choice([*["because"] * 9, ""]),
                parameters=random.choice([{}, {"trials": 10}, {"trials": 61}, {"shrink_percent": 10, "diversity": 0.5}]),
            )
            for number in range(random.randint(0, 3))
        ]  # fmt: skip
        changed = {**agent, "authority": random.choice([*AgentAuthority.__members__, *[agent["authority"]] * 12])}
        arrival = random.choice(["ANSWERED"] * 9 + ["LATE"])
        agents.append(answer(changed, *sent, snapshot=snapshot, arrival=arrival))
    random.shuffle(agents)
    memory = random.choice([{}, {"SWITCH_HPO": [6]}, {"MUTATE_SEARCH": [1, 2, 3]}])
    return {
        **inputs_of(),
        "agents": agents,
        "snapshot": snapshot,
        "memory": memory,
        "cycle": random.choice([1, 7, 1001]),
    }


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.req("DEC-4", "DEC-5")
def test_100000_random_cycles_accept_nothing_unauthorised():
    """The law above over 100,000 cycles, of which many accept an action."""
    random, accepted = Random(17), 0
    for _ in range(100_000):
        inputs = drawn(random)
        trace = decide(RULES, inputs)
        lawful(inputs, trace)
        accepted += trace["chosen"] is not None

    assert accepted > 20_000
