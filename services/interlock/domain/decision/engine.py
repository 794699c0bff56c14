"""The engine: the sole arbiter. Collect, authority, explainability, guards, conflicts, score, accept or reject, trace (SEED-5 §7).

Equal inputs give equal bytes, in whatever order they came. It knows no clock: the time of the cycle is one of its inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlock.domain.decision import intake, proposals
from interlock.domain.decision.definition import ExperimentRules
from interlock.domain.decision.guards import GuardCheck, GuardView, guarded, remembered
from interlock.domain.decision.intake import RefusedSignal, TakenAnswer, read_answer, read_signals
from interlock.domain.decision.proposals import ProposedAction, Refusal, read
from interlock.domain.decision.reading import UNIT, digest, json_object
from interlock.domain.decision.signals import Signal
from interlock.domain.decision.words import AgentAuthority, Arrival, Speaker

ENGINE = "1"
LARGEST_SNAPSHOT = 16_384

Inputs = Mapping[str, Any]


def snapshot_hash(text: str) -> str:
    """Return the hash by which an answer names the snapshot that it was made from."""
    return digest(text)


def heard(rules: ExperimentRules, inputs: Inputs) -> list[Signal]:
    """Return the signals that proposing agents may see: carried over, given, and of those that only observe or suggest."""
    return _Cycle(rules, inputs).heard


def decide(rules: ExperimentRules, inputs: Inputs) -> dict[str, Any]:
    """Return the trace of a cycle. What agents sent may be anything: each part ends accepted, or rejected by a name."""
    return _Cycle(rules, intake.normal(inputs)).trace()


def emitted(rules: ExperimentRules, inputs: Inputs) -> list[Signal]:
    """Return the admitted signals that came with a cycle: of the execution layer, and of agents whose answers count."""
    cycle = _Cycle(rules, intake.normal(inputs))
    return intake.by_age([*cycle.given, *(one for answer in cycle.answers for one in answer.signals)])


def permit_wanted(rules: ExperimentRules, trace: Mapping[str, Any]) -> str:
    """Return the kernel's action that must be permitted before this decision stands; empty where nothing has to be."""
    permit = rules.actions[trace["chosen"]["action_type"]].permit if trace["chosen"] else ""
    return "" if permit in trace["inputs"].get("permits", {}) else permit


