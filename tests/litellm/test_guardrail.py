"""Answers that the real LiteLLM proxy carries, asked for by the real ``openai`` client and judged by Interlock (MSH-3)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import openai
import pytest
import pytest_asyncio

from tests.support.servers.litellm import KEY, MASTER, RunningLiteLLM, needs_litellm
from tests.support.servers.ports import free_port
from tests.support.servers.provider import completion, message, tool_call
from tests.support.servers.streaming import answers_as_asked, spoken
from tests.support.servers.tcp import Proxy, listening
from tests.support.sidecar.sidecar import RunningSidecar, running_sidecar

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [
    needs_litellm,
    pytest.mark.req("MSH-3"),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(300),
]

QUESTION: Any = [{"role": "user", "content": "What is it?"}]
STRICT = {"crp-safety-policy": "halt-on HIGH"}
BAD = "Something CRITICAL."
RESPONSE: Any = {
    "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m", "parallel_tool_calls": True, "tools": [],
    "tool_choice": "auto", "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    "output": [{
        "type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": BAD, "annotations": []}],
    }],
}  # fmt: skip
TOOL: Any = {"type": "function", "function": {"name": "send", "parameters": {"type": "object", "properties": {}}}}


@dataclass
class Gateway:
    """The proxy, the sidecar that it asks, and the line between the two."""

    litellm: RunningLiteLLM
    sidecar: RunningSidecar
    line: Proxy
    client: openai.AsyncOpenAI

    async def ask(self, messages: Any = QUESTION, *, session: str = "", **more: Any) -> Any:
        headers = {**STRICT, **({"x-session-id": session} if session else {}), **more.pop("headers", {})}
        return await self.client.chat.completions.create(model="m", messages=messages, extra_headers=headers, **more)

    async def refusal(self, messages: Any = QUESTION, **more: Any) -> openai.APIStatusError:
        with pytest.raises(openai.APIStatusError) as caught:
            await self.ask(messages, **more)
        return caught.value


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory, running_provider) -> AsyncIterator[Gateway]:
    folder = tmp_path_factory.mktemp("litellm")
    async with running_sidecar(folder, litellm_key=KEY) as sidecar:
        line = Proxy(int(sidecar.http.rsplit(":", 1)[1]))
        async with listening(line.handle) as port:
            interlock, provider = f"http://127.0.0.1:{port}", running_provider.base_url
            with RunningLiteLLM(folder, interlock=interlock, provider=provider) as litellm:
                base = f"{litellm.url}/v1"
                async with openai.AsyncOpenAI(base_url=base, api_key=MASTER, max_retries=0, timeout=60) as client:
                    yield Gateway(litellm, sidecar, line, client)


@pytest.fixture
def gateway(running, provider) -> Gateway:
    del provider
    return running


async def test_a_clean_answer_reaches_the_client_and_is_sealed(gateway, provider):
    """The answer is the provider's; its window has the entry of a governed call behind it."""
    answer = await gateway.ask(session="clean")

    assert answer.choices[0].message.content == "The answer is fine."
    assert len(provider.received) == 1
    (judged,) = [one for one in gateway.sidecar.dpe.asked if one.outputs[0].text == "The answer is fine."][-1:]
    assert judged.query == "What is it?"


async def test_a_halted_answer_does_not_reach_the_client(gateway, provider):
    """LiteLLM answers 400 with our reason, and nothing of what was said."""
    provider.answers(BAD)
    refused = await gateway.refusal()

    assert refused.status_code == 400
    assert "SAFETY_HALT: " in refused.message
    assert "CRITICAL." not in refused.response.text


async def test_a_halted_stream_is_withheld(gateway, provider):
    """Not a chunk leaves: the client gets a status instead of a stream."""
    answers_as_asked(provider, b"", spoken("The sky is blue.", " " + BAD))
    refused = await gateway.refusal(stream=True)

    assert refused.status_code == 400
    assert "SAFETY_HALT: " in refused.message
    assert "sky" not in refused.response.text


