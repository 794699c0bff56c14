"""The four services as their callers see them: one typed method for each call.

Deadlines, retries and refusals live here. A call takes the time that its deadline leaves, at most the service's own limit; a
write that is idempotent is tried again while its service cannot answer; a refusal in an answer is raised, and so is a call
that fails, as a refusal that names the service. The sidecar and the oversight service hold no stub of their own.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import grpc

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind, Refused
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.errors import from_rpc_error, unwrap
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.peer import ServicePeer
from interlock.runtime.settings.model import Settings

if TYPE_CHECKING:
    from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceAsyncStub
    from interlock.api.dpe.v1.dpe_pb2_grpc import DpeServiceAsyncStub
    from interlock.api.policy.v1.policy_pb2_grpc import PolicyServiceAsyncStub
    from interlock.api.session.v1.session_pb2_grpc import SessionServiceAsyncStub

_LONGEST_LEASE_MS = 900_000


class SessionPeer(ServicePeer):
    """The session service: tokens, windows, budgets."""

    name = "session"

    def __init__(self, stub: SessionServiceAsyncStub, timeout_s: float) -> None:
        super().__init__(timeout_s)
        self._stub = stub

    async def start(self, request: session_pb2.StartSessionRequest, deadline: Deadline) -> session_pb2.StartSessionResponse:  # fmt: skip
        """Start a session: a root, or a child under its grant."""
        return await self._call(self._stub.StartSession, request, deadline)

    async def open_window(self, request: session_pb2.OpenWindowRequest, deadline: Deadline) -> session_pb2.OpenedWindow:
        """Verify a token and take the lease of the next window."""
        return (await self._call(self._stub.OpenWindow, request, deadline)).window

    async def commit_window(self, request: session_pb2.CommitWindowRequest, deadline: Deadline) -> session_pb2.CommitWindowResponse:  # fmt: skip
        """Settle a sealed window, once per window id."""
        return await self._call_until_done(self._stub.CommitWindow, request, deadline)

    async def fail_window(self, request: session_pb2.FailWindowRequest, deadline: Deadline) -> None:
        """Leave a window behind as FAILED."""
        await self._call(self._stub.FailWindow, request, deadline)

    async def hold_window(self, request: session_pb2.HoldWindowRequest, deadline: Deadline) -> None:
        """Set aside the most that a window may cost, before a part of its answer is released."""
        await self._call_until_done(self._stub.HoldWindow, request, deadline)

    async def renew_window(self, request: session_pb2.RenewWindowRequest, deadline: Deadline) -> None:
        """Prolong the lease of a window whose answer is still coming in."""
        await self._call(self._stub.RenewWindow, request, deadline)

    async def spend_window(self, request: session_pb2.SpendWindowRequest, deadline: Deadline) -> session_pb2.SpendWindowResponse:  # fmt: skip
        """Reserve what the model calls of a window can cost, or charge what they cost, once per window id."""
        return await self._call_until_done(self._stub.SpendWindow, request, deadline)

    async def abandon_window(self, request: session_pb2.AbandonWindowRequest, deadline: Deadline | None = None) -> None:
        """Give back the lease of a window that was never sealed."""
        await self._call(self._stub.AbandonWindow, request, deadline)

    async def acknowledge_moves(self, request: session_pb2.AcknowledgeMovesRequest) -> None:
        """Say that what settlements moved is on record."""
        await self._call(self._stub.AcknowledgeMoves, request, None)

    async def get(self, request: session_pb2.GetSessionRequest, deadline: Deadline | None = None) -> session_pb2.Session:  # fmt: skip
        """Read a session by token or id."""
        return (await self._call(self._stub.GetSession, request, deadline)).session

    async def get_caller(self, scope: str) -> session_pb2.CallerBudget | None:
        """Return what a caller has left of its budget in this period; ``None`` where it has none."""
        answer = await self._call(self._stub.GetCaller, session_pb2.GetCallerRequest(scope=scope), None)
        return answer.budget if answer.HasField("budget") else None

    async def dag(self, request: session_pb2.GetDagRequest) -> Sequence[session_pb2.Session]:
        """Read a session with its windows, and the sessions below it when asked."""
        return (await self._call(self._stub.GetDag, request, None)).sessions

    async def terminate(self, request: session_pb2.TerminateSessionRequest) -> session_pb2.Session:
        """End a session for good."""
        return (await self._call(self._stub.TerminateSession, request, None)).session

    async def delegate(self, request: session_pb2.DelegateRequest, deadline: Deadline) -> session_pb2.DelegateResponse:
        """Mint a grant for one child session."""
        return await self._call(self._stub.Delegate, request, deadline)

    async def read_grant(self, request: session_pb2.ReadGrantRequest, deadline: Deadline) -> session_pb2.Delegation:
        """Verify a grant and tell what a child under it inherits."""
        return (await self._call(self._stub.ReadGrant, request, deadline)).delegation

    async def verify_results(self, request: session_pb2.VerifyResultsRequest, deadline: Deadline) -> Sequence[session_pb2.SubAgentResult]:  # fmt: skip
        """Tell whether results of sub-agents may be consumed by a session."""
        return (await self._call(self._stub.VerifyResults, request, deadline)).results

    async def restore_tree(self, request: session_pb2.RestoreTreeRequest, deadline: Deadline) -> session_pb2.RestoreTreeResponse:  # fmt: skip
        """Rebuild the sessions of a tree from what the audit chain says."""
        return await self._call_until_done(self._stub.RestoreTree, request, deadline)

    async def restore_caller(self, request: session_pb2.RestoreCallerRequest, deadline: Deadline) -> None:
        """Rebuild the budget of a caller from what the audit log says."""
        await self._call_until_done(self._stub.RestoreCaller, request, deadline)

    async def restore_trees(self, trees: Iterable[session_pb2.RestoreTreeRequest]) -> Sequence[Any]:
        """Rebuild several trees, each by itself; each result is a value or a refusal of its own."""
        request = session_pb2.RestoreTreesRequest(trees=trees)
        return (await self._call(self._stub.RestoreTrees, request, None)).results

    async def step_kernel(self, request: session_pb2.StepKernelRequest, deadline: Deadline) -> session_pb2.StepKernelResponse:  # fmt: skip
        """Decide what is asked of a kernel; asked again, it answers the same."""
        return await self._call_until_done(self._stub.StepKernel, request, deadline)

    async def step_kernels(self, request: session_pb2.StepKernelsRequest, deadline: Deadline) -> session_pb2.StepKernelsResponse:  # fmt: skip
        """Decide what several calls ask of one kernel; asked again, it answers the same."""
        return await self._call_until_done(self._stub.StepKernels, request, deadline)

    async def acknowledge_kernel(self, request: session_pb2.AcknowledgeKernelRequest, deadline: Deadline) -> None:
        """Say that records of a kernel are sealed."""
        await self._call(self._stub.AcknowledgeKernel, request, deadline)

    async def restore_kernel(self, request: session_pb2.RestoreKernelRequest, deadline: Deadline) -> None:
        """Make a kernel what its sealed records say."""
        await self._call_until_done(self._stub.RestoreKernel, request, deadline)

    async def read_kernel(self, kernel_id: str, deadline: Deadline) -> session_pb2.ReadKernelResponse:
        """Read a kernel by its id."""
        return await self._call_until_done(self._stub.ReadKernel, session_pb2.ReadKernelRequest(kernel_id=kernel_id), deadline)  # fmt: skip

    async def decide_compensation(self, request: session_pb2.DecideCompensationRequest, deadline: Deadline) -> session_pb2.DecideCompensationResponse:  # fmt: skip
        """Note a person's decision; asked again under its approval, it answers the same."""
        return await self._call_until_done(self._stub.DecideCompensation, request, deadline)


