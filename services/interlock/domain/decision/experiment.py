"""An experiment as its chain tells it: records that follow one another, and the state that they add up to (DEC-6).

The chain is the one history. A store that lost the state, or holds an older one, is made what the records say.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from interlock.domain.decision.agents import MOST_AGENTS, AgentDescriptor, AgentStanding
from interlock.domain.decision.definition import MOST_SIGNALS, ExperimentRules, defined, signal_schema
from interlock.domain.decision.reading import canonical, is_name
from interlock.domain.errors import conflict, exhausted, invalid, not_found, unavailable
from interlock.domain.ids import SessionId

PART = 28_000
"""Characters of a trace in one record: its data is JSON in JSON, and at most twice as long."""
INFO, WARN = 2, 3
MOST_RESERVED = 256
"""Permits that are remembered until they are settled. The oldest is forgotten first, and counts as done."""

defined_once = lru_cache(maxsize=64)(defined)


@dataclass(frozen=True)
class DecisionRecord:
    """One record of an experiment's chain. *data* is the text of a JSON object."""

    sequence: int
    previous: str
    link: str
    type: str
    severity: int
    data: str


@dataclass(frozen=True)
class DecidedCycle:
    """What is told of a cycle without its trace. *sequence*: the place of its record."""

    cycle: int
    sequence: int
    decision_id: str
    outcome: str
    chosen: str
    trace_hash: str
    parts: int
    at_us: int

    def told(self) -> str:
        """Return it as JSON text."""
        return canonical(self.__dict__)

    @classmethod
    def of(cls, text: str) -> DecidedCycle:
        """Read what ``told`` returned."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class ExperimentState:
    """What the next cycle begins with."""

    definition: str
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Descriptors by name."""
    standings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    memory: Mapping[str, Sequence[int]] = field(default_factory=dict)
    carried: Sequence[Mapping[str, Any]] = ()
    cycle: int = 0
    sequence: int = 0
    link: str = ""
    types: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Types of signals that were registered after the definition, with their schemas."""
    bus: Mapping[str, Any] = field(default_factory=dict)
    """Up to where cycles took signals from the bus: epoch and number."""
    reserved: Mapping[str, str] = field(default_factory=dict)
    """Cycle → key of the permit that nobody settled yet."""
    doubtful: int = 0
    """The first cycle that may have reserved something that no trace has, as the last trace tells it; 0: none before the last one."""

    def told(self) -> str:
        """Return it as JSON text. What came later to experiments is left out while it is empty: older services read it too."""
        later = {name for name in ("types", "bus", "reserved", "doubtful") if not getattr(self, name)}
        told = {name: one for name, one in self.__dict__.items() if name not in later}
        return canonical({**told, "carried": list(self.carried)})

    @property
    def rules(self) -> ExperimentRules:
        """What holds in it: its definition, and the types that were registered later."""
        return defined_once(self.definition).having(self.types)

    @classmethod
    def of(cls, text: str) -> ExperimentState:
        """Read what ``told`` returned."""
        return cls(**json.loads(text))

    def standing(self, agent: str) -> AgentStanding:
        """Return how an agent stands; a new one is ACTIVE."""
        held = self.standings.get(agent)
        return AgentStanding.of(held) if held else AgentStanding()

    def known(self, agent: str) -> Mapping[str, Any]:
        """Return an agent's descriptor. Refused with DECISION_AGENT_UNKNOWN."""
        if agent not in self.agents:
            raise not_found("DECISION_AGENT_UNKNOWN", "the experiment has no agent of this name")
        return self.agents[agent]


def experiment_id_of(scope: str, name: str) -> SessionId:
    """Return the id of an experiment's chain. Refused with DECISION_NAME_INVALID."""
    if not is_name(name):
        raise invalid("DECISION_NAME_INVALID", "a name has 1 to 64 letters, digits, dots, hyphens or underscores")
    return SessionId("crp_sess_" + hashlib.sha256(canonical(["decision", scope, name]).encode()).hexdigest()[:32])


def opened(name: str, definition: str, at_us: int, *, scope: str = "") -> tuple[ExperimentState, list[DecisionRecord]]:
    """Return a new experiment and its first record. *scope* says whose it is, for the people who may look at it."""
    told = {"name": name, "definition": definition, **({"scope": scope} if scope else {})}
    return _next(ExperimentState(definition), [("DECISION_OPENED", INFO, told)], at_us)


