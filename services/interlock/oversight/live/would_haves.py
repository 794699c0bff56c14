"""What would have been done to answers that were only watched (`observe`): a list over all sessions, with counts by reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from interlock.api.audit.v1 import audit_pb2
from interlock.domain import ids
from interlock.domain.errors import invalid
from interlock.oversight.forms import query_of
from interlock.oversight.markup import render, said
from interlock.oversight.pages import Word, frame_of
from interlock.oversight.site import Endpoint, Site, html, view_of
from interlock.oversight.views import View
from interlock.runtime.clock import iso8601

PAGE = 50
SPANS: Mapping[str, int] = {"1h": 3_600, "24h": 86_400, "7d": 604_800, "all": 0}
"""Span that is shown → its seconds; 0: all that is kept."""
MEANINGS: Mapping[str, str] = {
    "halt": "would have been halted (451)",
    "hold": "would have waited for a reviewer (451)",
    "reject": "would have been refused for its quality (503)",
    "rewrite": "would have been asked for again",
}
_KINDS = {"halt": "halted", "hold": "held", "reject": "rejected"}
_SHORT = 6


def would_page(view: View, found: audit_pb2.ListWouldHavesResponse, span: str, reason: str) -> str:
    """Return the page: counts of the span, each leading to its own, and the list, the latest first."""
    last = found.items[-1] if found.more else None
    following = (
        {"last": span, "reason": reason, "before": f"{last.at} {last.session_id} {last.sequence}"} if last else None
    )
    return render(
        "would.html", title="Would have", **frame_of(view), here="would", span=span, spans=tuple(SPANS), reason=said(reason),
        counts=[_count(one, span) for one in found.counts], counted_since=found.counted_since,
        total=sum(one.count for one in found.counts), items=[_item(one) for one in found.items],
        following=f"?{urlencode(following)}" if following else "",
    )  # fmt: skip


def _count(one: audit_pb2.WouldHaveCount, span: str) -> Mapping[str, Any]:
    return {
        "count": one.count, "reason": said(one.reason), "action": _action(one.action),
        "meaning": MEANINGS.get(one.action, ""), "path": f"?{urlencode({'last': span, 'reason': one.reason})}",
    }  # fmt: skip


def _item(one: audit_pb2.ListedWouldHave) -> Mapping[str, Any]:
    return {
        "at": one.at, "action": _action(one.action), "reason": said(one.reason), "directive": said(one.directive or "–"),
        "risk": Word(one.risk_level or "–", one.risk_level or "none"), "window": one.window_id, "session": one.session_id,
        "session_name": f"…{one.session_id[-_SHORT:]}", "window_name": f"…{one.window_id[-_SHORT:]}" if one.window_id else "",
    }  # fmt: skip


def _action(name: str) -> Word:
    return Word(name, _KINDS.get(name, "none"))


async def _would_haves(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    asked = query_of(request, "last", "reason", "before")
    span, reason = asked.get("last") or "24h", asked.get("reason", "")
    if span not in SPANS:
        raise invalid("INVALID_PARAMETER", f"last is one of {', '.join(SPANS)}", param="last")
    since = iso8601(site.console.views.now_us() - SPANS[span] * 1_000_000) if SPANS[span] else ""
    wanted = audit_pb2.ListWouldHavesRequest(
        limit=PAGE, since=since, reason=reason, before=_before(asked.get("before", ""))
    )
    found = await site.console.peers.audit.list_would_haves(wanted)
    return html(would_page(view, found, span, reason))


ROUTES: dict[str, Endpoint] = {"/would": _would_haves}
"""Path → endpoint, all by GET."""


def _before(text: str) -> audit_pb2.ListedWouldHave | None:
    if not text:
        return None
    at, _, rest = text.partition(" ")
    session_id, _, sequence = rest.partition(" ")
    if not (sequence.isascii() and sequence.isdecimal() and len(sequence) < 16):
        raise invalid("INVALID_PARAMETER", "before is the place that the link of a page names", param="before")
    return audit_pb2.ListedWouldHave(at=at, session_id=ids.check("crp_sess_", session_id), sequence=int(sequence))
