"""Sealing windows and recording events, inside the log's transaction (SPEC-011 §2, I4, I5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.audit.requests import Draft, Hold, Note
from interlock.audit.sealing.prefixes import VerifiedChain
from interlock.audit.sealing.verify import ChainBroken
from interlock.audit.store.contents import Vault
from interlock.audit.store.log import Writing
from interlock.domain import ids
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import (
    CHAIN_BROKEN,
    CONTENT_DROPPED,
    WINDOW_SEALED,
    EventRecord,
    Fault,
    Integrity,
    WindowRecord,
    chained,
    content_hash,
    seal_data,
    unchained_window_hmac,
    window_hmac,
)
from interlock.domain.chain.chain_state import ChainState
from interlock.domain.errors import Refused, conflict, invalid
from interlock.domain.held import KEPT
from interlock.runtime.clock import Clock, iso8601
from interlock.runtime.keys.derivation import HMAC, Keyring


def standing_message(standing: ChainState) -> audit_pb2.Standing:
    """Return the state of a session according to its chain, as a message."""
    return audit_pb2.Standing(
        session_budget_micros=standing.budget,
        sealed_windows=standing.sealed,
        started_sessions=standing.started,
        ended=standing.ended,
        streams_until_ms=standing.streams_until_ms,
    )


Head = tuple[int, str]
"""Sequence and HMAC of a session's last event."""


@dataclass(frozen=True)
class Sealed:
    """A window as the log holds it after sealing."""

    window: WindowRecord
    unchained_hmac: str
    integrity: Integrity
    root_window_id: str
    duplicate: bool
    before: Head = (0, "")
    """Where the session's chain ended before it."""
    events: tuple[EventRecord, ...] = ()
    """What was added to the chain; nothing by a request that was sealed before."""

    def message(self, standing: ChainState | None = None) -> audit_pb2.AppendResponse:
        """Return the answer to an append: the seal, and with *standing* the state of the session for its settlement."""
        window = self.window
        return audit_pb2.AppendResponse(
            hmac=window.hmac,
            window_hmac=self.unchained_hmac,
            timestamp=window.timestamp,
            report_hash=window.report_hash,
            trail_id=window.trail_id,
            integrity=common_pb2.ChainIntegrity.ValueType(int(self.integrity)),
            duplicate=self.duplicate,
            root_window_id=self.root_window_id,
            standing=standing_message(standing) if standing else None,
        )


