"""Requests about kernels: checked field by field and turned into the rule's values."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from interlock.api.kernel.v1 import kernel_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain import approval
from interlock.domain.errors import invalid
from interlock.domain.kernel import stuck, values
from interlock.domain.kernel.definition import (
    Condition,
    Definition,
    RegisteredAction,
    checked_action,
    checked_amount,
    checked_key,
    checked_name,
)
from interlock.domain.kernel.emergency import is_evidence
from interlock.domain.kernel.state import Resource

LONGEST_LEASE_MS, SHORTEST_LEASE_MS, LONGEST_TURN_MS, MOST_ROLLED_BACK = 3_600_000, 100, 10_000, 64

_KINDS: Mapping[int, str] = {
    kernel_pb2.VARIABLE_TYPE_NUMBER: values.NUMBER,
    kernel_pb2.VARIABLE_TYPE_TEXT: values.TEXT,
    kernel_pb2.VARIABLE_TYPE_FLAG: values.FLAG,
    kernel_pb2.VARIABLE_TYPE_LIST: values.LIST,
    kernel_pb2.VARIABLE_TYPE_SET: values.SET,
}
KIND_TYPES: Mapping[str, int] = {kind: number for number, kind in _KINDS.items()}
MODE_NUMBERS: Mapping[str, int] = {mode: number for number, mode in enumerate(values.MODES, 1)}
_MODES: Mapping[int, str] = {number: mode for mode, number in MODE_NUMBERS.items()}

_OUTCOMES: Mapping[int, str] = {
    kernel_pb2.OUTCOME_DONE: "done",
    kernel_pb2.OUTCOME_FAILED: "failed",
    kernel_pb2.OUTCOME_RETRY: "retry",
}


_DECISIONS: Mapping[int, str] = {
    session_pb2.PERSONS_DECISION_DONE: stuck.DONE,
    session_pb2.PERSONS_DECISION_RETRY: stuck.RETRY,
    session_pb2.PERSONS_DECISION_LEAVE: stuck.LEAVE,
}


def definition_of(message: kernel_pb2.Definition) -> Definition:
    """Return a definition. Refused with the reason of what is not as it must be."""
    variables = {one.name: _variable(one) for one in message.variables}
    resources = {one.name: Resource(one.limit_micros, one.min_cost_micros) for one in message.resources}
    if len(variables) < len(message.variables) or len(resources) < len(message.resources):
        raise invalid("KERNEL_DUPLICATE", "a variable or a resource is named twice")
    return Definition(
        resources=resources,
        variables=variables,
        invariants=[_invariant(one) for one in message.invariants],
        actions=[_action(one) for one in message.actions],
        open_registry=message.open_registry,
    )


def value_of(message: kernel_pb2.Value) -> str:
    """Return a value as it is stored; empty where the message holds none."""
    kind = message.WhichOneof("kind")
    if kind == "number_micros":
        return values.number(message.number_micros)
    if kind == "text":
        return values.text(message.text)
    if kind == "flag":
        return values.flag(message.flag)
    if kind is None:
        return ""
    items = [value_of(one) for one in getattr(message, kind).items]
    if any(not one or one[0] not in values.SCALARS for one in items):
        raise invalid("KERNEL_VALUE_INVALID", "a list or a set holds numbers, texts and flags")
    return values.joined(values.LIST if kind == "list" else values.SET, items)


def _variable(message: kernel_pb2.Variable) -> str:
    kind = _KINDS.get(message.type)
    if kind is None:
        raise invalid("KERNEL_VARIABLE_INVALID", "a variable has one of the types", name=message.name[:64])
    initial = value_of(message.initial)
    if initial and initial[0] != kind:
        raise invalid("KERNEL_VARIABLE_INVALID", "the first value is of another type", name=message.name[:64])
    return initial or values.nothing(kind)


def _invariant(message: kernel_pb2.Invariant) -> Condition:
    if message.enforcement not in kernel_pb2.Enforcement.values():
        raise invalid("KERNEL_INVARIANT_INVALID", "an invariant is blocking or monitoring", name=message.name[:64])
    return Condition(
        message.name,
        message.expression,
        blocking=message.enforcement != kernel_pb2.ENFORCEMENT_MONITORING,
        suggestion=message.suggestion,
        predicate_hash=message.predicate_hash,
        cel=message.cel,
    )


def _action(message: kernel_pb2.Action) -> RegisteredAction:
    return RegisteredAction(
        id=message.id,
        name=message.name,
        effects=[(one.variable, _MODES.get(one.mode, ""), value_of(one.value)) for one in message.effects],
        costs=[(one.resource, one.micros) for one in message.costs],
        preconditions=list(message.preconditions),
        emergency=message.emergency,
        irreversible=message.irreversible,
        compensation=checked_action(message.compensation) if message.compensation else "",
    )


def ask_of(what: str, request: Any) -> dict[str, Any]:
    """Return what the rule is asked. Equal requests have equal digests, whatever their key."""
    ask: dict[str, Any] = {"op": what, **_READERS[what](request)}
    if what == "evaluate":
        return {**ask, "key": "", "digest": ""}
    key = checked_key(request.key)
    body = type(request)()
    body.CopyFrom(request)
    body.ClearField("key")
    if what in {"execute", "permit"}:
        # A retry evaluates its predicates anew; what it asks for is the same.
        body.ClearField("version")
        body.ClearField("predicates")
        body.ClearField("ticket")
    told = what.encode() + b"\n" + body.SerializeToString(deterministic=True)
    return {**ask, "key": key, "digest": hashlib.sha256(told).hexdigest()}


def recorded_of(request: session_pb2.StepKernelRequest) -> dict[str, Any]:
    """Return the evidence of an emergency action that was recorded before; nothing of one that is asked for now.

    It is no part of the digest: whoever asks again under the key gets the same answer.
    """
    if not request.HasField("recorded"):
        return {}
    told, asked = request.recorded, request.emergency
    if request.WhichOneof("ask") != "emergency" or not is_evidence(
        told.spool, told.number, told.at_ms, told.signed_by, told.signature
    ):
        raise invalid("KERNEL_RECORDED_INVALID", "an emergency action alone is recorded before, and signed")
    return {"recorded": {
        "spool": told.spool, "number": str(told.number), "at_ms": str(told.at_ms), "signed_by": told.signed_by,
        "signature": told.signature, "stop": "1" if asked.stop else "0", "child": asked.child,
    }}  # fmt: skip


def decision_of(request: session_pb2.DecideCompensationRequest) -> dict[str, Any]:
    """Return what the rule is asked about a person's decision; what the person said goes into the record as it is."""
    outcome = _DECISIONS.get(request.decision, "")
    stuck.require_reason(outcome, request.reason)
    if not approval.REVIEWER.fullmatch(request.reviewer_id) or not 0 < len(request.token) <= approval.LONGEST:
        raise invalid("KERNEL_DECISION_INVALID", "a decision names its reviewer, and has the approval that was signed")
    decided = {
        "execution": checked_key(request.execution), "outcome": outcome, "reason": request.reason,
        "reviewer_id": request.reviewer_id, "approval_id": request.approval_id, "token": request.token,
    }  # fmt: skip
    told = b"decide\n" + request.SerializeToString(deterministic=True)
    return {
        "op": "decide", "key": checked_key(request.approval_id), "digest": hashlib.sha256(told).hexdigest(),
        "execution": decided["execution"], "fence": str(request.fence), "outcome": outcome, "decided": decided,
    }  # fmt: skip


