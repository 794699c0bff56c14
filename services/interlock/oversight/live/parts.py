"""The part of a page that changes, rendered once for all who watch it: a page that was told of a change asks for no more (OBS-5).

A hundred open pages of one list would otherwise be rendered a hundred times, in the process that governs the calls.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from interlock.oversight.site import Endpoint, Site, html, view_of

HEADER, FRESH = "x-interlock-part", "fresh"
MOST_KEPT = 64
_BEGINS, _ENDS = b'<div id="fresh"', b"</main>"


def shared(endpoint: Endpoint) -> Endpoint:
    """Answer a request for the part that changes with what was rendered since the last change, for anyone of the same role and sight.

    For pages whose part shows no content and takes no form: a look at content is an event of its person, and a form has their token.
    """
    kept: dict[tuple[object, ...], bytes] = {}

    async def answer(site: Site, request: Request) -> Response:
        if request.headers.get(HEADER) != FRESH:
            return await endpoint(site, request)
        view = await view_of(site, request)
        if site.changes.seen is None:  # nobody looks for changes: what is kept may be old
            return html(_part(await endpoint(site, request)).decode())
        of = (site.changes.seen, view.role, view.sight, request.url.path, request.url.query)
        if of not in kept:
            part = _part(await endpoint(site, request))
            for old in [each for each in kept if each[0] != of[0]]:
                kept.pop(old, None)
            if len(kept) >= MOST_KEPT or view.csrf.encode() in part:
                return html(part.decode())
            kept[of] = part
        return html(kept[of].decode())

    return answer


def _part(page: Response) -> bytes:
    """Return the part of a page; the whole where it has none."""
    body = bytes(page.body)
    begins, ends = body.find(_BEGINS), body.rfind(_ENDS)
    return body[begins:ends] if 0 <= begins < ends else body