async def test_a_clean_stream_is_released_once_it_was_judged(gateway, provider):
    """What was streamed is what was judged, as one answer."""
    answers_as_asked(provider, b"", spoken("The sky is blue.", " The sea is wide."))
    judged = len(gateway.sidecar.dpe.asked)
    said = ""
    async for one in await gateway.ask(stream=True):
        said += one.choices[0].delta.content or "" if one.choices else ""

    assert said == "The sky is blue. The sea is wide."
    assert [one.text for one in gateway.sidecar.dpe.asked[-1].outputs] == [said]
    assert len(gateway.sidecar.dpe.asked) == judged + 1


async def test_calls_of_a_name_are_one_session_whose_budget_is_spent(gateway, provider):
    """After three CRITICAL answers the session has nothing left, and the provider is not asked any more."""
    provider.answers(BAD)
    for _ in range(3):
        await gateway.refusal(session="spent")
    asked = len(provider.received)
    provider.answers("The answer is fine.")
    refused = await gateway.refusal(session="spent")

    assert "BUDGET_DEPLETED: " in refused.message
    assert len(provider.received) == asked + 1, (
        "a session that is bound by a name alone is known by the time of its answer"
    )


async def test_a_tool_call_is_judged(gateway, provider):
    """Its arguments reach the judge under the name of the tool."""
    provider.completes(completion(message(None, tool_calls=[tool_call("send", '{"to": "a"}')])))
    answer = await gateway.ask(tools=[TOOL])
    output = gateway.sidecar.dpe.asked[-1].outputs[0]

    assert answer.choices[0].message.tool_calls[0].function.name == "send"
    assert (output.kind, output.tool_name, output.text) == ("tool_call", "send", '{"to": "a"}')


async def test_what_cannot_be_analysed_is_not_sent_to_the_provider(gateway, provider):
    """A picture is refused before the provider is asked."""
    picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    refused = await gateway.refusal([{"role": "user", "content": [{"type": "text", "text": "What?"}, *picture]}])

    assert "UNSUPPORTED_CONTENT: " in refused.message
    assert not provider.received


async def test_a_header_of_ours_that_litellm_hides_is_refused(gateway, provider):
    """A protection that was asked for is never lost without a word."""
    refused = await gateway.refusal(headers={"crp-safety-oversight-mode": "strict"})

    assert "LITELLM_HEADER_HIDDEN: " in refused.message
    assert not provider.received


async def test_a_halted_response_does_not_reach_the_client(gateway, provider):
    """The Responses API: the same contract, and the same end."""
    provider.completes(RESPONSE)
    with pytest.raises(openai.APIStatusError) as caught:
        await gateway.client.responses.create(model="m", input="What is it?", extra_headers=STRICT)

    assert "SAFETY_HALT: " in caught.value.message
    assert BAD not in caught.value.response.text
    assert provider.received[-1].path == "/v1/responses"


async def test_a_halted_message_does_not_reach_the_client(gateway, provider):
    """Anthropic's Messages: LiteLLM asks its provider in another API, and asks us about the answer in the same way."""
    provider.completes(RESPONSE)
    body = {"model": "m", "max_tokens": 100, "messages": QUESTION}
    headers = {**STRICT, "authorization": f"Bearer {MASTER}"}
    async with httpx.AsyncClient(base_url=gateway.litellm.url, trust_env=False, timeout=60) as client:
        answer = await client.post("/v1/messages", json=body, headers=headers)

    assert answer.status_code == 400
    assert "SAFETY_HALT: " in answer.text
    assert BAD not in answer.text


async def test_an_interlock_that_goes_before_the_answer_comes_lets_nothing_pass(gateway, provider):
    """The provider has answered by then; the client gets an error and nothing of it."""
    answering = threading.Event()
    provider.waits_for(answering, "The answer is fine.")
    asking = asyncio.create_task(gateway.refusal())
    await asyncio.to_thread(provider.asked.wait, 30)
    port, gateway.line.port = gateway.line.port, free_port()
    gateway.line.cut()
    answering.set()
    try:
        refused = await asking
    finally:
        gateway.line.port = port

    assert refused.status_code >= 500
    assert "The answer" not in refused.response.text


async def test_without_interlock_nothing_is_answered(gateway, provider):
    """The line is cut: the request is refused, and the provider is not asked."""
    port, gateway.line.port = gateway.line.port, free_port()
    gateway.line.cut()
    try:
        refused = await gateway.refusal()
    finally:
        gateway.line.port = port

    assert refused.status_code >= 500
    assert not provider.received
