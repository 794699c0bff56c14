"""The port to the state of sessions, and its in-memory twin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from interlock.domain.budget import Micros
from interlock.domain.ids import ContinuationId, SessionId, WindowId
from interlock.domain.session import (
    Committed,
    CommitWindow,
    Delegated,
    FailWindow,
    Opened,
    OpenWindow,
    ParentView,
    SessionState,
)
from interlock.domain.session_opening import open_window
from interlock.domain.session_refusals import refusal
from interlock.domain.session_rule import States, abandon_window, commit_window, fail_window, terminate
from interlock.domain.session_tree import start_child, view_of


class Store(Protocol):
    """Each method is one atomic step. All raise ``Refused`` as the rules of the domain do, or when unavailable."""

    async def start(self, state: SessionState) -> None:
        """Keep a new root session. Refused with SESSION_EXISTS."""
        ...

    async def start_child(self, state: SessionState, ask: Delegated) -> Micros:
        """Keep a new child session, use up its grant and return its budget: the session's own is the ceiling."""
        ...

    async def view(
        self,
        root: SessionId,
        session: SessionId,
        *,
        pointer: ContinuationId | None = None,
        grant_id: str = "",
        approval_id: str = "",
    ) -> ParentView | None:
        """Return what is looked at of a session before it delegates; the atomic step looks again."""
        ...

    async def open(self, ask: OpenWindow) -> Opened:
        """Take the lease of the next window. Repeated with the same window id, it takes the same lease."""
        ...

    async def commit(self, ask: CommitWindow) -> Committed:
        """Charge a sealed window, advance the session and lower its ancestors, once per window id."""
        ...

    async def fail(self, ask: FailWindow) -> bool:
        """Give up a window and keep it as FAILED; the answer says whether it was written now."""
        ...

    async def abandon(self, root: SessionId, session: SessionId, window: WindowId) -> bool:
        """Give a lease back; the answer says whether it was there."""
        ...

    async def terminate(self, root: SessionId, session: SessionId) -> bool:
        """End a session; the answer says whether it ended now."""
        ...

    async def read(self, root: SessionId, session: SessionId) -> SessionState | None:
        """Return all of a session's state. No budget is ever enforced on it."""
        ...

    async def root_of(self, session: SessionId) -> SessionId | None:
        """Return the root of a child session whose root the caller does not know, for operators."""
        ...

    async def missing(self) -> Mapping[str, str]:
        """Return dependency → hint for what cannot be used now; empty means ready. Never raises."""
        ...

    async def close(self) -> None:
        """Let go of every connection."""
        ...


class MemoryStore:
    """Sessions of this one process, lost at its end: ``memory://``. It runs the domain's rule as it is."""

    def __init__(self) -> None:
        self._trees: dict[SessionId, dict[SessionId, SessionState]] = {}

    async def start(self, state: SessionState) -> None:
        """Keep a new session."""
        tree = self._tree(state.terms.root_session_id)
        if state.terms.session_id in tree:
            raise refusal("SESSION_EXISTS")
        self._keep(state)

    async def start_child(self, state: SessionState, ask: Delegated) -> Micros:
        """Keep a new child session."""
        changed, budget = start_child(self._tree(state.terms.root_session_id), state, ask)
        self._keep(*changed.values())
        return budget

    async def view(
        self,
        root: SessionId,
        session: SessionId,
        *,
        pointer: ContinuationId | None = None,
        grant_id: str = "",
        approval_id: str = "",
    ) -> ParentView | None:
        """Return what is looked at of a session before it delegates."""
        state = self._tree(root).get(session)
        if state is None:
            return None
        return view_of(state, pointer=pointer or "", grant_id=grant_id, approval_id=approval_id)

    async def open(self, ask: OpenWindow) -> Opened:
        """Take the lease of the next window."""
        state, opened = open_window(self._tree(ask.root_session_id).get(ask.session_id), ask)
        self._keep(state)
        return opened

    async def commit(self, ask: CommitWindow) -> Committed:
        """Charge a sealed window, advance the session and lower its ancestors."""
        changed, committed = commit_window(self._tree(ask.root_session_id), ask)
        self._keep(*changed.values())
        return committed

    async def fail(self, ask: FailWindow) -> bool:
        """Give up a window."""
        state, failed = fail_window(self._tree(ask.root_session_id).get(ask.session_id), ask)
        self._keep(state)
        return failed

    async def abandon(self, root: SessionId, session: SessionId, window: WindowId) -> bool:
        """Give a lease back."""
        state, held = abandon_window(self._tree(root).get(session), window)
        self._keep(state)
        return held

    async def terminate(self, root: SessionId, session: SessionId) -> bool:
        """End a session."""
        state, changed = terminate(self._tree(root).get(session))
        self._keep(state)
        return changed

    async def read(self, root: SessionId, session: SessionId) -> SessionState | None:
        """Return a session's state."""
        return self._tree(root).get(session)

    async def root_of(self, session: SessionId) -> SessionId | None:
        """Return the root of a child session."""
        return next((root for root, tree in self._trees.items() if session in tree), None)

    async def missing(self) -> Mapping[str, str]:
        """Miss nothing."""
        return {}

    async def close(self) -> None:
        """Hold nothing."""

    def _tree(self, root: SessionId) -> States:
        return self._trees.get(root, {})

    def _keep(self, *states: SessionState) -> None:
        for state in states:
            self._trees.setdefault(state.terms.root_session_id, {})[state.terms.session_id] = state
