"""Session values for tests: ids, sealed windows, asks."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from interlock.domain.budget import FULL, Micros
from interlock.domain.dag.dag import LINEAR, Limits, Node, Seal
from interlock.domain.errors import Refused
from interlock.domain.ids import ContinuationId, SessionId, WindowId
from interlock.domain.risk.risk import RiskLevel
from interlock.domain.session.delegating import Delegated
from interlock.domain.session.rule import new_session
from interlock.domain.session.state import (
    Committed,
    CommitWindow,
    OpenedWindow,
    OpenWindow,
    PolicyText,
    SessionState,
    Terms,
)

NOW_MS = 1_748_160_000_000
LEASE_MS = 60_000
LOW, MEDIUM, HIGH, CRITICAL = Micros(0), Micros(50_000), Micros(150_000), Micros(350_000)


def session_id(n: int = 1) -> SessionId:
    return SessionId(f"crp_sess_{n:032x}")


def window_id(n: int) -> WindowId:
    return WindowId(f"crp_win_{n:032x}")


def continuation_id(n: int) -> ContinuationId:
    return ContinuationId(f"crp_cont_{n:032x}")


def digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def policy(text: str = "halt-on CRITICAL") -> PolicyText:
    return PolicyText(text, digest(text))


def seal(n: int, **changed: Any) -> Seal:
    values: dict[str, Any] = {
        "risk_level": RiskLevel.MEDIUM,
        "hmac": digest(f"hmac {n}"),
        "timestamp": f"2026-05-25T10:00:{n % 60:02d}.000001Z",
        "response_hash": digest(f"response {n}"),
        "envelope_etag": digest(f"envelope {n}"),
        "quality_tier": "SABCD"[n % 5],
        "strategy": "push",
        "token_count": 100 + n,
        "status": "COMPLETED",
    }
    return Seal(**{**values, **changed})


def node(n: int, *parents: int, number: int | None = None, **changed: Any) -> Node:
    values: dict[str, Any] = {
        "window_id": window_id(n),
        "window_number": n if number is None else number,
        "parent_ids": tuple(window_id(parent) for parent in parents),
        "continuation_id": continuation_id(n),
        "pattern": LINEAR,
        "safety_budget": Micros(900_000),
        "charge": MEDIUM,
        "seal": seal(n),
    }
    return Node(**{**values, **changed})


def new_state(
    n: int = 1,
    *,
    max_windows: int = 5,
    max_dag_nodes: int = 50,
    max_fan_out: int = 10,
    budget: int = FULL,
    **changed: Any,
) -> SessionState:
    terms = Terms(
        session_id=session_id(n),
        root_session_id=changed.pop("root_session_id", session_id(n)),
        scope="key_0123456789abcdef01234567",
        strategy="push",
        nonce="base64:AAECAwQFBgcICQoLDA0ODw==",
        key_version=1,
        loop_depth=changed.pop("loop_depth", 0),
        limits=Limits(max_windows, max_dag_nodes, max_fan_out),
        created_us=NOW_MS * 1000 + 1,
        deepest=changed.pop("deepest", 5),
        max_delegations=changed.pop("max_delegations", 20),
        **changed,
    )
    return new_session(terms, policy(), Micros(budget))


def child_of(parent: SessionState, n: int, *, budget: int = FULL, **changed: Any) -> SessionState:
    """Return a session below another one, as it is asked for: *budget* is its ceiling."""
    above = parent.terms
    values: dict[str, Any] = {
        "root_session_id": above.root_session_id,
        "loop_depth": above.loop_depth + 1,
        "ancestors": (above.session_id, *above.ancestors),
        "deepest": above.deepest,
        "accumulate": above.accumulate,
    }
    return new_state(n, budget=budget, **{**values, **changed})


def delegated(parent: SessionState, grant: int, *, approval: str = "", **changed: Any) -> Delegated:
    """Return what a grant number brings to the creation of a child."""
    given = {"parent_policy_hash": parent.policy.hash, **changed}
    return Delegated(parent=parent.terms, grant_id=f"{grant:032x}", approval_id=approval, **given)


def pointer_ask(window: int, state: SessionState, at: WindowId, **changed: Any) -> OpenWindow:
    """Return what the holder of the token of the window *at* asks."""
    node = state.node(at)
    assert node
    token = {
        "session_id": state.terms.session_id,
        "root_session_id": state.terms.root_session_id,
        "token_window": node.window_number,
        "token_tip": node.seal.hmac,
        "token_continuation_id": node.continuation_id,
        "token_budget": node.safety_budget,
        "token_policy_hash": state.policy.hash,
    }
    return first_ask(window, **{**token, **changed})


def first_ask(window: int, *, session: int = 1, **changed: Any) -> OpenWindow:
    """Return what the holder of a new session's token asks."""
    values: dict[str, Any] = {
        "session_id": session_id(session),
        "root_session_id": session_id(session),
        "window_id": window_id(window),
        "now_ms": NOW_MS,
        "lease_ms": LEASE_MS,
        "continuation_id": None,
        "token_window": 0,
        "token_tip": "",
        "token_continuation_id": None,
        "token_budget": FULL,
        "token_policy_hash": policy().hash,
    }
    return OpenWindow(**{**values, **changed})


def next_ask(window: int, committed: Committed, *, session: int = 1, **changed: Any) -> OpenWindow:
    """Return what the holder of the token of *committed* asks."""
    outcome = committed.outcome
    token = {
        "token_window": outcome.number,
        "token_tip": outcome.hmac,
        "token_continuation_id": outcome.continuation_id,
        "token_budget": outcome.path_budget,
        "token_policy_hash": committed.policy_hash,
    }
    return first_ask(window, session=session, **{**token, **changed})


def settle(window: int, opened: OpenedWindow | None = None, *, session: int = 1, **changed: Any) -> CommitWindow:
    """Return the commit of a window on its parent; without one it is the root."""
    values: dict[str, Any] = {
        "session_id": opened.terms.session_id if opened else session_id(session),
        "root_session_id": opened.terms.root_session_id if opened else session_id(session),
        "window_id": window_id(window),
        "parent_ids": tuple(parent.window_id for parent in opened.parents) if opened else (),
        "window_number": opened.number if opened else 1,
        "pattern": opened.pattern if opened else LINEAR,
        "ancestors": opened.terms.ancestors if opened else (),
        "charge": MEDIUM,
        "ceiling": opened.path_budget if opened else FULL,
        "continuation_id": continuation_id(window),
        "seal": seal(window),
        "policy": None,
    }
    return CommitWindow(**{**values, **changed})


async def line(store: Any, *charges: int) -> list[Committed]:
    """Settle windows 1, 2, … of session 1 with these charges and return every answer."""
    settled: list[Committed] = []
    for n, cost in enumerate(charges, 1):
        opened = await store.open(next_ask(n, settled[-1]) if settled else first_ask(n))
        settled.append(await store.commit(settle(n, opened, charge=Micros(cost))))
    return settled


async def refused(call: Any) -> Refused:
    """Await a call that has to be refused, and return the refusal."""
    with pytest.raises(Refused) as caught:
        await call
    return caught.value