class _Cycle:
    def __init__(self, rules: ExperimentRules, inputs: Inputs) -> None:
        self.rules, self.inputs = rules.having(inputs.get("types", {})), inputs
        rules = self.rules
        self.hash = snapshot_hash(inputs["snapshot"])
        self.snapshot = json_object(inputs["snapshot"], LARGEST_SNAPSHOT) or {}
        now = inputs["at_us"]
        self.answers = [read_answer(one, rules, snapshot_hash=self.hash, now_us=now) for one in inputs["agents"]]
        # Of two answers under one name the first one tells who that is.
        self.agents = {one.agent.name: one.agent for one in reversed(self.answers)}
        names = self.agents.keys()
        kept, self.left_out = read_signals(inputs["given"], rules, source="", types=[*rules.signals], now_us=now)
        self.given = [one for one in kept if one["source"] not in names]
        foreign = [one for one in kept if one["source"] in names]
        self.left_out += [RefusedSignal(one["source"], one["type"], "SIGNAL_SOURCE_FOREIGN") for one in foreign]
        first = [one for answer in self.answers if not answer.agent.authority.proposes for one in answer.signals]
        self.heard = intake.by_age(self._with_bus([*inputs["carried"], *self.given, *first]))
        self.refused: list[Refusal] = [one for answer in self.answers for one in answer.refused]
        self.checks: list[GuardCheck] = []
        self.warnings: list[dict[str, Any]] = []

    def _with_bus(self, signals: list[Signal]) -> list[Signal]:
        """Return signals with those that the bus had since the last cycle: each once, and none that is too old by now."""
        known = {one["id"] for one in signals}
        oldest = self.inputs["at_us"] - self.rules.whole("max_signal_age_s") * UNIT
        found = [one for one in self.inputs.get("bus", {}).get("signals", ()) if one["id"] not in known]
        past = [one for one in found if one["at_us"] < oldest]
        self.left_out += [RefusedSignal(one["source"], one["type"], "SIGNAL_CLOCK_PAST") for one in past]
        return [*signals, *(one for one in found if one["at_us"] >= oldest)]

    def trace(self) -> dict[str, Any]:
        """Run the pipeline."""
        considered = [one for answer in self.answers for one in self._spoken(answer)]
        left = self._by_authority(considered)
        left = self._by_explanation(left)
        left = self._by_guards(left)
        chosen = self._by_conflict(left)
        inputs = self.inputs
        return {
            "engine": ENGINE,
            # Permits are asked for this decision, so they cannot be a part of its name.
            "decision_id": "dec_" + digest({name: one for name, one in inputs.items() if name != "permits"})[:32],
            "experiment": inputs["experiment"], "cycle": inputs["cycle"], "timestamp": inputs["at_us"] / UNIT,
            "rules_hash": self.rules.hash, "snapshot_hash": self.hash,
            "proposals_considered": [one.told() for one in considered],
            "scores": {one.place: self._score(one) for one in left},
            "chosen": chosen.told() if chosen else None,
            "outcome": chosen.action if chosen else "CONTINUE",
            "final_parameters": dict(chosen.parameters) if chosen else {},
            "rejected": [one.told() for one in self.refused],
            "guardrail_checks": [one.line for one in self.checks],
            "warnings": self.warnings,
            "signals": [one["id"] for one in self.heard],
            "signals_rejected": [one.told() for one in self._left_out()],
            "agents": [self._account(told, one) for told, one in zip(inputs["agents"], self.answers, strict=True)],
            "after": self._after(chosen),
            "inputs": inputs,
            **self._told_later(chosen),
        }  # fmt: skip

    def _told_later(self, chosen: ProposedAction | None) -> dict[str, Any]:
        """Return what only an experiment with a bus or a kernel tells: traces of others stay the bytes that they were."""
        found: dict[str, Any] = {}
        if "bus" in self.inputs:
            found["bus"] = {name: one for name, one in self.inputs["bus"].items() if name != "signals"}
        if "kernel" in self.inputs:
            permit = self.rules.actions[chosen.action].permit if chosen else ""
            found["reserved"] = self.inputs.get("permits", {}).get(permit)
        return found

    def _spoken(self, answer: TakenAnswer) -> Sequence[ProposedAction]:
        """Return the proposals of an agent, or those of its role's rules where it did not answer as it must."""
        if answer.speaker is Speaker.AGENT:
            return answer.proposals
        seen = [one for one in self.heard if answer.agent.hears(one["type"])]
        raw: list[Mapping[str, Any]] = []
        for number, rule in enumerate(self.rules.rules):
            causes = [one for one in seen if one["type"] == rule.signal and one["confidence"] >= rule.least_confidence]
            if rule.role == answer.agent.role and causes:
                used = [one["id"] for one in causes[: proposals.MOST_SIGNALS_NAMED]]
                raw.append({**rule.proposal, "id": f"rule_{number}", "agent": answer.agent.name, "signals_used": used})
        return read(raw, answer.agent.name, Speaker.RULES)[0]

    def _by_authority(self, found: Sequence[ProposedAction]) -> list[ProposedAction]:
        faults = [(one, proposals.authority_fault(one, self.agents[one.agent], self.rules)) for one in found]
        return self._passed(faults, "AUTHORITY")

    def _by_explanation(self, found: Sequence[ProposedAction]) -> list[ProposedAction]:
        seen: dict[str, set[str]] = {}
        for one in found:
            if one.agent not in seen:
                hears = self.agents[one.agent].hears
                seen[one.agent] = {signal["id"] for signal in self.heard if hears(signal["type"])}
            if told := proposals.warnings(one, seen[one.agent]):
                self.warnings.append({"agent": one.agent, "proposal_id": one.id, "warnings": told})
        return self._passed([(one, proposals.explanation_fault(one, self.rules)) for one in found], "EXPLAINABILITY")

    def _by_guards(self, found: Sequence[ProposedAction]) -> list[ProposedAction]:
        view = GuardView(self.rules, self.inputs["cycle"], self.snapshot, self.inputs["memory"], **self._kernel())
        faults = []
        for one in found:
            checks = guarded(one, view)
            self.checks += checks
            faults.append((one, next((check.fault for check in checks if check.fault), "")))
        return self._passed(faults, "GUARD")

    def _kernel(self) -> dict[str, Any]:
        return {name: self.inputs[name] for name in ("kernel", "permits") if name in self.inputs}

    def _by_conflict(self, found: Sequence[ProposedAction]) -> ProposedAction | None:
        """Return the one that is accepted: a veto first, then the highest score, then the rule for ties."""
        if not found:
            return None
        chosen = min(found, key=self._rank)
        reason = "VETOED" if self._authority(chosen) is AgentAuthority.VETO else "OUTSCORED"
        self.refused += [Refusal(one.agent, one.id, reason, "CONFLICT") for one in found if one is not chosen]
        return chosen

    def _rank(self, one: ProposedAction) -> tuple[bool, int, int, int, str, str]:
        """Return the order of conflicts. Ties go to the surer, the less risky, and then by agent and id."""
        veto = self._authority(one) is AgentAuthority.VETO
        risk = proposals.effective_risk(one, self.rules)
        return (not veto, -self._score(one), -one.confidence, int(risk), one.agent, one.id)

    def _score(self, one: ProposedAction) -> int:
        """Return priority of the role × confidence, in millionths."""
        return self.rules.roles[self.agents[one.agent].role] * one.confidence

    def _authority(self, one: ProposedAction) -> AgentAuthority:
        return self.agents[one.agent].authority

    def _passed(self, faults: Sequence[tuple[ProposedAction, str]], stage: str) -> list[ProposedAction]:
        self.refused += [Refusal(one.agent, one.id, fault, stage) for one, fault in faults if fault]
        return [one for one, fault in faults if not fault]

    def _left_out(self) -> list[RefusedSignal]:
        return [*self.left_out, *(one for answer in self.answers for one in answer.refused_signals)]

    def _account(self, told: Mapping[str, Any], answer: TakenAnswer) -> dict[str, Any]:
        after = self._standing_after(answer)
        return {
            "agent": answer.agent.name, "arrival": str(answer.arrival), "fault": answer.fault, "spoke": str(answer.speaker),
            "status_before": str(answer.standing.status), "status_after": after["status"],
            "faults": dict(told["faults"]), "too_large": list(told.get("too_large", [])),
        }  # fmt: skip

    def _standing_after(self, answer: TakenAnswer) -> dict[str, Any]:
        usable = answer.arrival is Arrival.ANSWERED and not answer.fault
        return answer.standing.after(answer.arrival, usable=usable, rules=self.rules).told()

    def _after(self, chosen: ProposedAction | None) -> dict[str, Any]:
        """Return what the next cycle begins with."""
        later = [one for answer in self.answers if answer.agent.authority.proposes for one in answer.signals]
        carried = intake.by_age(later)
        memory: Mapping[str, Any] = self.inputs["memory"]
        if chosen and not self.rules.actions[chosen.action].neutral:
            memory = remembered(memory, chosen.action, self.inputs["cycle"])
        bus = self.inputs.get("bus")
        return {
            **({"bus": {"epoch": bus["epoch"], "number": bus["to"]}} if bus else {}),
            "standings": {one.agent.name: self._standing_after(one) for one in self.answers},
            "memory": {name: list(cycles) for name, cycles in memory.items()},
            "carried": carried[-intake.MOST_CARRIED :],
            "carried_dropped": max(0, len(carried) - intake.MOST_CARRIED),
        }  # fmt: skip
