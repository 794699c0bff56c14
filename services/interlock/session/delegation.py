"""The use case of agent trees: grants, child sessions, results of sub-agents, and the picture of a tree (SPEC-012 §4, §7, §8)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from interlock.domain.breaker import breaker_state, strategy_under
from interlock.domain.budget import OPEN_AT, Micros
from interlock.domain.dag.dag import COMPLETED, Node
from interlock.domain.errors import Refused, exhausted, forbidden
from interlock.domain.ids import ENTROPY_BYTES, SessionId
from interlock.domain.session import grant as grants
from interlock.domain.session import token as tokens
from interlock.domain.session.above import Above, above_from
from interlock.domain.session.delegating import Delegated, ParentView
from interlock.domain.session.grant import Grant
from interlock.domain.session.rule import new_session
from interlock.domain.session.session_refusals import RECOVERABLE, refusal
from interlock.domain.session.session_tree import check_delegation
from interlock.domain.session.state import SessionState
from interlock.runtime import failpoints
from interlock.runtime.clock import iso8601
from interlock.runtime.keys.derivation import GRANT
from interlock.session import metrics
from interlock.session.ledger import Ledger
from interlock.session.ownership import check_own
from interlock.session.recording import key_unknown, naming
from interlock.session.terms import NewSession

MOST_SESSIONS = 1000
"""Sessions that one picture of a tree shows at most."""

log = structlog.get_logger()


@dataclass(frozen=True)
class Inherited:
    """What a grant gives: the grant itself, and the parent as it is now."""

    grant: Grant
    parent: ParentView

    @property
    def expires_at(self) -> str:
        """When the grant expires, ISO 8601 in UTC."""
        return iso8601(self.grant.expires_at * 1_000_000)

    @property
    def budget(self) -> Micros:
        """Most that the child's budget may be now."""
        return Micros(min(self.grant.budget, self.parent.budget))

    @property
    def strategy(self) -> str:
        """Strategy that the parent's breaker forces; empty when it forces none."""
        return strategy_under(breaker_state(self.parent.budget), "")


@dataclass(frozen=True)
class DelegationCommand:
    """What the holder of a session's token asks a grant for; ``lifetime_s`` 0 is the deployment's."""

    token: str
    scope: str
    agent_type: str
    lifetime_s: int
    approval_id: str
    ceiling: Micros


@dataclass(frozen=True)
class SubAgentAnswer:
    """An answer of a sub-agent: which one is asked for, and what is known of it."""

    session_id: SessionId
    hmac: str
    state: SessionState
    node: Node


