"""Sessions that the store lost, holds as they were before, or holds on a server that was restarted: rebuilt from the audit
log, and asked again (BUD-4, BUD-9, A-02; docs/adr/0012).

Every call to the session service goes through here, so that none can forget it. Where the audit log cannot tell, the call
is refused: no budget is ever guessed.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import structlog
from google.protobuf import json_format
from prometheus_client import Counter, Histogram

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.chain.chain_state import CASCADED, cascaded_budget
from interlock.domain.errors import Kind, Refused, conflict, unavailable
from interlock.domain.session.session_refusals import RECOVERABLE
from interlock.runtime import failpoints
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.errors import from_message
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call.deadline import Deadline, retry_idempotent
from interlock.sidecar.settlement.sweep import Sweep

log = structlog.get_logger()

RESTORES = Counter(
    "interlock_session_restores", "Rebuilds of a tree of sessions from the audit log, by how they ended.", ["outcome"]
)
RESTORE_SECONDS = Histogram("interlock_session_restore_seconds", "Time to rebuild a tree of sessions, seconds.")

AT_ONCE = 16
"""Trees that one process rebuilds at the same time; after a restart of the store all of them ask at once."""

SETTLING_S = 0.1
"""How long a settlement may follow its seal before a store without it is taken for one that was set back."""

READINGS = 3
"""How often a record is read while its tree goes on."""

_FINAL = frozenset(
    {"SESSION_NOT_FOUND", "RECORD_INCOMPLETE", "RECORD_INVALID", "SESSION_TRUNCATED", "SESSION_STATE_LOST"}
)
"""What the log or the session service says where nothing can be rebuilt: the session is lost."""

_TELLING = {"StartSession": "session", "OpenWindow": "window", "GetSession": "session"}
"""Methods with which a tree is used, and what of their answer names it. No answer is given for one that is not verified."""

A = TypeVar("A", bound=Any)


class Recovery:
    """The stub of the session service; each of its methods recovers once."""

    def __init__(self, settings: Settings, mesh: Mesh) -> None:
        self._mesh, self._stub = mesh, mesh.session
        self._settings = settings
        self._running: dict[str, asyncio.Task[None]] = {}
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._sweep = Sweep(settings, mesh, restoring=restoring, busy=self._running)

    @classmethod
    def over(cls, settings: Settings, mesh: Mesh) -> Recovery:
        """Return what recovers for *mesh*: its own stub where that does already."""
        return mesh.session if isinstance(mesh.session, cls) else cls(settings, mesh)

    async def close(self) -> None:
        """End what is done beside the calls."""
        await self._sweep.close()

    async def catch_up(self, root: str) -> None:
        """Bring a tree up to the chain that was found to be ahead of the store. Where that cannot be, it is logged."""
        try:
            await self._shared(root)
        except Refused as refused:
            log.warning("session.not_restored", root_session_id=root, reason=refused.reason, kind="CHAIN_CONFLICT")

    async def vouched(
        self,
        session: session_pb2.Session,
        again: Callable[[], Awaitable[session_pb2.Session]],
        deadline: Deadline,
    ) -> session_pb2.Session:
        """Return a session as its chain vouches for it. One that was set back while its server went on is rebuilt first."""
        standing = await self._standing(session.session_id, deadline)
        if _behind(session, standing):
            await asyncio.sleep(SETTLING_S)  # a window may be sealed and about to be settled
            session = await again()
        if _behind(session, standing):
            await self._shared(session.root_session_id)
            session = await again()
        return session

    async def _standing(self, session_id: str, deadline: Deadline) -> audit_pb2.Standing:
        """Return what a session's chain says of it: the most that may be left of its budget, and its sealed windows."""
        request = audit_pb2.GetStandingRequest(session_id=session_id)
        limit = deadline.within(self._settings.rpc_timeout_s)
        return (await call_service("audit", self._mesh.audit.GetStanding(request, timeout=limit))).standing

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Return the method of that name, with what it does after a refusal."""
        method, told = getattr(self._stub, name), _TELLING.get(name)

        async def asked(request: Any, timeout: float | None) -> tuple[Any, float]:  # noqa: ASYNC109 - see below
            since = time.monotonic()
            answer = await method(request, timeout=timeout)
            if told and (root := getattr(answer, told).root_session_id):
                self._sweep.verified(root, since)
            return answer, since

        async def recovering(request: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - as gRPC's stubs have it
            answer, since = await asked(request, timeout)
            if not answer.HasField("refusal") or answer.refusal.reason not in RECOVERABLE:
                return answer
            session = answer.refusal.metadata.get("root_session_id") or answer.refusal.metadata.get("session_id", "")
            if not session:
                return answer
            if answer.refusal.reason == "SESSION_STATE_UNVERIFIED":
                self._sweep.refused(session, since)
            if not await self._recovered(session, from_message(answer.refusal)):
                return _lost(answer)
            return (await asked(request, timeout))[0]

        return recovering

    async def _recovered(self, root: str, refused: Refused) -> bool:
        """Have the tree rebuilt, or say that it is lost."""
        try:
            await self._shared(root)
        except Refused as failed:
            log.warning("session.not_restored", root_session_id=root, reason=failed.reason, kind=refused.reason)
            if failed.reason in _FINAL:
                return False
            if failed.reason == "CHAIN_BROKEN":
                raise
            raise unavailable(
                "SESSION_STATE_UNVERIFIED", "the session must be verified against the audit log first, and that cannot be done now",
                cause=failed.reason,
            ) from None  # fmt: skip
        return True

    async def _shared(self, root: str) -> None:
        """Have a tree rebuilt; concurrent callers share it, and one who leaves does not end it."""
        task = self._running.get(root)
        if task is None:
            task = self._running[root] = asyncio.create_task(self._rebuilt(root))
            task.add_done_callback(partial(self._ended, root))
        await asyncio.shield(task)

    def _ended(self, root: str, task: asyncio.Task[None]) -> None:
        """Let go of a rebuild; where all who waited have left, its failure is nobody's to raise."""
        self._running.pop(root, None)
        if not task.cancelled():
            task.exception()

    async def _rebuilt(self, root: str) -> None:
        outcome, begun = "failed", time.perf_counter()
        try:
            async with self._turn:
                deadline = Deadline(self._settings.rpc_timeout_s)
                for reading in range(1, READINGS + 1):
                    try:
                        outcome = await self._rebuild(root, deadline)
                        break
                    except Refused as refused:
                        if refused.reason != "RECORD_BEHIND" or reading == READINGS:
                            raise
        except Refused as refused:
            outcome = "lost" if refused.reason in _FINAL else "failed"
            raise
        finally:
            RESTORES.labels(outcome).inc()
            RESTORE_SECONDS.observe(time.perf_counter() - begun)

    async def _rebuild(self, root: str, deadline: Deadline) -> str:
        limit, since = self._settings.rpc_timeout_s, time.monotonic()
        asked = audit_pb2.GetTreeRecordRequest(root_session_id=root)
        record = await retry_idempotent(
            lambda: call_service("audit", self._mesh.audit.GetTreeRecord(asked, timeout=deadline.within(limit)))
        )
        await failpoints.reached("sidecar.before_restore")
        request = restoring(record)
        done = await retry_idempotent(
            lambda: call_service("session", self._stub.RestoreTree(request, timeout=deadline.within(limit)))
        )
        self._sweep.verified(request.root_session_id, since)
        log.info(
            "session.restored", root_session_id=request.root_session_id, restored_count=done.restored,
            verified_count=done.verified,
        )  # fmt: skip
        return "restored" if done.restored else "verified"


