"""Where names and turns led that this process noted last: a guess, so that a session is read while the index is asked."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.domain.binding.places import Place

MOST = 16_384
"""Digests that are kept; the oldest are dropped."""


class RecentPlaces:
    """Places by digest. It binds nothing: the index alone tells where a digest leads, and it may say otherwise by now."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._places: dict[bytes, Place] = {}

    def keep(self, digests: Iterable[bytes], place: Place) -> None:
        """Note that *digests* lead to *place*."""
        for digest in digests:
            self._places.pop(digest, None)
            self._places[digest] = place
        while len(self._places) > self._most:
            del self._places[next(iter(self._places))]

    def guess(self, digests: Iterable[bytes]) -> Place | None:
        """Return where the first of *digests* that is known here led; ``None`` where none is."""
        return next((place for digest in digests if (place := self._places.get(digest))), None)
