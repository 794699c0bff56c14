"""The rule that binds a call without a token: what decides, which window it continues, and what disagrees (ATT-1, ATT-3).

It decides nothing about budgets: a window that it names is opened under the rules of every opening.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from interlock.domain.binding.conversation import KnownTurn, carried_by, continued_by
from interlock.domain.binding.links import Links
from interlock.domain.binding.places import Place
from interlock.domain.binding.rank import Rank
from interlock.domain.ids import SessionId, WindowId


@dataclass(frozen=True)
class NamedPlace:
    """A name that a request gives, and what it stands for; ``None`` where it is unknown."""

    rank: Rank
    begins: bool
    """Whether a session starts under it where it names none yet."""
    place: Place | None


@dataclass(frozen=True)
class BoundCall:
    """The session that a call belongs to. Without a window it goes on from the session's latest one."""

    session_id: SessionId
    rank: Rank
    window_id: WindowId | None
    branches: bool = False
    """Whether the window was continued already."""
    begins_conversation: bool = False
    """Whether the request carries no earlier answer of the session."""
    known: tuple[WindowId, ...] = ()
    """Windows up to that one whose answers the request carries."""
    disagreeing: tuple[Rank, ...] = ()


@dataclass(frozen=True)
class UnboundCall:
    """Nothing that is known decides. *missing*: what was named has to be there, so nothing begins in its place."""

    missing: bool = False
    disagreeing: tuple[Rank, ...] = ()


def decide(
    names: Iterable[NamedPlace], turns: Sequence[KnownTurn], sessions: Mapping[SessionId, Links]
) -> BoundCall | UnboundCall:
    """Return what a call belongs to.

    *sessions* are those that this caller may be bound to, the caller's own and not ended by it; others do not exist here. The
    first name that stands for one of them decides. A name that is unknown decides too where a session begins under it.
    """
    ordered = sorted(names, key=lambda name: name.rank)
    for at, name in enumerate(ordered):
        place = _open(name, sessions)
        if place is not None:
            return _within(place.session_id, name.rank, ordered, turns, sessions)
        if name.rank is Rank.RESPONSE or name.begins:
            missing = name.rank is Rank.RESPONSE
            return UnboundCall(missing, _speaking(None, ordered[at + 1 :], turns, sessions))
    found = continued_by(turns, sessions)
    if found is None:
        return UnboundCall()
    return _at(*found, Rank.CONVERSATION, turns, sessions)


def _within(
    session: SessionId,
    rank: Rank,
    names: Sequence[NamedPlace],
    turns: Sequence[KnownTurn],
    sessions: Mapping[SessionId, Links],
) -> BoundCall:
    """Return the window of a named session: the response's that is named, else what the turns tell, else its latest."""
    weaker = [name for name in names if name.rank > rank]
    # With one session alone nothing can speak for another.
    disagreeing = _speaking(session, weaker, turns, sessions) if len(sessions) > 1 else ()
    answered = (_open(name, sessions) for name in names if name.rank is Rank.RESPONSE)
    window = next((place.window_id for place in answered if place and place.session_id == session), None)
    if window is None:
        found = continued_by(turns, {session: sessions[session]}, named=True)
        if found is None:
            return BoundCall(session, rank, None, begins_conversation=True, disagreeing=disagreeing)
        window = found[1]
    return _at(session, window, rank, turns, sessions, disagreeing=disagreeing)


def _at(
    session: SessionId,
    window: WindowId,
    rank: Rank,
    turns: Sequence[KnownTurn],
    sessions: Mapping[SessionId, Links],
    *,
    disagreeing: tuple[Rank, ...] = (),
) -> BoundCall:
    links = sessions[session]
    known = carried_by(turns, session, links, window) or (window,)
    return BoundCall(session, rank, window, links.continued(window), known=known, disagreeing=disagreeing)


def _speaking(
    session: SessionId | None,
    names: Iterable[NamedPlace],
    turns: Sequence[KnownTurn],
    sessions: Mapping[SessionId, Links],
) -> tuple[Rank, ...]:
    """Return the ranks that speak for another session than *session*."""
    ranks = [name.rank for name in names if (place := _open(name, sessions)) and place.session_id != session]
    found = continued_by(turns, sessions)
    if found is not None and found[0] != session:
        ranks.append(Rank.CONVERSATION)
    return tuple(dict.fromkeys(ranks))


def _open(name: NamedPlace, sessions: Mapping[SessionId, Links]) -> Place | None:
    return name.place if name.place is not None and name.place.session_id in sessions else None
