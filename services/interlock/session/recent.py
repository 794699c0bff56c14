"""What this process saw last, so that it need not wait for the store twice: where names and turns led, and windows under way."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.domain.binding.places import Place
from interlock.domain.ids import SessionId, WindowId
from interlock.domain.session.state import Terms
from interlock.domain.session.token import Token

MOST = 16_384
"""Digests that are kept; the oldest are dropped."""
MOST_LATEST = 4096
"""Sessions whose latest token is kept; those that were settled longest ago are dropped."""
MOST_UNDER_WAY = 4096
"""Windows under way whose terms are kept; the oldest are dropped."""


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


class TermsUnderWay:
    """The terms of the windows that were opened here and are not settled yet. They never change while a session lasts."""

    def __init__(self, most: int = MOST_UNDER_WAY) -> None:
        self._most = most
        self._terms: dict[WindowId, Terms] = {}

    def keep(self, window: WindowId, terms: Terms) -> None:
        """Note the terms that a window was opened under."""
        self._terms[window] = terms
        if len(self._terms) > self._most:
            del self._terms[next(iter(self._terms))]

    def pop(self, window: WindowId) -> Terms | None:
        """Return the terms of a window, and forget them; ``None`` where it was opened elsewhere."""
        return self._terms.pop(window, None)


class LatestTokens:
    """What the windows that were settled here gave their clients last. The store alone tells whether that still holds."""

    def __init__(self, most: int = MOST_LATEST) -> None:
        self._most = most
        self._tokens: dict[SessionId, tuple[WindowId, Token]] = {}

    def keep(self, window: WindowId, token: Token) -> None:
        """Note the token that a settled window gave out."""
        self._tokens.pop(token.session_id, None)
        self._tokens[token.session_id] = (window, token)
        if len(self._tokens) > self._most:
            del self._tokens[next(iter(self._tokens))]

    def after(self, session: SessionId, window: WindowId) -> Token | None:
        """Return the token that continues a window; ``None`` where that was not the last one settled here."""
        last, token = self._tokens.get(session, (None, None))
        return token if last == window else None
