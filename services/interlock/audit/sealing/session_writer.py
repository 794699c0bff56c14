"""Writing to a session's chain: windows, events, and the deletion of a window's content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import cast

from prometheus_client import Histogram

from interlock.api.audit.v1 import audit_pb2
from interlock.audit import requests
from interlock.audit.requests import Draft, Note
from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.chains import VerifiedChains
from interlock.audit.sealing.prefixes import VerifiedChain
from interlock.audit.sealing.readers import Readers
from interlock.audit.sealing.seal import Sealed, Sealer
from interlock.audit.store.log import Writing
from interlock.domain import ids
from interlock.domain.approval import REVIEWER
from interlock.domain.chain.audit_events import RELEASING_TYPES, STREAM_BEGUN, STREAM_ENDED
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import WINDOW_FAILED
from interlock.domain.chain.chain_state import BY_ADMIN, TERMINATED, ChainState
from interlock.domain.errors import conflict, invalid, not_found
from interlock.domain.policy.roles import checked_stop_reason

CONTENT_VIEWED = "CONTENT_VIEWED"

READ_HERE_BYTES = 16_384
"""Up to this size a request is read on the event loop, in less time than a thread takes to wake; a larger one in a thread."""

APPEND_SECONDS = Histogram("interlock_audit_append_seconds", "Time to verify and seal one window durably, seconds.")


class SessionWriter:
    """Seals windows and appends events through the appender: what it returns is durable."""

    def __init__(
        self, appender: Appender, sealer: Sealer, chains: VerifiedChains, readers: Readers, *,
        require_anchored: Callable[[], None], admit: Callable[[Sequence[Note]], None], admit_waits: Callable[[], bool],
    ) -> None:  # fmt: skip
        """*require_anchored* and *admit* refuse a window before it is sealed. While *admit_waits*, *admit* reads the log and
        runs in a reader thread.
        """
        self._appender, self._sealer, self._chains, self._readers = appender, sealer, chains, readers
        self._require_anchored, self._admit, self._admit_waits = require_anchored, admit, admit_waits

    async def append(self, request: audit_pb2.AppendRequest) -> audit_pb2.AppendResponse:
        """Verify the session's chain as far as it is new here, then seal the window in one durable commit."""
        self._require_anchored()
        with APPEND_SECONDS.time():
            async with self._chains.reporting(request.session_id):
                size, prepare = request.ByteSize(), partial(self._prepare, request)
                here = size <= READ_HERE_BYTES and not self._admit_waits()
                draft = prepare() if here else await self._readers.run(prepare)
                sealed, state = await self._at_once(draft, size) or await self._after_reading(draft, size)
                self._chains.prefixes.extend(draft.session_id, sealed.before, [sealed.window], sealed.events)
                return sealed.message(state)

    def _prepare(self, request: audit_pb2.AppendRequest) -> Draft:
        draft = requests.draft(request)
        self._admit(draft.notes)
        return draft

    async def _at_once(self, draft: Draft, size: int) -> tuple[Sealed, ChainState] | None:
        """Seal on a chain that was read for this window before: that it still ends there is seen inside the transaction.

        It spares the reader thread. ``None`` where the chain has to be read first; nothing was written then.
        """
        prefixes = self._chains.prefixes
        if not prefixes.read_lately(draft.session_id):
            return None

        def seal(writing: Writing) -> tuple[Sealed, ChainState] | None:
            found = prefixes.unchanged(writing, draft.session_id, excluding=draft.window_id)
            return (self._seal(writing, draft, found), found.state) if found else None

        return cast("tuple[Sealed, ChainState] | None", await self._appender.submit(seal, size=size))

    async def _after_reading(self, draft: Draft, size: int) -> tuple[Sealed, ChainState]:
        verify = partial(self._chains.verified, draft.session_id, excluding=draft.window_id, again="once")
        found = await self._readers.run(verify)
        return await self._appender.submit(partial(self._seal, draft=draft, found=found), size=size), found.state

    def _seal(self, writing: Writing, draft: Draft, found: VerifiedChain) -> Sealed:
        recheck = partial(self._chains.prefixes.recheck, session_id=draft.session_id)
        return self._sealer.seal(writing, draft, verified=found, recheck=recheck)

    async def record(self, request: audit_pb2.RecordRequest) -> audit_pb2.RecordResponse:
        """Append events, to a broken chain too: recording hides no fault, and losing the record might."""
        session_id = ids.check("crp_sess_", request.session_id)
        window_id = request.window_id and ids.check("crp_win_", request.window_id)
        notes = requests.notes(request.events)
        if not notes:
            raise invalid("NO_EVENTS", "there is nothing to record")
        if _releasing(notes):  # nothing leaves that a seal would be refused for
            self._require_anchored()
            await self._readers.run(partial(self._admit, notes))
        append = partial(
            append_events,
            sealer=self._sealer,
            once=request.once,
            session_id=session_id,
            window_id=window_id,
            notes=notes,
        )
        return audit_pb2.RecordResponse(sequence=await self._appender.submit(append, size=request.ByteSize()))

    async def viewed(self, viewer: str, session_id: str, window_ids: Sequence[str]) -> None:
        """Record that a person looks at what windows said. Refused with REVIEWERS_INVALID for what is no name."""
        _require_name(viewer)
        session_id = ids.check("crp_sess_", session_id)
        note = Note(CONTENT_VIEWED, audit_pb2.SEVERITY_INFO, canonical_json({"viewer": viewer}), "")
        for window_id in window_ids:
            viewed = partial(self._viewed, session_id=session_id, window_id=ids.check("crp_win_", window_id), note=note)
            await self._appender.submit(viewed)

    async def viewed_chain(self, viewer: str, chain_id: str) -> None:
        """Record that a person looks at what the records of a chain hold. Refused with REVIEWERS_INVALID for what is no name."""
        _require_name(viewer)
        note = Note(CONTENT_VIEWED, audit_pb2.SEVERITY_INFO, canonical_json({"viewer": viewer}), "")
        viewed = partial(self._viewed_chain, chain_id=ids.check("crp_sess_", chain_id), note=note)
        await self._appender.submit(viewed)

    def _viewed_chain(self, writing: Writing, *, chain_id: str, note: Note) -> int:
        if not writing.head(chain_id)[0]:
            raise not_found("DECISION_EXPERIMENT_NOT_FOUND", "the log has no experiment of this id")
        return self._sealer.record(writing, chain_id, "", [note])

    def _viewed(self, writing: Writing, *, session_id: str, window_id: str, note: Note) -> int:
        window = writing.window(window_id)
        if window is None or window.session_id != session_id:
            raise not_found("WINDOW_NOT_SEALED", "there is no such sealed window")
        return self._sealer.record(writing, session_id, window_id, [note])

    async def stopped(self, request: audit_pb2.RecordStopRequest) -> audit_pb2.RecordStopResponse:
        """Record that a person stops a session. Refused with REVIEWERS_INVALID, STOP_REASON_INVALID or SESSION_NOT_FOUND."""
        _require_name(request.stopped_by)
        data = {
            "reason": BY_ADMIN, "stopped_by": request.stopped_by, "why": checked_stop_reason(request.reason),
            "final_safety_budget": request.final_safety_budget,
        }  # fmt: skip
        note = Note(TERMINATED, audit_pb2.SEVERITY_WARN, canonical_json(data), "")
        stop = partial(self._stopped, session_id=ids.check("crp_sess_", request.session_id), note=note)
        return audit_pb2.RecordStopResponse(sequence=await self._appender.submit(stop))

    def _stopped(self, writing: Writing, *, session_id: str, note: Note) -> int:
        if not writing.head(session_id)[0]:
            raise not_found("SESSION_NOT_FOUND", "no such session")
        return self._sealer.record(writing, session_id, "", [note])

    async def drop_content(self, request: audit_pb2.DropContentRequest) -> audit_pb2.DropContentResponse:
        """Delete the text of a window that no one was given."""
        drop = partial(
            self._sealer.drop,
            session_id=ids.check("crp_sess_", request.session_id),
            window_id=ids.check("crp_win_", request.window_id),
        )
        return audit_pb2.DropContentResponse(dropped=await self._appender.submit(drop))


