"""Responses held for a reviewer: decided once, handed out once, denied when time runs out (SPEC-012 §6; I12, A-30).

Each step is one transaction that writes its event into the session's chain and changes the row, so that neither exists
without the other. The clock is this service's and is read at every access, however far the clean-up task has come.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog
from prometheus_client import Counter, Gauge

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.audit.holds import rule
from interlock.audit.holds.rule import Decision, ReleaseClaim, Released
from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.chains import VerifiedChains
from interlock.audit.sealing.readers import Readers
from interlock.audit.sealing.seal import Head, Sealer
from interlock.audit.store.log import AuditLog, HeldRow
from interlock.domain import held, ids
from interlock.domain.chain.chain import EventRecord, WindowRecord
from interlock.domain.errors import Refused, invalid
from interlock.runtime import failpoints
from interlock.runtime.clock import iso8601

log = structlog.get_logger()

DECISIONS = Counter("interlock_audit_held_decisions", "Held responses by what became of them.", ["outcome"])
PENDING = Gauge(
    "interlock_oversight_pending", "Held responses that wait for a reviewer's decision, a second ago at most."
)

PERIOD_S = 1.0
PAGE = 50
MOST = 200
TASK = "held"

_HASH = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_STATUSES = {
    audit_pb2.HELD_STATUS_PENDING: "PENDING",
    audit_pb2.HELD_STATUS_APPROVED: "APPROVED",
    audit_pb2.HELD_STATUS_REJECTED: "REJECTED",
    audit_pb2.HELD_STATUS_EXPIRED: "EXPIRED",
    audit_pb2.HELD_STATUS_RELEASED: "RELEASED",
}
_NUMBERS = {name: number for number, name in _STATUSES.items()}


class HeldResponses:
    """Lists, shows, decides and hands out held responses; ends those whose time is over."""

    def __init__(
        self, audit_log: AuditLog, readers: Readers, chains: VerifiedChains, appender: Appender, sealer: Sealer, *,
        require_anchored: Callable[[], None], viewed: Callable[[str, str, Sequence[str]], Awaitable[None]],
    ) -> None:  # fmt: skip
        """*require_anchored* refuses a release while too much of the log is not anchored; *viewed* records a person's look at windows."""
        self._log, self._readers, self._chains = audit_log, readers, chains
        self._appender, self._sealer, self._require_anchored = appender, sealer, require_anchored
        self._viewed = viewed

    async def list_held(self, request: audit_pb2.ListHeldRequest) -> audit_pb2.ListHeldResponse:
        """Return a page of held responses, without their text."""
        limit = request.limit or PAGE
        if not 1 <= limit <= MOST:
            raise invalid("INVALID_LIMIT", f"a page has 1 to {MOST} items", field="limit")
        session_id = request.session_id and ids.check("crp_sess_", request.session_id)
        after = request.after and ids.check("crp_win_", request.after)
        now = self._now()
        rows = await self._readers.run(
            partial(self._log.held_list, _STATUSES.get(request.status), session_id, after, limit + 1, now)
        )
        items = await self._readers.run(lambda: [self._item(row, now) for row in rows[:limit]])
        return audit_pb2.ListHeldResponse(items=items, more=len(rows) > limit)

    async def get(self, request: audit_pb2.GetHeldRequest) -> audit_pb2.GetHeldResponse:
        """Return a held response from a chain that verifies: a reviewer must not see a response that was tampered with."""
        row = await self._row(request.window_id)
        chain = await self._chains.read(row.session_id)
        now = self._now()
        item = await self._readers.run(partial(self._item, row, now))
        item.reason = _reason(chain.events, row.window_id)
        waiting = row.status(now) in {"PENDING", "APPROVED"}
        if waiting and not row.sealed:  # erased: there is nothing left to decide
            item.status, item.token = audit_pb2.HELD_STATUS_EXPIRED, ""
        if request.state_only or not (waiting and row.sealed):
            return audit_pb2.GetHeldResponse(item=item)
        if request.viewer:
            await self._viewed(request.viewer, row.session_id, [row.window_id])
        return audit_pb2.GetHeldResponse(item=item, held=await self._readers.run(partial(self._opened, row)))

    async def decide(self, request: audit_pb2.DecideHeldRequest) -> audit_pb2.DecideHeldResponse:
        """Record a decision; of two concurrent ones the second finds the first."""
        row = await self._row(request.window_id)
        decision = _decision(request)
        head = await self._verified_head(row.session_id)
        await failpoints.reached("audit.before_decision")
        decided: HeldRow = await self._appender.submit(
            partial(rule.decide, self._sealer, decision=decision, verified=head), size=request.ByteSize()
        )
        await failpoints.reached("audit.after_decision")
        DECISIONS.labels("approved" if decision.approved else "rejected").inc()
        now = self._now()
        return audit_pb2.DecideHeldResponse(item=await self._readers.run(partial(self._item, decided, now)))

    async def release(self, request: audit_pb2.ReleaseHeldRequest) -> audit_pb2.ReleaseHeldResponse:
        """Hand out an approved response once, after its event is durable."""
        self._require_anchored()
        claim = _claim(request)
        head = await self._verified_head(claim.session_id)
        await failpoints.reached("audit.before_handout")
        released: Released = await self._appender.submit(
            partial(rule.release, self._sealer, claim=claim, verified=head), size=request.ByteSize()
        )
        await failpoints.reached("audit.after_handout")
        DECISIONS.labels("repeated" if released.repeated else "released").inc()
        now = self._now()
        item = await self._readers.run(partial(self._item, released.row, now))
        return audit_pb2.ReleaseHeldResponse(held=released.held, item=item, sealed=released.sealed.message())

    async def watch(self) -> None:
        """Deny responses that were not decided in time and delete bytes no longer needed, until cancelled."""
        told = ""
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                await self.end_overdue()
                PENDING.set(await self._readers.run(partial(self._log.held_pending, self._now())))
                told = ""
            except Refused as refused:
                if told != refused.reason:  # once, not every second for as long as a disk is full
                    log.warning("held.cleanup_failed", reason=refused.reason)
                told = refused.reason
            except Exception:  # a defect here must not end the task; every access still checks the time itself
                log.exception("held.cleanup_defect")

    async def end_overdue(self) -> int:
        """Write OVERSIGHT_EXPIRED for each hold that ended; drop its bytes and those of responses handed out long ago.

        Returns how many rows it ended.
        """
        if not await self._readers.run(partial(self._log.leads, TASK)):
            return 0
        over = await self._readers.run(partial(self._log.expired_unmarked, self._now(), MOST))
        ended = 0
        for row in over:
            work, outcome = (rule.clear, "cleared") if row.handed_out_at else (rule.expire, "expired")
            try:
                done = bool(await self._appender.submit(partial(work, self._sealer, window_id=row.window_id)))
            except Refused:
                raise
            except Exception:  # one unreadable row must not hold up the others
                log.exception("held.cleanup_defect", window_id=row.window_id)
                continue
            DECISIONS.labels(outcome).inc(done)
            ended += done
        return ended

    def _now(self) -> str:
        return iso8601(self._sealer.clock())

    async def _row(self, window_id: str) -> HeldRow:
        row = await self._readers.run(partial(self._log.held, ids.check("crp_win_", window_id)))
        if row is None:
            raise rule.unknown()
        return row

    async def _verified_head(self, session_id: str) -> Head:
        """Return the head of a chain that verifies; with a broken one nothing is decided or handed out."""
        return (await self._chains.read(session_id)).head

    def _opened(self, row: HeldRow) -> bytes:
        """Return the bytes of a held response. A session erased in the meantime has no key left."""
        key = self._log.contents(row.session_id, ()).key
        if key is None:
            raise rule.unknown()
        return self._sealer.vault.open_held(row.session_id, row.window_id, row.sealed, key)

    def _item(self, row: HeldRow, now: str) -> audit_pb2.HeldItem:
        stored = self._log.report(window_id=row.window_id)
        window = stored.window if stored is not None else None
        approved = row.status(now) == "APPROVED"
        return audit_pb2.HeldItem(
            session_id=row.session_id,
            root_session_id=_root_of(window) or row.session_id,
            window_id=row.window_id,
            status=_NUMBERS[row.status(now)],
            held_at=row.held_at,
            expires_at=row.expires_at,
            risk_level=common_pb2.RiskLevel.ValueType(window.risk_level if window else 0),
            response_hash=window.response_hash if window else "",
            policy_hash=row.policy_hash,
            reviewer_id=row.reviewer_id,
            approval_id=row.approval_id,
            decided_at=row.decided_at,
            token=row.token if approved else "",
        )


