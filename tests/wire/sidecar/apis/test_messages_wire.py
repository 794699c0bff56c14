"""The real ``anthropic`` client in front of a real sidecar: plain, tools over several turns, streamed, halted, refused (API-2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anthropic
import httpx
import pytest
from anthropic.types import Message, RawMessageStreamEvent
from pydantic import TypeAdapter

from tests.support.servers.provider import completion, message, tool_call
from tests.support.sidecar.oversight import HOLDS, decision, held_path, token_for
from tests.support.sidecar.plain import StrippingProxy
from tests.support.sidecar.sidecar import RunningSidecar, a_report, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [pytest.mark.req("API-2"), pytest.mark.asyncio(loop_scope="module")]

HALTS = {"CRP-Safety-Policy": "halt-on CRITICAL"}
ASKED: Mapping[str, Any] = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "What is it?"}]}
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
TOOLS = [{"name": "look_up", "description": "Looks something up.", "input_schema": SCHEMA}]
CALLS = message(
    "Let me look that up for you.",
    reasoning_content="The sky, then.",
    tool_calls=[tool_call("look_up", '{"q": "sky"}', "c1"), tool_call("look_up", '{"q": "sea"}', "c2")],
)
EVENTS = TypeAdapter(RawMessageStreamEvent)


@pytest.fixture
def sidecar(shared_sidecar, provider):
    """The module's sidecar, before a provider that has been told nothing."""
    shared_sidecar.dpe.report = None
    return shared_sidecar


def client(http: str, **more: Any) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(**{"base_url": http, "api_key": "sk-ant", "max_retries": 0, **more})


async def posted(sidecar: RunningSidecar, headers: Mapping[str, str] | None = None, **more: Any) -> httpx.Response:
    return await sidecar.client.post("/v1/messages", json={**ASKED, **more}, headers=dict(headers or {}))


async def test_a_plain_call(sidecar, provider):
    """The answer is the provider's in Anthropic's words, the key is passed on as the provider takes it, and the report is told of."""
    async with client(sidecar.http) as made:
        raw = await made.messages.with_raw_response.create(**ASKED, system=[{"type": "text", "text": "Be brief."}])
        answer = await raw.parse()

    assert [(one.type, one.text) for one in answer.content] == [("text", "The answer is fine.")]
    assert (answer.stop_reason, answer.usage.input_tokens, answer.usage.output_tokens) == ("end_turn", 10, 5)
    assert answer.id == "msg_" + raw.headers["crp-provenance-report-uri"].rpartition("crp_win_")[2]
    assert provider.received[0].header("authorization") == "Bearer sk-ant"
    assert provider.received[0].body == {
        "model": "m",
        "max_completion_tokens": 100,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is it?"}],
    }


