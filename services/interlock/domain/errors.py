"""The only tree of refusals. Each has a kind, a constant reason and a text for people (SVC-3)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class Kind(IntEnum):
    """The kind of a refusal. The numbers equal ``interlock.api.common.v1.RefusalKind``."""

    INVALID = 1
    UNAUTHENTICATED = 2
    FORBIDDEN = 3
    NOT_FOUND = 4
    CONFLICT = 5
    HALTED = 6
    EXHAUSTED = 7
    UNAVAILABLE = 8
    INTERNAL = 9
    BAD_GATEWAY = 10
    TIMEOUT = 11


class Refused(Exception):  # noqa: N818 - the domain's word: a refusal is an answer, not a defect
    """A request was understood and is not carried out.

    ``reason`` is part of the API: a constant in capitals. ``message`` is for people and holds no secret.
    """

    def __init__(
        self,
        kind: Kind,
        reason: str,
        message: str,
        *,
        metadata: Mapping[str, str] | None = None,
        retry_after_ms: int = 0,
    ) -> None:
        super().__init__(f"{reason}: {message}")
        self.kind = kind
        self.reason = reason
        self.message = message
        self.metadata: dict[str, str] = dict(metadata or {})
        self.retry_after_ms = retry_after_ms


KEPT_UNKNOWN: Mapping[str, str] = {"kept": "unknown"}
"""In the metadata of a write that was refused and may be done all the same."""


def invalid(reason: str, message: str, **metadata: str) -> Refused:
    """A malformed request: HTTP 400."""
    return Refused(Kind.INVALID, reason, message, metadata=metadata)


def unauthenticated(reason: str, message: str, **metadata: str) -> Refused:
    """A bad, expired or foreign credential: HTTP 401."""
    return Refused(Kind.UNAUTHENTICATED, reason, message, metadata=metadata)


def forbidden(reason: str, message: str, **metadata: str) -> Refused:
    """This caller may not do this: HTTP 403."""
    return Refused(Kind.FORBIDDEN, reason, message, metadata=metadata)


def not_found(reason: str, message: str, **metadata: str) -> Refused:
    """Nothing with this name exists for this caller: HTTP 404."""
    return Refused(Kind.NOT_FOUND, reason, message, metadata=metadata)


def conflict(reason: str, message: str, **metadata: str) -> Refused:
    """A lost race, a replay or a chain that does not match: HTTP 409."""
    return Refused(Kind.CONFLICT, reason, message, metadata=metadata)


def halted(reason: str, message: str, **metadata: str) -> Refused:
    """A safety verdict: HTTP 451."""
    return Refused(Kind.HALTED, reason, message, metadata=metadata)


def exhausted(reason: str, message: str, **metadata: str) -> Refused:
    """A bound on size or number was reached: HTTP 429 or 413."""
    return Refused(Kind.EXHAUSTED, reason, message, metadata=metadata)


def unavailable(reason: str, message: str, *, retry_after_ms: int = 1000, **metadata: str) -> Refused:
    """A dependency cannot answer now: HTTP 503."""
    return Refused(Kind.UNAVAILABLE, reason, message, metadata=metadata, retry_after_ms=retry_after_ms)
