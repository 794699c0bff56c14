"""Recorded answers, read from the running audit service: what was found in each, and how it was decided."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
from google.protobuf import json_format

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import Micros
from interlock.domain.errors import Refused
from interlock.domain.merkle.entry import decode_entry
from interlock.domain.policy.directives import NOTHING
from interlock.domain.policy.policy_text import parse
from interlock.domain.policy.workbench.history import Charge, Sealed, answers
from interlock.domain.policy.workbench.replay import Recorded
from interlock.domain.policy.workbench.trial import Trial
from interlock.policy.report import read_findings
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.errors import from_rpc_error

if TYPE_CHECKING:
    from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceAsyncStub

PAGE = 512
AT_ONCE = 8
"""Sessions that are read at the same time."""

SEALED = "WINDOW_SEALED"
NO_SETTLEMENT, NO_EVENTS = "SETTLEMENT_NOT_TOLD", "EVENTS_REMOVED"
"""Why an answer cannot be replayed, besides the refusals of the audit service."""

_ENDS = frozenset({"AUDIT_UNAVAILABLE", "DEADLINE_EXCEEDED", "CALLER_NOT_ALLOWED"})
"""Refusals that are about the service and not about one answer."""

S = TypeVar("S")


@dataclass
class RecordedAnswers:
    """The answers that can be replayed, and how many cannot, by reason."""

    recorded: list[Recorded] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    more: bool = False
    """Whether there are more answers than were wanted; the latest were taken."""
    removed: int = 0
    """Entries of that time whose bytes retention removed: what they told is not known."""


@dataclass(frozen=True)
class Wanted:
    """Which answers: sealed at *since* or later, the latest *most* of them. *reviewed* and *user_words_ground* as they are now."""

    since: str
    most: int
    reviewed: bool
    user_words_ground: bool
    timeout_s: float


async def read(channel: grpc.aio.Channel, wanted: Wanted) -> RecordedAnswers:
    """Return the recorded answers, the earliest first."""
    return await _Reader(audit_pb2_grpc.AuditServiceStub(channel), wanted).read()


class _Reader:
    def __init__(self, stub: AuditServiceAsyncStub, wanted: Wanted) -> None:
        self._stub, self._wanted, self._found = stub, wanted, RecordedAnswers()
        self._trees: dict[str, asyncio.Task[Mapping[str, session_pb2.CommitWindowRequest]]] = {}
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def read(self) -> RecordedAnswers:
        sessions = await self._sessions()
        await asyncio.gather(*(self._session(session_id, windows) for session_id, windows in sessions.items()))
        self._found.recorded.sort(key=lambda one: one.at)
        return self._found

    async def _sessions(self) -> dict[str, set[str]]:
        """Return the sealed windows of the time by session, read from the end of the log backwards."""
        sessions: dict[str, set[str]] = {}
        end, count = await self._log_size(), 0
        while end > 0:
            start, removed, earliest = max(0, end - PAGE), 0, ""
            for one in reversed(await self._page(start, end)):
                event = decode_entry(one.entry) if one.entry else None
                if event is None:
                    removed += 1
                    continue
                earliest = event.timestamp
                if earliest < self._wanted.since:
                    continue
                self._found.removed, removed = self._found.removed + removed, 0
                if event.event_type == SEALED and count == self._wanted.most:
                    self._found.more = True
                    return sessions
                if event.event_type == SEALED:
                    count += 1
                    sessions.setdefault(event.session_id, set()).add(event.window_id)
            if earliest < self._wanted.since:
                break
            end = start
        return sessions

    async def _page(self, start: int, end: int) -> Sequence[audit_pb2.ListEntriesResponse]:
        return await _listed(self._stub.ListEntries(audit_pb2.ListEntriesRequest(start=start, end=end)))

    async def _log_size(self) -> int:
        request = audit_pb2.GetCheckpointRequest()
        try:
            answer = await call_service("audit", self._stub.GetCheckpoint(request, timeout=self._wanted.timeout_s))
        except Refused as refused:
            if refused.reason != "NO_CHECKPOINT":
                raise
            return int(refused.metadata.get("log_size", 0))
        return answer.log_size

    async def _session(self, session_id: str, windows: set[str]) -> None:
        async with self._turn:
            try:
                await self._replayable(session_id, windows)
            except Refused as refused:
                if refused.reason in _ENDS:
                    raise
                self._found.left_out[refused.reason] += len(windows)

    async def _replayable(self, session_id: str, windows: set[str]) -> None:
        request = audit_pb2.ExportRequest(session_id=session_id)
        events = [one.event for one in await _listed(self._stub.Export(request))]
        created: dict[str, Any] = next(
            (json.loads(one.data_json) for one in events if one.event_type == "SESSION_CREATED"), {}
        )
        settled = await self._settlements(created.get("root_session_id") or session_id)
        charges = {
            window_id: Charge(Micros(one.ceiling_micros), Micros(one.charge_micros), one.accumulate)
            for window_id, one in settled.items()
        }
        told = ((one.event_type, one.window_id, one.timestamp, one.data_json) for one in events)
        found = [sealed for sealed in answers(told, charges) if sealed.window_id in windows]
        self._found.left_out[NO_EVENTS] += len(windows) - len(found)
        for sealed in found:
            await self._answer(session_id, str(created.get("agent_type") or ""), sealed, settled)

    async def _answer(
        self,
        session_id: str,
        agent_type: str,
        sealed: Sealed,
        settlements: Mapping[str, session_pb2.CommitWindowRequest],
    ) -> None:
        settled = settlements.get(sealed.window_id)
        if settled is None:
            self._found.left_out[NO_SETTLEMENT] += 1
            return
        try:
            request = audit_pb2.GetReportRequest(window_id=sealed.window_id)
            answer = await call_service("audit", self._stub.GetReport(request, timeout=self._wanted.timeout_s))
        except Refused as refused:
            if refused.reason in _ENDS:
                raise
            self._found.left_out[refused.reason] += 1
            return
        report = json_format.Parse(answer.report_json, dpe_pb2.Report(), ignore_unknown_fields=True)
        findings = read_findings(report, window_number=sealed.number, user_words_ground=self._wanted.user_words_ground)
        trial = Trial(
            findings=findings, breaker=sealed.breaker, budget=sealed.budget, charge=Micros(settled.charge_micros),
            accepts=sealed.accepts, reviewed=self._wanted.reviewed,
        )  # fmt: skip
        self._found.recorded.append(
            Recorded(
                session_id=session_id, window_id=sealed.window_id, agent_type=agent_type, at=sealed.at, trial=trial,
                policy=parse(settled.policy_text) if settled.policy_text else NOTHING,
                outcome=sealed.outcome, observed=sealed.observed,
            )
        )  # fmt: skip

    async def _settlements(self, root: str) -> Mapping[str, session_pb2.CommitWindowRequest]:
        """Return the settlements of a tree by window; a tree is read once for all of its sessions."""
        if root not in self._trees:
            self._trees[root] = asyncio.create_task(self._tree(root))
        return await self._trees[root]

    async def _tree(self, root: str) -> Mapping[str, session_pb2.CommitWindowRequest]:
        request = audit_pb2.GetTreeRecordRequest(root_session_id=root)
        record = await call_service("audit", self._stub.GetTreeRecord(request, timeout=self._wanted.timeout_s))
        return {step.window_id: step.settlement for step in record.steps if step.HasField("settlement")}


async def _listed(stream: AsyncIterable[S]) -> list[S]:
    try:
        return [one async for one in stream]
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error, "audit") from None
