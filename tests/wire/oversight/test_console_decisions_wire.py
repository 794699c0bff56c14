"""Decision runs in the console over its real listener: found by looking, read by role, every look on record (DEC-6, OBS-5)."""

from __future__ import annotations

import json
import re
import time

import grpc
import pytest
import pytest_asyncio

from interlock.api.audit.v1 import audit_pb2
from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from interlock.runtime.keys.api_keys import ApiKeys
from tests.support import decisions
from tests.support.audit.audit import Attacker
from tests.support.decision_service import DecisionClient, emits, proposes
from tests.support.decisions import ANALYST, PROTOCOL
from tests.support.policy import agents
from tests.support.sidecar.oversight import reviewed_world
from tests.support.sidecar.people import LIMITED, VIEWER, people, who

pytestmark = [pytest.mark.req("DEC-6", "OBS-5"), pytest.mark.asyncio(loop_scope="module")]

HOSTILE = "<script>alert(1)</script>\u202e QUOKKA"
SNAPSHOT = json.dumps({**json.loads(decisions.SNAPSHOT), "note": "WOMBAT"})
REPLAYS = "All 2 cycles of this page replay to the byte."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory, valkey):
    """An experiment of two cycles of one owner; one of a cycle of another, whose key the limited reviewer sees; one without any."""
    bob = ApiKeys(None).caller(["Bearer bob"]).scope
    folder, seen = tmp_path_factory.mktemp("decisions"), people(sees={"keys": [bob]})
    async with reviewed_world(folder, seen, redis_url=valkey.url, decides=True) as running:
        async with grpc.aio.insecure_channel(running.sidecar.grpc) as channel:
            stub = DecisionServiceStub(channel)
            running.search = DecisionClient(stub)
            running.id = await decided(running.search, 2)
            running.bobs = await decided(DecisionClient(stub, "bob", "bobs"), 1)
            await DecisionClient(stub, "bob", "empty").open()
            yield running


async def decided(search: DecisionClient, cycles: int) -> str:
    """Run cycles of two agents; return the experiment's id."""
    experiment_id = (await search.open()).experiment_id
    await search.register(ANALYST, PROTOCOL)
    plateau = emits("metric_plateau", "analyst", {"metric": HOSTILE, "slope": 0.0}, time.time())
    async with (
        search.working("analyst", lambda _: {"signals": [plateau]}),
        search.working("protocol", lambda _: {"proposals": [proposes(rationale=HOSTILE)]}),
    ):
        for cycle in range(1, cycles + 1):
            await search.run(cycle, SNAPSHOT)
    return experiment_id


async def page_of(world, path: str, name: str = agents.REVIEWER) -> str:
    await world.oversight.browse(**who(name))
    page = await world.oversight.client.get(path)
    assert page.status_code == 200, page.text
    return page.text


async def looks(world) -> list[str]:
    """Who looked at the experiment's content, as its chain says."""
    events = await world.sidecar.events(world.id)
    return [json.loads(one.data_json)["viewer"] for one in events if one.event_type == "CONTENT_VIEWED"]


async def test_a_person_gets_from_the_list_to_a_cycle(world):
    """By links alone: an experiment with its last decision, its run on a time line, and what was proposed in a cycle."""
    listed = await page_of(world, "/decisions")
    run = await page_of(world, f"/decisions/{world.id}")
    cycle = await page_of(world, f"/decisions/{world.id}/1")

    assert re.findall(r'class="item"[^>]*>(\w+)</a>', listed) == ["empty", "bobs", "search"]
    assert re.search(rf'href="/decisions/{world.id}">search</a>.*?class="number">2</td>', listed, re.DOTALL)
    assert REPLAYS in run
    assert run.count('<circle class="mark signal"') == 2
    assert [one in run for one in ('class="mark decided"', 'class="mark accepted"', 'class="mark proposed"')] == [
        True
    ] * 3
    assert f'href="/decisions/{world.id}/1">Cycle 1</a>' in run
    assert "<strong>SWITCH_HPO</strong> by <bdi>protocol</bdi>" in cycle
    assert "the same bytes" in cycle
    assert "COOLDOWN" in await page_of(world, f"/decisions/{world.id}/2")


async def test_what_agents_wrote_is_shown_harmless(world):
    """A rationale with markup and a mark that turns the text is text, with the mark named; the snapshot is quoted."""
    page = await page_of(world, f"/decisions/{world.id}/1")

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "U+202E" in page
    assert "WOMBAT" in page


