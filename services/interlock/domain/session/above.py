"""What stands above a session: the sessions that delegated to it, from its parent up to the root (SPEC-012 §5.3; I20).

A halt goes down as well as up: whatever ended a session ends every session below it (requirements.md, reading 14). Where costs
add up, every session is held to what all of them together have left (reading 13). ``common.lua`` is this rule in Redis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from interlock.domain.budget import EXHAUSTED_AT, FULL, OPEN_AT, Micros
from interlock.domain.ids import SessionId
from interlock.domain.session.session_refusals import ANCESTOR_ENDED, ANCESTOR_EXHAUSTED, ANCESTOR_HALTED, refusal
from interlock.domain.session.state import Barrier, SessionState, Status


@dataclass(frozen=True)
class Above:
    """The lowest budget above a session, full for a root, and what bars it; ``None``: nothing does."""

    lowest: Micros
    barrier: Barrier | None

    def holds(self, budget: Micros, *, summing: bool) -> Micros:
        """Return the budget that a session of such a tree can use: where costs add up, no more than any session above it has."""
        return Micros(min(budget, self.lowest)) if summing else budget


NOTHING_ABOVE = Above(FULL, None)
"""Above a root."""


def ending(status: Status, budget: Micros) -> str:
    """Return why a session lets nothing below it go on; empty where it does not."""
    if budget <= EXHAUSTED_AT:
        return ANCESTOR_EXHAUSTED
    if budget <= OPEN_AT or status is Status.HALTED:
        return ANCESTOR_HALTED
    return ANCESTOR_ENDED if status is Status.TERMINATED else ""


def check_above(above: Above) -> None:
    """Refuse what is below a session that bars it."""
    if above.barrier is not None:
        raise refusal(above.barrier.reason, above.barrier.session_id, above.barrier.budget)


def above_of(states: Mapping[SessionId, SessionState], state: SessionState) -> Above:
    """Return what stands above a session. Refused with SESSION_STATE_LOST where a session above is not there."""
    if any(session_id not in states for session_id in state.terms.ancestors):
        raise refusal("SESSION_STATE_LOST")
    return above_from((each, states[each].status, states[each].budget) for each in state.terms.ancestors)


def above_from(ancestors: Iterable[tuple[SessionId, Status, Micros]]) -> Above:
    """Return what the sessions above, from the parent up to the root, come to."""
    lowest, barrier = FULL, None
    for session_id, status, budget in ancestors:
        lowest = Micros(min(lowest, budget))
        if barrier is None and (why := ending(status, budget)):
            barrier = Barrier(why, session_id, budget)
    return Above(lowest, barrier)
