"""The rules of a held response, inside the log's transaction: decide, release, expire (SPEC-012 §6.2; I12)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.requests import Note
from interlock.audit.sealing.seal import Head, Sealed, Sealer
from interlock.audit.sealing.verify import require_valid_chain
from interlock.audit.store.log import Decided, HandedOut, HeldRow, Writing
from interlock.domain import approval, held
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import CONTENT_DROPPED, WindowRecord, content_hash
from interlock.domain.chain.marks import CONTENT_ERASED
from interlock.domain.errors import Refused, conflict, forbidden, not_found, unauthenticated, unavailable
from interlock.domain.signed import encoded
from interlock.runtime.clock import iso8601

APPROVED, REJECTED, EXPIRED = "OVERSIGHT_APPROVED", "OVERSIGHT_REJECTED", "OVERSIGHT_EXPIRED"
RELEASED, REPEATED = "RESPONSE_RELEASED", "RESPONSE_REPEATED"


@dataclass(frozen=True)
class Decision:
    """A reviewer's decision. The caller has verified its signature."""

    window_id: str
    approved: bool
    reviewer_id: str
    approval_id: str
    token: str
    response_hash: str
    expires_at: str
    reason: str


@dataclass(frozen=True)
class ReleaseClaim:
    """A client's claim to a held response by an approval; ``digest`` is the hash of what it presented."""

    session_id: str
    window_id: str
    approval_id: str
    reviewer_id: str
    response_hash: str
    digest: str


@dataclass(frozen=True)
class Released:
    """A response that is handed out, with its row afterwards and its seal."""

    row: HeldRow
    held: bytes
    sealed: Sealed
    repeated: bool


def decide(sealer: Sealer, writing: Writing, *, decision: Decision, verified: Head) -> HeldRow:
    """Write a decision and its event. A repeated decision, by its approval's id, returns the one that stands.

    Refused with HELD_ALREADY_DECIDED, HOLD_EXPIRED, RESPONSE_HASH_MISMATCH or APPROVAL_MISMATCH.
    """
    row, window = _found(writing, decision.window_id)
    _require_verified(sealer, writing, row.session_id, verified)
    now = iso8601(sealer.clock())
    if row.approved is not None:
        if row.approval_id == decision.approval_id and row.approved == decision.approved:
            return row
        raise Decided
    if row.status(now) == "EXPIRED" or not row.sealed:
        raise _over(writing, row)
    _same_response(window, decision.response_hash)
    signed = _stated(decision, row, window)
    kind = APPROVED if decision.approved else REJECTED
    severity = audit_pb2.SEVERITY_WARN if decision.approved else audit_pb2.SEVERITY_INFO
    _record(sealer, writing, row, kind, severity, **_event_data(decision, signed))
    writing.add_decision(
        row.window_id, approved=decision.approved, reviewer_id=decision.reviewer_id, approval_id=decision.approval_id,
        token=decision.token if decision.approved else "", decided_at=now, expires_at=decision.expires_at,
    )  # fmt: skip
    if not decision.approved:
        _forget(sealer, writing, row)
    return writing.held(row.window_id) or row


