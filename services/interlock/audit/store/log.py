"""The port of the audit log.

One thread writes a log, in transactions of many requests; any thread reads it. ``seal.py`` decides inside a transaction what may
be written. Every event has a position over all sessions, 0, 1, 2 and so on in the order of commit: the Merkle log (AUD-6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from interlock.audit.store import kept, opened, search, stuck
from interlock.audit.store.vouching import Vouch
from interlock.domain.chain.chain import EventRecord, WindowRecord
from interlock.domain.chain.prefix import ReadAgain
from interlock.domain.errors import KEPT_UNKNOWN, Kind, Refused

HELD_STATUSES = frozenset({"PENDING", "APPROVED", "REJECTED", "EXPIRED", "RELEASED"})
"""States of a held response. Its decision, its hand-out and the time determine which one it is in."""


class StoreFailed(Refused):
    """The log cannot be read or written now (SVC-9). Nothing was kept, unless it is *in_doubt*: lost while the database committed."""

    def __init__(self, reason: str, message: str, *, hint: str, cause: str, in_doubt: bool = False) -> None:
        told = {"cause": cause, **(KEPT_UNKNOWN if in_doubt else {})}
        super().__init__(Kind.UNAVAILABLE, reason, message, metadata=told, retry_after_ms=1000)
        self.hint = hint  # for the operator: it may name a path, so it goes to logs and readiness, not to callers


class Decided(Refused):
    """A held response is decided once and an approval decides once; of two concurrent decisions one wins."""

    def __init__(self) -> None:
        super().__init__(
            Kind.CONFLICT, "HELD_ALREADY_DECIDED", "this response is already decided, or this approval already used"
        )


class HandedOut(Refused):
    """A held response is handed out once."""

    def __init__(self) -> None:
        super().__init__(Kind.CONFLICT, "HELD_ALREADY_RELEASED", "this response is already handed out")


@dataclass(frozen=True)
class Chain:
    """One session's records in one consistent view, ordered by number and sequence."""

    windows: tuple[WindowRecord, ...]
    events: tuple[EventRecord, ...]
    server: str = field(default="", compare=False)
    """What serves the database, as in ``Since``."""

    @property
    def head(self) -> tuple[int, str]:
        """Return sequence and HMAC of the last event; (0, "") before the first."""
        return (self.events[-1].sequence, self.events[-1].hmac) if self.events else (0, "")


@dataclass(frozen=True)
class Since:
    """A session's records from an event on, and others that were asked for, in one consistent view.

    ``events`` begins with the event asked for; ``sealed`` are the windows that the events behind it seal, in their order. ``again`` has a range.
    """

    server: str
    """What serves the database: another value for another file, server, or start of one."""
    events: tuple[EventRecord, ...]
    sealed: tuple[WindowRecord, ...]
    windows: int
    """How many windows the session has."""
    again: ReadAgain


ContentKey = tuple[int, bytes]
"""Version of the master key, and the data key wrapped under that master key."""


@dataclass(frozen=True)
class Contents:
    """A session's encrypted contents by window id, and the key that opens them."""

    key: ContentKey | None
    sealed: Mapping[str, bytes]


@dataclass(frozen=True)
class StoredReport:
    """A report as stored, with the seal that covers it and the key that may open it; ``reports.py`` reads it."""

    window: WindowRecord
    body: bytes
    key: ContentKey | None = None


@dataclass(frozen=True)
class Entry:
    """One entry of the Merkle log. ``event`` is ``None`` if retention truncated its session."""

    position: int
    event: EventRecord | None
    leaf_hash: bytes


@dataclass(frozen=True)
class HeldRow:
    """A response that is or was held. ``sealed`` is empty once dropped; ``approved`` is ``None`` before a decision."""

    window_id: str
    session_id: str
    sealed: bytes
    held_at: str
    expires_at: str
    policy_hash: str
    approved: bool | None = None
    reviewer_id: str = ""
    approval_id: str = ""
    token: str = ""
    decided_at: str = ""
    decision_expires_at: str = ""
    handed_out_at: str = ""

    def status(self, now: str) -> str:
        """Return which of ``HELD_STATUSES`` it is in at *now*. An approval ends with the hold, or earlier by its own expiry."""
        if self.handed_out_at:
            return "RELEASED"
        if self.approved is False:
            return "REJECTED"
        if now >= (min(self.expires_at, self.decision_expires_at) if self.approved else self.expires_at):
            return "EXPIRED"
        return "APPROVED" if self.approved else "PENDING"


@dataclass(frozen=True)
class DeadLetter:
    """Events that a receiver refused, by position, both ends included."""

    sink: str
    first: int
    last: int
    reason: str
    at: str


Checkpoint = tuple[int, str]
"""Size of the log that the checkpoint covers, and the signed note."""


