"""Answers about kernels, as messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from interlock.api.kernel.v1 import kernel_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.kernel import values, words
from interlock.domain.kernel.decision import ROOT
from interlock.domain.kernel.saga import NOBODY, CompensationDue
from interlock.domain.kernel.state import KernelRecord, Resource, listed
from interlock.session.kernel.reading import KIND_TYPES, MODE_NUMBERS


def record_message(record: KernelRecord) -> session_pb2.KernelRecord:
    """Return a record."""
    return session_pb2.KernelRecord(
        sequence=record.sequence, previous=record.previous, link=record.link, type=record.type,
        severity=record.severity, data_json=record.data,
    )  # fmt: skip


def record_of(message: session_pb2.KernelRecord) -> KernelRecord:
    """Read a record."""
    return KernelRecord(
        message.sequence, message.previous, message.link, message.type, message.severity, message.data_json
    )


def value_message(value: str) -> kernel_pb2.Value:
    """Return a stored value."""
    kind = value[0]
    if values.absent(value):
        return kernel_pb2.Value()
    if kind == values.NUMBER:
        return kernel_pb2.Value(number_micros=int(value[2:]))
    if kind == values.TEXT:
        return kernel_pb2.Value(text=value[2:])
    if kind == values.FLAG:
        return kernel_pb2.Value(flag=value[2:] == "1")
    items = kernel_pb2.Items(items=[value_message(one) for one in values.items_of(value)])
    return kernel_pb2.Value(list=items) if kind == values.LIST else kernel_pb2.Value(set=items)


def verdict_message(answer: Mapping[str, Any], suggestions: Mapping[str, str]) -> kernel_pb2.Verdict:
    """Return a verdict, in words too."""
    checks, approved = listed(answer["checks"]), answer["approved"] == "1"
    verdict = kernel_pb2.Verdict(
        approved=approved,
        checks=[_check(one) for one in checks],
        version=int(answer["version"]),
        sequence=int(answer["sequence"]),
        costs=_costs(listed(answer["costs"])),
        for_model="" if approved else words.for_model(answer["action"], checks, suggestions),
        replayed=answer.get("replayed") == "1",
    )
    for name, value in listed(answer["changed"]):
        verdict.changed[name].CopyFrom(value_message(value))
    return verdict


def _check(check: Sequence[str]) -> kernel_pb2.Check:
    name, passed, code, _, _, monitoring = check
    return kernel_pb2.Check(
        name=name, passed=passed == "1", code=code, words=words.words_of(check), monitoring=monitoring == "1"
    )


def evaluated_message(answer: Mapping[str, Any], suggestions: Mapping[str, str]) -> kernel_pb2.EvaluateResponse:
    """Return a dry run with the whole state after it."""
    told = kernel_pb2.EvaluateResponse(verdict=verdict_message(answer, suggestions))
    for name, value in listed(answer["values"]):
        told.state_after[name].CopyFrom(value_message(value))
    return told


def leased_message(answer: Mapping[str, Any], suggestions: Mapping[str, str]) -> kernel_pb2.LeaseResponse:
    """Return a grant, or why there is none."""
    granted = answer["approved"] == "1"
    return kernel_pb2.LeaseResponse(
        verdict=verdict_message(answer, suggestions),
        granted_micros=int(answer["granted"] or 0) if granted else 0,
        fence=int(answer["sequence"]) if granted else 0,
        expires_at_ms=int(answer["until_ms"]) if granted else 0,
    )


def begun_message(answer: Mapping[str, Any], suggestions: Mapping[str, str]) -> kernel_pb2.BeginSagaResponse:
    """Return a saga that was begun, or why it was not."""
    until = int(answer["until_ms"]) if answer["approved"] == "1" else 0
    return kernel_pb2.BeginSagaResponse(verdict=verdict_message(answer, suggestions), expires_at_ms=until)


def ticket_message(answer: Mapping[str, Any], suggestions: Mapping[str, str]) -> kernel_pb2.TakeTicketResponse:
    """Return a place in the line, or why there is none."""
    ahead = int(answer["granted"]) if answer["approved"] == "1" else 0
    return kernel_pb2.TakeTicketResponse(verdict=verdict_message(answer, suggestions), ahead=ahead)


def claimed_message(answer: Mapping[str, Any]) -> kernel_pb2.ClaimCompensationResponse:
    """Return a compensation that was handed out; with none, whether to ask again at once."""
    if not answer.get("claim"):
        return kernel_pb2.ClaimCompensationResponse(again=bool(answer))
    key, saga, action, of, attempts, fence, until = answer["claim"]
    given = kernel_pb2.Compensation(
        execution=key, saga=saga, action=action, of=of, attempts=int(attempts), fence=int(fence), due_at_ms=int(until)
    )
    return kernel_pb2.ClaimCompensationResponse(compensation=given)


def _compensation(key: str, text: str) -> kernel_pb2.Compensation:
    job = CompensationDue.of_text(text)
    return kernel_pb2.Compensation(
        execution=key, saga=job.saga, action="" if job.action == NOBODY else job.action, of=job.of,
        attempts=job.attempts, fence=int(job.fence), due_at_ms=job.due_ms, stuck=job.state == "stuck",
    )  # fmt: skip


def described_message(kernel_id: str, fields: Mapping[str, str]) -> kernel_pb2.DescribeResponse:
    """Return a kernel as it stands."""
    told = kernel_pb2.DescribeResponse(
        kernel_id=kernel_id,
        resources=[_resource(name, Resource.of(fields[f"r:{name}"])) for name in fields["res"].split()],
        version=int(fields["version"]),
        sequence=int(fields["seq"]),
        steps=int(fields["steps"]),
        stopped=fields["stopped"] == "1",
        definition=_definition(fields),
        children=[_told_child(name[2:], fields) for name in sorted(fields) if name[:2] == "p:"],
        sagas=(fields.get("sagas") or "").split(),
        compensations=[_compensation(name[2:], text) for name, text in sorted(fields.items()) if name[:2] == "j:"],
    )
    for field, value in fields.items():
        if field.startswith("v:"):
            told.state[field[2:]].CopyFrom(value_message(value))
    return told


def _told_child(name: str, fields: Mapping[str, str]) -> kernel_pb2.Child:
    shares = ((one, fields.get(f"q:{name}:{one}")) for one in fields["res"].split())
    return kernel_pb2.Child(
        name=name, parent="" if fields["p:" + name] == ROOT else fields["p:" + name],
        stopped=f"z:{name}" in fields, resources=[_resource(one, Resource.of(text)) for one, text in shares if text],
    )  # fmt: skip


def _resource(name: str, one: Resource) -> kernel_pb2.ResourceState:
    return kernel_pb2.ResourceState(
        name=name, limit_micros=one.limit, min_cost_micros=one.min_cost, gross_micros=one.gross,
        refunded_micros=one.refunded, leased_micros=one.leased, remaining_micros=one.left,
    )  # fmt: skip


def _definition(fields: Mapping[str, str]) -> kernel_pb2.Definition:
    agreed = json.loads(fields["def"])
    enforced = {"blocking": kernel_pb2.ENFORCEMENT_BLOCKING, "monitoring": kernel_pb2.ENFORCEMENT_MONITORING}
    return kernel_pb2.Definition(
        resources=[
            kernel_pb2.Resource(name=name, limit_micros=limit, min_cost_micros=least)
            for name, (limit, least) in agreed["resources"].items()
        ],
        variables=[
            kernel_pb2.Variable(name=field[2:], type=kernel_pb2.VariableType.ValueType(KIND_TYPES[value[0]]))
            for field, value in sorted(fields.items()) if field.startswith("v:")
        ],
        invariants=[
            kernel_pb2.Invariant(
                name=name, expression=text, enforcement=enforced[how], suggestion=advice, predicate_hash=digest, cel="".join(cel)
            )
            for name, text, how, advice, digest, *cel in agreed["invariants"]
        ],
        actions=[_action(field[2:], value) for field, value in sorted(fields.items()) if field.startswith("a:")],
        open_registry=agreed["open_registry"],
    )  # fmt: skip


def _action(action_id: str, text: str) -> kernel_pb2.Action:
    action = json.loads(text)
    return kernel_pb2.Action(
        id=action_id,
        name=action["name"],
        effects=[_effect(*one) for one in action["effects"]],
        costs=_costs(action["costs"]),
        preconditions=action["expressions"],
        emergency=action["emergency"] == "1",
        irreversible=action["irreversible"] == "1",
        compensation=action.get("compensation", ""),
    )


def _effect(variable: str, mode: str, operand: str) -> kernel_pb2.Effect:
    number = kernel_pb2.EffectMode.ValueType(MODE_NUMBERS[mode])
    return kernel_pb2.Effect(variable=variable, mode=number, value=value_message(operand) if operand else None)


def _costs(costs: Iterable[Sequence[str]]) -> list[kernel_pb2.Cost]:
    return [kernel_pb2.Cost(resource=name, micros=int(amount)) for name, amount in costs]
