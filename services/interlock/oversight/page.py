"""The reviewers' page and its JSON over HTTP, on a listener of its own (ecosystem.md 3.11; A-30, A-48).

GET changes nothing, but for the way to the OpenID provider and back, which a state guards. A POST needs our own Origin and, from a reviewer signed in by cookie, the view's CSRF token. The Host
header is checked against an allow-list, which stops DNS rebinding. Scripts and styles are our own static files; nothing else runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.resources import files
from typing import Any

import structlog
from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from interlock.api.audit.v1 import audit_pb2
from interlock.domain.errors import Refused, forbidden, invalid, not_found
from interlock.domain.held import readable_texts
from interlock.oversight import pages
from interlock.oversight.entrance import routes as entrance
from interlock.oversight.forms import json_of, signed_view
from interlock.oversight.inbox.pages import inbox_page
from interlock.oversight.live.routes import ROUTES
from interlock.oversight.live.stopping import POSTS
from interlock.oversight.refusals import nowhere_answer, refused_answer
from interlock.oversight.site import Endpoint, Site, html, view_of
from interlock.oversight.stuck import routes as stuck_routes
from interlock.oversight.visible import visible
from interlock.runtime.http.server import operations
from interlock.runtime.pictures import picture
from interlock.runtime.rpc.errors import internal
from interlock.runtime.settings.model import Settings

log = structlog.get_logger()

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CSP,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # without any, a browser sends a form's Origin as null
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_STATUSES = {
    "pending": audit_pb2.HELD_STATUS_PENDING,
    "approved": audit_pb2.HELD_STATUS_APPROVED,
    "rejected": audit_pb2.HELD_STATUS_REJECTED,
    "expired": audit_pb2.HELD_STATUS_EXPIRED,
    "released": audit_pb2.HELD_STATUS_RELEASED,
}
_STATIC = {
    "review.css": "text/css; charset=utf-8",
    "review.js": "text/javascript; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

Readiness = Callable[[], Awaitable[Mapping[str, str]]]


def make_app(site: Site, readiness: Readiness, settings: Settings) -> Starlette:
    """Return the ASGI application."""
    static = {name: files("interlock.oversight").joinpath("static", name).read_bytes() for name in _STATIC}

    async def file(_site: Site, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in static:
            raise not_found("PATH_NOT_FOUND", "there is nothing here")
        return Response(static[name], media_type=_STATIC[name])

    async def nowhere(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException), "it is registered for no other"
        return _with_headers(site, await nowhere_answer(site, request, error))

    def route(path: str, endpoint: Endpoint, method: str = "GET") -> Route:
        return Route(path, partial(_answered, site, endpoint), methods=[method])

    app = Starlette(
        routes=[
            *operations(readiness, settings).routes,
            route("/", _queue),
            route("/held/{window_id}", _held),
            route("/held/{window_id}/dag.svg", _dag),
            *(route(path, endpoint) for path, endpoint in (entrance.ROUTES | ROUTES | stuck_routes.ROUTES).items()),
            *(
                route(path, endpoint, "POST")
                for path, endpoint in (entrance.POSTS | POSTS | stuck_routes.POSTS).items()
            ),
            route("/static/{name}", file),
            route("/api/held", _api_queue),
            route("/api/held/{window_id}", _api_held),
            route("/api/held/{window_id}/body", _api_body),
            route("/api/held/{window_id}/decision", _api_decide, "POST"),
        ],
        exception_handlers={HTTPException: nowhere},
    )
    app.router.redirect_slashes = False  # a redirect would be built from the Host header
    return app


async def _answered(site: Site, endpoint: Endpoint, request: Request) -> Response:
    """Answer with the same headers however *endpoint* ends: a refusal by its reason, a defect with constant text."""
    try:
        _check_origin(site, request)
        response = await endpoint(site, request)
    except Refused as refused:
        response = await refused_answer(site, request, refused)
    except Exception:
        log.exception("oversight.defect", route=request.scope["path"])
        response = await refused_answer(site, request, internal())
    return _with_headers(site, response)


def _with_headers(site: Site, response: Response) -> Response:
    more = {"strict-transport-security": "max-age=31536000"} if site.secure else {}
    for name, value in {**HEADERS, **more}.items():
        response.headers.setdefault(name, value)
    return response


def _check_origin(site: Site, request: Request) -> None:
    """Refuse a foreign Host header, and a POST that another site makes a browser send."""
    if not site.is_our_host(request):
        raise forbidden("HOST_NOT_ALLOWED", "this page is not served under that name", hint="set oversight_base_url")
    if request.method == "GET":
        return
    given = [value.lower() for value in request.headers.getlist("origin")]
    if len(given) != 1 or given[0] not in site.origins:
        raise forbidden("ORIGIN_NOT_ALLOWED", "a change comes from this page itself, with its Origin")
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise forbidden("ORIGIN_NOT_ALLOWED", "a change comes from this page itself, not from another site")


async def _queue(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    status = request.query_params.get("status", "pending")
    items, more = await site.inbox.page(view, _status(status))
    return html(inbox_page(view, items, status, site.console.views.now_us(), more=more))


async def _held(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    shown = await site.console.shown(request.path_params["window_id"], view)
    return html(pages.held_page(view, shown, site.console.views.pace(view.reviewer)))


async def _dag(site: Site, request: Request) -> Response:
    await view_of(site, request)
    tree = await site.console.tree(request.path_params["window_id"])
    return Response(picture.svg(tree), media_type="image/svg+xml")


async def _api_queue(site: Site, request: Request) -> Response:
    await view_of(site, request)
    page = await site.console.queue(
        _status(request.query_params.get("status", "pending")), after=request.query_params.get("after", ""), limit=200
    )
    return JSONResponse({"items": [_message(item) for item in page.items], "more": page.more})


async def _api_held(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    shown = await site.console.shown(request.path_params["window_id"], view)
    texts = [{"what": what, "text": visible(text)} for what, text in readable_texts(shown.held)] if shown.held else []
    answer = {
        "item": _message(shown.item),
        "texts": texts,
        "question": visible(shown.held.question) if shown.held else None,
        "kept_by": dict(zip(("reason", "directive"), map(visible, shown.kept_by), strict=True)),
        "evidence": {name: visible(text) for name, text in shown.held.evidence.items()} if shown.held else {},
        "report": _message(shown.report),
        "sessions": [_message(one) for one in shown.sessions],
    }
    return JSONResponse(answer)


async def _api_body(site: Site, request: Request) -> Response:
    """Return the held bytes, for the browser to hash; the headers keep a browser from showing them as a page."""
    view = await view_of(site, request)
    shown = await site.console.shown(request.path_params["window_id"], view)
    if shown.held is None:
        raise not_found("HELD_NOT_FOUND", "its bytes are deleted: rejected, expired, erased or handed out")
    headers = {"content-disposition": "attachment", "content-security-policy": "sandbox; default-src 'none'"}
    return Response(shown.held.body, headers=headers, media_type="application/octet-stream")


async def _api_decide(site: Site, request: Request) -> Response:
    view = await signed_view(site, request, request.headers.get("x-csrf-token", ""))
    given = await json_of(request, "token", "reason")
    item = await site.console.decide(view, request.path_params["window_id"], given["token"], given["reason"])
    return JSONResponse({"status": _word(item), "window_id": item.window_id, "approval_id": item.approval_id})


def _status(name: str) -> audit_pb2.HeldStatus.ValueType:
    if name not in _STATUSES:
        raise invalid("INVALID_PARAMETER", f"status is one of {', '.join(_STATUSES)}", param="status")
    return _STATUSES[name]


def _word(item: audit_pb2.HeldItem) -> str:
    return audit_pb2.HeldStatus.Name(item.status).removeprefix("HELD_STATUS_")


def _message(message: Any) -> dict[str, Any]:
    """Return a message as JSON with hidden characters made visible, without the approval's token, which is the client's."""
    shown: dict[str, Any] = _made_visible(json_format.MessageToDict(message, preserving_proto_field_name=True))
    shown.pop("token", None)
    return shown


def _made_visible(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _made_visible(held) for key, held in value.items()}
    if isinstance(value, list):
        return [_made_visible(held) for held in value]
    return visible(value) if isinstance(value, str) else value
