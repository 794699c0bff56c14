"""Exact decisions per second with 64 in flight: a kernel on a Valkey, and the moving window of `limits` on the same one.

Ours is counted twice: answered over gRPC and sealed before, which is the product; and asked of the store alone, which is what `limits` does.
A bare echo beside them says what a server of this kind can answer at all.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Any

import grpc

from bench.kernel.meshes import ACTION, DEFINITION
from bench.sidecar import ECHO
from interlock.api.kernel.v1 import kernel_pb2
from interlock.api.kernel.v1.kernel_pb2_grpc import KernelServiceStub
from interlock.domain.kernel.definition import kernel_id_of, opened
from interlock.runtime.rpc.kernels.gathering import MOST_TOGETHER
from interlock.session.kernel.reading import ask_of, definition_of
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.kernels.redis import RedisKernels

IN_FLIGHT, SECONDS = 64, 1.5


def has_limits() -> bool:
    return find_spec("limits") is not None


def definition() -> kernel_pb2.Definition:
    from google.protobuf.json_format import ParseDict

    return ParseDict(dict(DEFINITION), kernel_pb2.Definition())


async def at_once(call: Callable[[], Awaitable[bool]]) -> float:
    """Return decisions per second of 64 callers who each ask again when they are answered; every one has to be approved."""
    began = time.perf_counter()

    async def caller() -> int:
        count = 0
        while time.perf_counter() - began < SECONDS:
            if not await call():
                raise SystemExit("an action was not approved")
            count += 1
        return count

    counts = await asyncio.gather(*(caller() for _ in range(IN_FLIGHT)))
    return sum(counts) / (time.perf_counter() - began)


class Executing:
    """The product: ``Execute`` over gRPC, each answer sealed."""

    def __init__(self, target: str) -> None:
        self._stub = KernelServiceStub(grpc.aio.insecure_channel(target))
        self.kernel = f"exact-{uuid.uuid4().hex}"

    async def open(self) -> None:
        await self._stub.Open(kernel_pb2.OpenRequest(kernel=self.kernel, definition=definition()))

    async def once(self) -> bool:
        asked = kernel_pb2.ExecuteRequest(kernel=self.kernel, action=ACTION, key=uuid.uuid4().hex)
        return (await self._stub.Execute(asked, timeout=30)).verdict.approved

    async def rate(self) -> float:
        return await at_once(self.once)


class Echoing:
    """A bare gRPC echo: what any service behind one process of Python's gRPC can answer at most."""

    def __init__(self, target: str) -> None:
        self._call = grpc.aio.insecure_channel(target).unary_unary(ECHO)

    async def once(self) -> bool:
        return bool(await self._call(bytes(200), timeout=30))

    async def rate(self) -> float:
        return await at_once(self.once)


class Deciding:
    """The store alone: the same steps in groups, whose records the next group tells it are sealed."""

    def __init__(self, url: str) -> None:
        self._store = RedisKernels(Batcher(parse(url)))
        self._id = kernel_id_of("bench", "", uuid.uuid4().hex)
        self._sealed: dict[str, str] = {}

    async def open(self) -> None:
        fields, record = opened(definition_of(definition()), self._id, time.time_ns() // 1_000_000)
        await self._store.open(self._id, fields, record)

    async def rate(self) -> float:
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < SECONDS:
            asks = [self._ask() for _ in range(MOST_TOGETHER)]
            found = await self._store.steps(self._id, [asks[0] | self._sealed, *asks[1:]], time.time_ns() // 1_000_000)
            newest = found[0].unsealed[-1]
            self._sealed = {"sealed": str(newest.sequence), "sealed_link": newest.link}
            if any(one.status != "OK" or one.answer["approved"] != "1" for one in found):
                raise SystemExit("an action was not approved")
            count += len(found)
        return count / (time.perf_counter() - began)

    @staticmethod
    def _ask() -> dict[str, Any]:
        return ask_of("execute", kernel_pb2.ExecuteRequest(kernel="k", action=ACTION, key=uuid.uuid4().hex))


class Limiting:
    """`limits`, as its documentation has it for asyncio; every hit fits its window."""

    def __init__(self, url: str) -> None:
        from limits import RateLimitItemPerHour
        from limits.aio.storage import RedisStorage
        from limits.aio.strategies import MovingWindowRateLimiter

        storage = RedisStorage(f"async+{url}", implementation="redispy", max_connections=IN_FLIGHT)
        self._limiter, self._item = MovingWindowRateLimiter(storage), RateLimitItemPerHour(10_000_000)
        self._name = uuid.uuid4().hex

    async def rate(self) -> float:
        return await at_once(lambda: self._limiter.hit(self._item, self._name))
