"""Reading a session while the index is asked, and noting names while a window is settled: each saves a round trip."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from interlock.domain.binding.places import Place
from interlock.domain.binding.rank import Rank
from interlock.domain.budget import FULL, Decrements, Micros
from interlock.domain.dag.dag import LINEAR, Limits
from interlock.domain.ids import SessionId
from interlock.domain.session.state import ANY_AGENT, PolicyText
from interlock.runtime.clock import system_clock
from interlock.runtime.keys.derivation import Keyring
from interlock.session.binding.bound_opening import BoundOpening
from interlock.session.binding.evidence import BindingEvidence, GivenName, GivenTurn
from interlock.session.binding.naming import Naming
from interlock.session.ledger import Ledger, OpenCommand
from interlock.session.recent import RecentPlaces, TermsUnderWay
from interlock.session.store.batcher import state_corrupt
from interlock.session.store.store import MemoryStore
from interlock.session.terms import NewSession, SessionRules
from tests.support.session.sessions import seal, settle

pytestmark = pytest.mark.req("ATT-1")

RULES = SessionRules(
    Limits(50, 50, 10), Decrements(Micros(0), Micros(50_000), Micros(150_000), Micros(350_000)), 3600, 60_000, 120, 5, 20,
    accumulate=False,
)  # fmt: skip
NAME = GivenName(Rank.COOKIE, b"n" * 16, begins=False)
OPENING = OpenCommand("", "key:a", None, "", 0, LINEAR, (), False)


class WatchedStore(MemoryStore):
    """Writes down in which order the index is asked and sessions are read."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []
        self.first = None
        """Gives the answer to the first reading; ``None``: the store does."""
        find = self.bindings.find

        async def slow(*asked):
            self.steps.append("asked")
            await asyncio.sleep(0.01)
            self.steps.append("told")
            return await find(*asked)

        note = self.bindings.note

        async def noted(*asked):
            self.steps.append("noted")
            return await note(*asked)

        self.bindings.find, self.bindings.note = slow, noted

    async def commit(self, ask):
        self.steps.append("settling")
        await asyncio.sleep(0.01)
        self.steps.append("settled")
        return await super().commit(ask)

    async def standing(self, root, session, windows):
        self.steps.append("read")
        first, self.first = self.first, None
        return first() if first else await super().standing(root, session, windows)


class Conversation:
    """One session, and what its client carries of it."""

    def __init__(self) -> None:
        self.store = WatchedStore()
        self.ledger = Ledger(
            self.store, Keyring({1: b"k" * 32}), RULES, clock=system_clock, entropy=secrets.token_bytes
        )
        self.naming, self.opening = Naming(self.ledger), BoundOpening(self.ledger)
        self.turns: list[GivenTurn] = []

    async def begin(self):
        wanted = NewSession("key:a", PolicyText("", ""), "push", ANY_AGENT, "", "", FULL, aware=False)
        state, _ = await self.ledger.start(wanted)
        await self.end(*await self.ledger.open_first(state, OPENING))
        return state.terms.session_id

    async def bind(self, *names):
        self.store.steps.clear()
        return await self.opening.open(OPENING, BindingEvidence(names, tuple(self.turns)))

    async def end(self, window, lease):
        """Settle a window; its answer is a turn that the client carries from then on."""
        self.store.steps.clear()
        number = len(self.turns) + 1
        pointer = self.ledger.continuation_of(lease.terms.session_id, window, 0)
        sealed = seal(number, hmac="sha256:" + f"{number:064x}")
        asked = settle(number, lease, window_id=window, continuation_id=pointer, charge=Micros(0), seal=sealed)
        self.turns.append(GivenTurn(bytes([number]) * 16, weak=False))
        await self.naming.settle(asked, [NAME], self.turns[-1])


async def two_windows() -> Conversation:
    """A conversation of two windows."""
    talk = Conversation()
    await talk.begin()
    found = await talk.bind()
    await talk.end(found.window_id, found.opened)
    return talk


@pytest.mark.parametrize("names", [(), (NAME,)])
async def test_a_session_is_read_while_the_index_is_asked(names):
    """The index is asked first, so that it tells nothing that the session does not hold yet."""
    talk = await two_windows()

    found = await talk.bind(*names)

    assert talk.store.steps == ["asked", "read", "told"]
    assert found.opened.number == 3


async def test_what_is_not_known_here_is_read_after_the_index_told_it():
    """Another process noted it: nothing is guessed."""
    talk = await two_windows()
    talk.ledger.recent = RecentPlaces()

    found = await talk.bind()

    assert talk.store.steps == ["asked", "told", "read"]
    assert found.opened.number == 3


async def test_a_session_that_was_read_too_early_is_read_again():
    """The index tells of a window that the session had not when it was read: the call continues that window all the same."""
    talk = Conversation()
    session = await talk.begin()
    early = await talk.store.standing(session, session, ())
    found = await talk.bind()
    await talk.end(found.window_id, found.opened)
    talk.store.first = lambda: early

    found = await talk.bind()

    assert talk.store.steps == ["asked", "read", "told", "read"]
    assert found.opened.number == 3


async def test_a_reading_ahead_that_is_refused_is_no_refusal():
    """Only the reading that counts may refuse the call."""
    talk = await two_windows()

    def corrupt():
        raise state_corrupt()

    talk.store.first = corrupt

    found = await talk.bind()

    assert talk.store.steps == ["asked", "read", "told", "read"]
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
