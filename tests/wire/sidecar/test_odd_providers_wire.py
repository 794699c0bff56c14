"""Providers that speak chat completions with an accent: read where there is no doubt, otherwise refused by name (A-26; API-4)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from tests.support.servers.provider import completion as provided
from tests.support.servers.provider import message
from tests.support.servers.streaming import DONE, chunk, spoken, streams, usage
from tests.support.sidecar.listening import Heard, listened
from tests.support.sidecar.sidecar import reason_of

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("API-4", "SVC-9")]

MARK = b"\xef\xbb\xbf"
CHAT = "/v1/chat/completions"


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def thinking(*said: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [text(one) for one in said]}


async def heard(sidecar: Any, provider: Any, steps: Iterable[bytes], **headers: str) -> Heard:
    streams(provider, steps)
    return await listened(CHAT, sidecar.http, headers=headers)


def told(found: Heard) -> Any:
    """The body of the refusal that a client got in place of a stream."""
    error: Any = found.error
    return error.response.json()


async def test_a_byte_order_mark_says_nothing(shared_sidecar, provider):
    """In front of an answer that comes at once, of a list of models and of a stream."""
    provider.says(MARK + json.dumps(provided(message("It is fine."))).encode())
    whole = await shared_sidecar.chat()
    provider.lists({"data": [{"id": "one"}]})
    first = spoken("It is fine.")[1:]
    streamed = await heard(shared_sidecar, provider, [MARK + first[0], *first[1:]])

    assert (whole.status_code, whole.json()["choices"][0]["message"]["content"]) == (200, "It is fine.")
    assert (streamed.text, streamed.ended, streamed.error) == ("It is fine.", "stop", None)


async def test_a_second_mark_is_no_json(shared_sidecar, provider):
    """One mark is left out, not any number of them."""
    provider.says(MARK + MARK + json.dumps(provided(message("It is fine."))).encode())

    assert reason_of(await shared_sidecar.chat()) == "UPSTREAM_INVALID_RESPONSE"


async def test_a_stream_that_is_closed_without_a_finish_counts_as_cut_off(shared_sidecar, provider):
    """[DONE] says that nothing more comes, and nothing says that the answer is whole: its end is its length."""
    found = await heard(shared_sidecar, provider, [chunk({"content": "It is fine."}), usage(), DONE])

    assert (found.text, found.ended, found.error) == ("It is fine.", "length", None)


CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ENDLESS = {
    "a call": [chunk({"content": "It is fine."}), chunk({"tool_calls": [CALL]}), DONE],
    "nothing said": [chunk({"role": "assistant", "content": ""}), DONE],
    "no choice": [usage(), DONE],
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_nothing_else_may_be_closed_without_a_finish(shared_sidecar, provider, what):
    """A call that may have been cut off is not made, and an answer that says nothing is none."""
    found = await heard(shared_sidecar, provider, ENDLESS[what])

    assert (found.text, told(found)["reason"]) == ("", "UPSTREAM_DISCONNECTED")


async def test_parts_of_text_and_of_thinking_are_read(shared_sidecar, provider):
    """Mistral's reasoning models: thinking is reasoning, and the texts are one text."""
    content = [thinking("Let me ", "see."), text("It is"), text(" fine.")]
    provider.completes(provided(message() | {"content": content}))
    whole = await shared_sidecar.chat()
    deltas = [[thinking("Let me ")], [thinking("see.")], [text("It is")], " fine."]
    steps = [*(chunk({"content": one}) for one in deltas), chunk(finish="stop"), DONE]
    streamed = await heard(shared_sidecar, provider, steps)
    said = whole.json()["choices"][0]["message"]

    assert (said["content"], said["reasoning_content"]) == ("It is fine.", "Let me see.")
    assert (streamed.text, streamed.thought, streamed.ended) == ("It is fine.", "Let me see.", "stop")


@pytest.mark.parametrize("streamed", [False, True])
async def test_thinking_in_parts_is_judged(shared_sidecar, provider, streamed):
    """What alone is grave in the thinking stops the answer, before a byte of it leaves."""
    content = [thinking("This is CRITICAL."), text("It is fine.")]
    halts = {"CRP-Safety-Policy": "halt-on CRITICAL", "CRP-Stream-Final": "event"}
    if streamed:
        steps = [chunk({"content": content}), chunk(finish="stop"), DONE]
        found = await heard(shared_sidecar, provider, steps, **halts)
        said, status = found.text + found.thought, found.error.response.status_code  # type: ignore[union-attr]
    else:
        provider.completes(provided(message() | {"content": content}))
        halted = await shared_sidecar.chat(headers=halts)
        said, status = "fine" if "fine" in halted.text else "", halted.status_code

    assert (said, status) == ("", 451)


UNREAD: dict[str, tuple[Any, str]] = {
    "an image": ([text("x"), {"type": "image_url", "image_url": "secret"}], "CONTENT_IMAGE_URL"),
    "a reference": ([{"type": "reference", "reference_ids": [1]}], "CONTENT_REFERENCE"),
    "an unknown part": ([{"type": "secret"}], "CONTENT_PART"),
    "a type that is no name": ([{"type": ["text"], "text": "x"}], "CONTENT_PART"),
    "no part": (["secret"], "CONTENT_PART"),
    "a text that is none": ([{"type": "text", "text": 3}], "CONTENT_PART"),
    "thinking in thinking": ([thinking("a") | {"thinking": [thinking("secret")]}], "CONTENT_PART"),
    "an object": ({"type": "text", "text": "secret"}, "CONTENT"),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("what", UNREAD)
async def test_other_parts_are_refused_by_name(shared_sidecar, provider, what, streamed):
    """A part that nobody judges is not released, nor is the rest of its answer; its own words are not told."""
    content, fault = UNREAD[what]
    if streamed:
        found = await heard(shared_sidecar, provider, [chunk({"content": content}), chunk(finish="stop"), DONE])
        body = told(found)
    else:
        provider.completes(provided(message() | {"content": content}))
        body = (await shared_sidecar.chat()).json()

    assert (body["reason"], body["metadata"]["fault"]) == ("UPSTREAM_INVALID_RESPONSE", fault)
    assert "secret" not in json.dumps(body)