class PolicyPeer(ServicePeer):
    """The policy service: agent types, effective policies, decisions, approvals."""

    name = "policy"

    def __init__(self, stub: PolicyServiceAsyncStub, timeout_s: float) -> None:
        super().__init__(timeout_s)
        self._stub = stub

    async def list_reviewers(self) -> Sequence[policy_pb2.Reviewer]:
        """Return the registered reviewers with their keys."""
        return (await self._call(self._stub.ListReviewers, policy_pb2.ListReviewersRequest(), None)).reviewers

    async def identify_agent(self, key_sha256: str, deadline: Deadline) -> policy_pb2.IdentifyAgentResponse:
        """Return the agent type that a key is registered for."""
        return await self._call(self._stub.IdentifyAgent, policy_pb2.IdentifyAgentRequest(api_key_sha256=key_sha256), deadline)  # fmt: skip

    async def identify_pod(self, token: str, pod_uid: str) -> policy_pb2.IdentifyPodResponse:
        """Return the pod that a token of its service account is bound to."""
        return await self._call(self._stub.IdentifyPod, policy_pb2.IdentifyPodRequest(token=token, pod_uid=pod_uid), None)  # fmt: skip

    async def resolve(self, request: policy_pb2.ResolveRequest, deadline: Deadline) -> policy_pb2.ResolveResponse:
        """Join policy layers into the effective policy."""
        return await self._call(self._stub.Resolve, request, deadline)

    async def decide(self, request: policy_pb2.DecideRequest, deadline: Deadline) -> policy_pb2.Decision:
        """Decide what happens to an analysed answer."""
        return (await self._call(self._stub.Decide, request, deadline)).decision

    async def verify_approval(self, request: policy_pb2.VerifyApprovalRequest, deadline: Deadline | None = None) -> policy_pb2.VerifyApprovalResponse:  # fmt: skip
        """Verify a reviewer's approval against what it is presented for."""
        return await self._call(self._stub.VerifyApproval, request, deadline)


