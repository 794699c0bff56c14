"""Refusals as HTTP: the OpenAI error shape with our stable reason, and the body of a 451 (SVC-3; SPEC-002 §13)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf import json_format
from starlette.responses import Response

from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind, Refused
from interlock.runtime.clock import system_clock, whole_seconds
from interlock.runtime.rpc.errors import HTTP_CODES
from interlock.sidecar.apis.api import HALTED
from interlock.sidecar.call.verdict import as_halt
from interlock.sidecar.openai import strictjson
from interlock.sidecar.provider.upstream import ProviderRefused
from interlock.sidecar.trail.response_headers import ResponseHeaders, of_refusal

_STATUS_OF_REASON: Mapping[str, int] = {
    "METHOD_NOT_ALLOWED": 405,
    "REQUEST_BODY_TIMEOUT": 408,
    "REQUEST_TOO_LARGE": 413,
    "TOO_MANY_FACTS": 413,
    "FACT_TOO_LARGE": 413,
    "TEXT_TOO_LARGE": 413,
    "CLAIM_LIMIT_EXCEEDED": 413,
    "TRANSFER_TOO_LARGE": 413,
    "FACT_LIMIT_EXCEEDED": 413,
    "SUB_QUERY_LIMIT_EXCEEDED": 413,
    "TOOL_LIMIT_EXCEEDED": 413,
    "CONTENT_TOO_LARGE": 413,
    "MESSAGE_TOO_LARGE": 413,
    "UNSUPPORTED_ENCODING": 415,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "NO_CONTEXT": 424,
    "HEADER_TOO_LARGE": 431,
    "ENDPOINT_NOT_SUPPORTED": 501,
}
"""Reasons for which HTTP has a finer word than the kind's."""

_TYPES: Mapping[Kind, str] = {
    Kind.INVALID: "invalid_request_error",
    Kind.UNAUTHENTICATED: "authentication_error",
    Kind.FORBIDDEN: "permission_error",
    Kind.NOT_FOUND: "not_found_error",
    Kind.CONFLICT: "conflict_error",
    Kind.HALTED: "safety_halt",
    Kind.EXHAUSTED: "rate_limit_error",
    Kind.BAD_GATEWAY: "upstream_error",
    Kind.TIMEOUT: "timeout_error",
}

ErrorShape = Callable[[dict[str, Any], int], dict[str, Any]]
"""Makes the body of a refusal and its status into an error of the API that was called."""

TOO_LARGE = 413
"""What is too large comes to nothing however often it is sent: it is no matter of a rate."""

SAFE = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


def json_response(value: Any, reply: ResponseHeaders | None = None, *, status: int = 200) -> Response:
    """Return *value* as JSON with what is known as headers."""
    headers = headers_of_reply(reply) if reply else SAFE
    return Response(strictjson.dumps(value), status, headers, "application/json")


def headers_of_reply(reply: ResponseHeaders) -> dict[str, str]:
    """Return the headers of a response to a call: what is known of it, and its session's cookie where one is to be set."""
    return {**reply.headers, **({"set-cookie": reply.cookie} if reply.cookie else {}), **SAFE}


def as_it_is(body: dict[str, Any], _status: int) -> dict[str, Any]:
    """Return a refusal in the shape of the OpenAI APIs."""
    return body


def refused_response(refused: Refused, reply: ResponseHeaders, shape: ErrorShape = as_it_is) -> Response:
    """Return a refusal in the *shape* of the API that was called, with every CRP header that is known by now."""
    status = status_of(refused)
    reply.set(of_refusal(refused.reason))
    response = json_response(shape(refused_body(refused, reply), status), reply, status=status)
    response.headers.update(_advice(refused, status))
    return response


def refused_body(refused: Refused, reply: ResponseHeaders) -> dict[str, Any]:
    """Return the body of a refusal, as a response of its own or as one result of a batch."""
    body: dict[str, Any] = {"error": _error(refused), "reason": refused.reason, "metadata": refused.metadata}
    if refused.reason == "CONTINUATION_NOT_FOUND":
        # The body that SPEC-004 §16.1 prints.
        body |= {"error": "continuation_not_found", "continuation_id": refused.metadata.get("continuation_id")}
    if status_of(refused) == HALTED:
        body = {**as_halt(refused, reply, now=whole_seconds(system_clock())), **body}
    return body


def status_of(refused: Refused) -> int:
    """Return the HTTP status of a refusal."""
    if isinstance(refused, ProviderRefused):
        return refused.status
    return _STATUS_OF_REASON.get(refused.reason, HTTP_CODES[refused.kind])


def session_json(session: session_pb2.Session) -> dict[str, Any]:
    """Return a session as JSON; millionths stay numbers."""
    shown: dict[str, Any] = _with_numbers(
        json_format.MessageToDict(session, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    )
    return shown


def _with_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: int(v) if k.endswith("_micros") else _with_numbers(v) for k, v in value.items()}
    return [_with_numbers(item) for item in value] if isinstance(value, list) else value


def _error(refused: Refused) -> dict[str, Any]:
    ours = {
        "message": refused.message,
        "type": "invalid_request_error"
        if status_of(refused) == TOO_LARGE
        else _TYPES.get(refused.kind, "server_error"),
        "param": refused.metadata.get("param"),
        "code": refused.reason.lower(),
    }
    if not isinstance(refused, ProviderRefused):
        return ours
    known = {"type": refused.error.type, "param": refused.error.param, "code": refused.error.code}
    return {**ours, **{name: word for name, word in known.items() if word}}


def _advice(refused: Refused, status: int) -> dict[str, str]:
    """Tell when a retry helps; the openai client obeys x-should-retry and would otherwise try every 409 and 5xx again."""
    headers = {}
    if refused.retry_after_ms:
        headers["retry-after"] = str(math.ceil(refused.retry_after_ms / 1000))
        headers["retry-after-ms"] = str(refused.retry_after_ms)  # the openai client prefers it
    elif status >= 500 or status in {408, 409, 429}:
        headers["x-should-retry"] = "false"
    if refused.kind is Kind.UNAUTHENTICATED:
        headers["www-authenticate"] = "Bearer"
    if status in {408, 413, 415, 431}:
        headers["connection"] = "close"  # the rest of the body is not read
    return headers
