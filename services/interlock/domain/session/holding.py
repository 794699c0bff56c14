"""The hold of a window whose answer is released in parts: the most that it may cost is set aside first (BUD-11; docs/adr/0030).

A hold lowers no budget: it is what the settlement of its window may take, and other windows of the session and of its caller see
the budget less that. It ends with that settlement alone, or with its lease where nothing was released. ``hold.lua`` is this rule
in Redis.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from interlock.domain.budget import OPEN_AT
from interlock.domain.dag.dag import LINEAR
from interlock.domain.ids import WindowId
from interlock.domain.session.caller import CallerState
from interlock.domain.session.hold import BudgetHold, HoldWindow
from interlock.domain.session.session_refusals import refusal
from interlock.domain.session.state import VOID, SessionState


def hold_window(
    state: SessionState | None, caller: CallerState | None, ask: HoldWindow
) -> tuple[SessionState, CallerState | None]:
    """Set aside what a window may cost, in its session and with its caller. Repeated with the same amount it changes nothing.

    Refused with LEASE_LOST, HOLD_NOT_POSSIBLE below another session, where costs add up and for parallel windows, and with
    HOLD_NOT_COVERED where the budget would not survive the worst: such an answer is released as a whole.
    """
    if state is None:
        raise refusal("SESSION_STATE_LOST")
    if ask.caller_id and caller is None:
        raise refusal("CALLER_BUDGET_UNVERIFIED")
    if BudgetHold(ask.window_id, ask.amount, ask.caller_period) in state.holds:
        return state, caller
    patterns = [lease.pattern for lease in state.leases if lease.window_id == ask.window_id]
    if patterns in ([], [VOID]) or state.node(ask.window_id):
        raise refusal("LEASE_LOST")
    again = any(hold.window_id == ask.window_id for hold in state.holds)
    if again or patterns != [LINEAR] or state.terms.ancestors or state.terms.accumulate:
        raise refusal("HOLD_NOT_POSSIBLE")
    if min(state.budget, ask.ceiling) - state.held - ask.amount <= OPEN_AT:
        raise refusal("HOLD_NOT_COVERED")
    hold = BudgetHold(ask.window_id, ask.amount, ask.caller_period)
    if ask.caller_id and caller is not None:
        period = caller.of(ask.caller_period) or caller.now
        if period.left - period.held - ask.amount <= OPEN_AT:
            raise refusal("HOLD_NOT_COVERED")
        caller = caller_holding(caller, [hold])
    return replace(state, holds=(*state.holds, hold)), caller


def freed(state: SessionState, window_id: WindowId) -> SessionState:
    """Return a session without the hold of a window."""
    return replace(state, holds=tuple(hold for hold in state.holds if hold.window_id != window_id))


def caller_holding(caller: CallerState, holds: Iterable[BudgetHold]) -> CallerState:
    """Return a caller with these holds too, each in the period in which its window was opened.

    One that it has stays as it is. Of a period that is forgotten nothing is held: a hold that nobody settles lapses with it.
    """
    told = list(holds)
    return CallerState(
        tuple(
            replace(
                period, holds={**{h.window_id: h.amount for h in told if h.period == period.number}, **period.holds}
            )
            for period in caller.periods
        )
    )


def caller_rebuilt(caller: CallerState, state: SessionState) -> CallerState:
    """Return a caller with the holds of a session as it was rebuilt, and without those of its windows that are settled.

    A caller that was set back, or outlived its session, may still hold something for a window that was settled meanwhile.
    """
    settled = {node.window_id for node in state.nodes}
    kept = CallerState(
        tuple(
            replace(period, holds={window: held for window, held in period.holds.items() if window not in settled})
            for period in caller.periods
        )
    )
    return caller_holding(kept, state.holds)


def caller_freed(caller: CallerState, window_id: WindowId) -> CallerState:
    """Return a caller without the hold of a window."""
    return CallerState(
        tuple(
            replace(period, holds={window: held for window, held in period.holds.items() if window != window_id})
            for period in caller.periods
        )
    )