def registered(
    state: ExperimentState, agent: AgentDescriptor, at_us: int
) -> tuple[ExperimentState, list[DecisionRecord]]:
    """Return the experiment with an agent; no record where it is there as it is. Its standing stays."""
    if state.agents.get(agent.name) == agent.told():
        return state, []
    if agent.name not in state.agents and len(state.agents) >= MOST_AGENTS:
        raise exhausted("DECISION_AGENTS_TOO_MANY", f"an experiment has at most {MOST_AGENTS} agents")
    return _next(state, [("DECISION_AGENT", INFO, {"agent": agent.told()})], at_us)


def reinstated(
    state: ExperimentState, agent: str, reason: str, at_us: int
) -> tuple[ExperimentState, list[DecisionRecord]]:
    """Return the experiment with an agent that is ACTIVE again because a person said so."""
    state.known(agent)
    return _next(state, [("DECISION_REINSTATED", WARN, {"name": agent, "reason": reason})], at_us)


def typed(
    state: ExperimentState, name: str, schema_json: str, at_us: int
) -> tuple[ExperimentState, list[DecisionRecord]]:
    """Return the experiment with a type of signals; no record where it is there as it is.

    Refused with DECISION_NAME_INVALID, DECISION_SIGNAL_INVALID, DECISION_SIGNAL_DIFFERS or DECISION_SIGNALS_TOO_MANY.
    """
    if not is_name(name):
        raise invalid("DECISION_NAME_INVALID", "a name has 1 to 64 letters, digits, dots, hyphens or underscores")
    schema, rules = signal_schema(schema_json), state.rules
    if name in rules.actions:
        raise invalid("DECISION_SIGNAL_INVALID", "an action has this name")
    if name in rules.signals:
        if canonical(rules.signals[name]) != canonical(schema):
            raise conflict("DECISION_SIGNAL_DIFFERS", "the type is there with another schema")
        return state, []
    if len(rules.signals) >= MOST_SIGNALS:
        raise exhausted("DECISION_SIGNALS_TOO_MANY", f"an experiment has at most {MOST_SIGNALS} types of signals")
    return _next(state, [("DECISION_SIGNAL", INFO, {"name": name, "schema": schema})], at_us)


def settled(
    state: ExperimentState, cycle: int, told: Mapping[str, str], at_us: int
) -> tuple[ExperimentState, list[DecisionRecord]]:
    """Return the experiment after the permit of a cycle was settled. *told*: key, outcome, and the kernel's record."""
    return _next(state, [("DECISION_SETTLED", INFO, {"cycle": str(cycle), **told})], at_us)


def concluded(
    state: ExperimentState, trace: Mapping[str, Any], at_us: int
) -> tuple[ExperimentState, list[DecisionRecord]]:
    """Return the experiment after a cycle: its record, and the trace in parts."""
    text = canonical(trace)
    parts = [text[at : at + PART] for at in range(0, len(text), PART)]
    chosen = trace["chosen"]
    head = {
        "cycle": str(trace["cycle"]), "decision_id": trace["decision_id"], "outcome": trace["outcome"],
        "chosen": f"{chosen['agent']}/{chosen['id']}" if chosen else "", "parts": str(len(parts)),
        "trace_hash": hashlib.sha256(text.encode()).hexdigest(), "rules_hash": trace["rules_hash"],
        "snapshot_hash": trace["snapshot_hash"], "rejected": str(len(trace["rejected"])),
    }  # fmt: skip
    pieces = [
        ("DECISION_TRACE", INFO, {"cycle": str(trace["cycle"]), "part": str(number), "text": part})
        for number, part in enumerate(parts, 1)
    ]
    return _next(state, [("DECISION_CYCLE", INFO, head), *pieces], at_us)


