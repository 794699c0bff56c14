"""Inputs of decision cycles for tests: the bundled ML profile, four agents, and what they send."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from interlock.domain.decision.agents import AgentStanding
from interlock.domain.decision.definition import ExperimentRules, defined
from interlock.domain.decision.engine import decide, snapshot_hash
from tests.support.paths import PACKAGE

NOW_US = 1_790_000_000_000_000
ML = (PACKAGE / "decision" / "profiles" / "ml.json").read_text()
RULES = defined(ML)
SNAPSHOT = json.dumps({"trial_active": False, "budget": {"limit": 100, "used": 40}})

TRAINER = {
    "name": "trainer", "role": "TRAINER", "inputs": [], "authority": "OBSERVE", "risk": "LOW", "version": "1",
    "outputs": ["trial_completed", "trial_failed", "instability"],
}  # fmt: skip
ANALYST = {
    "name": "analyst", "role": "ANALYST", "inputs": ["trial_completed"], "authority": "SUGGEST", "risk": "LOW",
    "version": "1", "outputs": ["metric_plateau", "metric_divergence", "high_variance"],
}  # fmt: skip
PROTOCOL = {
    "name": "protocol", "role": "PROTOCOL", "inputs": ["metric_plateau"], "authority": "PROPOSE", "risk": "MEDIUM",
    "version": "1", "outputs": ["SWITCH_HPO", "CHANGE_PROTOCOL", "CONTINUE"],
}  # fmt: skip
STRATEGY = {
    "name": "strategy", "role": "STRATEGY", "inputs": ["*"], "authority": "PROPOSE", "risk": "HIGH", "version": "1",
    "outputs": ["STOP_EXPERIMENT", "MUTATE_SEARCH", "EXTEND_TRIALS", "CONTINUE", "budget_low"],
}  # fmt: skip
BRAKE = {
    "name": "brake", "role": "TRAINER", "inputs": ["*"], "authority": "VETO", "risk": "CRITICAL", "version": "1",
    "outputs": ["STOP_EXPERIMENT", "CONTINUE"],
}  # fmt: skip
EVERYBODY = (TRAINER, ANALYST, PROTOCOL, STRATEGY)


def signal(kind: str = "metric_plateau", source: str = "analyst", **more: Any) -> dict[str, Any]:
    """A signal as an agent sends it."""
    payload = more.pop("payload", {"metric": "loss", "slope": 0.0})
    return {
        "type": kind, "source": source, "at": repr(NOW_US / 1e6), "confidence": "0.9",
        "payload_json": json.dumps(payload), **more,
    }  # fmt: skip


def proposal(agent: str = "protocol", action: str = "SWITCH_HPO", **more: Any) -> dict[str, Any]:
    """A proposal as an agent sends it."""
    parameters = more.pop("parameters", {})
    return {
        "id": "p1", "agent": agent, "action": action, "target": "search", "parameters_json": json.dumps(parameters),
        "expected_effect": "better trials", "risk": "LOW", "confidence": "0.9", "rationale": "the loss is flat",
        "signals_used": [], **more,
    }  # fmt: skip


def answer(
    agent: Mapping[str, Any],
    *proposals: Any,
    signals: Sequence[Any] = (),
    standing: AgentStanding | None = None,
    **more: Any,
) -> dict[str, Any]:
    """What one agent did in a cycle."""
    return {
        "descriptor": dict(agent), "standing": (standing or AgentStanding()).told(), "arrival": "ANSWERED",
        "snapshot_hash": snapshot_hash(more.pop("snapshot", SNAPSHOT)), "signals": [*signals],
        "proposals": [*proposals], "faults": {}, **more,
    }  # fmt: skip


def inputs(*answers: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The inputs of a cycle; agents that are not named answered with nothing."""
    named = {one["descriptor"]["name"] for one in answers}
    return {
        "experiment": "crp_sess_" + "0" * 32, "cycle": 7, "at_us": NOW_US, "snapshot": SNAPSHOT, "given": [],
        "carried": [], "memory": {}, "agents": [*answers, *(answer(one) for one in EVERYBODY if one["name"] not in named)],
        **more,
    }  # fmt: skip


def decided(*answers: Mapping[str, Any], rules: ExperimentRules = RULES, **more: Any) -> dict[str, Any]:
    """The trace of a cycle."""
    return decide(rules, inputs(*answers, **more))


def reasons(trace: Mapping[str, Any]) -> list[str]:
    """The names by which proposals were rejected."""
    return [one["reason"] for one in trace["rejected"]]


def rules_with(**limits: Any) -> ExperimentRules:
    """The ML profile under other limits."""
    return defined(json.dumps({**json.loads(ML), "limits": limits}))