def release(sealer: Sealer, writing: Writing, *, claim: ReleaseClaim, verified: Head) -> Released:
    """Mark an approved response as handed out, write that into the chain, and return it.

    For a minute the same claim gets it again: a broken connection loses no answer, and no other claim succeeds.
    Refused with HELD_NOT_FOUND, HELD_REJECTED, HOLD_EXPIRED, HELD_NOT_APPROVED, APPROVAL_MISMATCH,
    RESPONSE_HASH_MISMATCH or HELD_ALREADY_RELEASED.
    """
    row, window = _found(writing, claim.window_id)
    if row.session_id != claim.session_id:
        raise unknown()
    _require_verified(sealer, writing, row.session_id, verified)
    now_us = sealer.clock()
    status = row.status(iso8601(now_us))
    repeated = status == "RELEASED"
    _require_approved(writing, row, status)
    if (row.approval_id, row.reviewer_id) != (claim.approval_id, claim.reviewer_id):
        raise (
            HandedOut
            if repeated
            else unauthenticated(
                "APPROVAL_MISMATCH", "the response was approved by another approval than this one", field="approval"
            )
        )
    _same_response(window, claim.response_hash)
    _require_on_record(writing, row, now_us)
    left = bool(_events(writing, row, RELEASED))  # the chain decides: deleting the row undoes nothing
    if left and not (repeated and _may_repeat(writing, row, claim, now_us)):
        raise HandedOut
    plain = _opened(sealer, writing, row, window)
    _record(
        sealer, writing, row, REPEATED if repeated else RELEASED, audit_pb2.SEVERITY_WARN,
        approval_id=row.approval_id, reviewer_id=row.reviewer_id, response_hash=window.response_hash, claim=claim.digest,
    )  # fmt: skip
    if not repeated:
        writing.add_handout(row.window_id, iso8601(now_us))
    kept = not writing.holds(row.session_id, CONTENT_ERASED)
    sealed = sealer.sealed(writing, window, duplicate=True, kept=kept)
    return Released(writing.held(row.window_id) or row, plain, sealed, repeated)


def expire(sealer: Sealer, writing: Writing, *, window_id: str) -> bool:
    """Deny a response whose time is over and record it in the chain; return ``False`` if there is nothing to deny."""
    row = writing.held(window_id)
    if row is None or row.status(iso8601(sealer.clock())) != "EXPIRED" or _events(writing, row, EXPIRED):
        return False
    _record(
        sealer, writing, row, EXPIRED, audit_pb2.SEVERITY_WARN, held_at=row.held_at, expires_at=row.expires_at,
        approval_id=row.approval_id or None,
    )  # fmt: skip
    _forget(sealer, writing, row)
    return True


def clear(sealer: Sealer, writing: Writing, *, window_id: str) -> bool:
    """Delete the bytes of a response that was handed out more than a minute ago; return whether they were there.

    The window's content stays: the client was given it, so later answers are compared with it.
    """
    row = writing.held(window_id)
    if row is None or not row.handed_out_at or _age_s(row.handed_out_at, sealer.clock()) <= held.REPEAT_S:
        return False
    return writing.drop_held(window_id)


def unknown() -> Refused:
    """Return the refusal of a window that holds no response for this caller."""
    return not_found("HELD_NOT_FOUND", "there is no held response of that window")


def _found(writing: Writing, window_id: str) -> tuple[HeldRow, WindowRecord]:
    row, window = writing.held(window_id), writing.window(window_id)
    if row is None or window is None or window.session_id != row.session_id:
        raise unknown()
    return row, window


def _require_verified(sealer: Sealer, writing: Writing, session_id: str, verified: Head) -> None:
    if writing.head(session_id) != verified:
        require_valid_chain(writing.chain(session_id), session_id, sealer.keyring)


def _require_approved(writing: Writing, row: HeldRow, status: str) -> None:
    if status == "REJECTED":
        raise forbidden("HELD_REJECTED", "a reviewer rejected this response", reviewer_id=row.reviewer_id)
    if status == "EXPIRED" or (status == "APPROVED" and not row.sealed):
        raise _over(writing, row)
    if status == "PENDING":
        raise forbidden("HELD_NOT_APPROVED", "no reviewer has approved this response yet")


def _require_on_record(writing: Writing, row: HeldRow, now_us: int) -> None:
    """Refuse an approval that is not in the chain: write access to the tables must not allow to approve or to prolong."""
    for data in _events(writing, row, APPROVED):
        if data["approval_id"] == row.approval_id:
            if not row.handed_out_at and now_us >= cast("int", data["approval_expires"]) * 1_000_000:
                raise _over(writing, row)
            return
    raise conflict("APPROVAL_NOT_ON_RECORD", "the session's chain holds no such approval")


