"""A provider that is asked by Anthropic's Messages, behind every front: nothing of it reaches a client unjudged (API-2, I17)."""

from __future__ import annotations

import anthropic
import openai
import pytest
import pytest_asyncio

from interlock.sidecar.openai import fields, strictjson
from interlock.sidecar.openai.completion import assembled
from interlock.sidecar.provider import messages_answer, refusals
from tests.support.servers.provider import anthropic as provided
from tests.support.sidecar import walk
from tests.support.sidecar.sidecar import a_report, reason_of, running_sidecar
from tests.support.texts import maximal

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("API-2", "API-6")]

TEXT = {"type": "text", "text": "The answer is fine."}
WITHOUT_ANSWER = {"models", "one_model", "embeddings"}
ERRORS = {"http", "http_stream", "messages", "messages_stream", "completions", "grpc_dispatch"}
QUESTION = [{"role": "user", "content": "What is it?"}]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sidecar(tmp_path_factory, running_provider):
    """A sidecar that asks its provider by Messages."""
    settings = {"upstream": running_provider.base_url, "upstream_api": "messages"}
    async with running_sidecar(tmp_path_factory.mktemp("messages"), **settings) as running:
        yield running


@pytest.fixture(autouse=True)
def words_of_this_api(monkeypatch):
    """The walk asks for log-probabilities, which this API does not have."""
    monkeypatch.setitem(walk.BODY, "logprobs", False)
    monkeypatch.setattr(walk, "RESPONSES", {**walk.RESPONSES, "include": []})


async def unseen(sidecar, words, fronts=tuple(walk.FRONTS)) -> tuple[dict[str, set[str]], set[str]]:
    """What no stage saw, by front; and the fronts that the answer's text came through."""
    found = {}
    for front in fronts:
        sidecar.dpe.report = a_report("HIGH" if front.startswith("held") else "LOW")
        found[front] = await walk.walked(sidecar, front, words)
    seen = {front for front, one in found.items() if "message.content[].text" in one.judged}
    return {front: one.unseen for front, one in found.items() if one.unseen}, seen


@pytest.mark.finding("F-24")
async def test_no_string_of_the_largest_message_reaches_a_client_unseen(sidecar, provider):
    """Every block and field of the vendor's types and unknown ones, over every front: judged, made here, or left out."""
    words = maximal.Words()
    provider.completes(maximal.message(words))
    provider.lists(maximal.models(words))
    leaks, seen = await unseen(sidecar, words)

    assert leaks == {}
    assert seen == walk.FRONTS.keys() - WITHOUT_ANSWER


@pytest.mark.finding("F-24")
@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
async def test_no_string_of_a_refusal_reaches_a_client(sidecar, provider, status):
    """Anthropic's error and its headers, in the shape of the API that was called."""
    words = maximal.Words()
    body = {"type": "error", **maximal.error(words, status), "request_id": words.at("request_id")}
    provider.fails(status, body, headers=maximal.headers(words, status))

    assert (await unseen(sidecar, words, sorted(ERRORS)))[0] == {}


