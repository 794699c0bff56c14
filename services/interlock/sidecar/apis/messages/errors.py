"""Refusals in the shape of Anthropic's errors, with our reason, its metadata and the fields of a halt beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    451: "permission_error",
    503: "overloaded_error",
    504: "timeout_error",
}
"""Anthropic's words by status; any other 4xx is an invalid_request_error, any other 5xx an api_error."""


def shaped(body: Mapping[str, Any], status: int) -> dict[str, Any]:
    """Return the error for a refusal's *body* and status."""
    error = body["error"]
    message = error["message"] if isinstance(error, Mapping) else error
    kind = TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    rest = {name: value for name, value in body.items() if name != "error"}
    return {**rest, "type": "error", "error": {"type": kind, "message": message}}
