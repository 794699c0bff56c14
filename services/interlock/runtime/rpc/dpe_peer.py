"""The decision provenance engine as its callers see it: places, and analyses in them; ``peers.py`` has the other services."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

import grpc

from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.errors import Refused
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.errors import from_rpc_error, unwrap
from interlock.runtime.rpc.peer import ServicePeer

if TYPE_CHECKING:
    from interlock.api.dpe.v1.dpe_pb2_grpc import DpeServiceAsyncStub

_LONGEST_LEASE_MS = 900_000


class DpePeer(ServicePeer):
    """The decision provenance engine."""

    name = "dpe"

    def __init__(self, stub: DpeServiceAsyncStub, timeout_s: float, place_timeout_s: float) -> None:
        super().__init__(timeout_s)
        self._stub, self._place_timeout_s = stub, place_timeout_s

    async def reserve(self, deadline: Deadline, place_id: str = "") -> str:
        """Take a place until the deadline at most, or keep the one named, and return its id; empty from an engine that knows no places.

        Refused with OVERLOADED while there is none.
        """
        lease_ms = max(1, min(_LONGEST_LEASE_MS, math.ceil(deadline.left_s * 1000)))
        request = dpe_pb2.ReservePlaceRequest(lease_ms=lease_ms, place_id=place_id)
        try:
            return unwrap(
                await self._stub.ReservePlace(request, timeout=deadline.within(self._place_timeout_s))
            ).place_id
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
