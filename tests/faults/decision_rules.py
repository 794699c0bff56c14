"""What must hold of experiments (docs/decision.md): what was told is sealed, what was accepted was allowed, what was reserved is paid once.

It reads what agents sent and what the kernel's records say, and works out anew what may be accepted, and who is asked. It shares
nothing with the engine but its replay, which is what it checks. Pure over the facts.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.domain.decision.replay import replayed
from tests.faults.facts import Experiment, Facts, Record
from tests.faults.kernel_rules import SOUND, Ledger

UNIT = 1_000_000
RISKS = ("LOW", "MEDIUM", "HIGH", "CRITICAL")
PROPOSING = frozenset({"PROPOSE", "VETO"})
LEAST_CONFIDENCE, SURE = 300_000, 800_000
MOST_SHRUNK, LEAST_DIVERSE = 50, 0.2
STILL = frozenset({"SWITCH_HPO", "CHANGE_PROTOCOL", "ENABLE_CURRICULUM", "RUN_ENSEMBLE"})
"""Actions that wait for the end of a trial."""
COOLED = frozenset({"SWITCH_HPO", "MUTATE_SEARCH", "CHANGE_PROTOCOL"})
PERMITS = {"EXTEND_TRIALS": "extend", "MUTATE_SEARCH": "mutate"}
CONTINUE = "CONTINUE"
CYCLE_LIMIT_S = 60.0
"""By when the client of an experiment has an answer or gives up, asked twice where one was lost, on a busy machine."""


@dataclass(frozen=True)
class Cycle:
    """One sealed cycle: its record, and its trace."""

    head: Mapping[str, Any]
    text: str
    known: Mapping[str, Mapping[str, Any]]
    """Descriptors that were registered before, by name."""

    @property
    def number(self) -> int:
        """Its number."""
        return int(self.head["cycle"])

    @property
    def trace(self) -> Mapping[str, Any]:
        """Its trace."""
        return json.loads(self.text)  # type: ignore[no-any-return]


def _cycles(experiment: Experiment) -> list[Cycle]:
    """Return the cycles of a chain, each with its trace put together."""
    found: list[Cycle] = []
    known: dict[str, Mapping[str, Any]] = {}
    for at, record in enumerate(experiment.records):
        if record.event_type == "DECISION_AGENT":
            known = {**known, record.data["agent"]["name"]: record.data["agent"]}
        if record.event_type == "DECISION_CYCLE":
            parts = experiment.records[at + 1 : at + 1 + int(record.data["parts"])]
            text = "".join(str(one.data.get("text", "")) for one in parts)
            found.append(Cycle(record.data, text, known))
    return found


def _definition(experiment: Experiment) -> dict[str, Any]:
    opened = next((one for one in experiment.records if one.event_type == "DECISION_OPENED"), None)
    return dict(json.loads(opened.data["definition"])) if opened else {}


def experiments_chains_are_whole(facts: Facts) -> Iterator[str]:
    """The records of an experiment have no gap, its cycles follow one another, each with the trace that its record names."""
    for one in facts.experiments:
        sequences = [record.sequence for record in one.records]
        if sequences != list(range(1, len(sequences) + 1)) or one.integrity not in SOUND:
            yield f"{one.experiment_id} is {one.integrity} with the records {sequences[:20]}"
        cycles = _cycles(one)
        if [cycle.number for cycle in cycles] != list(range(1, len(cycles) + 1)):
            yield f"{one.experiment_id} has the cycles {[cycle.number for cycle in cycles]}"
        for cycle in cycles:
            if hashlib.sha256(cycle.text.encode()).hexdigest() != cycle.head["trace_hash"]:
                yield f"{one.experiment_id} cycle {cycle.number}: the trace is not the one that its record names"


def cycles_replay(facts: Facts) -> Iterator[str]:
    """Each recorded cycle, decided again, is the same bytes."""
    for one in facts.experiments:
        definition = json.dumps(_definition(one))
        for cycle in _cycles(one):
            again = replayed(definition, cycle.text)
            if not again.is_same:
                yield f"{one.experiment_id} cycle {cycle.number} replays otherwise at {again.differs_at}"


def told_decisions_are_sealed(facts: Facts) -> Iterator[str]:
    """Each decision that the owner was told of is on record as it was told; the store knows the last one, and how the agents stand."""
    for one in facts.experiments:
        sealed = {cycle.number: cycle.head for cycle in _cycles(one)}
        for told in one.told:
            head = sealed.get(told.cycle, {})
            said = {"decision_id": told.decision_id, "outcome": told.outcome, "chosen": told.chosen}
            if told.cycle and {name: head.get(name) for name in said} != said:
                yield f"{one.experiment_id} cycle {told.cycle} was told as {said}, and is not so on record"
            if told.unheard and told.unheard not in sealed:
                yield f"{one.experiment_id} cycle {told.unheard} was told to be decided, and is not on record"
        if one.cycle != max(sealed, default=0):
            yield f"{one.experiment_id}: the store is at cycle {one.cycle}, the chain at {max(sealed, default=0)}"


def agents_stand_as_they_answered(facts: Facts) -> Iterator[str]:
    """Who misses two answers in a row is asked no more until its probation: a dead agent costs that many deadlines, and no cycle."""
    for one in facts.experiments:
        limits, standings = _definition(one).get("limits", {}), dict[str, tuple[str, int]]()
        for cycle in _cycles(one):
            for agent in cycle.trace["agents"]:
                name = agent["agent"]
                before = standings.get(name, ("ACTIVE", 0))
                if agent["status_before"] != before[0] or (agent["arrival"] == "NOT_ASKED") != (before[0] == "FAILED"):
                    yield f"{one.experiment_id} cycle {cycle.number}: {name} was {before[0]}, and is told {agent['status_before']} {agent['arrival']}"
                standings[name] = _after(before, agent["arrival"] == "ANSWERED" and not agent["fault"], limits)
        stand = {name: status for name, (status, _) in standings.items()}
        if stand and stand != one.statuses:
            yield f"{one.experiment_id}: the agents stand as {stand}, the store says {one.statuses}"


def _after(before: tuple[str, int], usable: bool, limits: Mapping[str, int]) -> tuple[str, int]:
    """Return status and count after a cycle: misses in a row, or cycles waited where it has failed."""
    status, count = before
    if status == "FAILED":
        return ("PROBATION", 0) if count + 1 >= limits["probation_after"] else ("FAILED", count + 1)
    if usable:
        return "ACTIVE", 0  # one good answer ends a probation here
    misses = count + 1
    return ("FAILED", 0) if status == "PROBATION" or misses >= limits["fail_after"] else ("DEGRADED", misses)


def accepted_proposals_were_authorised(facts: Facts) -> Iterator[str]:
    """What was accepted, a registered agent sent in time, or its role's rules say; it may propose that, and is sure enough."""
    for one in facts.experiments:
        definition = _definition(one)
        for cycle in _cycles(one):
            chosen = cycle.trace["chosen"]
            for why in _unauthorised(cycle, chosen, definition) if chosen else ():
                yield f"{one.experiment_id} cycle {cycle.number} accepted {chosen['action_type']} of {chosen['agent']}: {why}"