class TreeUseCases:
    """Mints and reads grants, starts children and looks after what they answer; sessions are the ledger's."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._store = ledger.store

    async def delegate(self, asked: DelegationCommand) -> tuple[str, Inherited]:
        """Mint a grant for one child of the session of a token; everything is looked at again when it is used."""
        token = self._ledger.verify(asked.token, asked.scope)
        root = tokens.root_of(token)
        with naming(root, token.session_id):
            view = await self._store.view(
                root, token.session_id, pointer=token.continuation_id, approval_id=asked.approval_id
            )
            gone = view is None or token.window > view.top
            if view is None or gone or (token.continuation_id and view.pointed_hmac != token.chain_tip):
                raise refusal("SESSION_STATE_LOST")
        check_own(token, view.terms)
        check_delegation(view, approved=bool(asked.approval_id))
        budget = Micros(min(view.budget, token.budget, asked.ceiling))
        if budget <= OPEN_AT:
            raise refusal("BUDGET_DEPLETED", budget)
        version = self._ledger.keyring.current
        grant = Grant(
            grant_id=self._ledger.entropy(ENTROPY_BYTES).hex(),
            parent_session_id=token.session_id,
            root_session_id=root,
            agent_type=asked.agent_type,
            loop_depth=view.terms.loop_depth + 1,
            budget=budget,
            approval_id=asked.approval_id,
            expires_at=self._ledger.clock() // 1_000_000 + (asked.lifetime_s or self._ledger.rules.grant_lifetime_s),
            key_version=version,
        )
        key = self._key(version, token.session_id)
        if key is None:
            raise key_unknown()
        metrics.DELEGATIONS.labels("granted").inc()
        log.info("delegation.granted", session_id=token.session_id, agent_type=asked.agent_type, depth=grant.loop_depth)
        return grants.mint(grant, key), Inherited(grant, view)

    async def read(self, text: str, *, agent_type: str, parent: str = "", loop_depth: int | None = None) -> Inherited:
        """Verify a grant and return what a child under it inherits. It uses nothing up."""
        grant = grants.verify(text, self._key, now_us=self._ledger.clock(), agent_type=agent_type)
        grants.check_named(grant, parent=parent, loop_depth=loop_depth)
        with naming(grant.root_session_id, grant.parent_session_id):
            view = await self._store.view(
                grant.root_session_id,
                grant.parent_session_id,
                grant_id=grant.grant_id,
                approval_id=grant.approval_id,
            )
            if view is None:
                raise refusal("SESSION_STATE_LOST")
        check_delegation(view, approved=bool(grant.approval_id))
        return Inherited(grant, view)

    async def start(self, text: str, wanted: NewSession, *, parent_policy_hash: str) -> tuple[SessionState, str, Grant]:
        """Create the child that a grant is for, and return it with the token of its first window."""
        inherited = await self.read(text, agent_type=wanted.agent.agent_type)
        grant, parent = inherited.grant, inherited.parent.terms
        if parent.residency and wanted.residency not in {"", parent.residency}:
            raise forbidden(
                "DATA_RESIDENCY_VIOLATION",
                "data residency is inherited in an agent tree and cannot be changed",
                required=parent.residency,
                given=wanted.residency,
            )
        terms = self._ledger.terms(wanted, parent)
        state = new_session(terms, wanted.policy, Micros(min(wanted.ceiling, grant.budget)))
        ask = Delegated(
            parent=parent,
            grant_id=grant.grant_id,
            approval_id=grant.approval_id,
            parent_policy_hash=parent_policy_hash,
        )
        await failpoints.reached("session.before_start")
        with naming(grant.root_session_id, parent.session_id):
            state = replace(state, budget=await self._started(state, ask))
        await failpoints.reached("session.after_start")
        token = self._ledger.first_token(state)
        metrics.SESSIONS.labels("started").inc()
        metrics.DELEGATIONS.labels("started").inc()
        log.info(
            "session.started",
            session_id=terms.session_id,
            parent_session_id=parent.session_id,
            agent_type=wanted.agent.agent_type,
            depth=terms.loop_depth,
            safety_budget_micros=state.budget,
        )
        return state, token, grant

    async def _started(self, state: SessionState, ask: Delegated) -> Micros:
        """Start a child; when the connection was lost, once more: its id is new, so one that is there is this one."""
        try:
            return await self._store.start_child(state, ask)
        except Refused as refused:
            if refused.metadata.get("error") != "CONNECTION_LOST":
                raise
        try:
            return await self._store.start_child(state, ask)
        except Refused as refused:
            if refused.reason != "SESSION_EXISTS":
                raise
        there = await self._store.read(state.terms.root_session_id, state.terms.session_id)
        if there is None:
            raise refusal("SESSION_STATE_LOST")
        return there.budget

    async def results(
        self, root: SessionId, session: SessionId, wanted: Sequence[tuple[SessionId, str]]
    ) -> list[SubAgentAnswer]:
        """Return what is known of results that a session wants to consume.

        Refused with RESULT_NOT_LINKED unless each is a COMPLETED window of a child of it, named once (AGT-4). Sessions of
        others and sessions that do not exist are one answer.
        """
        with naming(root, session):
            parent = await self._store.read(root, session)
            if parent is None:
                raise refusal("SESSION_NOT_FOUND")
            ids = list(dict.fromkeys(child for child, _ in wanted))
            states = await asyncio.gather(*(self._store.read(root, child) for child in ids))
            if any(state is None and child in parent.children for child, state in zip(ids, states, strict=True)):
                raise refusal("SESSION_STATE_LOST")
        found = dict(zip(ids, states, strict=True))
        results: list[SubAgentAnswer] = []
        for place, (child, hmac) in enumerate(wanted):
            state = found[child]
            if (child, hmac) in wanted[:place]:
                raise _unlinked(child, "DUPLICATE")
            if state is None or state.terms.parent_session_id != session:
                raise _unlinked(child, "NOT_A_CHILD")
            node = next((node for node in state.nodes if node.seal.hmac == hmac), None)
            if node is None:
                raise _unlinked(child, "UNKNOWN_WINDOW")
            if node.seal.status != COMPLETED:
                raise _unlinked(child, node.seal.status)
            results.append(SubAgentAnswer(child, hmac, state, node))
        return results

    async def above(self, state: SessionState, known: Sequence[SessionState] = (), *, verified: bool = False) -> Above:
        """Return what stands above a session, of which *known* need not be read.

        Refused with SESSION_STATE_LOST or SESSION_STATE_UNVERIFIED as a window would be; unless *verified*, which operators do
        not ask for, a session above that cannot be read says nothing.
        """
        terms, there = state.terms, {one.terms.session_id: one for one in known}
        found = []
        for ancestor in terms.ancestors:
            one: SessionState | ParentView | None = there.get(ancestor)
            with naming(terms.root_session_id, terms.session_id):
                one = one or await self._view(terms.root_session_id, ancestor, verified=verified)
            if one is not None:
                found.append((ancestor, one.status, one.budget))
        return above_from(found)

    async def _view(self, root: SessionId, session: SessionId, *, verified: bool) -> ParentView | None:
        try:
            view = await self._store.view(root, session)
        except Refused as refused:
            if verified or refused.reason not in RECOVERABLE:
                raise
            return None
        if view is None and verified:
            raise refusal("SESSION_STATE_LOST")
        return view

    async def tree(self, top: SessionState) -> list[SessionState]:
        """Return a session and all sessions below it, each after its parent. One that is gone is left out."""
        root, found, level = top.terms.root_session_id, [top], [top]
        while level:
            below = [child for state in level for child in state.children]
            if len(found) + len(below) > MOST_SESSIONS:
                raise exhausted("TREE_TOO_LARGE", f"more than {MOST_SESSIONS} sessions; ask for a session further down")
            states = await asyncio.gather(*(self._store.read(root, child, verified=False) for child in below))
            level = [state for state in states if state]
            found += level
        return found

    def _key(self, version: int, session_id: str) -> bytes | None:
        return self._ledger.keyring.derive(version, session_id, GRANT)


def _unlinked(session: SessionId, cause: str) -> Refused:
    return forbidden(
        "RESULT_NOT_LINKED",
        "only completed windows of sub-agents of this session may be consumed, each once",
        session_id=session,
        cause=cause,
    )
