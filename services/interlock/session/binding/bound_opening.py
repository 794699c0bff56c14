"""Opening the window of a call that brings no token, by what else it brings (ATT-1, ATT-3)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

from interlock.domain.binding.conversation import KnownTurn
from interlock.domain.binding.links import NO_LINKS, Links
from interlock.domain.binding.places import Place
from interlock.domain.binding.rank import Rank
from interlock.domain.binding.rule import BoundCall, NamedPlace, UnboundCall, decide
from interlock.domain.dag.dag import BRANCH, LINEAR
from interlock.domain.errors import Refused
from interlock.domain.ids import SessionId, WindowId
from interlock.domain.session.session_refusals import refusal
from interlock.domain.session.standing import Point, Standing
from interlock.session.binding.evidence import BindingEvidence
from interlock.session.binding.index import BoundWindow, looked_up
from interlock.session.binding.opening_ahead import OpeningAhead
from interlock.session.ledger import Ledger, OpenCommand
from interlock.session.recording import naming

MOST_SESSIONS = 12
"""Sessions that are looked at for one call. A turn that is known in a further one tells nothing."""

ATTEMPTS = 3
"""How often a call is bound anew because others took its place meanwhile."""

POINTS = 2
"""Latest turns whose windows are read together with their session; they are what a call nearly always continues."""

SHARED = frozenset({Rank.COOKIE, Rank.TRACE, Rank.BODY})
"""Ranks that several conversations of one client may share without knowing of each other."""

_CROWDED = {"WINDOW_IN_FLIGHT", "MAX_FAN_OUT_EXCEEDED"}


@dataclass(frozen=True)
class _Found:
    """What the index knows of the evidence, and how the sessions stand that it names; ``None`` for one that is lost."""

    names: tuple[NamedPlace, ...]
    turns: tuple[KnownTurn, ...]
    standings: Mapping[SessionId, Standing | None]
    roots: Mapping[SessionId, SessionId]

    @property
    def sessions(self) -> Mapping[SessionId, Links]:
        """The sessions that a call may be bound to. Of a lost one nothing is known but its name."""
        return {session: one.links if one else NO_LINKS for session, one in self.standings.items()}


@dataclass(frozen=True)
class _Ahead:
    """A session that is read while the index is asked, because the call probably belongs to it."""

    session_id: SessionId
    reading: asyncio.Task[Standing | None]


class BoundOpening:
    """Binds calls and opens their windows; the sessions are the ledger's."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._ahead = OpeningAhead(ledger)

    async def open(self, presented: OpenCommand, evidence: BindingEvidence) -> BoundWindow:
        """Take the lease of the next window of the session that *evidence* binds to.

        Refused with SESSION_NOT_BOUND where a session begins, RESPONSE_NOT_FOUND for a response that is not known, and as any
        opening is; those refusals name the session and what bound to it.
        """
        if opened := await self._ahead.open(presented, evidence):
            return opened
        for attempt in range(1, ATTEMPTS + 1):
            found = await self._look_up(presented.scope, evidence)
            bound = decide(found.names, found.turns, found.sessions)
            if isinstance(bound, UnboundCall):
                raise _not_bound(bound)
            try:
                return await self._opened(presented, found, bound)
            except Refused as refused:
                if refused.reason == "TOKEN_REPLAYED" and attempt < ATTEMPTS:
                    continue
                raise _told(refused, bound, found.roots[bound.session_id]) from None
        raise AssertionError("the last attempt returns or raises")

    async def _look_up(self, scope: str, evidence: BindingEvidence) -> _Found:
        ahead = self._read_ahead(evidence)
        try:
            names, turns = await looked_up(self._ledger, scope, evidence)
            wanted = _wanted(names, turns)
            standings = await self._standings(scope, wanted, ahead)
        finally:
            if ahead:
                ahead.reading.cancel()
        return _Found(
            names=tuple(names),
            turns=tuple(_looked_at(turns, wanted)),
            standings=standings,
            roots={place.session_id: place.root_session_id for places in wanted.values() for place in places},
        )

    def _read_ahead(self, evidence: BindingEvidence) -> _Ahead | None:
        """Read the session that the evidence led to last, in the round trip that asks the index; ``None`` where none is known."""
        names, turns = (name.digest for name in evidence.names), (turn.digest for turn in reversed(evidence.turns))
        place = self._ledger.recent.guess(chain(names, turns))
        if place is None:
            return None
        # A task, so that the index is asked first: what it tells is then never newer than the session.
        return _Ahead(place.session_id, asyncio.create_task(self._guessed(place)))

    async def _guessed(self, place: Place) -> Standing | None:
        try:
            return await self._ledger.store.standing(place.root_session_id, place.session_id, _latest([place]))
        except Refused:
            return None  # it is read again where it is wanted, and refused there

    async def _standings(
        self, scope: str, wanted: Mapping[SessionId, list[Place]], ahead: _Ahead | None
    ) -> Mapping[SessionId, Standing | None]:
        """Return the sessions that exist for this caller. One that its client ended, or another caller's, does not."""
        read: dict[SessionId, Standing | None] = {}
        if ahead and ahead.session_id in wanted:
            standing = await ahead.reading
            if standing and _holds(standing, wanted[ahead.session_id]):
                read[ahead.session_id] = standing
        left = [session for session in wanted if session not in read]
        if len(left) == 1:
            read[left[0]] = await self._standing(wanted[left[0]])
        elif left:
            read |= zip(left, await asyncio.gather(*[self._standing(wanted[each]) for each in left]), strict=True)
        return {
            session: one
            for session in wanted
            if (one := read[session]) is None or (one.terms.scope == scope and not one.ended_by_client)
        }

    async def _standing(self, places: list[Place]) -> Standing | None:
        """Read the session of *places*."""
        first = places[0]
        return await self._ledger.store.standing(first.root_session_id, first.session_id, _latest(places))

    async def _opened(self, presented: OpenCommand, found: _Found, bound: BoundCall) -> BoundWindow:
        root = found.roots[bound.session_id]
        with naming(root, bound.session_id):
            standing = found.standings[bound.session_id]
            window = bound.window_id or (standing.tip if standing else None)
            if standing and window and window not in standing.points:
                standing = await self._ledger.store.standing(root, bound.session_id, [window])
            if standing is None or (window and window not in standing.points):
                raise refusal("SESSION_STATE_LOST")
            at = standing.points[window] if window else None
        pattern = BRANCH if bound.branches else LINEAR
        asked = presented if presented.pattern == pattern else replace(presented, pattern=pattern)
        try:
            window_id, opened = await self._ledger.open_at(standing, at, asked)
        except Refused as refused:
            raise _used_up(refused, standing, at) from None
        return BoundWindow(window_id, opened, bound)


