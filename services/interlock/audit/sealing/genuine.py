"""Which entries this deployment sealed: an event counts only after its session's HMAC was checked (AUD-6, A-27).

Whoever may write to the database can add rows. A leaf and a checkpoint would say that such a row belongs to the log, and an
auditor, who has no key of the HMAC chain, could not tell. So an event without a leaf gets one only if its HMAC is right, and a
checkpoint is signed only over entries whose HMACs were checked in the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from interlock.audit.sealing.verify import key_of
from interlock.audit.store.log import Entry, StoreFailed, Writing
from interlock.domain.chain.chain import EventRecord, event_fault, event_faults
from interlock.domain.chain.marks import read_marks
from interlock.domain.merkle.entry import encode_entry
from interlock.domain.merkle.tree import leaf_hash
from interlock.runtime.keys.derivation import Keyring

LOG_FORGED = "LOG_FORGED"
PAGE = 1024
MOST_AT_ONCE = 16_384
"""Entries that are checked, and signed, in one transaction."""


@dataclass(frozen=True)
class Genuine:
    """Checks entries with the keys of this deployment. ``leaf_of`` hashes an event as the log does."""

    keyring: Keyring
    leaf_of: Callable[[EventRecord], bytes] = lambda event: leaf_hash(encode_entry(event))

    def __call__(self, event: EventRecord, previous: str) -> bool:
        """Return whether *event* was sealed after the event whose HMAC is *previous*; empty for the first one."""
        return not event_fault(event, previous, key_of(self.keyring, event.session_id))

    def require(self, writing: Writing, start: int, end: int) -> None:
        """Refuse with LOG_FORGED unless every entry from *start* up to *end* is one that this deployment sealed."""
        tips: dict[str, tuple[int, str]] = {}
        good: set[str] = set()
        for entry in _entries(writing, start, end):
            reason = self._fault(writing, entry, tips, good)
            if reason:
                raise _forged(entry.position, reason)

    def _fault(self, writing: Writing, entry: Entry, tips: dict[str, tuple[int, str]], good: set[str]) -> str:
        event = entry.event
        if event is None:
            session_id, sequence = writing.named_by_leaf(entry.position)
            return "" if self._truncated(writing, session_id, sequence) else "MISSING_BYTES"
        if self.leaf_of(event) != entry.leaf_hash:
            return "ENTRY_MISMATCH"
        sequence, previous = tips.get(event.session_id) or (event.sequence - 1, _previous(writing, event))
        if sequence != event.sequence - 1:
            return "SEQUENCE_GAP"
        tips[event.session_id] = (event.sequence, event.hmac)
        if self(event, previous) or event.session_id in good:
            return ""
        # The event before it may be gone by retention: then the whole of what is left, with its mark, has to be right.
        if not previous and self._truncated(writing, event.session_id, event.sequence - 1):
            good.add(event.session_id)
            return ""
        return "HMAC_MISMATCH"

    def _truncated(self, writing: Writing, session_id: str, sequence: int) -> bool:
        """Return whether a mark of retention in a chain that verifies declares that event removed."""
        events = sorted(writing.chain(session_id).events, key=lambda event: event.sequence)
        marks = read_marks(events)
        key = key_of(self.keyring, session_id)
        faults = event_faults(events, key, sequence=marks.sequence, previous=marks.head)
        return sequence <= marks.sequence and next(faults, None) is None


def _entries(writing: Writing, start: int, end: int) -> Iterator[Entry]:
    for first in range(start, end, PAGE):
        last = min(first + PAGE, end)
        found: Iterable[Entry] = writing.entries(first, last)
        yield from _complete(found, first, last)


def _complete(found: Iterable[Entry], first: int, last: int) -> Iterator[Entry]:
    position = first
    for entry in found:
        if entry.position != position:
            raise _forged(position, "MISSING_ENTRY")
        position += 1
        yield entry
    if position != last:
        raise _forged(position, "MISSING_ENTRY")


def _previous(writing: Writing, event: EventRecord) -> str:
    return writing.hmac_at(event.session_id, event.sequence - 1) if event.sequence > 1 else ""


def _forged(position: int, reason: str) -> StoreFailed:
    failed = StoreFailed(
        LOG_FORGED,
        "the audit log holds an entry that this deployment did not seal; nothing more is signed",
        hint=f"entry {position}: {reason}. Run `interlock audit fsck`; somebody wrote into the database",
        cause=LOG_FORGED,
    )
    failed.metadata |= {"position": str(position), "fault": reason}
    failed.retry_after_ms = 0
    return failed
