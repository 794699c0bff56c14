"""Calls to a running service from the command line, and a hint if the service does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

import grpc

from interlock.domain.errors import Refused
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.echo_channel import EchoChannel
from interlock.runtime.rpc.places import address_to_ask
from interlock.runtime.settings.model import Settings
from interlock.runtime.tls.mutual import channel_to

A = TypeVar("A", bound=Any)
B = TypeVar("B")


def asked(service: str, settings: Settings, call: Callable[[grpc.aio.Channel], Awaitable[A]]) -> A:
    """Return the response of *service* to *call*, at the address in the settings. Its refusals are raised."""
    return conversed(service, settings, lambda channel: call_service(service, call(channel)))


def conversed(service: str, settings: Settings, talk: Callable[[grpc.aio.Channel], Awaitable[B]]) -> B:
    """Return what *talk* makes of several calls to *service* over one channel. Its refusals are raised."""
    return asyncio.run(_conversed(service, settings, talk))


async def _conversed(service: str, settings: Settings, talk: Callable[[grpc.aio.Channel], Awaitable[B]]) -> B:
    async with channel_of(service, settings) as channel:
        return await talk(channel)


@asynccontextmanager
async def channel_of(service: str, settings: Settings) -> AsyncIterator[grpc.aio.Channel]:
    """Open a channel to *service*; what is refused inside because nobody answers has a hint where it should."""
    address = address_to_ask(settings, service)
    size = settings.max_message_bytes
    # Calls inside the mesh never use a proxy from the environment.
    options = (("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", size))
    accept = settings.answers_without_echo == "accept"
    async with channel_to(service, settings, address, options) as channel:
        try:
            yield cast("grpc.aio.Channel", EchoChannel(channel, accept_without=accept))
        except Refused as refused:
            if refused.reason == f"{service.upper()}_UNAVAILABLE" or (
                refused.reason == "DEADLINE_EXCEEDED" and "hint" not in refused.metadata
            ):
                refused.metadata["hint"] = (
                    f"nothing answers on {address}: start it with `interlock serve`, or set its address with "
                    f"INTERLOCK_{service.upper()}_ADDRESS, or its port here with INTERLOCK_{service.upper()}_PORT"
                )
            raise
