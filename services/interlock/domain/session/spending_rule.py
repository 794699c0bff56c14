"""The rule of spending, pure: reserve, charge, settle, up a tree of sessions (KRN-9; docs/adr/0037).

``common.lua`` and ``spend.lua`` are this rule in Redis; a property test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from interlock.domain.ids import SessionId, WindowId
from interlock.domain.session.session_refusals import refusal
from interlock.domain.session.spending import (
    NOTHING,
    TOKENS,
    UNLIMITED,
    USD,
    Amount,
    Reservation,
    SpendingLimits,
    SpendWindow,
)
from interlock.domain.session.state import SessionState

States = Mapping[SessionId, SessionState]
Changed = dict[SessionId, SessionState]


def spend_window(states: States, ask: SpendWindow) -> tuple[Changed, SpendingLimits]:
    """Reserve, or charge, and return the changed sessions with what is left; the lowest of all limits counts.

    A repeated reservation takes the place of the one before. Refused with SPENDING_LIMIT where a limit of the session or of one
    above it does not hold it, and with LEASE_LOST for a window that is settled. A charge is never refused: it takes the place of a
    reservation, and without one it changes nothing, so that no window is charged twice.
    """
    state = states.get(ask.session_id)
    path = (ask.session_id, *ask.ancestors)
    if state is None or any(each not in states for each in path):
        raise refusal("SESSION_STATE_LOST")
    if state.terms.ancestors != ask.ancestors:
        raise refusal("ANCESTORS_MISMATCH")
    mine = state.spending
    if ask.final:
        known = any(one.window_id == ask.window_id for one in mine.reserved)
        changed = charged(states, ask.session_id, ask.ancestors, ask.window_id, ask.amount) if known else {}
        return changed, left_on({**states, **changed}, path)
    if state.node(ask.window_id):
        raise refusal("LEASE_LOST")
    limited = {
        **states,
        ask.session_id: replace(state, spending=replace(mine, limits=mine.limits.tightened(ask.limits))),
    }
    changed = {each: _reserved(limited[each], Reservation(ask.window_id, ask.amount)) for each in path}
    return changed, left_on(changed, path)


def _reserved(state: SessionState, wanted: Reservation) -> SessionState:
    spending = state.spending.without(wanted.window_id)
    left = spending.left
    for name, most, amount in (
        (TOKENS, left.tokens, wanted.amount.tokens),
        (USD, left.usd, wanted.amount.usd),
    ):
        if most is not None and amount > most:
            limit = spending.limits.tokens if name == TOKENS else spending.limits.usd
            raise refusal("SPENDING_LIMIT", f"{name} {limit} {most}", state.terms.session_id)
    return replace(state, spending=replace(spending, reserved=(*spending.reserved, wanted)))


def charged(
    states: States, session_id: SessionId, ancestors: Iterable[SessionId], window_id: WindowId, amount: Amount
) -> Changed:
    """Charge what a window cost to its session and to every one above it, in place of its reservation."""
    own = dict(states[session_id].spending.charged).get(session_id, NOTHING) + amount
    changed: Changed = {}
    for each in (session_id, *ancestors):
        spending = states[each].spending.without(window_id)
        told = dict(spending.charged)
        if own != NOTHING:
            told[session_id] = told.get(session_id, NOTHING) | own
        changed[each] = replace(states[each], spending=replace(spending, charged=tuple(sorted(told.items()))))
    return changed


def left_on(states: States, path: Iterable[SessionId]) -> SpendingLimits:
    """Return what a session may still spend under its own limit and all above it."""
    left = UNLIMITED
    for each in path:
        left = left.tightened(states[each].spending.left)
    return left
