"""Keeping what names a session: with its start, and with each of its settled windows (ATT-1, ATT-3)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import structlog
from prometheus_client import Counter

from interlock.domain.binding.index import IndexNote
from interlock.domain.binding.places import Place, packed, raw_of, unpacked
from interlock.domain.binding.rank import Rank
from interlock.domain.errors import Refused
from interlock.domain.ids import SessionId, WindowId
from interlock.domain.session.session_refusals import refusal
from interlock.domain.session.state import Committed, CommitWindow, SessionState, Terms
from interlock.session.binding.evidence import GivenName, GivenTurn
from interlock.session.ledger import Ledger

LOST = Counter(
    "interlock_bindings_lost_total",
    "Windows that were settled while the store could not note what names them: their next calls may begin new sessions.",
)

log = structlog.get_logger()


class Naming:
    """Notes names and turns; the sessions are the ledger's."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def replaceable(
        self, scope: str, names: Sequence[GivenName], continued: SessionId | None
    ) -> Mapping[bytes, bytes]:
        """Return the names that may be taken from their sessions, and from which: those that ended or are lost.

        Refused with BINDING_TAKEN where a name that begins a session names a living one; *continued* may be taken from.
        Refused with SESSION_NOT_FOUND where *continued* is no session of this caller.
        """
        if continued is not None:
            await self._ledger.read(session=continued, root=None, token="", scope=scope)
        if not names:
            return {}
        digests = [name.digest for name in names]
        values = await self._ledger.store.bindings.find(scope, digests, self._ledger.rules.bindings)
        found = {}
        for name, value in zip(names, values, strict=True):
            for place in unpacked(value)[:1]:
                if place.session_id == continued or not await self._lives(place, scope):
                    found[name.digest] = raw_of(place.session_id)
                elif name.begins:
                    raise _taken(place)
        return found

    async def _lives(self, place: Place, scope: str) -> bool:
        standing = await self._ledger.store.standing(place.root_session_id, place.session_id, ())
        return standing is not None and standing.terms.scope == scope and not standing.ended_by_client

    async def claim(self, state: SessionState, names: Sequence[GivenName], over: Mapping[bytes, bytes]) -> None:
        """Give a session that has just started its names.

        Of two that start under one name at a time one gets it; the other is ended and refused with BINDING_TAKEN.
        """
        if not names:
            return
        terms = state.terms
        record = packed(Place(terms.session_id, terms.root_session_id))
        notes = [IndexNote(name.digest, record, over=over.get(name.digest, b"")) for name in names]
        stands = await self._ledger.store.bindings.note(terms.scope, notes, self._ledger.rules.bindings)
        for name, value in zip(names, stands, strict=True):
            for place in unpacked(value)[:1]:
                if name.begins and place.session_id != terms.session_id:
                    await self._ledger.store.terminate(terms.root_session_id, terms.session_id)
                    raise _taken(place)

    async def settle(
        self, ask: CommitWindow, names: Sequence[GivenName], turn: GivenTurn | None
    ) -> tuple[Committed, str]:
        """Settle a window and note what names it: in one round trip to the store where the window was opened here.

        The seal is durable already. A call that is bound to a window whose settlement failed has its session rebuilt from the
        chain, which settles it.
        """
        terms = self._ledger.under_way.pop(ask.window_id)
        if terms is None:
            committed, token = await self._ledger.commit(ask)
            await self.note(committed.terms, ask.window_id, names, turn)
            return committed, token
        settled, _ = await asyncio.gather(self._ledger.commit(ask), self.note(terms, ask.window_id, names, turn))
        return settled

    async def note(self, terms: Terms, window: WindowId, names: Sequence[GivenName], turn: GivenTurn | None) -> None:
        """IndexNote by what a settled window is found. It never fails the settlement: a lost note costs a binding alone."""
        session = Place(terms.session_id, terms.root_session_id)
        place = Place(terms.session_id, terms.root_session_id, window)
        at = packed(place)
        notes = [IndexNote(name.digest, at if name.rank is Rank.RESPONSE else packed(session)) for name in names]
        if turn is not None:
            notes.append(IndexNote(turn.digest, at, turn=True))
        if not notes:
            return
        try:
            await self._ledger.store.bindings.note(terms.scope, notes, self._ledger.rules.bindings)
            self._ledger.recent.keep((note.digest for note in notes), place)
        except Refused as refused:
            LOST.inc()
            log.warning("bindings.lost", session_id=terms.session_id, window_id=window, reason=refused.reason)


def _taken(place: Place) -> Refused:
    refused = refusal("BINDING_TAKEN")
    refused.metadata |= {"session_id": place.session_id, "root_session_id": place.root_session_id}
    return refused
