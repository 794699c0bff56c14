"""Which window the earlier answers of a request continue (ATT-1)."""

from __future__ import annotations

import pytest

from interlock.domain.binding.conversation import MOST_DOUBTFUL, KnownTurn, carried_by, continued_by
from interlock.domain.binding.links import NO_LINKS, Links
from interlock.domain.binding.places import Place, packed, records_of, unpacked
from tests.support.session.sessions import session_id, window_id

pytestmark = pytest.mark.req("ATT-1")

A, B = session_id(1), session_id(2)
SESSIONS = {
    # 1 - 2 - 3 and, beside them, 2 - 4 - 5; in the other session a line.
    A: Links([window_id(n) for n in (1, 2, 3, 4, 5)], [(), (0,), (1,), (1,), (3,)]),
    B: Links([window_id(n) for n in (11, 12, 13)], None),
}


def turn(*numbers: int, weak: bool = False) -> KnownTurn:
    """Return a turn that is known in these windows; those from 11 up are the other session's."""
    places = (Place(B if n > 10 else A, B if n > 10 else A, window_id(n)) for n in numbers)
    return KnownTurn(weak, tuple(places))


def weak(*numbers: int) -> KnownTurn:
    return turn(*numbers, weak=True)


UNKNOWN = turn()


@pytest.mark.parametrize(
    ("turns", "at"),
    [
        pytest.param([], None, id="no history"),
        pytest.param([UNKNOWN], None, id="nothing known"),
        pytest.param([turn(1)], 1, id="one place"),
        pytest.param([turn(1), turn(2), turn(3)], 3, id="the latest"),
        pytest.param([turn(1), UNKNOWN, UNKNOWN], 1, id="edited after the first"),
        pytest.param([UNKNOWN, turn(2)], 2, id="cut before the second"),
        pytest.param([turn(11), turn(5)], 5, id="the latest, of another session than the first"),
        pytest.param([turn(3, 13)], None, id="two sessions, nothing before"),
        pytest.param([turn(1), turn(3, 13)], 3, id="two sessions, one led to"),
        pytest.param([turn(1, 11), turn(2, 12), turn(13, 99)], 13, id="a window that is in no session is none"),
        pytest.param([turn(1, 11), turn(2, 12)], None, id="two sessions that are alike"),
        pytest.param([turn(11), turn(1, 12), turn(2, 13)], 13, id="the longer run"),
        pytest.param([turn(2), turn(3, 4)], 4, id="twins: the later one"),
        pytest.param([turn(1), turn(3, 5)], 1, id="two places that are no twins: what is sure, before them"),
        pytest.param([turn(4), turn(3, 5)], 5, id="two places, one led to"),
        pytest.param([weak(2)], None, id="weak alone"),
        pytest.param([turn(1), weak(2)], 2, id="weak behind its parent"),
        pytest.param([weak(1), weak(2)], 2, id="two weak ones, one behind the other"),
        pytest.param([turn(1), weak(3)], 1, id="weak, further on: the one before it"),
        pytest.param([turn(11), weak(2)], 11, id="weak behind another session's"),
        pytest.param([turn(11), UNKNOWN, weak(12, 2)], 12, id="weak, with an unknown one between"),
        pytest.param([turn(1, 11), weak(2, 12)], None, id="weak, in two that are alike"),
        pytest.param([turn(2)] + [turn(1, 11)] * MOST_DOUBTFUL, 2, id="doubts up to the limit"),
        pytest.param([turn(2)] + [turn(3, 13, 5)] * (MOST_DOUBTFUL + 1), None, id="too many doubts"),
    ],
)
def test_the_turns_tell_the_window_or_nothing(turns, at):
    """A table of histories; what is ambiguous is never guessed."""
    found = continued_by(turns, SESSIONS)

    assert found == (at and (B if at > 10 else A, window_id(at)))


@pytest.mark.parametrize(
    ("turns", "at"), [([weak(2)], 2), ([weak(2, 12)], 2), ([turn(3, 5)], None), ([turn(12)], None)]
)
def test_in_a_named_session_its_own_turns_tell(turns, at):
    """A weak turn that is known there once is enough; other sessions' windows are no candidates."""
    found = continued_by(turns, {A: SESSIONS[A]}, named=True)

    assert found == (at and (A, window_id(at)))


def test_a_lost_session_is_found_by_what_it_alone_had():
    """Nothing is known of its windows: one place binds, so that it can be rebuilt; a run cannot be told."""
    assert continued_by([turn(12)], {B: NO_LINKS}) == (B, window_id(12))
    assert continued_by([turn(11), turn(12, 2)], SESSIONS | {B: NO_LINKS}) == (B, window_id(11))


def test_only_windows_of_the_line_are_carried():
    """A branch that the request does not continue is not its conversation, nor is another session."""
    turns = [turn(1), turn(3, 13), turn(2), turn(5), turn(2)]

    assert carried_by(turns, A, SESSIONS[A], window_id(5)) == (window_id(1), window_id(2), window_id(5))


def test_windows_that_were_given_up_continue_nothing():
    """A window behind which only a failed one stands was not continued."""
    links = Links([window_id(n) for n in (1, 2, 3)], [(), (0,), (1,)], failed={2})

    assert [links.continued(window_id(n)) for n in (1, 2, 3, 4)] == [True, False, False, False]


@pytest.mark.parametrize("spoilt", [b"\x04" + b"a" * 16, b"\x02" + b"a" * 31, b"a", b"\x00" + b"a" * 17, b"\x03"])
def test_a_value_that_was_not_written_here_holds_nothing(spoilt):
    """Not even the good record in front of what is wrong."""
    good = packed(Place(A, B, window_id(1)))

    assert unpacked(good) == (Place(A, B, window_id(1)),)
    assert records_of(good + spoilt) == ()
    assert unpacked(spoilt) == ()
