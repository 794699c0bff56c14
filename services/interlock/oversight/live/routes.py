"""The console over HTTP: its pages, and the events that tell an open page that something happened."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from interlock.api.audit.v1 import audit_pb2
from interlock.domain import ids
from interlock.domain.errors import exhausted, invalid
from interlock.oversight.forms import query_of
from interlock.oversight.live import (
    decided,
    finding,
    health,
    over_time,
    pages,
    policies,
    settings,
    stopping,
    would_haves,
)
from interlock.oversight.live.parts import shared
from interlock.oversight.site import Endpoint, Site, html, view_of
from interlock.runtime.pictures import picture

PAGE = 50
_LONGEST_POLICY = 2_000


async def _sessions(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    asked = query_of(request, *finding.PARAMETERS, "before")
    before = _before(asked.pop("before", ""))
    wanted = finding.filter_of(asked)
    rows, further = await site.live.sessions(wanted.request(before, PAGE))
    callers = await site.live.callers(row.listed.scope for row in rows)
    return html(pages.sessions_page(view, rows, callers, wanted, further))


async def _session(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    session_id, asked = request.path_params["session_id"], query_of(request, "root", "verify")
    tree = await site.live.tree(session_id, asked.get("root", ""))
    verified = await site.live.verify(session_id) if asked.get("verify") else None
    return html(pages.session_page(view, session_id, tree, verified))


async def _graph(site: Site, request: Request) -> Response:
    await view_of(site, request)
    tree = await site.live.tree(request.path_params["session_id"], query_of(request, "root").get("root", ""))
    return Response(picture.svg(tree), media_type="image/svg+xml")


async def _window(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    shown = await site.live.window(request.path_params["window_id"], view, site.console.require_covered)
    return html(pages.window_page(view, shown))


async def _events(site: Site, request: Request) -> Response:
    await view_of(site, request)
    if site.changes.is_full:
        raise exhausted("TOO_MANY_PAGES", "as many pages are open as can be told of changes; reload this one by hand")
    return StreamingResponse(site.changes.events(), media_type="text/event-stream")


async def _policy(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    asked = query_of(request, "text", "other", longest=_LONGEST_POLICY)
    return html(policies.policy_page(view, asked.get("text", ""), asked.get("other", "")))


async def _figures(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    span = query_of(request, "last").get("last", "1h")
    if span not in over_time.SPANS:
        raise invalid("INVALID_PARAMETER", f"last is one of {', '.join(over_time.SPANS)}", param="last")
    columns = site.recent.columns(over_time.COLUMNS, over_time.SPANS[span])
    return html(over_time.over_time_page(view, columns, span))


ROUTES: dict[str, Endpoint] = {
    "/sessions": shared(_sessions),
    "/sessions/{session_id}": _session,
    "/sessions/{session_id}/dag.svg": _graph,
    "/windows/{window_id}": _window,
    "/events": _events,
    "/policy": _policy,
    "/kernels": stopping.kernel,
    "/figures": shared(_figures),
    **decided.ROUTES,
    **settings.ROUTES,
    **would_haves.ROUTES,
    **health.ROUTES,
}
"""Path → endpoint, all by GET."""


def _before(text: str) -> audit_pb2.ListedSession | None:
    if not text:
        return None
    created_at, _, session_id = text.partition(" ")
    return audit_pb2.ListedSession(created_at=created_at, session_id=ids.check("crp_sess_", session_id))
