"""Overload through the served sidecar: a place in the dpe before the provider, on every front (reliability.md A-55)."""

from __future__ import annotations

import asyncio
import json

import grpc
import httpx
import openai
import pytest

from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.domain.errors import Kind, Refused
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.errors import from_rpc_error
from interlock.runtime.rpc.peers import DpePeer
from tests.support.sidecar import answering
from tests.support.sidecar.remedies import Judge
from tests.support.sidecar.sidecar import another_sidecar, reason_of, running_sidecar

pytestmark = pytest.mark.finding("F-20")

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.sidecar

BODY = {"model": "test-model", "messages": [{"role": "user", "content": "What is it?"}]}
HTTP_WAYS = {
    "chat": lambda one: one.chat(),
    "stream": lambda one: one.chat(stream=True),
    "hierarchical": lambda one: one.chat(headers={"crp-context-strategy": "hierarchical"}),
    "reflexive": lambda one: one.chat(headers={"crp-context-strategy": "reflexive"}),
}


async def given_back(dpe) -> None:
    """Wait until no place is held: it is given back beside the answer."""
    async with asyncio.timeout(5):
        while dpe.places:
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("way", HTTP_WAYS)
async def test_without_a_place_nobody_asks_the_provider(sidecar, provider, dpe, way):
    """The refusal says when to come again, in every form that a client may read, and nothing was begun."""
    dpe.most_places = 0
    refused = await HTTP_WAYS[way](sidecar)

    assert (refused.status_code, reason_of(refused)) == (429, "OVERLOADED")
    assert refused.headers["retry-after"] == "2"
    assert refused.headers["retry-after-ms"] == "1700"
    assert "x-should-retry" not in refused.headers
    assert "crp-set-session" not in refused.headers
    assert (provider.received, dpe.asked) == ([], [])


