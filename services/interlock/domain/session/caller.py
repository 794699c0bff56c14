"""The budget of a caller: one per caller and period, above all of its sessions (ATT-2; docs/adr/0018).

It is a counter that only grows: each session counts what its windows cost in a period, and what the caller has spent is the sum.
Counting a window twice, in any order, or from the audit log instead of the store comes to the same. A period that has begun never
gives way to an earlier one, whatever a clock says. A window belongs to the period in which it was opened.
``common.lua`` holds this rule in Redis; a property test holds the two together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from interlock.domain.budget import OPEN_AT, Micros
from interlock.domain.ids import SessionId, WindowId
from interlock.domain.session.session_refusals import refusal

PERIODS_KEPT = 2
"""The present period and the one before it, in which windows may still be in flight."""

Spent = tuple[tuple[int, Micros], ...]
"""What the windows of one session cost, by period, the latest last."""


def caller_id_of(scope: str) -> SessionId:
    """Return the id of a caller's own chain in the audit log. It holds for the scope alone and opens nothing."""
    return SessionId("crp_sess_" + hashlib.sha256(b"caller\n" + scope.encode()).hexdigest()[:32])


@dataclass(frozen=True)
class CallerAsk:
    """A caller enters the period of *number*; *cap* is the budget of a period that begins now."""

    caller_id: SessionId
    number: int
    cap: Micros


@dataclass(frozen=True)
class Period:
    """One period of a caller."""

    number: int
    cap: Micros
    spent: Mapping[SessionId, Micros] = field(default_factory=dict)
    holds: Mapping[WindowId, Micros] = field(default_factory=dict)
    """What windows opened in it may still cost of which a part was released (``holding``)."""

    @property
    def held(self) -> Micros:
        """All holds together."""
        return Micros(sum(self.holds.values()))

    @property
    def left(self) -> Micros:
        """Budget that is left of it."""
        return Micros(max(0, self.cap - sum(self.spent.values())))


@dataclass(frozen=True)
class CallerState:
    """The periods of a caller that are kept, the latest last; at least one."""

    periods: tuple[Period, ...]

    @property
    def now(self) -> Period:
        """The present period."""
        return self.periods[-1]

    @property
    def previous(self) -> int:
        """Number of the period before it of which something is kept; 0: none."""
        return self.periods[-2].number if len(self.periods) > 1 else 0

    def of(self, number: int) -> Period | None:
        """Return the period of that number when it is kept."""
        return next((period for period in self.periods if period.number == number), None)


@dataclass(frozen=True)
class CallerView:
    """What a call is told of its caller's budget."""

    caller_id: SessionId
    number: int
    cap: Micros
    left: Micros
    previous: int
    held: Micros = Micros(0)  # noqa: RUF009 - a NewType's constructor returns the number itself
    """What of it windows may still cost of which a part was released."""


@dataclass(frozen=True)
class Begun:
    """A new root session: its budget, and what its caller has."""

    budget: Micros
    caller: CallerView | None = None


def enter(state: CallerState | None, ask: CallerAsk, left_open: str = "") -> tuple[CallerState, CallerView]:
    """Return the caller in its present period, which begins now when its time has come.

    Refused with CALLER_BUDGET_UNVERIFIED for one that is not there, with CALLER_BUDGET_DEPLETED, and with BUDGET_HELD, which names
    the windows that were *left_open* in the session that asks and hold something: it is the caller's too.
    """
    state = _there(state)
    if ask.number > state.now.number:
        state = CallerState((state.now, Period(ask.number, ask.cap)))
    if state.now.left <= OPEN_AT:
        raise refusal("CALLER_BUDGET_DEPLETED", state.now.left, state.now.number)
    if state.now.left - state.now.held <= OPEN_AT:
        raise refusal("BUDGET_HELD", 0, left_open)
    return state, view_of(ask.caller_id, state)


def look(state: CallerState | None, caller_id: SessionId, number: int) -> tuple[CallerState, CallerView]:
    """Return the caller and its budget in the period of a window, or in the present one when that is long over.

    Refused with CALLER_BUDGET_UNVERIFIED for a period that the store does not know of yet: it was set back.
    """
    state = _there(state)
    if number > state.now.number:
        raise refusal("CALLER_BUDGET_UNVERIFIED")
    return state, view_of(caller_id, state, state.of(number))


def count(state: CallerState, session: SessionId, spent: Spent) -> CallerState:
    """Return the caller with all that a session has spent; less than is known already changes nothing."""
    told = dict(spent)
    return CallerState(
        tuple(
            replace(period, spent={**period.spent, session: told[period.number]})
            if told.get(period.number, 0) > period.spent.get(session, 0)
            else period
            for period in state.periods
        )
    )


def spend(spent: Spent, number: int, charge: Micros) -> Spent:
    """Return what a session has spent after one more window, of the latest periods."""
    told = dict(spent)
    told[number] = Micros(told.get(number, 0) + charge)
    return tuple(sorted(told.items()))[-PERIODS_KEPT:]


def merge(stored: CallerState | None, rebuilt: CallerState) -> CallerState:
    """Return what a store shall hold of a caller: the later periods, at the lower budget and the higher charges."""
    known = {period.number: period for period in (stored.periods if stored else ())}
    for period in rebuilt.periods:
        known[period.number] = _joined(known.get(period.number, period), period)
    return CallerState(tuple(known[number] for number in sorted(known)[-PERIODS_KEPT:]))


def rebuild(number: int, cap: Micros, charged: Iterable[tuple[int, SessionId, Micros]]) -> CallerState:
    """Return a caller from what the audit log says that its sessions were charged, by period; *number* is the present one.

    A later period that is on record wins over a clock that was set back.
    """
    periods: dict[int, dict[SessionId, Micros]] = {}
    for when, session, amount in charged:
        of = periods.setdefault(when, {})
        of[session] = Micros(of.get(session, 0) + amount)
    if number > max(periods, default=-1):
        periods[number] = {}
    return CallerState(tuple(Period(when, cap, periods[when]) for when in sorted(periods)[-PERIODS_KEPT:]))


def _there(state: CallerState | None) -> CallerState:
    if state is None:
        raise refusal("CALLER_BUDGET_UNVERIFIED")
    return state


def view_of(caller_id: SessionId, state: CallerState, period: Period | None = None) -> CallerView:
    """Return what is told of a caller in *period*, the present one if none is given."""
    told = period or state.now
    return CallerView(caller_id, told.number, told.cap, told.left, state.previous, told.held)


def _joined(one: Period, other: Period) -> Period:
    sessions = {*one.spent, *other.spent}
    spent = {session: Micros(max(one.spent.get(session, 0), other.spent.get(session, 0))) for session in sessions}
    return Period(one.number, Micros(min(one.cap, other.cap)), spent, {**other.holds, **one.holds})
