"""The audit service's RPCs: every acknowledged write is durable, and no answer relies on a broken chain."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.api.common.v1 import common_pb2
from interlock.audit.erasure.erasure import Eraser
from interlock.audit.holds.held import HeldResponses
from interlock.audit.kept import KeptAnswers
from interlock.audit.kernel.listing import Openings
from interlock.audit.kernel.records import KernelRecords, decision_kind, kernel_kind
from interlock.audit.kernel.stuck import StuckCompensations
from interlock.audit.merkle.checkpoints import Notary
from interlock.audit.merkle.proofs import LogProofs
from interlock.audit.requests import Note
from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.chains import VerifiedChains
from interlock.audit.sealing.prefixes import WITHIN, Prefixes
from interlock.audit.sealing.readers import Readers
from interlock.audit.sealing.seal import Sealer
from interlock.audit.sealing.session_reader import SessionReader
from interlock.audit.sealing.session_writer import SessionWriter
from interlock.audit.settlements import settlement_message
from interlock.audit.store.log import AuditLog
from interlock.audit.streams.streaming import Streaming
from interlock.audit.tree.callers import CallerRecords
from interlock.audit.tree.record import TreeRecords
from interlock.audit.tree.searches import Searches
from interlock.audit.tree.verifier import ChainVerifier
from interlock.domain.chain.chain import WindowRecord
from interlock.runtime.rpc.errors import answers_refusals


class AuditServicer(audit_pb2_grpc.AuditServiceServicer):
    """Reads in a few threads, writes through the appender; the event loop does neither."""

    def __init__(
        self, audit_log: AuditLog, appender: Appender, sealer: Sealer, *,
        notary: Notary | None = None, streaming: Streaming | None = None, reread_within: int = WITHIN,
        kept_days: int = 30,
    ) -> None:  # fmt: skip
        """Without a *notary* there are no checkpoints and nothing is fenced; without *streaming* there are no sinks.

        *reread_within*: in how many of its windows every stored record of a session is read again. *kept_days*: how long answers
        are kept for what goes on from them.
        """
        super().__init__()
        self.notary, self._streaming, self._appender = notary, streaming, appender
        self.readers = Readers(appender)
        prefixes = Prefixes(sealer.keyring, within=reread_within, rests_on=self._generation)
        chains = VerifiedChains(audit_log, self.readers, appender, sealer, prefixes)
        self._reader = SessionReader(audit_log, self.readers, chains, sealer)
        self._writer = SessionWriter(
            appender, sealer, chains, self.readers, require_anchored=self._require_anchored, admit=self._admit,
            admit_waits=lambda: streaming is not None and streaming.required,
        )  # fmt: skip
        self._verifier = ChainVerifier(audit_log, self.readers, chains, sealer.keyring)
        self._records = TreeRecords(audit_log, self.readers, chains, sealer.keyring)
        self._callers = CallerRecords(audit_log, self.readers, chains, sealer.keyring)
        self._searches = Searches(audit_log, self.readers, sealer.clock)
        self._proofs = LogProofs(audit_log, self.readers, appender, sealer, notary)
        self._eraser = Eraser(appender, sealer)
        self._kept = KeptAnswers(audit_log, self.readers, appender, sealer, days=kept_days)
        self._kernels, self._decisions = (
            KernelRecords(kind, audit_log, self.readers, appender, sealer, chains)
            for kind in (kernel_kind, decision_kind)
        )
        self._stuck = StuckCompensations(audit_log, self.readers)
        self._openings = Openings(audit_log, self.readers, chains)
        self.holds = HeldResponses(
            audit_log, self.readers, chains, appender, sealer, require_anchored=self._require_anchored,
            viewed=self._writer.viewed,
        )  # fmt: skip

    async def close(self) -> None:
        """Finish the reads and writes under way, then close the log."""
        await self.readers.close()
        await self._appender.close()

    def _generation(self) -> object:
        """Return what a log that lost its end, or was accepted without it, changes."""
        fence = self.notary.fence if self.notary is not None else None
        return (fence.generation, fence.lost) if fence is not None else None

    def _require_anchored(self) -> None:
        """Refuse with AUDIT_ANCHOR_LAG to let an answer out while too much of the log is not anchored."""
        if self.notary is not None:
            self.notary.require_anchored()

    def _admit(self, notes: Sequence[Note]) -> None:
        """Refuse with AUDIT_SINK_LAG while a required sink is too far behind, and count the reports not delivered."""
        if self._streaming is not None:
            self._streaming.require()
            self._streaming.notice(notes)

    @answers_refusals(audit_pb2.AppendResponse)
    async def Append(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.AppendRequest, context: Any
    ) -> audit_pb2.AppendResponse:
        """Seal a window after its session's verified chain, in one durable commit."""
        del context
        return await self._writer.append(request)

    @answers_refusals(audit_pb2.GetStandingResponse)
    async def GetStanding(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.GetStandingRequest, context: Any
    ) -> audit_pb2.GetStandingResponse:
        """Read the state of a session's budget from its chain, if that verifies."""
        del context
        return await self._reader.standing(request)

    @answers_refusals(audit_pb2.RecordResponse)
    async def Record(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.RecordRequest, context: Any
    ) -> audit_pb2.RecordResponse:
        """Append events, to a broken chain too."""
        del context
        return await self._writer.record(request)

    @answers_refusals(audit_pb2.GetWindowResponse)
    async def GetWindow(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.GetWindowRequest, context: Any
    ) -> audit_pb2.GetWindowResponse:
        """Read a seal, only from a chain that verifies."""
        del context
        return _seal(await self._reader.window(request))

    @answers_refusals(audit_pb2.GetReportResponse)
    async def GetReport(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.GetReportRequest, context: Any
    ) -> audit_pb2.GetReportResponse:
        """Read the stored bytes of a report, if they are the ones that were sealed."""
        del context
        return await self._reader.report(request)

    @answers_refusals(audit_pb2.GetContentsResponse)
    async def GetContents(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.GetContentsRequest, context: Any
    ) -> audit_pb2.GetContentsResponse:
        """Read the texts of one session's windows, only from a chain that verifies. A person's look is on record first."""
        del context
        if request.viewer:
            await self._writer.viewed(request.viewer, request.session_id, request.window_ids)
        return await self._reader.contents(request)

    @answers_refusals(audit_pb2.DropContentResponse)
    async def DropContent(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.DropContentRequest, context: Any
    ) -> audit_pb2.DropContentResponse:
        """Delete the text of a window that no one was given."""
        del context
        return await self._writer.drop_content(request)

    @answers_refusals(audit_pb2.KeepAnswerResponse)
    async def KeepAnswer(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.KeepAnswerRequest, context: Any
    ) -> audit_pb2.KeepAnswerResponse:
        """Keep a released answer for what goes on from it."""
        del context
        return await self._kept.keep(request)

    @answers_refusals(audit_pb2.GetKeptAnswersResponse)
    async def GetKeptAnswers(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.GetKeptAnswersRequest, context: Any
    ) -> audit_pb2.GetKeptAnswersResponse:
        """Read a kept answer, after everything that it goes on from."""
        del context
        return await self._kept.get(request)

    @answers_refusals(audit_pb2.DropKeptAnswerResponse)
    async def DropKeptAnswer(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.DropKeptAnswerRequest, context: Any
    ) -> audit_pb2.DropKeptAnswerResponse:
        """Delete a kept answer."""
        del context
        return await self._kept.drop(request)

    @answers_refusals(audit_pb2.VerifyResponse)
    async def Verify(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.VerifyRequest, context: Any
    ) -> audit_pb2.VerifyResponse:
        """Check a session's chain from the stored bytes and name every fault."""
        del context
        return await self._verifier.verify(request)

    @answers_refusals(audit_pb2.VerifyTreeResponse)
    async def VerifyTree(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.VerifyTreeRequest, context: Any
    ) -> audit_pb2.VerifyTreeResponse:
        """Check every session of a tree, and the links between them."""
        del context
        return await self._verifier.verify_tree(request)

    async def Export(self, request: audit_pb2.ExportRequest, context: Any) -> AsyncIterator[audit_pb2.ExportResponse]:  # noqa: N802 - gRPC's name
        """Stream a session's events in order."""
        del context
        async for event in self._reader.events(request):
            yield event

    @answers_refusals(audit_pb2.GetTreeRecordResponse)
    async def GetTreeRecord(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.GetTreeRecordRequest, context: Any
    ) -> audit_pb2.GetTreeRecordResponse:
        """Read the record of the tree that a session belongs to."""
        del context
        return await self._records.one(request)

    @answers_refusals(audit_pb2.ListSessionsResponse)
    async def ListSessions(self, request: audit_pb2.ListSessionsRequest, context: Any) -> audit_pb2.ListSessionsResponse:  # noqa: N802 - gRPC's name  # fmt: skip
        """Find sessions."""
        del context
        return await self._searches.sessions(request)

    @answers_refusals(audit_pb2.ListWouldHavesResponse)
    async def ListWouldHaves(self, request: audit_pb2.ListWouldHavesRequest, context: Any) -> audit_pb2.ListWouldHavesResponse:  # noqa: N802 - gRPC's name  # fmt: skip
        """List what would have been done."""
        del context
        return await self._searches.would_haves(request)

    @answers_refusals(audit_pb2.GetCallerRecordResponse)
    async def GetCallerRecord(self, request: audit_pb2.GetCallerRecordRequest, context: Any) -> audit_pb2.GetCallerRecordResponse:  # noqa: N802 - gRPC's name  # fmt: skip
        """Read what the sessions of a caller were charged."""
        del context
        return await self._callers.one(request)

    @answers_refusals(audit_pb2.GetTreeRecordsResponse)
    async def GetTreeRecords(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.GetTreeRecordsRequest, context: Any
    ) -> audit_pb2.GetTreeRecordsResponse:
        """Read the records of several trees, as far as one answer and the caller's deadline hold them."""
        return await self._records.several(request, time_remaining=context.time_remaining)

    @answers_refusals(audit_pb2.SealKernelResponse)
    async def SealKernel(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.SealKernelRequest, context: Any
    ) -> audit_pb2.SealKernelResponse:
        """Append records of a kernel, each right after the one that it names."""
        del context
        sequence = await self._kernels.seal(request.kernel_id, request.records, request.ByteSize())
        return audit_pb2.SealKernelResponse(sequence=sequence)

    @answers_refusals(audit_pb2.GetKernelRecordResponse)
    async def GetKernelRecord(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.GetKernelRecordRequest, context: Any
    ) -> audit_pb2.GetKernelRecordResponse:
        """Read the sealed records of a kernel."""
        del context
        records, timestamps = await self._kernels.read(request.kernel_id, request.after, request.limit)
        return audit_pb2.GetKernelRecordResponse(records=records, timestamps=timestamps)

    @answers_refusals(audit_pb2.ListStuckResponse)
    async def ListStuck(self, request: audit_pb2.ListStuckRequest, context: Any) -> audit_pb2.ListStuckResponse:  # noqa: N802 - gRPC's name  # fmt: skip
        """List compensations that wait for a person."""
        del context
        return await self._stuck.page(request)

    @answers_refusals(audit_pb2.ListKernelsResponse)
    async def ListKernels(self, request: audit_pb2.ListKernelsRequest, context: Any) -> audit_pb2.ListKernelsResponse:  # noqa: N802 - gRPC's name  # fmt: skip
        """Name the kernels that began last."""
        del context
        return await self._openings.kernels(request)

    @answers_refusals(audit_pb2.ListExperimentsResponse)
    async def ListExperiments(self, request: audit_pb2.ListExperimentsRequest, context: Any) -> audit_pb2.ListExperimentsResponse:  # noqa: N802 - gRPC's name  # fmt: skip
        """Name the experiments that began last."""
        del context
        return await self._openings.experiments(request)

    @answers_refusals(audit_pb2.ListCyclesResponse)
    async def ListCycles(self, request: audit_pb2.ListCyclesRequest, context: Any) -> audit_pb2.ListCyclesResponse:  # noqa: N802 - gRPC's name  # fmt: skip
        """List the cycles of an experiment."""
        del context
        return await self._openings.cycles(request)

    @answers_refusals(audit_pb2.SealDecisionResponse)
    async def SealDecision(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.SealDecisionRequest, context: Any
    ) -> audit_pb2.SealDecisionResponse:
        """Append records of an experiment, each right after the one that it names."""
        del context
        sequence = await self._decisions.seal(request.experiment_id, request.records, request.ByteSize())
        return audit_pb2.SealDecisionResponse(sequence=sequence)

    @answers_refusals(audit_pb2.GetDecisionRecordResponse)
    async def GetDecisionRecord(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.GetDecisionRecordRequest, context: Any
    ) -> audit_pb2.GetDecisionRecordResponse:
        """Read the sealed records of an experiment."""
        del context
        if request.viewer:
            await self._writer.viewed_chain(request.viewer, request.experiment_id)
        records, _ = await self._decisions.read(request.experiment_id, request.after, request.limit)
        return audit_pb2.GetDecisionRecordResponse(records=records)

    @answers_refusals(audit_pb2.GetCheckpointResponse)
    async def GetCheckpoint(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.GetCheckpointRequest, context: Any
    ) -> audit_pb2.GetCheckpointResponse:
        """Return the last signed checkpoint."""
        del request, context
        return await self._proofs.checkpoint()

    @answers_refusals(audit_pb2.ProveInclusionResponse)
    async def ProveInclusion(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.ProveInclusionRequest, context: Any
    ) -> audit_pb2.ProveInclusionResponse:
        """Prove that an entry is in the log of a given size."""
        del context
        return await self._proofs.inclusion(request)

    @answers_refusals(audit_pb2.ProveConsistencyResponse)
    async def ProveConsistency(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.ProveConsistencyRequest, context: Any
    ) -> audit_pb2.ProveConsistencyResponse:
        """Prove that the log of one size begins with the log of an earlier one."""
        del context
        return await self._proofs.consistency(request)

    async def ListEntries(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.ListEntriesRequest, context: Any
    ) -> AsyncIterator[audit_pb2.ListEntriesResponse]:
        """Stream entries as they are hashed."""
        del context
        async for entry in self._proofs.entries(request):
            yield entry

    @answers_refusals(audit_pb2.AcknowledgeTruncationResponse)
    async def AcknowledgeTruncation(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.AcknowledgeTruncationRequest, context: Any
    ) -> audit_pb2.AcknowledgeTruncationResponse:
        """Record that a reviewer accepts a loss; the log then continues as its next generation."""
        del context
        return await self._proofs.acknowledge(request)

    @answers_refusals(audit_pb2.RecordStopResponse)
    async def RecordStop(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.RecordStopRequest, context: Any
    ) -> audit_pb2.RecordStopResponse:
        """Record that a person stops a session."""
        del context
        return await self._writer.stopped(request)

    @answers_refusals(audit_pb2.ListHeldResponse)
    async def ListHeld(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.ListHeldRequest, context: Any
    ) -> audit_pb2.ListHeldResponse:
        """List a page of held responses, without their text."""
        del context
        return await self.holds.list_held(request)

    @answers_refusals(audit_pb2.GetHeldResponse)
    async def GetHeld(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.GetHeldRequest, context: Any
    ) -> audit_pb2.GetHeldResponse:
        """Read a held response from a chain that verifies. A person's look is on record first."""
        del context
        return await self.holds.get(request)

    @answers_refusals(audit_pb2.DecideHeldResponse)
    async def DecideHeld(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.DecideHeldRequest, context: Any
    ) -> audit_pb2.DecideHeldResponse:
        """Record a reviewer's decision; of two concurrent ones the first stands."""
        del context
        return await self.holds.decide(request)

    @answers_refusals(audit_pb2.ReleaseHeldResponse)
    async def ReleaseHeld(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.ReleaseHeldRequest, context: Any
    ) -> audit_pb2.ReleaseHeldResponse:
        """Hand out an approved response once, after its event is durable."""
        del context
        return await self.holds.release(request)

    @answers_refusals(audit_pb2.EraseSessionResponse)
    async def EraseSession(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.EraseSessionRequest, context: Any
    ) -> audit_pb2.EraseSessionResponse:
        """Destroy a session's data key, on an approval that the caller has verified."""
        del context
        return await self._eraser.erase(request)


def _seal(window: WindowRecord) -> audit_pb2.GetWindowResponse:
    return audit_pb2.GetWindowResponse(
        window_number=window.window_number,
        parent_ids=window.parent_ids,
        hmac=window.hmac,
        timestamp=window.timestamp,
        response_hash=window.response_hash,
        risk_level=common_pb2.RiskLevel.ValueType(window.risk_level),
        charge_micros=window.charge_micros,
        status=window.status,
        settle_json=window.settle_json,
        trail_id=window.trail_id,
        settlement=settlement_message(window.settle_json),
    )