def _require_name(person: str) -> None:
    if not REVIEWER.fullmatch(person):
        raise invalid("REVIEWERS_INVALID", "a person's name has 1 to 128 letters, digits and ._@+-")


def append_events(
    writing: Writing, *, sealer: Sealer, once: bool, session_id: str, window_id: str, notes: Sequence[Note]
) -> int:
    """Append events and return the sequence of the session's last one; with *once*, skip those already there.

    A window is sealed or it failed, never both: the log keeps whichever comes first. So it does where one process begins to release
    a window in parts and another gives it up.
    """
    _require_open(writing, session_id, window_id, {note.event_type for note in notes})
    failing = any(note.event_type == WINDOW_FAILED for note in notes)
    if failing and window_id and writing.window(window_id) is not None:
        raise conflict("WINDOW_SEALED", "this window is sealed already; it can no longer fail", window_id=window_id)
    if _releasing(notes) and window_id and writing.window(window_id) is not None:
        raise conflict("WINDOW_SEALED", "this window is sealed already; no part of it is released", window_id=window_id)
    fresh = [note for note in notes if not (once and _holds(writing, session_id, window_id, note))]
    if not fresh:
        return writing.head(session_id)[0]
    return sealer.record(writing, session_id, window_id, fresh)


def _require_open(writing: Writing, session_id: str, window_id: str, kinds: AbstractSet[str]) -> None:
    """Refuse the first part of a stream that was given up, and to give up one that has begun or is sealed."""
    if STREAM_BEGUN in kinds and writing.has_event(session_id, window_id, STREAM_ENDED):
        raise conflict(
            "STREAM_GIVEN_UP", "another process gave this window up; no part of it is released", window_id=window_id
        )
    if STREAM_ENDED in kinds and (
        writing.window(window_id) is not None or writing.has_event(session_id, window_id, STREAM_BEGUN)
    ):
        raise conflict(
            "STREAM_HAS_BEGUN", "a part of this window may have left; it is sealed, not given up", window_id=window_id
        )


def _releasing(notes: Sequence[Note]) -> bool:
    return any(note.event_type in RELEASING_TYPES for note in notes)


def _holds(writing: Writing, session_id: str, window_id: str, note: Note) -> bool:
    return writing.has_event(session_id, window_id, note.event_type, note.data_json)
