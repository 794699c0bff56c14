"""What is looked at of a session before a call without a token is bound to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from interlock.domain.binding.links import Links
from interlock.domain.budget import Micros
from interlock.domain.dag.dag import Limits, Node
from interlock.domain.ids import ContinuationId, WindowId
from interlock.domain.session.state import SessionState, Status, Terms


@dataclass(frozen=True)
class Point:
    """A sealed window as a token would tell it."""

    number: int
    hmac: str
    path_budget: Micros
    continuation_id: ContinuationId | None


@dataclass(frozen=True)
class Standing:
    """A session, how its windows hang together, and some of them as points: the latest one and those asked for."""

    terms: Terms
    policy_hash: str
    status: Status
    budget: Micros
    used_up: bool
    """Whether its limits leave room for no further window."""
    tip: WindowId | None
    links: Links
    points: Mapping[WindowId, Point]

    @property
    def ended_by_client(self) -> bool:
        """Whether its client ended it; one that ended by its limits goes on in a linked session."""
        return self.status is Status.TERMINATED and not self.used_up


def is_used_up(limits: Limits, *, windows: int, longest: int, open_ends: int) -> bool:
    """Tell whether so many windows, of which the furthest has this number, leave room for no further one."""
    return windows >= limits.max_dag_nodes or (longest >= limits.max_windows and not open_ends)


def links_of(nodes: Sequence[Node]) -> Links:
    """Return how the windows of a session hang together."""
    place = {node.window_id: at for at, node in enumerate(nodes)}
    return Links(
        [node.window_id for node in nodes],
        [[place[parent] for parent in node.parent_ids] for node in nodes],
        {at for at, node in enumerate(nodes) if node.failed},
    )


def standing_of(state: SessionState, windows: Iterable[WindowId]) -> Standing:
    """Return how *state* stands, with *windows* as points."""
    tip = state.tip.window_id if state.tip else None
    wanted = {*windows, tip}
    continued = {parent for node in state.nodes if not node.failed for parent in node.parent_ids}
    open_ends = sum(node.continuation_id is not None and node.window_id not in continued for node in state.nodes)
    return Standing(
        terms=state.terms,
        policy_hash=state.policy.hash,
        status=state.status,
        budget=state.budget,
        used_up=is_used_up(state.terms.limits, windows=len(state.nodes), longest=state.tip_number, open_ends=open_ends),
        tip=tip,
        links=links_of(state.nodes),
        points={
            node.window_id: Point(node.window_number, node.seal.hmac, node.safety_budget, node.continuation_id)
            for node in state.nodes
            if node.window_id in wanted and not node.failed
        },
    )
