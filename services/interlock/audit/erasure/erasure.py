"""Erasing a session: destroy its data key and record that in a signed entry of its chain (AUD-5, reliability.md A-44).

The chain itself stays: hashes, figures and who decided what. The event comes first and the deletion after it, in one
transaction; the store refuses the deletion without the event.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import structlog
from prometheus_client import Counter

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.requests import Note
from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.seal import Sealer
from interlock.audit.sealing.verify import no_session, require_valid_chain
from interlock.audit.store.log import Erased, Writing
from interlock.domain import ids
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.marks import CONTENT_ERASED, TRUNCATED, runs
from interlock.domain.errors import forbidden, invalid
from interlock.domain.merkle.entries import LOG_SESSION
from interlock.runtime import failpoints

log = structlog.get_logger()

ERASED = Counter("interlock_audit_sessions_erased", "Sessions whose contents were erased, by why.", ["reason"])
TRUNCATED_TOTAL = Counter("interlock_audit_sessions_truncated", "Sessions whose events retention removed.")

RETENTION = "RETENTION"
REASONS = frozenset({"ERASURE_REQUEST", "CONSENT_WITHDRAWN", "LEGAL_ORDER", "OPERATOR_DECISION"})
"""Reasons that a person may give for erasing a session; retention has its own."""

_NAME = re.compile(r"[A-Za-z0-9._@+:=/-]{1,256}", re.ASCII)


def erase(
    writing: Writing, sealer: Sealer, session_id: str, *, reason: str, approval_id: str = "", reviewer_id: str = ""
) -> bool:
    """Destroy a session's data key and return whether there was anything to erase.

    A broken chain is not erased: its missing parts could no longer be told from the erased ones.
    """
    chain = writing.chain(session_id)
    if not chain.events and not chain.windows:
        raise no_session()
    if writing.holds(session_id, CONTENT_ERASED) or writing.holds(session_id, TRUNCATED):
        return False
    require_valid_chain(chain, session_id, sealer.keyring)
    data = {
        "reason": reason, "approval_id": approval_id, "reviewer_id": reviewer_id, "head": chain.head[1],
        "contents": sum(1 for window in chain.windows if window.content_hash), "reports": len(chain.windows),
    }  # fmt: skip
    sealer.record(writing, session_id, "", (_mark(CONTENT_ERASED, data),))
    failpoints.reached_sync("audit.before_erase")
    erased: Erased = writing.destroy_key(session_id)
    log.info("audit.session.erased", session_id=session_id, reason=reason, count=erased.reports)
    return True


def truncate(writing: Writing, sealer: Sealer, session_id: str) -> int:
    """Remove a session's events, windows and reports after a mark that names them; return how many events went.

    The mark is the next event of the session's own chain. Its HMAC is chained to the last removed event, and it names the
    positions of all removed events, so that an auditor of the Merkle log knows which leaves may lack their bytes. It
    repeats what the rest of the log needs: the charges, the tip and the number of windows.
    """
    chain = writing.chain(session_id)
    if not chain.events or session_id == LOG_SESSION or chain.events[-1].event_type == TRUNCATED:
        return 0
    found = require_valid_chain(chain, session_id, sealer.keyring)
    last, head = chain.head
    positions = writing.positions(session_id)
    if any(sequence not in positions for sequence in range(1, last + 1)):
        raise invalid("POSITIONS_MISSING", "an event of this session has no position in the Merkle log")
    data = {
        "reason": RETENTION, "last_sequence": last, "head": head, "windows": found.windows,
        "charged_micros": found.charged_micros, "chain_tip": found.chain_tip,
        "positions": runs([positions[sequence] for sequence in range(1, last + 1)]),
    }  # fmt: skip
    sealer.record(writing, session_id, "", (_mark(TRUNCATED, data),))
    failpoints.reached_sync("audit.before_erase")
    gone = writing.truncate(session_id, last)
    log.info("audit.session.truncated", session_id=session_id, count=gone)
    return gone


def _mark(event_type: str, data: dict[str, Any]) -> Note:
    return Note(event_type, audit_pb2.SEVERITY_WARN, canonical_json(data), "")


class Eraser:
    """Erases a session on a reviewer's approval."""

    def __init__(self, appender: Appender, sealer: Sealer) -> None:
        self._appender, self._sealer = appender, sealer

    async def erase(self, request: audit_pb2.EraseSessionRequest) -> audit_pb2.EraseSessionResponse:
        """Destroy a session's data key. The caller has verified the approval: one person asks, another approves."""
        session_id = ids.check("crp_sess_", request.session_id)
        if session_id == LOG_SESSION:
            raise forbidden("LOG_SESSION", "the entries about the log itself are never erased")
        reason = _reason(request)
        work = partial(
            erase, sealer=self._sealer, session_id=session_id, reason=reason, approval_id=request.approval_id,
            reviewer_id=request.reviewer_id,
        )  # fmt: skip
        erased = await self._appender.submit(work)
        await failpoints.reached("audit.after_erase")
        if erased:
            ERASED.labels(reason).inc()
        return audit_pb2.EraseSessionResponse(erased=erased)


def _reason(request: audit_pb2.EraseSessionRequest) -> str:
    """Return the reason of an erasure. Refused without an approval, or with a reason that is not on the list."""
    if not request.approval_id or not request.reviewer_id:
        raise forbidden("APPROVAL_REQUIRED", "a session is erased on a reviewer's approval")
    if not _NAME.fullmatch(request.approval_id) or not _NAME.fullmatch(request.reviewer_id):
        raise invalid("INVALID_APPROVAL", "an approval id and a reviewer's name have 1 to 256 printable characters")
    reason = request.reason or "ERASURE_REQUEST"
    if reason not in REASONS:
        raise invalid("INVALID_REASON", "a reason is one of " + ", ".join(sorted(REASONS)))
    return reason
