"""How the windows of one session hang together, as far as binding asks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from interlock.domain.ids import WindowId


class Links:
    """The windows of a session in the order in which they were settled, and their parents by place.

    *parents* is ``None`` for a line, where each continues the one before it: most sessions are one. *failed* are places of
    windows that were given up: nothing continues them, and they continue nothing.
    """

    def __init__(
        self, windows: Sequence[WindowId], parents: Sequence[Sequence[int]] | None, failed: Collection[int] = ()
    ) -> None:
        self._windows, self._parents, self._failed = windows, parents, failed
        self._at = {window: at for at, window in enumerate(windows)}

    def latest(self, windows: Collection[WindowId]) -> WindowId:
        """Return the one of *windows* that was settled last."""
        return max(windows, key=lambda window: self._at.get(window, -1))

    def parents(self, window: WindowId) -> frozenset[WindowId]:
        """Return the windows that a window continues; none for one that is not known here."""
        return frozenset(self._windows[at] for at in self._above(self._at.get(window)))

    def ancestors(self, window: WindowId) -> frozenset[WindowId]:
        """Return the windows that led to a window, without itself."""
        at = self._at.get(window)
        if at is None:
            return frozenset()
        if self._parents is None:
            return frozenset(self._windows[:at])
        seen: set[int] = set()
        ahead = [*self._above(at)]
        while ahead:
            place = ahead.pop()
            if place not in seen:
                seen.add(place)
                ahead.extend(self._above(place))
        return frozenset(self._windows[place] for place in seen)

    def continued(self, window: WindowId) -> bool:
        """Tell whether another window was sealed behind a window."""
        at = self._at.get(window)
        if at is None:
            return False
        later = range(at + 1, len(self._windows))
        return any(place not in self._failed and at in self._above(place) for place in later)

    def _above(self, at: int | None) -> Sequence[int]:
        if at is None:
            return ()
        if self._parents is not None:
            return self._parents[at]
        return (at - 1,) if at else ()


NO_LINKS = Links((), ())
