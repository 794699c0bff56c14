"""What must hold of answers that leave in parts (docs/streams.md): nothing leaves that is not on record, and whoever dies pays.

Worked out from what clients received and from what the audit log holds. Pure over the facts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.faults.facts import DEPLETED_AT, RELEASED, Call, Event, Facts, Seal, Session

BEGUN, PART, ENDED, SEALED, FAILED = "STREAM_BEGUN", "STREAM_PART", "STREAM_ENDED", "WINDOW_SEALED", "WINDOW_FAILED"
COMPLETE, LOST = "COMPLETE", "LOST"


@dataclass(frozen=True)
class Stream:
    """What the log holds of one window of which parts left."""

    session: Session
    window_id: str
    begun: tuple[Event, ...]
    parts: tuple[Event, ...]
    ended: tuple[Event, ...]
    closed: tuple[Event, ...]
    """Its seal, that it failed, or that it was given up before any part was on record."""
    seal: Seal | None

    @property
    def hashes(self) -> frozenset[str]:
        """Hashes of all that may have been received of it at some moment."""
        return frozenset(str(one.data["running_hash"]) for one in (*self.parts, *self.ended))


def streams_of(session: Session) -> list[Stream]:
    """Return the windows of a session of which the log says that parts left."""
    seals = {seal.window_id: seal for seal in session.seals}
    found: dict[str, dict[str, list[Event]]] = {}
    for event in session.events:
        found.setdefault(event.window_id, {}).setdefault(event.event_type, []).append(event)
    return [
        Stream(
            session, window_id, tuple(kinds.get(BEGUN, ())), tuple(kinds.get(PART, ())), tuple(kinds.get(ENDED, ())),
            (*kinds.get(SEALED, ()), *kinds.get(FAILED, ()), *_given_up(kinds)), seals.get(window_id),
        )
        for window_id, kinds in found.items()
        if window_id and kinds.keys() & {BEGUN, PART, ENDED}
    ]  # fmt: skip


def _given_up(kinds: Mapping[str, list[Event]]) -> list[Event]:
    """Return the end of a stream that never began: whoever closed its window put it there, and no part follows it."""
    return [] if kinds.keys() & {BEGUN, PART} else [one for one in kinds.get(ENDED, ()) if one.data["ending"] == LOST]


def hashed(text: str) -> str:
    """Return the hash of a text, as hashes are written everywhere."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


# I4


def heard_is_on_record(facts: Facts) -> Iterator[str]:
    """All that a client received of an answer, however that ended, is covered by a part on record, to the byte.

    An answer that left whole has the HMAC of its seal with it, and its own rule.
    """
    streams = [stream for session in (*facts.sessions, *facts.unfinished) for stream in streams_of(session)]
    by_hmac = {seal.hmac: seal for session in facts.sessions for seal in session.seals}
    in_parts = {stream.seal.hmac: stream for stream in streams if stream.seal}
    covered = frozenset().union(*(stream.hashes for stream in streams))
    for call in facts.calls:
        if not call.heard:
            continue
        stream, seal = in_parts.get(call.hmac), by_hmac.get(call.hmac)
        if call.hmac and (stream is None or call.approval):  # what was held leaves whole, its parts had left before
            if seal is None or (seal.status == "COMPLETED") == bool(call.approval):
                yield f"call {call.number} received an answer that the log does not hold as one that may leave"
        elif hashed(call.heard) not in covered:
            yield f"call {call.number} received {len(call.heard)} characters in {call.session_id}, which no part on record covers"
        elif stream is not None and call.status == RELEASED and not _ended_with(stream, call):
            yield f"call {call.number} received another answer than {stream.window_id} ended with"


def _ended_with(stream: Stream, call: Call) -> bool:
    said = [(one.data["ending"], one.data["running_hash"]) for one in stream.ended]
    return said == [(COMPLETE, hashed(call.heard))]


def streams_are_told_in_order(facts: Facts) -> Iterator[str]:
    """A stream begins once, its parts are numbered without a gap, it ends once, with its seal, and nothing follows that."""
    for session in facts.sessions:
        for stream in streams_of(session):
            where, numbers = stream.window_id, [one.data["part"] for one in stream.parts]
            told = [one.sequence for one in (*stream.begun, *stream.parts)]
            nothing_left = not numbers and [one.data["parts"] for one in stream.ended] == [0]
            if (
                len(stream.begun) > 1
                or not (stream.begun or nothing_left)
                or numbers != list(range(1, len(numbers) + 1))
                or told != sorted(told)
            ):
                yield f"{where} has {len(stream.begun)} beginnings and the parts {numbers}"
            sizes = [int(str(one.data["characters"])) for one in stream.parts]
            if sizes != sorted(set(sizes)):
                yield f"{where} has parts of {sizes} characters"
            if stream.closed and told and min(one.sequence for one in stream.closed) < max(told):
                yield f"{where} has parts behind its seal"
            given_up = not stream.begun and bool(stream.closed)
            if len(stream.ended) != (1 if stream.seal or given_up else 0):
                yield f"{where} has {len(stream.ended)} ends, and it is {'' if stream.seal else 'not '}sealed"
            yield from _wrong_end(stream)


