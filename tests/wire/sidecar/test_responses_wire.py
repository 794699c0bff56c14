"""The Responses API over the real ``openai`` client: answers, events, what goes on from an answer, whose it is."""

from __future__ import annotations

import json
import re

import httpx
import openai
import pytest
import pytest_asyncio
from openai.types.responses import Response as VendorResponse

from tests.support.servers.provider import completion as provided
from tests.support.servers.provider import message, tool_call
from tests.support.sidecar.oversight import HOLDS, decision, held_path, token_for
from tests.support.sidecar.sidecar import NO_COOKIES, a_report, another_sidecar, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("API-1")]

WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}, "strict": True}


@pytest.fixture(autouse=True)
def _low(shared_sidecar):
    """Judge everything harmless, unless a test says otherwise."""
    shared_sidecar.dpe.report = a_report("LOW")


@pytest_asyncio.fixture(loop_scope="module")
async def client(shared_sidecar, provider):
    """The vendor's client, which knows the sidecar by its base URL alone."""
    del provider
    async with of(shared_sidecar.http, "sk-one") as made:
        yield made


def of(http: str, key: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{http}/v1",
        api_key=key,
        max_retries=0,
        http_client=httpx.AsyncClient(trust_env=False, cookies=NO_COOKIES),
    )


async def test_an_answer_is_the_vendors_object(client, provider):
    """Ids are ours, usage is in this API's words, what was asked is said again, and a strict reading finds nothing wrong."""
    raw = await client.responses.with_raw_response.create(
        model="m", input="What is it?", instructions="Be brief.", metadata={"a": "b"}, max_output_tokens=50
    )
    given, body = raw.parse(), json.loads(raw.content)

    assert VendorResponse.model_validate(body, strict=True).output_text == given.output_text == "The answer is fine."
    assert given.id.startswith("resp_")
    assert given.output[0].id == f"msg_{given.id.removeprefix('resp_')}00"
    assert (given.status, given.instructions, given.metadata, given.max_output_tokens) == (
        "completed", "Be brief.", {"a": "b"}, 50,
    )  # fmt: skip
    assert (given.usage.input_tokens, given.usage.output_tokens, given.usage.total_tokens) == (10, 5, 15)
    assert raw.headers["crp-safety-hallucination-risk"] == "LOW"
    assert provider.received[0].path.endswith("/chat/completions")
    assert provider.received[0].body == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is it?"}],
        "max_completion_tokens": 50,
    }


async def test_every_field_of_the_object_is_one_of_the_vendor(client):
    """What the vendor's type does not have is not there, but ``store``, which its service answers with."""
    raw = await client.responses.with_raw_response.create(model="m", input="What is it?", tools=[WEATHER])

    assert json.loads(raw.content).keys() - VendorResponse.model_fields.keys() == {"store"}


EVENTS = [
    "response.created", "response.in_progress",
    "response.output_item.added", "response.content_part.added", "response.reasoning_text.delta",
    "response.reasoning_text.done", "response.content_part.done", "response.output_item.done",
    "response.output_item.added", "response.content_part.added", "response.output_text.delta", "response.output_text.done",
    "response.content_part.done", "response.output_item.done",
    "response.output_item.added", "response.function_call_arguments.delta", "response.function_call_arguments.done",
    "response.output_item.done", "response.completed",
]  # fmt: skip


async def test_a_stream_has_every_event_in_its_order(client, provider):
    """Reasoning, text and a call: numbers rise by one, and the last event has the whole answer."""
    said = message("It rains.", reasoning_content="Let me see.", tool_calls=[tool_call("weather", '{"a":1}')])
    provider.completes(provided(said))
    stream = await client.responses.create(model="m", input="Rain?", tools=[WEATHER], stream=True)
    events = [event async for event in stream]
    last = events[-1].response

    assert [event.type for event in events] == EVENTS
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [item.type for item in last.output] == ["reasoning", "message", "function_call"]
    assert events[0].response.output == []
    assert last.output_text == "It rains."
    assert last.output[2].arguments == '{"a":1}'


async def test_the_helper_of_the_client_reads_the_stream(client, provider):
    """``responses.stream`` follows the deltas and comes to the same text."""
    provider.answers("A long answer. " * 200)
    async with client.responses.stream(model="m", input="Tell me.") as stream:
        deltas = [event.delta async for event in stream if event.type == "response.output_text.delta"]
        final = await stream.get_final_response()

    assert len(deltas) > 1
    assert "".join(deltas) == final.output_text == "A long answer. " * 200


