"""The gRPC face of the session service: it reads requests, asks the use cases and writes answers."""

# ruff: noqa: N802, ARG002 - the proto names the methods, and gRPC hands each of them a context
from __future__ import annotations

from typing import Any

from interlock.api.session.v1 import session_pb2, session_pb2_grpc
from interlock.domain import ids
from interlock.domain.errors import Refused
from interlock.domain.ids import SessionId
from interlock.domain.session.caller import CallerView
from interlock.domain.session.state import SessionState
from interlock.runtime.rpc.errors import answers_refusals, to_message
from interlock.session.binding.bound_opening import BoundOpening
from interlock.session.binding.naming import Naming
from interlock.session.delegation import TreeUseCases
from interlock.session.holds import hold
from interlock.session.kernel.kernels import KernelUseCases
from interlock.session.ledger import Ledger
from interlock.session.messages import answers, bindings, requests, spending, tree_requests
from interlock.session.recording import record_of
from interlock.session.renewals import renew
from interlock.session.restoring import Restoring
from interlock.session.spending import spend


class SessionServicer(session_pb2_grpc.SessionServiceServicer):
    """Answers ``interlock.api.session.v1.SessionService``. A refusal is a value in the answer."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._delegation = TreeUseCases(ledger)
        self._restoring = Restoring(ledger)
        self._naming = Naming(ledger)
        self._bound_opening = BoundOpening(ledger)
        self._kernels = KernelUseCases(
            ledger.store.kernels, ledger.clock, stuck_by_reviewers=ledger.rules.stuck_by_reviewers
        )

    @answers_refusals(session_pb2.StartSessionResponse)
    async def StartSession(
        self, request: session_pb2.StartSessionRequest, context: Any
    ) -> session_pb2.StartSessionResponse:
        """Create a session under a policy that is already resolved: a root, or a child with a grant."""
        wanted, base = tree_requests.wanted_of(request), tree_requests.parent_hash_of(request)
        names = bindings.names_of(request.names)
        over = await self._naming.replaceable(wanted.scope, names, wanted.continues)
        grant_id = approval_id = ""
        if request.grant:
            state, token, grant = await self._delegation.start(request.grant, wanted, parent_policy_hash=base)
            grant_id, approval_id = grant.grant_id, grant.approval_id
        else:
            state, token = await self._ledger.start(wanted)
        await self._naming.claim(state, names, over)
        record = record_of(state, self._ledger.keyring, grant_id=grant_id, approval_id=approval_id)
        first = await self._first_window(request.first_window, state) if request.HasField("first_window") else None
        return session_pb2.StartSessionResponse(
            session=answers.session_message(state), token=token, record_json=record, first_window=first
        )

    async def _first_window(
        self, request: session_pb2.OpenWindowRequest, state: SessionState
    ) -> session_pb2.OpenWindowResponse:
        """Take the lease of a new session's first window. A refusal is a value: the session stands without it."""
        rules = self._ledger.rules
        try:
            asked = requests.first_of(request, scope=state.terms.scope, max_fan_out=rules.limits.max_fan_out)
            window, opened = await self._ledger.open_first(state, asked)
        except Refused as refused:
            return session_pb2.OpenWindowResponse(refusal=to_message(refused))
        return session_pb2.OpenWindowResponse(
            window=answers.opened_message(window, opened, rules.decrements, period_s=rules.caller_period_s)
        )

    @answers_refusals(session_pb2.OpenWindowResponse)
    async def OpenWindow(self, request: session_pb2.OpenWindowRequest, context: Any) -> session_pb2.OpenWindowResponse:
        """Verify a token, or find the session that speaks for itself, and take the lease of the next window."""
        rules = self._ledger.rules
        if request.HasField("evidence"):
            return await self._bound_window(request)
        window, opened = await self._ledger.open(requests.presented_of(request, max_fan_out=rules.limits.max_fan_out))
        return session_pb2.OpenWindowResponse(
            window=answers.opened_message(window, opened, rules.decrements, period_s=rules.caller_period_s)
        )

    async def _bound_window(self, request: session_pb2.OpenWindowRequest) -> session_pb2.OpenWindowResponse:
        """Take the lease of the next window of the session that a call without a token belongs to."""
        rules = self._ledger.rules
        asked = bindings.bound_open_of(request, max_fan_out=rules.limits.max_fan_out)
        found = await self._bound_opening.open(asked, bindings.evidence_of(request.evidence))
        window = answers.opened_message(found.window_id, found.opened, rules.decrements, period_s=rules.caller_period_s)
        window.binding.CopyFrom(bindings.binding_message(found.bound))
        return session_pb2.OpenWindowResponse(window=window)

    @answers_refusals(session_pb2.CommitWindowResponse)
    async def CommitWindow(
        self, request: session_pb2.CommitWindowRequest, context: Any
    ) -> session_pb2.CommitWindowResponse:
        """Charge a sealed window and advance the session, once per window id."""
        session, window = requests.session_of(request.session_id), requests.window_of(request.window_id)
        version = requests.within("key_version", request.key_version, 0, 2**31 - 1)
        ask = requests.commit_of(request, self._ledger.continuation_of(session, window, version))
        names = bindings.names_of(request.bound_names)
        turn = bindings.turn_of(request.turn) if request.HasField("turn") else None
        committed, token = await self._naming.settle(ask, names, turn)
        rules = self._ledger.rules
        return answers.committed_message(
            committed, token, max_age_s=rules.token_lifetime_s, period_s=rules.caller_period_s
        )

    @answers_refusals(session_pb2.FailWindowResponse)
    async def FailWindow(self, request: session_pb2.FailWindowRequest, context: Any) -> session_pb2.FailWindowResponse:
        """Give up a window that will never be sealed."""
        return session_pb2.FailWindowResponse(failed=await self._ledger.fail(requests.fail_of(request)))

    @answers_refusals(session_pb2.HoldWindowResponse)
    async def HoldWindow(self, request: session_pb2.HoldWindowRequest, context: Any) -> session_pb2.HoldWindowResponse:
        """Set aside the most that a window may cost, before a part of its answer is released."""
        return session_pb2.HoldWindowResponse(held_micros=await hold(self._ledger, requests.hold_of(request)))

    @answers_refusals(session_pb2.RenewWindowResponse)
    async def RenewWindow(
        self, request: session_pb2.RenewWindowRequest, context: Any
    ) -> session_pb2.RenewWindowResponse:
        """Prolong the lease of a window whose answer is still coming in."""
        window, lease_ms = requests.renewal_of(request)
        root, session = requests.session_of(request.root_session_id), requests.session_of(request.session_id)
        until = await renew(self._ledger, root, session, window, lease_ms=lease_ms)
        return session_pb2.RenewWindowResponse(until_ms=until)

    @answers_refusals(session_pb2.SpendWindowResponse)
    async def SpendWindow(
        self, request: session_pb2.SpendWindowRequest, context: Any
    ) -> session_pb2.SpendWindowResponse:
        """Reserve what the model calls of a window can cost, or charge what they cost."""
        ask = spending.spend_of(request)
        return spending.spent_message(ask, await spend(self._ledger, ask))

    @answers_refusals(session_pb2.AbandonWindowResponse)
    async def AbandonWindow(
        self, request: session_pb2.AbandonWindowRequest, context: Any
    ) -> session_pb2.AbandonWindowResponse:
        """Give the lease of a window back that was never sealed."""
        root, session = requests.session_of(request.root_session_id), requests.session_of(request.session_id)
        caller = requests.session_of(request.caller_id) if request.caller_id else ""
        released = await self._ledger.abandon(root, session, requests.window_of(request.window_id), caller)
        return session_pb2.AbandonWindowResponse(released=released)

    @answers_refusals(session_pb2.AcknowledgeMovesResponse)
    async def AcknowledgeMoves(
        self, request: session_pb2.AcknowledgeMovesRequest, context: Any
    ) -> session_pb2.AcknowledgeMovesResponse:
        """IndexNote that what settlements moved is on record."""
        root, session = requests.session_of(request.root_session_id), requests.session_of(request.session_id)
        count = await self._ledger.acknowledge(root, session, requests.acknowledged_of(request))
        return session_pb2.AcknowledgeMovesResponse(acknowledged=count)

    @answers_refusals(session_pb2.RestoreTreeResponse)
    async def RestoreTree(
        self, request: session_pb2.RestoreTreeRequest, context: Any
    ) -> session_pb2.RestoreTreeResponse:
        """Rebuild the sessions of a tree from the audit chain."""
        restored, verified = await self._restoring.restore(request)
        return session_pb2.RestoreTreeResponse(restored=restored, verified=verified)

    @answers_refusals(session_pb2.RestoreTreesResponse)
    async def RestoreTrees(
        self, request: session_pb2.RestoreTreesRequest, context: Any
    ) -> session_pb2.RestoreTreesResponse:
        """Rebuild several trees, each by itself."""
        return await self._restoring.restore_all(request)

    @answers_refusals(session_pb2.RestoreCallerResponse)
    async def RestoreCaller(
        self, request: session_pb2.RestoreCallerRequest, context: Any
    ) -> session_pb2.RestoreCallerResponse:
        """Rebuild the budget of a caller from its audit record."""
        caller_id = requests.session_of(request.caller_id)
        view = await self._ledger.callers.restore(caller_id, tree_requests.charges_of(request))
        return session_pb2.RestoreCallerResponse(budget=self._caller(view))

    @answers_refusals(session_pb2.GetCallerResponse)
    async def GetCaller(self, request: session_pb2.GetCallerRequest, context: Any) -> session_pb2.GetCallerResponse:
        """Read the budget of a caller."""
        view = await self._ledger.callers.read(requests.scope_of(request.scope))
        return session_pb2.GetCallerResponse(budget=self._caller(view))

    def _caller(self, view: CallerView | None) -> session_pb2.CallerBudget | None:
        return answers.caller_message(view, self._ledger.rules.caller_period_s)

    @answers_refusals(session_pb2.DelegateResponse)
    async def Delegate(self, request: session_pb2.DelegateRequest, context: Any) -> session_pb2.DelegateResponse:
        """Mint a grant for one child of the session of a token."""
        grant, inherited = await self._delegation.delegate(tree_requests.asked_of(request))
        return session_pb2.DelegateResponse(grant=grant, delegation=answers.delegation_message(inherited))

    @answers_refusals(session_pb2.ReadGrantResponse)
    async def ReadGrant(self, request: session_pb2.ReadGrantRequest, context: Any) -> session_pb2.ReadGrantResponse:
        """Verify a grant and tell what a child under it inherits."""
        inherited = await self._delegation.read(
            request.grant,
            agent_type=tree_requests.agent_type_of(request.agent_type),
            parent=request.parent_session_id,
            loop_depth=tree_requests.depth_of(request),
        )
        return session_pb2.ReadGrantResponse(delegation=answers.delegation_message(inherited))

    @answers_refusals(session_pb2.VerifyResultsResponse)
    async def VerifyResults(
        self, request: session_pb2.VerifyResultsRequest, context: Any
    ) -> session_pb2.VerifyResultsResponse:
        """Tell whether results of sub-agents may be consumed by a session."""
        root, session = requests.session_of(request.root_session_id), requests.session_of(request.session_id)
        found = await self._delegation.results(root, session, tree_requests.results_of(request))
        return session_pb2.VerifyResultsResponse(results=[answers.result_message(result) for result in found])

    @answers_refusals(session_pb2.GetSessionResponse)
    async def GetSession(self, request: session_pb2.GetSessionRequest, context: Any) -> session_pb2.GetSessionResponse:
        """Read a session by token or id."""
        state = await self._named(request)
        above = await self._delegation.above(state, verified=bool(request.token or request.scope))
        return session_pb2.GetSessionResponse(session=answers.session_message(state, above))

    @answers_refusals(session_pb2.GetDagResponse)
    async def GetDag(self, request: session_pb2.GetDagRequest, context: Any) -> session_pb2.GetDagResponse:
        """Read a session by token or id, and the sessions below it when asked."""
        state = await self._named(request)
        states = await self._delegation.tree(state) if request.tree else [state]
        found = [answers.session_message(each, await self._delegation.above(each, states)) for each in states]
        return session_pb2.GetDagResponse(sessions=found)

    async def _named(self, request: session_pb2.GetSessionRequest | session_pb2.GetDagRequest) -> SessionState:
        return await self._ledger.read(
            session=requests.session_of(request.session_id) if request.session_id else None,
            root=requests.session_of(request.root_session_id) if request.root_session_id else None,
            token=requests.token_of(request.token) if request.token else "",
            scope=requests.scope_of(request.scope) if request.scope else "",
        )

    @answers_refusals(session_pb2.TerminateSessionResponse)
    async def TerminateSession(
        self, request: session_pb2.TerminateSessionRequest, context: Any
    ) -> session_pb2.TerminateSessionResponse:
        """End a session for good."""
        named = bool(request.session_id) and not (request.token or request.scope)  # an operator has no key of a caller
        state, changed = await self._ledger.terminate(
            token="" if named else requests.token_of(request.token),
            scope="" if named else requests.scope_of(request.scope),
            session=SessionId(ids.check("crp_sess_", request.session_id)) if named else None,
            root=SessionId(ids.check("crp_sess_", request.root_session_id or request.session_id)) if named else None,
        )
        return session_pb2.TerminateSessionResponse(session=answers.session_message(state), changed=changed)

    @answers_refusals(session_pb2.StepKernelResponse)
    async def StepKernel(self, request: session_pb2.StepKernelRequest, context: Any) -> session_pb2.StepKernelResponse:
        """Decide what is asked of a kernel."""
        return await self._kernels.step(request)

    @answers_refusals(session_pb2.StepKernelsResponse)
    async def StepKernels(
        self, request: session_pb2.StepKernelsRequest, context: Any
    ) -> session_pb2.StepKernelsResponse:
        """Decide what several calls ask of one kernel."""
        return await self._kernels.steps(request)

    @answers_refusals(session_pb2.AcknowledgeKernelResponse)
    async def AcknowledgeKernel(
        self, request: session_pb2.AcknowledgeKernelRequest, context: Any
    ) -> session_pb2.AcknowledgeKernelResponse:
        """Note that records of a kernel are sealed."""
        return session_pb2.AcknowledgeKernelResponse(noted=await self._kernels.acknowledge(request))

    @answers_refusals(session_pb2.RestoreKernelResponse)
    async def RestoreKernel(
        self, request: session_pb2.RestoreKernelRequest, context: Any
    ) -> session_pb2.RestoreKernelResponse:
        """Make a kernel what its sealed records say."""
        return session_pb2.RestoreKernelResponse(restored=await self._kernels.restore(request))

    @answers_refusals(session_pb2.ReadKernelResponse)
    async def ReadKernel(self, request: session_pb2.ReadKernelRequest, context: Any) -> session_pb2.ReadKernelResponse:
        """Read a kernel by its id."""
        return await self._kernels.read(request)

    @answers_refusals(session_pb2.DecideCompensationResponse)
    async def DecideCompensation(
        self, request: session_pb2.DecideCompensationRequest, context: Any
    ) -> session_pb2.DecideCompensationResponse:
        """Note what a person decided about a stuck compensation."""
        return await self._kernels.decide(request)
