"""What all pages share: the site's parts, who looks, and an answer in HTML."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from interlock.oversight import pages
from interlock.oversight.changes import Changes
from interlock.oversight.compensations import StuckCases
from interlock.oversight.console import Console
from interlock.oversight.experiments import ExperimentReader
from interlock.oversight.health.look import Health
from interlock.oversight.inbox.reader import Inbox
from interlock.oversight.kernels import KernelList
from interlock.oversight.reader import LiveReader
from interlock.oversight.stops import Stops
from interlock.oversight.views import View
from interlock.runtime.pictures.recent import RecentFigures
from interlock.runtime.settings.loading import EffectiveSetting
from interlock.runtime.settings.model import Settings

COOKIE, SECURE_COOKIE = "interlock_view", "__Host-interlock_view"


@dataclass(frozen=True)
class Site:
    """The page's parts: the use cases, and the origins under which it may be opened."""

    console: Console
    inbox: Inbox
    live: LiveReader
    changes: Changes
    stuck: StuckCases
    stops: Stops
    kernels: KernelList
    experiments: ExperimentReader
    health: Health
    settings: Sequence[EffectiveSetting]
    """What this process runs with, for admins."""
    recent: RecentFigures
    origins: frozenset[str]
    secure: bool

    def is_our_host(self, request: Request) -> bool:
        """Tell whether a request names this page by a name that it is served under."""
        hosts = {origin.partition("://")[2] for origin in self.origins}
        return [value.lower() for value in request.headers.getlist("host")] in [[host] for host in hosts]

    def origin_of(self, request: Request) -> str:
        """Return the origin that a request came to, one of ours: its Host header was checked."""
        host = request.headers["host"].lower()
        return next(origin for origin in self.origins if origin.partition("://")[2] == host)

    @property
    def cookie(self) -> str:
        """Name of the cookie; over TLS a ``__Host-`` name, which no other host of the domain can set."""
        return SECURE_COOKIE if self.secure else COOKIE


def origins_of(settings: Settings, port: int, *, secure: bool) -> frozenset[str]:
    """Return the origins of the page: that of ``oversight_base_url``, or else the loopback names with its port."""
    if settings.oversight_base_url:
        url = urlsplit(settings.oversight_base_url)
        return frozenset({f"{url.scheme}://{url.netloc}".lower()})
    scheme = "https" if secure else "http"
    return frozenset(f"{scheme}://{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]"))


Endpoint = Callable[[Site, Request], Awaitable[Response]]


async def view_of(site: Site, request: Request) -> View:
    """Return who is signed in. Refused with SIGN_IN_REQUIRED."""
    return await site.console.viewer(request.cookies.get(site.cookie, ""))


def sign_in_page(site: Site, fault: str = "", to: str = "") -> str:
    """Return the page of the ways in that are open here; *fault* is shown above them, and *to* is where the provider's way leads."""
    oidc = site.console.oidc
    provider = urlsplit(oidc.sign_in.provider.client.issuer).netloc if oidc else ""
    return pages.sign_in_page(fault, ways=site.console.ways, provider=provider, to=to)


def html(page: str) -> Response:
    """Return a page."""
    return Response(page, media_type="text/html; charset=utf-8")