@dataclass(frozen=True)
class Erased:
    """How many rows the erasure of a session deleted."""

    keys: int
    contents: int
    reports: int
    held: int

    def __bool__(self) -> bool:
        return bool(self.keys or self.contents or self.reports or self.held)


class Writing(kept.KeptWriting, stuck.StuckWriting, Protocol):
    """The operations of a request inside a transaction. It sees the writes of earlier requests of the same transaction."""

    def head(self, session_id: str) -> tuple[int, str]:
        """Return sequence and HMAC of a session's last event; (0, "") before the first."""

    def window(self, window_id: str) -> WindowRecord | None:
        """Return a window of any session; its report is not read."""

    def is_continued(self, parent: WindowRecord) -> bool:
        """Return whether a window of the same session has *parent* among its parents."""

    def root_id(self, session_id: str) -> str:
        """Return the id of a session's first window; empty before it."""

    def holds(self, session_id: str, event_type: str) -> bool:
        """Return whether a session has an event of that type."""

    def has_event(self, session_id: str, window_id: str, event_type: str, data_json: str | None = None) -> bool:
        """Return whether a session has an event with exactly these values; ``None``: with any data."""

    def chain(self, session_id: str) -> Chain:
        """Return all records of a session."""

    def since(self, session_id: str, sequence: int, *, again: tuple[int, int] | None = None) -> Since:
        """Return a session's records from the event of *sequence* on, and the events of the range *again*."""

    def add_events(self, events: Sequence[EventRecord]) -> None:
        """Add events; their sequences follow the head's."""

    def add_window(self, window: WindowRecord, report: bytes) -> None:
        """Add a window and its report."""

    def content_key(self, session_id: str) -> ContentKey | None:
        """Return a session's wrapped data key."""

    def add_content_key(self, session_id: str, version: int, wrapped: bytes) -> None:
        """Add a session's data key, wrapped under the master key of that version; once."""

    def add_content(self, session_id: str, window_id: str, sealed: bytes) -> None:
        """Add a window's encrypted content; once."""

    def has_content(self, session_id: str, window_id: str) -> bool:
        """Return whether a window's content is there."""

    def drop_content(self, session_id: str, window_id: str) -> bool:
        """Delete a window's content and return whether there was one. Its CONTENT_DROPPED event comes first."""

    def log_size(self) -> int:
        """Return how many entries the log has."""

    def leaf_hashes(self, start: int, end: int) -> list[bytes]:
        """Return the leaf hashes from *start* up to, and without, *end*; fewer where the log ends before."""

    def nodes(self, level: int, start: int, end: int) -> list[bytes]:
        """Return stored hashes of complete subtrees of ``2**level`` leaves; *level* is 8 or 16."""

    def adopt_unlogged(self, vouch: Vouch, *, after: int = 0) -> int:
        """Give events without a leaf one each, those that *vouch* vouches for; return how far it looked, beginning *after*."""

    def entries(self, start: int, end: int) -> list[Entry]:
        """Return entries by position, from *start* up to, and without, *end*."""

    def named_by_leaf(self, position: int) -> tuple[str, int]:
        """Return the session and the sequence that a leaf names; ("", 0) without a leaf."""

    def hmac_at(self, session_id: str, sequence: int) -> str:
        """Return the HMAC of a session's event; empty if it is not there."""

    def add_checkpoint(self, size: int, note: str) -> None:
        """Add a signed checkpoint."""

    def checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint that was added last."""

    def add_held(self, window_id: str, session_id: str, sealed: bytes, *, expires_at: str, policy_hash: str) -> None:
        """Add the encrypted bytes that a sealed window would be released as; once."""

    def held(self, window_id: str) -> HeldRow | None:
        """Return a held response."""

    def add_decision(
        self, window_id: str, *, approved: bool, reviewer_id: str, approval_id: str, token: str, decided_at: str,
        expires_at: str,
    ) -> None:  # fmt: skip
        """Add a reviewer's decision. Raises ``Decided`` for a second one, and for an approval already used."""

    def add_handout(self, window_id: str, at: str) -> None:
        """Record that a held response is handed out. Raises ``HandedOut`` the second time."""

    def drop_held(self, window_id: str) -> bool:
        """Delete the bytes of a held response and return whether they were there."""

    def destroy_key(self, session_id: str) -> Erased:
        """Delete a session's data key and everything it opens: contents, held responses, reports, kept answers.

        The store refuses this while the session has no CONTENT_ERASED event.
        """

    def truncate(self, session_id: str, up_to_sequence: int) -> int:
        """Delete a session's events up to a sequence and its windows, reports and holds; return the events deleted.

        The store refuses this without a later TRUNCATED event of the session. The leaf hashes stay.
        """

    def positions(self, session_id: str) -> dict[int, int]:
        """Return the position of each of a session's events by sequence, of truncated ones too."""

    def set_cursor(self, sink: str, position: int) -> None:
        """Store the position that a receiver is sent next."""

    def add_dead_letter(self, sink: str, first: int, last: int, reason: str, at: str) -> None:
        """Record that a receiver refused the entries from *first* to *last*."""

    def drop_dead_letter(self, sink: str, first: int) -> bool:
        """Delete a dead letter and return whether there was one."""

    def touch(self) -> None:
        """Write something without meaning, so that the commit shows whether writing works."""


