"""What the session service counts. No session id is ever a label."""

from __future__ import annotations

import math
import time
from collections import OrderedDict

from prometheus_client import Counter, Gauge, Histogram

from interlock.domain.breaker import BreakerState
from interlock.domain.budget import FULL, OPEN_AT
from interlock.domain.dag.dag import Seal
from interlock.domain.session.state import Committed, Status

DECREMENTS = Counter("interlock_budget_decrements_total", "Windows charged, by risk level.", ["level"])
CHARGED = Counter(
    "interlock_budget_charged_total",
    "Sum of what settled windows were charged, in safety budgets of 1.0: what the lowest path of a session does not show.",
)
REMAINING = Histogram(
    "interlock_budget_remaining_ratio",
    "Safety budget of the session after each settled window, 0 to 1.",
    buckets=(0.0, 0.1, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
)
SESSIONS = Counter(
    "interlock_sessions_total", "Sessions by what happened to them: started, halted, completed, terminated.", ["event"]
)
TRANSITIONS = Counter("interlock_breaker_transitions_total", "Steps of the circuit breaker.", ["from", "to"])
CASCADES = Counter("interlock_budget_cascades_total", "Ancestor sessions whose budget a settled window lowered.")
ROOTS_REFUSED = Counter(
    "interlock_roots_refused_total", "Root sessions refused because a key began too many in a minute."
)
CALLERS_REFUSED = Counter(
    "interlock_callers_refused_total", "Calls refused because their caller had spent its budget of the period."
)
CALLERS_DEPLETED = Counter("interlock_callers_depleted_total", "Periods in which a caller spent its budget.")
CALLERS_RESTORED = Counter(
    "interlock_callers_restored_total", "Budgets of callers rebuilt from the audit log, those of new callers too."
)
DELEGATIONS = Counter("interlock_delegations_total", "Delegations by what happened: granted, started.", ["event"])
SETTLE = Histogram(
    "interlock_settle_duration_seconds",
    "Duration of one settle in the store, seconds.",
    buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0),
)


class ActiveSessions:
    """The sessions in which this process settled a window lately, the oldest forgotten beyond *most*."""

    def __init__(self, most: int = 100_000, lately_s: float = 300.0) -> None:
        self._most, self._lately_s = most, lately_s
        self._settled_at: OrderedDict[str, float] = OrderedDict()

    def settled(self, session_id: str, now_s: float) -> None:
        """Note a settled window at *now_s* of a clock that only goes on."""
        self._settled_at[session_id] = now_s
        self._settled_at.move_to_end(session_id)
        if len(self._settled_at) > self._most:
            self._settled_at.popitem(last=False)

    def count(self, now_s: float) -> int:
        """Return how many there are at *now_s*."""
        while self._settled_at and next(iter(self._settled_at.values())) < now_s - self._lately_s:
            self._settled_at.popitem(last=False)
        return len(self._settled_at)


ACTIVE = ActiveSessions()
ACTIVE_SESSIONS = Gauge(
    "interlock_sessions_active", "Sessions in which this process settled a window in the last five minutes."
)
ACTIVE_SESSIONS.set_function(lambda: ACTIVE.count(time.monotonic()))
OPEN_SESSIONS = Gauge(
    "interlock_sessions_open",
    "Sessions in the whole store that nothing has ended, children too; NaN where the store's user may not SCAN. Every replica tells the same: take one, not the sum.",
)
OPEN_SESSIONS.set(math.nan)  # not counted yet, which is not none
COUNTED_AT = Gauge("interlock_sessions_counted_at_seconds", "When interlock_sessions_open was counted, Unix seconds.")


def note_settled(session_id: str, seal: Seal, committed: Committed) -> None:
    """Count a settle and what it did to ancestors; one that had been settled before counts nothing."""
    if committed.duplicate:
        return
    ACTIVE.settled(session_id, time.monotonic())
    outcome = committed.outcome
    if seal.risk_level:
        DECREMENTS.labels(seal.risk_level.name).inc()
    CHARGED.inc(outcome.charge / FULL)
    REMAINING.observe(outcome.session_budget / FULL)
    caller = committed.caller
    if caller and outcome.charge and caller.left <= OPEN_AT < caller.left + outcome.charge:
        CALLERS_DEPLETED.inc()
    for step in outcome.transitions:
        TRANSITIONS.labels(step.before.name, step.after.name).inc()
    for effect in outcome.ancestors:
        CASCADES.inc(effect.after < effect.before)
        for step in effect.transitions:
            TRANSITIONS.labels(step.before.name, step.after.name).inc()
        if effect.transitions and effect.transitions[-1].after is BreakerState.OPEN:
            SESSIONS.labels("halted").inc()
    if outcome.after is BreakerState.OPEN and outcome.before is not BreakerState.OPEN:
        SESSIONS.labels("halted").inc()
    elif outcome.status is Status.TERMINATED:
        SESSIONS.labels("completed").inc()
