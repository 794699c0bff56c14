"""Every refusal that a session's state can give, by its constant reason.

The Lua scripts answer with the reason and two figures; the pure rule raises the same through the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from interlock.domain.budget import Micros, as_decimal, band_of
from interlock.domain.errors import Refused, conflict, forbidden, halted, invalid, not_found, unavailable


def refusal(reason: str, first: int = 0, second: int = 0) -> Refused:
    """Return the refusal of that name; what the figures mean depends on the reason."""
    return _MAKE[reason](first, second)


def _lost(*_: int) -> Refused:
    # Never a fresh budget in its place (BUD-4, BUD-9). A retry does not bring the state back.
    return unavailable(
        "SESSION_STATE_LOST",
        "the store does not hold this session as its token or its audit record vouches for; start a new session",
        retry_after_ms=0,
    )


def _depleted(left: int, _: int) -> Refused:
    return halted(
        "BUDGET_DEPLETED",
        "the safety budget of this session is spent; a new session is required",
        safety_budget=as_decimal(Micros(left)),
        band=band_of(Micros(left)).value,
        retry_after="new-session-required",
    )


def _windows(limit: int, attempted: int) -> Refused:
    return forbidden(
        "MAX_WINDOWS_EXCEEDED",
        f"a session has at most {limit} windows in a row; this would be number {attempted}",
        limit=str(limit),
        attempted=str(attempted),
    )


def _nodes(limit: int, attempted: int) -> Refused:
    return forbidden(
        "MAX_DAG_NODES_EXCEEDED",
        f"a session has at most {limit} windows; this would be number {attempted}",
        limit=str(limit),
        attempted=str(attempted),
    )


def _in_flight(left_ms: int, _: int) -> Refused:
    made = conflict("WINDOW_IN_FLIGHT", "another window of this session is in flight")
    made.retry_after_ms = left_ms
    return made


def _replayed(token: int, tip: int) -> Refused:
    return conflict(
        "TOKEN_REPLAYED",
        "the window of this token has been continued already; use the token of the latest response",
        token_window=str(token),
        latest_window=str(tip),
    )


def _mismatch(token: int, target: int) -> Refused:
    return conflict(
        "CONTINUATION_MISMATCH",
        "the continuation points to another window than the token was issued for",
        token_window=str(token),
        continuation_window=str(target),
    )


def _number(expected: int, given: int) -> Refused:
    return invalid(
        "WINDOW_NUMBER_MISMATCH",
        f"the next window is number {expected}, not {given}",
        expected=str(expected),
        given=str(given),
    )


def _constant(make: Callable[..., Refused], reason: str, message: str) -> Callable[[int, int], Refused]:
    return lambda *_: make(reason, message)


_MAKE: Mapping[str, Callable[[int, int], Refused]] = {
    "SESSION_STATE_LOST": _lost,
    "BUDGET_DEPLETED": _depleted,
    "MAX_WINDOWS_EXCEEDED": _windows,
    "MAX_DAG_NODES_EXCEEDED": _nodes,
    "WINDOW_IN_FLIGHT": _in_flight,
    "TOKEN_REPLAYED": _replayed,
    "CONTINUATION_MISMATCH": _mismatch,
    "WINDOW_NUMBER_MISMATCH": _number,
    **{
        reason: _constant(make, reason, message)
        for make, reason, message in (
            (conflict, "SESSION_EXISTS", "there is a session of this id"),
            (conflict, "SESSION_TERMINATED", "this session has ended; start a new one"),
            (not_found, "SESSION_NOT_FOUND", "no such session"),
            (not_found, "CONTINUATION_NOT_FOUND", "no window of this session has that continuation id"),
            (conflict, "POLICY_HASH_MISMATCH", "the stored policy is not the one that this token was signed for"),
            (conflict, "PARENT_NOT_TIP", "another window has been settled in this place"),
            (conflict, "WINDOW_ID_REUSED", "this window has been settled with another seal or charge"),
            (conflict, "DAG_INVARIANT_VIOLATED", "this window would break an invariant of the window DAG"),
        )
    },
}

REASONS = frozenset(_MAKE)
