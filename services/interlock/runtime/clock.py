"""The system clock, as a function that is passed to code that must not read the time itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

_WHOLE_SECONDS = len("2026-05-25T10:00:00")

Clock = Callable[[], int]
"""Returns microseconds since the Unix epoch."""


def system_clock() -> int:
    """Return the machine's time, microseconds since the Unix epoch."""
    return time.time_ns() // 1000


def iso8601(micros: int) -> str:
    """Return a UTC time with six decimals, such as 2026-05-25T10:00:00.000000Z."""
    seconds, rest = divmod(micros, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:_WHOLE_SECONDS]}.{rest:06d}Z"


def whole_seconds(micros: int) -> str:
    """Return a UTC time to the second, such as 2026-05-25T10:00:00Z."""
    return f"{iso8601(micros)[:_WHOLE_SECONDS]}Z"
