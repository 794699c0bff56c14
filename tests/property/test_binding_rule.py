"""Laws of the rule that binds calls: no caller's session for another, no window that a request does not speak for (ATT-3)."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from interlock.domain.binding.conversation import KnownTurn, continued_by
from interlock.domain.binding.links import Links
from interlock.domain.binding.places import Place
from interlock.domain.binding.rank import NAMES, Rank
from interlock.domain.binding.rule import BoundCall, NamedPlace, UnboundCall, decide
from interlock.domain.budget import FULL, Decrements, Micros
from interlock.domain.dag.dag import LINEAR, Limits
from interlock.domain.errors import Refused
from interlock.domain.session.state import ANY_AGENT, PolicyText
from interlock.runtime.clock import system_clock
from interlock.runtime.keys.derivation import Keyring
from interlock.session.binding.bound_opening import BoundOpening
from interlock.session.binding.evidence import BindingEvidence, GivenName, GivenTurn
from interlock.session.binding.naming import Naming
from interlock.session.ledger import Ledger, OpenCommand
from interlock.session.store.bindings import MemoryBindings
from interlock.session.store.store import MemoryStore
from interlock.session.terms import NewSession, SessionRules
from tests.support.session.sessions import digest, seal, session_id, settle, window_id

pytestmark = pytest.mark.req("ATT-1", "ATT-3")

SESSIONS = 3
WINDOWS = 5


def window(session: int, place: int):
    return window_id(10 * session + place)


@st.composite
def graphs(draw):
    """Sessions with windows 0, 1, … of which each continues an earlier one."""
    found = {}
    for session in range(draw(st.integers(0, SESSIONS))):
        size = draw(st.integers(0, WINDOWS))
        parents = [[draw(st.integers(0, at - 1))] if at else [] for at in range(size)]
        found[session_id(session)] = Links([window(session, at) for at in range(size)], parents)
    return found


PLACES = st.builds(
    lambda session, at: Place(session_id(session), session_id(session), window(session, at)),
    st.integers(0, SESSIONS),
    st.integers(0, WINDOWS - 1),
)
TURNS = st.lists(st.builds(KnownTurn, st.booleans(), st.lists(PLACES, max_size=3, unique=True).map(tuple)), max_size=5)
NAMED = st.lists(st.builds(NamedPlace, st.sampled_from(sorted(NAMES)), st.booleans(), st.none() | PLACES), max_size=4)


@given(names=NAMED, turns=TURNS, sessions=graphs())
def test_only_what_is_spoken_for_and_there_is_bound(names, turns, sessions):
    """The session is one that exists for this caller, and that a name or a turn stands for; so is every window told."""
    bound = decide(names, turns, sessions)

    if isinstance(bound, UnboundCall):
        event("unbound")
        return
    event(bound.rank.name)
    assert bound.session_id in sessions
    places = [name.place for name in names if name.place] + [place for turn in turns for place in turn.places]
    assert bound.session_id in {place.session_id for place in places}
    spoken = {place.window_id for place in places if place.session_id == bound.session_id}
    assert bound.window_id is None or bound.window_id in spoken
    assert set(bound.known) <= spoken
    assert bound.begins_conversation == (bound.window_id is None)
    assert all(rank > bound.rank for rank in bound.disagreeing)


@given(names=NAMED, turns=TURNS, sessions=graphs())
def test_no_weaker_name_changes_what_a_stronger_one_decided(names, turns, sessions):
    """What decides is the first that speaks: without all that is weaker, the session is the same."""
    bound = decide(names, turns, sessions)
    if isinstance(bound, BoundCall) and bound.rank is not Rank.CONVERSATION:
        alone = decide([name for name in names if name.rank <= bound.rank], [], sessions)
        assert isinstance(alone, BoundCall)
        assert (alone.session_id, alone.rank) == (bound.session_id, bound.rank)


@given(turns=TURNS, sessions=graphs())
def test_two_sessions_that_are_alike_bind_to_neither(turns, sessions):
    """Every place stands once more in a copy of its session: nothing tells them apart, so nothing is guessed."""
    copies = {session_id(100 + at): links for at, links in enumerate(sessions.values())}
    renamed = dict(zip(sessions, copies, strict=True))

    def twice(place: Place) -> tuple[Place, ...]:
        copy = renamed.get(place.session_id, place.session_id)
        return (place, Place(copy, copy, place.window_id))

    doubled = [KnownTurn(turn.weak, tuple(each for one in turn.places for each in twice(one))) for turn in turns]
    assert continued_by(doubled, sessions | copies) is None


SCOPES = ("key a", "key b")
DIGESTS = [bytes([n]) * 16 for n in range(6)]
NAME = st.builds(GivenName, st.sampled_from(sorted(NAMES)), st.sampled_from(DIGESTS[:3]), st.booleans())
CALLS = st.tuples(
    st.sampled_from(SCOPES),
    st.lists(NAME, max_size=3, unique_by=lambda name: name.digest).map(tuple),
    st.lists(st.builds(GivenTurn, st.sampled_from(DIGESTS[3:]), st.booleans()), max_size=3).map(tuple),
    st.sampled_from(DIGESTS[3:]),
)
RULES = SessionRules(
    Limits(50, 50, 10), Decrements(Micros(0), Micros(50_000), Micros(150_000), Micros(350_000)), 3600, 60_000, 120, 5, 20,
    accumulate=False,
)  # fmt: skip


class OneIndex(MemoryBindings):
    """An index that does not part its callers."""

    async def find(self, scope, digests, bounds):
        return await super().find("", digests, bounds)

    async def note(self, scope, notes, bounds):
        return await super().note("", notes, bounds)


@settings(max_examples=150)
@given(calls=st.lists(CALLS, min_size=2, max_size=10), parted=st.booleans())
def test_no_evidence_leads_into_another_callers_session(calls, parted):
    """Two callers with the same digests in every rank: each stays in sessions of its own, even were their index one."""

    async def run():
        store = MemoryStore()
        store.bindings = MemoryBindings() if parted else OneIndex()
        ledger = Ledger(store, Keyring({1: b"k" * 32}), RULES, clock=system_clock, entropy=secrets.token_bytes)
        caller = Caller(ledger)
        for scope, names, turns, answer in calls:
            await caller.call(scope, names, turns, answer)

    asyncio.run(run())


class Caller:
    """Calls as the sidecar does, and remembers whose each session is."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.naming, self.opening = ledger, Naming(ledger), BoundOpening(ledger)
        self.owners: dict[str, str] = {}

    async def call(self, scope: str, names: Any, turns: Any, answer: bytes) -> None:
        opened = await self.bound(scope, names, turns) or await self.begun(scope, names)
        if opened is None:
            return
        window, lease = opened
        assert self.owners.setdefault(lease.terms.session_id, scope) == scope == lease.terms.scope
        pointer = self.ledger.continuation_of(lease.terms.session_id, window, 0)
        sealed = seal(1, hmac=digest(window))
        ask = settle(1, lease, window_id=window, continuation_id=pointer, charge=Micros(0), seal=sealed)
        committed, _ = await self.ledger.commit(ask)
        await self.naming.note(committed.terms, window, names, GivenTurn(answer, weak=False))

    async def bound(self, scope: str, names: Any, turns: Any) -> Any:
        presented = OpenCommand("", scope, None, "", 0, LINEAR, (), False)
        try:
            found = await self.opening.open(presented, BindingEvidence(names, turns))
        except Refused as refused:
            event(refused.reason)
            named = refused.metadata.get("session_id")
            assert named is None or self.owners[named] == scope
            return None
        event(found.bound.rank.name)
        return found.window_id, found.opened

    async def begun(self, scope: str, names: Any) -> Any:
        wanted = NewSession(scope, PolicyText("", ""), "push", ANY_AGENT, "", "", FULL, aware=False)
        presented = OpenCommand("", scope, None, "", 0, LINEAR, (), False)
        try:
            over = await self.naming.replaceable(scope, names, None)
            state, _ = await self.ledger.start(wanted)
            await self.naming.claim(state, names, over)
        except Refused as refused:
            event(refused.reason)
            assert self.owners[refused.metadata["session_id"]] == scope
            return None
        return await self.ledger.open_first(state, presented)
