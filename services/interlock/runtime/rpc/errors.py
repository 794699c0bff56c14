"""Refusals on the wire: the only place that knows gRPC codes (style.md, Errors; SVC-3).

A refusal travels in three forms, one per boundary, and this module turns each into the next:

* inside a service: ``domain.errors.Refused``, raised;
* between services: ``common.v1.Refusal``, a value in the response (``answers_refusals`` and ``unwrap``);
* at the edge: a gRPC status with ``google.rpc.ErrorInfo`` and ``RetryInfo`` (``to_status`` and ``from_rpc_error``).
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from interlock.api.common.v1 import common_pb2
from interlock.domain.errors import Kind, Refused, exhausted, unavailable
from interlock.runtime.rpc.echo import UNDECODABLE_REQUEST

DOMAIN = "interlock"

_CODES: Mapping[Kind, grpc.StatusCode] = {
    Kind.INVALID: grpc.StatusCode.INVALID_ARGUMENT,
    Kind.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    Kind.FORBIDDEN: grpc.StatusCode.PERMISSION_DENIED,
    Kind.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Kind.CONFLICT: grpc.StatusCode.ABORTED,
    Kind.HALTED: grpc.StatusCode.FAILED_PRECONDITION,
    Kind.EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Kind.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    Kind.INTERNAL: grpc.StatusCode.INTERNAL,
    Kind.BAD_GATEWAY: grpc.StatusCode.UNAVAILABLE,
    Kind.TIMEOUT: grpc.StatusCode.DEADLINE_EXCEEDED,
}

HTTP_CODES: Mapping[Kind, int] = {
    Kind.INVALID: 400,
    Kind.UNAUTHENTICATED: 401,
    Kind.FORBIDDEN: 403,
    Kind.NOT_FOUND: 404,
    Kind.CONFLICT: 409,
    Kind.HALTED: 451,
    Kind.EXHAUSTED: 429,
    Kind.UNAVAILABLE: 503,
    Kind.INTERNAL: 500,
    Kind.BAD_GATEWAY: 502,
    Kind.TIMEOUT: 504,
}

_KINDS = frozenset(int(kind) for kind in Kind)

A = TypeVar("A", bound=Any)
Handler = Callable[[Any, Any, Any], Awaitable[A]]


def internal() -> Refused:
    """Return the refusal for a defect of ours, without any details."""
    return Refused(Kind.INTERNAL, "INTERNAL", "internal error; the log has the details")


def grpc_code(refused: Refused) -> grpc.StatusCode:
    """Return the gRPC code of a refusal."""
    return _CODES[refused.kind]


def to_message(refused: Refused) -> common_pb2.Refusal:
    """Return the refusal as a value for a response."""
    return common_pb2.Refusal(
        kind=common_pb2.RefusalKind.ValueType(int(refused.kind)),
        reason=refused.reason,
        message=refused.message,
        metadata=refused.metadata,
        retry_after_ms=refused.retry_after_ms,
    )


def from_message(refusal: common_pb2.Refusal) -> Refused:
    """Return the refusal that a response carries, to be raised."""
    # An unknown kind, from a newer peer, must not be read as a milder one.
    kind = Kind(refusal.kind) if refusal.kind in _KINDS else Kind.INTERNAL
    return Refused(
        kind, refusal.reason, refusal.message, metadata=dict(refusal.metadata), retry_after_ms=refusal.retry_after_ms
    )


def unwrap(answer: A) -> A:
    """Return *answer*, or raise the refusal in it."""
    if answer.HasField("refusal"):
        raise from_message(answer.refusal)
    return answer


def answers_refusals(response: Callable[..., A]) -> Callable[[Handler[A]], Handler[A]]:
    """Decorate a servicer method so that a ``Refused`` becomes the response's refusal."""

    def decorate(handler: Handler[A]) -> Handler[A]:
        @functools.wraps(handler)
        async def answer(self: Any, request: Any, context: Any) -> A:
            try:
                return await handler(self, request, context)
            except Refused as refused:
                return response(refusal=to_message(refused))

        return answer

    return decorate


def to_status(refused: Refused) -> Any:
    """Return the rich status of a refusal, for ``context.abort_with_status``."""
    details = [_packed(error_details_pb2.ErrorInfo(reason=refused.reason, domain=DOMAIN, metadata=refused.metadata))]
    if refused.retry_after_ms:
        delay = duration_pb2.Duration(
            seconds=refused.retry_after_ms // 1000, nanos=refused.retry_after_ms % 1000 * 1_000_000
        )
        details.append(_packed(error_details_pb2.RetryInfo(retry_delay=delay)))
    code = _CODES[refused.kind]
    return rpc_status.to_status(status_pb2.Status(code=code.value[0], message=refused.message, details=details))


def _packed(message: Any) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed


def from_rpc_error(error: grpc.aio.AioRpcError, service: str) -> Refused:
    """Return the refusal for a failed call to *service*, with the name of the service.

    A peer's ErrorInfo and RetryInfo are kept. Without them, the call fails closed as UNAVAILABLE or TIMEOUT.
    """
    return _from_details(error) or _from_code(error.code(), service)


def _from_details(error: grpc.aio.AioRpcError) -> Refused | None:
    try:
        status = rpc_status.from_call(error)
    except ValueError:  # the details contradict the status: not an Interlock status
        return None
    info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    for detail in status.details if status else ():
        _ = detail.Unpack(info) or detail.Unpack(retry)
    if not info.reason:
        return None
    kind = next((k for k, c in _CODES.items() if c == error.code()), Kind.INTERNAL)
    if info.reason == UNDECODABLE_REQUEST:  # our own request was damaged on its way: no fault of whoever we work for
        kind = Kind.UNAVAILABLE
    delay_ms = retry.retry_delay.seconds * 1000 + retry.retry_delay.nanos // 1_000_000
    return Refused(kind, info.reason, status.message, metadata=dict(info.metadata), retry_after_ms=delay_ms)


def _from_code(code: grpc.StatusCode, service: str) -> Refused:
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return Refused(Kind.TIMEOUT, "DEADLINE_EXCEEDED", f"the {service} service ran out of time")
    if code == grpc.StatusCode.RESOURCE_EXHAUSTED:
        return exhausted("MESSAGE_TOO_LARGE", f"the {service} service does not accept a message of this size")
    return unavailable(f"{service.upper()}_UNAVAILABLE", f"the {service} service cannot answer now")
