"""The port to the state of sessions, and its in-memory twin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from interlock.domain.ids import SessionId, WindowId
from interlock.domain.session import Committed, CommitWindow, Opened, OpenWindow, SessionState
from interlock.domain.session_refusals import refusal
from interlock.domain.session_rule import abandon_window, commit_window, open_window, terminate


class Store(Protocol):
    """Each method is one atomic step. All raise ``Refused`` as ``domain/session_rule.py`` does, or when unavailable."""

    async def start(self, state: SessionState) -> None:
        """Keep a new session. Refused with SESSION_EXISTS."""
        ...

    async def open(self, ask: OpenWindow) -> Opened:
        """Take the lease of the next window. Repeated with the same window id, it takes the same lease."""
        ...

    async def commit(self, ask: CommitWindow) -> Committed:
        """Charge a sealed window and advance the session, once per window id."""
        ...

    async def abandon(self, root: SessionId, session: SessionId, window: WindowId) -> bool:
        """Give a lease back; the answer says whether it was held."""
        ...

    async def terminate(self, root: SessionId, session: SessionId) -> bool:
        """End a session; the answer says whether it ended now."""
        ...

    async def read(self, root: SessionId, session: SessionId) -> SessionState | None:
        """Return all of a session's state, for people. Never used for enforcement."""
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
        self._states: dict[tuple[SessionId, SessionId], SessionState] = {}

    async def start(self, state: SessionState) -> None:
        """Keep a new session."""
        key = (state.terms.root_session_id, state.terms.session_id)
        if key in self._states:
            raise refusal("SESSION_EXISTS")
        self._states[key] = state

    async def open(self, ask: OpenWindow) -> Opened:
        """Take the lease of the next window."""
        key = (ask.root_session_id, ask.session_id)
        self._states[key], opened = open_window(self._states.get(key), ask)
        return opened

    async def commit(self, ask: CommitWindow) -> Committed:
        """Charge a sealed window and advance the session."""
        key = (ask.root_session_id, ask.session_id)
        self._states[key], committed = commit_window(self._states.get(key), ask)
        return committed

    async def abandon(self, root: SessionId, session: SessionId, window: WindowId) -> bool:
        """Give a lease back."""
        self._states[root, session], held = abandon_window(self._states.get((root, session)), window)
        return held

    async def terminate(self, root: SessionId, session: SessionId) -> bool:
        """End a session."""
        self._states[root, session], changed = terminate(self._states.get((root, session)))
        return changed

    async def read(self, root: SessionId, session: SessionId) -> SessionState | None:
        """Return a session's state."""
        return self._states.get((root, session))

    async def missing(self) -> Mapping[str, str]:
        """Miss nothing."""
        return {}

    async def close(self) -> None:
        """Hold nothing."""
