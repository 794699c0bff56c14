"""Opening the window of a call in the round trip that asks the index, where the call most probably continues what was last here.

A client that sends its conversation back brings the latest answer. Where that answer was given here, its session's next window
is opened at once, with the token that the answer carried. The index has the last word: what it does not confirm is given back,
and the call is bound as any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from interlock.domain.binding.conversation import KnownTurn
from interlock.domain.binding.rule import BoundCall, NamedPlace, decide
from interlock.domain.errors import Refused
from interlock.domain.ids import SessionId, WindowId
from interlock.domain.session.state import OpenedWindow
from interlock.domain.session.token import Token, root_of
from interlock.session.binding.evidence import BindingEvidence
from interlock.session.binding.index import BoundWindow, looked_up
from interlock.session.ledger import Ledger, OpenCommand

Opening = asyncio.Task[tuple[WindowId, OpenedWindow]]


class OpeningAhead:
    """Opens windows that the index has still to confirm; the sessions are the ledger's."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def open(self, presented: OpenCommand, evidence: BindingEvidence) -> BoundWindow | None:
        """Take the lease of the window that follows the latest answer in *evidence*.

        ``None``, with nothing taken: that answer was not the last one given here, its session refuses, or the index tells
        otherwise.
        """
        token = self._token(evidence)
        if token is None:
            return None
        # A task, so that the index is asked first: what it tells is then never newer than the session.
        opening = asyncio.create_task(self._ledger.open_after(token, presented))
        try:
            names, turns = await looked_up(self._ledger, presented.scope, evidence)
        except BaseException:
            opening.add_done_callback(lambda done: self._forsake(token, done))
            opening.cancel()
            raise
        try:
            window, opened = await opening
        except Refused:
            return None
        if bound := _confirmed(token, opened, presented.scope, names, turns):
            return BoundWindow(window, opened, bound)
        await self._ledger.abandon(root_of(token), token.session_id, window)
        return None

    def _token(self, evidence: BindingEvidence) -> Token | None:
        """Return the token of the latest answer, where that is its session's last and no name leads elsewhere."""
        recent = self._ledger.recent
        place = recent.guess([evidence.turns[-1].digest]) if evidence.turns else None
        if place is None or place.window_id is None:
            return None
        named = (recent.guess([name.digest]) for name in evidence.names)
        if not all(at and at.session_id == place.session_id for at in named):
            return None
        return self._ledger.latest.after(place.session_id, place.window_id)

    def _forsake(self, token: Token, opening: Opening) -> None:
        """Give back what was opened before it could be stopped; an opening that was stopped gives back by itself."""
        if not opening.cancelled() and opening.exception() is None:
            self._ledger.returning.give_back(root_of(token), token.session_id, opening.result()[0])


def _confirmed(
    token: Token, opened: OpenedWindow, scope: str, names: Sequence[NamedPlace], turns: Sequence[KnownTurn]
) -> BoundCall | None:
    """Return how the index binds the call, if that is to the window behind *token*; ``None`` for anything else.

    A path above what its session has left is none of a call without a token: nothing vouches for it.
    """
    if opened.terms.scope != scope or opened.path_budget > opened.session_budget or opened.links is None:
        return None
    if _sessions(names, turns) != {token.session_id}:
        return None
    bound = decide(names, turns, {token.session_id: opened.links})
    if isinstance(bound, BoundCall) and not bound.branches and [bound.window_id] == _parents(opened):
        return bound
    return None


def _parents(opened: OpenedWindow) -> list[WindowId]:
    return [parent.window_id for parent in opened.parents]


def _sessions(names: Sequence[NamedPlace], turns: Sequence[KnownTurn]) -> set[SessionId]:
    named = {name.place.session_id for name in names if name.place}
    return named | {place.session_id for turn in turns for place in turn.places}