@pytest.mark.parametrize(("finish", "why"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_was_broken_off_is_incomplete(client, provider, finish, why, stream):
    """By its length or by a filter: the status and the last event say so."""
    body = provided(message("It is"))
    body["choices"][0]["finish_reason"] = finish
    provider.completes(body)
    given = await client.responses.create(model="m", input="What?", stream=stream)
    if stream:
        last = [event async for event in given][-1]
        assert last.type == "response.incomplete"
        given = last.response

    assert (given.status, given.incomplete_details.reason) == ("incomplete", why)
    assert given.output[0].status == "incomplete"


async def test_a_refusal_is_a_part_of_its_own(client, provider):
    """The model's own refusal, streamed."""
    provider.completes(provided(message(None, refusal="I will not.")))
    stream = await client.responses.create(model="m", input="Do it.", stream=True)
    events = [event async for event in stream]

    assert "response.refusal.done" in [event.type for event in events]
    assert events[-1].response.output[0].content[0].refusal == "I will not."


async def test_items_become_messages(client, provider):
    """A call and its result, an answer with its reasoning, parts of text: the provider sees one conversation."""
    items = [
        {"role": "developer", "content": "Be exact."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}],
         "encrypted_content": "gAAAA"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "I look.", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": "{}", "status": "completed"},
        {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "sun"}]},
    ]  # fmt: skip
    await client.responses.create(
        model="m", input=items, tools=[WEATHER], tool_choice={"type": "function", "name": "weather"},
        parallel_tool_calls=False, reasoning={"effort": "low"}, temperature=0.5, top_p=0.9, user="u",
        text={"format": {"type": "json_schema", "name": "s", "schema": {"type": "object"}, "strict": True}, "verbosity": "low"},
        include=["reasoning.encrypted_content"], truncation="disabled", store=False,
    )  # fmt: skip
    function = {name: one for name, one in WEATHER.items() if name != "type"}
    call = {"type": "function", "function": {"name": "weather", "arguments": "{}"}}

    assert provider.received[0].body == {
        "model": "m",
        "messages": [
            {"role": "developer", "content": "Be exact."},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.",
             "tool_calls": [{"id": "c1", **call}, {"id": "c2", **call}]},
            {"role": "tool", "tool_call_id": "c1", "content": "rain"},
            {"role": "tool", "tool_call_id": "c2", "content": "sun"},
        ],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "parallel_tool_calls": False, "reasoning_effort": "low", "temperature": 0.5, "top_p": 0.9, "user": "u",
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}, "strict": True}},
        "verbosity": "low",
    }  # fmt: skip


async def test_a_request_goes_on_from_an_answer(client, provider):
    """By previous_response_id: the provider gets everything before, instructions excepted, and the session is the same."""
    first = await client.responses.with_raw_response.create(model="m", input="One?", instructions="Only now.")
    second = await client.responses.with_raw_response.create(
        model="m", input="Two?", previous_response_id=first.parse().id
    )
    third = await client.responses.with_raw_response.create(
        model="m", input="Three?", previous_response_id=second.parse().id
    )
    answer = {"role": "assistant", "content": "The answer is fine."}
    session = first.headers["crp-context-session-id"]

    assert provider.received[2].body["messages"] == [
        {"role": "user", "content": "One?"}, answer, {"role": "user", "content": "Two?"}, answer,
        {"role": "user", "content": "Three?"},
    ]  # fmt: skip
    assert [second.headers["crp-context-session-id"], third.headers["crp-context-session-id"]] == [session, session]
    assert second.headers["crp-session-binding"].startswith("response")
    assert third.parse().previous_response_id == second.parse().id


async def test_an_answer_binds_its_session_before_the_words_do(client):
    """Two sessions with the same words: the id of the answer tells which one goes on."""
    one = await client.responses.with_raw_response.create(model="m", input="Same?", metadata={"session_id": "s-1"})
    two = await client.responses.with_raw_response.create(model="m", input="Same?", metadata={"session_id": "s-2"})
    again = await client.responses.with_raw_response.create(model="m", input="On?", previous_response_id=one.parse().id)

    assert one.headers["crp-context-session-id"] != two.headers["crp-context-session-id"]
    assert again.headers["crp-context-session-id"] == one.headers["crp-context-session-id"]


async def test_a_reference_stands_for_its_item(client, provider):
    """As the AI SDK sends them: an item of an earlier answer by its id."""
    first = await client.responses.create(model="m", input="One?")
    items = [
        {"role": "user", "content": "One?"},
        {"type": "item_reference", "id": first.output[0].id},
        {"role": "user", "content": "Two?"},
    ]
    await client.responses.create(model="m", input=items)

    assert provider.received[1].body["messages"][1] == {"role": "assistant", "content": "The answer is fine."}


