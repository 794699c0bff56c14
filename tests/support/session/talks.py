"""A conversation over the store in memory, which writes down in which order it is asked."""

from __future__ import annotations

import asyncio
import secrets

from interlock.domain.binding.rank import Rank
from interlock.domain.budget import FULL, Decrements, Micros
from interlock.domain.dag.dag import LINEAR, Limits
from interlock.domain.session.state import ANY_AGENT, PolicyText
from interlock.runtime.clock import system_clock
from interlock.runtime.keys.derivation import Keyring
from interlock.session.binding.bound_opening import BoundOpening
from interlock.session.binding.evidence import BindingEvidence, GivenName, GivenTurn
from interlock.session.binding.naming import Naming
from interlock.session.ledger import Ledger, OpenCommand
from interlock.session.store.store import MemoryStore
from interlock.session.terms import NewSession, SessionRules
from tests.support.session.sessions import seal, settle

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

    async def open(self, ask):
        self.steps.append("opened")
        return await super().open(ask)

    async def abandon(self, root, session, window, caller_id=""):
        self.steps.append("given back")
        return await super().abandon(root, session, window, caller_id)

    async def standing(self, root, session, windows):
        self.steps.append("read")
        first, self.first = self.first, None
        return first() if first else await super().standing(root, session, windows)


class Conversation:
    """One session, and what its client carries of it."""

    def __init__(self) -> None:
        self.store = WatchedStore()
        self.moved()
        self.turns: list[GivenTurn] = []

    def moved(self) -> None:
        """Go on at another process, which saw nothing of the conversation."""
        self.ledger = Ledger(
            self.store, Keyring({1: b"k" * 32}), RULES, clock=system_clock, entropy=secrets.token_bytes
        )
        self.naming, self.opening = Naming(self.ledger), BoundOpening(self.ledger)

    async def begin(self):
        wanted = NewSession("key:a", PolicyText("", ""), "push", ANY_AGENT, "", "", FULL, aware=False)
        state, _ = await self.ledger.start(wanted)
        await self.end(*await self.ledger.open_first(state, OPENING))
        return state.terms.session_id

    async def bind(self, *names):
        self.store.steps.clear()
        return await self.opening.open(OPENING, BindingEvidence(names, tuple(self.turns)))

    async def end(self, window, lease, charge=0, number=None):
        """Settle a window; its answer is a turn that the client carries from then on."""
        self.store.steps.clear()
        number = number or len(self.turns) + 1
        pointer = self.ledger.continuation_of(lease.terms.session_id, window, 0)
        sealed = seal(number, hmac="sha256:" + f"{number:064x}")
        asked = settle(number, lease, window_id=window, continuation_id=pointer, charge=Micros(charge), seal=sealed)
        self.turns.append(GivenTurn(bytes([number]) * 16, weak=False))
        await self.naming.settle(asked, [NAME], self.turns[-1])


async def two_windows() -> Conversation:
    """A conversation of two windows."""
    talk = Conversation()
    await talk.begin()
    found = await talk.bind()
    await talk.end(found.window_id, found.opened)
    return talk
