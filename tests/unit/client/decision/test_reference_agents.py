"""The four reference agents on snapshots with known answers (DEC-11)."""

from __future__ import annotations

import pytest

from interlock.client.decision import ExperimentSnapshot, Signal
from interlock.client.decision.reference.agents import AGENTS, AnalystAgent, ProtocolAgent, StrategyAgent, TrainerAgent
from interlock.domain.decision.agents import described
from tests.support.decisions import RULES

pytestmark = pytest.mark.req("DEC-11")

SEARCH = {"sampler": "random", "samplers": ["random", "tpe"], "shrunk_percent": 0}
PLATEAU = Signal(
    type="metric_plateau", payload={"metric": "loss", "slope": 0.0}, confidence=0.9, source="analyst", id="sig_1"
)


def processed(agent, signals=(), **state):
    """What an agent makes of a state: types of signals, and proposals."""
    emitted, proposals = agent.process(ExperimentSnapshot(state), signals)
    return [one.type for one in emitted], list(proposals)


@pytest.mark.parametrize("name", AGENTS)
def test_what_they_declare_is_admitted_under_the_ml_profile(name):
    """Names, roles, inputs, outputs and authority as SEED-5 §4 has them."""
    told = AGENTS[name].descriptor.told()

    assert described(told, RULES).told() == told


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize(
    "state", [{}, {"losses": "x", "budget": "x", "search": [], "last": 3}, {"losses": [None, "x"]}]
)
def test_a_snapshot_of_anything_raises_nothing_and_proposes_nothing(name, state):
    """Parts that are missing or of another type say nothing."""
    assert processed(AGENTS[name](), [PLATEAU] if name == "protocol" else [], **state) == ([], [])


def test_the_trainer_tells_of_the_latest_trial():
    """Completed with its value, failed with its error, and unstable when the loss is far away."""
    trainer = TrainerAgent()

    assert processed(trainer, last={"trial": 3, "state": "COMPLETE", "value": 0.2})[0] == ["trial_completed"]
    assert processed(trainer, last={"trial": 3, "state": "FAIL", "error": "x" * 999})[0] == ["trial_failed"]
    losses = [0.3, 0.31, 0.29, 0.3, 0.32, 0.28, 2.4]
    last = {"trial": 6, "state": "COMPLETE", "value": 2.4}
    assert processed(trainer, last=last, losses=losses)[0] == ["trial_completed", "instability"]


@pytest.mark.parametrize(
    ("losses", "types"),
    [
        ([1 - 0.05 * n for n in range(8)], []),
        ([0.5] * 12, ["metric_plateau"]),
        ([0.3, 0.31, 0.32, 0.33], ["metric_divergence"]),
        ([0.1, 0.9, 0.2, 1.4, 0.15], ["high_variance"]),
    ],
)
def test_the_analyst_signals_what_the_losses_say(losses, types):
    """And proposes nothing: it has SUGGEST."""
    assert processed(AnalystAgent(), losses=losses) == (types, [])


def test_the_protocol_agent_proposes_the_next_sampler_on_a_plateau_and_not_during_a_trial():
    """It names the signal that it rests on, and is as sure as that."""
    emitted, [found] = processed(ProtocolAgent(), [PLATEAU], search=SEARCH)

    assert (found.action_type, found.parameters, found.confidence) == ("SWITCH_HPO", {"sampler": "tpe"}, 0.9)
    assert found.signals_used == ["sig_1"]
    assert not emitted
    assert not processed(ProtocolAgent(), [PLATEAU], search=SEARCH, trial_active=True)[1]
    assert not processed(ProtocolAgent(), [PLATEAU], search={**SEARCH, "sampler": "tpe"})[1]
    assert not processed(ProtocolAgent(), [], search=SEARCH)[1]


def test_the_strategy_agent_says_that_the_budget_is_low_above_eighty_percent():
    """At 80 % not yet."""
    assert processed(StrategyAgent(), budget={"limit": 100, "used": 80})[0] == []
    assert processed(StrategyAgent(), budget={"limit": 100, "used": 81})[0] == ["budget_low"]


def test_the_strategy_agent_narrows_then_stops_and_extends_what_still_improves():
    """One action at a time: what the snapshot and the signals call for."""
    strategy = StrategyAgent()
    narrow = processed(strategy, [PLATEAU], search=SEARCH)[1]
    stop = processed(strategy, [PLATEAU], search={**SEARCH, "sampler": "tpe", "shrunk_percent": 70})[1]
    falling = [1 - 0.05 * n for n in range(12)]
    extend = processed(strategy, budget={"limit": 30, "used": 12}, planned=13, losses=falling)[1]

    assert [one.action_type for one in (*narrow, *stop, *extend)] == [
        "MUTATE_SEARCH", "STOP_EXPERIMENT", "EXTEND_TRIALS",
    ]  # fmt: skip
    assert extend[0].parameters == {"trials": 10}


def test_a_snapshot_is_read_only_at_every_depth():
    """An agent can change nothing in what it was given."""
    state = ExperimentSnapshot({"budget": {"limit": 1}, "losses": [1]})

    with pytest.raises(TypeError):
        state["budget"] = {}
    with pytest.raises(TypeError):
        state["budget"]["limit"] = 2
    assert state["losses"] == (1,)
