"""The data of the list of kernels, and of a kernel's page: what is left, who shares it, what it holds, and how it is stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from google.protobuf import json_format

from interlock.api.kernel.v1 import kernel_pb2
from interlock.domain.budget import Micros, as_decimal
from interlock.domain.policy.roles import STOP_REASONS, Role
from interlock.oversight.kernels import KernelRow
from interlock.oversight.live.pages import SHORT, bar_of
from interlock.oversight.markup import render, said
from interlock.oversight.pages import frame_of
from interlock.oversight.stops import CallersKernel
from interlock.oversight.views import View

SHOWN = 4
"""Resources of one kernel in the list; its page has all."""


def kernels_page(view: View, rows: Sequence[KernelRow], narrowed: Mapping[str, str], *, more: bool) -> str:
    """Return the kernels that began last, each with what is left of its resources."""
    last = rows[-1].listed if rows and more else None
    following = {**narrowed, "before": f"{last.opened_at} {last.kernel_id}"} if last else None
    return render(
        "kernels.html", title="Kernels", **frame_of(view), here="kernels", rows=[_row(row) for row in rows], given=narrowed,
        following=f"?{urlencode(following)}" if following else "",
    )  # fmt: skip


def _row(row: KernelRow) -> Mapping[str, Any]:
    listed, found = row.listed, row.described
    place = {"scope": listed.scope, "kernel": listed.kernel, "root": listed.root_session_id}
    now = _kernel(found, shows_state=False) if found else None
    return {
        "name": said(listed.kernel) if listed.kernel else f"…{listed.kernel_id[-SHORT:]}", "scope": listed.scope,
        "root": listed.root_session_id, "opened_at": listed.opened_at, "now": now, "unread": row.unread,
        "path": f"/kernels?{urlencode(place)}" if listed.scope and listed.kernel else "",
        "resources": now["resources"][:SHOWN] if now else [], "left_out": max(0, len(now["resources"]) - SHOWN) if now else 0,
    }  # fmt: skip


def kernel_page(view: View, found: kernel_pb2.DescribeResponse, place: CallersKernel) -> str:
    """Return one kernel. Values of variables are content: agents put them there."""
    shows_state = view.role.sees_content and view.sight.covers(place.scope, "")
    return render(
        "kernel.html", title=f"Kernel {place.name}", **frame_of(view), here="kernels",
        scope=place.scope, name=place.name, root=place.root, kernel=_kernel(found, shows_state=shows_state),
        stops=view.role is Role.ADMIN and view.sight.covers(place.scope, ""), reasons=STOP_REASONS,
    )  # fmt: skip


def _kernel(found: kernel_pb2.DescribeResponse, *, shows_state: bool) -> Mapping[str, Any]:
    return {
        "stopped": found.stopped, "steps": found.steps, "version": found.version, "sequence": found.sequence,
        "resources": [_resource(one) for one in found.resources],
        "children": [
            {"name": said(one.name), "parent": said(one.parent), "stopped": one.stopped, "resources": [_resource(each) for each in one.resources]}
            for one in found.children
        ],
        "actions": [
            {"id": said(one.id), "name": said(one.name), "emergency": one.emergency, "irreversible": one.irreversible}
            for one in found.definition.actions
        ],
        "state": {said(name): said(_value(value)) for name, value in sorted(found.state.items())} if shows_state else None,
        "stuck": sum(one.stuck for one in found.compensations), "sagas": len(found.sagas),
    }  # fmt: skip


def _resource(one: kernel_pb2.ResourceState) -> Mapping[str, Any]:
    return {
        "name": said(one.name), "budget": bar_of(one.remaining_micros, one.limit_micros),
        "spent": as_decimal(Micros(one.gross_micros - one.refunded_micros - one.leased_micros)),
        "leased": as_decimal(Micros(one.leased_micros)), "refunded": as_decimal(Micros(one.refunded_micros)),
    }  # fmt: skip


def _value(value: kernel_pb2.Value) -> str:
    kind = value.WhichOneof("kind")
    if kind == "number_micros":
        return as_decimal(Micros(value.number_micros))
    return json_format.MessageToJson(value, indent=None)
