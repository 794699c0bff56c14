"""Which window the earlier answers of a request continue (ATT-1, rank conversation).

A client that keeps its conversation sends it with every request. Each earlier answer, with what it answered, is a turn. The
latest turn that is known in one place alone tells the window. A turn that stands in several places counts only where the turns
before it are known above it; so does a weak one, such as "Yes.", with the turn right before it. What stays ambiguous binds
nothing: a wrong guess would mix two conversations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from interlock.domain.binding.links import NO_LINKS, Links
from interlock.domain.binding.places import Place
from interlock.domain.ids import SessionId, WindowId

MOST_DOUBTFUL = 16
"""Turns of a request that are held against the ones before them; a history in which more tell nothing binds nothing."""


class KnownTurn(NamedTuple):
    """One turn of a request, and the windows that it is known in."""

    weak: bool
    """Whether so short or common an answer binds only together with the one before it."""
    places: tuple[Place, ...]


_At = tuple[SessionId, WindowId]
Candidates = Sequence[tuple[_At, ...]]


def continued_by(
    turns: Sequence[KnownTurn], sessions: Mapping[SessionId, Links], *, named: bool = False
) -> tuple[SessionId, WindowId] | None:
    """Return the session and the window that *turns* continue among *sessions*; ``None`` where they tell none.

    *named*: something stronger names the session already, so a weak turn that is known once in it is enough.
    """
    doubtful = 0
    for at in range(len(turns) - 1, -1, -1):
        found = _candidates(turns[at], sessions)
        alone = turns[at].weak and not named
        if found and (alone or len(found) > 1):
            doubtful += 1
            if doubtful > MOST_DOUBTFUL:
                return None
            found = _with_earlier(found, turns[:at], sessions, alone=alone)
        if len(found) == 1:
            return found[0]
    return None


def _with_earlier(
    found: tuple[_At, ...], earlier: Sequence[KnownTurn], sessions: Mapping[SessionId, Links], *, alone: bool
) -> tuple[_At, ...]:
    """Return which of the candidates of a turn the *earlier* ones speak for; *alone* they would tell nothing."""
    before = [_candidates(turn, sessions) for turn in earlier]
    if alone:
        found = tuple([one for one in found if _follows(one, before, sessions)])
    return _supported(found, before, sessions) if len(found) > 1 else found


def carried_by(turns: Sequence[KnownTurn], session: SessionId, links: Links, window: WindowId) -> tuple[WindowId, ...]:
    """Return the windows up to and with *window* whose answers *turns* carry, in their order."""
    found: dict[WindowId, None] = {}
    for turn in turns:
        for place in turn.places:
            at = place.window_id
            if at and place.session_id == session and (at == window or links.leads(at, window)):
                found[at] = None
    return tuple(found)


def _candidates(turn: KnownTurn, sessions: Mapping[SessionId, Links]) -> tuple[_At, ...]:
    return tuple(
        [
            (place.session_id, place.window_id)
            for place in turn.places
            if place.window_id and place.session_id in sessions and _may_be(place.window_id, sessions[place.session_id])
        ]
    )


def _may_be(window: WindowId, links: Links) -> bool:
    """Tell whether a window is one of its session. Of a lost session all may be."""
    return window in links or links is NO_LINKS


def _follows(one: _At, before: Candidates, sessions: Mapping[SessionId, Links]) -> bool:
    """Tell whether the nearest earlier turn that is known in the same session is the window right above."""
    session, window = one
    for earlier in reversed(before):
        windows = [at for of, at in earlier if of == session]
        if windows:
            return sessions[session].continues(window, windows)
    return False


def _supported(found: tuple[_At, ...], before: Candidates, sessions: Mapping[SessionId, Links]) -> tuple[_At, ...]:
    """Return the candidates that the longest run of earlier turns leads to; of twins the later one. None without a run."""
    runs = [_run(one, before, sessions) for one in found]
    longest = max(runs)
    if not longest:
        return ()
    left = [one for one, run in zip(found, runs, strict=True) if run == longest]
    session, links = left[0][0], sessions[left[0][0]]
    windows = [window for of, window in left if of == session]
    if len(windows) < len(left) or not links.side_by_side(windows):
        return tuple(left)
    # The same answer was given twice to the same question in the same place: one is as good as the other.
    return ((session, links.latest(windows)),)


def _run(one: _At, before: Candidates, sessions: Mapping[SessionId, Links]) -> int:
    """Return how many of the earlier turns are known one above the other, and above this window."""
    session, below = one
    links, length = sessions[session], 0
    for earlier in reversed(before):
        windows = [at for of, at in earlier if of == session and links.leads(at, below)]
        if windows:
            length, below = length + 1, links.latest(windows)
    return length
