"""A client of the session service for tests: it raises refusals and builds the usual requests."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2 as pb
from interlock.api.session.v1.session_pb2_grpc import SessionServiceStub
from interlock.domain.errors import Refused
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from interlock.session.wiring import open_service

SCOPE = "key_0123456789abcdef01234567"
POLICY = "halt-on CRITICAL"
HIGH = 150_000
MASTER = secrets.token_bytes(32)
STAMP = "2026-05-25T10:00:00.000000Z"


def sha(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class Client:
    """Asks over gRPC, raises refusals, and builds the usual requests."""

    def __init__(self, stub: Any) -> None:
        self.stub = stub

    async def call(self, method: str, request: Any) -> Any:
        return await call_service("session", getattr(self.stub, method)(request, timeout=10))

    async def refused(self, method: str, request: Any) -> Refused:
        with pytest.raises(Refused) as caught:
            await self.call(method, request)
        return caught.value

    async def start(self, **fields: Any) -> pb.StartSessionResponse:
        given = {"scope": SCOPE, "policy_text": POLICY, "policy_hash": sha(POLICY), **fields}
        return await self.call("StartSession", pb.StartSessionRequest(**given))

    async def open(self, token: str, **fields: Any) -> pb.OpenedWindow:
        return (await self.call("OpenWindow", opening(token, **fields))).window

    async def settle(self, window: pb.OpenedWindow, **fields: Any) -> pb.CommitWindowResponse:
        return await self.call("CommitWindow", settling(window, **fields))

    async def session(self, **fields: Any) -> pb.Session:
        return (await self.call("GetSession", pb.GetSessionRequest(**fields))).session

    async def line(self, *charges: int, token: str = "") -> pb.CommitWindowResponse:
        token, done = token or (await self.start()).token, None
        for charge in charges:
            done = await self.settle(await self.open(token), charge_micros=charge)
            token = done.token
        return done


def opening(token: str, **fields: Any) -> pb.OpenWindowRequest:
    return pb.OpenWindowRequest(**{"token": token, "scope": SCOPE, "lease_ms": 30_000, **fields})


def settling(window: pb.OpenedWindow, **fields: Any) -> pb.CommitWindowRequest:
    given = {
        "session_id": window.session_id,
        "root_session_id": window.root_session_id,
        "window_id": window.window_id,
        "parent_ids": window.parent_ids,
        "window_number": window.window_number,
        "risk_level": common_pb2.RISK_LEVEL_HIGH,
        "charge_micros": HIGH,
        "ceiling_micros": window.safety_budget_micros,
        "hmac": sha(window.window_id),
        "timestamp": STAMP,
        "response_hash": sha("answer"),
        "envelope_etag": sha("facts"),
        "quality_tier": "B",
        "strategy": "push",
        "token_count": 12,
        "status": "COMPLETED",
    }
    return pb.CommitWindowRequest(**{**given, **fields})


def payload(token: str) -> dict[str, Any]:
    part = token.partition(".")[0]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now_us = 1_748_160_000_000_000

    def __call__(self) -> int:
        return self.now_us

    def go_on(self, seconds: float) -> None:
        self.now_us += round(seconds * 1_000_000)


@contextlib.asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[str]:
    """Run the service as it is run, wiring, server and a real port, and give its address."""
    service = await open_service(settings)
    server = RpcServer([service], settings.model_copy(update={"allow_plaintext": True}), port=0)
    try:
        yield f"127.0.0.1:{await server.start()}"
    finally:
        await server.drain()
        await service.close()


@contextlib.asynccontextmanager
async def asking(address: str) -> AsyncIterator[Client]:
    """Give a client over real gRPC."""
    async with grpc.aio.insecure_channel(address) as channel:
        yield Client(SessionServiceStub(channel))
