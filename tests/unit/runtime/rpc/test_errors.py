"""Refusals in their three forms: raised, as a value, as a status."""

from __future__ import annotations

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc.aio import AioRpcError, Metadata
from grpc_status import rpc_status

from interlock.api.common.v1 import common_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.domain.errors import Kind, Refused
from interlock.runtime.rpc import errors
from interlock.runtime.rpc.client import call_service

TABLE = {
    Kind.INVALID: (400, grpc.StatusCode.INVALID_ARGUMENT),
    Kind.UNAUTHENTICATED: (401, grpc.StatusCode.UNAUTHENTICATED),
    Kind.FORBIDDEN: (403, grpc.StatusCode.PERMISSION_DENIED),
    Kind.NOT_FOUND: (404, grpc.StatusCode.NOT_FOUND),
    Kind.CONFLICT: (409, grpc.StatusCode.ABORTED),
    Kind.HALTED: (451, grpc.StatusCode.FAILED_PRECONDITION),
    Kind.EXHAUSTED: (429, grpc.StatusCode.RESOURCE_EXHAUSTED),
    Kind.UNAVAILABLE: (503, grpc.StatusCode.UNAVAILABLE),
    Kind.INTERNAL: (500, grpc.StatusCode.INTERNAL),
    Kind.BAD_GATEWAY: (502, grpc.StatusCode.UNAVAILABLE),
    Kind.TIMEOUT: (504, grpc.StatusCode.DEADLINE_EXCEEDED),
}


def details_of(status) -> tuple[error_details_pb2.ErrorInfo, error_details_pb2.RetryInfo]:
    error = AioRpcError(status.code, Metadata(), Metadata(*status.trailing_metadata), details=status.details)
    info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    for detail in rpc_status.from_call(error).details:
        _ = detail.Unpack(info) or detail.Unpack(retry)
    return info, retry


def failed(code: grpc.StatusCode, refused: Refused | None = None, details: str = "") -> AioRpcError:
    if refused is None:
        return AioRpcError(code, Metadata(), Metadata(), details=details)
    status = errors.to_status(refused)
    return AioRpcError(status.code, Metadata(), Metadata(*status.trailing_metadata), details=status.details)


@pytest.mark.req("SVC-3")
@pytest.mark.parametrize("kind", Kind)
def test_each_kind_maps_to_http_and_grpc(kind):
    """Every kind has the HTTP and the gRPC code of the settled table."""
    status = errors.to_status(Refused(kind, "REASON", "text"))

    assert (errors.HTTP_CODES[kind], status.code) == TABLE[kind]


@pytest.mark.req("SVC-3")
@pytest.mark.parametrize("kind", Kind)
def test_each_status_carries_reason_and_metadata(kind):
    """Every status has ErrorInfo with the constant reason, our domain and the metadata."""
    info, _ = details_of(errors.to_status(Refused(kind, "REASON", "text", metadata={"position": "7"})))

    assert (info.reason, info.domain, dict(info.metadata)) == ("REASON", "interlock", {"position": "7"})


@pytest.mark.req("SVC-3")
def test_retry_delay_travels_as_retry_info():
    """A refusal that a retry may help says when, to the millisecond."""
    status = errors.to_status(Refused(Kind.UNAVAILABLE, "REASON", "text", retry_after_ms=2500))
    _, retry = details_of(status)

    assert (retry.retry_delay.seconds, retry.retry_delay.nanos) == (2, 500_000_000)


@pytest.mark.req("SVC-3")
def test_no_retry_info_without_delay():
    """Where a retry does not help, none is suggested."""
    status = errors.to_status(Refused(Kind.HALTED, "REASON", "text"))
    error = AioRpcError(status.code, Metadata(), Metadata(*status.trailing_metadata), details=status.details)

    retry = error_details_pb2.RetryInfo()
    assert not any(detail.Is(retry.DESCRIPTOR) for detail in rpc_status.from_call(error).details)


@pytest.mark.req("SVC-3")
@pytest.mark.parametrize("kind", Kind)
def test_message_round_trip_keeps_everything(kind):
    """A refusal that crosses the mesh as a value is raised again as it was."""
    refused = Refused(kind, "REASON", "text", metadata={"a": "b"}, retry_after_ms=70)
    again = errors.from_message(errors.to_message(refused))

    assert vars(again) == vars(refused)


@pytest.mark.req("SVC-3")
@pytest.mark.parametrize("kind", [0, 99])
def test_unknown_kind_is_internal(kind):
    """A kind that is not set, or that only a newer peer knows, reads as the most severe."""
    refusal = common_pb2.Refusal(kind=kind, reason="REASON")

    assert errors.from_message(refusal).kind is Kind.INTERNAL


@pytest.mark.req("SVC-3")
@pytest.mark.parametrize("kind", set(Kind) - {Kind.BAD_GATEWAY})
def test_status_round_trip_keeps_everything(kind):
    """A refusal that crosses as a status is understood again. 502 shares its code with 503 and becomes that."""
    refused = Refused(kind, "REASON", "text", metadata={"a": "b"}, retry_after_ms=70)
    again = errors.from_rpc_error(failed(grpc.StatusCode.OK, refused), "session")

    assert vars(again) == vars(refused)


@pytest.mark.req("SVC-3", "SVC-9")
@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (grpc.StatusCode.UNAVAILABLE, Kind.UNAVAILABLE, "SESSION_UNAVAILABLE"),
        (grpc.StatusCode.CANCELLED, Kind.UNAVAILABLE, "SESSION_UNAVAILABLE"),
        (grpc.StatusCode.UNKNOWN, Kind.UNAVAILABLE, "SESSION_UNAVAILABLE"),
        (grpc.StatusCode.UNIMPLEMENTED, Kind.UNAVAILABLE, "SESSION_UNAVAILABLE"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, Kind.TIMEOUT, "DEADLINE_EXCEEDED"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, Kind.EXHAUSTED, "MESSAGE_TOO_LARGE"),
    ],
)
def test_bare_status_fails_closed(code, kind, reason):
    """A status without ErrorInfo becomes a refusal that names the service, without the peer's text."""
    refused = errors.from_rpc_error(failed(code, details="peer text"), "session")

    assert (refused.kind, refused.reason) == (kind, reason)
    assert "peer text" not in refused.message


@pytest.mark.req("SVC-3")
async def test_ask_raises_the_refusal_in_an_answer():
    """A caller sees a refusal in the answer as the exception that it was."""

    async def answer():
        return policy_pb2.ParseResponse(refusal=errors.to_message(Refused(Kind.INVALID, "POLICY_SYNTAX", "no")))

    with pytest.raises(Refused, match="POLICY_SYNTAX"):
        await call_service("policy", answer())


@pytest.mark.req("SVC-3")
async def test_decorated_handler_lets_defects_pass():
    """Only refusals become values; a defect is left to the server, which hides its text."""

    class Servicer:
        @errors.answers_refusals(policy_pb2.ParseResponse)
        async def Parse(self, request, context):
            raise KeyError("defect")

    with pytest.raises(KeyError):
        await Servicer().Parse(None, None)
