"""What a session is, what may be asked of it and what it answers. The rule is in ``session_rule.py``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from interlock.domain.breaker import BreakerState, Transition, state_of, transitions
from interlock.domain.budget import Micros
from interlock.domain.dag import Limits, Node, Seal
from interlock.domain.ids import ContinuationId, SessionId, WindowId


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
class Terms:
    """What a session is created with and keeps for life."""

    session_id: SessionId
    root_session_id: SessionId
    scope: str
    strategy: str
    nonce: str
    key_version: int
    loop_depth: int
    limits: Limits
    created_us: int


@dataclass(frozen=True)
class Lease:
    """The right to dispatch one window, until a time in milliseconds since the epoch."""

    window_id: WindowId
    until_ms: int


@dataclass(frozen=True)
class Outcome:
    """What a commit did. It is stored, so that a repeated commit gets the same answer."""

    index: int
    path_budget: Micros
    session_budget: Micros
    before: BreakerState
    status: Status
    charge: Micros
    hmac: str
    continuation_id: ContinuationId | None

    @property
    def after(self) -> BreakerState:
        """Breaker after the commit."""
        return state_of(self.session_budget)

    @property
    def transitions(self) -> tuple[Transition, ...]:
        """Steps of the breaker that the commit caused."""
        return transitions(self.before, self.after)


@dataclass(frozen=True)
class SessionState:
    """All that is known of one session; ``outcomes`` lies beside ``nodes``."""

    terms: Terms
    policy: PolicyText
    status: Status
    budget: Micros
    nodes: tuple[Node, ...]
    outcomes: tuple[Outcome, ...]
    lease: Lease | None
    unsettled: tuple[WindowId, ...]

    @property
    def tip(self) -> Node | None:
        """The latest window; ``None`` before the first."""
        return self.nodes[-1] if self.nodes else None

    @property
    def tip_number(self) -> int:
        """Number of the latest window, 0 before the first."""
        return self.nodes[-1].window_number if self.nodes else 0


@dataclass(frozen=True)
class OpenWindow:
    """A verified token asks for the lease of the next window."""

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


@dataclass(frozen=True)
class Opened:
    """The lease of a window, with what its dispatch needs."""

    terms: Terms
    policy: PolicyText
    parent_id: WindowId | None
    parent_number: int
    parent_hmac: str
    path_budget: Micros
    session_budget: Micros
    unsettled: WindowId | None
    lineage: tuple[WindowId, ...]
    quality_history: tuple[str, ...]


@dataclass(frozen=True)
class CommitWindow:
    """A sealed window and its charge. ``policy`` replaces the session's; ``None`` keeps it."""

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


@dataclass(frozen=True)
class Committed:
    """The answer to a commit: what it did, now or before."""

    terms: Terms
    policy_hash: str
    outcome: Outcome
    duplicate: bool
    lineage: tuple[WindowId, ...]
    quality_history: tuple[str, ...]
