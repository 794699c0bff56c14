"""Stuck compensations over HTTP: their pages, their JSON, and the decision."""

from __future__ import annotations

from google.protobuf import json_format
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from interlock.api.audit.v1 import audit_pb2
from interlock.domain.errors import invalid
from interlock.oversight.forms import json_of, query_of, signed_view
from interlock.oversight.site import Endpoint, Site, html, view_of
from interlock.oversight.stuck import pages

PAGE = 50


async def _queue(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    page = await site.stuck.page(view, _after(query_of(request, "after").get("after", "")), PAGE)
    return html(pages.queue_page(view, page))


async def _stuck(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    shown = await site.stuck.shown(view, request.path_params["kernel_id"], _step(request))
    return html(pages.stuck_page(view, shown))


async def _api_queue(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    page = await site.stuck.page(view, _after(query_of(request, "after").get("after", "")), PAGE)
    items = [json_format.MessageToDict(one, preserving_proto_field_name=True) for one in page.items]
    return JSONResponse({"items": items, "more": page.more})


async def _api_decide(site: Site, request: Request) -> Response:
    view = await signed_view(site, request, request.headers.get("x-csrf-token", ""))
    given = await json_of(request, "step", "token", "reason")
    kernel_id = request.path_params["kernel_id"]
    verdict = await site.stuck.decide(view, kernel_id, given["step"], given["token"], given["reason"])
    failed = [one.words for one in verdict.checks if not one.passed and not one.monitoring]
    status = "DECIDED" if verdict.approved else f"REJECTED by the kernel: {'; '.join(failed)}"
    return JSONResponse({"status": status, "approved": verdict.approved, "sequence": verdict.sequence})


ROUTES: dict[str, Endpoint] = {"/stuck": _queue, "/stuck/{kernel_id}": _stuck, "/api/stuck": _api_queue}
"""Path → endpoint, all by GET."""
POSTS: dict[str, Endpoint] = {"/api/stuck/{kernel_id}/decision": _api_decide}


def _step(request: Request) -> str:
    step = query_of(request, "step").get("step", "")
    if not step:
        raise invalid("INVALID_PARAMETER", "the query names the step", param="step")
    return step


def _after(text: str) -> audit_pb2.StuckCompensation | None:
    if not text:
        return None
    stuck_at, _, rest = text.partition(" ")
    kernel_id, _, execution = rest.partition(" ")
    return audit_pb2.StuckCompensation(stuck_at=stuck_at, kernel_id=kernel_id, execution=execution)
