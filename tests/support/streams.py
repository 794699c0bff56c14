"""Reading a stream of the mesh as its callers would, whichever channel it comes over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc

from interlock.runtime.rpc.errors import from_rpc_error


async def ask_each(service: str, call: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Yield what *service* streams. A stream that fails is raised as a refusal that names *service*."""
    try:
        async for message in call:
            yield message
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error, service) from None