@pytest.mark.req("API-6")
async def test_what_is_kept_is_its_callers_alone(shared_sidecar, client):
    """Another key learns nothing of an answer: not by going on from it, reading it, deleting it, nor by its items."""
    first = await client.responses.create(model="m", input="A secret?")
    unknown = "resp_" + "0" * 32
    told = []
    async with of(shared_sidecar.http, "sk-two") as other:
        for name in (first.id, unknown):
            for ask in (
                lambda i: other.responses.create(model="m", input="On?", previous_response_id=i),
                lambda i: other.responses.create(model="m", input=[{"type": "item_reference", "id": f"msg_{i[5:]}00"}]),
                other.responses.retrieve,
                other.responses.delete,
                other.responses.input_items.list,
            ):
                with pytest.raises(openai.NotFoundError) as refused:
                    await ask(name)
                told.append((refused.value.body["code"], refused.value.body["message"].replace(name[5:], "X")))

    assert told[:5] == told[5:]
    assert [code for code, _ in told[:5]] == [
        "previous_response_not_found", "item_not_found", *["response_not_found"] * 3,
    ]  # fmt: skip
    assert (await client.responses.retrieve(first.id)).output_text == "The answer is fine."


async def test_a_kept_answer_is_read_listed_and_deleted(client):
    """GET gives the same object, its input has ids, and after a DELETE nothing goes on from it."""
    first = await client.responses.create(model="m", input="One?")
    second = await client.responses.create(model="m", input="Two?", previous_response_id=first.id)
    listed = await client.responses.input_items.list(second.id)
    shown = await client.responses.retrieve(second.id)
    await client.responses.delete(first.id)

    assert shown == second
    assert [item.content[0].text for item in listed.data] == ["Two?"]
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(first.id)
    with pytest.raises(openai.NotFoundError):
        await client.responses.create(model="m", input="Three?", previous_response_id=second.id)


async def test_store_false_keeps_nothing(client):
    """Neither to read nor to go on from."""
    given = await client.responses.create(model="m", input="One?", store=False)

    assert given.to_dict()["store"] is False
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(given.id)


async def test_a_deployment_may_keep_nothing(tmp_path, upstream):
    """With ``kept_answers_days`` 0 the answer says that it is not stored, and it is not."""
    async with (
        running_sidecar(tmp_path, upstream=upstream, kept_answers_days=0) as sidecar,
        of(sidecar.http, "sk-one") as client,
    ):
        given = await client.responses.create(model="m", input="One?", store=True)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(given.id)

    assert given.to_dict()["store"] is False


async def test_every_replica_finds_it(shared_sidecar, client):
    """Another sidecar over the same services goes on from the answer."""
    first = await client.responses.with_raw_response.create(model="m", input="One?")
    async with another_sidecar(shared_sidecar) as http, of(http, "sk-one") as elsewhere:
        second = await elsewhere.responses.with_raw_response.create(
            model="m", input="Two?", previous_response_id=first.parse().id
        )

    assert second.headers["crp-context-session-id"] == first.headers["crp-context-session-id"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_halted_answer_is_neither_released_nor_kept(shared_sidecar, client, provider, stream):
    """451 with our reason and headers; there is nothing of it in the error."""
    provider.answers("CRITICAL nonsense")
    shared_sidecar.dpe.report = a_report("CRITICAL")
    with pytest.raises(openai.APIStatusError) as refused:
        await client.responses.create(
            model="m", input="What?", stream=stream, extra_headers={"CRP-Safety-Policy": "halt-on CRITICAL"}
        )
    response = refused.value.response

    assert response.status_code == 451
    assert response.json()["crp_halt_reason"] == "CRITICAL_HALLUCINATION_RISK"
    assert response.headers["crp-safety-hallucination-risk"] == "CRITICAL"
    assert "nonsense" not in response.text
    window = re.search(r"crp_win_([0-9a-f]{32})", response.headers["crp-provenance-report-uri"])
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(f"resp_{window[1]}")


@pytest.mark.req("OVR-4")
@pytest.mark.parametrize("stream", [False, True])
async def test_a_held_answer_is_released_in_the_same_form(shared_sidecar, client, provider, stream):
    """By the same request with a reviewer's approval; the chat front does not hand it out, and what follows goes on from it."""
    provider.answers("HIGH risk, and wanted all the same.")
    shared_sidecar.dpe.report = a_report("HIGH")
    asked = {"model": "m", "input": "What?", "stream": stream}
    held = await shared_sidecar.client.post(
        "/v1/responses", json=asked, headers={**HOLDS, "authorization": "Bearer sk-one"}
    )
    headers = {"crp-session-token": token_of(held), "authorization": "Bearer sk-one"}
    item = await shared_sidecar.client.get(held_path(held), headers=headers)
    token = token_for(item.json())
    decided = await shared_sidecar.mesh.audit.DecideHeld(decision(token))
    headers |= {"crp-oversight-token": token}
    elsewhere = await shared_sidecar.client.post(
        "/v1/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": "What?"}]}, headers=headers
    )
    given = await client.responses.create(**asked, extra_headers=headers)
    if stream:
        given = [event async for event in given][-1].response

    assert not decided.HasField("refusal")
    assert elsewhere.json()["reason"] == "HELD_FORM_DIFFERS"
    assert given.output_text == "HIGH risk, and wanted all the same."
    assert (await client.responses.retrieve(given.id)).output_text == given.output_text


