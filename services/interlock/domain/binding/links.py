"""How the windows of one session hang together, as far as binding asks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from interlock.domain.ids import WindowId

_NOWHERE = -1


class Links:
    """The windows of a session in the order in which they were settled, and their parents by place.

    *parents* is ``None`` for a line, where each continues the one before it: most sessions are one. *failed* are places of
    windows that were given up: nothing continues them, and they continue nothing.
    """

    def __init__(
        self, windows: Sequence[WindowId], parents: Sequence[Sequence[int]] | None, failed: Collection[int] = ()
    ) -> None:
        self._parents, self._failed = parents, failed
        self._at = dict(zip(windows, range(len(windows)), strict=True))
        self._closures: dict[int, frozenset[int]] = {}

    def __contains__(self, window: WindowId) -> bool:
        return window in self._at

    def latest(self, windows: Collection[WindowId]) -> WindowId:
        """Return the one of *windows* that was settled last."""
        return max(windows, key=lambda window: self._at.get(window, _NOWHERE))

    def leads(self, earlier: WindowId, later: WindowId) -> bool:
        """Tell whether *later* continues *earlier*, at once or through others."""
        first, last = self._at.get(earlier, _NOWHERE), self._at.get(later, _NOWHERE)
        if first == _NOWHERE or first >= last:
            return False
        return self._parents is None or first in self._closure(last)

    def continues(self, later: WindowId, windows: Collection[WindowId]) -> bool:
        """Tell whether *later* continues one of *windows* at once."""
        above = self._above(self._at.get(later, _NOWHERE))
        return any(self._at.get(window, _NOWHERE) in above for window in windows)

    def side_by_side(self, windows: Collection[WindowId]) -> bool:
        """Tell whether all of *windows* continue the same ones."""
        return len({tuple(self._above(self._at.get(window, _NOWHERE))) for window in windows}) == 1

    def continued(self, window: WindowId) -> bool:
        """Tell whether another window was sealed behind a window."""
        at = self._at.get(window, _NOWHERE)
        if at == _NOWHERE:
            return False
        later = range(at + 1, len(self._at))
        return any(place not in self._failed and at in self._above(place) for place in later)

    def _above(self, at: int) -> Sequence[int]:
        if at == _NOWHERE:
            return ()
        if self._parents is not None:
            return self._parents[at]
        return (at - 1,) if at else ()

    def _closure(self, at: int) -> frozenset[int]:
        """Return the places of all windows that led to the one at a place."""
        if at not in self._closures:
            seen: set[int] = set()
            ahead = [*self._above(at)]
            while ahead:
                place = ahead.pop()
                if place not in seen:
                    seen.add(place)
                    ahead.extend(self._above(place))
            self._closures[at] = frozenset(seen)
        return self._closures[at]


NO_LINKS = Links((), None)