async def test_the_walk_notices_an_allow_list_that_is_switched_off(sidecar, provider, monkeypatch):
    """With the id of a call as the provider wrote it something comes back unseen: the tests above can fail."""

    def raw(data, _asked, *, max_depth):
        value = strictjson.loads(data, max_depth=max_depth)
        used = next(block for block in value["content"] if block["type"] == "tool_use")
        call = {"id": used["id"], "type": "function", "function": {"name": "f", "arguments": "{}"}}
        message = {"role": "assistant", "content": "Fine.", "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return assembled({"id": value["id"], "model": value["model"], "created": 0}, [choice], {})

    monkeypatch.setattr(messages_answer, "read", raw)
    words = maximal.Words()
    provider.completes(maximal.message(words))
    leaks, _ = await unseen(sidecar, words, sorted(ERRORS))

    assert leaks.keys() == ERRORS - {"completions"}, "which has no calls"


async def test_both_vendors_clients_over_a_provider_of_anthropic_s(sidecar, provider):
    """Any front works over any provider's API: the same answer, each in its own words, and one request at the provider."""
    sidecar.dpe.report = None
    provider.completes(provided({"type": "thinking", "thinking": "Hm.", "signature": "x"}, TEXT))
    async with (
        openai.AsyncOpenAI(base_url=f"{sidecar.http}/v1", api_key="sk-1", max_retries=0) as theirs,
        anthropic.AsyncAnthropic(base_url=sidecar.http, api_key="sk-1", max_retries=0) as ours,
    ):
        chat = await theirs.chat.completions.create(model="m", messages=QUESTION)
        legacy = await theirs.completions.create(model="m", prompt="What is it?")
        message = await ours.messages.create(model="m", max_tokens=4096, messages=QUESTION)

    assert chat.choices[0].message.content == legacy.choices[0].text == message.content[1].text == TEXT["text"]
    assert (chat.usage.total_tokens, message.usage.input_tokens) == (15, 10)
    assert [one.path for one in provider.received] == ["/v1/messages"] * 3
    assert {one.header("x-api-key") for one in provider.received} == {"sk-1"}
    assert {one.header("authorization") for one in provider.received} == {None}
    assert [one.body for one in provider.received] == [provider.received[0].body] * 3


async def test_the_deployment_s_own_key_is_presented_as_this_api_wants_it(tmp_path, upstream, provider):
    """And the caller's stays here."""
    provider.completes(provided(TEXT))
    settings = {"upstream_api": "messages", "upstream_api_key": "sk-own"}
    async with running_sidecar(tmp_path, upstream=upstream, **settings) as sidecar:
        answer = await sidecar.chat(headers={"authorization": "Bearer sk-caller"})

    assert answer.status_code == 200
    assert provider.received[0].header("x-api-key") == "sk-own"
    assert "sk-caller" not in str(provider.received[0].headers)


@pytest.mark.req("SVC-5")
async def test_what_nobody_judges_is_counted(sidecar, provider):
    """By its name in the metric."""
    names = ("signature", "redacted_thinking", "citations")
    blocks = [{"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "redacted_thinking", "data": "x"}]
    provider.completes(provided(*blocks, {**TEXT, "citations": [{"cited_text": "x"}]}))
    sidecar.dpe.report = None
    before = [fields.DROPPED.labels(name)._value.get() for name in names]
    answer = await sidecar.chat()

    assert answer.status_code == 200
    assert [fields.DROPPED.labels(name)._value.get() for name in names] == [count + 1 for count in before]


@pytest.mark.parametrize("more", [{"n": 2}, {"seed": 1}, {"logprobs": True}])
async def test_what_the_provider_has_no_word_for_begins_nothing(sidecar, provider, more):
    """Refused by name; no session, no provider call."""
    refused = await sidecar.chat(**more)

    assert (refused.status_code, reason_of(refused)) == (400, "INVALID_PARAMETER")
    assert "crp-context-session-id" not in refused.headers
    assert provider.received == []


@pytest.mark.parametrize(
    ("status", "error", "told"),
    [
        (
            400,
            {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"},
            "context_length_exceeded",
        ),
        (401, {"type": "authentication_error", "message": "invalid x-api-key"}, "upstream_rejected"),
        (404, {"type": "not_found_error", "message": "model: m"}, "upstream_rejected"),
        (429, {"type": "rate_limit_error", "message": "slow down"}, "upstream_rate_limited"),
        (529, {"type": "overloaded_error", "message": "overloaded"}, "upstream_error"),
    ],
)
async def test_its_errors_mean_what_those_of_chat_completions_mean(sidecar, provider, status, error, told):
    """The type is passed on where it is a word that clients act on, the meaning in words of ours."""
    provider.fails(status, {"type": "error", "error": error})
    refused = await sidecar.chat()

    assert refused.status_code == (502 if status == 529 else status)
    assert refused.json()["error"]["code"] == told
    assert status == 529 or refused.json()["error"]["type"] == error["type"]
    assert refusals.CONTEXT_LENGTH != told or "maximum context length" in refused.json()["error"]["message"]


async def test_it_has_no_embeddings(sidecar, provider):
    """Refused by name; nothing is asked."""
    refused = await sidecar.client.post("/v1/embeddings", json={"model": "m", "input": "x"})

    assert (refused.status_code, reason_of(refused)) == (501, "ENDPOINT_NOT_SUPPORTED")
    assert provider.received == []
