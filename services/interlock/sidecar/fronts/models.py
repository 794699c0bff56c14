"""The models of the provider, listed and retrieved, in the shape of the API that asks; and which shape that is (API-3, API-7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from interlock.domain.errors import Kind, Refused, not_found
from interlock.runtime.clock import iso8601
from interlock.sidecar.apis.api import Api
from interlock.sidecar.apis.messages.adapter import Messages, authorization
from interlock.sidecar.fronts.front import Front
from interlock.sidecar.fronts.reading import read_headers
from interlock.sidecar.fronts.responses import ErrorShape, as_it_is, json_response
from interlock.sidecar.trail.response_headers import ResponseHeaders

PATH = "/v1/models"
_ANTHROPIC = ("x-api-key", "anthropic-version")


def speaks_anthropic(request: Request) -> bool:
    """Tell whether a request is of Anthropic's API: by its path, or by the headers that its clients send."""
    path = request.scope["path"]
    return path.startswith(Messages.path) or any(name in request.headers for name in _ANTHROPIC)


def shape_of(request: Request) -> ErrorShape:
    """Return the shape of refusals for a path that is no API's own."""
    if request.scope["path"].startswith("/v1/") and speaks_anthropic(request):
        from interlock.sidecar.apis.messages.errors import shaped

        return shaped
    return as_it_is


async def models(front: Front, request: Request, _reply: ResponseHeaders) -> Response:
    """List the models, or show one. Refused with MODEL_NOT_FOUND where the list has none of that name."""
    caller, _ = read_headers(front, request, authorization=authorization)
    listed = (await front.upstream.models(key=caller.key))["data"]
    name = request.path_params.get("model")
    found = [one for one in listed if name in {None, one["id"]}]
    if name is not None and not found:
        raise not_found("MODEL_NOT_FOUND", "the provider lists no model of that name", param="model")
    if speaks_anthropic(request):
        found = [_as_anthropic(one) for one in found]
        edges = {"first_id": found[0]["id"] if found else None, "last_id": found[-1]["id"] if found else None}
        return json_response(found[0] if name else {"data": found, "has_more": False, **edges})
    return json_response(found[0] if name else {"object": "list", "data": found})


def unsupported(apis: Sequence[Api], path: str) -> Refused:
    """Return the refusal of a path that nothing here governs, with the way out."""
    if path == f"{Messages.path}/count_tokens":
        message = (
            f"{path} is not supported: an answer of {Messages.path} has the tokens that were counted, in its usage"
        )
    else:
        ways = ", ".join(f"POST {api.path}" for api in apis)
        message = f"{path} is not supported; nothing is passed on unscanned. Supported: {ways}, POST /v1/embeddings, GET {PATH}"
    return Refused(Kind.INVALID, "ENDPOINT_NOT_SUPPORTED", message)


def _as_anthropic(model: Mapping[str, Any]) -> dict[str, Any]:
    created = iso8601(model["created"] * 1_000_000)
    return {
        "type": "model",
        "id": model["id"],
        "display_name": model["id"],
        "created_at": created,
        "lifecycle": "active",
    }
