"""Which window the earlier answers of a request continue (ATT-1, rank conversation).

A client that keeps its conversation sends it with every request. Each earlier answer, with what it answered, is a turn. The
latest turn that is known in one place alone tells the window. A turn that stands in several places counts only where the turns
before it are known above it; so does a weak one, such as "Yes.", with the turn right before it. What stays ambiguous binds
nothing: a wrong guess would mix two conversations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interlock.domain.binding.links import Links
from interlock.domain.binding.places import Place
from interlock.domain.ids import SessionId, WindowId


@dataclass(frozen=True)
class KnownTurn:
    """One turn of a request, and the windows that it is known in."""

    weak: bool
    """Whether so short or common an answer binds only together with the one before it."""
    places: tuple[Place, ...]


@dataclass(frozen=True)
class _At:
    """A window that a turn may stand for."""

    session_id: SessionId
    window_id: WindowId


Candidates = Sequence[tuple[_At, ...]]


def continued_by(
    turns: Sequence[KnownTurn], sessions: Mapping[SessionId, Links], *, named: bool = False
) -> tuple[SessionId, WindowId] | None:
    """Return the session and the window that *turns* continue among *sessions*; ``None`` where they tell none.

    *named*: something stronger names the session already, so a weak turn that is known once in it is enough.
    """
    candidates = [_candidates(turn, sessions) for turn in turns]
    for at in range(len(turns) - 1, -1, -1):
        found = candidates[at]
        if turns[at].weak and not named:
            found = tuple(one for one in found if _follows(one, candidates[:at], sessions))
        if len(found) > 1:
            found = _supported(found, candidates[:at], sessions)
        if len(found) == 1:
            return found[0].session_id, found[0].window_id
    return None


def carried_by(turns: Sequence[KnownTurn], session: SessionId, links: Links, window: WindowId) -> tuple[WindowId, ...]:
    """Return the windows up to and with *window* whose answers *turns* carry, in their order."""
    line = links.ancestors(window) | {window}
    places = (place for turn in turns for place in turn.places)
    return tuple(
        dict.fromkeys(
            place.window_id
            for place in places
            if place.session_id == session and place.window_id is not None and place.window_id in line
        )
    )


def _candidates(turn: KnownTurn, sessions: Mapping[SessionId, Links]) -> tuple[_At, ...]:
    places = (place for place in turn.places if place.window_id and place.session_id in sessions)
    return tuple(_At(place.session_id, place.window_id) for place in places if place.window_id)


def _follows(one: _At, before: Candidates, sessions: Mapping[SessionId, Links]) -> bool:
    """Tell whether the nearest earlier turn that is known in the same session is the window right above."""
    parents = sessions[one.session_id].parents(one.window_id)
    for earlier in reversed(before):
        windows = {each.window_id for each in earlier if each.session_id == one.session_id}
        if windows:
            return not parents.isdisjoint(windows)
    return False


def _supported(found: tuple[_At, ...], before: Candidates, sessions: Mapping[SessionId, Links]) -> tuple[_At, ...]:
    """Return the candidates that the longest run of earlier turns leads to; of twins the later one. None without a run."""
    runs = [_run(one, before, sessions) for one in found]
    longest = max(runs)
    if not longest:
        return ()
    left = [one for one, run in zip(found, runs, strict=True) if run == longest]
    if len({(one.session_id, sessions[one.session_id].parents(one.window_id)) for one in left}) > 1:
        return tuple(left)
    # The same answer was given twice to the same question in the same place: one is as good as the other.
    links = sessions[left[0].session_id]
    return (_At(left[0].session_id, links.latest([one.window_id for one in left])),)


def _run(one: _At, before: Candidates, sessions: Mapping[SessionId, Links]) -> int:
    """Return how many of the earlier turns are known one above the other, and above this window."""
    links, length = sessions[one.session_id], 0
    above = links.ancestors(one.window_id)
    for earlier in reversed(before):
        windows = {each.window_id for each in earlier if each.session_id == one.session_id} & above
        if windows:
            length += 1
            above = links.ancestors(links.latest(windows))
    return length
