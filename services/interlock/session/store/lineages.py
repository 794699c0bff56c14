"""Which sessions stand above a child session, as this process read it last: it never changes."""

from __future__ import annotations

from interlock.domain.ids import SessionId

MOST = 65_536
"""Sessions that are kept; the oldest are dropped."""


class Lineages:
    """Ancestors by session. It decides nothing: the script that is given their keys compares them with what is stored."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[SessionId, tuple[SessionId, ...]] = {}

    def get(self, session: SessionId) -> tuple[SessionId, ...] | None:
        """Return the ancestors of a session, from the parent up; ``None`` where they are not known here."""
        return self._known.get(session)

    def keep(self, session: SessionId, ancestors: tuple[SessionId, ...]) -> tuple[SessionId, ...]:
        """Note the ancestors of a session and return them."""
        self._known[session] = ancestors
        while len(self._known) > self._most:
            del self._known[next(iter(self._known))]
        return ancestors