def _behind(session: session_pb2.Session, standing: audit_pb2.Standing) -> bool:
    """Tell whether a session says more than its chain: a higher budget, fewer windows than were sealed, or fewer children."""
    sealed = sum(window.status != "FAILED" for window in session.windows)
    return (
        session.safety_budget_micros > standing.session_budget_micros
        or sealed < standing.sealed_windows
        or len(session.child_session_ids) < standing.started_sessions
    )


def restoring(record: audit_pb2.GetTreeRecordResponse) -> session_pb2.RestoreTreeRequest:
    """Return what the session service is asked to rebuild from the log's record of a tree."""
    root = _root(record)
    steps = [made for step in record.steps if (made := _step(step, root)) is not None]
    return session_pb2.RestoreTreeRequest(root_session_id=root, steps=steps)


def _root(record: audit_pb2.GetTreeRecordResponse) -> str:
    created = next(step for step in record.steps if step.event_type == "SESSION_CREATED")
    data: dict[str, Any] = json.loads(created.data_json)
    return str(data.get("root_session_id") or created.session_id)


def _step(step: audit_pb2.TreeStep, root: str) -> session_pb2.TreeStep | None:
    """Return a logged fact as the session service takes it; ``None`` for one that moved no session's state."""
    data: dict[str, Any] = json.loads(step.data_json)
    made = session_pb2.TreeStep(session_id=step.session_id)
    if step.event_type == "SESSION_CREATED":
        made.created_record_json = str(data.get("record", ""))
    elif step.event_type == "WINDOW_SEALED":
        made.settled.CopyFrom(settlement(step.settle_json, step.hmac, step.timestamp))
    elif step.event_type == "WINDOW_FAILED":
        made.failed.CopyFrom(_failed(step, data, root))
    elif step.event_type == "DELEGATION_GRANTED" and data.get("approval_id"):
        made.approval.approval_id, made.approval.grant_id = str(data["approval_id"]), str(data.get("grant_id", ""))
    elif step.event_type == CASCADED:
        made.lowered_micros = cascaded_budget(step.data_json)
    elif step.event_type == "SESSION_TERMINATED" and data.get("reason") == "CLIENT":
        made.terminated = True
    else:
        return None
    return made


def settlement(settle_json: str, hmac: str, timestamp: str) -> session_pb2.CommitWindowRequest:
    """Return the settlement of a sealed window, whole. Refused with SEAL_UNREADABLE where it is none."""
    try:
        commit = json_format.Parse(settle_json, session_pb2.CommitWindowRequest(), ignore_unknown_fields=True)
    except json_format.ParseError:
        raise conflict("SEAL_UNREADABLE", "the settlement in the seal cannot be read") from None
    commit.hmac, commit.timestamp = hmac, timestamp
    return commit


def _failed(step: audit_pb2.TreeStep, data: dict[str, Any], root: str) -> session_pb2.FailWindowRequest:
    return session_pb2.FailWindowRequest(
        session_id=step.session_id, root_session_id=root, window_id=step.window_id, reason=str(data.get("reason", "")),
        parent_ids=data.get("parent_ids", ()), pattern=str(data.get("pattern", "")),
    )  # fmt: skip


def _lost(answer: A) -> A:
    """Return the answer of a session that nothing brings back: lost, for good, whatever kept it from being used."""
    lost = answer.refusal
    lost.kind, lost.reason, lost.retry_after_ms = Kind.UNAVAILABLE.value, "SESSION_STATE_LOST", 0
    lost.message = (
        "the store does not hold this session as its token or its audit record vouches for; start a new session"
    )
    return answer
