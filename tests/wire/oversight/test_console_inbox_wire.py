"""The inbox of reviews over its real listener: what is asked and how it is answered, to whom, and that each look is on record (OVR-5)."""

from __future__ import annotations

import json
import re

import pytest
import pytest_asyncio

from interlock.runtime import failpoints
from tests.support.policy import agents
from tests.support.sidecar.oversight import HOLDS, decided, reviewed_world, window_of
from tests.support.sidecar.people import ADMIN, LIMITED, VIEWER, people, who

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("OVR-5", "OBS-5")]

SAID = "HIGH risk: transfer <b>9</b> \u202enow\u202c\n" + "and so on " * 60 + "THE-END"
QUESTION = "May I pay it?\x1b[31m"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    """Two held answers, one of which is rejected."""
    async with reviewed_world(tmp_path_factory.mktemp("inbox"), people()) as running:
        running.provider.answers(SAID)
        running.held = await running.sidecar.chat(QUESTION, headers=HOLDS)
        assert running.held.status_code == 451, running.held.text
        running.window = window_of(running.held)
        gone = await running.sidecar.chat(QUESTION, headers=HOLDS)
        await decided(running.sidecar, gone, action="reject")
        running.gone = window_of(gone)
        yield running


async def looks(world) -> list[str]:
    """Who looked at the answer that waits, by its session's chain."""
    events = await world.sidecar.events(world.held.headers["crp-context-session-id"])
    return [json.loads(one.data_json)["viewer"] for one in events if one.event_type == "CONTENT_VIEWED"]


async def inbox(world, name: str, path: str = "/") -> str:
    await world.oversight.browse(**who(name))
    page = await world.oversight.client.get(path)
    assert page.status_code == 200, page.text
    return page.text


async def test_an_item_has_its_question_agent_beginning_and_time(world):
    """What was asked and how the answer begins, harmless and cut; whose it is; how long is left; and the look is on record."""
    before = await looks(world)
    page = await inbox(world, agents.REVIEWER)

    assert 'May I pay it?<mark class="hidden" title="without a name">U+001B</mark>' in page
    assert "transfer &lt;b&gt;9&lt;/b&gt;" in page
    assert '<mark class="hidden" title="right-to-left override">U+202E</mark>' in page
    assert "THE-END" not in page
    assert "…</bdi>" in page
    assert (
        f'<a class="item" href="/held/{world.window}">agent …{world.held.headers["crp-context-session-id"][-6:]}</a>'
        in page
    )
    assert "<strong>23 h left</strong>" in page
    assert await looks(world) == [*before, agents.REVIEWER]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (VIEWER, "What was asked and answered is for reviewers and admins."),
        (LIMITED, "Your role does not cover the sessions"),
    ],
)
async def test_who_may_not_see_content_sees_that_it_waits(world, name, words):
    """The item with its risk and time, in words why no more; nothing of the text, and no look."""
    before = await looks(world)
    page = await inbox(world, name)

    assert words in page
    assert "23 h left" in page
    assert "transfer" not in page
    assert await looks(world) == before


async def test_what_cannot_be_put_on_record_is_not_shown(world):
    """While the log takes no event the item is there with the reason, and without a word of the answer."""
    before = await looks(world)
    failpoints.configure("audit.before_commit:error")
    try:
        page = await inbox(world, agents.REVIEWER)
    finally:
        failpoints.configure("")

    assert "It cannot be shown now: " in page
    assert "transfer" not in page
    assert await looks(world) == before


async def test_what_was_decided_is_listed_without_its_text(world):
    """Nobody looks at it: there is nothing to look at."""
    page = await inbox(world, agents.REVIEWER, "/?status=rejected")

    assert "Its text is deleted" in page
    assert world.gone in page
    assert " left</strong>" not in page


@pytest.mark.parametrize("name", [VIEWER, agents.REVIEWER, LIMITED, ADMIN])
async def test_a_menu_leads_nowhere_that_is_shut(world, name):
    """Every entry of a role's menu opens; what the role may not open is no entry."""
    page = await inbox(world, name, "/sessions")
    menu = re.findall(r'href="([^"]+)"', page.split('aria-label="Console">')[1].split("</nav>")[0])
    statuses = {path: (await world.oversight.client.get(path)).status_code for path in menu}

    assert set(statuses.values()) == {200}
    assert ("/stuck" in menu, "/settings" in menu) == (name != VIEWER, name == ADMIN)
