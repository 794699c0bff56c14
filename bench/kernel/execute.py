"""One ``Execute`` at a time over gRPC, beside a bare echo and the path's floor: with the seal, without it, and without a store too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from bench.kernel.exact import Executing
from bench.path import FLOOR, Contender
from bench.sidecar import ECHO
from interlock.api.common.v1 import common_pb2
from interlock.api.sidecar.v1 import sidecar_pb2

ROUNDS, WARM = 8, 20


async def execute(places: dict[str, tuple[int, list[int]]]) -> dict[str, Contender]:
    """Return the contenders, measured in interleaved rounds. *places*: port and process ids of each by its name."""
    found = {name: Contender(await _call(name, port), pids) for name, (port, pids) in places.items()}
    for one in found.values():
        for _ in range(WARM):
            await one.call()
    for _ in range(ROUNDS):
        for one in found.values():
            await one.measure()
    return found


async def _call(name: str, port: int) -> Callable[[], Awaitable[Any]]:
    target = f"127.0.0.1:{port}"
    if name == "echo":
        echo = grpc.aio.insecure_channel(target).unary_unary(ECHO)
        return lambda: echo(bytes(200))
    if name == "floor":
        floor = grpc.aio.insecure_channel(target).unary_unary(FLOOR)
        fact = common_pb2.Fact(id="f", content="Revenue rose by 4 %.", importance=0.5)
        asked = sidecar_pb2.CheckRequest(text=fact.content, facts=[fact], query="Revenue?").SerializeToString()
        return lambda: floor(asked)
    executing = Executing(target)
    await executing.open()
    return executing.once
