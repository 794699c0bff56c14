"""Reading a session: its seals, reports, contents and events. A broken chain is refused, not read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.audit.export import export
from interlock.audit.sealing.chains import VerifiedChains
from interlock.audit.sealing.readers import Readers
from interlock.audit.sealing.reports import report_message
from interlock.audit.sealing.seal import Sealer, standing_message, window_integrity
from interlock.audit.sealing.verify import ChainBroken, no_session
from interlock.audit.store.contents import erased
from interlock.audit.store.log import AuditLog
from interlock.domain import ids
from interlock.domain.chain.chain import WindowRecord
from interlock.domain.errors import invalid, not_found


class SessionReader:
    """Reads in the reader threads."""

    def __init__(self, audit_log: AuditLog, readers: Readers, chains: VerifiedChains, sealer: Sealer) -> None:
        self._log, self._readers, self._chains, self._sealer = audit_log, readers, chains, sealer

    async def standing(self, request: audit_pb2.GetStandingRequest) -> audit_pb2.GetStandingResponse:
        """Return the state of the session's budget according to its chain, if that verifies."""
        session_id = ids.check("crp_sess_", request.session_id)
        async with self._chains.reporting(session_id):
            found = await self._readers.run(partial(self._chains.verified, session_id, again="due"))
        return audit_pb2.GetStandingResponse(standing=standing_message(found.state))

    async def window(self, request: audit_pb2.GetWindowRequest) -> WindowRecord:
        """Return a sealed window, only from a chain that verifies: its charge is about to be settled."""
        session_id = ids.check("crp_sess_", request.session_id)
        window_id = ids.check("crp_win_", request.window_id)
        chain = await self._chains.read(session_id)
        window = next((window for window in chain.windows if window.window_id == window_id), None)
        if window is None:
            raise not_found("WINDOW_NOT_SEALED", "the session has no such sealed window")
        return window

    async def report(self, request: audit_pb2.GetReportRequest) -> audit_pb2.GetReportResponse:
        """Return the stored bytes of a report, if they are the ones that were sealed."""
        if bool(request.window_id) == bool(request.trail_id):
            raise invalid("ONE_NAME_NEEDED", "a report is named by its window or by its trail id")
        window_id = request.window_id and ids.check("crp_win_", request.window_id)
        trail_id = request.trail_id and ids.check("crp_trail_", request.trail_id)
        found = await self._readers.run(partial(self._log.report, window_id=window_id, trail_id=trail_id))
        if found is None:
            raise not_found("REPORT_NOT_FOUND", "there is no report of that name")
        async with self._chains.reporting(found.window.session_id):
            message = await self._readers.run(partial(report_message, found, self._log, self._sealer.keyring))
        message.integrity = await self._integrity(found.window)
        return message

    async def _integrity(self, window: WindowRecord) -> common_pb2.ChainIntegrity.ValueType:
        """Return the state of the chain of a window. A broken one is an incident, and its reports can be read all the same."""
        try:
            async with self._chains.reporting(window.session_id):
                found = await self._readers.run(partial(self._chains.verified, window.session_id))
        except ChainBroken:
            return common_pb2.CHAIN_INTEGRITY_BROKEN
        return common_pb2.ChainIntegrity.ValueType(int(window_integrity(window, kept=found.kept)))

    async def contents(self, request: audit_pb2.GetContentsRequest) -> audit_pb2.GetContentsResponse:
        """Return the texts of one session's windows, only from a chain that verifies: an answer is judged by them."""
        session_id = ids.check("crp_sess_", request.session_id)
        window_ids = [ids.check("crp_win_", window_id) for window_id in request.window_ids]
        async with self._chains.reporting(session_id):
            found = await self._readers.run(partial(self._contents, session_id, window_ids))
        if not request.viewer:  # an answer is not judged by it, and each call reads several windows
            for one in found:
                one.ClearField("evidence")
        return audit_pb2.GetContentsResponse(contents=found)

    def _contents(self, session_id: str, window_ids: Sequence[str]) -> list[audit_pb2.Content]:
        # Before the chain: anything dropped in between then has its event there.
        held = self._log.contents(session_id, window_ids)
        # What is due is read again here, and not once more for the window that follows: before a provider is asked.
        found = self._chains.verified(session_id, window_ids=window_ids, again="due")
        if not found.kept:
            raise erased()
        return list(
            self._sealer.vault.open(
                session_id, window_ids, found.links, held, dropped=found.dropped, released=found.released
            )
        )

    async def events(self, request: audit_pb2.ExportRequest) -> AsyncIterator[audit_pb2.ExportResponse]:
        """Yield a session's events in order, read a page at a time."""
        session_id, after = ids.check("crp_sess_", request.session_id), 0
        while page := await self._readers.run(partial(self._log.events, session_id, after=after, limit=export.PAGE)):
            for event in page:
                yield audit_pb2.ExportResponse(event=export.to_message(event))
            after = page[-1].sequence
        if not after:
            raise no_session()
