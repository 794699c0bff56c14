"""A good experiment of four cycles, made by the engine itself, and that experiment bent so that each rule must say so."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from interlock.domain.decision import experiment as chain
from interlock.domain.decision.agents import AgentDescriptor, AgentStanding
from interlock.domain.decision.definition import defined
from interlock.domain.decision.engine import decide, snapshot_hash
from interlock.domain.decision.experiment import DecisionRecord, ExperimentState
from tests.faults.advisers import DESCRIPTORS
from tests.faults.experiments import definition
from tests.faults.facts import Experiment, Facts, Kernel, Record, ToldCycle
from tests.support.decisions import NOW_US, proposal, signal

RULES = defined(json.dumps(definition("team")))
STILL = json.dumps({"trial_active": False, "budget": {"limit": 100, "used": 10}})
UNIT = 1_000_000
AGENTS = {one.name: one for one in DESCRIPTORS if one.name in {"analyst", "protocol", "strategy"}}
SILENT = {"arrival": "ABSENT", "snapshot_hash": "", "signals": [], "proposals": []}
PERMIT = {
    "key": "dec_1",
    "approved": True,
    "reason": "",
    "sequence": 2,
    "costs": {"trials": 4 * UNIT},
    "asked": "answered",
}
FIGURES = {"name": "team", "child": "", "fault": "", "remaining": {"trials": 60 * UNIT}, "stopped": False, "sequence": 1,
           "costs": {"extend": {"trials": 4 * UNIT}, "mutate": {"trials": UNIT}}}  # fmt: skip
EXTENDS = proposal("strategy", "EXTEND_TRIALS", parameters={"trials": 3}, risk="MEDIUM")


def _answer(agent: AgentDescriptor, standing: AgentStanding, snapshot: str, sent: Mapping[str, Any]) -> dict[str, Any]:
    given = {"arrival": "ANSWERED", "snapshot_hash": snapshot_hash(snapshot), "signals": [], "proposals": [], **sent}
    if not standing.is_asked:
        given |= {**SILENT, "arrival": "NOT_ASKED"}
    return {"descriptor": agent.told(), "standing": standing.told(), "faults": {}, **given}


def _cycle(
    state: ExperimentState, answers: Mapping[str, Mapping[str, Any]], snapshot: str = STILL, **more: Any
) -> tuple[ExperimentState, list[DecisionRecord]]:
    """Return the experiment after one more cycle, and its records."""
    at_us = NOW_US + state.cycle * UNIT
    inputs = {
        "experiment": "crp_sess_" + "e" * 32, "cycle": state.cycle + 1, "at_us": at_us, "snapshot": snapshot, "given": [],
        "carried": list(state.carried), "memory": dict(state.memory), "kernel": FIGURES,
        "agents": [_answer(one, state.standing(name), snapshot, answers.get(name, {})) for name, one in AGENTS.items()],
        **more,
    }  # fmt: skip
    return chain.concluded(state, decide(RULES, inputs), at_us)


def _told() -> tuple[ExperimentState, list[DecisionRecord]]:
    state, records = chain.opened("search", RULES.text, NOW_US)
    for agent in AGENTS.values():
        state, more = chain.registered(state, agent, NOW_US)
        records += more
    plateau = {"signals": [signal()]}
    for answers, given in (
        ({"strategy": {"proposals": [EXTENDS]}}, {"permits": {"extend": PERMIT}}),
        ({"analyst": plateau, "protocol": SILENT}, {}),
        ({"protocol": SILENT}, {}),
        ({}, {}),
    ):
        state, more = _cycle(state, answers, **given)
        records += more
    return state, records


STATE, MADE = _told()
RECORDS = tuple(Record(one.sequence, one.type, json.loads(one.data)) for one in MADE)
HEADS = [one.data for one in RECORDS if one.event_type == "DECISION_CYCLE"]
STATUSES = {name: str(STATE.standing(name).status) for name in AGENTS}


def step(state: str, cost: int) -> str:
    """A step of the kernel as its record has it."""
    return json.dumps({"state": state, "costs": [["trials", str(cost)]]})


def kernel_records(state: str = "C", cost: int = 3 * UNIT, **more: str) -> tuple[Record, ...]:
    """The records of the kernel: opened, permitted, settled."""
    changes: list[tuple[str, str, dict[str, str]]] = [
        ("KERNEL_OPENED", "", {}), ("KERNEL_PERMITTED", "dec_1", {"x:dec_1": step("P", 4 * UNIT)}),
        ("KERNEL_CONFIRMED", "dec_1:done", {"x:dec_1": step(state, cost)}),
        *(("KERNEL_PERMITTED", key, {f"x:{key}": text}) for key, text in more.items()),
    ]  # fmt: skip
    return tuple(
        Record(number, kind, {"key": key, "action": "extend", "changes": told, "dropped": []})
        for number, (kind, key, told) in enumerate(changes, 1)
    )


def kernel(records: Sequence[Record] = kernel_records(), spent: int = 3 * UNIT) -> Kernel:
    """The kernel that the experiment reserves in."""
    shown = {"resources": [{"gross_micros": str(4 * UNIT), "refunded_micros": str(4 * UNIT - spent)}]}
    return Kernel("k", tuple(records), "VALID", shown, (), frozenset(), ())


TOLD = tuple(
    ToldCycle(float(head["cycle"]), float(head["cycle"]) + 0.3, "", "", int(head["cycle"]), head["decision_id"], head["outcome"], head["chosen"])
    for head in HEADS
)  # fmt: skip
MISSED = ToldCycle(9.0, 9.1, "", "DECISION_UNAVAILABLE", 0, "", "CONTINUE", "")
GOOD = Experiment("e", RECORDS, "VALID", (*TOLD, MISSED), {1: 3 * UNIT}, (), (), (), kernel(), 4, STATUSES)


def run_of(**changed: Any) -> Facts:
    """A run with that experiment, changed."""
    return Facts(experiments=(replace(GOOD, **changed),))


def retold(cycle: int, change: Any) -> Facts:
    """The experiment with another trace in one of its cycles, sealed as it is."""
    records, place = list(RECORDS), RECORDS.index(next(one for one in RECORDS if one.data.get("cycle") == str(cycle)))
    trace = json.loads(records[place + 1].data["text"])
    change(trace)
    text = json.dumps(trace)
    records[place] = replace(
        records[place], data={**records[place].data, "trace_hash": hashlib.sha256(text.encode()).hexdigest()}
    )
    records[place + 1] = replace(records[place + 1], data={**records[place + 1].data, "text": text})
    return run_of(records=tuple(records))


def _chosen(**more: Any) -> Any:
    return lambda trace: trace["chosen"].update(more)


def _asked_again(trace: dict[str, Any]) -> None:
    next(one for one in trace["agents"] if one["agent"] == "protocol")["arrival"] = "ABSENT"


def _while_a_trial_runs(trace: dict[str, Any]) -> None:
    trace["inputs"]["snapshot"] = STILL.replace("false", "true")


def _too_soon(trace: dict[str, Any]) -> None:
    trace["chosen"] = {**json.loads(json.dumps(SWITCHED)), "by": "RULES"}


SWITCHED = json.loads(RECORDS[[one.data.get("cycle") for one in RECORDS].index("2") + 1].data["text"])["chosen"]
WITHOUT = tuple(one for one in RECORDS if one.data.get("cycle") != "3")

HEADED = RECORDS.index(next(one for one in RECORDS if one.event_type == "DECISION_CYCLE"))
MISNAMED = (*RECORDS[:HEADED], replace(RECORDS[HEADED], data={**HEADS[0], "trace_hash": "0"}), *RECORDS[HEADED + 1 :])

WORDS: tuple[tuple[str, str, Facts], ...] = (
    ("a cycle that is missing", "has the cycles [1, 2, 4]", run_of(records=WITHOUT)),
    ("an experiment's chain that is broken", "is BROKEN", run_of(integrity="BROKEN")),
    ("a trace that is not the one of its record", "not the one that its record names", run_of(records=MISNAMED)),
    ("a cycle that replays otherwise", "cycle 4 replays otherwise at outcome", retold(4, lambda one: one.update(outcome="X"))),
    ("a decision that was told and is not sealed", "cycle 5 was told as", run_of(told=(*TOLD, replace(TOLD[3], cycle=5)))),
    ("a decision that was told otherwise", "cycle 1 was told as", run_of(told=(replace(TOLD[0], outcome="X"), *TOLD[1:]))),
    ("a lost decision that was never made", "cycle 7 was told to be decided", run_of(told=(*TOLD, replace(MISSED, unheard=7)))),
    ("a store that is behind the chain", "the store is at cycle 3", run_of(cycle=3)),
    ("an agent that stands otherwise", "the agents stand as", run_of(statuses={**STATUSES, "protocol": "ACTIVE"})),
    ("an agent that failed and is asked", "protocol was FAILED", retold(4, _asked_again)),
    ("an action that its agent may not propose", "it has SUGGEST", retold(1, _chosen(agent="analyst"))),
    ("an action of too high a risk", "its risk is CRITICAL", retold(1, _chosen(risk_level="CRITICAL"))),
    ("an action without a reason", "because of ' '", retold(1, _chosen(rationale=" "))),
    ("an action that is not sure enough", "200000 sure", retold(1, _chosen(confidence_micros=200_000))),
    ("an action that nobody proposed", "nobody said so: AGENT", retold(1, _chosen(parameters={"trials": 2}))),
    ("a rule that nobody has", "nobody said so: RULES", retold(2, _chosen(action_type="MUTATE_SEARCH"))),
    ("a switch while a trial runs", "SWITCH_HPO while a trial runs", retold(2, _while_a_trial_runs)),
    ("a mutation that shrinks too much", "a mutation by", retold(2, _chosen(action_type="MUTATE_SEARCH"))),
    ("a switch right after another", "SWITCH_HPO again, after cycle 2", retold(3, _too_soon)),
    ("an action that its permit does not hold", "holds 4000000", retold(1, _chosen(parameters={"trials": 5}))),
    ("a permit that the kernel does not know", "which the kernel did not permit so", run_of(kernel=kernel(kernel_records()[:1]))),
    ("a permit of no cycle that was never given back", "dec_2 (extend) is of no cycle",
     run_of(kernel=kernel(kernel_records(dec_2=step("P", 4 * UNIT))))),
    ("a permit of two cycles", "dec_1 is the permit of 2 cycles", retold(3, lambda one: one.update(reserved=PERMIT))),
    ("an action that reserved nothing", "the cycles [1] reserved nothing", retold(1, lambda one: one.update(reserved=None))),
    ("a kernel that cannot be read", "its kernel cannot be read", run_of(kernel=None)),
    ("a settlement of another cost", "cost 2000000; its permit is C at 3000000", run_of(done={1: 2 * UNIT})),
    ("a reservation that its owner never heard of", "its owner never heard of it", run_of(done={})),
    ("a kernel that spent more", "the kernel has spent 4000000", run_of(kernel=kernel(spent=4 * UNIT))),
    ("an exception in an experiment", "ValueError after", run_of(told=(replace(TOLD[0], raised="ValueError"), *TOLD[1:]))),
    ("an experiment that waits", "nothing after 89", run_of(told=(*TOLD[:3], replace(TOLD[3], ended=900.0)))),
    ("no decision, and no reason", "CONTINUE and no reason", run_of(told=(*TOLD, replace(MISSED, fault="")))),
    ("an agent that ended by itself", "ended by itself: protocol", run_of(ended=("protocol: ValueError",))),
    ("a settlement that was refused", "not settled: cycle 1", run_of(refused=("cycle 1: DECISION_SETTLEMENT_REFUSED",))),
    ("a settlement that never came through", "nobody could settle the cycles [1]", run_of(owed=(1,))),
)  # fmt: skip
"""What was bent, what the verifier says of it, and the run."""

BENT = tuple(("I21", what, facts) for what, _, facts in WORDS)
