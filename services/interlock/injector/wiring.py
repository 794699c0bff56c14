"""Open the injector from its settings: /inject/namespace, /inject/pod and /inject/unclear, beside the operators' pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import structlog
from prometheus_client import Counter, Histogram
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from interlock.domain.errors import Refused, invalid
from interlock.injector.reconciler import Reconciler
from interlock.injector.review import answer, unclear
from interlock.injector.rules import read_rules
from interlock.runtime.egress.kubernetes import Cluster, access_of_pod
from interlock.runtime.http.server import operations
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.rereading import Reread

log = structlog.get_logger()

Answer = Callable[[Any], dict[str, Any]]
"""From an AdmissionReview to the one that answers it."""

REVIEWS = Counter(
    "interlock_injector_reviews", "Pods reviewed, by outcome: injected, left, refused, malformed.", ["outcome"]
)
SECONDS = Histogram("interlock_injector_review_seconds", "Time to answer one review, seconds.")

LARGEST_REVIEW_BYTES = 3_145_728
"""The API server's own bound of a request."""


def open_injector(settings: Settings, ends: AsyncExitStack) -> Starlette:
    """Return the webhook; its selectors ask each path for the pods of its kind. The reconciler looks from now on, until *ends*.

    Refused with INJECTOR_FILE_MISSING, or as its rules are.
    """
    path = settings.injector_file
    if path is None:
        raise invalid("INJECTOR_FILE_MISSING", "the injector needs injector_file: the operator's rules")
    rules = Reread([path], lambda contents: read_rules(contents, path), setting="injector_file")

    async def ready() -> Mapping[str, str]:
        return {}

    kinds: Mapping[str, Answer] = {
        "namespace": lambda review: answer(review, rules.now(), by_namespace=True),
        "pod": lambda review: answer(review, rules.now(), by_namespace=False),
        "unclear": unclear,
    }
    routes = [
        Route(f"/inject/{kind}", partial(_reviewed, answered=one), methods=["POST"]) for kind, one in kinds.items()
    ]
    cluster = Cluster(access_of_pod(settings.kubernetes_url, settings.kubernetes_folder))
    reconciler = Reconciler(cluster, rules.now)
    reconciler.start()
    ends.push_async_callback(reconciler.close)
    return Starlette(routes=[*routes, *operations(ready, settings).routes])


async def _reviewed(request: Request, *, answered: Answer) -> Response:
    with SECONDS.time():
        try:
            given = await _body(request)
            said = answered(given)
        except Refused as refused:
            REVIEWS.labels("malformed").inc()
            return JSONResponse({"error": {"reason": refused.reason, "message": refused.message}}, status_code=400)
    response = said["response"]
    outcome = ("injected" if "patch" in response else "left") if response["allowed"] else "refused"
    REVIEWS.labels(outcome).inc()
    log.info(
        "pod.reviewed", outcome=outcome, namespace=str(given["request"].get("namespace") or ""), uid=response["uid"]
    )
    return JSONResponse(said)


async def _body(request: Request) -> Any:
    """Return the JSON of a request, within the API server's bound."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST_REVIEW_BYTES:
            raise invalid("ADMISSION_REVIEW_INVALID", f"it has more than {LARGEST_REVIEW_BYTES} bytes")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise invalid("ADMISSION_REVIEW_INVALID", "it is not JSON") from None
