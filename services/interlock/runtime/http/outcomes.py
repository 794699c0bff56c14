"""Every end of every HTTP request, counted once and told once (OBS-1): whatever answered it, and also when nobody waited for it.

Labels are fixed words: the route's pattern, never a path that somebody sent, the method where HTTP knows it, and the status.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import structlog
from prometheus_client import Counter, Histogram
from starlette.applications import Starlette
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = structlog.get_logger()

REQUESTS = Counter(
    "interlock_http_requests", "HTTP requests by route, method and status; 499: the client left.",
    ["route", "method", "status"],
)  # fmt: skip
DURATION = Histogram(
    "interlock_http_request_duration_seconds",
    "Time from an HTTP request's head to the last byte of its answer, seconds.",
    ["route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120),
)

CLIENT_GONE = 499
NOWHERE = "none"
"""The route of a path that leads nowhere."""
QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
"""Routes that machines ask all the time: counted, not told."""
REASON, TOLD, TRACE, EXEMPLAR = "interlock.reason", "interlock.told", "interlock.trace", "interlock.exemplar"
"""Keys of the scope: why a request was refused, whether a line of the log has told its end already, the id of its trace, and what
a measurement of it refers to.
"""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Outcomes:
    """An ASGI application around another one, which counts and tells how each request ended."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._routes = _routes(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and note its end."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = time.perf_counter(), CLIENT_GONE

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except BaseException:
            status = status if status != CLIENT_GONE else 500
            raise
        finally:
            self._note(scope, status, time.perf_counter() - begun)

    def _note(self, scope: Mapping[str, Any], status: int, took_s: float) -> None:
        route = self._routes.get(scope.get("endpoint"), NOWHERE)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        REQUESTS.labels(route, method, status).inc()
        DURATION.labels(route).observe(took_s, scope.get(EXEMPLAR))
        if route not in QUIET and not scope.get(TOLD):
            log.info(
                "http", route=route, http_method=method, status_code=status, reason=scope.get(REASON),
                took_ms=round(took_s * 1000, 1), **({"trace_id": trace} if (trace := scope.get(TRACE)) else {}),
            )  # fmt: skip


def _routes(app: ASGIApp) -> dict[Any, str]:
    """Return the pattern of each route by what answers it."""
    if not isinstance(app, Starlette):
        return {}
    named = ((getattr(route, "endpoint", None) or getattr(route, "app", None), route) for route in app.routes)
    return {endpoint: str(getattr(route, "path", NOWHERE)) for endpoint, route in named}