def _unauthorised(cycle: Cycle, chosen: Mapping[str, Any], definition: Mapping[str, Any]) -> Iterator[str]:
    agent, action = cycle.known.get(chosen["agent"], {}), definition["actions"].get(chosen["action_type"], {})
    risk = max(RISKS.index(chosen["risk_level"]), RISKS.index(action.get("risk", "CRITICAL")))
    if agent.get("authority") not in PROPOSING or chosen["action_type"] not in agent.get("outputs", ()):
        yield f"it has {agent.get('authority')} and declares {agent.get('outputs')}"
    elif agent["authority"] == "VETO" and not action.get("emergency"):
        yield "a veto that stops nothing"
    if risk > RISKS.index(agent.get("risk", "LOW")):
        yield f"its risk is {RISKS[risk]}"
    if not chosen["rationale"].strip() or chosen["confidence_micros"] < (SURE if risk >= 2 else LEAST_CONFIDENCE):
        yield f"{chosen['confidence_micros']} sure, because of {chosen['rationale']!r}"
    if not _was_said(cycle, chosen, definition):
        yield f"nobody said so: {chosen['by']}"


def _was_said(cycle: Cycle, chosen: Mapping[str, Any], definition: Mapping[str, Any]) -> bool:
    """Tell whether the agent sent that, in time and of this snapshot, or the rules of its role have it."""
    trace = cycle.trace
    sent = next(one for one in trace["inputs"]["agents"] if one["descriptor"]["name"] == chosen["agent"])
    if chosen["by"] == "AGENT":
        same = any(
            (one["id"], one["action"], json.loads(one["parameters_json"])) == (
                chosen["id"], chosen["action_type"], chosen["parameters"])
            for one in sent["proposals"]
        )  # fmt: skip
        return same and sent["arrival"] == "ANSWERED" and sent["snapshot_hash"] == trace["snapshot_hash"]
    role = cycle.known[chosen["agent"]]["role"]
    ruled = any((one["role"], one["action"]) == (role, chosen["action_type"]) for one in definition["rules"])
    return ruled and next(one["spoke"] for one in trace["agents"] if one["agent"] == chosen["agent"]) == "RULES"


def accepted_proposals_are_within_the_guards(facts: Facts) -> Iterator[str]:
    """No switch while a trial runs, no mutation that shrinks too much, none so soon again, and nothing that its permit does not hold."""
    for one in facts.experiments:
        limits, last = _definition(one).get("limits", {}), dict[str, int]()
        for cycle in _cycles(one):
            trace, chosen = cycle.trace, cycle.trace["chosen"]
            if not chosen or chosen["action_type"] == CONTINUE:
                continue
            action, told = chosen["action_type"], chosen["parameters"]
            if action in STILL and json.loads(trace["inputs"]["snapshot"]).get("trial_active") is not False:
                yield f"{one.experiment_id} cycle {cycle.number}: {action} while a trial runs"
            shrunk, diverse = told.get("shrink_percent", 100), told.get("diversity", 0)
            if action == "MUTATE_SEARCH" and not (0 <= shrunk <= MOST_SHRUNK and diverse >= LEAST_DIVERSE):
                yield f"{one.experiment_id} cycle {cycle.number}: a mutation by {told}"
            if action in COOLED and cycle.number - last.get(action, -100) <= limits["cooldown_cycles"]:
                yield f"{one.experiment_id} cycle {cycle.number}: {action} again, after cycle {last[action]}"
            held = (trace.get("reserved") or {}).get("costs", {}).get("trials", 0)
            if action in PERMITS and held < told.get("trials", 0) * UNIT:
                yield f"{one.experiment_id} cycle {cycle.number}: {action} of {told} holds {held}"
            last[action] = cycle.number