def _used_up(refused: Refused, standing: Standing, at: Point | None) -> Refused:
    """Return the refusal behind a last window that is not its session's latest: a token without a pointer means the latest."""
    if refused.reason != "CONTINUATION_MISMATCH" or at is None or at.continuation_id is not None:
        return refused
    limit = standing.terms.limits.max_windows
    return (
        refusal("MAX_WINDOWS_EXCEEDED", limit, at.number + 1) if at.number >= limit else refusal("SESSION_TERMINATED")
    )


def _wanted(names: list[NamedPlace], turns: list[KnownTurn]) -> dict[SessionId, list[Place]]:
    """Return the sessions that are looked at, with the places in them: those that are named, then those of the latest turns."""
    found: defaultdict[SessionId, list[Place]] = defaultdict(list)
    named = [name.place for name in names if name.place]
    for place in (*named, *(place for turn in reversed(turns) for place in turn.places)):
        if place.session_id in found or len(found) < MOST_SESSIONS:
            found[place.session_id].append(place)
    return found


def _looked_at(turns: list[KnownTurn], wanted: Mapping[SessionId, list[Place]]) -> list[KnownTurn]:
    """Return the turns; one that is known in a session that is not looked at tells nothing."""
    if len(wanted) < MOST_SESSIONS:
        return turns  # none was left out
    return [
        turn if all(place.session_id in wanted for place in turn.places) else KnownTurn(turn.weak, ()) for turn in turns
    ]


def _latest(places: list[Place]) -> list[WindowId]:
    """Return the windows that are read with their session: that of a response, and those of the latest turns."""
    return [place.window_id for place in places if place.window_id][:POINTS]


def _holds(standing: Standing, places: list[Place]) -> bool:
    """Tell whether a session that was read ahead has every window that the index tells of it."""
    return all(place.window_id in standing.links for place in places if place.window_id)


def _not_bound(unbound: UnboundCall) -> Refused:
    refused = refusal("RESPONSE_NOT_FOUND" if unbound.missing else "SESSION_NOT_BOUND")
    if unbound.disagreeing:
        refused.metadata["disagreeing"] = ",".join(rank.name for rank in unbound.disagreeing)
    return refused


def _told(refused: Refused, bound: BoundCall, root: SessionId) -> Refused:
    """Return the refusal of a bound call: it names the session.

    Where several conversations of one client share what bound them, one of them never waits for another, nor is it refused
    because of it: it begins a session of its own.
    """
    if refused.reason in _CROWDED and _begins_apart(refused.reason, bound):
        cause = refused.reason
        refused = refusal("SESSION_NOT_BOUND")
        refused.metadata["cause"] = cause
    refused.metadata |= {
        "session_id": bound.session_id, "root_session_id": root, "rank": bound.rank.name,
    }  # fmt: skip
    return refused


def _begins_apart(reason: str, bound: BoundCall) -> bool:
    if reason == "MAX_FAN_OUT_EXCEEDED":
        return bound.rank in SHARED or bound.rank is Rank.CONVERSATION
    return bound.rank in SHARED and bound.begins_conversation
