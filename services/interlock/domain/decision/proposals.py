"""Proposals as agents send them, read; and whether they may be made and are explained (SEED-5 §3, §6, §9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.domain.decision.agents import AgentDescriptor
from interlock.domain.decision.definition import ExperimentRules
from interlock.domain.decision.reading import canonical, confidence, digest, is_line, is_name, json_object
from interlock.domain.decision.words import ActionRisk, AgentAuthority, Speaker

RELEASED = "COMPLETED"
RISKY = frozenset({"HIGH", "CRITICAL"})
"""Risks of a model's answer, its rationale included, that a person should know of."""
LARGEST_PARAMETERS, MOST_SIGNALS_NAMED = 4_096, 64
_TEXTS = ("target", "expected_effect", "rationale")


@dataclass(frozen=True)
class ProposedAction:
    """A well-formed proposal. *confidence* is in millionths."""

    id: str
    agent: str
    by: Speaker
    action: str
    target: str
    parameters: Mapping[str, Any]
    expected_effect: str
    risk: ActionRisk
    confidence: int
    rationale: str
    signals_used: tuple[str, ...]
    model: Mapping[str, str] | None = None
    """The window of the model that made it, and what the audit log has of it; ``None`` where no model was asked."""

    @property
    def place(self) -> str:
        """Its name within the cycle: two agents may use one id."""
        return f"{self.agent}/{self.id}"

    def told(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "id": self.id, "agent": self.agent, "by": str(self.by), "action_type": self.action, "target": self.target,
            "parameters": dict(self.parameters), "expected_effect": self.expected_effect,
            "risk_level": self.risk.name, "confidence_micros": self.confidence, "rationale": self.rationale,
            "signals_used": list(self.signals_used), **({"model": dict(self.model)} if self.model is not None else {}),
        }  # fmt: skip


@dataclass(frozen=True)
class Refusal:
    """A proposal that was not accepted: at which stage, and by which name."""

    agent: str
    proposal_id: str
    reason: str
    outcome: str

    def told(self) -> dict[str, str]:
        """Return it as JSON."""
        return {
            "agent": self.agent, "proposal_id": self.proposal_id, "reason": self.reason, "outcome": self.outcome,
        }  # fmt: skip


def read(raw: Sequence[Any], agent: str, by: Speaker) -> tuple[list[ProposedAction], list[Refusal]]:
    """Return the well-formed proposals of one agent in an order of their own, and the others by the name of their fault."""
    ids = [_id(one, agent) for one in raw]
    often = Counter(ids)
    found: list[ProposedAction] = []
    refused: list[Refusal] = []
    for one, proposal_id in zip(raw, ids, strict=True):
        parameters = json_object(one.get("parameters_json"), LARGEST_PARAMETERS) if isinstance(one, Mapping) else None
        fault = _fault(one, agent, parameters) or ("PROPOSAL_ID_DUPLICATE" if often[proposal_id] > 1 else "")
        if fault:
            refused.append(Refusal(agent, proposal_id, fault, "INTAKE"))
        else:
            found.append(_read(one, proposal_id, agent, by, parameters or {}))
    return sorted(found, key=lambda one: one.id), sorted(refused, key=lambda one: (one.proposal_id, one.reason))


def _id(raw: Any, agent: str) -> str:
    """Return the id that a proposal names; one made of its content where it names none that could be."""
    told = raw.get("id") if isinstance(raw, Mapping) else None
    return told if is_name(told) and isinstance(told, str) else "prop_" + digest([agent, _writable(raw)])[:24]


def _writable(raw: Any) -> Any:
    try:
        canonical(raw)
    except (TypeError, ValueError, RecursionError):
        return "unwritable"
    return raw


