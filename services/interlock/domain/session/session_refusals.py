"""Every refusal that a session's state can give, by its constant reason.

The Lua scripts answer with the reason and two figures; the pure rule raises the same through the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from interlock.domain.budget import Micros, as_decimal, budget_band
from interlock.domain.errors import Refused, conflict, exhausted, forbidden, halted, invalid, not_found, unavailable

ANCESTOR_HALTED, ANCESTOR_EXHAUSTED, ANCESTOR_ENDED = "ANCESTOR_HALTED", "ANCESTOR_EXHAUSTED", "ANCESTOR_ENDED"
"""Refusals of a sub-agent's window, by what became of a session above it."""

LEFT_OPEN = "left_open"
"""Key of the windows whose leases ran out in a session that is full; the sidecar settles them, and no agent is told."""


def refusal(reason: str, first: int | str = 0, second: int | str = 0) -> Refused:
    """Return the refusal of that name; what the two values mean depends on the reason."""
    return _MAKE[reason](first, second)


def _lost(*_: Any) -> Refused:
    # Never a fresh budget in its place (BUD-4, BUD-9). A retry does not bring the state back.
    return unavailable(
        "SESSION_STATE_LOST",
        "the store does not hold this session as its token or its audit record vouches for; start a new session",
        retry_after_ms=0,
    )


def _unverified(*_: Any) -> Refused:
    # Not said to agents: the sidecar has the session verified against the audit log and asks again (ADR 0012).
    return unavailable(
        "SESSION_STATE_UNVERIFIED",
        "the store was restarted, or is another one; the session is verified before its next use",
    )


def _late(window: str, _: Any) -> Refused:
    return conflict(
        "WINDOW_SETTLED_LATE",
        "the next window was sealed and settled; its answer may not have been given",
        window_id=window,
    )


def _depleted(left: int, left_open: Any = 0) -> Refused:
    """Refuse what is spent; windows that were left open there (``left_open_text``) may hold something of its caller's, and are named."""
    made = halted(
        "BUDGET_DEPLETED",
        "the safety budget of this session is spent; a new session is required",
        safety_budget=as_decimal(Micros(left)),
        band=budget_band(Micros(left)).value,
        retry_after="new-session-required",
    )
    if left_open:
        made.metadata[LEFT_OPEN] = left_open
    return made


def _barred(reason: str, what: str) -> Callable[[Any, Any], Refused]:
    """Return the maker of the refusal of a sub-agent's window, which names the session above that ended it."""
    return lambda session, left: halted(
        reason,
        f"a session above this one {what}; nothing below it goes on",
        ancestor_session_id=session,
        ancestor_safety_budget=as_decimal(Micros(left)),
        halt_reason=reason,
        retry_after="new-session-required",
    )


def _caller_unverified(*_: Any) -> Refused:
    # Not said to agents: the sidecar has the budget rebuilt from the audit log and asks again (ADR 0018).
    return unavailable(
        "CALLER_BUDGET_UNVERIFIED",
        "the store does not hold the budget of this caller; it is rebuilt before its next use",
    )


def _caller_depleted(left: int, period: int) -> Refused:
    return halted(
        "CALLER_BUDGET_DEPLETED",
        "the safety budget of this caller is spent for the present period; a new session does not renew it",
        safety_budget=as_decimal(Micros(left)),
        period=str(period),
    )


def _limited(reason: str, name: str, text: str) -> Callable[[Any, Any], Refused]:
    """Return the maker of a 403 that names a limit, its value and what was attempted.

    What was attempted may be followed by a space and the windows that were left open there (``left_open_text``).
    """

    def make(limit: Any, told: Any) -> Refused:
        attempted, _, left = str(told).partition(" ")
        made = forbidden(reason, text.format(limit, attempted), name=name, limit=str(limit), attempted=attempted)
        if left:
            made.metadata[LEFT_OPEN] = left
        return made

    return make


def _in_flight(left_ms: int, _: int) -> Refused:
    made = conflict("WINDOW_IN_FLIGHT", "another window of this session is in flight")
    made.retry_after_ms = left_ms
    return made


def _held(_: Any = 0, left_open: Any = 0) -> Refused:
    """Refuse what is held; windows that were left open there (``left_open_text``) may be what holds it, and are named."""
    made = conflict("BUDGET_HELD", "what is left of the budget is held by an answer that is being streamed; try again")
    made.retry_after_ms = 1000
    if left_open:
        made.metadata[LEFT_OPEN] = left_open
    return made


def _outspent(what: str, session: str) -> Refused:
    name, limit, left = what.split(" ")
    made = exhausted(
        "SPENDING_LIMIT",
        "what this call may cost at most is more than is left of the spending limit of its session or of one above it",
        resource=name, limit=limit, left=left,
    )  # fmt: skip
    made.metadata["limited_session_id"] = session
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


def _incomplete(missing: str, _: Any) -> Refused:
    return conflict(
        "FAN_IN_INCOMPLETE",
        "children of the fan-out have no result here: they failed, were halted or are in flight; wait for them, or ask for a "
        "partial fan-in",
        missing=missing,
    )


def _too_few(given: int, _: Any) -> Refused:
    return invalid("FAN_IN_TOO_FEW", "a fan-in names two windows or more", given=str(given))


def _number(expected: int, given: int) -> Refused:
    return invalid(
        "WINDOW_NUMBER_MISMATCH",
        f"the next window is number {expected}, not {given}",
        expected=str(expected),
        given=str(given),
    )


def _constant(make: Callable[..., Refused], reason: str, message: str) -> Callable[[Any, Any], Refused]:
    return lambda *_: make(reason, message)