class DpePeer(ServicePeer):
    """The decision provenance engine."""

    name = "dpe"

    def __init__(self, stub: DpeServiceAsyncStub, timeout_s: float, place_timeout_s: float) -> None:
        super().__init__(timeout_s)
        self._stub, self._place_timeout_s = stub, place_timeout_s

    async def reserve(self, deadline: Deadline, caller: str, place_id: str = "") -> str:
        """Take a place for a caller until the deadline, or keep the named one; empty from an older engine. Refused with OVERLOADED."""
        lease_ms = max(1, min(_LONGEST_LEASE_MS, math.ceil(deadline.left_s * 1000)))
        request = dpe_pb2.ReservePlaceRequest(lease_ms=lease_ms, place_id=place_id, caller=caller)
        try:
            given = await self._stub.ReservePlace(request, timeout=deadline.within(self._place_timeout_s))
            return unwrap(given).place_id
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return ""
            raise from_rpc_error(error, self.name) from None

    async def release(self, place_id: str) -> None:
        """Give a place back. Where that fails, its lease ends it."""
        request = dpe_pb2.ReleasePlaceRequest(place_id=place_id)
        with contextlib.suppress(Refused):
            await call_service(self.name, self._stub.ReleasePlace(request, timeout=self._place_timeout_s))

    async def analyze(self, request: dpe_pb2.AnalyzeRequest, deadline: Deadline) -> dpe_pb2.Report:
        """Analyse an answer and return its report."""
        return (await self._call(self._stub.Analyze, request, deadline)).report

    async def check_summary(self, request: dpe_pb2.CheckSummaryRequest, deadline: Deadline) -> float:
        """Return how faithful a summary is to its source, from 0 to 1."""
        return (await self._call(self._stub.CheckSummary, request, deadline)).fidelity_score


