"""Legacy completions and embeddings through the real ``openai`` client: judged, and passed on record (API-3)."""

from __future__ import annotations

import hashlib
import json

import openai
import pytest
from openai.types import Completion

from interlock.sidecar.fronts import embeddings as front
from tests.support.servers.provider import completion, message
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("API-3")]

HALTS = {"CRP-Safety-Policy": "halt-on CRITICAL"}
ASKED = {"model": "test-embedding", "input": ["one", "two"]}


@pytest.fixture
def sidecar(shared_sidecar, provider):
    shared_sidecar.dpe.report = None
    return shared_sidecar


@pytest.fixture
async def client(sidecar):
    async with openai.AsyncOpenAI(base_url=f"{sidecar.http}/v1", api_key="sk-one", max_retries=0) as made:
        yield made


async def test_a_completion_of_a_prompt(client, provider):
    """Two choices of the prompt, which is one message at the provider."""
    provider.completes(completion(message("One."), message("Two.", reasoning_content="Hm.")))
    raw = await client.completions.with_raw_response.create(model="m", prompt="Say.", n=2, max_tokens=9, stop=["END"])
    answer = raw.parse()

    assert [(one.index, one.text, one.finish_reason) for one in answer.choices] == [
        (0, "One.", "stop"),
        (1, "Two.", "stop"),
    ]
    assert answer.id == "cmpl-" + raw.headers["crp-provenance-report-uri"].rpartition("crp_win_")[2]
    assert answer.usage.total_tokens == 15
    assert provider.received[0].body == {
        "model": "m", "messages": [{"role": "user", "content": "Say."}], "n": 2, "max_tokens": 9, "stop": ["END"],
    }  # fmt: skip


