"""Kernels over HTTP, and the stop buttons: a list and a kernel to look at, and forms that end a session or a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from interlock.api.audit.v1 import audit_pb2
from interlock.domain import ids
from interlock.oversight.forms import form_of, query_of, signed_view
from interlock.oversight.live import kernels
from interlock.oversight.site import Endpoint, Site, html, view_of
from interlock.oversight.stops import CallersKernel

PAGE = 25
"""Kernels of one page."""


async def kernel(site: Site, request: Request) -> Response:
    """Show one kernel of a caller where the query names it, or else the kernels that began last."""
    view = await view_of(site, request)
    asked = query_of(request, "scope", "kernel", "root", "name", "before")
    place = _place(asked)
    if place.scope and place.name:
        return html(kernels.kernel_page(view, await site.stops.described(place), place))
    narrowed = {"scope": place.scope, "name": asked.get("name", "") or place.name}
    rows, more = await site.kernels.page(narrowed["scope"], narrowed["name"], _before(asked.get("before", "")), PAGE)
    return html(kernels.kernels_page(view, rows, narrowed, more=more))


def _before(text: str) -> audit_pb2.ListedKernel | None:
    if not text:
        return None
    opened_at, _, kernel_id = text.partition(" ")
    return audit_pb2.ListedKernel(opened_at=opened_at, kernel_id=ids.check("crp_sess_", kernel_id))


async def _stop_session(site: Site, request: Request) -> Response:
    form = await form_of(request)
    view = await signed_view(site, request, form.get("csrf", ""))
    session_id, root = request.path_params["session_id"], form.get("root", "")
    await site.stops.session(view, session_id, root, form.get("reason", ""), form.get("confirm", ""))
    return RedirectResponse(f"/sessions/{session_id}?{urlencode({'root': root})}", 303)


async def _stop_kernel(site: Site, request: Request) -> Response:
    form = await form_of(request)
    view = await signed_view(site, request, form.get("csrf", ""))
    place = _place(form)
    await site.stops.kernel(view, place, form.get("reason", ""), form.get("confirm", ""))
    return RedirectResponse(
        f"/kernels?{urlencode({'scope': place.scope, 'kernel': place.name, 'root': place.root})}", 303
    )


def _place(given: Mapping[str, str]) -> CallersKernel:
    return CallersKernel(given.get("scope", ""), given.get("root", ""), given.get("kernel", ""))


POSTS: dict[str, Endpoint] = {"/sessions/{session_id}/stop": _stop_session, "/kernels/stop": _stop_kernel}
"""Path → endpoint, all by POST, each with the CSRF token of its page."""
