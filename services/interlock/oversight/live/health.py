"""The page of health: every part with its state in words, and what to do. A part that is dead holds up no page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from interlock.oversight.forms import query_of
from interlock.oversight.health.words import STATES, PartHealth, parts_of
from interlock.oversight.markup import render, said
from interlock.oversight.pages import Word, frame_of
from interlock.oversight.site import Endpoint, Site, html, view_of
from interlock.oversight.views import View
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus

_KINDS = {
    ProbeStatus.OK: "valid", ProbeStatus.WARN: "pending", ProbeStatus.FAIL: "broken", ProbeStatus.SKIP: "none",
}  # fmt: skip


def health_page(view: View, found: Sequence[ProbeFinding] | None) -> str:
    """Return the page. Addresses and paths are for reviewers and admins; a viewer sees the states."""
    parts = parts_of(found or ())
    return render(
        "health.html", title="Health", **frame_of(view), here="health", is_known=found is not None,
        parts=[_part(one, shows_places=view.role.sees_content) for one in parts], summary=_summary(parts),
    )  # fmt: skip


def _summary(parts: Sequence[PartHealth]) -> str:
    broken = [one.part.name for one in parts if one.status is ProbeStatus.FAIL]
    odd = [one.part.name for one in parts if one.status is ProbeStatus.WARN]
    told = [f"Does not work: {', '.join(broken)}."] if broken else []
    told += [f"To be looked at: {', '.join(odd)}."] if odd else []
    return " ".join(told) or "Every part that is in use works."


def _part(one: PartHealth, *, shows_places: bool) -> Mapping[str, Any]:
    return {
        "name": one.part.name, "state": Word(STATES[one.status], _KINDS[one.status]),
        "without": one.part.without if one.status in {ProbeStatus.FAIL, ProbeStatus.WARN} else "",
        "findings": [
            {"detail": said(f"{finding.name}: {finding.detail}"),
             "hint": said(finding.hint) if finding.status is not ProbeStatus.OK else ""}
            for finding in one.findings
        ] if shows_places else [],
    }  # fmt: skip


async def _health(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    query_of(request)
    return html(health_page(view, await site.health.now()))


ROUTES: dict[str, Endpoint] = {"/health": _health}
"""Path → endpoint, all by GET."""