@dataclass(frozen=True)
class Sealer:
    """Makes the records of the log. ``entropy`` returns that many random bytes."""

    keyring: Keyring
    clock: Clock
    entropy: Callable[[int], bytes]

    @property
    def vault(self) -> Vault:
        """Encrypts and opens contents with this deployment's keys."""
        return Vault(self.keyring, self.entropy)

    def seal(
        self, writing: Writing, draft: Draft, *, verified: VerifiedChain, recheck: Callable[[Writing], VerifiedChain]
    ) -> Sealed:
        """Seal a window on a chain that was *verified*, once per window id.

        The head is compared inside the transaction. If another request was committed in between, what came is verified by
        *recheck*.
        """
        head = writing.head(draft.session_id)
        if head != verified.head:
            verified = recheck(writing)
        before = writing.window(draft.window_id)
        if before is not None:
            if before.request_hash != draft.request_hash:
                raise conflict("WINDOW_SEALED_DIFFERENTLY", "this window is already sealed with other content")
            return self.sealed(writing, before, duplicate=True, kept=verified.kept)
        _check_usable(verified, draft)
        _check_place(writing, draft)
        sealed, report = self.vault.seal(writing, draft.session_id, draft.window_id, draft.content, draft.report_json)
        window = replace(
            self._window(draft),
            content_hash=content_hash(sealed) if sealed else "",
            sealed_report_hash=content_hash(report),
            stored_report_hash=content_hash(report),
        )
        sealing = Note(WINDOW_SEALED, audit_pb2.SEVERITY_INFO, canonical_json(seal_data(window)), window.timestamp)
        writing.add_window(window, report)
        if sealed:
            writing.add_content(draft.session_id, draft.window_id, sealed)
        if draft.hold:
            self._hold(writing, draft, draft.hold)
        events = self._add(writing, draft.session_id, draft.window_id, (*draft.notes, sealing), head)
        return replace(self.sealed(writing, window, duplicate=False, kept=True), before=head, events=events)

    def record(self, writing: Writing, session_id: str, window_id: str, notes: Sequence[Note]) -> int:
        """Append events after the session's last one and return the last sequence."""
        head = writing.head(session_id)
        self._add(writing, session_id, window_id, notes, head)
        return head[0] + len(notes)

    def _add(
        self, writing: Writing, session_id: str, window_id: str, notes: Sequence[Note], head: Head
    ) -> tuple[EventRecord, ...]:
        """Append events after *head*, the session's last one, and return them."""
        version, key = self._key(session_id)
        sequence, previous = head
        now = iso8601(self.clock())
        events = [
            EventRecord(
                session_id, position, window_id, note.event_type, note.severity, note.timestamp or now, note.data_json,
                version, "",
            )
            for position, note in enumerate(notes, sequence + 1)
        ]  # fmt: skip
        added = tuple(chained(key, events, previous))
        writing.add_events(added)
        return added

    def drop(self, writing: Writing, session_id: str, window_id: str) -> bool:
        """Delete a window's text and record the deletion in the chain; without the record it would look like a theft.

        The text of a held or halted window stays: a reviewer's decision or the end of the hold deletes it.
        """
        window = writing.window(window_id)
        if window is not None and window.status in KEPT:
            return False
        if not writing.has_content(session_id, window_id):
            return False
        self.record(writing, session_id, window_id, (Note(CONTENT_DROPPED, audit_pb2.SEVERITY_INFO, "{}", ""),))
        return writing.drop_content(session_id, window_id)

    def _hold(self, writing: Writing, draft: Draft, hold: Hold) -> None:
        """Store the bytes that the window would be released as, encrypted, in the transaction that seals it."""
        kept = self.vault.lock_held(writing, draft.session_id, draft.window_id, hold.held)
        expires_at = iso8601(self.clock() + hold.seconds * 1_000_000)
        writing.add_held(draft.window_id, draft.session_id, kept, expires_at=expires_at, policy_hash=hold.policy_hash)

    def incident(self, writing: Writing, session_id: str, broken: ChainBroken) -> None:
        """Append one CHAIN_BROKEN event per session (SPEC-004 §16.4).

        It repairs nothing: the records before it still do not verify. It shows when the break was noticed.
        """
        if not writing.holds(session_id, CHAIN_BROKEN):
            data = canonical_json({**broken.metadata, "index": broken.fault.index, "faults": broken.faults})
            self.record(writing, session_id, "", (Note(CHAIN_BROKEN, audit_pb2.SEVERITY_CRITICAL, data, ""),))

    def _window(self, draft: Draft) -> WindowRecord:
        version, key = self._key(draft.session_id)
        timestamp = iso8601(self.clock())
        return WindowRecord(
            session_id=draft.session_id,
            window_id=draft.window_id,
            window_number=draft.window_number,
            parent_ids=draft.parent_ids,
            response_hash=draft.response_hash,
            report_hash=draft.report_hash,
            risk_level=draft.risk_level,
            charge_micros=draft.charge_micros,
            status=draft.status,
            settle_json=draft.settle_json,
            trail_id=ids.mint("crp_trail_", self.entropy(ids.ENTROPY_BYTES)),
            request_hash=draft.request_hash,
            timestamp=timestamp,
            key_version=version,
            hmac=window_hmac(
                key,
                session_id=draft.session_id,
                window_number=draft.window_number,
                timestamp=timestamp,
                response_hash=draft.response_hash,
                report_hash=draft.report_hash,
                parent_hmacs=draft.parent_hmacs,
            ),
            stored_report_hash="",
        )

    def sealed(self, writing: Writing, window: WindowRecord, *, duplicate: bool, kept: bool) -> Sealed:
        """Return a window of the log with the HMACs and the integrity that its caller is given.

        *kept* is whether nothing of its session was erased.
        """
        key = self.keyring.derive(window.key_version, window.session_id, HMAC)
        if key is None:
            raise ChainBroken(Fault("window", window.window_number, "KEY_UNKNOWN"))
        return Sealed(
            window=window,
            unchained_hmac=unchained_window_hmac(
                key,
                session_id=window.session_id,
                window_number=window.window_number,
                timestamp=window.timestamp,
                response_hash=window.response_hash,
                report_hash=window.report_hash,
            ),
            integrity=window_integrity(window, kept=kept),
            root_window_id=writing.root_id(window.session_id),
            duplicate=duplicate,
        )

    def _key(self, session_id: str) -> tuple[int, bytes]:
        version = self.keyring.current
        key = self.keyring.derive(version, session_id, HMAC)
        assert key is not None
        return version, key


def window_integrity(window: WindowRecord, *, kept: bool) -> Integrity:
    """Return the integrity of a verified chain: a single window has nothing to chain from."""
    if not kept:
        return Integrity.TRUNCATED
    return Integrity.VALID if window.parent_ids else Integrity.UNVERIFIED


def _check_usable(verified: VerifiedChain, draft: Draft) -> None:
    """Refuse to continue a session whose contents or events are gone: no answer could be compared with them.

    Refuse a part of a fan-out that is recorded as failed: its fan-in may have continued without it.
    """
    if not verified.kept:
        raise conflict("CONTENT_ERASED", "the contents of this session were erased; it cannot be continued")
    if draft.pattern == "FAN_OUT" and draft.window_id in verified.failed:
        raise conflict("WINDOW_FAILED", "this window is recorded as failed; it can no longer be sealed")


def _check_place(writing: Writing, draft: Draft) -> None:
    """Refuse a window that does not follow sealed windows of its session (SPEC-004 §9).

    A linear window must be the first to continue its parent: of two concurrent seals the first wins. Fan-outs and
    branches share a parent; a fan-in has several.
    """
    parents = [_parent(writing, draft, parent_id) for parent_id in draft.parent_ids]
    if not parents and writing.root_id(draft.session_id):
        raise _overtaken()
    if draft.pattern == "LINEAR" and any(writing.is_continued(parent) for parent in parents):
        raise _overtaken()
    furthest = max((parent.window_number for parent in parents), default=0)
    if draft.parent_hmacs != tuple(sorted(parent.hmac for parent in parents)):
        raise ChainBroken(Fault("window", furthest, "PARENT_HMAC_MISMATCH"))
    if draft.window_number != furthest + 1:
        raise invalid("INVALID_WINDOW_NUMBER", "a window's number is its furthest parent's plus one")


def _parent(writing: Writing, draft: Draft, parent_id: str) -> WindowRecord:
    """Return a parent. A missing one is a lost record: the session's state names only acknowledged windows."""
    parent = writing.window(parent_id)
    if parent is None or parent.session_id != draft.session_id:
        raise ChainBroken(Fault("window", draft.window_number - 1, "MISSING_PARENT"))
    return parent


def _overtaken() -> Refused:
    return conflict("CHAIN_CONFLICT", "another window was sealed first, or this one is a replay")