@pytest.mark.req("ATT-1")
@pytest.mark.parametrize("stream", [False, True])
async def test_tools_over_several_turns_bind_by_the_conversation(sidecar, provider, stream):
    """The history that the client sends back, thinking and two results among it, finds its session; no cookie helps."""
    key = f"sk-{stream}"
    with StrippingProxy(sidecar.http) as proxy:
        async with client(proxy.http, api_key=key) as made:
            history: list[Any] = [{"role": "user", "content": "What colour are sky and sea?"}]

            async def said() -> tuple[Message, Mapping[str, str]]:
                asked = {**ASKED, "messages": history, "tools": TOOLS}
                if not stream:
                    raw = await made.messages.with_raw_response.create(**asked)
                    return await raw.parse(), raw.headers
                async with made.messages.stream(**asked) as events:
                    return await events.get_final_message(), events.response.headers

            provider.completes(completion(CALLS))
            first, one = await said()
            calls = [block for block in first.content if block.type == "tool_use"]
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "blue"}]}
                for call in calls
            ]
            history += [{"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
            provider.answers("Both of them are blue, as the tool says.")
            second, two = await said()
            history += [{"role": "assistant", "content": second.content}, {"role": "user", "content": "And at night?"}]
            _, three = await said()

    assert [one.type for one in first.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert (first.stop_reason, calls[1].input) == ("tool_use", {"q": "sea"})
    assert {headers["crp-context-session-id"] for headers in (one, two, three)} == {one["crp-context-session-id"]}
    assert [headers["crp-session-binding"] for headers in (one, two, three)] == [
        "caller",
        "conversation",
        "conversation",
    ]
    sent = provider.received[1].body["messages"]
    assert [(one["role"], one.get("tool_call_id")) for one in sent[2:]] == [("tool", call.id) for call in calls]
    assert [call["id"] for call in sent[1]["tool_calls"]] == [call.id for call in calls]


async def test_a_stream_has_every_event_in_order_and_is_valid(sidecar, provider):
    """By the vendor's own types, strictly; the pieces put together are the message that is not streamed."""
    provider.completes(completion({**CALLS, "content": "word " * 300}))
    whole = Message.model_validate((await posted(sidecar, tools=TOOLS)).json(), strict=True)
    streamed = await posted(sidecar, tools=TOOLS, stream=True)
    lines = [one.split("\n") for one in streamed.text.split("\n\n")[:-1]]
    data = [json.loads(line.removeprefix("data: ")) for _, line in lines]
    read = [EVENTS.validate_python(one, strict=True) for one in data if one["type"] != "ping"]
    said = "".join(one["delta"].get("text", "") for one in data if one["type"] == "content_block_delta")

    assert [line.removeprefix("event: ") for line, _ in lines] == [one["type"] for one in data]
    assert [one["type"] for one in data[:2]] == ["message_start", "ping"]
    assert [one["type"] for one in data[-2:]] == ["message_delta", "message_stop"]
    starts = [one["content_block"]["type"] for one in data if one["type"] == "content_block_start"]
    assert starts == ["thinking", "text", "tool_use", "tool_use"]
    assert said == whole.content[1].text == "word " * 300
    assert not any(one.model_extra for one in (whole, *read))
    assert streamed.headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize(
    ("asked", "reason", "tokens"),
    [("length", "max_tokens", 5), ("content_filter", "refusal", 5), ("eos", "end_turn", 5)],
)
async def test_why_it_stopped_is_in_anthropic_s_words(sidecar, provider, asked, reason, tokens):
    """The end of the provider's answer by the vendor's own list."""
    body = completion(message("It is."))
    body["choices"][0]["finish_reason"] = asked
    provider.completes(body)
    answer = (await posted(sidecar)).json()

    assert (answer["stop_reason"], answer["stop_sequence"], answer["usage"]["output_tokens"]) == (reason, None, tokens)


async def test_what_a_cache_gave_is_told_apart(sidecar, provider):
    """Anthropic's input tokens are those that no cache gave."""
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 8},
    }
    provider.completes(completion(message("It is."), usage=usage))
    told = (await posted(sidecar)).json()["usage"]

    assert [told[name] for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")] == [
        12,
        80,
        8,
    ]


@pytest.mark.parametrize(
    ("arguments", "stream"),
    [("not JSON", True), ("[1]", False), ('{"a": 1, "a": 2}', False), ('{"a": NaN}', True), ('"x"', False)],
)
async def test_arguments_that_are_no_object_are_one_field_of_it(sidecar, provider, arguments, stream):
    """An input must be an object: what was judged stands in it as it was, and comes back to the provider as it was."""
    provider.completes(completion(message(None, tool_calls=[tool_call("look_up", arguments)])))
    async with client(sidecar.http) as made, made.messages.stream(**ASKED, tools=TOOLS) as events:
        answer = await events.get_final_message()
    if not stream:
        answer = Message.model_validate((await posted(sidecar, tools=TOOLS)).json())
    used = answer.content[0]
    result = [{"type": "tool_result", "tool_use_id": used.id, "content": "x"}]
    history = [{"role": "assistant", "content": [used.model_dump()]}, {"role": "user", "content": result}]
    history[0]["content"][0].pop("toolset_name", None)
    await posted(sidecar, messages=[*ASKED["messages"], *history])

    assert used.input == {"unreadable_arguments": arguments}
    assert provider.received[-1].body["messages"][1]["tool_calls"][0]["function"]["arguments"] == arguments


async def test_thinking_is_judged_before_it_is_released(sidecar, provider):
    """The judge is given the thinking as an output of its own, and halts what it finds in it alone."""
    provider.completes(completion(message("Fine.", reasoning_content="This is CRITICAL.")))
    halted = await posted(sidecar, HALTS)
    given = [one.text for one in sidecar.dpe.asked[-1].outputs]

    assert "This is CRITICAL." in given
    assert halted.status_code == 451
    assert "CRITICAL." not in halted.text


@pytest.mark.parametrize("stream", [False, True])
async def test_a_halt_is_a_typed_error_with_everything_that_a_451_tells(sidecar, provider, stream):
    """Anthropic's error shape, with our reason, its metadata and the fields of a halt; the client does not try again."""
    provider.answers("It is CRITICAL.")
    async with client(sidecar.http, max_retries=2) as made:
        with pytest.raises(anthropic.APIStatusError) as caught:
            await made.messages.create(**ASKED, stream=stream, extra_headers=HALTS)
    body = caught.value.response.json()

    assert caught.value.status_code == 451
    assert (body["type"], body["error"]["type"], body["reason"]) == ("error", "permission_error", "SAFETY_HALT")
    assert body["crp_halt_reason"] == "CRITICAL_HALLUCINATION_RISK"
    assert body["metadata"]["directive"] == "halt-on CRITICAL"
    assert len(provider.received) == 1


@pytest.mark.req("OVR-4")
@pytest.mark.parametrize("stream", [False, True])
async def test_a_held_answer_is_released_in_the_form_that_it_was_asked_in(sidecar, provider, stream):
    """It is held as a message; chat completions and the other form are told so, and the approval gets it as it was asked for."""
    sidecar.dpe.report = a_report("HIGH")
    held = await posted(sidecar, HOLDS, stream=stream)
    headers = {"crp-session-token": token_of(held)}
    item = (await sidecar.client.get(held_path(held), headers=headers)).json()
    token = token_for(item)
    await sidecar.mesh.audit.DecideHeld(decision(token))
    headers["crp-oversight-token"] = token
    as_chat = await sidecar.chat(headers=headers)
    otherwise = await posted(sidecar, headers, stream=not stream)
    released = await posted(sidecar, headers, stream=stream)

    assert [(one.status_code, one.json()["reason"]) for one in (as_chat, otherwise)] == [(409, "HELD_FORM_DIFFERS")] * 2
    assert released.status_code == 200
    assert released.text.startswith("event: message_start" if stream else '{"id":"msg_')
    assert "The answer is fine." in released.text


@pytest.mark.req("SVC-3")
@pytest.mark.parametrize(
    ("status", "error", "kind", "tries"),
    [
        (400, anthropic.BadRequestError, "invalid_request_error", 1),
        (401, anthropic.AuthenticationError, "authentication_error", 1),
        (404, anthropic.NotFoundError, "not_found_error", 1),
        (413, anthropic.RequestTooLargeError, "request_too_large", 1),
        (429, anthropic.RateLimitError, "rate_limit_error", 2),
        (500, anthropic.InternalServerError, "api_error", 2),
    ],
)
async def test_provider_errors_are_the_client_s_typed_errors(sidecar, provider, status, error, kind, tries):
    """What the provider says of a request reaches the client in its own type, with the retries that it would make."""
    provider.fails(status, headers={"retry-after": "0"})
    async with client(sidecar.http, max_retries=1) as made:
        with pytest.raises(error) as caught:
            await made.messages.create(**ASKED)

    assert caught.value.response.json()["error"]["type"] == kind
    assert len(provider.received) == tries


KEYS = {
    "x-api-key": ({"x-api-key": "a"}, 200),
    "bearer": ({"authorization": "Bearer a"}, 200),
    "both the same": ({"x-api-key": "a", "authorization": "Bearer a"}, 200),
    "both different": ({"x-api-key": "a", "authorization": "Bearer b"}, 401),
    "two of one": ([("x-api-key", "a"), ("x-api-key", "a")], 401),
    "none": ({}, 200),
}


@pytest.mark.req("TOK-3")
@pytest.mark.parametrize("how", KEYS)
async def test_one_key_by_either_header(sidecar, provider, how):
    """Both headers with different keys would be two callers: refused, and nothing is asked."""
    headers, status = KEYS[how]
    answer = await sidecar.client.post("/v1/messages", json=dict(ASKED), headers=headers)

    assert answer.status_code == status
    assert [one.header("authorization") for one in provider.received] == (["Bearer a"] if headers else [None]) * (
        status == 200
    )
    assert status == 200 or answer.json()["error"]["type"] == "authentication_error"


async def test_the_same_key_is_the_same_caller_on_every_front(sidecar):
    """A session that was begun by chat completions goes on by messages with its token."""
    first = await sidecar.chat(headers={"authorization": "Bearer a"})
    second = await posted(sidecar, {"x-api-key": "a", "crp-session-token": token_of(first)})
    foreign = await posted(sidecar, {"x-api-key": "b", "crp-session-token": token_of(second)})

    assert second.headers["crp-context-window"] == "2/200"
    assert (foreign.status_code, foreign.json()["type"]) == (401, "error")


async def test_tokens_are_not_counted_and_the_refusal_says_where_they_are(sidecar):
    """count_tokens is refused by name."""
    async with client(sidecar.http) as made:
        with pytest.raises(anthropic.APIStatusError, match="has the tokens that were counted") as caught:
            await made.messages.count_tokens(model="m", messages=ASKED["messages"])

    assert caught.value.status_code == 501


async def test_nothing_is_imported_for_messages_before_the_first_request():
    """An idle sidecar holds the adapters alone."""
    import subprocess
    import sys

    code = (
        "import sys, interlock.sidecar.wiring\n"
        "print([name for name in sys.modules if name.startswith('interlock.sidecar.apis.messages.') or name.endswith('completions.legacy')"
        " or name.startswith('interlock.sidecar.provider.messages') or name == 'interlock.sidecar.openai.embeddings'])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    assert found == "['interlock.sidecar.apis.messages.adapter']"


async def test_top_k_reaches_a_provider_that_knows_it(tmp_path, upstream, provider):
    """Where the provider is asked by Messages it is passed on, with the thinking as it was asked for."""
    provider.completes({"type": "message", "content": [{"type": "text", "text": "Fine."}], "stop_reason": "end_turn"})
    async with running_sidecar(tmp_path, upstream=upstream, upstream_api="messages") as sidecar:
        answer = await posted(sidecar, top_k=5, thinking={"type": "adaptive"})

    assert answer.status_code == 200
    assert {name: provider.received[0].body[name] for name in ("top_k", "thinking", "max_tokens")} == {
        "top_k": 5, "thinking": {"type": "adaptive"}, "max_tokens": 100,
    }  # fmt: skip


async def test_top_k_reaches_a_provider_of_chat_completions_by_setting(tmp_path, upstream, provider):
    """Servers of open models know it; without the setting it is refused by name before the provider is asked."""
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        answer = await posted(sidecar, top_k=5)
    async with running_sidecar(tmp_path, upstream=upstream, provider_parameters="") as sidecar:
        refused = await posted(sidecar, top_k=5)

    assert (answer.status_code, provider.received[0].body["top_k"]) == (200, 5)
    assert (refused.status_code, len(provider.received)) == (400, 1)
