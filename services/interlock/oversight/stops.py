"""What an admin may end from the console: a session with all below it, and a kernel (issue 19).

Who did it and why is sealed before, or with, the stop itself; the admin confirms by typing what is stopped.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, NamedTuple

import structlog
from prometheus_client import Counter

from interlock.api.audit.v1 import audit_pb2
from interlock.api.kernel.v1 import kernel_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain import ids
from interlock.domain.budget import Micros, as_decimal
from interlock.domain.errors import Refused, conflict, invalid
from interlock.domain.policy.roles import checked_stop_reason, not_covered, require_admin
from interlock.oversight.console import Console
from interlock.oversight.views import View
from interlock.runtime.rpc.kernels.kernels import Kernels

log = structlog.get_logger()

STOPS = Counter(
    "interlock_oversight_stops", "Stops from the console, by what was stopped and outcome.", ["what", "outcome"]
)

CONFIRMED = 6
"""Last digits of a session's id that confirm its stop."""
OWN_ACTION = "console.stop"
"""Emergency action that the console registers in a kernel which has none, where its registry is open."""
LONGEST_NAME = 100
"""Characters of the person's name that a kernel's key holds."""


class CallersKernel(NamedTuple):
    """Where a kernel is: its caller's scope, the root of a session tree that it belongs to or nothing, and its name."""

    scope: str
    root: str
    name: str


@dataclass(frozen=True)
class Stops:
    """The use cases of an admin."""

    console: Console
    kernels: Kernels

    async def session(self, view: View, session_id: str, root: str, reason: str, confirmed: str) -> None:
        """End a session for good, and with it all below it. The event comes first: what it says holds although a store loses the end.

        Refused with ROLE_NOT_ADMIN, SESSION_NOT_COVERED, STOP_REASON_INVALID, STOP_NOT_CONFIRMED or SESSION_TERMINATED.
        """
        session_id = ids.check("crp_sess_", session_id)
        require_admin(view.role)
        await self.console.require_covered(view, session_id)
        _require_confirmed(confirmed, session_id[-CONFIRMED:])
        peers = self.console.peers
        asked = session_pb2.GetSessionRequest(
            session_id=session_id, root_session_id=root and ids.check("crp_sess_", root)
        )
        found = await peers.session.get(asked)
        if found.status == session_pb2.SESSION_STATUS_TERMINATED:
            raise conflict("SESSION_TERMINATED", "this session has ended already")
        left = as_decimal(Micros(found.safety_budget_micros))
        record = audit_pb2.RecordStopRequest(
            session_id=session_id,
            stopped_by=view.reviewer,
            reason=checked_stop_reason(reason),
            final_safety_budget=left,
        )
        with _counted("session"):
            await peers.audit.record_stop(record)
            request = session_pb2.TerminateSessionRequest(session_id=session_id, root_session_id=found.root_session_id)
            await peers.session.terminate(request)
        log.warning("oversight.stopped", session_id=session_id, name=view.reviewer, reason=reason)

    async def described(self, place: CallersKernel) -> kernel_pb2.DescribeResponse:
        """Return a kernel as it is. Refused with KERNEL_NOT_FOUND."""
        return (await self._ask(place, "describe", kernel_pb2.DescribeRequest(kernel=place.name))).described

    async def kernel(self, view: View, place: CallersKernel, reason: str, confirmed: str) -> None:
        """Stop a kernel for good by an emergency action, whose sealed key says who and why.

        Refused with ROLE_NOT_ADMIN, SESSION_NOT_COVERED, STOP_REASON_INVALID, STOP_NOT_CONFIRMED, KERNEL_STOPPED, and with
        KERNEL_REGISTRY_CLOSED where a closed kernel has no emergency action.
        """
        require_admin(view.role)
        if not view.sight.covers(place.scope, ""):
            raise not_covered()
        _require_confirmed(confirmed, place.name)
        key = f"{view.reviewer[:LONGEST_NAME]}/{checked_stop_reason(reason)}/{secrets.token_hex(4)}"
        found = await self.described(place)
        if found.stopped:
            raise conflict("KERNEL_STOPPED", "the kernel is stopped already")
        with _counted("kernel"):
            action = await self._emergency_action(place, found)
            request = kernel_pb2.EmergencyRequest(kernel=place.name, action=action, stop=True, key=key)
            await self._ask(place, "emergency", request)
        log.warning("oversight.kernel_stopped", name=view.reviewer, reason=reason)

    async def _emergency_action(self, place: CallersKernel, found: kernel_pb2.DescribeResponse) -> str:
        """Return an emergency action of a kernel; one without any gets the console's own where its registry is open."""
        known = sorted(one.id for one in found.definition.actions if one.emergency)
        if known:
            return OWN_ACTION if OWN_ACTION in known else known[0]
        definition = kernel_pb2.Definition()
        definition.CopyFrom(found.definition)
        definition.actions.add(id=OWN_ACTION, name="Stopped from the console", emergency=True)
        await self._ask(place, "open", kernel_pb2.OpenRequest(kernel=place.name, definition=definition))
        return OWN_ACTION

    async def _ask(self, place: CallersKernel, what: str, request: Any) -> session_pb2.StepKernelResponse:
        root = place.root and ids.check("crp_sess_", place.root)
        return await self.kernels.ask_in(place.scope, root, what, request)


def _require_confirmed(given: str, wanted: str) -> None:
    if given.strip() != wanted:
        raise invalid(
            "STOP_NOT_CONFIRMED", "nothing was stopped: what was typed is not what is to be stopped", field="confirm"
        )


class _counted:  # noqa: N801 - used as a function
    """Counts how a stop ended."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        outcome = "stopped" if error is None else error.reason if isinstance(error, Refused) else "error"
        STOPS.labels(self._what, outcome).inc()
