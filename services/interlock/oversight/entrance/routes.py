"""Sign-in and sign-out over HTTP: with a key, with what a command printed, and with the operator's link."""

from __future__ import annotations

import base64
import binascii

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from interlock.domain.errors import unauthenticated
from interlock.oversight.console import expires_at
from interlock.oversight.entrance import provider
from interlock.oversight.entrance.cookies import signed_in
from interlock.oversight.forms import form_of, json_of, signed_view
from interlock.oversight.oidc.sign_in import own_path
from interlock.oversight.site import Endpoint, Site, html, sign_in_page
from interlock.runtime.clock import iso8601


async def _sign_in_page(site: Site, request: Request) -> Response:
    return html(sign_in_page(site, to=own_path(request.query_params.get("to", ""))))


async def _sign_in_by_token(site: Site, request: Request) -> Response:
    """Accept a bearer token that the command line printed, whose view and its end stay the same; or the secret of its link."""
    form = await form_of(request)
    if secret := form.get("secret", ""):
        opened = site.console.open_for(form.get("viewer", ""), secret)
        return signed_in(site, RedirectResponse("/sessions", 303), opened.bearer, opened.view)
    bearer = form.get("bearer", "").strip()
    view = await site.console.viewer(bearer)
    return signed_in(site, RedirectResponse("/", 303), bearer, view)


async def _sign_out(site: Site, request: Request) -> Response:
    view = await signed_view(site, request, (await form_of(request)).get("csrf", ""))
    site.console.views.sign_out(request.cookies.get(site.cookie, ""))
    response = RedirectResponse("/sign-in" if view.groups is None else "/signed-out", 303)
    response.delete_cookie(site.cookie, path="/", secure=site.secure, httponly=True, samesite="strict")
    return response


async def _challenge(site: Site, request: Request) -> Response:
    given = await json_of(request, "reviewer_id")
    text, expires_us = site.console.views.challenge(given["reviewer_id"])
    return JSONResponse({"challenge": text, "expires_at": iso8601(expires_us)})


async def _sign_in(site: Site, request: Request) -> Response:
    given = await json_of(request, "reviewer_id", "challenge", "signature")
    try:
        signature = base64.b64decode(given["signature"] + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise unauthenticated("SIGN_IN_INVALID", "the signature is not base64url") from None
    opened = await site.console.sign_in(given["reviewer_id"], given["challenge"], signature)
    response = JSONResponse({"expires_at": expires_at(opened.view)})
    return signed_in(site, response, opened.bearer, opened.view)


ROUTES: dict[str, Endpoint] = {"/sign-in": _sign_in_page, **provider.ROUTES}
"""Path → endpoint, all by GET."""
POSTS: dict[str, Endpoint] = {
    "/sign-in": _sign_in_by_token,
    "/sign-out": _sign_out,
    "/api/challenge": _challenge,
    "/api/sign-in": _sign_in,
}
"""Path → endpoint, all by POST."""
