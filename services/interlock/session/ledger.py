"""The use case of the session service: tokens and windows over a store (SPEC-004 §4, SPEC-007, SPEC-012 §2).

What sessions delegate to one another is in ``delegation.py``.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import structlog

from interlock.domain.breaker import breaker_state, strategy_under
from interlock.domain.budget import FULL, OPEN_AT, Micros
from interlock.domain.dag.dag import LINEAR
from interlock.domain.errors import Refused, invalid
from interlock.domain.ids import ENTROPY_BYTES, ContinuationId, SessionId, WindowId, mint
from interlock.domain.session import token as tokens
from interlock.domain.session.rule import new_session
from interlock.domain.session.session_policy import is_tighter, tightened
from interlock.domain.session.session_refusals import refusal
from interlock.domain.session.standing import Point, Standing
from interlock.domain.session.state import (
    Committed,
    CommitWindow,
    FailWindow,
    OpenedWindow,
    OpenWindow,
    SessionState,
    Terms,
)
from interlock.domain.session.token import Token
from interlock.runtime import failpoints
from interlock.runtime.clock import Clock
from interlock.runtime.keys.derivation import CONTINUE, SIGN, Keyring
from interlock.session import metrics, roots
from interlock.session.callers import Callers
from interlock.session.ownership import check_own, verified
from interlock.session.recent import LatestTokens, RecentPlaces, TermsUnderWay
from interlock.session.recording import key_unknown, naming
from interlock.session.returning import ReturningLeases
from interlock.session.store.store import Store
from interlock.session.terms import NewSession, SessionRules, new_terms

POLICY_ATTEMPTS = 8

log = structlog.get_logger()


@dataclass(frozen=True)
class OpenCommand:
    """What a caller presents to open the next window: its token and the headers sent with it."""

    token: str
    scope: str
    continuation_id: ContinuationId | None
    nonce: str
    lease_ms: int
    pattern: str
    continuation_ids: tuple[ContinuationId, ...]
    partial: bool


class Ledger:
    """Starts sessions, opens and settles their windows, and signs what the client carries from one to the next."""

    def __init__(
        self, store: Store, keyring: Keyring, rules: SessionRules, *, clock: Clock, entropy: Callable[[int], bytes]
    ) -> None:
        self.rules, self.store, self.keyring = rules, store, keyring
        self.clock = clock
        self.entropy = entropy
        self.callers = Callers(store, rules, clock)
        self.recent, self.under_way, self.latest = RecentPlaces(), TermsUnderWay(), LatestTokens()
        self.returning = ReturningLeases(store)

    async def start(self, wanted: NewSession) -> tuple[SessionState, str]:
        """Create a root session with a full budget, its ceiling or what its caller has left, and return it with the token of
        its first window.
        """
        if wanted.ceiling <= OPEN_AT:
            raise refusal("BUDGET_DEPLETED", wanted.ceiling)
        await roots.admit(self.store, wanted.scope, most=self.rules.max_roots_per_minute, now_us=self.clock())
        caller = self.callers.of_scope(wanted.caller_scope or wanted.scope)
        session = SessionId(self.mint("crp_sess_"))
        if caller:
            session = await self.store.placed(session, caller.caller_id)
        terms = self.terms(wanted, None, session=session, caller_id=caller.caller_id if caller else "")
        state = new_session(terms, wanted.policy, wanted.ceiling)
        await failpoints.reached("session.before_start")
        with self.callers.naming(caller):
            begun = await self.store.start(state, caller)
        state = replace(state, budget=begun.budget)
        token = self.first_token(state)
        await failpoints.reached("session.after_start")
        metrics.SESSIONS.labels("started").inc()
        log.info("session.started", session_id=state.terms.session_id, safety_budget_micros=state.budget)
        return state, token

    def terms(
        self, wanted: NewSession, parent: Terms | None, *, session: SessionId | None = None, caller_id: str = ""
    ) -> Terms:
        """Return the terms of a new session, below *parent*, whose caller it has too, or as a root."""
        session = session or SessionId(self.mint("crp_sess_"))
        root = parent.root_session_id if parent else session
        caller_id = parent.caller_id if parent else caller_id
        return new_terms(
            wanted,
            parent,
            self.rules,
            session=session,
            nonce=tokens.nonce_of(self.entropy(ENTROPY_BYTES), session, root, caller_id),
            key_version=self.keyring.current,
            created_us=self.clock(),
            caller_id=caller_id,
        )

    async def open(self, presented: OpenCommand) -> tuple[WindowId, OpenedWindow]:
        """Verify a token and take the lease of the next window."""
        return await self._open(self.verify(presented.token, presented.scope), presented)

    async def open_first(self, state: SessionState, presented: OpenCommand) -> tuple[WindowId, OpenedWindow]:
        """Take the lease of the first window of a session that has just begun: its token need not be verified."""
        return await self._open(self._first(state), presented)

    async def open_at(
        self, standing: Standing, at: Point | None, presented: OpenCommand
    ) -> tuple[WindowId, OpenedWindow]:
        """Take the lease of the window that follows *at*, or of the first one, for a call that was bound without a token.

        It starts with no more than the session has left, wherever it stands: nothing vouches for a higher budget.
        """
        token = self._token(
            standing.terms,
            policy=standing.policy_hash,
            budget=min(at.path_budget, standing.budget) if at else standing.budget,
            window=at.number if at else 0,
            chain_tip=at.hmac if at else "",
            continuation_id=at.continuation_id if at else None,
        )
        return await self._open(token, presented, path_ceiling=token.budget)

    async def open_after(self, token: Token, presented: OpenCommand) -> tuple[WindowId, OpenedWindow]:
        """Take the lease of the window that follows a *token* given out here; it tells how the session's windows hang together."""
        return await self._open(token, presented, path_ceiling=token.budget, linked=True)

    async def _open(
        self, token: Token, presented: OpenCommand, path_ceiling: Micros = FULL, *, linked: bool = False
    ) -> tuple[WindowId, OpenedWindow]:
        if presented.nonce and presented.nonce != token.nonce:
            raise invalid("NONCE_MISMATCH", "the policy nonce is not the one of this session")
        ask = OpenWindow(
            session_id=token.session_id,
            root_session_id=tokens.root_of(token),
            window_id=WindowId(self.mint("crp_win_")),
            now_ms=self.clock() // 1000,
            lease_ms=presented.lease_ms or self.rules.lease_ms,
            continuation_id=presented.continuation_id,
            token_window=token.window,
            token_tip=token.chain_tip,
            token_continuation_id=token.continuation_id,
            token_budget=token.budget,
            token_policy_hash=token.policy_hash,
            pattern=presented.pattern,
            continuation_ids=presented.continuation_ids,
            partial=presented.partial,
            caller=self.callers.of_token(token),
            path_ceiling=path_ceiling,
            linked=linked,
        )
        await failpoints.reached("session.before_open")
        with naming(ask.root_session_id, ask.session_id), self.callers.naming(ask.caller):
            opened = await self._leased(ask)
        try:
            check_own(token, opened.terms)
        except Refused:
            self._return(ask)
            raise
        await failpoints.reached("session.after_open")
        self.under_way.keep(ask.window_id, opened.terms)
        log.info("window.opened", session_id=ask.session_id, window_id=ask.window_id, number=opened.number)
        return ask.window_id, opened

    async def commit(self, ask: CommitWindow) -> tuple[Committed, str]:
        """Settle a sealed window and return what it did with the token of the next one."""
        await failpoints.reached("session.before_settle")
        begun = time.perf_counter()
        with naming(ask.root_session_id, ask.session_id), self.callers.naming_id(ask.caller_id):
            committed = await self._committed(ask)
            self.callers.witness(committed.caller)
        await failpoints.reached("session.after_settle")
        metrics.SETTLE.observe(time.perf_counter() - begun)
        metrics.note_settled(ask.session_id, ask.seal, committed)
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
        token = self._token(
            committed.terms,
            policy=committed.policy_hash,
            budget=Micros(min(outcome.session_budget, committed.left)),
            window=outcome.number,
            chain_tip=outcome.hmac,
            continuation_id=outcome.continuation_id,
            quality_history=committed.quality_history,
            pattern=committed.pattern,
        )
        self.latest.keep(ask.window_id, token)
        return committed, self._sign(token)

    def continuation_of(self, session: SessionId, window: WindowId, key_version: int) -> ContinuationId:
        """Return the continuation id of a window; a commit keeps it unless it was the last window.

        128 bits of an HMAC: it cannot be guessed, and a rebuilt session knows the pointers that it issued.
        """
        key = self.keyring.derive(key_version or self.keyring.current, session, CONTINUE)
        if key is None:
            raise key_unknown()
        return ContinuationId("crp_cont_" + hmac.digest(key, window.encode(), "sha256")[:ENTROPY_BYTES].hex())

    async def fail(self, ask: FailWindow) -> bool:
        """Give up a window that will never be sealed; it stays in the DAG as FAILED."""
        with naming(ask.root_session_id, ask.session_id):
            failed = await self.store.fail(ask)
        log.info(
            "window.failed", session_id=ask.session_id, window_id=ask.window_id, reason=ask.reason, released=failed
        )
        return failed

    async def abandon(self, root: SessionId, session: SessionId, window: WindowId, caller_id: str = "") -> bool:
        """Give the lease of a window back that was never sealed, and its hold."""
        with naming(root, session):
            released = await self.store.abandon(root, session, window, caller_id)
        log.info("window.abandoned", session_id=session, window_id=window, released=released)
        return released

    async def acknowledge(self, root: SessionId, session: SessionId, windows: Collection[WindowId]) -> int:
        """Note that what windows moved is on record; return how many were waiting for it."""
        with naming(root, session):
            return await self.store.acknowledge(root, session, windows)

    async def read(self, *, session: SessionId | None, root: SessionId | None, token: str, scope: str) -> SessionState:
        """Return a session named by token or id; another caller's session does not exist for this one."""
        if token:
            said = self.verify(token, scope or None)
            if session not in {None, said.session_id}:
                raise invalid("SESSION_ID_MISMATCH", "the token is of another session than the id")
            session, root = said.session_id, tokens.root_of(said)
        if session is None:
            raise invalid("SESSION_NOT_NAMED", "give a session id or a token")
        # Without a token this is an operator's view: it shows what is stored, verified or not.
        with naming(root or session, session):
            state = await self.store.read(root or session, session, verified=bool(token))
            if state is None and root is None and (known := await self.store.root_of(session)):
                state = await self.store.read(known, session, verified=False)
            if state is None:
                raise refusal("SESSION_STATE_LOST" if token else "SESSION_NOT_FOUND")
        if token:
            check_own(said, state.terms)
        if scope and state.terms.scope != scope:
            raise refusal("SESSION_NOT_FOUND")
        return state

    async def terminate(
        self, *, token: str, scope: str, session: SessionId | None = None, root: SessionId | None = None
    ) -> tuple[SessionState, bool]:
        """End the session of a token, or one that an operator names, for good; return its state and whether this call ended it."""
        if token or session is None:
            said = self.verify(token, scope)
            session, root = said.session_id, tokens.root_of(said)
        root = (await self.read(session=session, root=root, token=token, scope=scope)).terms.root_session_id
        with naming(root, session):
            changed = await self.store.terminate(root, session)
            state = await self.store.read(root, session)
            if state is None:
                raise refusal("SESSION_STATE_LOST")
        if changed:
            metrics.SESSIONS.labels("terminated").inc()
            log.info("session.terminated", session_id=session)
        return state, changed

    async def close(self) -> None:
        """Wait for leases on their way back, then let go of the store."""
        await self.returning.settled()
        await self.store.close()

    async def _committed(self, ask: CommitWindow) -> Committed:
        """Settle; where a parallel window tightened the session's policy meanwhile, under the join of both policies."""
        asked = ask.policy
        if asked is None:
            return await self.store.commit(ask)
        ask = replace(ask, policy_base=asked.hash)
        for _ in range(POLICY_ATTEMPTS):
            try:
                return await self.store.commit(ask)
            except Refused as refused:
                if refused.reason != "POLICY_MOVED":
                    raise
            view = await self.store.view(ask.root_session_id, ask.session_id)
            if view is None:
                raise refusal("SESSION_STATE_LOST")
            ask = replace(ask, policy=tightened(view.policy, asked), policy_base=view.policy.hash)
        raise refusal("POLICY_MOVED")

    async def _leased(self, ask: OpenWindow) -> OpenedWindow:
        """Take a lease. Give it back when its caller is gone, or when it is unknown whether it was taken."""
        try:
            try:
                return await self.store.open(ask)
            except Refused as refused:
                if refused.reason != "POLICY_HASH_MISMATCH":
                    raise
                return await self.store.open(await self._under_present_policy(ask, refused))
        except asyncio.CancelledError:
            self._return(ask)
            raise
        except Refused as refused:
            if refused.reason == "SESSION_STORE_UNAVAILABLE":
                self._return(ask)
            raise

    async def _under_present_policy(self, ask: OpenWindow, refused: Refused) -> OpenWindow:
        """Return the ask under the stored policy when a parallel window made that from the token's by tightening.

        The token holds its policy's hash alone, so write access to the store is not enough to substitute a looser policy.
        """
        state = await self.store.read(ask.root_session_id, ask.session_id)
        for policy in state.replaced if state else ():
            digest = "sha256:" + hashlib.sha256(policy.text.encode()).hexdigest()
            if state and digest == policy.hash == ask.token_policy_hash and is_tighter(policy, state.policy):
                return replace(ask, token_policy_hash=state.policy.hash)
        raise refused

    def _return(self, ask: OpenWindow) -> None:
        self.returning.give_back(ask.root_session_id, ask.session_id, ask.window_id)

    def mint(self, prefix: str) -> str:
        """Return a fresh id of that kind."""
        return mint(prefix, self.entropy(ENTROPY_BYTES))

    def verify(self, text: str, scope: str | None) -> Token:
        """Return the claims of a token, verified: signature, scope and lifetime."""
        return verified(text, self.keyring, now_us=self.clock(), scope=scope)

    def first_token(self, state: SessionState) -> str:
        """Return the token of a session's first window."""
        return self._sign(self._first(state))

    def _first(self, state: SessionState) -> Token:
        return self._token(state.terms, policy=state.policy.hash, budget=state.budget)

    def _key(self, version: int, session_id: str) -> bytes | None:
        return self.keyring.derive(version, session_id, SIGN)

    def _sign(self, token: Token) -> str:
        key = self._key(token.key_version, token.session_id)
        if key is None:
            raise key_unknown()
        return tokens.mint(token, key)

    def _token(
        self,
        terms: Terms,
        *,
        policy: str,
        budget: Micros,
        window: int = 0,
        chain_tip: str = "",
        continuation_id: ContinuationId | None = None,
        quality_history: tuple[str, ...] = (),
        pattern: str = LINEAR,
    ) -> Token:
        now = self.clock() // 1_000_000
        return Token(
            session_id=terms.session_id,
            window=window,
            quality_history=quality_history,
            budget=budget,
            chain_tip=chain_tip,
            continuation_id=continuation_id,
            pattern=pattern,
            strategy=strategy_under(breaker_state(budget), terms.strategy),
            policy_hash=policy,
            ckf_hash="",
            scope=terms.scope,
            issued_at=now,
            expires_at=now + self.rules.token_lifetime_s,
            nonce=terms.nonce,
            key_version=terms.key_version,
        )
