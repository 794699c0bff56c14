"""A gRPC proxy in front of a service that hands bytes on as they are, or bends the answers: empty, stale, foreign, cut, garbage."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.oversight.v1 import oversight_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2

FILES = {"session": session_pb2, "policy": policy_pb2, "dpe": dpe_pb2, "audit": audit_pb2, "oversight": oversight_pb2}
ECHO_BYTES = 36
GARBAGE = b"\xff\xfe no message \x00"

Bend = Callable[[bytes, bytes | None], bytes]
"""Takes the answer and the one before it of the same method, and returns what is handed on."""


def methods() -> Iterator[tuple[str, Any]]:
    """Every method inside the mesh, by service, as the protos describe it: a new one is among them."""
    for name, module in FILES.items():
        for service in module.DESCRIPTOR.services_by_name.values():
            yield from ((name, method) for method in service.methods)


def path_of(method: Any) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


def altered(answer: bytes, _before: bytes | None) -> bytes:
    """Another value in the first field, before the echo at the end: the last one wins (proto3)."""
    return answer[:-ECHO_BYTES] + b"\x0a\x03bad" + answer[-ECHO_BYTES:]


BENDS: dict[str, Bend] = {
    "empty": lambda _answer, _before: b"",
    "previous": lambda answer, before: before or b"",
    "altered": altered,
    "cut": lambda answer, _before: answer[:-7],
    "garbage": lambda _answer, _before: GARBAGE,
}


@dataclass
class BendingProxy:
    """Hands calls on to *target*; the methods in ``bends`` get bent answers."""

    target: str
    bends: dict[str, Bend] = field(default_factory=dict)
    seen: dict[str, list[bytes]] = field(default_factory=dict)
    """Method → the answers that its service gave."""
    bent: list[str] = field(default_factory=list)
    """Methods whose answers were bent, one entry for each."""
    port: int = 0
    channel: Any = None
    _streams: dict[str, bool] = field(default_factory=lambda: {path_of(m): m.server_streaming for _, m in methods()})

    def service(self, details: Any) -> Any:
        """Return the handler of a method, as ``grpc.GenericRpcHandler`` does."""
        path = details.method
        if self._streams.get(path):
            return grpc.unary_stream_rpc_method_handler(lambda raw, context: self._several(path, raw, context))

        async def one(raw: bytes, context: Any) -> bytes:
            return await self._one(path, raw, context)

        return grpc.unary_unary_rpc_method_handler(one)

    async def _one(self, path: str, raw: bytes, context: Any) -> bytes:
        try:
            call = self.channel.unary_unary(path)
            return self._handed_on(path, await call(raw, timeout=context.time_remaining()))
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details() or "", error.trailing_metadata() or ())
            raise

    async def _several(self, path: str, raw: bytes, context: Any) -> AsyncIterator[bytes]:
        try:
            async for answer in self.channel.unary_stream(path)(raw, timeout=context.time_remaining()):
                yield self._handed_on(path, answer)
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details() or "", error.trailing_metadata() or ())

    def _handed_on(self, path: str, answer: bytes) -> bytes:
        name = path.rsplit("/", 1)[-1]
        before = self.seen.setdefault(name, [])
        before.append(answer)
        bend = self.bends.get(name)
        if bend is None:
            return answer
        self.bent.append(name)
        return bend(answer, before[-2] if len(before) > 1 else None)


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, proxy: BendingProxy) -> None:
        self._proxy = proxy

    def service(self, handler_call_details: Any) -> Any:
        return self._proxy.service(handler_call_details)


@asynccontextmanager
async def bending(target: str) -> AsyncIterator[BendingProxy]:
    """Serve a proxy before the service at *target*."""
    proxy = BendingProxy(target)
    async with AsyncExitStack() as ends:
        options = [("grpc.use_local_subchannel_pool", 1)]
        proxy.channel = await ends.enter_async_context(grpc.aio.insecure_channel(target, options))
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        server.add_generic_rpc_handlers((_Handler(proxy),))
        proxy.port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        ends.push_async_callback(server.stop, 0)
        yield proxy
