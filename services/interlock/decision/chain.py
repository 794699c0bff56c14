"""Experiments in the audit chain: sealed before anything is answered, and read back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.decision.experiment import DecisionRecord
from interlock.domain.errors import Refused
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peer import ServicePeer

if TYPE_CHECKING:
    from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceAsyncStub

CONFLICT = "DECISION_CHAIN_CONFLICT"
LOOK_S = 2.0
"""Time to look up one window: what takes longer is not known."""


class ExperimentChains(ServicePeer):
    """The audit service, as far as experiments need it."""

    name = "audit"

    def __init__(self, stub: AuditServiceAsyncStub, timeout_s: float) -> None:
        super().__init__(timeout_s)
        self._stub = stub

    async def seal(self, experiment_id: str, records: Sequence[DecisionRecord], deadline: Deadline) -> None:
        """Append records; they are durable when this returns. Refused with DECISION_CHAIN_CONFLICT."""
        told = [
            session_pb2.KernelRecord(
                sequence=one.sequence, previous=one.previous, link=one.link, type=one.type, severity=one.severity,
                data_json=one.data,
            )
            for one in records
        ]  # fmt: skip
        request = audit_pb2.SealDecisionRequest(experiment_id=experiment_id, records=told)
        await self._call_until_done(self._stub.SealDecision, request, deadline)

    async def model_window(self, window_id: str) -> dict[str, str]:
        """Return what the log has of a governed call: its session, status and risk. Never raises: what is not known is told so."""
        deadline = Deadline(LOOK_S)
        try:
            request = audit_pb2.GetReportRequest(window_id=window_id)
            session_id = (await self._call(self._stub.GetReport, request, deadline)).session_id
            seal = await self._call(
                self._stub.GetWindow, audit_pb2.GetWindowRequest(session_id=session_id, window_id=window_id), deadline
            )
        except Refused as refused:
            return {"refused": refused.reason}
        risk = common_pb2.RiskLevel.Name(seal.risk_level).removeprefix("RISK_LEVEL_")
        return {"session_id": session_id, "status": seal.status, "risk": risk}

    async def records(
        self, experiment_id: str, deadline: Deadline, *, after: int = 0, limit: int = 0
    ) -> list[DecisionRecord]:
        """Return the sealed records of an experiment after one; none where the log does not know it."""
        request = audit_pb2.GetDecisionRecordRequest(experiment_id=experiment_id, after=after, limit=limit)
        found = await self._call_until_done(self._stub.GetDecisionRecord, request, deadline)
        return [
            DecisionRecord(one.sequence, one.previous, one.link, one.type, one.severity, one.data_json)
            for one in found.records
        ]
