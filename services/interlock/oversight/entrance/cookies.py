"""The cookies of sign-in: that of a view, and that of a browser on its way to the OpenID provider and back."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from interlock.oversight.oidc.sign_in import LIFE_S
from interlock.oversight.site import Site
from interlock.oversight.views import View

_COOKIE, _SECURE_COOKIE = "interlock_oidc", "__Host-interlock_oidc"


def signed_in(site: Site, response: Response, bearer: str, view: View) -> Response:
    """Give the browser its view."""
    left_s = max(1, (view.expires_us - site.console.views.now_us()) // 1_000_000)
    response.set_cookie(
        site.cookie, bearer, max_age=left_s, path="/", secure=site.secure, httponly=True, samesite="strict"
    )
    return response


def under_way(site: Site, response: Response, browser: str) -> Response:
    """Give the browser the secret of a sign-in that it began. It comes back from another site, so this cookie is lax."""
    response.set_cookie(
        _name(site), browser, max_age=LIFE_S, path="/", secure=site.secure, httponly=True, samesite="lax"
    )
    return response


def browser_of(site: Site, request: Request) -> str:
    """Return the secret of the sign-in that this browser began; empty for none."""
    return request.cookies.get(_name(site), "")


def arrived(site: Site, response: Response) -> Response:
    """Take that secret back."""
    response.delete_cookie(_name(site), path="/", secure=site.secure, httponly=True, samesite="lax")
    return response


def _name(site: Site) -> str:
    return _SECURE_COOKIE if site.secure else _COOKIE
