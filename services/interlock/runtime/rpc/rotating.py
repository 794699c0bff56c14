"""A channel to a service of the mesh that is replaced when the certificates change, without losing a call (SVC-6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import grpc
import structlog

from interlock.runtime.tls.mutual import Identity, Tls

log = structlog.get_logger()

CONNECT_S = 5.0


class RotatingChannel:
    """The channel behind the stubs. A new channel takes over once it is connected; the old one closes after its calls."""

    def __init__(
        self, tls: Tls, service: str, address: str, options: Sequence[tuple[str, Any]], *, drain_s: float
    ) -> None:
        self._tls, self._service, self._drain_s = tls, service, drain_s
        self._make: Callable[[], grpc.aio.Channel] = partial(tls.channel, service, address, options)
        self._identity: Identity = tls.now()
        self._channel: grpc.aio.Channel = self._make()
        self._callables: dict[tuple[str, str], Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._changing = False

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Callable[..., Awaitable[Any]]:
        """Return a callable like ``grpc.aio.UnaryUnaryMultiCallable``."""

        def call(request: Any, **options: Any) -> Any:
            return self._callable("unary_unary", method, args, kwargs)(request, **options)

        return call

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Callable[..., AsyncIterator[Any]]:
        """Return a callable like ``grpc.aio.UnaryStreamMultiCallable``."""

        def call(request: Any, **options: Any) -> Any:
            return self._callable("unary_stream", method, args, kwargs)(request, **options)

        return call

    def _callable(self, kind: str, method: str, args: Any, kwargs: Any) -> Any:
        self._follow()
        if (kind, method) not in self._callables:
            self._callables[kind, method] = getattr(self._channel, kind)(method, *args, **kwargs)
        return self._callables[kind, method]

    def _follow(self) -> None:
        found = self._tls.now()
        if found is not self._identity and not self._changing:
            self._changing = True
            self._start(self._change(found))

    async def _change(self, found: Identity) -> None:
        """Connect with the current certificates, and switch only then: a peer that refuses them costs no call."""
        fresh = self._make()
        try:
            async with asyncio.timeout(CONNECT_S):
                await _connected(fresh)
        except TimeoutError:
            log.warning(
                "channel.not_replaced", service=self._service, hint="the peer does not accept the new certificate"
            )
            await fresh.close()
        else:
            old, self._channel, self._identity, self._callables = self._channel, fresh, found, {}
            log.info("channel.replaced", service=self._service)
            self._start(old.close(self._drain_s))
        finally:
            self._changing = False

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Close the channel and the replaced ones."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._channel.close()


async def _connected(channel: grpc.aio.Channel) -> None:
    state = channel.get_state(try_to_connect=True)
    while state is not grpc.ChannelConnectivity.READY:
        await channel.wait_for_state_change(state)
        state = channel.get_state(try_to_connect=True)
