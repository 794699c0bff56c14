"""What a session is, what may be asked of it and what it answers. The rules are in ``rule.py`` and its neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from interlock.domain.binding.links import Links
from interlock.domain.breaker import BreakerState, Transition, breaker_state, transitions
from interlock.domain.budget import FULL, Micros
from interlock.domain.chain.chain_state import WHOLE, ChainState
from interlock.domain.dag.dag import LINEAR, Edge, Limits, Node, Seal
from interlock.domain.dag.lineage import History
from interlock.domain.ids import ContinuationId, SessionId, WindowId
from interlock.domain.session.caller import CallerAsk, CallerView, Spent
from interlock.domain.session.hold import BudgetHold
from interlock.domain.session.spending import NOTHING, UNLIMITED, UNSPENT, Amount, Spending, SpendingLimits


class Status(IntEnum):
    """Whether a session accepts windows; numbers equal ``interlock.api.session.v1.SessionStatus``."""

    ACTIVE = 1
    HALTED = 2
    TERMINATED = 3


@dataclass(frozen=True)
class PolicyText:
    """The canonical effective policy and its SHA-256; both empty for none."""

    text: str
    hash: str


@dataclass(frozen=True)
class AgentTerms:
    """What an agent type may do (SPEC-012 §7). ``None`` leaves a number to the deployment; no strategies means all."""

    agent_type: str = ""
    max_loop_depth: int | None = None
    max_delegations: int | None = None
    allowed_strategies: tuple[str, ...] = ()


ANY_AGENT = AgentTerms()


@dataclass(frozen=True)
class Terms:
    """What a session is created with and keeps for life.

    ``ancestors`` runs from the parent up to the root. ``deepest`` is the lowest level below the root on which a session under this one may be, by the
    limits of all agents above it. ``max_delegations`` is its agent's limit, else the deployment's. ``accumulate``: what windows cost is taken off the
    session and its ancestors, not off one path alone. ``aware``: whoever began the session asked for protection, so that no call of it is only
    watched. ``spending``: what it and all below it may spend on model calls, as it began with.
    """

    session_id: SessionId
    root_session_id: SessionId
    scope: str
    strategy: str
    nonce: str
    key_version: int
    loop_depth: int
    limits: Limits
    created_us: int
    ancestors: tuple[SessionId, ...] = ()
    agent: AgentTerms = ANY_AGENT
    deepest: int = 0
    max_delegations: int = 0
    accumulate: bool = False
    residency: str = ""
    safety_mode: str = ""
    caller_id: str = ""
    """The caller whose budget stands above the whole tree; empty: none does."""
    continues: SessionId | None = None
    """Session whose windows were used up, which this one goes on from."""
    aware: bool = False
    spending: SpendingLimits = UNLIMITED

    @property
    def parent_session_id(self) -> SessionId | None:
        """Session that delegated to this one; ``None`` for a root."""
        return self.ancestors[0] if self.ancestors else None


VOID = "VOID"
"""Pattern of a lease whose place was taken by another window."""


@dataclass(frozen=True)
class Lease:
    """The right to dispatch one window, until a time in milliseconds since the epoch."""

    window_id: WindowId
    until_ms: int
    pattern: str = LINEAR
    parent_ids: tuple[WindowId, ...] = ()


@dataclass(frozen=True)
class Effect:
    """What a settlement did to one ancestor session."""

    session_id: SessionId
    before: Micros
    after: Micros
    status: Status

    @property
    def transitions(self) -> tuple[Transition, ...]:
        """Steps of the ancestor's breaker."""
        return transitions(breaker_state(self.before), breaker_state(self.after))


@dataclass(frozen=True)
class CommitOutcome:
    """What a commit did, stored so that a repeated one gets the same answer. ``ancestors`` holds all, from the parent up, when any changed."""

    index: int
    path_budget: Micros
    session_budget: Micros
    before: BreakerState
    status: Status
    charge: Micros
    hmac: str
    continuation_id: ContinuationId | None
    number: int
    ancestors: tuple[Effect, ...] = ()

    @property
    def after(self) -> BreakerState:
        """Breaker after the commit."""
        return breaker_state(self.session_budget)

    @property
    def moved(self) -> bool:
        """Whether the audit trail has more to say of it than its seal does."""
        return self.before is not self.after or bool(self.ancestors) or self.status is not Status.ACTIVE

    @property
    def transitions(self) -> tuple[Transition, ...]:
        """Steps of the breaker that the commit caused."""
        return transitions(self.before, self.after)


