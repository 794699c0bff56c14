"""The kinds of evidence that bind a call to a session (ATT-1)."""

from __future__ import annotations

from enum import IntEnum


class Rank(IntEnum):
    """What speaks for a session, the strongest first. The numbers equal ``interlock.api.session.v1.BindingRank``."""

    TOKEN = 1
    HINT = 2
    COOKIE = 3
    RESPONSE = 4
    TRACE = 5
    BODY = 6
    CONVERSATION = 7
    CALLER = 8

    @property
    def word(self) -> str:
        """The rank as headers, events, metrics and the setting ``bindings`` name it."""
        return self.name.lower()


NAMES = frozenset({Rank.HINT, Rank.COOKIE, Rank.RESPONSE, Rank.TRACE, Rank.BODY})
"""Ranks that name a session, or a window of one; the others are read off the call as a whole."""
