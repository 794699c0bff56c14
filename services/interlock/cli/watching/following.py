"""What the following commands share: one look after another until it is over, and a session's windows as they are shown."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import FULL
from interlock.domain.errors import Kind, Refused

_CLEAR, _HOME, _REST, _LINE = "\x1b[2J", "\x1b[H", "\x1b[J", "\x1b[K"

AWAY = (Kind.UNAVAILABLE, Kind.TIMEOUT)
"""Refusals that pass: a service that is down is looked for again."""


async def follow(look: Callable[[], Awaitable[bool]], every_s: float, away: Callable[[Refused], None]) -> None:
    """Look again and again until *look* says that it is over. A service that does not answer is told by *away*, and no end.

    The first look is not forgiven: whoever starts a command beside nothing is told so at once.
    """
    first = True
    while True:
        try:
            if await look():
                return
        except Refused as refused:
            if first or refused.kind not in AWAY:
                raise
            away(refused)
        first = False
        await asyncio.sleep(every_s)


def paint(lines: Sequence[str], *, first: bool) -> None:
    """Write a picture over the one before it, without a flicker."""
    text = "".join(f"{line}{_LINE}\n" for line in lines)
    sys.stdout.write((_CLEAR if first else "") + _HOME + text + _REST)
    sys.stdout.flush()


def bar(left: int, full: int = FULL, width: int = 12) -> str:
    """Return what is left of a budget as a bar."""
    filled = max(0, min(width, round(width * left / full))) if full else 0
    return "#" * filled + "." * (width - filled)


def clock(timestamp: str) -> str:
    """Return the time of day of a window, in UTC."""
    return timestamp[11:19] or "--:--:--"


def ago(timestamp: str, now: datetime) -> str:
    """Return how long ago a window was sealed, in the largest unit that fits."""
    if not timestamp:
        return "-"
    seconds = max(0, round((now - datetime.fromisoformat(timestamp)).total_seconds()))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


def sealed(session: session_pb2.Session) -> list[session_pb2.Window]:
    """Return the windows of a session that were judged, the earliest first."""
    return [window for window in session.windows if window.hmac]


def risk(window: session_pb2.Window) -> str:
    """Return a window's risk in a word."""
    return common_pb2.RiskLevel.Name(window.risk_level).removeprefix("RISK_LEVEL_")


def breaker(session: session_pb2.Session) -> str:
    """Return the state of a session's breaker in a word."""
    return common_pb2.BreakerState.Name(session.breaker).removeprefix("BREAKER_STATE_")


def status(session: session_pb2.Session) -> str:
    """Return the state of a session in a word."""
    return session_pb2.SessionStatus.Name(session.status).removeprefix("SESSION_STATUS_")
