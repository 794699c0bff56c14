"""Every string of an answer was judged, minted here or is a constant: a walk over the largest answers there can be (I17; F-24)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from interlock.sidecar.openai import completion, embeddings, fields, strictjson
from interlock.sidecar.provider import refusals, upstream
from interlock.sidecar.provider.refusals import ProviderError
from tests.support.servers.provider import completion as provided
from tests.support.servers.provider import message, tool_call
from tests.support.sidecar import walk
from tests.support.sidecar.sidecar import a_report, running_sidecar
from tests.support.texts import maximal

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.finding("F-24")]

STATUSES = (400, 429, 500, *(pytest.param(one, marks=pytest.mark.long) for one in (401, 403, 404, 409, 413, 422, 503)))
"""Of a request, of a limit and of the provider; the others of each kind are long."""
CONTENT = "answer.choices[].message.content"
WITHOUT_ANSWER = {"models", "one_model", "embeddings"}
SHORT = {
    "http",
    "http_stream",
    "batch",
    "grpc_dispatch",
    "python_client",
    "models",
    "responses_stream",
    "messages",
    "messages_stream",
    "completions",
}
"""Fronts that differ in how a refusal is written."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sidecar(tmp_path_factory, running_provider):
    """A sidecar whose every answer is delivered, or held where a call asks for that."""
    async with running_sidecar(tmp_path_factory.mktemp("walk"), upstream=running_provider.base_url) as running:
        yield running


async def walked(sidecar, words: maximal.Words, fronts=tuple(walk.FRONTS)) -> dict[str, walk.Walked]:
    """What comes back of what the provider says now, by front."""
    found = {}
    for front in fronts:
        sidecar.dpe.report = a_report("HIGH" if front.startswith("held") else "LOW")
        found[front] = await walk.walked(sidecar, front, words)
    return found


async def unseen(sidecar, words: maximal.Words, fronts=tuple(walk.FRONTS)) -> dict[str, set[str]]:
    """What no stage saw of it, by front."""
    found = await walked(sidecar, words, fronts)
    return {front: one.unseen for front, one in found.items() if one.unseen}


@pytest.mark.req("SVC-2")
@pytest.mark.parametrize("how", [{}, {"calls": False}, {"custom": True}], ids=str)
async def test_no_string_of_the_largest_answer_reaches_a_client_unseen(sidecar, provider, how):
    """Streamed and not, over every front: an answer with calls, one without, one with a call of a custom tool."""
    words = maximal.Words()
    provider.completes(maximal.answer(words, **how))
    provider.lists(maximal.models(words))
    provider.embeds([0.5], **maximal.around_vectors(words))

    found = await walked(sidecar, words)

    assert {front: one.unseen for front, one in found.items() if one.unseen} == {}
    delivered = set() if how.get("custom") else walk.FRONTS.keys() - WITHOUT_ANSWER
    assert {front for front, one in found.items() if CONTENT in one.judged} == delivered, "there is something to see"


@pytest.mark.parametrize("place", [place for place, _ in maximal.placed(maximal.Words())])
async def test_no_word_in_a_field_of_a_few_words_comes_through(sidecar, provider, place):
    """Roles, kinds, ends, numbers: a text there is refused or left out, and never seen by nobody but the client."""
    words = maximal.Words()
    provider.completes(dict(maximal.placed(words))[place])

    assert await unseen(sidecar, words, sorted(SHORT)) == {}


async def test_a_stream_that_nobody_asked_for_is_no_answer(sidecar, provider):
    """Events, comments, errors between them, a name in two pieces: the provider is not asked to stream, and none is read."""
    words = maximal.Words()
    events = [f"data: {json.dumps(one)}" for one in maximal.chunks(words)]
    named = [{"index": 0, "function": {"name": words.at("a piece of a name")}}]
    pieces = [
        {"choices": [{"index": 0, "delta": {"tool_calls": named}}]},
        {"error": maximal.error(words, 200)["error"]},
    ]
    comment, kind = f": {words.at('a comment')}", f"event: {words.at('an event')}\nid: {words.at('an event id')}"
    lines = [
        comment,
        *events,
        f"{kind}\ndata: {json.dumps(pieces[0])}",
        f"data: {json.dumps(pieces[1])}",
        "data: [DONE]",
        "",
    ]
    provider.says("\n\n".join(lines).encode(), media_type="text/event-stream")

    assert await unseen(sidecar, words) == {}
    assert (await sidecar.chat()).json()["reason"] == "UPSTREAM_INVALID_RESPONSE"


@pytest.mark.parametrize("status", STATUSES)
async def test_no_string_of_a_provider_s_refusal_reaches_a_client(sidecar, provider, status):
    """Messages, types, codes, parameters, headers; as an object, as its fields alone, in words, as no JSON."""
    words = maximal.Words()
    sent, given = maximal.headers(words, status), maximal.error(words, status)
    for body in (
        given,
        given["error"],
        {"error": words.at("an error in words")},
        {"detail": [given]},
        [given],
        words.at("words"),
    ):
        provider.fails(status, body, headers=sent)
        assert await unseen(sidecar, words, sorted(SHORT)) == {}
    provider.says(f"<html>{words.at('a page')}</html>".encode(), media_type="text/html", headers=sent)
    assert await unseen(sidecar, words, sorted(SHORT)) == {}
    assert not words.found(json.dumps([str(one) for one in provider.received]))


