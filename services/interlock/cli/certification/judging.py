"""What an agent's answers come to: the engine of the service decides each, and its reasons go to the tests that they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from interlock.cli.certification.scenarios import Scenario
from interlock.decision.agents.desks import DeskAnswer
from interlock.domain.decision.agents import AgentDescriptor, AgentStanding
from interlock.domain.decision.definition import ExperimentRules
from interlock.domain.decision.engine import decide
from interlock.domain.decision.reading import canonical, digest
from interlock.domain.decision.words import ActionRisk, AgentAuthority, Arrival, Speaker

FOREIGN = frozenset({"PROPOSAL_AGENT_FOREIGN", "SIGNAL_SOURCE_FOREIGN"})
UNSAFE = frozenset({"RISK_CONFIDENCE", "RISK_ABOVE_DESCRIPTOR"})
"""What an agent can know without being told a limit of its experiment: it claims too much."""
_WHOLE = frozenset({"ANSWER_UNUSABLE", "ANSWER_TOO_LARGE", "SNAPSHOT_STALE"})


@dataclass(frozen=True)
class ScenarioAnswer:
    """One scenario and how it was answered."""

    scenario: Scenario
    arrival: Arrival
    answer: DeskAnswer | None


@dataclass(frozen=True)
class AgentFindings:
    """What is wrong, by test; a warning is not wrong."""

    wrong: Mapping[str, Sequence[str]]
    warnings: Sequence[str] = ()
    proposals: int = 0
    signals: int = 0
    blocked: Sequence[str] = field(default_factory=tuple)
    """What the engine was given to block, and did."""


def trace_of(
    rules: ExperimentRules, agent: AgentDescriptor, one: ScenarioAnswer, *, at_us: int, **changed: Any
) -> dict[str, Any]:
    """Return the trace of a cycle in which this agent alone answered."""
    sent = one.answer or DeskAnswer("", [], [])
    told = {
        "descriptor": agent.told(), "standing": AgentStanding().told(), "arrival": str(one.arrival), "faults": {},
        "snapshot_hash": sent.snapshot_hash, "signals": sent.signals, "proposals": sent.proposals,
    }  # fmt: skip
    inputs = {
        "experiment": "certification", "cycle": 1, "at_us": at_us, "snapshot": one.scenario.text,
        "given": list(one.scenario.signals), "carried": [], "memory": {}, "agents": [told], **changed,
    }  # fmt: skip
    return decide(rules, inputs)


def judged(
    rules: ExperimentRules, agent: AgentDescriptor, answers: Sequence[ScenarioAnswer], *, at_us: int
) -> AgentFindings:
    """Return what the answers come to."""
    wrong: dict[str, list[str]] = {"schema": [], "guards": [], "explainability": [], "isolation": []}
    warnings: list[str] = []
    for one in answers:
        if one.answer is None:
            continue
        trace = trace_of(rules, agent, one, at_us=at_us)
        for test, reason in _faults(trace):
            wrong[test].append(f"{one.scenario.name}: {reason}")
        named = {name for told in trace["warnings"] for name in told["warnings"]}
        warnings += [f"{one.scenario.name}: {name}" for name in sorted(named)]
    blocked, passed = _bent(rules, agent, answers, at_us)
    wrong["guards"] += passed
    return AgentFindings(
        wrong, warnings, sum(len(one.answer.proposals) for one in answers if one.answer),
        sum(len(one.answer.signals) for one in answers if one.answer), blocked,
    )  # fmt: skip


def written(answers: Sequence[ScenarioAnswer]) -> dict[str, str]:
    """Return each answer as text, without what may differ between two runs: ids that were drawn, and the clock."""
    return {
        one.scenario.name: canonical(
            [
                str(one.arrival),
                sorted(canonical({**signal, "at": ""}) for signal in one.answer.signals) if one.answer else [],
                sorted(canonical({**proposal, "id": ""}) for proposal in one.answer.proposals) if one.answer else [],
            ]
        )
        for one in answers
    }


def transcript(answers: Sequence[ScenarioAnswer]) -> str:
    """Return the SHA-256 of what was asked and answered."""
    asked = {one.scenario.name: [one.scenario.snapshot.get("budget"), len(one.scenario.signals)] for one in answers}
    return digest([asked, written(answers)])


def _faults(trace: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the test and the reason of each part that was not admitted. What guards of the experiment block is no fault."""
    account = trace["agents"][0]
    reasons = [(one["outcome"], one["reason"], one["proposal_id"]) for one in trace["rejected"]]
    reasons += [("SIGNAL", one["reason"], one["type"]) for one in trace["signals_rejected"]]
    parts = [(stage, reason, part) for stage, reason, part in reasons if reason not in _WHOLE]
    if account["fault"] and not parts:
        yield "schema", account["fault"]
    for stage, reason, part in parts:
        said = f"{reason} ({part})" if part else reason
        if reason in FOREIGN:
            yield "isolation", said
        elif stage in {"SIGNAL", "INTAKE"}:
            yield "schema", said
        elif stage == "AUTHORITY" or reason in UNSAFE:
            yield "guards", said
        elif stage == "EXPLAINABILITY":
            yield "explainability", said


def _bent(
    rules: ExperimentRules, agent: AgentDescriptor, answers: Sequence[ScenarioAnswer], at_us: int
) -> tuple[list[str], list[str]]:
    """Return what the engine blocked, and what it did not, of this agent's own proposals made unauthorised and unsafe."""
    blocked: set[str] = set()
    passed: list[str] = []
    for one in answers:
        if one.answer is None or not one.answer.proposals:
            continue
        for bend, holder, proposals in _bends(agent, one.answer.proposals):
            # Without its signals: were one of them wrong, nothing of the answer would be read.
            changed = replace(one, answer=replace(one.answer, signals=[], proposals=proposals))
            trace = trace_of(rules, holder, changed, at_us=at_us)
            chosen = trace["chosen"]
            if chosen is None or chosen["by"] != Speaker.AGENT:
                blocked.add(bend)
            else:
                passed.append(f"{one.scenario.name}: {bend} was accepted")
    return sorted(blocked), passed


def _bends(
    agent: AgentDescriptor, proposals: Sequence[Any]
) -> Iterator[tuple[str, AgentDescriptor, list[dict[str, Any]]]]:
    yield "a proposal of an agent that only observes", replace(agent, authority=AgentAuthority.OBSERVE), [*proposals]
    yield "an action that was not declared", replace(agent, outputs=()), [*proposals]
    able = replace(agent, risk=ActionRisk.CRITICAL)
    yield "HIGH risk with confidence 0.79", able, [{**one, "risk": "HIGH", "confidence": "0.79"} for one in proposals]
    yield "an action that nobody knows", agent, [{**one, "action": "RUN_SKILL"} for one in proposals]
    yield "no rationale", agent, [{**one, "rationale": ""} for one in proposals]
    yield "a confidence of 0", agent, [{**one, "confidence": "0.0"} for one in proposals]