def reservations_are_exact(facts: Facts) -> Iterator[str]:
    """Each permit in a trace is one of the kernel's, for this cycle alone; what no trace has was given back, whoever died."""
    for one in facts.experiments:
        if one.kernel is None:
            yield f"{one.experiment_id}: its kernel cannot be read"
            continue
        taken = {str(record.data["key"]): record for record in _permitted(one.kernel.records)}
        states = _states(one)
        reserved = {cycle.number: told for cycle in _cycles(one) if (told := cycle.trace.get("reserved"))}
        for key, times in Counter(str(told["key"]) for told in reserved.values()).items():
            if times > 1:
                yield f"{one.experiment_id}: {key} is the permit of {times} cycles"
        for number, told in reserved.items():
            record = taken.get(told["key"])
            if record is None or record.sequence != int(told["sequence"]):
                yield f"{one.experiment_id} cycle {number} rests on {told['key']}, which the kernel did not permit so"
        for key in sorted(taken.keys() - {str(told["key"]) for told in reserved.values()}):
            if states[key].get("state") != "R":
                yield f"{one.experiment_id}: {key} ({taken[key].data['action']}) is of no cycle, and was not given back"
        wanted = {cycle.number for cycle in _cycles(one) if cycle.head["outcome"] in PERMITS}
        if wanted != reserved.keys():
            yield f"{one.experiment_id}: the cycles {sorted(wanted ^ reserved.keys())} reserved nothing, or what nobody wanted"


def _permitted(records: Sequence[Record]) -> list[Record]:
    return [one for one in records if one.event_type == "KERNEL_PERMITTED"]


def _states(experiment: Experiment) -> dict[str, Mapping[str, Any]]:
    """Return what the kernel's records leave of each step, by its key."""
    ledger = Ledger()
    for record in experiment.kernel.records if experiment.kernel else ():
        ledger.apply(record)
    return {name[2:]: json.loads(value) for name, value in ledger.fields.items() if name.startswith("x:")}


def reservations_are_settled(facts: Facts) -> Iterator[str]:
    """What each cycle reserved costs what the owner said that it cost; all of it together is what the kernel has spent."""
    for one in facts.experiments:
        states, spent = _states(one), 0
        for cycle in _cycles(one):
            told = cycle.trace.get("reserved")
            if not told:
                continue
            state = states.get(told["key"], {})
            held = {name: int(micros) for name, micros in state.get("costs") or ()}.get("trials", 0)
            cost = one.done.get(cycle.number)
            spent += max(0, cost or 0)
            if cost is None:
                yield f"{one.experiment_id} cycle {cycle.number} reserved, and its owner never heard of it"
            elif (state.get("state"), held) != (("C", cost) if cost >= 0 else ("R", held)):
                yield f"{one.experiment_id} cycle {cycle.number} cost {cost}; its permit is {state.get('state')} at {held}"
        [trials] = one.kernel.shown["resources"] if one.kernel else [{"gross_micros": 0}]
        left = int(trials["gross_micros"]) - int(trials.get("refunded_micros", 0))
        if left != spent:
            yield f"{one.experiment_id}: the kernel has spent {left}; what was done cost {spent}"


def experiments_go_on(facts: Facts) -> Iterator[str]:
    """Nothing was ever raised into an experiment, nor did it wait for good; without a decision it was told to continue, and why."""
    for one in facts.experiments:
        for told in one.told:
            if told.raised or told.ended - told.started > CYCLE_LIMIT_S:
                yield f"{one.experiment_id}: asked at {told.started:.1f}, {told.raised or 'nothing'} after {told.ended - told.started:.1f} s"
            if not told.cycle and (not told.fault or told.outcome != CONTINUE):
                yield f"{one.experiment_id}: no decision, {told.outcome} and {told.fault or 'no reason'}"
        yield from (f"{one.experiment_id}: an agent ended by itself: {why}" for why in one.ended)
        yield from (f"{one.experiment_id}: not settled: {why}" for why in one.refused)
        if one.owed:
            yield f"{one.experiment_id}: nobody could settle the cycles {list(one.owed)}"


RULES = (
    experiments_chains_are_whole, cycles_replay, told_decisions_are_sealed, agents_stand_as_they_answered,
    accepted_proposals_were_authorised, accepted_proposals_are_within_the_guards, reservations_are_exact,
    reservations_are_settled, experiments_go_on,
)  # fmt: skip