def folded(records: Iterable[DecisionRecord]) -> tuple[ExperimentState, list[DecidedCycle]]:
    """Return what records, from the first, add up to, and their cycles.

    Refused with DECISION_RECORD_BROKEN where one does not follow the one before it, or with DECISION_RECORD_TRUNCATED.
    """
    state, cycles, parts = ExperimentState(""), list[DecidedCycle](), list[str]()
    for record in records:
        if not state.sequence and record.sequence > 1:
            raise unavailable("DECISION_RECORD_TRUNCATED", "the beginning of the record was removed", retry_after_ms=0)
        if record.sequence != state.sequence + 1 or record.previous != state.link:
            raise conflict("DECISION_RECORD_BROKEN", "a record does not follow the one before it")
        data = json.loads(record.data)
        state = replace(_applied(state, record.type, data), sequence=record.sequence, link=record.link)
        if record.type == "DECISION_CYCLE":
            cycles.append(cycle_of(record))
            parts = []
        elif record.type == "DECISION_TRACE":
            parts.append(data["text"])
            if len(parts) == cycles[-1].parts:
                state = _after_cycle(state, json.loads("".join(parts)))
    return state, cycles


def cycle_of(record: DecisionRecord) -> DecidedCycle:
    """Return what the record of a cycle tells."""
    data = json.loads(record.data)
    return DecidedCycle(
        cycle=int(data["cycle"]), sequence=record.sequence, decision_id=data["decision_id"], outcome=data["outcome"],
        chosen=data["chosen"], trace_hash=data["trace_hash"], parts=int(data["parts"]), at_us=int(data["at_us"]),
    )  # fmt: skip


def trace_in(records: Sequence[DecisionRecord], cycle: DecidedCycle) -> str:
    """Return the trace in the records of one cycle. Refused with DECISION_RECORD_BROKEN where it is not the one that was sealed."""
    parts = [json.loads(one.data)["text"] for one in records if one.type == "DECISION_TRACE"]
    text = "".join(parts)
    if len(parts) != cycle.parts or hashlib.sha256(text.encode()).hexdigest() != cycle.trace_hash:
        raise conflict("DECISION_RECORD_BROKEN", "the parts are not the trace that was sealed")
    return text


def _applied(state: ExperimentState, kind: str, data: Mapping[str, Any]) -> ExperimentState:
    if kind == "DECISION_OPENED":
        return replace(state, definition=data["definition"])
    if kind == "DECISION_AGENT":
        return replace(state, agents={**state.agents, data["agent"]["name"]: data["agent"]})
    if kind == "DECISION_REINSTATED":
        return replace(state, standings={**state.standings, data["name"]: AgentStanding().told()})
    if kind == "DECISION_SIGNAL":
        return replace(state, types={**state.types, data["name"]: data["schema"]})
    if kind == "DECISION_SETTLED":
        return replace(state, reserved={at: key for at, key in state.reserved.items() if at != data["cycle"]})
    return state


def _after_cycle(state: ExperimentState, trace: Mapping[str, Any]) -> ExperimentState:
    after, reserved = trace["after"], dict(state.reserved)
    if trace.get("reserved"):
        reserved[str(trace["cycle"])] = trace["reserved"]["key"]
        reserved = dict(sorted(reserved.items(), key=lambda one: int(one[0]))[-MOST_RESERVED:])
    return replace(
        state, cycle=trace["cycle"], standings={**state.standings, **after["standings"]}, memory=after["memory"],
        carried=after["carried"], bus=after.get("bus", state.bus), reserved=reserved,
        doubtful=trace["inputs"].get("doubtful_from", 0),
    )  # fmt: skip


def _next(
    state: ExperimentState, told: Sequence[tuple[str, int, Mapping[str, Any]]], at_us: int
) -> tuple[ExperimentState, list[DecisionRecord]]:
    """Return the state after records, made by the same rule that reads them back, and the records."""
    records: list[DecisionRecord] = []
    number, previous = state.sequence, state.link
    for kind, severity, fields in told:
        number += 1
        data = canonical({"sequence": str(number), "previous": previous, "at_us": str(at_us), **fields})
        link = hashlib.sha256((previous + data).encode()).hexdigest()[:40]
        records.append(DecisionRecord(number, previous, link, kind, severity, data))
        previous = link
    after = state
    for record in records:
        after = _applied(after, record.type, json.loads(record.data))
    if told[0][0] == "DECISION_CYCLE":
        after = _after_cycle(after, json.loads("".join(fields["text"] for _, _, fields in told[1:])))
    return replace(after, sequence=number, link=previous), records
