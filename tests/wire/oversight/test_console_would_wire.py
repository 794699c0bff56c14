"""What would have been done, over the real listener: a mesh that watches, its list, its counts, and bad input (OBS-5)."""

from __future__ import annotations

import re

import pytest
import pytest_asyncio

from interlock.oversight.live import would_haves
from tests.support.sidecar.oversight import reviewed_world

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("OBS-5")]

OBSERVE = {
    "profile": "observe",
    "unaware_callers": "observe",
    "review_required": True,
    "default_policy": "halt-on CRITICAL",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    """Two answers that would have been halted, one that would have been held, one that passes."""
    async with reviewed_world(tmp_path_factory.mktemp("would"), **OBSERVE) as running:
        running.windows = {}
        for risk in ("LOW", "HIGH", "CRITICAL", "CRITICAL"):
            running.provider.answers(f"An answer of {risk} risk.")
            answer = await running.sidecar.chat()
            assert answer.status_code == 200, answer.text
            would = answer.headers.get("crp-safety-would", "")
            running.windows[answer.headers["crp-provenance-report-uri"].rpartition("/")[2]] = would
        await running.oversight.look()
        yield running


async def shown(world, query: str = "") -> str:
    page = await world.oversight.client.get(f"/would{query}")
    assert page.status_code == 200, page.text
    return page.text


def rows(page: str) -> list[str]:
    """The windows of the list, from the top."""
    return re.findall(r'<a class="item" href="/windows/(crp_win_[0-9a-f]+)"', page)


async def test_each_would_have_is_listed_and_leads_to_its_window(world):
    """The latest first, with action, reason and risk as the response's header said; an answer that passes is none."""
    page = await shown(world)
    wanted = [window for window, would in reversed(world.windows.items()) if would]

    assert len(wanted) == 3
    assert rows(page) == wanted
    for would in filter(None, world.windows.values()):
        action, _, reason = would.partition("; reason=")
        assert f'">{action}</span>' in page
        assert reason in page
    assert (await world.oversight.client.get(f"/windows/{wanted[0]}")).status_code == 200


async def test_the_counts_lead_to_their_reason(world):
    """How often each, the most frequent first; a reason narrows the list and not the counts."""
    page = await shown(world)
    counts = re.findall(
        r'<a href="/would(\?last=24h&amp;reason=[A-Z_]+)">([A-Z_]+)</a></th><td class="number">(\d+)<', page
    )
    narrowed = await shown(world, counts[1][0].replace("&amp;", "&"))

    assert [count for _, _, count in counts] == ["2", "1"]
    assert len(rows(narrowed)) == 1
    assert "3 in all" in page
    assert "3 in all" in narrowed


async def test_it_is_paged(world, monkeypatch):
    """The link of a page leads to the rest, and the last page has none."""
    monkeypatch.setattr(would_haves, "PAGE", 2)
    first = await shown(world)
    link = re.search(r'href="/would(\?[^"]*before=[^"]*)"', first)[1].replace("&amp;", "&")
    second = await shown(world, link)

    assert rows(first) + rows(second) == [window for window, would in reversed(world.windows.items()) if would]
    assert "before=" not in second


@pytest.mark.parametrize(
    ("query", "status"),
    [("?last=forever", 400), ("?reason=%3Cscript%3E", 400), ("?before=yesterday", 400), ("?before=x+crp_sess_1+1", 400),
     ("?nothing=1", 400), ("?reason=NOTHING_OF_THAT_NAME", 200), ("?last=all", 200)],
)  # fmt: skip
async def test_bad_input_is_told(world, query, status):
    """By its parameter; a reason that nothing has is an empty list in words."""
    page = await world.oversight.client.get(f"/would{query}")

    assert page.status_code == status
    assert "INTERNAL" not in page.text
    assert "<script>" not in page.text
    assert ("Nothing would have been done" in page.text) == ("NOTHING_OF" in query)
