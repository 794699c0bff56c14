"""The use case of a caller's budget: which period it is in, and rebuilding it from the audit log (ATT-2; docs/adr/0018)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from interlock.domain.budget import Micros
from interlock.domain.errors import Refused
from interlock.domain.ids import SessionId
from interlock.domain.session.caller import CallerAsk, CallerView, caller_id_of, rebuild, view_of
from interlock.domain.session.session_refusals import CALLER_UNVERIFIED, LEFT_OPEN, refusal
from interlock.domain.session.token import Token, caller_of
from interlock.runtime.clock import Clock, iso8601
from interlock.session import metrics
from interlock.session.amended import Amended
from interlock.session.store.store import Store
from interlock.session.terms import SessionRules

SECOND_US = 1_000_000
MARGIN_PERIODS = 2
"""How many periods before the present one are asked for: a window counts for the one in which it was opened."""

MOST_SEEN = 65_536
"""Callers whose spent budget this process remembers; the one longest unseen is dropped."""

log = structlog.get_logger()


class Seen:
    """What this process last saw callers to have spent, so that a store which was set back in place is noticed.

    A budget is spent and never given back within its period. A store that tells of less under the same server was set back, by
    an old backup or a replica that was behind.
    """

    def __init__(self, most: int = MOST_SEEN) -> None:
        self._most = most
        self._spent: dict[SessionId, tuple[int, int]] = {}

    def note(self, view: CallerView) -> None:
        """Remember what *view* tells, whatever was known before."""
        self._spent.pop(view.caller_id, None)
        self._spent[view.caller_id] = (view.number, view.cap - view.left)
        if len(self._spent) > self._most:
            del self._spent[next(iter(self._spent))]

    def confirms(self, view: CallerView) -> bool:
        """Tell whether *view* agrees with what was seen; no, of a caller that this process has not seen yet."""
        if view.caller_id not in self._spent:
            return False
        period, spent = self._spent[view.caller_id]
        return period != view.number or view.cap - view.left >= min(view.cap, spent)


@dataclass(frozen=True)
class Callers:
    """Callers, over the same store as their sessions."""

    store: Store
    rules: SessionRules
    clock: Clock
    seen: Seen = field(default_factory=Seen)

    def witness(self, view: CallerView | None) -> None:
        """Remember what a settlement told of a caller. Refused with CALLER_BUDGET_UNVERIFIED when the store knew of more before.

        So is the first one that this process sees: what the store was before, only the audit log can tell it. The settlement
        stands, and asked for again once the caller was rebuilt from the log it is told as it was.
        """
        if view is None:
            return
        if not self.seen.confirms(view):
            log.info("caller.unconfirmed", caller_id=view.caller_id, period=view.number)
            raise refusal(CALLER_UNVERIFIED)
        self.seen.note(view)

    def of_scope(self, scope: str) -> CallerAsk | None:
        """Return what a new root session of *scope* asks of its caller; ``None`` where callers have no budget."""
        return self._ask(caller_id_of(scope)) if self.rules.caller_budget else None

    def of_token(self, token: Token) -> CallerAsk | None:
        """Return what the session of a token asks of its caller; ``None`` also where callers have no budget any more."""
        caller = caller_of(token) if self.rules.caller_budget else None
        return self._ask(caller) if caller else None

    def _ask(self, caller_id: SessionId) -> CallerAsk:
        number = max(1, self.clock() // (self.rules.caller_period_s * SECOND_US))
        return CallerAsk(caller_id, number, self.rules.caller_budget)

    def naming(self, ask: CallerAsk | None) -> Amended:
        """Name the caller in a refusal that its budget gives, and say when its period ends."""
        return self.naming_id(ask.caller_id if ask else "")

    def naming_id(self, caller_id: str) -> Amended:
        """Name the caller in a refusal, by its id."""
        return Amended(self._name, caller_id)

    def _name(self, refused: Refused, caller_id: str) -> None:
        if refused.reason == CALLER_UNVERIFIED:
            since_us = max(0, self.clock() - (MARGIN_PERIODS * self.rules.caller_period_s) * SECOND_US)
            refused.metadata |= {"caller_id": caller_id, "since": iso8601(since_us)}
        elif LEFT_OPEN in refused.metadata:
            refused.metadata["caller_id"] = caller_id  # what is freed there is freed for it too
        elif refused.reason == "CALLER_BUDGET_DEPLETED":
            metrics.CALLERS_REFUSED.inc()
            ends_at = (int(refused.metadata["period"]) + 1) * self.rules.caller_period_s
            wait_s = max(1, ends_at - self.clock() // SECOND_US)
            refused.metadata |= {"caller_id": caller_id, "ends_at": str(ends_at)}
            refused.retry_after_ms = wait_s * 1000
            log.warning("caller.depleted", caller_id=caller_id, ends_at=ends_at)

    async def restore(self, caller_id: SessionId, charged: Sequence[tuple[int, SessionId, Micros]]) -> CallerView:
        """Bring a caller's budget up to the audit log. It is never raised."""
        ask = self._ask(caller_id)
        state = await self.store.restore_caller(caller_id, rebuild(ask.number, ask.cap, charged))
        metrics.CALLERS_RESTORED.inc()
        log.info("caller.restored", caller_id=caller_id, period=state.now.number, left_micros=state.now.left)
        view = view_of(caller_id, state)
        self.seen.note(view)
        return view

    async def read(self, scope: str) -> CallerView | None:
        """Return the budget of a caller as it is stored; a period that is over is told as the next one, still full."""
        ask = self.of_scope(scope)
        state = await self.store.caller(ask.caller_id) if ask else None
        if ask is None or state is None:
            return None
        if ask.number > state.now.number:
            return CallerView(ask.caller_id, ask.number, ask.cap, ask.cap, state.now.number)
        return view_of(ask.caller_id, state)
