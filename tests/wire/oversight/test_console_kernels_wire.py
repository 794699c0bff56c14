"""The list of kernels in the console over its real listener: what each has left, and the way to its page (OBS-5)."""

from __future__ import annotations

import html
import re

import pytest
import pytest_asyncio

from tests.support.kernels import UNIT, KernelClient
from tests.support.sidecar.oversight import reviewed_world
from tests.support.sidecar.people import ADMIN, VIEWER, people, who
from tests.support.sidecar.sidecar import token_of
from tests.support.valkey import Valkey

pytestmark = [pytest.mark.req("OBS-5"), pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    """Kernels of two callers: one that spent, leased and began a saga, one that is stopped, one of a session tree."""
    folder = tmp_path_factory.mktemp("kernels")
    with Valkey(tmp_path_factory.mktemp("valkey")) as store:  # one of its own: a test kills it
        async with reviewed_world(folder, people(), redis_url=store.url) as running:
            running.store = store
            await kernels(running)
            yield running


async def kernels(running) -> None:
    """Open them."""
    running.provider.answers("The deposit is 2,400 EUR.")
    client = running.sidecar.client
    team = KernelClient(client, "team", key="sk-of-the-team")
    await team.open()
    await team.execute("task", "one")
    for ask, body in (
        ("lease", {"resource": "usd", "wanted_micros": 5 * UNIT, "lifetime_ms": 600_000, "key": "slice"}),
        ("begin-saga", {"lifetime_ms": 600_000, "key": "trip"}),
    ):
        answer = await team.post(ask, **body)
        assert answer.status_code == 200, answer.text
    halted = KernelClient(client, "halted", key="sk-of-another")
    await halted.open()
    assert (await halted.post("emergency", action="leave", stop=True, key="out")).status_code == 200
    begun = await running.sidecar.chat()
    running.root = begun.headers["crp-context-session-id"]
    await KernelClient(client, "shared", token=token_of(begun)).open()


async def page_of(world, path: str, name: str = VIEWER) -> str:
    await world.oversight.browse(**who(name))
    page = await world.oversight.client.get(path)
    assert page.status_code == 200, page.text
    return page.text


def row_of(page: str, name: str) -> str:
    """The part of the table about one kernel, without its marks."""
    part = next(one for one in page.split("<tbody>") if f">{name}</a>" in one)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", part)).split())


async def test_every_kernel_is_listed_with_what_it_has_left(world):
    """What is left, spent and on lease adds up to the limit; open sagas are counted, and who is stopped is told."""
    page = await page_of(world, "/kernels")
    team, halted = row_of(page, "team"), row_of(page, "halted")

    assert "usd 85 % 85.00 of 100.00 10.00 5.00 1 0" in team
    assert "permits actions" in team
    assert "stopped" in halted
    assert re.findall(r'class="item"[^>]*>(\w+)</a>', page) == ["shared", "halted", "team"]
    assert "data-live" in page


async def test_a_row_leads_to_the_kernels_page(world):
    """By its link alone, also for a kernel of a session tree, which leads on to the tree; and from there back to the list."""
    page = await page_of(world, "/kernels", ADMIN)
    links = {name: html.unescape(path) for path, name in re.findall(r'class="item" href="([^"]+)">(\w+)</a>', page)}
    own = await page_of(world, links["team"], ADMIN)
    shared = await page_of(world, links["shared"], ADMIN)

    assert "<h1>Kernel team</h1>" in own
    assert 'action="/kernels/stop"' in own
    assert '<a href="/kernels">All kernels</a>' in own
    assert f'href="/sessions/{world.root}?root={world.root}"' in shared
    assert f'href="/sessions/{world.root}?root={world.root}"' in page


@pytest.mark.parametrize(("query", "listed"), [("name=team", ["team"]), ("name=nobody", []), ("scope=nobody", [])])
async def test_the_list_is_narrowed(world, query, listed):
    """By name and by caller; an empty list says so."""
    page = await page_of(world, f"/kernels?{query}")

    assert re.findall(r'class="item"[^>]*>(\w+)</a>', page) == listed
    assert ("No kernel is like that" in page) is (not listed)


async def test_a_caller_finds_all_of_its_own(world):
    """The link on a kernel's page lists the kernels of its caller, and no other's."""
    page = await page_of(world, "/kernels?name=team")
    own = await page_of(world, html.unescape(re.search(r'class="item" href="([^"]+)"', page)[1]))
    path = re.search(r'href="(/kernels\?scope=[^"]+)">kernels of', own)[1]

    assert re.findall(r'class="item"[^>]*>(\w+)</a>', await page_of(world, html.unescape(path))) == ["team"]


async def test_a_kernel_that_cannot_be_read_hides_no_other(world):
    """A store that is down is told in each row; a store that lost the kernels gets them back from the chain."""
    world.store.kill()
    try:
        down = await page_of(world, "/kernels")
    finally:
        world.store.start()
    world.store.flush()
    back = await page_of(world, "/kernels")

    assert down.count("it cannot be read now:") == 3
    assert "85.00 of 100.00" in row_of(back, "team")


@pytest.mark.parametrize(
    "query", ["before=yesterday", "before=2026-01-02T03:04:05Z crp_sess_x", "names=x", "scope=" + "x" * 300]
)
async def test_a_bad_query_is_told_in_words(world, query):
    """Each with its reason and a way back; nothing is listed."""
    await world.oversight.browse(**who(VIEWER))
    answer = await world.oversight.client.get(f"/kernels?{query}")

    assert answer.status_code == 400
    assert "INVALID_" in answer.text or "UNKNOWN_PARAMETER" in answer.text
    assert 'class="item"' not in answer.text
