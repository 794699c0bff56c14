"""Peers that leave a stream in the middle of a message (SVC-4)."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceStub
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.servers.probe import AuditProbe, audit_service

pytest_plugins = ("tests.support.logs",)


class Flood(AuditProbe):
    """A stream that never ends, in messages that fill the wire."""

    def __init__(self) -> None:
        self.ended = 0

    async def Export(self, request, _context):
        try:
            while True:
                yield audit_pb2.ExportResponse(event=audit_pb2.Event(session_id="x" * 1_000_000))
        finally:
            self.ended += 1


@pytest.mark.req("SVC-4")
async def test_a_peer_that_leaves_in_the_middle_of_a_message_ends_its_call(log_lines):
    """Each stream ends at once, as CANCELLED; nothing of it is a defect, or left for the collector to end."""
    probe = Flood()
    server = RpcServer([audit_service(probe)], Settings(allow_plaintext=True), port=0)
    port = await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            for _ in range(12):
                stream = AuditServiceStub(channel).Export(audit_pb2.ExportRequest(session_id="x"), timeout=20)
                await stream.read()
                await asyncio.sleep(0.02)  # the server fills the window, and waits in the middle of a message
                stream.cancel()
        async with asyncio.timeout(10):
            while probe.ended < 12:
                await asyncio.sleep(0.02)
    finally:
        await server.drain()
    lines = log_lines()
    assert [one for one in lines if one["level"] == "error"] == []
    assert [one["code"] for one in lines if one["event"] == "rpc"] == ["CANCELLED"] * 12
