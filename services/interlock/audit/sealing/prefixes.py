"""The chains that this process verified, so that a call verifies what came since (ATT-4; docs/reliability.md, "How often a
chain is verified").

A chain is verified whole where this process does not know it, where what serves the database or a master key is another one, where
its prefix was not used for a while, where it does not simply continue, and where a part that is read again is not what was
verified. Whatever is found then is the verdict; a prefix never overrules it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from prometheus_client import Counter, Gauge

from interlock.audit.sealing.verify import key_of, require_valid_chain
from interlock.audit.store.log import Chain, Since
from interlock.domain.chain.chain import (
    CONTENT_DROPPED,
    RESPONSE_RELEASED,
    WINDOW_FAILED,
    EventRecord,
    WindowRecord,
)
from interlock.domain.chain.chain_state import ChainState
from interlock.domain.chain.marks import CONTENT_ERASED, TRUNCATED
from interlock.domain.chain.prefix import Link, Prefix, continues, digest_of_event, link_of
from interlock.runtime.keys.derivation import Keyring

WINDOWS_KEPT = 32_768
"""Windows that the prefixes of a process hold together, about 35 MiB. A session counts as ``SESSION_WEIGHT`` more."""
SESSION_WEIGHT = 8
IDLE_S = 600.0
"""After this long without use a chain is verified whole again, seconds."""
WITHIN = 32
"""Every stored record of a session is read again within so many of its windows."""

Again = Literal["due", "once", "short"]
"""What of a verified chain is read again: the parts that are due, those unless they were since the last window, or a short chain
alone."""

VERIFICATIONS = Counter(
    "interlock_audit_chain_verifications", "Verifications of a session's chain, by how much was verified.", ["extent"]
)
CONTINUED, WHOLE = VERIFICATIONS.labels("continued"), VERIFICATIONS.labels("whole")
PREFIX_WINDOWS = Gauge("interlock_audit_prefix_windows", "Windows in the verified prefixes that this process keeps.")


class Records(Protocol):
    """Reads the records of a session: the log, or a transaction on it."""

    def chain(self, session_id: str) -> Chain:
        """Return all records."""

    def since(self, session_id: str, sequence: int, *, again: tuple[int, int] | None = None) -> Since:
        """Return the records from the event of *sequence* on, and the events of the range *again*."""


@dataclass(frozen=True)
class VerifiedChain:
    """What a chain that verifies says. Of the sets there is what concerns the windows that were asked for."""

    head: tuple[int, str]
    """Sequence and HMAC of its last event."""
    state: ChainState
    kept: bool
    """Whether nothing of it was erased or truncated."""
    failed: frozenset[str]
    links: Mapping[str, Link] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    released: frozenset[str] = frozenset()


@dataclass
class _Known:
    """A session's prefix, and what it rests on."""

    prefix: Prefix
    server: str
    basis: object
    used: float
    weight: int = 0
    read_again: bool = False
    """Whether parts that were due have been read again since the last window."""
    lock: threading.Lock = field(default_factory=threading.Lock)


