"""Shares of what there is not enough of: the rule, against callers that come as they like."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.runtime.keys.shares import admits

pytestmark = pytest.mark.req("SVC-3")

ROOMS = st.integers(2, 40)


def comes(held: dict[str, int], who: str, room: int) -> bool:
    """Let a caller ask for one more."""
    admitted = admits(who, held, room)
    held[who] = held.get(who, 0) + admitted
    return admitted


def played(room: int, callers: list[str]) -> dict[str, int]:
    """What each holds when one after the other asks for one more, and nobody gives anything back."""
    held: dict[str, int] = {}
    for who in callers:
        comes(held, who, room)
    return held


@given(ROOMS, st.integers(1, 200))
def test_a_caller_alone_has_the_whole_room_and_no_more(room, calls):
    """Nothing is kept for those who do not come."""
    assert played(room, ["a"] * calls) == {"a": min(room, calls)}


@given(ROOMS, st.lists(st.sampled_from("abcdef"), max_size=300))
@example(2, ["b", "b", "a", "c"])
def test_never_more_than_twice_the_room(room, callers):
    """The one who holds most holds the room at most, and the others together no more than it."""
    assert sum(played(room, callers).values()) <= 2 * room


@given(ROOMS, st.integers(2, 200))
def test_callers_that_hold_the_same_share_the_room(room, callers):
    """Where each sends one call nobody floods, and nobody is let in above the room."""
    held = played(room, [f"caller {number}" for number in range(callers)])

    assert sum(held.values()) == min(room, callers)


@given(st.integers(2, 40), st.integers(3, 500))
def test_who_comes_beside_a_flood_is_let_in_at_once(room, loud):
    """Also where the room became smaller after the other had filled it."""
    assert admits("quiet", {"loud": loud}, room)


@given(st.integers(4, 40), st.integers(2, 4), st.integers())
def test_callers_that_keep_coming_end_at_equal_shares(room, callers, seed):
    """Who came first has everything, and waits until the others have as much. What is given back is given back by anyone."""
    random = Random(seed)
    names = [f"caller {number}" for number in range(callers)]
    held = played(room, [names[0]] * 100)
    had = dict.fromkeys(names, 0)
    for _ in range(1000):
        who = random.choices(names, [held.get(name, 0) for name in names])[0]
        held[who] -= 1
        for name in random.sample(names, callers):
            while comes(held, name, room):
                pass
        for name in names:
            had[name] += held[name]

    assert min(had.values()) > 0.6 * max(had.values())
