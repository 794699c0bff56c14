"""A client for agents: sessions that keep their token, delegate to sub-agents and consume their results.

``Session`` is for threads, ``AsyncSession`` for asyncio. Both need nothing but httpx and a sidecar's address.
"""

from interlock.client.aio import AsyncSession
from interlock.client.answer import Answer, Delegation, result_of
from interlock.client.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    InterlockError,
    NotFound,
    SafetyHalt,
    Unauthenticated,
    Unavailable,
)
from interlock.client.session import Session
from interlock.client.streams import AnswerStream, AsyncAnswerStream

__all__ = [
    "Answer",
    "AnswerStream",
    "AsyncAnswerStream",
    "AsyncSession",
    "BadRequest",
    "Conflict",
    "Delegation",
    "Forbidden",
    "InterlockError",
    "NotFound",
    "SafetyHalt",
    "Session",
    "Unauthenticated",
    "Unavailable",
    "result_of",
]
