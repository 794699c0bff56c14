"""Rebuilds sessions from the audit log that the store lost, holds in an older state, or holds on a restarted server, and asks
again (BUD-4, BUD-9, A-02; docs/adr/0012).

Where the audit log cannot tell, the call is refused: no budget is ever guessed.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from google.protobuf import json_format
from prometheus_client import Counter, Histogram

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.chain.audit_events import SPENDING_TYPES
from interlock.domain.chain.chain_state import CASCADED, cascaded_budget, ended_by_client
from interlock.domain.errors import Kind, Refused, conflict, unavailable
from interlock.domain.session.session_refusals import CALLER_UNVERIFIED, RECOVERABLE
from interlock.runtime import failpoints
from interlock.runtime.clock import system_clock
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.errors import from_message
from interlock.runtime.rpc.peer import A, Method
from interlock.runtime.rpc.peers import AuditPeer, SessionPeer
from interlock.runtime.settings.model import Settings
from interlock.sidecar.settlement.sweep import Sweep
from interlock.sidecar.trail import spending_events, stream_events

if TYPE_CHECKING:
    from interlock.api.session.v1.session_pb2_grpc import SessionServiceAsyncStub

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
"""How often a record is read while its tree keeps changing."""

_FINAL = frozenset(
    {"SESSION_NOT_FOUND", "RECORD_INCOMPLETE", "RECORD_INVALID", "SESSION_TRUNCATED", "SESSION_STATE_LOST"}
)
"""What the log or the session service says where nothing can be rebuilt: the session is lost."""


class Recovery:
    """Rebuilds trees of sessions; concurrent callers share a rebuild. *session* is the service itself, which recovers nothing."""

    def __init__(self, settings: Settings, audit: AuditPeer, session: SessionPeer) -> None:
        self._settings, self._audit, self._session = settings, audit, session
        self._running: dict[str, asyncio.Task[None]] = {}
        self._turn = asyncio.Semaphore(AT_ONCE)
        self.sweep = Sweep(settings.token_lifetime_s, audit, session, restoring=restoring, busy=self._running)

    async def close(self) -> None:
        """End the background work."""
        await self.sweep.close()

    async def catch_up(self, root: str) -> None:
        """Bring a tree up to the chain that was found to be ahead of the store. A failure is logged."""
        try:
            await self._shared(root)
        except Refused as refused:
            log.warning("session.not_restored", root_session_id=root, reason=refused.reason, kind="CHAIN_CONFLICT")

    async def verified_against_chain(
        self,
        session: session_pb2.Session,
        again: Callable[[], Awaitable[session_pb2.Session]],
        deadline: Deadline,
    ) -> session_pb2.Session:
        """Return a session that its chain bears out. One that was set back while its server kept running is rebuilt first."""
        state = await self._audit.get_chain_state(session.session_id, deadline)
        if _behind(session, state):
            await asyncio.sleep(SETTLING_S)  # a window may be sealed and about to be settled
            session = await again()
        if _behind(session, state):
            await self._shared(session.root_session_id)
            session = await again()
        return session

    async def recover(self, root: str, refused: Refused) -> bool:
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

    async def recover_caller(self, caller_id: str, since: str) -> None:
        """Have the budget of a caller rebuilt from the audit log; a caller that the log does not know gets a full one.

        Refused with CALLER_BUDGET_UNVERIFIED where the log cannot tell, or with CHAIN_BROKEN.
        """
        try:
            await self._shared(caller_id, partial(self._rebuilt_caller, since=since))
        except Refused as failed:
            log.warning("caller.not_restored", caller_id=caller_id, reason=failed.reason)
            if failed.reason == "CHAIN_BROKEN":
                raise
            raise unavailable(
                "CALLER_BUDGET_UNVERIFIED", "the caller's budget must be rebuilt from the audit log first, and that cannot be done now",
                cause=failed.reason,
            ) from None  # fmt: skip

    async def _rebuilt_caller(self, caller_id: str, *, since: str) -> None:
        deadline = Deadline(self._settings.rpc_timeout_s)
        charges = await self._audit.get_caller_record(caller_id, since, deadline)
        await failpoints.reached("sidecar.before_restore")
        await self._session.restore_caller(
            session_pb2.RestoreCallerRequest(caller_id=caller_id, charges=charges), deadline
        )

    async def _shared(self, named_id: str, rebuilt: Callable[[str], Coroutine[Any, Any, None]] | None = None) -> None:
        """Have a tree, or what *rebuilt* says, rebuilt; concurrent callers share it, and one who leaves does not end it."""
        task = self._running.get(named_id)
        if task is None:
            task = self._running[named_id] = asyncio.create_task((rebuilt or self._rebuilt)(named_id))
            task.add_done_callback(partial(self._ended, named_id))
        await asyncio.shield(task)

    def _ended(self, root: str, task: asyncio.Task[None]) -> None:
        """Let go of a rebuild. Where all callers have left, its failure is dropped."""
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
        since = time.monotonic()
        record = await self._audit.get_tree_record(root, deadline)
        await failpoints.reached("sidecar.before_restore")
        request = restoring(record)
        done = await self._session.restore_tree(request, deadline)
        self.sweep.verified(request.root_session_id, since)
        log.info(
            "session.restored", root_session_id=request.root_session_id, restored_count=done.restored,
            verified_count=done.verified,
        )  # fmt: skip
        return "restored" if done.restored else "verified"


class RecoveringSession(SessionPeer):
    """The session service, asked again once after its tree was rebuilt, and once after the budget of its caller was: after a restart of
    the store one call may find both missing. Every call goes through here, so none can forget it.
    """

    def __init__(self, stub: SessionServiceAsyncStub, timeout_s: float, recovery: Recovery) -> None:
        super().__init__(stub, timeout_s)
        self._recovery = recovery

    async def _send(self, method: Method[A], request: Any, timeout_s: float) -> A:
        answer, since = await self._noted(method, request, timeout_s)
        cured: set[bool] = set()
        while answer.HasField("refusal"):
            of_caller = answer.refusal.reason == CALLER_UNVERIFIED
            if of_caller in cured or not (of_caller or answer.refusal.reason in RECOVERABLE):
                break
            cured.add(of_caller)
            if of_caller:
                told = answer.refusal.metadata
                await self._recovery.recover_caller(told.get("caller_id", ""), told.get("since", ""))
            elif not (root := _tree_of(answer.refusal)):
                break
            elif not await self._recovered(root, answer.refusal, since):
                return _lost(answer)
            answer, since = await self._noted(method, request, timeout_s)
        return answer

    async def _recovered(self, root: str, refusal: common_pb2.Refusal, since: float) -> bool:
        """Have a tree rebuilt. False: it is lost."""
        if refusal.reason == "SESSION_STATE_UNVERIFIED":
            self._recovery.sweep.refused(root, since)
        return await self._recovery.recover(root, from_message(refusal))

    async def _noted(self, method: Method[A], request: Any, timeout_s: float) -> tuple[A, float]:
        """Return an answer and when it was asked for; the sweep learns which tree the store has just verified."""
        since = time.monotonic()
        answer = await super()._send(method, request, timeout_s)
        if root := _root_in(answer):
            self._recovery.sweep.verified(root, since)
        return answer, since


def _tree_of(refusal: common_pb2.Refusal) -> str:
    """Return the root of the tree that a refusal is about; empty where it names none."""
    return str(refusal.metadata.get("root_session_id") or refusal.metadata.get("session_id", ""))


def _root_in(answer: Any) -> str:
    """Return the root of the tree that an answer speaks of; no such answer is given for a tree that is not verified."""
    if isinstance(answer, session_pb2.OpenWindowResponse):
        return answer.window.root_session_id
    if isinstance(answer, session_pb2.StartSessionResponse | session_pb2.GetSessionResponse):
        return answer.session.root_session_id
    return ""


def left_open(standing: audit_pb2.Standing) -> bool:
    """Tell whether a chain has a stream that should have had its end by now: a store that was set back does not know of it."""
    return 0 < standing.streams_until_ms <= system_clock() // 1000


def _behind(session: session_pb2.Session, standing: audit_pb2.Standing) -> bool:
    """Tell whether a session says more than its chain: a higher budget, fewer windows than were sealed, or fewer children. A stream
    that was left open is held again before the budget is shown or given on.
    """
    sealed = sum(window.status != "FAILED" for window in session.windows)
    return (
        session.safety_budget_micros > standing.session_budget_micros
        or sealed < standing.sealed_windows
        or len(session.child_session_ids) < standing.started_sessions
        or left_open(standing)
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
        made.settled.CopyFrom(settlement(step))
    elif step.event_type == "WINDOW_FAILED":
        made.failed.CopyFrom(_failed(step, data, root))
    elif step.event_type == "DELEGATION_GRANTED" and data.get("approval_id"):
        made.approval.approval_id, made.approval.grant_id = str(data["approval_id"]), str(data.get("grant_id", ""))
    elif step.event_type == stream_events.BEGUN:
        made.stream_began.CopyFrom(stream_events.began(step.window_id, data))
    elif step.event_type in SPENDING_TYPES:
        made.spent.CopyFrom(spending_events.spent(step, data, root))
    elif step.event_type == CASCADED:
        made.lowered_micros = cascaded_budget(step.data_json)
    elif ended_by_client(step.event_type, step.data_json):
        made.terminated = True
    else:
        return None
    return made


def settlement(sealed: audit_pb2.GetWindowResponse | audit_pb2.TreeStep) -> session_pb2.CommitWindowRequest:
    """Return the settlement of a sealed window, with the HMAC and the time of its seal.

    An older audit service gives it as JSON alone. Refused with SEAL_UNREADABLE where that is no settlement.
    """
    commit = session_pb2.CommitWindowRequest()
    if sealed.HasField("settlement"):
        commit.CopyFrom(sealed.settlement)
    else:
        try:
            json_format.Parse(sealed.settle_json, commit, ignore_unknown_fields=True)
        except json_format.ParseError:
            raise conflict("SEAL_UNREADABLE", "the settlement in the seal cannot be read") from None
    commit.hmac, commit.timestamp = sealed.hmac, sealed.timestamp
    return commit


def _failed(step: audit_pb2.TreeStep, data: dict[str, Any], root: str) -> session_pb2.FailWindowRequest:
    return session_pb2.FailWindowRequest(
        session_id=step.session_id, root_session_id=root, window_id=step.window_id, reason=str(data.get("reason", "")),
        parent_ids=data.get("parent_ids", ()), pattern=str(data.get("pattern", "")),
    )  # fmt: skip


def _lost(answer: A) -> A:
    """Return the answer for a session that cannot be rebuilt: it is lost for good."""
    lost = answer.refusal
    lost.kind, lost.reason, lost.retry_after_ms = Kind.UNAVAILABLE.value, "SESSION_STATE_LOST", 0
    lost.message = (
        "the store does not hold this session as its token or its audit record vouches for; start a new session"
    )
    return answer