def _acting(request: kernel_pb2.ExecuteRequest | kernel_pb2.PermitRequest) -> dict[str, Any]:
    if request.version < 0:
        raise invalid("KERNEL_VERSION_INVALID", "a version is 0 or more")
    held = [[one.name, one.hash, "1" if one.holds else "0"] for one in request.predicates]
    saga = checked_key(request.saga) if request.saga else ""
    return {"action": checked_action(request.action), "version": str(request.version), "held": held, "saga": saga,
            "child": _child(request.child), "ticket": checked_key(request.ticket) if request.ticket else ""}  # fmt: skip


def _child(name: str) -> str:
    return checked_name(name) if name else ""


def _opened_child(request: kernel_pb2.OpenChildRequest) -> dict[str, Any]:
    limits = _costs(request.limits)
    if not limits:
        raise invalid("KERNEL_REQUEST_INVALID", "a child has a limit of one resource at least")
    return {"op": "child", "child": checked_name(request.child), "parent": _child(request.parent), "limits": limits}


def _rollback(request: kernel_pb2.RollbackRequest) -> dict[str, Any]:
    if request.saga and not request.executions:
        return {"executions": [], "saga": checked_key(request.saga)}
    return {"executions": _executions(() if request.saga else request.executions), "saga": ""}


def _settlement(request: kernel_pb2.SettleCompensationRequest) -> dict[str, Any]:
    outcome = _OUTCOMES.get(request.outcome)
    if outcome is None or request.fence < 0:
        raise invalid("KERNEL_OUTCOME_INVALID", "a compensation is done, failed, or to be tried again")
    return {"execution": checked_key(request.execution), "fence": str(request.fence), "outcome": outcome}


