"""Open pages: each is told of a change, many in turn, and what they read anew is rendered once for all who may see the same."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from starlette.requests import Request

from interlock.domain.errors import Refused, unauthenticated
from interlock.domain.policy.roles import Role, Sight
from interlock.oversight import changes
from interlock.oversight.changes import Changes
from interlock.oversight.live.parts import shared
from interlock.oversight.site import html

pytestmark = pytest.mark.req("OBS-5")

VIEWS = {
    "ann": SimpleNamespace(role=Role.VIEWER, sight=Sight(), csrf="token-of-ann"),
    "ben": SimpleNamespace(role=Role.VIEWER, sight=Sight(), csrf="token-of-ben"),
    "kim": SimpleNamespace(role=Role.ADMIN, sight=Sight(), csrf="token-of-kim"),
    "lea": SimpleNamespace(role=Role.VIEWER, sight=Sight(frozenset({"key"})), csrf="token-of-lea"),
}


class Site:
    """The parts of a site that this needs."""

    cookie = "view"

    def __init__(self) -> None:
        self.changes = SimpleNamespace(seen=7)
        self.console = SimpleNamespace(viewer=self._viewer)

    async def _viewer(self, name: str):
        if name not in VIEWS:
            raise unauthenticated("SIGN_IN_REQUIRED", "nobody")
        return VIEWS[name]


class Page:
    """A page that counts how often it is rendered."""

    def __init__(self, form: bool = False) -> None:
        self.rendered, self._form = 0, form
        self.read = shared(self._render)

    async def _render(self, _site, request):
        self.rendered += 1
        token = VIEWS[request.cookies["view"]].csrf
        inside = f"{self.rendered}{token if self._form else ''}"
        return html(f'<html>{token}<main><p>x</p><div id="fresh" data-live>{inside}</div></main></html>')


def asked(who: str, query: str = "", part: str = "fresh") -> Request:
    lines = [(b"cookie", f"view={who}".encode()), *([(b"x-interlock-part", part.encode())] if part else [])]
    return Request(
        {"type": "http", "method": "GET", "path": "/sessions", "query_string": query.encode(), "headers": lines}
    )


async def text(site, page, *given) -> str:
    return bytes((await page.read(site, asked(*given))).body).decode()


async def test_what_changes_is_rendered_once_for_all_of_one_role_and_sight():
    """Another role, sight or question has its own; after a change all do."""
    site, page = Site(), Page()
    same = [await text(site, page, who) for who in ("ann", "ben", "ann")]
    own = [await text(site, page, "kim"), await text(site, page, "lea"), await text(site, page, "ben", "risk=high")]
    site.changes.seen = 8
    later = await text(site, page, "ben")

    assert same == ['<div id="fresh" data-live>1</div>'] * 3
    assert len({*own, same[0], later}) == 5
    assert page.rendered == 5


async def test_a_whole_page_and_a_form_are_of_one_person():
    """They hold a token of theirs."""
    site, page, form = Site(), Page(), Page(form=True)
    wholes = [await text(site, page, who, "", "") for who in ("ann", "ben")]
    forms = [await text(site, form, who) for who in ("ann", "ben")]

    assert ["token-of-ann" in wholes[0], "token-of-ben" in wholes[1]] == [True, True]
    assert ["token-of-ann" in forms[0], "token-of-ben" in forms[1]] == [True, True]


async def test_nobody_sees_what_was_rendered_for_another():
    """Who is not signed in is refused, whatever is kept; and nothing is kept while nobody looks for changes."""
    site, page = Site(), Page()
    await text(site, page, "ann")
    with pytest.raises(Refused, match="SIGN_IN_REQUIRED"):
        await text(site, page, "nobody")
    site.changes.seen = None
    both = [await text(site, page, who) for who in ("ann", "ben")]

    assert both[0] != both[1]


async def told(page) -> bytes:
    """The next event of a page that is a change."""
    async for event in page:
        if event.startswith(b"event: changed"):
            return event
    return b""


async def test_every_page_is_told_of_a_change():
    """And the log is looked at for as long as one is open."""
    size = 1

    async def log_size() -> int:
        return size

    following = Changes(log_size, look_s=0.01)
    assert following.seen is None
    pages = [following.events() for _ in range(12)]
    first = await asyncio.gather(*map(told, pages))
    size = 2
    second = await asyncio.gather(*map(told, pages))
    seen = following.seen
    for page in pages:
        await page.aclose()

    assert first == [b"event: changed\ndata: 1\n\n"] * 12
    assert second == [b"event: changed\ndata: 2\n\n"] * 12
    assert (seen, following.seen) == (2, None)


async def test_pages_are_told_in_turn_and_end_while_they_wait(monkeypatch):
    """The first at once, the others later; a process that ends does not wait for their turns."""
    monkeypatch.setattr(changes, "TURN_S", 600.0)

    async def log_size() -> int:
        return 1

    following = Changes(log_size, look_s=0.01)
    waiting = [asyncio.create_task(told(following.events())) for _ in range(5)]
    done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    await following.close()
    ends = await asyncio.gather(*pending)

    assert [one.result() for one in done] == [b"event: changed\ndata: 1\n\n"]
    assert ends == [b""] * 4
