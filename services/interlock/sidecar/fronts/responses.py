"""Refusals as HTTP: the OpenAI error shape with our stable reason, and the body of a 451 (SVC-3; SPEC-002 §13)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from interlock.domain.errors import Kind, Refused
from interlock.runtime.clock import iso8601, system_clock
from interlock.runtime.rpc.errors import HTTP_CODES
from interlock.sidecar.openai import strictjson
from interlock.sidecar.provider.upstream import ProviderRefused
from interlock.sidecar.trail.response_headers import ResponseHeaders
from interlock.sidecar.verdict import as_halt

_STATUS_OF_REASON: Mapping[str, int] = {
    "METHOD_NOT_ALLOWED": 405,
    "REQUEST_BODY_TIMEOUT": 408,
    "REQUEST_TOO_LARGE": 413,
    "TOO_MANY_FACTS": 413,
    "FACT_TOO_LARGE": 413,
    "TEXT_TOO_LARGE": 413,
    "CLAIM_LIMIT_EXCEEDED": 413,
    "UNSUPPORTED_ENCODING": 415,
    "UNSUPPORTED_MEDIA_TYPE": 415,
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

HALTED = 451
SAFE = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


def json_response(value: Any, reply: ResponseHeaders | None = None, *, status: int = 200) -> Response:
    """Return *value* as JSON with what is known as headers."""
    headers = headers_of_reply(reply) if reply else SAFE
    return Response(strictjson.dumps(value), status, headers, "application/json")


def headers_of_reply(reply: ResponseHeaders) -> dict[str, str]:
    """Return the headers of a response to a call: what is known of it, and its session's cookie where one is to be set."""
    return {**reply.headers, **({"set-cookie": reply.cookie} if reply.cookie else {}), **SAFE}


def refused_response(refused: Refused, reply: ResponseHeaders) -> Response:
    """Return a refusal with every CRP header that is known by now."""
    status = status_of(refused)
    response = json_response(refused_body(refused, reply), reply, status=status)
    response.headers.update(_advice(refused, status))
    return response


def refused_body(refused: Refused, reply: ResponseHeaders) -> dict[str, Any]:
    """Return the body of a refusal, as a response of its own or as one result of a batch."""
    body: dict[str, Any] = {"error": _error(refused), "reason": refused.reason, "metadata": refused.metadata}
    if refused.reason == "CONTINUATION_NOT_FOUND":
        # The body that SPEC-004 §16.1 prints.
        body |= {"error": "continuation_not_found", "continuation_id": refused.metadata.get("continuation_id")}
    if status_of(refused) == HALTED:
        body = {**as_halt(refused, reply, now=iso8601(system_clock())), **body}
    return body


def status_of(refused: Refused) -> int:
    """Return the HTTP status of a refusal."""
    if isinstance(refused, ProviderRefused):
        return refused.status
    return _STATUS_OF_REASON.get(refused.reason, HTTP_CODES[refused.kind])


def _error(refused: Refused) -> dict[str, Any]:
    ours = {
        "message": refused.message,
        "type": _TYPES.get(refused.kind, "server_error"),
        "param": refused.metadata.get("param"),
        "code": refused.reason.lower(),
    }
    if not isinstance(refused, ProviderRefused):
        return ours
    return {name: refused.error.get(name) or value for name, value in ours.items()}


def _advice(refused: Refused, status: int) -> dict[str, str]:
    """Tell when a retry helps; the openai client obeys x-should-retry and would otherwise try every 409 and 5xx again."""
    headers = {}
    if refused.retry_after_ms:
        headers["retry-after"] = str(math.ceil(refused.retry_after_ms / 1000))
    elif status >= 500 or status in {408, 409, 429}:
        headers["x-should-retry"] = "false"
    if refused.kind is Kind.UNAUTHENTICATED:
        headers["www-authenticate"] = "Bearer"
    if status in {408, 413, 415, 431}:
        headers["connection"] = "close"  # the rest of the body is not read
    return headers