@dataclass(frozen=True)
class SessionState:
    """All that is known of one session; ``outcomes`` holds one entry per entry of ``nodes``.

    ``cap`` holds every path down to what ancestors' rules left: no window starts above it. ``expired`` are leases that ran out and whose windows may
    have been sealed. ``untold`` are windows whose moves were not acknowledged as recorded. ``late`` are windows that a restore settled and that
    nothing continues: whether their answers were given is not known. ``spending``: what model calls of it and of all below it cost.
    """

    terms: Terms
    policy: PolicyText
    status: Status
    budget: Micros
    nodes: tuple[Node, ...] = ()
    outcomes: tuple[CommitOutcome, ...] = ()
    leases: tuple[Lease, ...] = ()
    expired: tuple[Lease, ...] = ()
    cap: Micros = FULL
    children: tuple[SessionId, ...] = ()
    grants: frozenset[tuple[str, SessionId]] = frozenset()
    approvals: frozenset[str] = frozenset()
    facts: tuple[str, ...] = ()
    replaced: frozenset[PolicyText] = frozenset()
    untold: tuple[WindowId, ...] = ()
    late: frozenset[WindowId] = frozenset()
    spent: Spent = ()
    """What its windows cost its caller, by the periods in which they were opened."""
    holds: tuple[BudgetHold, ...] = ()
    spending: Spending = UNSPENT

    @property
    def held(self) -> Micros:
        """What windows may still cost of which a part was released: other windows see the budget less that."""
        return Micros(sum(hold.amount for hold in self.holds))

    @property
    def tip(self) -> Node | None:
        """The latest sealed window; ``None`` before the first."""
        return next((node for node in reversed(self.nodes) if not node.failed), None)

    @property
    def tip_number(self) -> int:
        """Highest number of a window, 0 before the first."""
        return max((node.window_number for node in self.nodes), default=0)

    @property
    def lease(self) -> Lease | None:
        """The latest lease that is held."""
        return self.leases[-1] if self.leases else None

    @property
    def unsettled(self) -> tuple[WindowId, ...]:
        """Windows whose leases ran out, in the order in which openings name them."""
        return tuple(lease.window_id for lease in self.expired)

    def node(self, window_id: WindowId) -> Node | None:
        """Return the window of that id."""
        return next((node for node in self.nodes if node.window_id == window_id), None)

    def tells(self, outcome: CommitOutcome) -> bool:
        """Return whether the audit trail is to say more of a settlement than its seal does: a caller's charge too."""
        return outcome.moved or bool(self.terms.caller_id and outcome.charge)

    def sums(self, ask: CommitWindow) -> bool:
        """Return whether a charge is taken off the session's budget itself, not off one path alone."""
        return self.terms.accumulate or ask.accumulate

    def charge_above(self, ask: CommitWindow, level: int) -> Micros:
        """Return what is taken off the budget of an ancestor itself, *level* steps above the parent."""
        if self.terms.accumulate:
            return ask.charge
        return Micros(0) if level else ask.parent_charge

    def below(self, window_id: WindowId) -> tuple[Node, ...]:
        """Return the windows that continue a window, failed ones included."""
        return tuple(node for node in self.nodes if window_id in node.parent_ids)


@dataclass(frozen=True)
class OpenWindow:
    """A verified token asks for the lease of the next window. ``partial`` lets a fan-in, with its pointers, leave out children that failed."""

    session_id: SessionId
    root_session_id: SessionId
    window_id: WindowId
    now_ms: int
    lease_ms: int
    continuation_id: ContinuationId | None
    token_window: int
    token_tip: str
    token_continuation_id: ContinuationId | None
    token_budget: Micros
    token_policy_hash: str
    pattern: str = LINEAR
    continuation_ids: tuple[ContinuationId, ...] = ()
    partial: bool = False
    caller: CallerAsk | None = None
    """The caller whose budget is looked at too; ``None``: none stands above the session."""
    path_ceiling: Micros = FULL
    """Most that the window's path may start with: of a call without a token, what its session has left."""
    linked: bool = False
    """Whether the lease tells how the session's windows hang together."""