async def test_a_streamed_completion_is_the_same_text(sidecar, client, provider):
    """Valid by the vendor's own type; a long text in pieces."""
    provider.completes(completion(message("word " * 300), message("Two.")))
    stream = await client.completions.create(
        model="m", prompt="Say.", n=2, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    texts = ["".join(one.text for chunk in chunks for one in chunk.choices if one.index == index) for index in (0, 1)]
    ends = [one.finish_reason for chunk in chunks for one in chunk.choices if one.finish_reason]
    whole = await sidecar.client.post("/v1/completions", json={"model": "m", "prompt": "Say.", "n": 2})

    assert texts == ["word " * 300, "Two."]
    assert (ends, chunks[-1].usage.total_tokens) == (["stop", "stop"], 15)
    assert not Completion.model_validate(whole.json(), strict=True).model_extra


@pytest.mark.parametrize("stream", [False, True])
async def test_a_halt_of_a_completion(client, provider, stream):
    """As for a chat completion: a typed error with the body of a 451."""
    provider.answers("It is CRITICAL.")
    with pytest.raises(openai.APIStatusError) as caught:
        await client.completions.create(model="m", prompt="Say.", stream=stream, extra_headers=HALTS)

    assert (caught.value.status_code, caught.value.response.json()["reason"]) == (451, "SAFETY_HALT")


async def test_a_completion_is_held_as_one(sidecar, provider):
    """Its form stands beside the held answer: no other API hands it out."""
    from tests.support.sidecar.oversight import HOLDS, decision, held_path, token_for
    from tests.support.sidecar.sidecar import a_report

    sidecar.dpe.report = a_report("HIGH")
    asked = {"model": "m", "prompt": "Say."}
    held = await sidecar.client.post("/v1/completions", json=asked, headers=HOLDS)
    headers = {"crp-session-token": token_of(held)}
    token = token_for((await sidecar.client.get(held_path(held), headers=headers)).json())
    await sidecar.mesh.audit.DecideHeld(decision(token))
    headers["crp-oversight-token"] = token
    as_chat = await sidecar.chat(headers=headers)
    released = await sidecar.client.post("/v1/completions", json=asked, headers=headers)

    assert (as_chat.status_code, reason_of(as_chat)) == (409, "HELD_FORM_DIFFERS")
    assert (released.json()["object"], released.json()["choices"][0]["text"]) == (
        "text_completion",
        "The answer is fine.",
    )


async def test_embeddings_are_passed_by_allow_list(client, provider):
    """The request as it was checked, the vectors as numbers, the model as it was asked for, no word of the provider's."""
    provider.embeds([0.25, -1], [1, 2], extra="a word", headers="x")
    raw = await client.embeddings.with_raw_response.create(**ASKED, encoding_format="float", dimensions=2, user="u")
    answer = raw.parse()

    assert [one.embedding for one in answer.data] == [[0.25, -1], [1, 2]]
    assert (answer.model, answer.usage.total_tokens) == ("test-embedding", 3)
    assert "a word" not in raw.text
    assert provider.received[0].body == {**ASKED, "encoding_format": "float", "dimensions": 2, "user": "u"}
    assert provider.received[0].header("authorization") == "Bearer sk-one"


@pytest.mark.req("AUD-1")
async def test_embeddings_of_a_session_are_in_its_chain(sidecar, provider):
    """Named by its token or by its id: an event with hashes and numbers, and the chain holds. They cost the session no window."""
    provider.embeds([0.25, -1], [1, 2], extra="a word")
    first = await sidecar.chat(headers={"authorization": "Bearer a"})
    session_id, token = first.headers["crp-context-session-id"], token_of(first)
    answers = [
        await sidecar.client.post("/v1/embeddings", json=ASKED, headers={"authorization": "Bearer a", **named})
        for named in ({"crp-session-token": token}, {"crp-context-session-id": session_id})
    ]
    told = [
        json.loads(one.data_json) for one in await sidecar.events(session_id) if one.event_type == "EMBEDDINGS_PASSED"
    ]
    second = await sidecar.chat(token=token, headers={"authorization": "Bearer a"})

    assert [one.status_code for one in answers] == [200, 200]
    assert {one.headers["crp-context-session-id"] for one in answers} == {session_id}
    assert told == [{
        "provider": "127.0.0.1", "model": "test-embedding", "inputs": 2, "dimensions": 2, "tokens_used": 3,
        "dropped_fields": ["other"], "response_hash": "sha256:" + hashlib.sha256(answers[0].content).hexdigest(),
    }] * 2  # fmt: skip
    assert (second.headers["crp-context-window"], second.headers["crp-provenance-chain-integrity"]) == (
        "2/200",
        "VALID",
    )


@pytest.mark.req("SVC-5")
async def test_embeddings_of_no_session_are_counted(sidecar, provider):
    """Delivered or refused, once each; no session begins."""
    provider.embeds([1], [2])
    before = [front.EMBEDDINGS.labels(outcome, "none")._value.get() for outcome in ("delivered", "refused")]
    good = await sidecar.client.post("/v1/embeddings", json=ASKED)
    provider.embeds([1])
    bad = await sidecar.client.post("/v1/embeddings", json=ASKED)

    assert (good.status_code, bad.status_code, reason_of(bad)) == (200, 502, "UPSTREAM_INVALID_RESPONSE")
    assert "crp-context-session-id" not in good.headers
    assert [front.EMBEDDINGS.labels(one, "none")._value.get() for one in ("delivered", "refused")] == [
        n + 1 for n in before
    ]


@pytest.mark.req("ATT-2")
async def test_a_halted_session_and_its_caller_get_no_embeddings(tmp_path, upstream, provider):
    """Spent, ended, of another key, or its caller's budget gone: refused before the provider is asked."""
    provider.embeds([1], [2])
    own = {"authorization": "Bearer a"}
    # A budget of three graver answers for the caller, of two for a session.
    async with running_sidecar(tmp_path, upstream=upstream, caller_budget=1.3, decrement_critical=0.5) as sidecar:

        async def embedded(**headers):
            return await sidecar.client.post("/v1/embeddings", json=ASKED, headers={**own, **headers})

        first = await sidecar.chat(headers=own)
        ended = {"crp-session-token": token_of(first)}
        await sidecar.client.delete(
            f"/crp/v3/session/{first.headers['crp-context-session-id']}", headers={**own, **ended}
        )
        provider.answers("It is CRITICAL.")
        spent = await sidecar.chat(headers=own)
        spent = await sidecar.chat(token=token_of(spent), headers=own)
        session = {"crp-context-session-id": spent.headers["crp-context-session-id"]}
        asked = len(provider.received)
        found = [
            await embedded(**ended),
            await embedded(**session),
            await embedded(authorization="Bearer b", **session),
            await embedded(),
        ]
        for _ in range(2):
            await sidecar.chat(headers=own)
        asked_more = len(provider.received)
        caller = await embedded()
        other = await embedded(authorization="Bearer b")

    assert [(one.status_code, reason_of(one) if one.status_code != 200 else "") for one in found] == [
        (409, "SESSION_TERMINATED"), (451, "BUDGET_DEPLETED"), (404, "SESSION_NOT_FOUND"), (200, ""),
    ]  # fmt: skip
    assert (caller.status_code, reason_of(caller)) == (451, "CALLER_BUDGET_DEPLETED")
    assert caller.json()["crp_halt_reason"]
    assert caller.headers["crp-safety-retry-after"].isdigit()
    assert other.status_code == 200
    assert [one.path for one in provider.received[asked:]].count("/v1/embeddings") == 2
    assert asked_more > asked


@pytest.mark.req("TOK-3", "SVC-4")
async def test_embeddings_need_an_accepted_key_and_a_durable_record(tmp_path, upstream, provider):
    """A key that is not listed gets none; where the chain cannot take the event, nothing is released."""
    from interlock.domain.errors import unavailable
    from tests.support.sidecar.sidecar import Hooked

    keys = tmp_path / "keys.yaml"
    keys.write_text("team-a: " + hashlib.sha256(b"a").hexdigest())
    own = {"authorization": "Bearer a"}
    failing: list[bool] = []

    async def record(request):
        if failing and any(one.event_type == "EMBEDDINGS_PASSED" for one in request.events):
            raise unavailable("AUDIT_DOWN", "the log is down", retry_after_ms=0)

    def wrap(services):
        return {**services, "audit": Hooked(services["audit"], Record=record)}

    provider.embeds([1], [2])
    async with running_sidecar(tmp_path, upstream=upstream, api_keys_file=keys, wrap=wrap) as sidecar:
        foreign = await sidecar.client.post("/v1/embeddings", json=ASKED, headers={"authorization": "Bearer b"})
        named = {**own, "crp-session-token": token_of(await sidecar.chat(headers=own))}
        good = await sidecar.client.post("/v1/embeddings", json=ASKED, headers=named)
        failing.append(True)
        down = await sidecar.client.post("/v1/embeddings", json=ASKED, headers=named)

    assert (foreign.status_code, good.status_code, down.status_code) == (401, 200, 503)
    assert "embedding" not in down.text