def _fault(raw: Any, agent: str, parameters: Mapping[str, Any] | None) -> str:
    if not isinstance(raw, Mapping):
        return "PROPOSAL_MALFORMED"
    told, named = raw.get("id", ""), raw.get("signals_used", [])
    lists = isinstance(named, list) and len(named) <= MOST_SIGNALS_NAMED and all(is_line(one, 128) for one in named)
    if "window_id" in raw and not is_name(raw["window_id"]):
        return "PROPOSAL_WINDOW_INVALID"
    texts = is_name(raw.get("action")) and all(is_line(raw.get(name)) for name in _TEXTS)
    checks = (
        ("PROPOSAL_ID_INVALID", told in ("", None) or is_name(told)),
        ("PROPOSAL_AGENT_FOREIGN", raw.get("agent") == agent),
        ("PROPOSAL_MALFORMED", lists and texts),
        ("PROPOSAL_RISK_INVALID", isinstance(raw.get("risk"), str) and raw["risk"] in ActionRisk.__members__),
        ("PROPOSAL_CONFIDENCE_INVALID", confidence(raw.get("confidence")) is not None),
        ("PROPOSAL_PARAMETERS_INVALID", parameters is not None),
    )
    return next((name for name, holds in checks if not holds), "")


def _read(
    raw: Mapping[str, Any], proposal_id: str, agent: str, by: Speaker, parameters: Mapping[str, Any]
) -> ProposedAction:
    return ProposedAction(
        id=proposal_id, agent=agent, by=by, action=raw["action"], target=raw["target"],
        parameters=parameters, expected_effect=raw["expected_effect"], risk=ActionRisk[raw["risk"]],
        confidence=confidence(raw["confidence"]) or 0, rationale=raw["rationale"],
        signals_used=tuple(raw.get("signals_used", [])), model=_model(raw),
    )  # fmt: skip


def _model(raw: Mapping[str, Any]) -> Mapping[str, str] | None:
    if "window_id" not in raw:
        return None
    found = raw.get("window", {})
    return {
        "window_id": raw["window_id"], "told_risk": str(raw.get("model_risk", ""))[:16],
        **{name: str(found.get(name, "")) for name in ("session_id", "status", "risk")},
    }  # fmt: skip


def effective_risk(one: ProposedAction, rules: ExperimentRules) -> ActionRisk:
    """Return the risk that counts: what the proposal says, and never less than its action has."""
    return max(one.risk, rules.actions[one.action].risk)


def authority_fault(one: ProposedAction, agent: AgentDescriptor, rules: ExperimentRules) -> str:
    """Return why an agent may not propose this; empty where it may (SEED-5 §3)."""
    if not agent.authority.proposes:
        return "AUTHORITY_INSUFFICIENT"
    if one.action not in rules.actions:
        return "ACTION_UNKNOWN"
    if one.action not in agent.outputs:
        return "ACTION_UNDECLARED"
    if agent.authority is AgentAuthority.VETO and not rules.actions[one.action].emergency:
        return "VETO_NOT_EMERGENCY"
    return "RISK_ABOVE_DESCRIPTOR" if effective_risk(one, rules) > agent.risk else ""


def explanation_fault(one: ProposedAction, rules: ExperimentRules) -> str:
    """Return what a proposal must say and does not; empty where it does (SEED-5 §9)."""
    if not one.rationale.strip():
        return "RATIONALE_EMPTY"
    if one.model is not None and (fault := _model_fault(one.model)):
        return fault
    below = one.confidence < rules.confidence("min_confidence") or not one.confidence
    return "CONFIDENCE_BELOW_MINIMUM" if below else ""


def _model_fault(model: Mapping[str, str]) -> str:
    """Return why a proposal does not rest on the governed call that it names (SEED-5 §11)."""
    if not model["status"]:
        return "MODEL_WINDOW_UNKNOWN"
    if model["status"] != RELEASED:
        return "MODEL_WINDOW_NOT_RELEASED"
    return "MODEL_RISK_FALSE" if model["told_risk"] != model["risk"] else ""


def warnings(one: ProposedAction, seen: Collection[str]) -> list[str]:
    """Return what a proposal should say and does not. *seen*: ids of the signals that its agent was given."""
    found = [] if one.signals_used else ["SIGNALS_UNNAMED"]
    if set(one.signals_used) - set(seen):
        found.append("SIGNALS_UNSEEN")
    if one.model is not None and one.model["risk"] in RISKY:
        found = [*found, "MODEL_RISK_HIGH"]
    return found if one.expected_effect.strip() else [*found, "EFFECT_UNNAMED"]
