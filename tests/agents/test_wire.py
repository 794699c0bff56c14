"""The suite itself: its provider answers by what is asked, and its tap sees every byte that was changed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.agents.catalogue import AGENTS, agent
from tests.agents.provider import Script, completion
from tests.agents.scenario import Scenario, load, names
from tests.agents.suite import Suite
from tests.agents.tap import Served, Tap

pytestmark = [pytest.mark.req("ATT-11"), pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def travel() -> Scenario:
    return load("travel")


@pytest.fixture
def script(travel) -> Script:
    return Script([travel])


@pytest.fixture
def direct(script) -> Iterator[Suite]:
    """The agents in front of the provider itself, with nothing in between but the tap."""
    with Served(script.app()) as provider:
        tap = Tap(provider.url, script)
        with Served(tap.app()) as served:
            yield Suite(script, tap, served.url, provider.url)


def asked(scenario: Scenario, *said: dict) -> dict:
    return {"model": "m", "messages": [{"role": "system", "content": f"Be nice. {scenario.system}"}, *said]}


def test_the_order_of_requests_does_not_matter(script, travel):
    """A framework may ask twice, or about an earlier turn: the answer is that of the words."""
    later, first = travel.turns[2], travel.turns[0]
    body = asked(travel, {"role": "user", "content": f"Task: {later.user}"})
    answers = [script.answer("k", body), script.answer("k", body)]
    answers.append(
        script.answer("k", asked(travel, {"role": "user", "content": [{"type": "text", "text": first.user}]}))
    )

    assert [one["content"] for one in answers] == [later.says, later.says, first.says]


def test_a_tool_result_leads_to_the_next_step(script, travel):
    """Before the result comes the call, after it the answer."""
    turn = travel.turns[1]
    user = {"role": "user", "content": turn.user}
    call = script.answer("k", asked(travel, user))
    result = {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": "{}"}
    answer = script.answer("k", asked(travel, user, call, result))

    assert call["tool_calls"][0]["function"]["name"] == "search_trains"
    assert answer["content"] == turn.says


def test_a_fault_is_planted_for_its_key_alone(script, travel):
    """The same question of another caller is answered well."""
    fault = travel.faults[0]
    script.planted["bad"] = fault
    body = asked(travel, {"role": "user", "content": travel.turns[fault.turn - 1].user})

    assert script.answer("bad", body)["content"] == fault.says
    assert script.answer("good", body)["content"] == travel.turns[fault.turn - 1].says


def test_what_no_scenario_knows_is_not_made_up(script):
    """An unknown request is a mistake of the suite, not an answer."""
    assert script.answer("k", {"messages": [{"role": "user", "content": "Hi there!"}]}) is None


@pytest.mark.parametrize("name", ["openai-python", "openai-python-stream"])
def test_an_agent_that_nobody_guards_meets_nothing(direct, travel, name):
    """Every answer passes the tap byte for byte, whole and streamed, with tools and a structured answer, one call each."""
    run = direct.run(agent(name), travel)

    assert [(stop.turn, stop.what) for stop in run.stops] == []
    assert [row.get("text") for row in run.told if row["turn"] != 11] == [
        t.says for t in travel.turns if t.number != 11
    ]
    assert json.loads(run.told[10]["text"]) == json.loads(travel.turns[10].says)
    assert run.provider_calls == run.calls == 15
    assert direct.script.unknown == []


def test_one_changed_byte_is_a_rewritten_answer(script, travel):
    """Something between provider and agent that adds a full stop is seen, at every turn that it touched."""

    async def meddle(request: Request) -> JSONResponse:
        body = await request.json()
        key = request.headers["authorization"].removeprefix("Bearer ")
        message = dict(script.answer(key, body))
        script.given[key].append(message)
        return JSONResponse(
            completion({**message, "content": f"{message['content']}."} if message["content"] else message)
        )

    with Served(Starlette(routes=[Route("/v1/chat/completions", meddle, methods=["POST"])])) as meddler:
        tap = Tap(meddler.url, script)
        with Served(tap.app()) as served:
            run = Suite(script, tap, served.url, meddler.url).run(agent("openai-python"), travel)

    assert {stop.what for stop in run.stops} == {"rewritten"}
    assert {stop.turn for stop in run.stops} == {turn.number for turn in travel.turns}


def test_a_planted_conversation_ends_at_its_turn(direct, travel):
    """Without a guard the fault is delivered, and the run says that it was missed."""
    run = direct.run(agent("openai-python"), travel, travel.faults[0])

    assert run.turns == travel.faults[0].turn
    assert not run.stopped_at_fault()


def test_the_tap_passes_headers_and_keeps_no_cookie(script, travel):
    """Cookies are the agent's own business: the tap hands them on and sends none by itself."""
    seen: list[str | None] = []

    async def cookies(request: Request) -> JSONResponse:
        seen.append(request.headers.get("cookie"))
        return JSONResponse(completion({"role": "assistant", "content": "x"}), headers={"set-cookie": "a=1"})

    with Served(Starlette(routes=[Route("/v1/chat/completions", cookies, methods=["POST"])])) as server:
        with Served(Tap(server.url, script).app()) as served:
            url = f"{served.url}/v1/chat/completions"
            answers = [httpx.post(url, json=asked(travel), headers={"authorization": "Bearer k"}) for _ in range(2)]
            httpx.post(url, json=asked(travel), headers={"authorization": "Bearer k", "cookie": "a=1"})

    assert [one.headers["set-cookie"] for one in answers] == ["a=1", "a=1"]
    assert seen == [None, None, "a=1"]


def test_the_suite_is_as_large_as_it_says():
    """Eight agents and more over four frameworks, eight conversations of ten turns, 400 clean turns in the short set."""
    scenarios = [load(name) for name in names()]
    turns = sum(len(one.turns) for one in scenarios)

    assert len(AGENTS) >= 8
    assert len({one.framework.partition(",")[0] for one in AGENTS}) >= 6
    assert len(scenarios) >= 8
    assert min(len(one.turns) for one in scenarios) >= 10
    assert turns * len(AGENTS) >= 400
    assert all(len(one.faults) >= 3 for one in scenarios)


@pytest.mark.parametrize("one", AGENTS, ids=lambda one: one.name)
def test_every_agent_is_pinned(one):
    """The version that the table gives is that of the lock file or the requirements."""
    assert one.version()[0].isdigit()
