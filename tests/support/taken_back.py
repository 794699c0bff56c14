"""A client of its own process that begins calls and takes them back: python -m tests.support.taken_back GRPC HTTP COUNT

What it costs to cancel is its own; the test that runs it looks at the memory of who was called.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from itertools import cycle
from typing import Any

import grpc

from interlock.api.sidecar.v1 import sidecar_pb2, sidecar_pb2_grpc

BODY = b'{"model":"test-model","messages":[{"role":"user","content":"What is it?"}]}'
REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
)
AT_ONCE = 32
WAITS_S = (0.0, 0.05, 1.0)
"""Before a call is sent, on its way, and with the provider: one after the other, so that each comes in every round."""


async def round_of(stub: Any, port: int, count: int) -> None:
    """Begin and take back *count* calls over gRPC, and an eighth as many over HTTP."""
    dispatch = sidecar_pb2.DispatchRequest(chat_request=BODY)
    for _, wait_s in zip(range(0, count, AT_ONCE), cycle(WAITS_S), strict=False):
        calls = [stub.Dispatch(dispatch) for _ in range(AT_ONCE)]
        await asyncio.sleep(wait_s)
        for call in calls:
            call.cancel()
        await asyncio.gather(*map(_ended, calls))
    for _ in range(0, count // 8, AT_ONCE):
        await asyncio.gather(*(_hung_up(port) for _ in range(AT_ONCE)))


async def _ended(call: Any) -> None:
    with contextlib.suppress(asyncio.CancelledError, grpc.aio.AioRpcError):
        await call


async def _hung_up(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST % (len(BODY), BODY))
    await writer.drain()
    await asyncio.sleep(random.choice((0, 0.1)))
    writer.transport.abort()


async def main(address: str, http: str, count: str) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        await round_of(sidecar_pb2_grpc.SidecarServiceStub(channel), int(http.rsplit(":", 1)[1]), int(count))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
