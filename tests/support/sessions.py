"""Session values for tests: ids, sealed windows, asks."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from interlock.domain.budget import FULL, Micros
from interlock.domain.dag import LINEAR, Limits, Node, Seal
from interlock.domain.errors import Refused
from interlock.domain.ids import ContinuationId, SessionId, WindowId
from interlock.domain.risk import RiskLevel
from interlock.domain.session import Committed, CommitWindow, Opened, OpenWindow, PolicyText, SessionState, Terms
from interlock.domain.session_rule import new_session

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


def new_state(n: int = 1, *, max_windows: int = 5, max_dag_nodes: int = 50, budget: int = FULL) -> SessionState:
    terms = Terms(
        session_id=session_id(n),
        root_session_id=session_id(n),
        scope="key_0123456789abcdef01234567",
        strategy="push",
        nonce="base64:AAECAwQFBgcICQoLDA0ODw==",
        key_version=1,
        loop_depth=0,
        limits=Limits(max_windows, max_dag_nodes),
        created_us=NOW_MS * 1000 + 1,
    )
    return new_session(terms, policy(), Micros(budget))


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
        "token_window": outcome.index,
        "token_tip": outcome.hmac,
        "token_continuation_id": outcome.continuation_id,
        "token_budget": outcome.path_budget,
        "token_policy_hash": committed.policy_hash,
    }
    return first_ask(window, session=session, **{**token, **changed})


def settle(window: int, opened: Opened | None = None, *, session: int = 1, **changed: Any) -> CommitWindow:
    """Return the commit of a window on its parent; without one it is the root."""
    values: dict[str, Any] = {
        "session_id": session_id(session),
        "root_session_id": session_id(session),
        "window_id": window_id(window),
        "parent_ids": (opened.parent_id,) if opened and opened.parent_id else (),
        "window_number": opened.parent_number + 1 if opened else 1,
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