async def overloaded(call) -> Refused:
    """The refusal of a call over gRPC, which says when to come again."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    refused = from_rpc_error(raised.value, "sidecar")
    assert refused.reason == "OVERLOADED"
    assert 0 < refused.retry_after_ms <= 1700
    return refused


async def test_the_same_over_grpc(sidecar, provider, dpe):
    """The status has RetryInfo, for a text that the caller brings too."""
    dpe.most_places = 0
    await overloaded(sidecar.stub.Dispatch(sidecar_pb2.DispatchRequest(chat_request=json.dumps(BODY).encode())))
    await overloaded(sidecar.stub.Check(sidecar_pb2.CheckRequest(text="A text.")))
    assert (provider.received, dpe.asked) == ([], [])


def checking(text: str, token: str = "") -> sidecar_pb2.CheckRequest:
    return sidecar_pb2.CheckRequest(text=text, context=sidecar_pb2.CallContext(session_token=token))


async def test_the_analysis_of_a_brought_answer_takes_its_place_itself(sidecar, dpe):
    """For its caller, without a call before it and one after it: no provider is asked, so that nobody pays in vain."""
    dpe.most_places = 1
    await sidecar.stub.Check(checking("A text."))
    await sidecar.chat()

    brought, asked_for = dpe.asked
    assert (brought.place_id, brought.place_for) == ("", "anonymous")
    assert (asked_for.place_id, asked_for.HasField("place_for")) == ("place_1", False)
    assert dpe.reserved == 1


async def test_a_brought_answer_that_found_no_place_leaves_nothing_behind(sidecar, dpe):
    """Its lease is given back and nothing is charged: the same token goes on once there is room."""
    first = (await sidecar.stub.Check(checking("A text."))).outcome
    dpe.most_places = 0
    await overloaded(sidecar.stub.Check(checking("CRITICAL", first.session_token)))
    dpe.most_places = 10
    await asyncio.sleep(0.12)
    second = (await sidecar.stub.Check(checking("Another text.", first.session_token))).outcome

    assert second.session_id == first.session_id
    assert second.safety_budget_micros == first.safety_budget_micros
    assert second.headers["CRP-Context-Window"].startswith("2/")


async def test_the_next_brought_answers_of_a_caller_begin_nothing(sidecar, dpe):
    """What was refused a moment ago is refused again before a session is begun, as where a provider would be asked."""
    dpe.most_places = 0
    await overloaded(sidecar.stub.Check(checking("A text.")))
    for _ in range(3):
        await overloaded(sidecar.stub.Check(checking("A text.")))
    refused = await sidecar.chat()

    assert (refused.status_code, reason_of(refused)) == (429, "OVERLOADED")
    assert (dpe.turned_away, dpe.reserved) == (1, 0)


async def test_a_batch_is_refused_item_by_item(sidecar, provider, dpe):
    """Items that had no place cost nothing; those that had one are answered."""
    dpe.most_places = 1
    items = [{"id": f"i{n}", "body": BODY} for n in range(4)]
    dpe.gate = lambda: asyncio.sleep(0.05)
    answered = await sidecar.client.post("/crp/v3/batch", json={"items": items})
    ends = [one["status"] for one in answered.json()["results"]]

    assert ends.count(200) >= 1
    assert set(ends) <= {200, 429}
    assert len(provider.received) == len(dpe.asked) == ends.count(200)
    await given_back(dpe)


async def test_what_was_refused_a_moment_ago_is_refused_before_its_body_is_read(sidecar, dpe):
    """A refusal under load must cost next to nothing; the time that it tells runs on."""
    dpe.most_places = 0
    first = await sidecar.chat()
    asked = dpe.reserved
    dpe.most_places = 10
    second = await sidecar.client.post("/v1/chat/completions", content=b"{not json")
    await asyncio.sleep(0.12)

    assert (first.status_code, second.status_code, reason_of(second)) == (429, 429, "OVERLOADED")
    assert int(second.headers["retry-after-ms"]) <= int(first.headers["retry-after-ms"])
    assert dpe.reserved == asked
    assert (await sidecar.chat()).status_code == 200


@pytest.mark.parametrize("way", HTTP_WAYS)
async def test_a_call_keeps_one_place_for_all_its_answers_and_gives_it_back(sidecar, dpe, way):
    """Plan, parts and whole of a hierarchical call too: nothing of it is refused once it was begun."""
    dpe.most_places = 1
    answered = await HTTP_WAYS[way](sidecar)

    assert answered.status_code == 200, answered.text
    assert (dpe.reserved, {one.place_id for one in dpe.asked}) == (1, {"place_1"})
    await given_back(dpe)


async def test_a_remedy_keeps_the_place(tmp_path, running, provider):
    """Its second judgement does not ask again, also where no other place is free."""
    judge = Judge(most_places=1)
    provider.by_question = {"What is it?": "It CONTRADICTS."}
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=judge, remediation="full") as one:
        await one.chat()

    assert len(judge.asked) > 1
    assert (judge.reserved, {asked.place_id for asked in judge.asked}, judge.places) == (1, {"place_1"}, set())


async def test_a_place_is_given_back_when_the_provider_fails(sidecar, provider, dpe):
    """One place serves one failing call after the other."""
    provider.fails(500)
    dpe.most_places = 1
    for _ in range(3):
        assert (await sidecar.chat()).status_code == 502
        await given_back(dpe)
    assert dpe.asked == []


async def test_a_place_is_given_back_when_the_client_goes_away(sidecar, provider, dpe):
    """The next call has it at once."""
    provider.hangs()
    dpe.most_places = 1
    with pytest.raises(httpx.ReadTimeout):
        await sidecar.client.post("/v1/chat/completions", json=BODY, timeout=0.3)
    await given_back(dpe)
    provider.reset()

    assert (await sidecar.chat()).status_code == 200


async def test_a_place_is_given_back_when_the_analysis_fails(sidecar, dpe):
    """A model that fails holds nothing."""
    dpe.failure = Refused(Kind.UNAVAILABLE, "MODEL_FAILED", "no")
    assert (await sidecar.chat()).status_code == 503
    await given_back(dpe)


async def test_two_sidecars_share_the_places_of_one_dpe(sidecar, provider, dpe):
    """What one sidecar holds, the other has not; exactly as many are asked for as there are places."""
    dpe.most_places, free = 3, asyncio.Event()
    dpe.gate = free.wait
    async with (
        another_sidecar(sidecar) as other,
        httpx.AsyncClient(base_url=other, timeout=30, trust_env=False) as client,
    ):
        ways = (sidecar.client, client)
        calls = [asyncio.ensure_future(ways[n % 2].post("/v1/chat/completions", json=BODY)) for n in range(12)]
        async with asyncio.timeout(10):
            while sum(one.done() for one in calls) < 9:
                await asyncio.sleep(0.01)
        free.set()
        answers = await asyncio.gather(*calls)

    assert sorted(one.status_code for one in answers) == [200] * 3 + [429] * 9
    assert len(provider.received) == dpe.reserved == 3
    await given_back(dpe)


async def test_the_openai_client_comes_again_when_it_was_told_to(sidecar, provider, dpe, monkeypatch):
    """The official client sleeps as long as the header says, and then gets its answer."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        dpe.most_places = 10
        await asyncio.sleep(0.15)  # until the sidecar asks the dpe again

    dpe.most_places = 0
    monkeypatch.setattr("openai._base_client.anyio.sleep", sleep)
    async with openai.AsyncOpenAI(base_url=f"{sidecar.http}/v1", api_key="k", max_retries=2) as client:
        answer = await client.chat.completions.create(**BODY)

    assert answer.choices[0].message.content
    assert slept == [1.7]
    assert len(provider.received) == 1


class _Old:
    """A dpe of before there were places."""

    async def ReservePlace(self, _request, timeout):
        metadata = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(grpc.StatusCode.UNIMPLEMENTED, metadata, metadata)


async def test_a_dpe_that_knows_no_places_is_asked_without_one():
    """Sidecars are updated before the dpe, or after it."""
    assert await DpePeer(_Old(), 1.0, 1.0).reserve(Deadline(5.0), "caller") == ""
