"""Opening a window while the index is asked, which saves a round trip: the index has the last word."""

from __future__ import annotations

import asyncio

import pytest

from interlock.domain.errors import Refused
from interlock.session.binding.bound_opening import BoundOpening
from interlock.session.recent import LatestTokens
from interlock.session.store.batcher import store_unavailable
from tests.support.session.sessions import session_id
from tests.support.session.talks import NAME, two_windows

pytestmark = pytest.mark.req("ATT-1")


async def leases_of(talk, session):
    """Return the windows of a session that are under way."""
    await talk.ledger.returning.settled()
    return [lease.window_id for lease in (await talk.store.read(session, session)).leases]


@pytest.mark.parametrize("names", [(), (NAME,)])
async def test_the_next_window_is_opened_while_the_index_is_asked(names):
    """It continues the latest answer, and the call is bound as the index tells."""
    talk = await two_windows()

    found = await talk.bind(*names)

    assert talk.store.steps == ["asked", "opened", "told"]
    assert found.opened.number == 3
    assert found.bound.window_id == found.opened.parents[0].window_id
    assert len(found.bound.known) == 2


async def test_it_is_bound_as_without_it():
    """Only the window's id differs from that of a call that waits for the index."""
    talk = await two_windows()
    ahead = await talk.bind(NAME)
    await talk.ledger.abandon(ahead.bound.session_id, ahead.bound.session_id, ahead.window_id)
    talk.ledger.latest = LatestTokens()

    waited = await talk.bind(NAME)

    assert talk.store.steps == ["asked", "read", "told", "opened"]
    assert (ahead.bound, ahead.opened) == (waited.bound, waited.opened)


async def test_a_client_that_carries_an_older_answer_waits_for_the_index():
    """Its latest answer is not the session's last one: it branches."""
    talk = await two_windows()
    del talk.turns[-1]

    found = await talk.bind()

    assert "read" in talk.store.steps
    assert found.bound.branches


async def test_a_name_that_is_not_known_here_waits_for_the_index():
    """It may lead to another session."""
    talk = await two_windows()
    talk.ledger.recent._places.pop(NAME.digest)

    found = await talk.bind(NAME)

    assert talk.store.steps.index("told") < talk.store.steps.index("opened")
    assert found.opened.number == 3


async def test_what_the_index_does_not_confirm_is_given_back():
    """The answer is known in another session by now: the lease goes back before the call is bound anew."""
    talk = await two_windows()
    session = talk.ledger.recent.guess([talk.turns[-1].digest]).session_id
    find, asked = talk.store.bindings.find, []

    async def elsewhere(*arguments):
        asked.append(arguments)
        values = await find(*arguments)
        return [b"" for _ in values] if len(asked) == 1 else values

    talk.store.bindings.find = elsewhere

    found = await talk.bind()

    assert talk.store.steps[:4] == ["asked", "opened", "told", "given back"]
    assert await leases_of(talk, session) == [found.window_id]


async def test_a_session_that_went_on_elsewhere_is_bound_anew():
    """Another process settled the next window: the same history sent again branches there, as it does without a guess."""
    talk = await two_windows()
    here, turns = talk.ledger, list(talk.turns)
    talk.moved()
    found = await talk.bind()
    await talk.end(found.window_id, found.opened)
    talk.ledger, talk.opening, talk.turns = here, BoundOpening(here), turns

    again = await talk.bind()

    assert again.bound.branches
    assert await leases_of(talk, again.bound.session_id) == [again.window_id]


async def test_a_path_that_its_session_cannot_pay_for_is_not_opened_ahead():
    """A branch at another process cost the session more than this path knows of: it starts with what the session has left."""
    talk = await two_windows()
    here, turns = talk.ledger, list(talk.turns)
    talk.moved()
    talk.turns = turns[:1]
    found = await talk.bind()
    await talk.end(found.window_id, found.opened, charge=350_000, number=9)
    talk.ledger, talk.opening, talk.turns = here, BoundOpening(here), turns

    again = await talk.bind()

    assert again.opened.parents[0].number == 2
    assert again.opened.path_budget == again.opened.session_budget == 650_000
    assert await leases_of(talk, again.bound.session_id) == [again.window_id]


async def test_an_index_that_cannot_be_asked_leaves_no_lease():
    """The call is refused, and the window that was opened for it is given back."""
    talk = await two_windows()
    session = talk.ledger.recent.guess([talk.turns[-1].digest]).session_id

    async def down(*_):
        await asyncio.sleep(0.01)
        raise store_unavailable("CONNECTION_LOST")

    talk.store.bindings.find = down

    with pytest.raises(Refused, match="store"):
        await talk.bind()
    await asyncio.sleep(0)

    assert await leases_of(talk, session) == []


async def test_a_caller_that_leaves_leaves_no_lease():
    """It hangs up while the index is asked."""
    talk = await two_windows()
    session = talk.ledger.recent.guess([talk.turns[-1].digest]).session_id
    call = asyncio.create_task(talk.bind())
    while "opened" not in talk.store.steps:
        await asyncio.sleep(0)

    call.cancel()
    await asyncio.wait([call])
    await asyncio.sleep(0)

    assert await leases_of(talk, session) == []


def test_the_latest_tokens_are_bounded():
    """The session that was settled longest ago is forgotten; an earlier window has none."""

    class Named:
        def __init__(self, number):
            self.session_id = session_id(number)

    kept = LatestTokens(most=2)
    tokens = [Named(number) for number in (1, 2, 3)]
    for window, token in zip(("a", "b", "c"), tokens, strict=True):
        kept.keep(window, token)
    kept.keep("d", tokens[2])

    assert kept.after(session_id(1), "a") is None
    assert kept.after(session_id(2), "b") is tokens[1]
    assert kept.after(session_id(3), "c") is None
    assert kept.after(session_id(3), "d") is tokens[2]
