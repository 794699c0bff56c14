"""The way to the OpenID provider and back, over HTTP."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from interlock.domain.errors import invalid
from interlock.oversight.entrance.cookies import arrived, browser_of, signed_in, under_way
from interlock.oversight.forms import query_of
from interlock.oversight.markup import render
from interlock.oversight.pages import STRANGER, frame_of
from interlock.oversight.site import Endpoint, Site, html

CALLBACK = "/oidc/callback"
_READ = ("code", "state", "iss", "error")
_LONGEST = 4_096


async def _start(site: Site, request: Request) -> Response:
    oidc = site.console.require_oidc()
    redirect_uri = f"{site.origin_of(request)}{CALLBACK}"
    started = await oidc.sign_in.start(redirect_uri, query_of(request, "to", longest=_LONGEST).get("to", ""))
    return under_way(site, RedirectResponse(started.location, 303), started.browser)


async def _callback(site: Site, request: Request) -> Response:
    """Sign in who comes back.

    The page that follows is asked for by this one: no browser sends the strict cookie of a view with a request that another site
    began, a redirect among them.
    """
    opened, to = await site.console.open_by_oidc(_told(request), browser_of(site, request))
    page = render("signed_in.html", title="Signed in", **frame_of(opened.view), here="", to=to)
    return arrived(site, signed_in(site, html(page), opened.bearer, opened.view))


async def _signed_out(site: Site, request: Request) -> Response:
    """Say that the person is signed out here, and where they sign out at the provider, if that is known."""
    oidc, query = site.console.require_oidc(), ""
    known = oidc.sign_in.provider.known
    elsewhere = known.end_session_endpoint if known else None
    if elsewhere:
        back = f"{site.origin_of(request)}/sign-in"
        query = urlencode({"client_id": oidc.sign_in.provider.client.client_id, "post_logout_redirect_uri": back})
        elsewhere += ("&" if "?" in elsewhere else "?") + query
    return html(render("signed_out.html", title="Signed out", **STRANGER, elsewhere=elsewhere or ""))


def _told(request: Request) -> dict[str, str]:
    """Return what the provider told. Providers add parameters of their own; what we read stands there once."""
    given = [(name, value) for name, value in request.query_params.multi_items() if name in _READ]
    told = dict(given)
    if len(told) < len(given) or any(len(value) > _LONGEST for value in told.values()):
        raise invalid("INVALID_PARAMETER", f"each of {', '.join(_READ)} stands here once at most", param="query")
    return told


ROUTES: dict[str, Endpoint] = {"/oidc/start": _start, CALLBACK: _callback, "/signed-out": _signed_out}
"""Path → endpoint, all by GET."""