@pytest.mark.parametrize(
    ("name", "shown", "why"),
    [(VIEWER, False, "A viewer sees figures."), (LIMITED, False, "does not cover"), (agents.REVIEWER, True, "")],
)
async def test_what_was_said_is_for_who_may_see_content(world, name, shown, why):
    """The others see outcomes, scores and who proposed, and why there is no more."""
    page = await page_of(world, f"/decisions/{world.id}/1", name)

    assert ("QUOKKA" in page) is shown
    assert ("WOMBAT" in page) is shown
    assert why in page
    assert "SWITCH_HPO" in page
    assert "confidence 0.90" in page


async def test_who_is_limited_to_the_owners_key_sees_it(world):
    """The experiment's first record says whose it is, and a sight that names that key covers it."""
    assert "QUOKKA" in await page_of(world, f"/decisions/{world.bobs}/1", LIMITED)


async def test_a_look_at_what_was_said_is_on_record_and_a_look_at_figures_is_none(world):
    """The run's page and a viewer's cycle write nothing; a reviewer's writes the name, and the chain goes on and verifies."""
    before = await looks(world)
    await page_of(world, f"/decisions/{world.id}")
    await page_of(world, f"/decisions/{world.id}/1", VIEWER)
    unchanged = await looks(world)
    await page_of(world, f"/decisions/{world.id}/1")
    after = await looks(world)
    verified = await world.sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=world.id))
    await world.search.reinstate("protocol", "looked at")

    assert unchanged == before
    assert after == [*before, agents.REVIEWER]
    assert list(verified.faults) == []
    assert REPLAYS in await page_of(world, f"/decisions/{world.id}")


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/decisions/crp_sess_" + "0" * 32, 404, "DECISION_EXPERIMENT_NOT_FOUND"),
        ("/decisions/nonsense", 400, "INVALID_ID"), ("/decisions/{}/3", 404, "DECISION_CYCLE_NOT_FOUND"),
        ("/decisions/{}/0", 400, "INVALID_PARAMETER"), ("/decisions/{}/1e3", 400, "INVALID_PARAMETER"),
        ("/decisions/{}?before=x", 400, "INVALID_PARAMETER"), ("/decisions?before=x", 400, "INVALID_"),
        ("/decisions/{}/1?x=1", 400, "UNKNOWN_PARAMETER"),
    ],
)  # fmt: skip
async def test_what_is_not_there_is_told_in_words(world, path, status, reason):
    """Each with its reason; a session's chain is no experiment."""
    await world.oversight.browse(**who(agents.REVIEWER))
    answer = await world.oversight.client.get(path.format(world.id))

    assert (answer.status_code, reason in answer.text) == (status, True)


async def test_an_experiment_without_cycles_has_a_page(world):
    """Found by its link in the list; it says that nothing was decided."""
    listed = await page_of(world, "/decisions")
    path = re.search(r'href="(/decisions/\w+)">empty</a>', listed)[1]

    assert "Nothing was decided here." in await page_of(world, path)


async def test_a_run_whose_chain_was_changed_is_not_shown(tmp_path, valkey):
    """Who wrote into the database finds no page that shows it, nor one of an experiment that decided nothing: the chains do not verify."""
    more = {"redis_url": valkey.url, "decides": True}
    async with reviewed_world(tmp_path, people(), **more) as world:
        async with grpc.aio.insecure_channel(world.sidecar.grpc) as channel:
            stub = DecisionServiceStub(channel)
            experiment_id = await decided(DecisionClient(stub, "eve", "changed"), 1)
            nothing = (await DecisionClient(stub, "eve", "nothing").open()).experiment_id
        database = world.sidecar.settings.state_dir / "audit.db"
    with Attacker(database) as attack:
        attack(
            "UPDATE events SET data_json = replace(data_json, 'SWITCH_HPO', 'STOP_IT') WHERE event_type LIKE 'DECISION%'"
        )
    async with reviewed_world(tmp_path, people(), **more) as world:
        await world.oversight.browse(**who(agents.REVIEWER))
        pages = [
            await world.oversight.client.get(f"/decisions/{path}", headers={"accept": "text/html"})
            for path in (experiment_id, f"{experiment_id}/1", nothing)
        ]

    assert [one.status_code for one in pages] == [409, 409, 409]
    assert all("CHAIN_BROKEN" in one.text and "STOP_IT" not in one.text for one in pages)
