"""Answers of a provider behind the real Envoy, asked for by the real ``openai`` client (MSH-1)."""

from __future__ import annotations

import threading
from typing import Any

import openai
import pytest

from tests.support.servers.envoy import needs_envoy
from tests.support.servers.streaming import spoken, streams
from tests.support.sidecar.behind_envoy import QUESTION, STRICT, behind_envoy

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [needs_envoy, pytest.mark.req("MSH-1")]

FIRST, SECOND, BAD = "The sky is blue.", " The sea is wide.", " This is CRITICAL."
CHANGING = {"crp-context-session-id", "crp-set-session", "content-length", "date", "server", "set-cookie"}
"""Headers that differ from one call to the next, or that a server adds of its own."""


@pytest.fixture
async def mesh(tmp_path, upstream):
    async with behind_envoy(tmp_path, upstream, stream_release="sentences") as running:
        yield running


async def refusal_of(client: openai.AsyncOpenAI, **more: Any) -> openai.APIStatusError:
    with pytest.raises(openai.APIStatusError) as caught:
        await client.chat.completions.create(model="m", messages=QUESTION, **more)
    return caught.value


async def test_a_clean_answer_passes_with_its_headers(mesh):
    """The answer is the provider's, and what was found in it is in the headers."""
    async with mesh.openai() as client:
        raw = await client.chat.completions.with_raw_response.create(model="m", messages=QUESTION)

    assert raw.parse().choices[0].message.content == "The answer is fine."
    assert raw.headers["crp-safety-hallucination-risk"] == "LOW"


async def test_the_provider_gets_what_the_sidecar_alone_would_send(mesh, provider):
    """Nothing of CRP, no mark and no header of the client but its key."""
    async with mesh.openai() as client:
        await client.chat.completions.create(
            model="m", messages=QUESTION, extra_headers={"crp-accept-risk": "LOW", "x-secret": "s"}, extra_body={"interlock": {"facts": []}}
        )  # fmt: skip

    (received,) = provider.received
    names = {name for name, _ in received.headers}
    expected = {"host", "accept", "accept-encoding", "user-agent", "content-type", "authorization", "transfer-encoding"}
    assert names - {"traceparent"} == expected
    assert received.header("authorization") == "Bearer sk-client"
    assert received.body == {"model": "m", "messages": QUESTION}


async def test_a_halted_answer_is_refused_as_by_the_http_front(mesh, provider, upstream, tmp_path):
    """Status, reason, the body's fields and the headers' names are those of the HTTP front."""
    provider.answers("Something CRITICAL.")
    async with mesh.openai() as client:
        refused = await refusal_of(client, extra_headers=STRICT)
    async with behind_envoy(tmp_path / "other", upstream, upstream_base_url=upstream) as other:
        async with other.openai(other.sidecar.http) as client:
            straight = await refusal_of(client, extra_headers=STRICT)

    assert refused.status_code == 451
    assert refused.response.json()["reason"] == straight.response.json()["reason"] == "SAFETY_HALT"
    assert refused.response.json().keys() == straight.response.json().keys()
    assert set(refused.response.headers) - CHANGING == set(straight.response.headers) - CHANGING
    assert "Something" not in refused.response.text


async def test_the_first_sentence_leaves_before_the_provider_has_ended(mesh, provider):
    """The provider waits for the client's first token: parts are judged and go through Envoy as they come."""
    heard = threading.Event()
    streams(provider, [*spoken(FIRST, SECOND)[:3], heard, *spoken(SECOND)[2:]])
    said = ""
    async with mesh.openai() as client:
        async for one in await client.chat.completions.create(model="m", messages=QUESTION, stream=True):
            said += one.choices[0].delta.content or "" if one.choices else ""
            heard.set()

    assert said == FIRST + SECOND


async def test_a_part_that_may_not_pass_never_arrives(mesh, provider):
    """The stream ends with the error of a halt, behind what was released."""
    heard, texts = threading.Event(), spoken(FIRST, SECOND, BAD, " Then more.")
    streams(provider, [*texts[:3], heard, *texts[3:]])
    said, headers = "", {**STRICT, "crp-stream-final": "event"}
    with pytest.raises(openai.APIError) as caught:
        async with mesh.openai() as client:
            stream = await client.chat.completions.create(
                model="m", messages=QUESTION, stream=True, extra_headers=headers
            )
            async for one in stream:
                said += one.choices[0].delta.content or "" if one.choices else ""
                heard.set()

    assert said.startswith(FIRST)
    assert "CRITICAL" not in said
    assert caught.value.body["code"] == "safety_halt"


async def test_a_stream_that_is_released_whole_is_judged_whole(tmp_path, upstream, provider):
    """With stream_release whole a halted stream is a refusal before anything left."""
    provider.answers(FIRST + SECOND + BAD)
    async with behind_envoy(tmp_path, upstream) as mesh, mesh.openai() as client:
        refused = await refusal_of(client, stream=True, extra_headers=STRICT)

    assert refused.status_code == 451


async def test_a_session_goes_on_from_one_call_to_the_next(mesh):
    """The token of one answer is taken with the next, through Envoy both times."""
    async with mesh.openai() as client:
        first = await client.chat.completions.with_raw_response.create(model="m", messages=QUESTION)
        token = first.headers["crp-set-session"].split(";")[0].removeprefix("token=")
        second = await client.chat.completions.with_raw_response.create(
            model="m", messages=QUESTION, extra_headers={"crp-session-token": token}
        )

    assert second.headers["crp-context-window"] == "2/200"


async def test_a_second_call_of_the_provider_goes_to_its_own_address(tmp_path, upstream, provider):
    """Envoy carries the answer, and the sidecar asks for the review and the revision itself."""
    headers = {"crp-agent-dispatch-strategy": "reflexive"}
    async with behind_envoy(tmp_path, upstream, upstream_base_url=upstream, max_provider_calls=4) as mesh:
        async with mesh.openai() as client:
            await client.chat.completions.create(model="m", messages=QUESTION, extra_headers=headers)
        through = mesh.envoy.stats("cluster.provider.upstream_rq_total")

    assert through == {"cluster.provider.upstream_rq_total": 1}
    assert len(provider.received) > 1


async def test_a_second_call_is_refused_where_only_envoy_knows_the_provider(mesh):
    """The reason says which setting is missing."""
    async with mesh.openai() as client:
        refused = await refusal_of(client, extra_headers={"crp-agent-dispatch-strategy": "reflexive"})

    assert refused.response.json()["reason"] == "UPSTREAM_NOT_CONFIGURED"