def _events(writing: Writing, row: HeldRow, kind: str) -> list[dict[str, object]]:
    events = writing.chain(row.session_id).events
    return [json.loads(e.data_json) for e in events if (e.window_id, e.event_type) == (row.window_id, kind)]


def _over(writing: Writing, row: HeldRow) -> Refused:
    if writing.holds(row.session_id, CONTENT_ERASED):
        return conflict("CONTENT_ERASED", "the session was erased, together with its held responses")
    return forbidden("HOLD_EXPIRED", "the hold has ended; the response is denied and deleted")


def _same_response(window: WindowRecord, response_hash: str) -> None:
    if response_hash != window.response_hash:
        raise conflict("RESPONSE_HASH_MISMATCH", "the hash is not that of the held response")


def _stated(decision: Decision, row: HeldRow, window: WindowRecord) -> approval.ApprovalToken:
    """Return the decision's token if it states this decision. Its signature was checked before."""
    signed = approval.read(decision.token)
    said, action = signed.approval, approval.RELEASE if decision.approved else approval.REJECT
    scope = {
        "session": row.session_id, "window": row.window_id, "response": window.response_hash, "policy": row.policy_hash,
    }  # fmt: skip
    stated = (said.action, said.approval_id, said.reviewer, dict(said.scope))
    if stated != (action, decision.approval_id, decision.reviewer_id, scope):
        raise unauthenticated("APPROVAL_MISMATCH", "the approval does not state this decision", field="scope")
    return signed


def _event_data(decision: Decision, signed: approval.ApprovalToken) -> Mapping[str, object]:
    """Return the event's data: everything an auditor needs to check the reviewer's signature without this service."""
    said = signed.approval
    return {
        "approval_id": said.approval_id, "reviewer_id": said.reviewer, "response_hash": said.scope["response"],
        "policy_hash": said.scope["policy"], "reason": decision.reason or None, "approval_timestamp": said.issued_at,
        "approval_expires": said.expires_at, "signature": encoded(signed.signature).decode("ascii"),
    }  # fmt: skip


def _may_repeat(writing: Writing, row: HeldRow, claim: ReleaseClaim, now_us: int) -> bool:
    """Return whether this claim was served within the last minute and may be served again."""
    if not row.sealed or _age_s(row.handed_out_at, now_us) > held.REPEAT_S:
        return False
    return [data["claim"] for data in _events(writing, row, RELEASED)] == [claim.digest]


def _age_s(since: str, now_us: int) -> float:
    return now_us / 1_000_000 - datetime.fromisoformat(since).astimezone(UTC).timestamp()


def _opened(sealer: Sealer, writing: Writing, row: HeldRow, window: WindowRecord) -> bytes:
    """Return the bytes, if they are the sealed response."""
    key = writing.content_key(row.session_id)
    if key is None:
        raise unknown()
    plain = sealer.vault.open_held(row.session_id, row.window_id, row.sealed, key)
    try:
        matches = content_hash(held.unpacked(plain).body) == window.response_hash
    except ValueError:
        matches = False
    if not matches:
        raise unavailable("HELD_UNREADABLE", "the held bytes are not the sealed response", retry_after_ms=0)
    return plain


def _record(
    sealer: Sealer, writing: Writing, row: HeldRow, kind: str, severity: audit_pb2.Severity.ValueType, **data: object
) -> None:  # fmt: skip
    fields = {name: value for name, value in data.items() if value is not None}
    sealer.record(writing, row.session_id, row.window_id, (Note(kind, int(severity), canonical_json(fields), ""),))


def _forget(sealer: Sealer, writing: Writing, row: HeldRow) -> None:
    """Delete a response that no one will be given, and its text, which later windows would be compared with."""
    writing.drop_held(row.window_id)
    if writing.has_content(row.session_id, row.window_id):
        note = Note(CONTENT_DROPPED, audit_pb2.SEVERITY_INFO, "{}", "")
        sealer.record(writing, row.session_id, row.window_id, (note,))
        writing.drop_content(row.session_id, row.window_id)
