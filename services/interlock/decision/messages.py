"""Between the messages of decision.v1 and what the engine reads: numbers as texts, so that a trace has what came, NaN included."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from interlock.api.decision.v1 import decision_pb2
from interlock.decision.experiments import SealedTrace
from interlock.domain.decision.reading import UNIT, canonical


def raw_signal(one: decision_pb2.Signal) -> dict[str, Any]:
    """Return a signal as it came."""
    return {
        "type": one.type, "source": one.source, "at": repr(one.timestamp), "confidence": repr(one.confidence),
        "payload_json": one.payload_json,
    }  # fmt: skip


def raw_proposal(one: decision_pb2.Proposal) -> dict[str, Any]:
    """Return a proposal as it came."""
    return {
        "id": one.id, "agent": one.agent, "action": one.action_type, "target": one.target,
        "parameters_json": one.parameters_json or "{}", "expected_effect": one.expected_effect, "risk": one.risk_level,
        "confidence": repr(one.confidence), "rationale": one.rationale, "signals_used": list(one.signals_used),
        **({"window_id": one.window_id, "model_risk": one.model_risk} if one.window_id or one.model_risk else {}),
    }  # fmt: skip


def signal_message(one: Mapping[str, Any], payload_json: str = "") -> decision_pb2.Signal:
    """Return an admitted signal for an agent; *payload_json* where its payload is at hand as canonical JSON."""
    return decision_pb2.Signal(
        id=one["id"], type=one["type"], source=one["source"], timestamp=one["at_us"] / UNIT,
        confidence=one["confidence"] / UNIT, payload_json=payload_json or canonical(one["payload"]),
    )  # fmt: skip


def descriptor_message(told: Mapping[str, Any]) -> decision_pb2.AgentDescriptor:
    """Return a descriptor."""
    return decision_pb2.AgentDescriptor(**told)


def raw_descriptor(one: decision_pb2.AgentDescriptor) -> dict[str, Any]:
    """Return a descriptor as it came."""
    return {
        "name": one.name, "role": one.role, "inputs": list(one.inputs), "outputs": list(one.outputs),
        "authority": one.authority, "risk": one.risk, "version": one.version,
    }  # fmt: skip


def decision_message(found: SealedTrace) -> decision_pb2.Decision:
    """Return what a trace decided."""
    trace = json.loads(found.text)
    chosen = trace["chosen"]
    return decision_pb2.Decision(
        cycle=trace["cycle"], decision_id=trace["decision_id"], outcome=trace["outcome"], chosen=found.cycle.chosen,
        target=chosen["target"] if chosen else "", final_parameters_json=canonical(trace["final_parameters"]),
        rejected=(decision_pb2.Rejection(**one) for one in trace["rejected"]),
        guardrail_checks=trace["guardrail_checks"], agents=_accounts(trace["agents"]),
        trace_hash=found.cycle.trace_hash, replayed=found.replayed,
    )  # fmt: skip


def _accounts(agents: Iterable[Mapping[str, Any]]) -> list[decision_pb2.AgentAccount]:
    names = ("agent", "arrival", "fault", "spoke", "status_before", "status_after")
    return [decision_pb2.AgentAccount(**{name: one[name] for name in names}) for one in agents]
