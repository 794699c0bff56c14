"""The audit service's RPCs: what is acknowledged is durable, and nothing is said on the strength of a broken chain."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar, cast

import structlog
from prometheus_client import Counter, Histogram

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.audit import requests
from interlock.audit.erasure.erasure import ErasureHandlers, no_session
from interlock.audit.export import export
from interlock.audit.holds.held import HeldHandlers
from interlock.audit.merkle.proofs import ProofHandlers
from interlock.audit.requests import Draft
from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.reports import report_message
from interlock.audit.sealing.seal import Sealed, Sealer, standing_message
from interlock.audit.sealing.verify import ChainBroken, examine, require_valid_chain
from interlock.audit.settlements import settlement_message
from interlock.audit.store.log import AuditLog, Chain, StoreFailed
from interlock.audit.streams.streaming import Streaming
from interlock.audit.tree.messages import tree_message, verification_message
from interlock.audit.tree.record import RecordHandlers, noted
from interlock.audit.tree.walk import Tree, TreeReader, walk_tree
from interlock.domain import ids
from interlock.domain.chain.chain import Verification, WindowRecord
from interlock.domain.chain.chain_state import standing_of
from interlock.domain.errors import exhausted, invalid, not_found
from interlock.runtime.rpc.errors import answers_refusals

log = structlog.get_logger()

APPEND_SECONDS = Histogram("interlock_audit_append_seconds", "Time to verify and seal one window durably, seconds.")
CHAIN_BROKEN_TOTAL = Counter("interlock_audit_chain_broken", "Times that a session's chain did not verify.")

READERS = 2
READ_LIMIT = 1024

T = TypeVar("T")


class AuditServicer(ProofHandlers, HeldHandlers, RecordHandlers, ErasureHandlers, audit_pb2_grpc.AuditServiceServicer):
    """Reads in a few threads, writes through the appender; the event loop does neither."""

    streaming: Streaming | None = None
    """What keeps the sinks up with the log; ``None`` without any."""

    def __init__(self, audit_log: AuditLog, appender: Appender, sealer: Sealer) -> None:
        super().__init__()
        self._log, self._appender, self._sealer = audit_log, appender, sealer
        self._keyring = sealer.keyring
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="audit-read")
        self._reading = 0

    async def close(self) -> None:
        """Finish what is being read and written, then close the log."""
        await asyncio.to_thread(self._readers.shutdown)
        await self._appender.close()

    @answers_refusals(audit_pb2.AppendResponse)
    async def Append(self, request: audit_pb2.AppendRequest, context: Any) -> audit_pb2.AppendResponse:  # noqa: N802 - gRPC's name
        """Verify the session's chain from the stored bytes, then seal the window in one durable commit."""
        del context
        self.require_anchored()
        with APPEND_SECONDS.time():
            async with self._noticing(request.session_id):
                draft, chain = await self.read(partial(self._prepare, request))
                standing = standing_of(chain.events, besides=draft.window_id)
                seal = partial(self._sealer.seal, draft=draft, verified=chain.head)
                sealed: Sealed = await self._appender.submit(seal, size=request.ByteSize())
                return sealed.message(standing)

    def _prepare(self, request: audit_pb2.AppendRequest) -> tuple[Draft, Chain]:
        draft = requests.draft(request)
        if self.streaming is not None:
            self.streaming.require()
            self.streaming.notice(draft.notes)
        return draft, self._sound(draft.session_id)

    @answers_refusals(audit_pb2.GetStandingResponse)
    async def GetStanding(self, request: audit_pb2.GetStandingRequest, context: Any) -> audit_pb2.GetStandingResponse:  # noqa: N802 - gRPC's name
        """Read what a session's chain says of its budget, if it verifies."""
        del context
        session_id = ids.check("crp_sess_", request.session_id)
        async with self._noticing(session_id):
            chain = await self.read(partial(self._sound, session_id))
        return audit_pb2.GetStandingResponse(standing=standing_message(standing_of(chain.events)))

    @answers_refusals(audit_pb2.RecordResponse)
    async def Record(self, request: audit_pb2.RecordRequest, context: Any) -> audit_pb2.RecordResponse:  # noqa: N802 - gRPC's name
        """Append events, to a broken chain too: a record of what went on hides no fault, and its loss might."""
        del context
        session_id = ids.check("crp_sess_", request.session_id)
        window_id = request.window_id and ids.check("crp_win_", request.window_id)
        notes = requests.notes(request.events)
        if not notes:
            raise invalid("NO_EVENTS", "there is nothing to record")
        record = partial(
            noted, sealer=self._sealer, once=request.once, session_id=session_id, window_id=window_id, notes=notes
        )
        return audit_pb2.RecordResponse(sequence=await self._appender.submit(record, size=request.ByteSize()))

    @answers_refusals(audit_pb2.GetWindowResponse)
    async def GetWindow(self, request: audit_pb2.GetWindowRequest, context: Any) -> audit_pb2.GetWindowResponse:  # noqa: N802 - gRPC's name
        """Read a seal, from a chain that verifies only: its charge is about to be settled."""
        del context
        session_id = ids.check("crp_sess_", request.session_id)
        window_id = ids.check("crp_win_", request.window_id)
        async with self._noticing(session_id):
            chain = await self.read(partial(self._sound, session_id))
        window = next((window for window in chain.windows if window.window_id == window_id), None)
        if window is None:
            raise not_found("WINDOW_NOT_SEALED", "the session has no such sealed window")
        return _seal(window)

    @answers_refusals(audit_pb2.GetReportResponse)
    async def GetReport(self, request: audit_pb2.GetReportRequest, context: Any) -> audit_pb2.GetReportResponse:  # noqa: N802 - gRPC's name
        """Read the stored bytes of a report, if they are the ones that were sealed."""
        del context
        if bool(request.window_id) == bool(request.trail_id):
            raise invalid("ONE_NAME_NEEDED", "a report is named by its window or by its trail id")
        window_id = request.window_id and ids.check("crp_win_", request.window_id)
        trail_id = request.trail_id and ids.check("crp_trail_", request.trail_id)
        found = await self.read(partial(self._log.report, window_id=window_id, trail_id=trail_id))
        if found is None:
            raise not_found("REPORT_NOT_FOUND", "there is no report of that name")
        async with self._noticing(found.window.session_id):
            return await self.read(partial(report_message, found, self._log, self._keyring))

    @answers_refusals(audit_pb2.GetContentsResponse)
    async def GetContents(self, request: audit_pb2.GetContentsRequest, context: Any) -> audit_pb2.GetContentsResponse:  # noqa: N802 - gRPC's name
        """Read what windows of one session said, from a chain that verifies only: an answer is judged by it."""
        del context
        session_id = ids.check("crp_sess_", request.session_id)
        window_ids = [ids.check("crp_win_", window_id) for window_id in request.window_ids]
        async with self._noticing(session_id):
            found = await self.read(partial(self._contents, session_id, window_ids))
        return audit_pb2.GetContentsResponse(contents=found)

    def _contents(self, session_id: str, window_ids: Sequence[str]) -> list[audit_pb2.Content]:
        held = self._log.contents(session_id)  # first: what is dropped in between then has its event in the chain
        chain = self._sound(session_id)
        return list(self._sealer.vault.open(session_id, window_ids, chain.windows, chain.events, held))

    @answers_refusals(audit_pb2.DropContentResponse)
    async def DropContent(self, request: audit_pb2.DropContentRequest, context: Any) -> audit_pb2.DropContentResponse:  # noqa: N802 - gRPC's name
        """Delete what a window said that nobody was given."""
        del context
        drop = partial(
            self._sealer.drop,
            session_id=ids.check("crp_sess_", request.session_id),
            window_id=ids.check("crp_win_", request.window_id),
        )
        return audit_pb2.DropContentResponse(dropped=await self._appender.submit(drop))

    @answers_refusals(audit_pb2.VerifyResponse)
    async def Verify(self, request: audit_pb2.VerifyRequest, context: Any) -> audit_pb2.VerifyResponse:  # noqa: N802 - gRPC's name
        """Check a session's chain from the stored bytes and name every fault."""
        del context
        session_id = ids.check("crp_sess_", request.session_id)
        found = await self.read(partial(self._examine, session_id))
        if found.faults:
            await self._notice(session_id, ChainBroken(found.faults[0], faults=len(found.faults)))
        return verification_message(found)

    @answers_refusals(audit_pb2.VerifyTreeResponse)
    async def VerifyTree(self, request: audit_pb2.VerifyTreeRequest, context: Any) -> audit_pb2.VerifyTreeResponse:  # noqa: N802 - gRPC's name
        """Walk the sessions of a tree; each is read by itself, so that other callers are served in between."""
        del context
        walk = walk_tree(TreeReader(self._log, self._keyring), ids.check("crp_sess_", request.session_id))
        answer: Any = None
        while True:
            try:
                read, name = walk.send(answer)
            except StopIteration as done:
                tree: Tree = done.value
                break
            answer = await self.read(partial(read, name))
        for trail in tree.trails:
            if trail.found.faults:
                await self._notice(trail.session_id, ChainBroken(trail.found.faults[0], faults=len(trail.found.faults)))
        return tree_message(tree)

    async def Export(self, request: audit_pb2.ExportRequest, context: Any) -> AsyncIterator[audit_pb2.ExportResponse]:  # noqa: N802 - gRPC's name
        """Stream a session's events in order, a page at a time."""
        del context
        session_id, after = ids.check("crp_sess_", request.session_id), 0
        while page := await self.read(partial(self._log.events, session_id, after=after, limit=export.PAGE)):
            for event in page:
                yield audit_pb2.ExportResponse(event=export.to_message(event))
            after = page[-1].sequence
        if not after:
            raise no_session()

    async def read(self, reading: Callable[[], T]) -> T:
        """Run *reading* in a reader thread; refused rather than queued without bound.

        A log that could not be opened so far is tried again, for the next caller.
        """
        if self._reading >= READ_LIMIT:
            raise exhausted("AUDIT_QUEUE_FULL", "too much waits to be read; try again")
        self._reading += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, reading)
        except StoreFailed:
            await self._appender.probe()
            raise
        finally:
            self._reading -= 1

    def _sound(self, session_id: str) -> Chain:
        chain = self._log.chain(session_id)
        require_valid_chain(chain, session_id, self._keyring)
        return chain

    def _examine(self, session_id: str) -> Verification:
        chain = self._log.chain(session_id)
        if not chain.events and not chain.windows:
            raise no_session()
        return examine(chain, session_id, self._keyring)

    @contextlib.asynccontextmanager
    async def _noticing(self, session_id: str) -> AsyncIterator[None]:
        try:
            yield
        except ChainBroken as broken:
            await self._notice(session_id, broken)
            raise

    async def _notice(self, session_id: str, broken: ChainBroken) -> None:
        """Make a break an incident: a metric, a log line, and an event where that can still be written."""
        CHAIN_BROKEN_TOTAL.inc()
        log.critical("audit.chain.broken", session_id=session_id, faults=broken.faults, **broken.metadata)
        try:
            await self._appender.submit(partial(self._sealer.incident, session_id=session_id, broken=broken))
        except Exception as error:  # noqa: BLE001 - what was tampered with may not be writable; the answer stays the same
            log.warning("audit.incident.not_written", session_id=session_id, error=type(error).__name__)


def _seal(window: WindowRecord) -> audit_pb2.GetWindowResponse:
    return audit_pb2.GetWindowResponse(
        window_number=window.window_number,
        parent_ids=window.parent_ids,
        hmac=window.hmac,
        timestamp=window.timestamp,
        response_hash=window.response_hash,
        risk_level=cast("Any", window.risk_level),
        charge_micros=window.charge_micros,
        status=window.status,
        settle_json=window.settle_json,
        trail_id=window.trail_id,
        settlement=settlement_message(window.settle_json),
    )
