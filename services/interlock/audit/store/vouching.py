"""Who says that an event was sealed by this deployment: the store has no keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from interlock.domain.chain.chain import EventRecord

Vouch = Callable[[EventRecord, str], bool]
"""Returns whether this deployment sealed an event after the event with that HMAC; empty for a session's first."""


def nobody(event: EventRecord, previous: str) -> bool:
    """Vouch for no event: without keys none gets a leaf afterwards."""
    del event, previous
    return False


@dataclass
class Unlogged:
    """The events without a leaf, as one process knows them: who vouches for them, and how far they were looked at."""

    vouch: Vouch
    looked: int = 0
