"""How sessions begin: a root, or a sub-agent's under a delegation grant (SPEC-012 §4, §7, §10.2; AGT-2, POL-5 to POL-7)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from interlock.api.audit.v1 import audit_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import FULL, OPEN_AT
from interlock.domain.errors import Kind, Refused, conflict, forbidden, halted, unauthenticated, unavailable
from interlock.domain.headers.awareness import aware
from interlock.domain.headers.headers import RequestHeaders
from interlock.runtime import failpoints
from interlock.runtime.keys.api_keys import UNVERIFIED, Caller
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings
from interlock.sidecar.admission.agents import terms_of
from interlock.sidecar.admission.explanation import tell_caller_halt
from interlock.sidecar.admission.policies import Policies, check_layers, stricter
from interlock.sidecar.settlement.recovery import Recovery
from interlock.sidecar.trail import response_headers, tree_events
from interlock.sidecar.trail.response_headers import ResponseHeaders

POLICY_CHANGED = "PARENT_POLICY_CHANGED"
"""The parent tightened its policy between reading the grant and using it: worth another try."""

TRIES = 3


@dataclass(frozen=True)
class Origin:
    """Who begins a session, and under which grant; no grant is a root."""

    caller: Caller
    agent: policy_pb2.Agent
    grant: str = ""
    first_window: session_pb2.OpenWindowRequest | None = None
    """Opened in the same call; ``None`` where no call follows yet."""
    names: tuple[session_pb2.BoundName, ...] = ()
    """Names under which the session is to be found again."""
    continues: session_pb2.Session | None = None
    """Session whose windows are used up: the new one has its policy and what is left of its budget."""


@dataclass(frozen=True)
class SessionStarter:
    """Begins sessions. Each is on record before its token is handed out."""

    settings: Settings
    peers: Peers
    policies: Policies
    recovery: Recovery

    async def begin(
        self, origin: Origin, asked: RequestHeaders, reply: ResponseHeaders, deadline: Deadline
    ) -> tuple[session_pb2.StartSessionResponse, policy_pb2.ResolveResponse]:
        """Return the new session and its policy. When this refuses, nothing is left of it but an event of its start."""
        check_residency(asked.data_residency, self.settings.data_region)
        if asked.ceiling is not None and asked.ceiling <= OPEN_AT:
            raise nothing_to_spend(reply)
        if not origin.grant:
            return await self._root(origin, asked, reply, deadline)
        for attempt in range(1, TRIES + 1):
            try:
                return await self._child(origin, asked, reply, deadline)
            except Refused as refused:
                if refused.reason != POLICY_CHANGED or attempt == TRIES:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _root(
        self, origin: Origin, asked: RequestHeaders, reply: ResponseHeaders, deadline: Deadline
    ) -> tuple[session_pb2.StartSessionResponse, policy_pb2.ResolveResponse]:
        if asked.session_parent is not None:
            raise unauthenticated(
                "DELEGATION_GRANT_REQUIRED",
                "a sub-agent's first call needs CRP-Agent-Delegation-Grant, which its orchestrator gets for it",
                header="crp-agent-delegation-grant",
            )
        if origin.agent.roots_forbidden:
            raise forbidden(
                "ROOT_FORBIDDEN",
                f"an agent of type {origin.agent.agent_type} may only be a sub-agent; it needs a delegation grant",
                agent_type=origin.agent.agent_type,
            )
        check_depth(asked, 0)
        earlier = origin.continues or session_pb2.Session()
        check_residency(earlier.data_residency, self.settings.data_region)
        policy = await self.policies.resolve(asked, earlier.policy_text or None, origin.agent, reply, deadline)
        kept = session_pb2.Delegation(data_residency=earlier.data_residency, safety_mode=earlier.safety_mode)
        try:
            started = await self._started(origin, asked, policy, kept, deadline)
        except Refused as refused:
            tell_caller_halt(refused, reply)
            raise
        await self._created(started, origin, "", deadline)
        _set_headers(started, reply)
        return started, policy

    async def _child(
        self, origin: Origin, asked: RequestHeaders, reply: ResponseHeaders, deadline: Deadline
    ) -> tuple[session_pb2.StartSessionResponse, policy_pb2.ResolveResponse]:
        given = await self._read(origin, asked, deadline)
        check_residency(given.data_residency, self.settings.data_region)
        check_layers(asked, mode=given.safety_mode, policy_text=given.policy_text)
        policy = await self.policies.resolve(asked, given.policy_text, origin.agent, reply, deadline)
        allowed = await self._most_left(given, deadline)
        started = await self._started(origin, asked, policy, given, deadline)
        session = started.session
        if session.safety_budget_micros > allowed:
            # The parent was set back while its server kept running. The child is not on record, and its token is not handed out.
            await self.recovery.catch_up(given.root_session_id)
            raise unavailable("SESSION_STATE_UNVERIFIED", "the parent session was set back; ask it for another grant")
        # Both trails say it, so that an auditor finds the way in either direction (SPEC-012 §8.2).
        await self._created(started, origin, given.grant_id, deadline)
        await self._record(given.parent_session_id, tree_events.started(session, given.grant_id), deadline)
        _set_headers(started, reply)
        return started, policy

    async def _most_left(self, given: session_pb2.Delegation, deadline: Deadline) -> int:
        """Verify every ancestor of the child against its chain, and return the most that its parent may have left.

        One that was set back while its server went on is rebuilt first: an open breaker above lets nothing start below it.
        """
        allowed, session_id = int(FULL), given.parent_session_id
        while session_id:
            look = partial(self._look, session_id, given.root_session_id, deadline)
            try:
                session = await self.recovery.verified_against_chain(await look(), look, deadline)
            except Refused as refused:
                if refused.kind is not Kind.NOT_FOUND:
                    raise
                break  # it is lost: starting the child finds that out, and the tree is rebuilt
            if session_id == given.parent_session_id:
                allowed = session.safety_budget_micros
            session_id = session.parent_session_id
        return allowed

    async def _look(self, session_id: str, root: str, deadline: Deadline) -> session_pb2.Session:
        request = session_pb2.GetSessionRequest(session_id=session_id, root_session_id=root)
        return await self.peers.session.get(request, deadline)

    async def _created(
        self, started: session_pb2.StartSessionResponse, origin: Origin, grant_id: str, deadline: Deadline
    ) -> None:
        """Put a session on record, with all that it takes to rebuild it. Its token is not handed out before that."""
        await failpoints.reached("sidecar.before_created")
        created = tree_events.created(started.session, origin.caller.scope, grant_id, started.record_json)
        await self._record(started.session.session_id, created, deadline)
        await failpoints.reached("sidecar.after_created")

    async def _read(self, origin: Origin, asked: RequestHeaders, deadline: Deadline) -> session_pb2.Delegation:
        """Return what the grant gives. Depth and parent are its own; headers that say otherwise are refused."""
        request = session_pb2.ReadGrantRequest(
            grant=origin.grant,
            agent_type=origin.agent.agent_type,
            parent_session_id=asked.session_parent or "",
            loop_depth=asked.loop_depth,
        )
        return await self.peers.session.read_grant(request, deadline)

    async def _record(self, session_id: str, event: audit_pb2.NewEvent, deadline: Deadline) -> None:
        await self.peers.audit.record(session_id, "", [event], deadline)

    async def _started(
        self,
        origin: Origin,
        asked: RequestHeaders,
        policy: policy_pb2.ResolveResponse,
        given: session_pb2.Delegation,
        deadline: Deadline,
    ) -> session_pb2.StartSessionResponse:
        request = session_pb2.StartSessionRequest(
            scope=origin.caller.scope,
            policy_text=policy.policy_text,
            policy_hash=policy.policy_hash,
            grant=origin.grant,
            agent=terms_of(origin.agent),
            parent_policy_hash=given.policy_hash,
            data_residency=given.data_residency or asked.data_residency or "",
            safety_mode=stricter(asked.safety_mode or "", given.safety_mode)
            if origin.continues
            else asked.safety_mode or given.safety_mode,
            ceiling_micros=_ceiling(origin, asked),
            aware=aware(asked) or bool(origin.continues and origin.continues.aware),
            first_window=origin.first_window,
            caller_scope="" if origin.caller.verified or origin.agent.agent_type else UNVERIFIED,
            names=origin.names,
            continues_session_id=origin.continues.session_id if origin.continues else "",
        )
        return await self.peers.session.start(request, deadline)


def _ceiling(origin: Origin, asked: RequestHeaders) -> int | None:
    """Return the most that the new session may have left: never more than the one that it goes on from."""
    left = [] if origin.continues is None else [origin.continues.safety_budget_micros]
    return min([*left, *([] if asked.ceiling is None else [asked.ceiling])], default=None)


def _set_headers(started: session_pb2.StartSessionResponse, reply: ResponseHeaders) -> None:
    reply.session_id = started.session.session_id
    reply.set(response_headers.of_session(started.session, started.token))


def check_residency(demanded: str | None, region: str) -> None:
    """Refuse a demanded jurisdiction that is not this deployment's (SPEC-002 §7.7)."""
    if demanded and demanded != region:
        where = f"in {region}" if region else "in no jurisdiction that it declares"
        raise forbidden(
            "DATA_RESIDENCY_VIOLATION", f"the call must be processed in {demanded}; this deployment processes {where}",
            demanded=demanded, region=region,
        )  # fmt: skip


def check_depth(asked: RequestHeaders, *depths: int) -> None:
    """Refuse a depth that is not the session's own: it is counted here, never by an agent (SPEC-012 §10.3)."""
    if asked.loop_depth is not None and asked.loop_depth not in depths:
        raise conflict(
            "LOOP_DEPTH_MISMATCH", f"CRP-Agent-Loop-Depth is {asked.loop_depth}, but the session's depth is {depths[0]}",
            header="crp-agent-loop-depth", attempted=str(asked.loop_depth), value=str(depths[0]),
        )  # fmt: skip


def nothing_to_spend(reply: ResponseHeaders) -> Refused:
    """Return the refusal of a call whose own ceiling leaves nothing."""
    reply.set({"CRP-Safety-Retry-After": "0"})
    return halted(
        "BUDGET_DEPLETED",
        "the ceiling in CRP-Agent-Safety-Budget leaves nothing to spend",
        halt_reason="SAFETY_BUDGET_DEPLETED",
    )