def _lifetime(lifetime_ms: int, what: str) -> str:
    if not SHORTEST_LEASE_MS <= lifetime_ms <= LONGEST_LEASE_MS:
        message = f"{what} lives {SHORTEST_LEASE_MS} to {LONGEST_LEASE_MS} milliseconds"
        raise invalid("KERNEL_LIFETIME_INVALID", message)
    return str(lifetime_ms)


def _turn(lifetime_ms: int) -> str:
    if not SHORTEST_LEASE_MS <= lifetime_ms <= LONGEST_TURN_MS:
        message = f"a turn is {SHORTEST_LEASE_MS} to {LONGEST_TURN_MS} milliseconds"
        raise invalid("KERNEL_LIFETIME_INVALID", message)
    return str(lifetime_ms)


def _executions(keys: Iterable[str]) -> list[str]:
    found = [checked_key(one) for one in keys]
    if not 1 <= len(found) <= MOST_ROLLED_BACK or len(set(found)) != len(found):
        raise invalid("KERNEL_EXECUTIONS_INVALID", f"1 to {MOST_ROLLED_BACK} executions are undone, each once")
    return found


def _lease(request: kernel_pb2.LeaseRequest) -> dict[str, Any]:
    return {
        "resource": checked_name(request.resource),
        "wanted": str(checked_amount(request.wanted_micros)),
        "lifetime_ms": _lifetime(request.lifetime_ms, "a lease"),
        "child": _child(request.child),
    }


def _return(request: kernel_pb2.ReturnRequest) -> dict[str, Any]:
    return {
        "lease": checked_key(request.lease),
        "fence": str(request.fence),
        "unspent": str(checked_amount(request.unspent_micros)),
    }


def _costs(costs: Iterable[kernel_pb2.Cost]) -> list[list[str]]:
    found = [[checked_name(one.resource), str(checked_amount(one.micros))] for one in costs]
    if len({one[0] for one in found}) != len(found):
        raise invalid("KERNEL_DUPLICATE", "a cost is named twice")
    return found


def _evaluating(request: kernel_pb2.EvaluateRequest) -> dict[str, Any]:
    return {"action": checked_action(request.action), "op": "execute", "dry": True, "version": "0",
            "child": _child(request.child)}  # fmt: skip


def _emergency(request: kernel_pb2.EmergencyRequest) -> dict[str, Any]:
    stop = "1" if request.stop else "0"
    return {"action": checked_action(request.action), "stop": stop, "child": _child(request.child)}


_READERS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "evaluate": _evaluating,
    "open_child": _opened_child,
    "execute": _acting,
    "permit": _acting,
    "confirm": lambda request: {"permit": checked_key(request.permit), "actual": _costs(request.actual)},
    "abort": lambda request: {
        "executions": [checked_key(request.permit)],
        **({"unseen": "1"} if request.even_unseen else {}),
    },
    "rollback": _rollback,
    "begin_saga": lambda request: {"lifetime_ms": _lifetime(request.lifetime_ms, "a saga")},
    "end_saga": lambda request: {"saga": checked_key(request.saga)},
    "claim": lambda request: {"lifetime_ms": _lifetime(request.lifetime_ms, "a claim")},
    "settle": _settlement,
    "ticket": lambda request: {"lifetime_ms": _turn(request.lifetime_ms)},
    "return_ticket": lambda request: {"ticket": checked_key(request.ticket)},
    "lease": _lease,
    "give_back": _return,
    "emergency": _emergency,
}
"""What is asked → its reader."""

MUTATING = frozenset(_READERS) - {"evaluate"}
"""What changes a kernel, or is remembered of it."""
