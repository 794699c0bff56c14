"""A provider that is asked by its Responses API (``upstream_api``): what it gets, and that nothing of its answer passes unjudged."""

from __future__ import annotations

import json
from typing import Any

import pytest
import pytest_asyncio

from tests.support.sidecar import walk
from tests.support.sidecar.sidecar import a_report, reason_of, running_sidecar
from tests.support.texts import maximal

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("API-1")]

FRONTS = (
    "http",
    "http_stream",
    "responses",
    "responses_stream",
    "responses_kept",
    "grpc_dispatch",
    "held",
    "held_responses",
)
TEXT = "response.output[].content[].text"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sidecar(tmp_path_factory, running_provider):
    folder = tmp_path_factory.mktemp("responses-provider")
    async with running_sidecar(folder, upstream=running_provider.base_url, upstream_api="responses") as running:
        yield running


def answered(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 3, "input_tokens_details": {"cached_tokens": 1}, "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 7,
    }  # fmt: skip
    return {"id": "resp_x", "object": "response", "status": "completed", "output": list(output), "usage": usage, **more}


def said(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_x", "role": "assistant", "status": "completed", "content": [part]}


REASONED = {
    "type": "reasoning", "id": "rs_x", "summary": [{"type": "summary_text", "text": "In short."}],
    "content": [{"type": "reasoning_text", "text": "At length."}],
}  # fmt: skip
CALLED = {
    "type": "function_call",
    "id": "fc_x",
    "call_id": "call_x",
    "name": "weather",
    "arguments": '{"a":1}',
    "status": "completed",
}


async def test_the_provider_is_asked_in_its_own_words(sidecar, provider):
    """A chat request with everything that has a word there; the provider is told to keep nothing."""
    provider.completes(answered(said("Fine.")))
    schema = {"name": "s", "schema": {"type": "object"}, "strict": True}
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Rain?"}]},
            {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.",
             "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "name": "weather", "content": "rain"},
        ],
        "tools": [{"type": "function", "function": {"name": "weather"}}],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "response_format": {"type": "json_schema", "json_schema": schema},
        "verbosity": "low", "reasoning_effort": "low", "max_tokens": 9, "temperature": 0.5, "user": "u", "logprobs": True,
    }  # fmt: skip
    answer = await sidecar.client.post("/v1/chat/completions", json=body)

    assert answer.status_code == 200, answer.text
    assert provider.received[0].path == "/v1/responses"
    assert provider.received[0].body == {
        "model": "m",
        "input": [
            {"type": "message", "role": "system", "content": "Be brief."},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Rain?"}]},
            {"type": "message", "role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        ],
        "store": False,
        "tools": [{"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}, "strict": False}],
        "tool_choice": {"type": "function", "name": "weather"},
        "text": {"verbosity": "low", "format": {"type": "json_schema", **schema}},
        "reasoning": {"effort": "low"}, "max_output_tokens": 9, "temperature": 0.5, "user": "u",
        "include": ["message.output_text.logprobs"],
    }  # fmt: skip


async def test_a_choice_of_some_tools_has_its_own_form_there(sidecar, provider):
    """Without the object around a function; how the provider caches and what it might repeat are left out."""
    provider.completes(answered(said("Fine.")))
    tool = {"type": "function", "function": {"name": "weather"}}
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [tool]}}
    more = {"prompt_cache_retention": "24h", "prediction": {"type": "content", "content": "Fine."}}
    answer = await sidecar.chat(tools=[tool], tool_choice=choice, **more)
    asked = provider.received[0].body

    assert answer.status_code == 200, answer.text
    assert asked["tool_choice"] == {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "weather"}],
    }
    assert asked.keys() == {"model", "input", "store", "tools", "tool_choice"}


async def test_its_answer_is_a_completion_like_any_other(sidecar, provider):
    """Reasoning, text and a call, for a chat client; the ids are ours, and every part was judged."""
    provider.completes(answered(REASONED, said("It rains."), CALLED))
    sidecar.dpe.asked.clear()
    given = (await sidecar.chat("Rain?")).json()
    message = given["choices"][0]["message"]

    assert (message["content"], message["reasoning_content"]) == ("It rains.", "At length.\n\nIn short.")
    assert message["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"a":1}'}
    assert message["tool_calls"][0]["id"] != "call_x"
    assert given["choices"][0]["finish_reason"] == "tool_calls"
    assert given["usage"] == {
        "prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1}, "completion_tokens": 4,
        "completion_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 7,
    }  # fmt: skip
    assert [one.text for one in sidecar.dpe.asked[0].outputs] == ["It rains.", "At length.\n\nIn short.", '{"a":1}']


@pytest.mark.parametrize(
    ("why", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter"), ("zebra", "length")]
)
async def test_an_answer_that_was_broken_off_is_told(sidecar, provider, why, finish):
    """Whatever broke it off."""
    provider.completes(answered(said("It"), status="incomplete", incomplete_details={"reason": why}))

    assert (await sidecar.chat()).json()["choices"][0]["finish_reason"] == finish


FAULTS = {
    "failed": answered(said("x"), status="failed"),
    "unfinished": answered(said("x"), status="in_progress"),
    "with an error": answered(said("x"), error={"code": "server_error", "message": "no"}),
    "no output": {"status": "completed"},
    "no items": answered(output=["x"]),
    "another role": answered({**said("x"), "role": "user"}),
    "text of a wrong type": answered({**said("x"), "content": [{"type": "output_text", "text": 7}]}),
    "content of a wrong type": answered({**said("x"), "content": "x"}),
    "a call without a name": answered({**CALLED, "name": None}),
    "a custom call": answered({**CALLED, "type": "custom_tool_call"}),
    "reasoning of another kind": answered({**REASONED, "content": [{"type": "zebra", "text": "x"}]}),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_what_is_no_finished_answer_is_refused(sidecar, provider, name):
    """As a provider's fault."""
    provider.completes(FAULTS[name])

    assert reason_of(await sidecar.chat()) == "UPSTREAM_INVALID_RESPONSE"


@pytest.mark.req("API-6")
@pytest.mark.finding("F-24")
async def test_no_string_of_the_largest_answer_reaches_a_client_unseen(sidecar, provider):
    """Every kind of item and every field of the vendor's types, and unknown ones: judged, ours, or left out."""
    words = maximal.Words()
    value = maximal.response(words)
    value["output"] = [item for item in value["output"] if item["type"] != "custom_tool_call"]
    provider.completes(value)
    found = {}
    for front in FRONTS:
        sidecar.dpe.report = a_report("HIGH" if front.startswith("held") else "LOW")
        found[front] = await walk.walked(sidecar, front, words)
    sidecar.dpe.report = a_report("LOW")

    assert len({item["type"] for item in value["output"]}) > 10
    assert {front: one.unseen for front, one in found.items() if one.unseen} == {}
    assert {front for front, one in found.items() if TEXT in one.judged} == set(FRONTS), "there is something to see"
    assert json.dumps(value)


NONE = {
    "n": 2, "stop": ["x"], "seed": 1, "presence_penalty": 1, "frequency_penalty": 1, "logit_bias": {"1": 1},
    "functions": [{"name": "f"}],
}  # fmt: skip


@pytest.mark.parametrize("name", NONE)
async def test_what_the_api_has_no_words_for_is_refused_by_name(sidecar, provider, name):
    """Before the provider is asked."""
    answer = await sidecar.client.post(
        "/v1/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": "?"}], name: NONE[name]}
    )

    assert (reason_of(answer), answer.json()["error"]["param"]) == ("INVALID_PARAMETER", name)
    assert provider.received == []
