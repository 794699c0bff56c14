"""Errors of refused calls. Branch on the class and on ``reason``; the text is for people."""

# ruff: noqa: N818 - named after the answer, as a caller reads it: except SafetyHalt
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock.client.answer import Answer


class InterlockError(Exception):
    """A call without an answer."""

    def __init__(self, status: int, headers: Mapping[str, str], body: Mapping[str, Any]) -> None:
        error = body.get("error")
        message = error.get("message", "") if isinstance(error, Mapping) else str(error or "")
        self.status, self.headers, self.body = status, headers, body
        self.reason = str(body.get("reason") or _code(error) or f"HTTP_{status}")
        """Constant name in capitals, part of the API, such as TOKEN_REPLAYED."""
        self.metadata: Mapping[str, Any] = body.get("metadata") or {}
        """Detail for programs, such as the limit that was reached."""
        self.answers: Sequence[Answer] = ()
        """Answers of the same fan-out that were released."""
        super().__init__(f"{self.reason}: {message}" if message else self.reason)

    @property
    def retry_after_s(self) -> float | None:
        """Seconds after which a retry may help; ``None`` when it does not."""
        value = self.headers.get("retry-after", "")
        return float(value) if value.isdecimal() else None


class BadRequest(InterlockError):
    """The request is malformed, or too large."""


class Unauthenticated(InterlockError):
    """The key, the token or the grant is missing, forged, expired or someone else's."""


class Forbidden(InterlockError):
    """A policy was relaxed, a limit was reached, or the agent may not do this."""


class NotFound(InterlockError):
    """This caller has no such resource."""


class Conflict(InterlockError):
    """A race was lost, or a token was used before."""


class SafetyHalt(InterlockError):
    """The answer was halted or is held, or the budget is spent (451)."""

    @property
    def halt_reason(self) -> str:
        """Reason of the halt, such as SAFETY_BUDGET_DEPLETED (SPEC-002 §13.2)."""
        return str(self.body.get("crp_halt_reason", self.reason))

    @property
    def reviewable(self) -> bool:
        """Whether a reviewer may still release the answer: it is held, or was halted by ``halt-on`` with a reviewer registered."""
        return "held_uri" in self.metadata

    @property
    def risk(self) -> str:
        """Risk of the halted answer; empty when there was no answer."""
        return self.headers.get("crp-safety-hallucination-risk", "")


class Unavailable(InterlockError):
    """A resource for the answer is not available now: a service, a model, a quota, time."""


def _code(error: Any) -> str:
    return str(error.get("code") or "").upper() if isinstance(error, Mapping) else ""


_CLASSES: Mapping[int, type[InterlockError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: Unavailable,
    451: SafetyHalt,
}


def error_of(status: int, headers: Mapping[str, str], body: Mapping[str, Any]) -> InterlockError:
    """Return the error of a response whose status is not 2xx."""
    kind = _CLASSES.get(status, Unavailable if status >= 500 else BadRequest)
    return kind(status, headers, body)