@dataclass(frozen=True)
class Parent:
    """A window that another one continues."""

    window_id: WindowId
    number: int
    hmac: str
    tier: str
    status: str
    path_budget: Micros


@dataclass(frozen=True)
class OpenedWindow:
    """The lease of a window, with what its dispatch needs; ``parents`` are sorted by id."""

    terms: Terms
    policy: PolicyText
    pattern: str
    parents: tuple[Parent, ...]
    path_budget: Micros
    session_budget: Micros
    lapsed: Lease | None
    """A lease that ran out, whose window is to be looked at now."""
    left_out: tuple[WindowId, ...]
    facts: tuple[str, ...]
    history: History
    untold: tuple[WindowId, ...] = ()
    caller: CallerView | None = None
    lapsed_hold: Micros = Micros(0)  # noqa: RUF009 - a NewType's constructor returns the number itself
    """What the window of that lease holds: a part of its answer may have been released."""
    links: Links | None = field(default=None, compare=False)
    """How the session's windows hang together; ``None`` where it was not asked for."""
    limited: bool = False
    """Whether a spending limit stands, its own or one above it."""

    @property
    def unsettled(self) -> WindowId | None:
        """The window of that lease: it may have been sealed."""
        return self.lapsed.window_id if self.lapsed else None

    @property
    def number(self) -> int:
        """Number of the window: one further than its furthest parent."""
        return max((parent.number for parent in self.parents), default=0) + 1


@dataclass(frozen=True)
class CommitWindow:
    """A sealed window and its charge.

    ``policy`` replaces the session's when that is still *policy_base*, or whatever it is without one; ``None`` keeps it. ``accumulate`` takes the
    charge off the session's budget itself; ``parent_charge`` is taken off the parent session's.
    """

    session_id: SessionId
    root_session_id: SessionId
    window_id: WindowId
    parent_ids: tuple[WindowId, ...]
    window_number: int
    charge: Micros
    ceiling: Micros
    continuation_id: ContinuationId
    seal: Seal
    policy: PolicyText | None
    policy_base: str | None = None
    pattern: str = LINEAR
    ancestors: tuple[SessionId, ...] = ()
    edges: tuple[Edge, ...] = ()
    facts: tuple[str, ...] = ()
    accumulate: bool = False
    parent_charge: Micros = Micros(0)  # noqa: RUF009 - a NewType's constructor returns the number itself
    chain: ChainState = WHOLE
    """State of the session by its audit chain, without this window: a store that holds more budget was set back."""
    above: tuple[ChainState, ...] = ()
    """The same of each ancestor, from the parent up; empty: not compared."""
    caller_id: str = ""
    caller_period: int = 0
    """Caller whose budget the charge is counted against, and the period that it was in when the window was opened."""
    spent: Amount = NOTHING


@dataclass(frozen=True)
class Barrier:
    """The nearest session above one that lets nothing below it go on: why, and the budget that it has left."""

    reason: str
    session_id: SessionId
    budget: Micros


@dataclass(frozen=True)
class Committed:
    """The answer to a commit: what it did, now or before. *left* and *barrier* are as they are now in either case."""

    terms: Terms
    policy_hash: str
    outcome: CommitOutcome
    duplicate: bool
    pattern: str
    history: History
    left: Micros
    """What the session has left: the budget that its response and its token carry (requirements.md, reading 12)."""
    barrier: Barrier | None = None
    caller: CallerView | None = None

    @property
    def lineage(self) -> tuple[WindowId, ...]:
        """All ancestors of the window and itself, each after its own parents."""
        return self.history.lineage

    @property
    def quality_history(self) -> tuple[str, ...]:
        """Tiers of the lineage."""
        return self.history.tiers


@dataclass(frozen=True)
class FailWindow:
    """A window that will never be sealed, and why. Without its lease *pattern* and *parent_ids* say where it stood."""

    session_id: SessionId
    root_session_id: SessionId
    window_id: WindowId
    reason: str
    pattern: str = LINEAR
    parent_ids: tuple[WindowId, ...] = ()