def _root_of(window: WindowRecord | None) -> str:
    try:
        settle = json.loads(window.settle_json) if window else {}
    except ValueError:
        return ""
    root = settle.get("rootSessionId") if isinstance(settle, dict) else None
    return root if isinstance(root, str) else ""


def _reason(events: tuple[EventRecord, ...], window_id: str) -> str:
    decided = {"OVERSIGHT_APPROVED", "OVERSIGHT_REJECTED"}
    found = [json.loads(e.data_json) for e in events if e.window_id == window_id and e.event_type in decided]
    return str(found[-1].get("reason", "")) if found else ""


def _decision(request: audit_pb2.DecideHeldRequest) -> Decision:
    allowed = held.APPROVAL_REASONS if request.approved else held.REJECTION_REASONS
    if request.reason and request.reason not in allowed:
        raise invalid("INVALID_REASON", f"a reason is one of {', '.join(allowed)}", field="reason")
    return Decision(
        window_id=ids.check("crp_win_", request.window_id),
        approved=request.approved,
        reviewer_id=request.reviewer_id,
        approval_id=request.approval_id,
        token=request.token,
        response_hash=_hash("response_hash", request.response_hash),
        expires_at=request.expires_at,
        reason=request.reason,
    )


def _claim(request: audit_pb2.ReleaseHeldRequest) -> ReleaseClaim:
    return ReleaseClaim(
        session_id=ids.check("crp_sess_", request.session_id),
        window_id=ids.check("crp_win_", request.window_id),
        approval_id=request.approval_id,
        reviewer_id=request.reviewer_id,
        response_hash=_hash("response_hash", request.response_hash),
        digest=_hash("claim", request.claim),
    )


def _hash(what: str, text: str) -> str:
    if not _HASH.fullmatch(text):
        raise invalid("INVALID_HASH", f"{what} is sha256: and 64 hex digits", field=what)
    return text
