"""The bundled provider, called as an application."""

from __future__ import annotations

import httpx
import pytest

from interlock.demo.provider import Replay
from interlock.demo.recording import load
from interlock.sidecar.openai import completion
from interlock.sidecar.provider import prompts, strategies

TURN = load().turns[0]


def body(question: str) -> dict:
    return {"model": "any", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": question}]}


async def post(replay: Replay, payload: object, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(replay.app()), base_url="http://provider") as client:
        return await client.post("/v1/chat/completions", json=payload, headers=headers)


async def test_a_recorded_question_is_answered_as_recorded():
    """The answer is the recorded one, byte for byte, in a chat completion."""
    answer = await post(Replay(load()), body(TURN.question))

    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"] == {"role": "assistant", "content": TURN.answer}


async def test_the_last_user_message_counts():
    """Earlier turns of the conversation do not decide the answer."""
    messages = [*body("something else")["messages"], {"role": "assistant", "content": "x"}]
    question = {"role": "user", "content": [{"type": "text", "text": TURN.question}]}
    answer = await post(Replay(load()), {"messages": [*messages, question]})

    assert answer.json()["id"] == f"chatcmpl-{TURN.item}"


async def test_an_unrecorded_question_is_not_found():
    """The provider answers 404 with a stable code rather than make something up."""
    answer = await post(Replay(load()), body("What is the capital of France?"))

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_recorded")


@pytest.mark.parametrize("payload", [[], {}, {"messages": []}, {"messages": [{"role": "user"}]}, {"messages": "x"}, 7])
async def test_a_malformed_request_is_refused(payload):
    """Whatever the JSON is, the answer is a 400 with a stable code."""
    answer = await post(Replay(load()), payload)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request")


async def test_a_streamed_answer_was_not_recorded():
    """The provider says that it does not stream rather than ignore the wish."""
    answer = await post(Replay(load()), {**body(TURN.question), "stream": True})

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "stream_not_recorded")


@pytest.mark.parametrize("presented", ["", "Bearer other", "Bearer s3cret-key-x"])
async def test_the_providers_own_key_is_needed(presented):
    """Only the key that the mesh keeps is let in."""
    answer = await post(Replay(load(), api_key="s3cret-key"), body(TURN.question), authorization=presented)

    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")


async def test_crp_headers_and_calls_are_counted():
    """What must not reach a provider is seen when it does."""
    replay = Replay(load())
    await post(replay, body(TURN.question), **{"CRP-Session-Token": "t", "X-Other": "o"})

    assert (replay.calls, replay.crp_headers) == (1, {"crp-session-token"})


async def test_a_request_that_forbids_to_repeat_gets_the_second_answer():
    """The one question with a second answer gives it when a system message says so, and only then."""
    turn = next(turn for turn in load().turns if turn.again != turn.answer)
    forbidding = body(turn.question)
    forbidding["messages"].insert(0, {"role": "system", "content": prompts.ANTI_REPETITION})

    first, again = await post(Replay(load()), body(turn.question)), await post(Replay(load()), forbidding)

    assert first.json()["choices"][0]["message"]["content"] == turn.answer
    assert again.json()["choices"][0]["message"]["content"] == turn.again


async def test_a_review_finds_nothing_and_is_one_that_the_sidecar_reads():
    """The request is known by the sidecar's own text, and the answer has the form that it asks for."""
    asked = strategies.verification({"messages": [{"role": "user", "content": TURN.question}]}, TURN.answer)
    answer = await post(Replay(load()), {"model": "any", **asked})

    assert strategies.findings(completion.read(answer.content, completion.AnswerAsked("m"), max_depth=16)) == []