_MAKE: Mapping[str, Callable[[Any, Any], Refused]] = {
    "SESSION_STATE_LOST": _lost,
    "SESSION_STATE_UNVERIFIED": _unverified,
    "WINDOW_SETTLED_LATE": _late,
    "BUDGET_DEPLETED": _depleted,
    "ANCESTOR_HALTED": _barred("ANCESTOR_HALTED", "was halted by its breaker"),
    "ANCESTOR_EXHAUSTED": _barred("ANCESTOR_EXHAUSTED", "has spent its safety budget to the last"),
    "ANCESTOR_ENDED": _barred("ANCESTOR_ENDED", "has ended"),
    "CALLER_BUDGET_UNVERIFIED": _caller_unverified,
    "CALLER_BUDGET_DEPLETED": _caller_depleted,
    "MAX_WINDOWS_EXCEEDED": _limited(
        "MAX_WINDOWS_EXCEEDED", "max_windows", "a session has at most {} windows in a row; this would be number {}"
    ),
    "MAX_DAG_NODES_EXCEEDED": _limited(
        "MAX_DAG_NODES_EXCEEDED", "max_dag_nodes", "a session has at most {} windows; this would be number {}"
    ),
    "MAX_FAN_OUT_EXCEEDED": _limited(
        "MAX_FAN_OUT_EXCEEDED", "max_fan_out", "at most {} windows run side by side; this would make {}"
    ),
    "MAX_DELEGATIONS_EXCEEDED": _limited(
        "MAX_DELEGATIONS_EXCEEDED", "max_delegations", "this agent may start {} sub-agents; this would be number {}"
    ),
    "MAX_LOOP_DEPTH_EXCEEDED": _limited(
        "MAX_LOOP_DEPTH_EXCEEDED",
        "max_loop_depth",
        "agents may be {} levels below the root here; this would be level {}",
    ),
    "FAN_IN_INCOMPLETE": _incomplete,
    "FAN_IN_TOO_FEW": _too_few,
    "WINDOW_IN_FLIGHT": _in_flight,
    "BUDGET_HELD": _held,
    "SPENDING_LIMIT": _outspent,
    "TOKEN_REPLAYED": _replayed,
    "CONTINUATION_MISMATCH": _mismatch,
    "WINDOW_NUMBER_MISMATCH": _number,
    **{
        reason: _constant(make, reason, message)
        for make, reason, message in (
            (conflict, "LEASE_LOST", "this window does not hold its lease any more"),
            (conflict, "HOLD_NOT_POSSIBLE", "nothing is held for this window; its answer is released as a whole"),
            (conflict, "HOLD_NOT_COVERED", "the budget does not cover the most that this window may cost"),
            (conflict, "SESSION_EXISTS", "there is a session of this id"),
            (conflict, "SESSION_TERMINATED", "this session has ended; start a new one"),
            (not_found, "SESSION_NOT_FOUND", "no such session"),
            (not_found, "SESSION_NOT_BOUND", "nothing that this call brings names a session of its caller"),
            (
                not_found,
                "RESPONSE_NOT_FOUND",
                "no response of that id was given to this caller, or its session has ended",
            ),
            (conflict, "BINDING_TAKEN", "another session of this caller has this name; ask for its next window"),
            (not_found, "CONTINUATION_NOT_FOUND", "no window of this session has that continuation id"),
            (conflict, "POLICY_HASH_MISMATCH", "the stored policy is not the one that this token was signed for"),
            (conflict, "PARENT_NOT_TIP", "another window has been settled in this place"),
            (conflict, "WINDOW_ID_REUSED", "this window has been settled with another seal or charge"),
            (conflict, "ANCESTORS_MISMATCH", "the ancestors are not those that this session was created under"),
            (conflict, "POLICY_MOVED", "the policy of the session was tightened by another window meanwhile"),
            (conflict, "WINDOW_SETTLED", "this window was settled; it cannot fail any more"),
            (invalid, "PATTERN_NEEDS_PARENT", "the first window of a session continues nothing and is LINEAR"),
            (conflict, "NOTHING_TO_BRANCH_FROM", "the window has not been continued; continue it without a branch"),
            (invalid, "FAN_IN_DUPLICATE", "a fan-in names each window once"),
            (
                conflict,
                "FAN_IN_RELATED",
                "one of these windows is an ancestor of another: they did not run side by side",
            ),
            (conflict, "GRANT_ALREADY_USED", "this delegation grant was used; ask the parent for another"),
            (conflict, "APPROVAL_ALREADY_USED", "this approval allowed another delegation"),
            (conflict, "PARENT_ENDED", "the parent session has ended; it delegates nothing more"),
            (
                conflict,
                "PARENT_POLICY_CHANGED",
                "the parent's policy was tightened meanwhile; resolve the child's against it again",
            ),
            (
                forbidden,
                "DELEGATION_NEEDS_APPROVAL",
                "the parent's breaker is half open: a delegation needs an approval",
            ),
            (conflict, "DAG_INVARIANT_VIOLATED", "this window would break an invariant of the window DAG"),
        )
    },
}

RECOVERABLE = frozenset({"SESSION_STATE_LOST", "SESSION_STATE_UNVERIFIED"})
"""Refusals after which the session may be rebuilt from the audit log; their metadata names it and its root."""

CALLER_UNVERIFIED = "CALLER_BUDGET_UNVERIFIED"
"""Refusal after which the budget of the caller that its metadata names may be rebuilt from the audit log."""

REASONS = frozenset(_MAKE)
