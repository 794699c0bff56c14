"""Decision runs over HTTP: the list, a run, a cycle."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response

from interlock.api.audit.v1 import audit_pb2
from interlock.domain import ids
from interlock.domain.errors import invalid
from interlock.oversight.forms import query_of
from interlock.oversight.live import decisions
from interlock.oversight.site import Endpoint, Site, html, view_of

PAGE = 50
_NUMBER = re.compile(r"[1-9]\d{0,14}", re.ASCII)


async def _experiments(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    before = _before(query_of(request, "before").get("before", ""))
    return html(decisions.experiments_page(view, await site.experiments.page(before, PAGE)))


async def _run(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    before = query_of(request, "before").get("before", "")
    found = await site.experiments.run(request.path_params["experiment_id"], _cycle(before) if before else 0)
    return html(decisions.run_page(view, found))


async def _one(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    query_of(request)
    number = _cycle(request.path_params["cycle"])
    shown = await site.experiments.cycle(view, request.path_params["experiment_id"], number)
    return html(decisions.cycle_page(view, shown))


ROUTES: dict[str, Endpoint] = {
    "/decisions": _experiments,
    "/decisions/{experiment_id}": _run,
    "/decisions/{experiment_id}/{cycle}": _one,
}
"""Path → endpoint, all by GET."""


def _cycle(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise invalid("INVALID_PARAMETER", "a cycle has a number from 1", param="cycle")
    return int(text)


def _before(text: str) -> audit_pb2.ListedExperiment | None:
    if not text:
        return None
    opened_at, _, experiment_id = text.partition(" ")
    return audit_pb2.ListedExperiment(opened_at=opened_at, experiment_id=ids.check("crp_sess_", experiment_id))