Work = Callable[[Writing], Any]


@dataclass(frozen=True)
class RequestOutcome:
    """The result of one request of a transaction: its value, or the error for which it alone was rolled back."""

    value: Any = None
    error: Exception | None = None


class LogReader(kept.KeptReading, opened.OpenedReading, search.SearchReading, stuck.StuckReading, Protocol):
    """The reading side of a log, for any thread and for other processes than the service."""

    def chain(self, session_id: str) -> Chain:
        """Return all records of a session, with report hashes taken from the stored bytes."""

    def since(self, session_id: str, sequence: int, *, again: tuple[int, int] | None = None) -> Since:
        """Return a session's records from the event of *sequence* on, and the events of the range *again*."""

    def events(self, session_id: str, *, after: int, limit: int) -> list[EventRecord]:
        """Return up to *limit* events whose sequence is above *after*."""

    def report(self, *, window_id: str = "", trail_id: str = "") -> StoredReport | None:
        """Return a report by its window or trail id."""

    def contents(self, session_id: str, window_ids: Sequence[str]) -> Contents:
        """Return the encrypted contents of these windows of a session, and the session's key."""

    def naming(self, root_session_id: str) -> list[str]:
        """Return the sessions whose SESSION_CREATED mentions *root_session_id*, anywhere in its data."""

    def charged_to(self, caller_id: str, since: str) -> list[str]:
        """Return the sessions with windows that cost something, were sealed from *since* on and mention this caller."""

    def log_size(self) -> int:
        """Return how many entries the Merkle log has."""

    def entries(self, start: int, end: int) -> list[Entry]:
        """Return entries by position, from *start* up to, and without, *end*."""

    def leaf_hashes(self, start: int, end: int) -> list[bytes]:
        """Return leaf hashes; fewer where the log ends before."""

    def nodes(self, level: int, start: int, end: int) -> list[bytes]:
        """Return stored hashes of complete subtrees of ``2**level`` leaves; *level* is 8 or 16."""

    def positions(self, session_id: str) -> dict[int, int]:
        """Return the position of each of a session's events by sequence, of truncated ones too."""

    def sessions(self) -> list[str]:
        """Return every session of which there is a leaf, an event or a window, by name."""

    def checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint that was added last."""

    def checkpoints(self) -> list[Checkpoint]:
        """Return all checkpoints in the order in which they were added."""

    def held(self, window_id: str) -> HeldRow | None:
        """Return a held response."""

    def held_list(self, status: str | None, session_id: str, after: str, limit: int, now: str) -> list[HeldRow]:
        """Return up to *limit* held responses of *status* (``None``: any), oldest first, after *after*, without bytes."""

    def held_pending(self, now: str) -> int:
        """Return how many held responses wait for a decision."""

    def expired_unmarked(self, now: str, limit: int) -> list[HeldRow]:
        """Return responses that are no longer pending or approved at *now* but still have their bytes."""

    def cursor(self, sink: str) -> int:
        """Return the position that a receiver is sent next; 0 at first."""

    def dead_letters(self, sink: str) -> list[DeadLetter]:
        """Return the entries that a receiver refused, in order."""

    def session_ids(self, before: str, limit: int, *, after: str = "", erasable: bool) -> list[str]:
        """Return up to *limit* sessions above *after*, by name, whose last event is older than *before*.

        Truncated sessions and the log's own session are left out; with *erasable*, erased sessions too.
        """

    def key_versions(self) -> set[int]:
        """Return the versions of the master key that events, windows and data keys name."""

    def ping(self) -> None:
        """Read something. Raises ``StoreFailed``."""

    def close(self) -> None:
        """Release every connection; a later call opens again."""


class LogWriter(Protocol):
    """The writing side of a log; one thread uses it."""

    def commit(self, works: Sequence[Work]) -> list[RequestOutcome]:
        """Run *works* in one transaction and return after it is durable.

        A work that raises is rolled back alone. Raises ``StoreFailed`` when nothing was kept.
        """

    def close(self) -> None:
        """Release every connection; a later call opens again."""


class AuditLog(LogReader, LogWriter, Protocol):
    """A durable, append-only log."""

    def leads(self, task: str) -> bool:
        """Return whether this process is the one that may run a background task now."""