def _wrong_end(stream: Stream) -> Iterator[str]:
    """Yield what the end of a stream says otherwise than its parts.

    The rest of a whole answer is a part more than was told before. A part whose record was never acknowledged does not leave: the
    stream ends with one less than is on record, if it is.
    """
    hashes = [hashed(""), *(one.data["running_hash"] for one in stream.parts)]
    for end in stream.ended:
        count, told = len(stream.parts), int(str(end.data["parts"]))
        more = end.data["ending"] == COMPLETE and told == count + 1
        fits = told in ({count} if end.data["ending"] == COMPLETE else {count, count - 1}) and told >= 0
        if not more and not (fits and end.data["running_hash"] == hashes[told]):
            yield f"{stream.window_id} ends with {end.data['parts']} parts, {count} are on record"


# I3


def streams_are_closed(facts: Facts) -> Iterator[str]:
    """A window of which a part left is sealed, unless no client can go on with its session; it is charged, what it held where it was lost."""
    for session in facts.sessions:
        for stream in open_streams(session, facts):
            yield f"{stream.window_id} released {len(stream.parts)} parts and is neither settled nor charged"
        for stream in streams_of(session):
            seal = stream.seal
            lost = seal is not None and any(one.data["ending"] == LOST for one in stream.ended)
            if seal is not None and lost and (seal.charge, seal.status) != (_held_by(stream), "HALTED"):
                yield f"{stream.window_id} was lost, and is {seal.status} at {seal.charge}; it held {_held_by(stream)}"


def _held_by(stream: Stream) -> int:
    return max((int(str(one.data["hold_micros"])) for one in stream.begun), default=-1)


def open_streams(session: Session, facts: Facts) -> list[Stream]:
    """Return the windows of which parts left that nobody closed, in a session that some client can go on with."""
    if not goes_on(session, facts):
        return []
    return [stream for stream in streams_of(session) if not stream.closed]


def still_holds(session: Session, facts: Facts) -> bool:
    """Tell whether something is held for a window of a session that some client can go on with.

    The end of such a window may be on record already: whoever closes it puts that there first, and frees its hold after that. If that
    fails, the next opening does it.
    """
    if not goes_on(session, facts):
        return False
    of_callers = frozenset[str]().union(*(caller.holds for caller in facts.callers))
    return bool(session.holds or of_callers & {event.window_id for event in session.events})


def goes_on(session: Session, facts: Facts) -> bool:
    """Tell whether some client can go on with a session: it is there, it and all above it live, and its token is valid."""
    known = {one.session_id: one for one in facts.sessions}
    at: Session | None = session
    while at is not None:
        if not at.active:
            return False
        at = known.get(at.parent)
    return session.budget is not None and session.session_id not in facts.stuck


def holds_are_given_back(facts: Facts) -> Iterator[str]:
    """Once all is settled nothing is held for a window, neither in its session nor of its caller's budget."""
    settled = {window.window_id for session in facts.sessions for window in session.windows if window.hmac}
    going = _windows(facts.sessions, facts)
    places: Mapping[str, frozenset[str]] = {
        **{session.session_id: session.holds for session in facts.sessions},
        **{caller.scope: caller.holds for caller in facts.callers},
    }
    for place, holds in places.items():
        for window_id in sorted(holds):
            if window_id in settled:
                yield f"{place} still holds something for {window_id}, which is settled"
            elif window_id in going:
                yield f"{place} holds something for {window_id}, which nobody closes"


def _windows(sessions: Sequence[Session], facts: Facts) -> set[str]:
    """Return the windows that the logs of sessions that go on, and their stores, speak of."""
    going = [session for session in sessions if goes_on(session, facts)]
    noted = {event.window_id for session in going for event in session.events}
    return noted.union(*(session.holds for session in going))


# I2


def nothing_is_heard_after_the_end(facts: Facts) -> Iterator[str]:
    """Of an answer that was asked for after its session was told to be spent no part is received, whatever becomes of it.

    An answer that is halted for what a lost stream holds is no such end: the session goes on with what is freed.
    """
    ends: dict[str, float] = {}
    for call in facts.calls:
        spent = call.budget_told is not None and call.budget_told <= DEPLETED_AT
        if call.reason == "BUDGET_DEPLETED" and spent and call.session_id and not call.heard:
            ends[call.session_id] = min(call.ended, ends.get(call.session_id, call.ended))
    for call in facts.calls:
        if call.heard and not call.approval and call.started > ends.get(call.session_id, call.started):
            yield f"call {call.number} received parts after its session was told to be spent"
