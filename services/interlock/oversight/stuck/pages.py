"""The data of the pages about stuck compensations. Names that an agent's developer chose go in as ``said``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from interlock.api.audit.v1 import audit_pb2
from interlock.api.kernel.v1 import kernel_pb2
from interlock.domain.budget import Micros, as_decimal
from interlock.domain.kernel.stuck import DONE, LEAVE, REASONS, RETRY
from interlock.oversight.compensations import StuckView
from interlock.oversight.markup import render, said
from interlock.oversight.pages import frame_of
from interlock.oversight.views import View
from interlock.runtime.clock import iso8601

_SHORT = 6
_LABELS: Mapping[str, str] = {
    DONE: "Done: a person made up for it",
    RETRY: "Retry: hand the compensation out again",
    LEAVE: "Leave: it stays stuck, and this look is on record",
}


def queue_page(view: View, page: audit_pb2.ListStuckResponse) -> str:
    """Return what waits for a person, the oldest on top."""
    last = page.items[-1] if page.more else None
    following = urlencode({"after": f"{last.stuck_at} {last.kernel_id} {last.execution}"}) if last else ""
    return render(
        "stuck_queue.html", title="Stuck compensations", **_frame(view), items=[_item(one) for one in page.items],
        following=f"?{following}" if following else "",
    )  # fmt: skip


def stuck_page(view: View, shown: StuckView) -> str:
    """Return one with its step, what would make up for it, the kernel as it stands, and the forms that decide."""
    one, kernel = shown.compensation, shown.described
    step, made_up = shown.action(one.of), shown.action(one.action)
    return render(
        "stuck.html", title="A step that is not made up for", **_frame(view), kernel_id=kernel.kernel_id,
        kernel=said(shown.owner.kernel or "–"), scope=said(shown.owner.scope or "–"), execution=said(one.execution),
        saga=said(one.saga), attempts=one.attempts, record=one.fence, of=said(one.of), action=said(one.action),
        step=_action(step), made_up=_action(made_up), since=iso8601(one.due_at_ms * 1000), stopped=kernel.stopped,
        budgets=[_budget(budget) for budget in kernel.resources], state=_state(kernel, step, made_up),
        decision=_decision(kernel.kernel_id, one) if one.stuck and not view.reads_only else None, is_stuck=one.stuck,
    )  # fmt: skip


def _frame(view: View) -> Mapping[str, Any]:
    return {**frame_of(view), "here": "stuck"}


def _item(one: audit_pb2.StuckCompensation) -> Mapping[str, Any]:
    return {
        "path": f"/stuck/{one.kernel_id}?{urlencode({'step': one.execution})}", "step": said(one.execution),
        "kernel": said(one.kernel) if one.kernel else f"…{one.kernel_id[-_SHORT:]}", "scope": said(one.scope or "–"),
        "of": said(one.of), "action": said(one.action or "a person"), "attempts": one.attempts, "since": one.stuck_at,
        "left": f"{one.left_by}: {one.left_reason.replace('_', ' ').lower()}" if one.left_by else "",
    }  # fmt: skip


def _decision(kernel_id: str, one: kernel_pb2.Compensation) -> Mapping[str, Any]:
    """Return the forms. A step that only a person can make up for is not handed out again."""
    signed = {
        "data-kernel": kernel_id,
        "data-step": one.execution,
        "data-record": str(one.fence),
        "data-queue": "/stuck",
    }
    forms = [
        {"outcome": outcome, "label": label, "reasons": REASONS[outcome]}
        for outcome, label in _LABELS.items()
        if one.action or outcome != RETRY
    ]
    return {"attributes": signed, "forms": forms}


def _action(action: kernel_pb2.Action | None) -> Mapping[str, Any] | None:
    if action is None:
        return None
    return {
        "name": said(action.name),
        "effects": [
            f"{kernel_pb2.EffectMode.Name(one.mode).removeprefix('EFFECT_MODE_').lower()} {one.variable} {_text(one.value)}"
            for one in action.effects
        ],
        "costs": [f"{as_decimal(Micros(one.micros))} {one.resource}" for one in action.costs],
    }


def _state(kernel: kernel_pb2.DescribeResponse, *actions: kernel_pb2.Action | None) -> list[Mapping[str, Any]]:
    """Return the variables that these actions touch, as they are now."""
    touched = _variables(action for action in actions if action is not None)
    return [{"name": name, "value": said(_text(kernel.state[name]))} for name in touched if name in kernel.state]


def _variables(actions: Iterable[kernel_pb2.Action]) -> list[str]:
    return sorted({effect.variable for action in actions for effect in action.effects})


def _budget(one: kernel_pb2.ResourceState) -> Mapping[str, str]:
    figures = {
        "limit": one.limit_micros,
        "gross": one.gross_micros,
        "refunded": one.refunded_micros,
        "left": one.remaining_micros,
    }
    return {"name": one.name, **{name: as_decimal(Micros(value)) for name, value in figures.items()}}


def _text(value: kernel_pb2.Value) -> str:
    kind = value.WhichOneof("kind")
    if kind is None:
        return "nothing"
    if kind == "number_micros":
        return as_decimal(Micros(value.number_micros))
    if kind in {"list", "set"}:
        return ", ".join(_text(one) for one in getattr(value, kind).items) or "empty"
    return str(getattr(value, kind))
