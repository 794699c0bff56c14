"""Calls to another service: one function for local and remote peers."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, TypeVar

import grpc

from interlock.runtime.rpc.errors import from_rpc_error, unwrap

A = TypeVar("A", bound=Any)


async def call_service(service: str, call: Awaitable[A]) -> A:
    """Await *call* to *service* and return its answer.

    A refusal in the answer is raised. A failed call is raised as a refusal that names *service*.
    """
    try:
        return unwrap(await call)
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error, service) from None