async def test_the_same_question_again_is_not_modified(shared_sidecar, client):
    """A conditional call: 304 by the ETag of the context of the answer before."""
    etag = "sha256:" + "ab" * 32
    shared_sidecar.dpe.report = a_report("LOW", envelope_etag=etag)
    first = await client.responses.with_raw_response.create(model="m", input="What is it?")
    with pytest.raises(openai.APIStatusError) as refused:
        await client.responses.create(
            model="m", input="What is it?",
            extra_headers={"CRP-Context-If-Match": etag, "CRP-Session-Token": token_of(first)},
        )  # fmt: skip

    assert refused.value.status_code == 304


async def test_the_provider_s_refusal_keeps_its_shape(client, provider):
    """Its status, and a word of a fixed list."""
    provider.fails(429, headers={"retry-after": "3"})
    with pytest.raises(openai.RateLimitError) as refused:
        await client.responses.create(model="m", input="What?")

    assert refused.value.response.headers["retry-after"] == "3"
    assert refused.value.body["code"] == "upstream_rate_limited"


ITEM = {"role": "user", "content": "a"}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
BAD = {
    "no input": ({}, "INVALID_PARAMETER", "input"),
    "no items": ({"input": []}, "INVALID_PARAMETER", "input"),
    "a number": ({"input": 7}, "INVALID_PARAMETER", "input"),
    "no item": ({"input": ["a"]}, "INVALID_PARAMETER", "input[0]"),
    "an item without a type": ({"input": [{"text": "a"}]}, "UNSUPPORTED_CONTENT", "input[0].type"),
    "an unknown item": ({"input": [ITEM, {"type": "zebra"}]}, "UNSUPPORTED_CONTENT", "input[1].type"),
    "a hosted call": ({"input": [{"type": "web_search_call", "id": "ws_1"}]}, "UNSUPPORTED_CONTENT", "input[0].type"),
    "an unknown field": ({"input": [{**ITEM, "zebra": 1}]}, "UNKNOWN_PARAMETER", "input[0].zebra"),
    "an unknown role": ({"input": [{**ITEM, "role": "zebra"}]}, "INVALID_PARAMETER", "input[0].role"),
    "a role of a wrong type": ({"input": [{**ITEM, "role": {}}]}, "INVALID_PARAMETER", "input[0].role"),
    "no content": ({"input": [{"role": "user"}]}, "INVALID_PARAMETER", "input[0].content"),
    "content of a wrong type": ({"input": [{**ITEM, "content": 7}]}, "INVALID_PARAMETER", "input[0].content"),
    "an image": (
        {"input": [{**ITEM, "content": [{"type": "input_image", "image_url": "https://x"}]}]},
        "UNSUPPORTED_CONTENT", "input[0].content[0].type",
    ),
    "a file in a result": (
        {"input": [CALL, {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_file", "file_id": "f"}]}]},
        "UNSUPPORTED_CONTENT", "input[1].output[0].type",
    ),
    "a part of an answer in a question": (
        {"input": [{**ITEM, "content": [{"type": "output_text", "text": "a"}]}]}, "INVALID_PARAMETER", "input[0].content[0].type",
    ),
    "text of a wrong type": (
        {"input": [{**ITEM, "content": [{"type": "input_text", "text": 7}]}]}, "INVALID_PARAMETER", "input[0].content[0].text",
    ),
    "a call without a name": ({"input": [{**CALL, "name": None}]}, "INVALID_PARAMETER", "input[0].name"),
    "a call without arguments": ({"input": [ITEM, {**CALL, "arguments": {}}]}, "INVALID_PARAMETER", "input[1].arguments"),
    "a call without an id": ({"input": [{**CALL, "call_id": ""}]}, "INVALID_PARAMETER", "input[0].call_id"),
    "a result without an id": (
        {"input": [CALL, {"type": "function_call_output", "output": "a"}]}, "INVALID_PARAMETER", "input[1].call_id",
    ),
    "a foreign reference": ({"input": [{"type": "item_reference", "id": "msg_abc"}]}, "ITEM_NOT_FOUND", "input[0]"),
    "a reference of a wrong type": ({"input": [{"type": "item_reference", "id": 7}]}, "INVALID_PARAMETER", "input[0].id"),
    "a foreign answer": ({"input": "a", "previous_response_id": "resp_abc"}, "PREVIOUS_RESPONSE_NOT_FOUND", "previous_response_id"),
    "an answer of a wrong type": ({"input": "a", "previous_response_id": 7}, "INVALID_PARAMETER", "previous_response_id"),
    "a conversation": ({"input": "a", "conversation": "conv_1"}, "UNSUPPORTED_CONTENT", "conversation"),
    "background": ({"input": "a", "background": True}, "UNSUPPORTED_CONTENT", "background"),
    "a template": ({"input": "a", "prompt": {"id": "p"}}, "UNSUPPORTED_CONTENT", "prompt"),
    "a hosted tool": ({"input": "a", "tools": [{"type": "web_search"}]}, "UNSUPPORTED_CONTENT", "tools[0].type"),
    "a nameless tool": ({"input": "a", "tools": [{"type": "function"}]}, "INVALID_PARAMETER", "tools[0].name"),
    "a hosted choice": ({"input": "a", "tool_choice": {"type": "file_search"}}, "UNSUPPORTED_CONTENT", "tool_choice.type"),
    "truncation": ({"input": "a", "truncation": "auto"}, "INVALID_PARAMETER", "truncation"),
    "what is to be included": ({"input": "a", "include": ["zebra"]}, "INVALID_PARAMETER", "include[0]"),
    "an unknown effort": ({"input": "a", "reasoning": {"effort": "zebra"}}, "INVALID_PARAMETER", "reasoning.effort"),
    "a format without a schema": (
        {"input": "a", "text": {"format": {"type": "json_schema", "name": "s"}}}, "INVALID_PARAMETER", "text.format.schema",
    ),
    "tokens": ({"input": "a", "max_output_tokens": 0}, "INVALID_PARAMETER", "max_output_tokens"),
    "instructions": ({"input": "a", "instructions": 7}, "INVALID_PARAMETER", "instructions"),
    "metadata": ({"input": "a", "metadata": {"a": 7}}, "INVALID_PARAMETER", "metadata"),
    "store": ({"input": "a", "store": "yes"}, "INVALID_PARAMETER", "store"),
    "an unknown parameter": ({"input": "a", "zebra": 1}, "UNKNOWN_PARAMETER", "zebra"),
    "several choices": ({"input": "a", "n": 2}, "UNKNOWN_PARAMETER", "n"),
}  # fmt: skip


@pytest.mark.req("API-6")
@pytest.mark.parametrize("name", BAD)
async def test_bad_input_is_refused_by_its_place(shared_sidecar, provider, name):
    """Before anything is begun, with a stable reason in the vendor's shape."""
    body, reason, param = BAD[name]
    answer = await shared_sidecar.client.post("/v1/responses", json={"model": "m", **body})

    assert (answer.json()["reason"], answer.json()["error"]["param"]) == (reason, param)
    assert answer.status_code == (404 if reason.endswith("NOT_FOUND") else 400)
    assert answer.json()["error"].keys() == {"message", "type", "param", "code"}
    assert provider.received == []


RAW = {
    "a key twice": (b'{"model":"m","input":"a","input":"b"}', 400, "DUPLICATE_KEY"),
    "too deep": (b'{"model":"m","input":' + b"[" * 100 + b"]" * 100 + b"}", 400, "JSON_TOO_DEEP"),
    "too large": (b'{"model":"m","input":"' + b"a" * 70_000 + b'"}', 413, "REQUEST_TOO_LARGE"),
    "no object": (b"[]", 400, "INVALID_PARAMETER"),
    "no JSON": (b"{", 400, "INVALID_JSON"),
}


@pytest.mark.req("API-6")
@pytest.mark.parametrize("name", RAW)
async def test_bytes_that_are_no_request_are_refused(shared_sidecar, provider, name):
    """As on every front."""
    data, status, reason = RAW[name]
    answer = await shared_sidecar.client.post(
        "/v1/responses", content=data, headers={"content-type": "application/json"}
    )

    assert (answer.status_code, answer.json()["reason"]) == (status, reason)
    assert provider.received == []