@dataclass(frozen=True)
class RawError(ProviderError):
    """The error as the provider wrote it."""

    message: str = ""

    @property
    def meaning(self) -> str:
        return self.message


def switched_off(monkeypatch) -> None:
    """Let everything of a provider through, as if there were no allow-list; what is judged stays the same."""

    def raw(data: bytes, _asked: Any, *, max_depth: int) -> completion.Completion:
        value = strictjson.loads(data, max_depth=max_depth)
        for choice in value["choices"]:
            choice["message"].pop("images", None)  # what is known as an image is read as one
        return completion.assembled(value, value["choices"], value["usage"])

    def raw_error(data: bytes, _status: int) -> ProviderError:
        given = json.loads(data)["error"]
        return RawError(given["code"], given["type"], given["param"], given["message"])

    monkeypatch.setattr(completion, "read", raw)
    monkeypatch.setattr(refusals, "read", raw_error)
    monkeypatch.setattr(upstream, "_model", dict)
    monkeypatch.setattr(embeddings, "answer", lambda data, *_, **__: embeddings.Vectors(data, None, 1, ()))


async def test_the_walk_notices_an_allow_list_that_is_switched_off(sidecar, provider, monkeypatch):
    """Over every front something comes back that nobody judged: the tests above can fail."""
    switched_off(monkeypatch)
    words = maximal.Words()
    value = maximal.answer(words)
    value["usage"] = provided()["usage"]
    provider.completes(value)
    provider.lists(maximal.models(words))
    provider.embeds([0.5], **maximal.around_vectors(words))
    leaks = await unseen(sidecar, words)
    provider.fails(400, maximal.error(words, 400))
    refused = await unseen(sidecar, words, sorted(SHORT - {"models"}))

    assert leaks.keys() == walk.FRONTS.keys() - {"one_model"}, "whose shape has nothing of the list but the name"
    assert "answer.system_fingerprint" in leaks["http"]
    assert refused.keys() == SHORT - {"models"}


CLEAN = message("Fine.", tool_calls=[tool_call("look_up", "{}")])


@pytest.mark.req("SVC-2")
@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_left_is_an_answer_of_the_vendor(sidecar, provider, stream):
    """The largest answer, without what nobody judges, is valid in every field by the vendor's own types."""
    provider.completes(maximal.answer(maximal.Words()))
    sidecar.dpe.report = None
    body = {
        **walk.BODY,
        "model": "gpt-x",
        "stream": stream,
        **({"stream_options": {"include_usage": True}} if stream else {}),
    }
    answer = await sidecar.client.post("/v1/chat/completions", json=body)
    whole = (
        [json.loads(one.removeprefix("data: ")) for one in answer.text.split("\n\n")[:-2]]
        if stream
        else [answer.json()]
    )
    kind = ChatCompletionChunk if stream else ChatCompletion
    read = [kind.model_validate(one, strict=True) for one in whole]

    assert {one.model for one in read} == {"gpt-x"}
    assert {one.id for one in read} == {
        "chatcmpl-" + answer.headers["crp-provenance-report-uri"].rpartition("crp_win_")[2]
    }
    assert all(not one.model_extra for one in read)


def answering(**more: Any) -> Mapping[str, Any]:
    value = provided(CLEAN)
    value["choices"][0] |= more.pop("choice", {})
    value["choices"][0]["message"] = {**CLEAN, **more.pop("message", {})}
    return {**value, **more}


DROPPED = {
    "audio": answering(message={"audio": {"id": "a", "data": "x", "transcript": "x", "expires_at": 1}}),
    "annotations": answering(message={"annotations": [{"type": "url_citation", "url_citation": {"url": "x"}}]}),
    "reasoning": answering(message={"reasoning": "x"}),
    "system_fingerprint": answering(system_fingerprint="fp_1"),
    "service_tier": answering(service_tier="gold"),
    "finish_reason": answering(choice={"finish_reason": "because"}),
    "citations": answering(citations=["https://example.com"]),
    "usage": answering(usage={"total_tokens": 3, "cost": "free"}),
    "logprobs": answering(choice={"logprobs": {"content": [{"token": "Fine.", "logprob": -1}]}}),
    "other": answering(zz={"x": "y"}),
}


@pytest.mark.req("SVC-2", "SVC-5")
@pytest.mark.parametrize("field", DROPPED)
async def test_what_is_not_passed_on_is_counted_and_on_record(sidecar, provider, field):
    """A field of a fixed list in the metric and in the sealed trail; the words of the provider in neither."""
    provider.completes(DROPPED[field])
    sidecar.dpe.report = None
    before = fields.DROPPED.labels(field)._value.get()
    answer = await sidecar.chat(tools=[walk.TOOL])
    events = await sidecar.events(answer.headers["crp-context-session-id"])
    told = [json.loads(one.data_json) for one in events if one.event_type == "DISPATCH_COMPLETED"]

    assert answer.status_code == 200
    assert [one.get("dropped_fields") for one in told] == [[field]]
    assert fields.DROPPED.labels(field)._value.get() == before + 1


async def test_a_plain_answer_drops_nothing(sidecar, provider):
    """What every answer of the vendor has beside its text, empty or as a number, is no loss to be told of."""
    provider.completes(answering(message={"refusal": None, "annotations": [], "audio": None, "function_call": None}))
    sidecar.dpe.report = None
    answer = await sidecar.chat(tools=[walk.TOOL])
    events = await sidecar.events(answer.headers["crp-context-session-id"])

    assert all("dropped_fields" not in json.loads(one.data_json) for one in events)