class Prefixes:
    """The verified prefixes of a process; any thread may ask."""

    def __init__(
        self, keyring: Keyring, *, within: int = WITHIN, windows_kept: int = WINDOWS_KEPT, idle_s: float = IDLE_S,
        rests_on: Callable[[], object] = lambda: None, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """*within* is in how many windows every record is read again; *clock* counts seconds.

        Where *rests_on* returns something else than before, every chain is verified whole again.
        """
        self._keyring, self._within, self._windows_kept = keyring, within, windows_kept
        self._rests_on = rests_on
        self._idle_s, self._clock = idle_s, clock
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._lock = threading.Lock()
        self.weight = 0
        """Windows that are kept, with ``SESSION_WEIGHT`` for each session."""

    def verified(
        self,
        records: Records,
        session_id: str,
        *,
        excluding: str = "",
        window_ids: Sequence[str] = (),
        again: Again = "short",
    ) -> VerifiedChain:
        """Return what a session's chain says, or raise ``ChainBroken``. It blocks.

        The window *excluding* is left out of the state. *again* is what is read again of that which was verified before.
        """
        known = self._find(session_id)
        if known is not None:
            with known.lock:
                found = self._continued(known, records, session_id, excluding, window_ids, again=again)
            if found is not None:
                self._weigh(session_id, known)
                return found
            self.forget(session_id)
        return self._whole(records, session_id, excluding, window_ids)

    def extend(
        self, session_id: str, before: tuple[int, str], windows: Sequence[WindowRecord], events: Sequence[EventRecord]
    ) -> None:
        """Take over what this process sealed itself, durably, where it follows what was verified: it need not be verified anew.

        *before* are sequence and HMAC of the event before *events*. What is stored is read when its turn comes, and compared.
        """
        with self._lock:
            known = self._known.get(session_id)
        # The event loop calls this, and a reader may hold the lock while it reads: then that reading counts.
        if known is None or not known.lock.acquire(blocking=False):
            return
        try:
            if not events or (known.prefix.sequence, known.prefix.hmac) != before:
                return
            known.prefix.add(windows, events)
        finally:
            known.lock.release()
        self._weigh(session_id, known)

    def recheck(self, records: Records, session_id: str) -> VerifiedChain:
        """Return what the chain says inside a transaction, whose records may yet be undone: nothing of them is kept."""
        known = self._find(session_id)
        if known is not None:
            with known.lock:
                since = self._since(known, records, session_id)
                if since is not None:
                    return _inside(known.prefix, since)
        chain = records.chain(session_id)
        require_valid_chain(chain, session_id, self._keyring)
        return _of_chain(chain, "", ())

    def read_lately(self, session_id: str) -> bool:
        """Return whether what was due of a session's chain has been read again since its last window."""
        with self._lock:
            known = self._known.get(session_id)
        return known is not None and known.read_again

    def unchanged(self, records: Records, session_id: str, *, excluding: str = "") -> VerifiedChain | None:
        """Return what a chain says that was read lately and still ends as it did then; ``None`` for any other.

        It is for one window, and for a transaction, whose view of the chain no other can change.
        """
        known = self._find(session_id)
        if known is None:
            return None
        with known.lock:
            if not known.read_again or (since := self._since(known, records, session_id)) is None or since.events[1:]:
                return None
            known.read_again = False
            CONTINUED.inc()
            return _told(known.prefix, excluding, ())

    def forget(self, session_id: str) -> None:
        """Let go of a session: its chain is verified whole the next time."""
        with self._lock:
            if (gone := self._known.pop(session_id, None)) is not None:
                self._count(gone, 0)

    def _find(self, session_id: str) -> _Known | None:
        with self._lock:
            known = self._known.get(session_id)
            if known is None:
                return None
            self._known.move_to_end(session_id)
        now = self._clock()
        if now - known.used > self._idle_s or known.basis != self._basis():
            self.forget(session_id)
            return None
        known.used = now
        return known

    def _since(
        self, known: _Known, records: Records, session_id: str, *, places: tuple[int, int] | None = None
    ) -> Since | None:
        """Return what came since, if the prefix still stands where it ends and what came continues it."""
        prefix = known.prefix
        again = (prefix.part(places[0]).first, prefix.part(places[1] - 1).last) if places else None
        since = records.since(session_id, prefix.sequence, again=again)
        if since.server != known.server or not since.events or digest_of_event(since.events[0]) != prefix.anchor:
            return None
        if places and not prefix.stands(places, since.again.windows, since.again.events):
            return None
        key = key_of(self._keyring, session_id)
        return since if continues(prefix, since.sealed, since.events[1:], key, rows=since.windows) else None

    def _continued(
        self, known: _Known, records: Records, session_id: str, excluding: str, window_ids: Sequence[str], *,
        again: Again,
    ) -> VerifiedChain | None:  # fmt: skip
        prefix = known.prefix
        done = again == "once" and known.read_again
        places = None if done else prefix.due(self._within, only_short=again == "short")
        since = self._since(known, records, session_id, places=places)
        if since is None:
            return None
        known.read_again = again == "due"
        prefix.add(since.sealed, since.events[1:])
        CONTINUED.inc()
        return _told(prefix, excluding, window_ids)

    def _whole(self, records: Records, session_id: str, excluding: str, window_ids: Sequence[str]) -> VerifiedChain:
        """Verify the whole chain, and keep it if it may be continued."""
        basis = self._basis()
        chain = records.chain(session_id)
        require_valid_chain(chain, session_id, self._keyring)
        WHOLE.inc()
        found = _of_chain(chain, excluding, window_ids)
        if found.kept and chain.events:
            prefix = Prefix()
            prefix.add(chain.windows, chain.events)
            self.forget(session_id)
            known = _Known(prefix, chain.server, basis, self._clock())
            with self._lock:
                self._known[session_id] = known
            self._weigh(session_id, known)
        return found

    def _basis(self) -> object:
        return self._keyring.masters, self._rests_on()

    def _weigh(self, session_id: str, known: _Known) -> None:
        """Count a prefix that has grown; those not used for longest make room."""
        with self._lock:
            if self._known.get(session_id) is not known:
                return
            self._count(known, len(known.prefix.links) + SESSION_WEIGHT)
            while self.weight > self._windows_kept:
                _, oldest = self._known.popitem(last=False)
                self._count(oldest, 0)

    def _count(self, known: _Known, weight: int) -> None:
        self.weight += weight - known.weight
        known.weight = weight
        PREFIX_WINDOWS.set(self.weight)


def _told(prefix: Prefix, excluding: str, window_ids: Sequence[str]) -> VerifiedChain:
    wanted = frozenset(window_ids)
    return VerifiedChain(
        head=(prefix.sequence, prefix.hmac),
        state=prefix.state(excluding=excluding),
        kept=True,
        failed=frozenset(prefix.failed),
        links={each: prefix.links[each] for each in window_ids if each in prefix.links},
        dropped=wanted & prefix.dropped,
        released=wanted & prefix.released,
    )


def _inside(prefix: Prefix, since: Since) -> VerifiedChain:
    """Return what a prefix and its clean continuation say, where only head, marks and failures count."""
    failed = {event.window_id for event in since.events[1:] if event.event_type == WINDOW_FAILED}
    last = since.events[-1]
    return VerifiedChain(
        (last.sequence, last.hmac), prefix.state(), kept=True, failed=frozenset(prefix.failed | failed)
    )


def _of_chain(chain: Chain, excluding: str, window_ids: Sequence[str]) -> VerifiedChain:
    wanted = frozenset(window_ids)
    return VerifiedChain(
        head=chain.head,
        state=ChainState.from_events(chain.events, excluding=excluding),
        kept=not any(event.event_type in {CONTENT_ERASED, TRUNCATED} for event in chain.events),
        failed=_named(chain, WINDOW_FAILED),
        links={window.window_id: link_of(window) for window in chain.windows if window.window_id in wanted},
        dropped=wanted & _named(chain, CONTENT_DROPPED),
        released=wanted & _named(chain, RESPONSE_RELEASED),
    )


def _named(chain: Chain, event_type: str) -> frozenset[str]:
    return frozenset(event.window_id for event in chain.events if event.event_type == event_type)
