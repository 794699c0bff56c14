"""The use case of the session service: tokens and windows over a store (SPEC-004 §4, SPEC-007, SPEC-012 §2)."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from interlock.domain import token as tokens
from interlock.domain.breaker import state_of, strategy_under
from interlock.domain.budget import Decrements, Micros
from interlock.domain.dag import LINEAR, Limits
from interlock.domain.errors import Refused, invalid, unavailable
from interlock.domain.ids import ENTROPY_BYTES, ContinuationId, SessionId, WindowId, mint
from interlock.domain.session import Committed, CommitWindow, Opened, OpenWindow, PolicyText, SessionState, Terms
from interlock.domain.session_refusals import refusal
from interlock.domain.session_rule import new_session
from interlock.domain.token import Token
from interlock.runtime.clock import Clock
from interlock.runtime.keys import SIGN, Keyring
from interlock.session import metrics
from interlock.session.store import Store

log = structlog.get_logger()


@dataclass(frozen=True)
class Rules:
    """What a deployment sets for all of its sessions."""

    limits: Limits
    decrements: Decrements
    token_lifetime_s: int
    lease_ms: int


@dataclass(frozen=True)
class Presented:
    """What a caller presents to go on: its token and the headers beside it."""

    token: str
    scope: str
    continuation_id: ContinuationId | None
    nonce: str
    lease_ms: int


class Ledger:
    """Starts sessions, opens and settles their windows, and signs what the client carries from one to the next."""

    def __init__(
        self, store: Store, keyring: Keyring, rules: Rules, *, clock: Clock, entropy: Callable[[int], bytes]
    ) -> None:
        self.rules = rules
        self._store = store
        self._keyring = keyring
        self._clock = clock
        self._entropy = entropy
        self._returning: set[asyncio.Task[None]] = set()

    async def start(self, *, scope: str, policy: PolicyText, strategy: str) -> tuple[SessionState, str]:
        """Create a session with a full budget and return it with the token of its first window."""
        session = SessionId(self._mint("crp_sess_"))
        terms = Terms(
            session_id=session,
            root_session_id=session,
            scope=scope,
            strategy=strategy,
            nonce="base64:" + base64.b64encode(self._entropy(ENTROPY_BYTES)).decode(),
            key_version=self._keyring.current,
            loop_depth=0,
            limits=self.rules.limits,
            created_us=self._clock(),
        )
        state = new_session(terms, policy)
        token = self._sign(terms, policy_hash=policy.hash, budget=state.budget)
        await self._store.start(state)
        metrics.SESSIONS.labels("started").inc()
        log.info("session.started", session_id=session, safety_budget_micros=state.budget)
        return state, token

    async def open(self, presented: Presented) -> tuple[WindowId, Opened]:
        """Verify a token and take the lease of the next window."""
        token = self._verify(presented.token, presented.scope)
        if presented.nonce and presented.nonce != token.nonce:
            raise invalid("NONCE_MISMATCH", "the policy nonce is not the one of this session")
        ask = OpenWindow(
            session_id=token.session_id,
            root_session_id=token.session_id,
            window_id=WindowId(self._mint("crp_win_")),
            now_ms=self._clock() // 1000,
            lease_ms=presented.lease_ms or self.rules.lease_ms,
            continuation_id=presented.continuation_id,
            token_window=token.window,
            token_tip=token.chain_tip,
            token_continuation_id=token.continuation_id,
            token_budget=token.budget,
            token_policy_hash=token.policy_hash,
        )
        opened = await self._leased(ask)
        log.info("window.opened", session_id=ask.session_id, window_id=ask.window_id, number=opened.parent_number + 1)
        return ask.window_id, opened

    async def commit(self, ask: CommitWindow) -> tuple[Committed, str]:
        """Settle a sealed window and return what it did with the token of the next one."""
        begun = time.perf_counter()
        committed = await self._store.commit(ask)
        metrics.SETTLE.observe(time.perf_counter() - begun)
        metrics.note_settled(ask.seal.risk_level, committed)
        outcome = committed.outcome
        log.info(
            "window.settled",
            session_id=ask.session_id,
            window_id=ask.window_id,
            charge_micros=outcome.charge,
            safety_budget_micros=outcome.session_budget,
            breaker=outcome.after.name,
            duplicate=committed.duplicate,
        )
        token = self._sign(
            committed.terms,
            policy_hash=committed.policy_hash,
            budget=outcome.path_budget,
            session_budget=outcome.session_budget,
            window=ask.window_number,
            chain_tip=outcome.hmac,
            continuation_id=outcome.continuation_id,
            quality_history=committed.quality_history,
        )
        return committed, token

    def next_continuation(self) -> ContinuationId:
        """Return a fresh continuation id; a commit keeps it unless it was the last window."""
        return ContinuationId(self._mint("crp_cont_"))

    async def abandon(self, root: SessionId, session: SessionId, window: WindowId) -> bool:
        """Give the lease of a window back that was never sealed."""
        released = await self._store.abandon(root, session, window)
        log.info("window.abandoned", session_id=session, window_id=window, released=released)
        return released

    async def read(self, *, session: SessionId | None, token: str, scope: str) -> SessionState:
        """Return a session named by token or id; another caller's session does not exist for this one."""
        if token:
            verified = self._verify(token, scope or None)
            if session not in {None, verified.session_id}:
                raise invalid("SESSION_ID_MISMATCH", "the token is of another session than the id")
            session = verified.session_id
        if session is None:
            raise invalid("SESSION_NOT_NAMED", "give a session id or a token")
        state = await self._store.read(session, session)
        if state is None:
            raise refusal("SESSION_STATE_LOST" if token else "SESSION_NOT_FOUND")
        if scope and state.terms.scope != scope:
            raise refusal("SESSION_NOT_FOUND")
        return state

    async def terminate(self, *, token: str, scope: str) -> tuple[SessionState, bool]:
        """End the session of a token for good; the answer says whether it ended now."""
        session = self._verify(token, scope).session_id
        changed = await self._store.terminate(session, session)
        state = await self._store.read(session, session)
        if state is None:
            raise refusal("SESSION_STATE_LOST")
        if changed:
            metrics.SESSIONS.labels("terminated").inc()
            log.info("session.terminated", session_id=session)
        return state, changed

    async def close(self) -> None:
        """Wait for leases on their way back, then let go of the store."""
        if self._returning:
            await asyncio.wait(self._returning)
        await self._store.close()

    async def _leased(self, ask: OpenWindow) -> Opened:
        """Take a lease; when nobody is left to use it, or nobody knows whether it was taken, give it back."""
        try:
            return await self._store.open(ask)
        except asyncio.CancelledError:
            self._return(ask)
            raise
        except Refused as refused:
            if refused.reason == "SESSION_STORE_UNAVAILABLE":
                self._return(ask)
            raise

    def _return(self, ask: OpenWindow) -> None:
        task = asyncio.create_task(self._give_back(ask))
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)

    async def _give_back(self, ask: OpenWindow) -> None:
        try:
            await self._store.abandon(ask.root_session_id, ask.session_id, ask.window_id)
        except Refused as refused:
            # It runs out by itself.
            log.info("window.lease_left", session_id=ask.session_id, window_id=ask.window_id, reason=refused.reason)

    def _mint(self, prefix: str) -> str:
        return mint(prefix, self._entropy(ENTROPY_BYTES))

    def _verify(self, text: str, scope: str | None) -> Token:
        return tokens.verify(text, self._key, now_us=self._clock(), scope=scope)

    def _key(self, version: int, session_id: str) -> bytes | None:
        return self._keyring.derive(version, session_id, SIGN)

    def _sign(
        self,
        terms: Terms,
        *,
        policy_hash: str,
        budget: Micros,
        session_budget: Micros | None = None,
        window: int = 0,
        chain_tip: str = "",
        continuation_id: ContinuationId | None = None,
        quality_history: tuple[str, ...] = (),
    ) -> str:
        key = self._key(terms.key_version, terms.session_id)
        if key is None:
            raise unavailable("SIGNING_KEY_UNKNOWN", "the master key of this session is not here", retry_after_ms=0)
        now = self._clock() // 1_000_000
        breaker = state_of(budget if session_budget is None else session_budget)
        token = Token(
            session_id=terms.session_id,
            window=window,
            quality_history=quality_history,
            budget=budget,
            chain_tip=chain_tip,
            continuation_id=continuation_id,
            pattern=LINEAR,
            strategy=strategy_under(breaker, terms.strategy),
            policy_hash=policy_hash,
            ckf_hash="",
            scope=terms.scope,
            issued_at=now,
            expires_at=now + self.rules.token_lifetime_s,
            nonce=terms.nonce,
            key_version=terms.key_version,
        )
        return tokens.mint(token, key)
