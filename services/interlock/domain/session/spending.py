"""What the model calls of a tree of agents may cost: one exact limit in tokens and in money (KRN-9; docs/adr/0037).

What a call costs is known only after it. So the most that it can cost is reserved before the provider is asked, in the session and in
every session above it, and the settlement of the window takes the place of the reservation. A reservation that nothing settles
stays: until a seal says otherwise it is what the call cost. The rule is in ``spending_rule.py``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from interlock.domain.ids import SessionId, WindowId

MOST = 10**14
"""Largest amount of one window, tokens or millionths of a dollar: sums of ten of them stay exact in Lua."""

TOKENS, USD = "tokens", "usd"


@dataclass(frozen=True)
class Amount:
    """Tokens, and millionths of a US dollar."""

    tokens: int = 0
    usd: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.tokens + other.tokens, self.usd + other.usd)

    def __or__(self, other: Amount) -> Amount:
        """Return the higher of both in each."""
        return Amount(max(self.tokens, other.tokens), max(self.usd, other.usd))


NOTHING = Amount()


@dataclass(frozen=True)
class SpendingLimits:
    """The most that a session and all below it may spend; ``None``: no limit of its own."""

    tokens: int | None = None
    usd: int | None = None

    def __bool__(self) -> bool:
        return self.tokens is not None or self.usd is not None

    def tightened(self, other: SpendingLimits) -> SpendingLimits:
        """Return the lower of both limits in each."""
        return SpendingLimits(_lower(self.tokens, other.tokens), _lower(self.usd, other.usd))


UNLIMITED = SpendingLimits()


def _lower(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)


@dataclass(frozen=True)
class Reservation:
    """The most that the model calls of a window may cost, until it is settled."""

    window_id: WindowId
    amount: Amount


@dataclass(frozen=True)
class Spending:
    """What a session and all below it have spent, and may."""

    limits: SpendingLimits = UNLIMITED
    charged: tuple[tuple[SessionId, Amount], ...] = ()
    """What each of them was charged for windows of its own, sorted by id. It only grows."""
    reserved: tuple[Reservation, ...] = ()
    """What is not settled, of all of them, in the order in which it was reserved."""
    closed: frozenset[WindowId] = frozenset()
    """Windows that a chain says are settled: what a store still reserves for them is over. Never stored."""

    @property
    def total(self) -> Amount:
        """What was charged."""
        return sum((amount for _, amount in self.charged), NOTHING)

    @property
    def outstanding(self) -> Amount:
        """What is reserved."""
        return sum((one.amount for one in self.reserved), NOTHING)

    @property
    def left(self) -> SpendingLimits:
        """What may still be reserved; ``None`` where there is no limit."""
        gone = self.total + self.outstanding
        return SpendingLimits(
            None if self.limits.tokens is None else max(0, self.limits.tokens - gone.tokens),
            None if self.limits.usd is None else max(0, self.limits.usd - gone.usd),
        )

    def without(self, window_id: WindowId) -> Spending:
        """Return it without the reservation of a window."""
        return replace(self, reserved=tuple(one for one in self.reserved if one.window_id != window_id))


UNSPENT = Spending()


@dataclass(frozen=True)
class SpendWindow:
    """What the model calls of a window come to so far: reserved, or charged where the window will not be sealed."""

    session_id: SessionId
    root_session_id: SessionId
    window_id: WindowId
    amount: Amount
    ancestors: tuple[SessionId, ...] = ()
    limits: SpendingLimits = UNLIMITED
    """Limits that the session has from now on, if they are lower than its own."""
    final: bool = False
    """Whether the calls are over and the window will not be sealed."""


def merged_spending(stored: Spending, rebuilt: Spending, *, settled: Collection[WindowId] = ()) -> Spending:
    """Return what a store shall hold: the lower limits, the higher charges, and every reservation that is not known to be over.

    Of two for one window the higher: a store that was set back may hold what was reserved for the first of its model calls.
    *settled* are windows of the session that the store holds as settled.
    """
    told = dict(stored.charged)
    for session_id, amount in rebuilt.charged:
        told[session_id] = told.get(session_id, NOTHING) | amount
    reserved: dict[WindowId, Amount] = {}
    for one in (*stored.reserved, *rebuilt.reserved):
        reserved[one.window_id] = reserved.get(one.window_id, NOTHING) | one.amount
    over = {*rebuilt.closed, *settled}
    return Spending(
        limits=stored.limits.tightened(rebuilt.limits),
        charged=tuple(sorted(told.items())),
        reserved=tuple(Reservation(window, amount) for window, amount in reserved.items() if window not in over),
    )