class AuditPeer(ServicePeer):
    """The audit service: seals, events, contents, held answers."""

    name = "audit"

    def __init__(self, stub: AuditServiceAsyncStub, timeout_s: float) -> None:
        super().__init__(timeout_s)
        self._stub = stub

    async def append(self, request: audit_pb2.AppendRequest, deadline: Deadline) -> audit_pb2.AppendResponse:
        """Seal a window durably. Raises ``WriteFailedError``, which says whether the seal may be in the log all the same."""
        return await self._written(self._stub.Append, request, deadline)

    async def record(
        self, session_id: str, window_id: str, events: Iterable[audit_pb2.NewEvent], deadline: Deadline, *,
        once: bool = False,
    ) -> None:  # fmt: skip
        """Append events that belong to no seal; they are durable when this returns. *once*: no event is taken twice."""
        request = audit_pb2.RecordRequest(session_id=session_id, window_id=window_id, events=events, once=once)
        await self._call_until_done(self._stub.Record, request, deadline)

    async def record_part(self, session_id: str, window_id: str, events: Iterable[audit_pb2.NewEvent], deadline: Deadline) -> None:  # fmt: skip
        """Append what says that a part leaves, once. Raises ``WriteFailedError``: what is in doubt binds the window all the same."""
        request = audit_pb2.RecordRequest(session_id=session_id, window_id=window_id, events=events, once=True)
        await self._written(self._stub.Record, request, deadline)

    async def find_window(self, session_id: str, window_id: str, deadline: Deadline | None = None) -> audit_pb2.GetWindowResponse | None:  # fmt: skip
        """Return the seal of a window; ``None`` where it was never sealed."""
        try:
            return await self.get_window(session_id, window_id, deadline)
        except Refused as refused:
            if refused.kind is Kind.NOT_FOUND:
                return None
            raise

    async def get_window(self, session_id: str, window_id: str, deadline: Deadline | None = None) -> audit_pb2.GetWindowResponse:  # fmt: skip
        """Return the seal of a window. Refused with WINDOW_NOT_SEALED where there is none."""
        return await self._call(self._stub.GetWindow, audit_pb2.GetWindowRequest(session_id=session_id, window_id=window_id), deadline)  # fmt: skip

    async def get_report(self, *, window_id: str = "", trail_id: str = "") -> audit_pb2.GetReportResponse:
        """Return the sealed report of a window, or of a trail id."""
        return await self._call(self._stub.GetReport, audit_pb2.GetReportRequest(window_id=window_id, trail_id=trail_id), None)  # fmt: skip

    async def get_contents(self, session_id: str, window_ids: Sequence[str], deadline: Deadline, *, viewer: str = "") -> Sequence[audit_pb2.Content]:  # fmt: skip
        """Return what windows of one session said. *viewer*: the person who looks, which goes on record."""
        request = audit_pb2.GetContentsRequest(session_id=session_id, window_ids=window_ids, viewer=viewer)
        return (await self._call_until_done(self._stub.GetContents, request, deadline)).contents

    async def drop_content(self, session_id: str, window_id: str, deadline: Deadline) -> None:
        """Delete what a window said."""
        request = audit_pb2.DropContentRequest(session_id=session_id, window_id=window_id)
        await self._call_until_done(self._stub.DropContent, request, deadline)

    async def keep_answer(self, request: audit_pb2.KeepAnswerRequest) -> None:
        """Keep an answer for what goes on from it; it is durable when this returns."""
        await self._call_until_done(self._stub.KeepAnswer, request, None)

    async def get_kept_answers(self, request: audit_pb2.GetKeptAnswersRequest) -> Sequence[audit_pb2.KeptAnswer]:
        """Return a kept answer, after everything that it goes on from."""
        return (await self._call_until_done(self._stub.GetKeptAnswers, request, None)).answers

    async def drop_kept_answer(self, request: audit_pb2.DropKeptAnswerRequest) -> None:
        """Delete a kept answer."""
        await self._call(self._stub.DropKeptAnswer, request, None)

    async def get_chain_state(self, session_id: str, deadline: Deadline) -> audit_pb2.Standing:
        """Return what a session's chain says of its budget and its sealed windows."""
        request = audit_pb2.GetStandingRequest(session_id=session_id)
        return (await self._call(self._stub.GetStanding, request, deadline)).standing

    async def get_tree_record(self, root: str, deadline: Deadline) -> audit_pb2.GetTreeRecordResponse:
        """Return all that the log knows of a tree, to rebuild its sessions."""
        return await self._call_until_done(self._stub.GetTreeRecord, audit_pb2.GetTreeRecordRequest(root_session_id=root), deadline)  # fmt: skip

    async def get_caller_record(self, caller_id: str, since: str, deadline: Deadline) -> Sequence[session_pb2.CallerCharge]:  # fmt: skip
        """Return what the sessions of a caller were charged for windows that were sealed since then."""
        request = audit_pb2.GetCallerRecordRequest(caller_id=caller_id, since=since)
        return (await self._call_until_done(self._stub.GetCallerRecord, request, deadline)).charges

    async def look_at_tree_record(self, root: str) -> audit_pb2.GetTreeRecordResponse:
        """Return the same for a person who can ask again: one try."""
        return await self._call(self._stub.GetTreeRecord, audit_pb2.GetTreeRecordRequest(root_session_id=root), None)

    async def get_tree_records(self, roots: Sequence[str]) -> Sequence[audit_pb2.GetTreeRecordResponse]:
        """Return the records of several trees; each is a value or a refusal of its own."""
        request = audit_pb2.GetTreeRecordsRequest(root_session_ids=roots)
        return (await self._call(self._stub.GetTreeRecords, request, None)).records

    async def list_sessions(self, request: audit_pb2.ListSessionsRequest) -> audit_pb2.ListSessionsResponse:
        """Return a page of the sessions that are wanted."""
        return await self._call(self._stub.ListSessions, request, None)

    async def list_would_haves(self, request: audit_pb2.ListWouldHavesRequest) -> audit_pb2.ListWouldHavesResponse:
        """Return a page of what would have been done."""
        return await self._call(self._stub.ListWouldHaves, request, None)

    async def verify(self, session_id: str) -> audit_pb2.VerifyResponse:
        """Check a session's chain from the stored bytes."""
        return await self._call(self._stub.Verify, audit_pb2.VerifyRequest(session_id=session_id), None)

    async def log_size(self) -> int:
        """Return how many entries the log has now."""
        try:
            return int((await self._call(self._stub.GetCheckpoint, audit_pb2.GetCheckpointRequest(), None)).log_size)
        except Refused as refused:
            if refused.reason != "NO_CHECKPOINT":
                raise
            return int(refused.metadata.get("log_size", 0))

    async def get_held(self, window_id: str, deadline: Deadline | None = None, *, state_only: bool = False, viewer: str = "") -> audit_pb2.GetHeldResponse:  # fmt: skip
        """Return a held response, or its state alone. *viewer*: the person who looks, which goes on record."""
        return await self._call(self._stub.GetHeld, audit_pb2.GetHeldRequest(window_id=window_id, state_only=state_only, viewer=viewer), deadline)  # fmt: skip

    async def record_stop(self, request: audit_pb2.RecordStopRequest) -> None:
        """Record that a person stops a session; it is durable when this returns."""
        await self._call(self._stub.RecordStop, request, None)

    async def list_held(self, request: audit_pb2.ListHeldRequest) -> audit_pb2.ListHeldResponse:
        """Return a page of held responses, the oldest first."""
        return await self._call(self._stub.ListHeld, request, None)

    async def decide_held(self, request: audit_pb2.DecideHeldRequest) -> audit_pb2.HeldItem:
        """Record a reviewer's decision; of two concurrent ones the first stands."""
        return (await self._call(self._stub.DecideHeld, request, None)).item

    async def release_held(self, request: audit_pb2.ReleaseHeldRequest, deadline: Deadline) -> audit_pb2.ReleaseHeldResponse:  # fmt: skip
        """Hand out a held response, once per claim."""
        return await self._call(self._stub.ReleaseHeld, request, deadline)

    async def seal_kernel(self, kernel_id: str, records: Iterable[Any], deadline: Deadline) -> None:
        """Append records of a kernel to its chain; they are durable when this returns."""
        request = audit_pb2.SealKernelRequest(kernel_id=kernel_id, records=records)
        await self._call_until_done(self._stub.SealKernel, request, deadline)

    async def get_kernel_record(self, request: audit_pb2.GetKernelRecordRequest, deadline: Deadline) -> audit_pb2.GetKernelRecordResponse:  # fmt: skip
        """Return the sealed records of a kernel."""
        return await self._call_until_done(self._stub.GetKernelRecord, request, deadline)

    async def list_stuck(self, request: audit_pb2.ListStuckRequest) -> audit_pb2.ListStuckResponse:
        """Return a page of the compensations that wait for a person."""
        return await self._call(self._stub.ListStuck, request, None)

    async def list_kernels(self, request: audit_pb2.ListKernelsRequest) -> audit_pb2.ListKernelsResponse:
        """Return a page of the kernels that began last."""
        return await self._call(self._stub.ListKernels, request, None)

    async def list_experiments(self, request: audit_pb2.ListExperimentsRequest) -> audit_pb2.ListExperimentsResponse:
        """Return a page of the experiments that began last."""
        return await self._call(self._stub.ListExperiments, request, None)

    async def list_cycles(self, request: audit_pb2.ListCyclesRequest) -> audit_pb2.ListCyclesResponse:
        """Return a page of the cycles of an experiment, the latest first."""
        return await self._call(self._stub.ListCycles, request, None)

    async def get_decision_record(self, request: audit_pb2.GetDecisionRecordRequest) -> Sequence[session_pb2.KernelRecord]:  # fmt: skip
        """Return sealed records of an experiment. *viewer*: the person who looks, which goes on record."""
        return (await self._call(self._stub.GetDecisionRecord, request, None)).records


@dataclass(frozen=True)
class Peers:
    """The services of one mesh."""

    session: SessionPeer
    policy: PolicyPeer
    dpe: DpePeer
    audit: AuditPeer

    @classmethod
    def over(cls, mesh: Mesh, settings: Settings) -> Self:
        """Return the services of *mesh* with the limits of the settings."""
        limit_s = settings.rpc_timeout_s
        return cls(
            session=SessionPeer(mesh.session, limit_s),
            policy=PolicyPeer(mesh.policy, limit_s),
            dpe=DpePeer(mesh.dpe, settings.dpe_timeout_s, limit_s),
            audit=AuditPeer(mesh.audit, limit_s),
        )
