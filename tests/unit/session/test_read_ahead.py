"""Reading a session while the index is asked, and noting names while a window is settled: each saves a round trip."""

from __future__ import annotations

import pytest

from interlock.domain.binding.places import Place
from interlock.domain.ids import SessionId
from interlock.session.recent import LatestTokens, RecentPlaces, TermsUnderWay
from interlock.session.store.batcher import state_corrupt
from tests.support.session import talks
from tests.support.session.talks import NAME, Conversation

pytestmark = pytest.mark.req("ATT-1")


async def two_windows() -> Conversation:
    """A conversation of two windows whose process remembers no token of it."""
    talk = await talks.two_windows()
    talk.ledger.latest = LatestTokens()
    return talk


@pytest.mark.parametrize("names", [(), (NAME,)])
async def test_a_session_is_read_while_the_index_is_asked(names):
    """The index is asked first, so that it tells nothing that the session does not hold yet."""
    talk = await two_windows()

    found = await talk.bind(*names)

    assert talk.store.steps == ["asked", "read", "told", "opened"]
    assert found.opened.number == 3


async def test_what_is_not_known_here_is_read_after_the_index_told_it():
    """Another process noted it: nothing is guessed."""
    talk = await two_windows()
    talk.ledger.recent = RecentPlaces()

    found = await talk.bind()

    assert talk.store.steps == ["asked", "told", "read", "opened"]
    assert found.opened.number == 3


async def test_a_session_that_was_read_too_early_is_read_again():
    """The index tells of a window that the session had not when it was read: the call continues that window all the same."""
    talk = Conversation()
    session = await talk.begin()
    early = await talk.store.standing(session, session, ())
    found = await talk.bind()
    await talk.end(found.window_id, found.opened)
    talk.store.first = lambda: early
    talk.ledger.latest = LatestTokens()

    found = await talk.bind()

    assert talk.store.steps == ["asked", "read", "told", "read", "opened"]
    assert found.opened.number == 3


async def test_a_reading_ahead_that_is_refused_is_no_refusal():
    """Only the reading that counts may refuse the call."""
    talk = await two_windows()

    def corrupt():
        raise state_corrupt()

    talk.store.first = corrupt

    found = await talk.bind()

    assert talk.store.steps == ["asked", "read", "told", "read", "opened"]
    assert found.opened.number == 3


async def test_a_wrong_guess_binds_nothing():
    """The index leads elsewhere by now: what was read ahead is not looked at."""
    talk = await two_windows()
    other = SessionId("crp_sess_" + "f" * 32)
    talk.ledger.recent.keep([talk.turns[-1].digest], Place(other, other))

    found = await talk.bind()

    assert found.opened.number == 3
    assert found.bound.session_id != other


def test_the_oldest_places_are_forgotten():
    """What was noted again is as new as any."""
    recent = RecentPlaces(most=2)
    first, second = (Place(SessionId(name), SessionId(name)) for name in ("first", "second"))
    recent.keep([b"a", b"b"], first)
    recent.keep([b"a"], second)
    recent.keep([b"c"], second)

    assert recent.guess([b"b"]) is None
    assert recent.guess([b"b", b"a"]) == second
    assert recent.guess([b"c"]) == second


async def test_what_names_a_window_is_noted_while_it_is_settled():
    """The store gets both at once, the settlement first."""
    talk = await two_windows()

    assert talk.store.steps == ["settling", "noted", "settled"]


async def test_a_window_that_was_opened_elsewhere_is_named_once_it_is_settled():
    """Only the settlement tells whose it is."""
    talk = Conversation()
    await talk.begin()
    found = await talk.bind()
    talk.ledger.under_way = TermsUnderWay()

    await talk.end(found.window_id, found.opened)

    assert talk.store.steps == ["settling", "settled", "noted"]
    assert (await talk.bind()).opened.number == 3


def test_the_terms_of_windows_under_way_are_bounded():
    """The oldest are forgotten; each is given out once."""
    kept = TermsUnderWay(most=2)
    for number in (1, 2, 3):
        kept.keep(f"w{number}", f"terms {number}")

    assert [kept.pop(f"w{number}") for number in (1, 2, 3, 3)] == [None, "terms 2", "terms 3", None]
