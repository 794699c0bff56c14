"""The decision service, reached through the sidecar: each call is keyed as a call of the sidecar is, and passed on as it came.

An agent then needs one address, and the decision service no path to agents. The keys and tickets that count are checked again there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc

from interlock.api.decision.v1 import decision_pb2, decision_pb2_grpc
from interlock.domain.errors import unavailable
from interlock.runtime.keys.api_keys import ApiKeys
from interlock.runtime.rpc.errors import from_rpc_error

METHODS = decision_pb2.DESCRIPTOR.services_by_name["DecisionService"].methods
PASSED_ON = frozenset({"authorization"})
"""Metadata of the caller that the decision service reads."""


class DecisionFront:
    """Answers for ``interlock.api.decision.v1.DecisionService``. Every refusal is a status with ErrorInfo."""

    def __init__(self, keys: ApiKeys, service: Any) -> None:
        """*service*: a stub, the servicer of this process, or ``None`` where no address is named."""
        self._keys, self._service = keys, service
        self._local = isinstance(service, decision_pb2_grpc.DecisionServiceServicer)
        for one in METHODS:
            setattr(self, one.name, self._streamed(one.name) if one.server_streaming else self._called(one.name))

    def _called(self, name: str) -> Any:
        async def call(request: Any, context: Any) -> Any:
            try:
                return await self._asked(name, request, context)
            except grpc.aio.AioRpcError as error:
                raise from_rpc_error(error, "decision") from None

        return call

    def _streamed(self, name: str) -> Any:
        async def call(request: Any, context: Any) -> AsyncIterator[Any]:
            try:
                async for one in self._asked(name, request, context):
                    yield one
            except grpc.aio.AioRpcError as error:
                raise from_rpc_error(error, "decision") from None

        return call

    def _asked(self, name: str, request: Any, context: Any) -> Any:
        sent = [(key, value) for key, value in context.invocation_metadata() or () if isinstance(value, str)]
        self._keys.caller([value for key, value in sent if key == "authorization"])
        if self._service is None:
            raise unavailable(
                "DECISION_ADDRESS_MISSING", "this sidecar knows no decision service", retry_after_ms=0,
                hint="set INTERLOCK_DECISION_ADDRESS",
            )  # fmt: skip
        method = getattr(self._service, name)
        if self._local:
            return method(request, context)
        passed = [(key, value) for key, value in sent if key in PASSED_ON]
        return method(request, metadata=passed, timeout=context.time_remaining())
