"""The guardrail that LiteLLM asks, by the questions that LiteLLM 1.110 was seen to send (MSH-3; tests/litellm has the real proxy)."""

from __future__ import annotations

import hashlib
import itertools
import re
from typing import Any

import pytest
import pytest_asyncio

from tests.support.sidecar.sidecar import running_sidecar

pytestmark = [pytest.mark.req("MSH-3"), pytest.mark.asyncio(loop_scope="module")]

PATH = "/beta/litellm_basic_guardrail_api"
KEY = "interlock-and-litellm"
VIRTUAL = hashlib.sha256(b"sk-agent").hexdigest()
STRICT = {"crp-safety-policy": "halt-on HIGH"}
MESSAGES = [
    {"role": "system", "content": "Be."},
    {"role": "user", "content": [{"type": "text", "text": "What?"}]},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call_0", "type": "function", "function": {"name": "send", "arguments": "{}"}}]},
    {"role": "tool", "content": "The sky is blue.", "tool_call_id": "call_0"},
]  # fmt: skip
TOOLS = [{"type": "function", "function": {"name": "send", "parameters": {"type": "object", "properties": {}}}}]
BAD = "Something CRITICAL."

_calls = itertools.count(1)


def call_id() -> str:
    return f"8b50c72a-e95d-43c8-ba9c-{next(_calls):012d}"


def question(about: str, call: str, **more: Any) -> dict[str, Any]:
    """What LiteLLM asks, with the fields that it leaves empty."""
    return {
        "input_type": about, "litellm_call_id": call, "litellm_trace_id": "61859308", "structured_messages": None, "images": None,
        "tools": None, "texts": [], "request_data": {"user_api_key_hash": VIRTUAL, "user_api_key_end_user_id": "u1"},
        "request_headers": {"user-agent": "x", "x-foo": "[present]", **STRICT}, "litellm_version": "1.110.2",
        "additional_provider_specific_params": {}, "tool_calls": None, "model": "m", **more,
    }  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sidecar(tmp_path_factory):
    """It knows of no provider: LiteLLM has it."""
    async with running_sidecar(tmp_path_factory.mktemp("litellm"), litellm_key=KEY, max_body_bytes=65_536) as running:
        yield running


async def asked(sidecar: Any, body: Any, *, key: str = KEY) -> str:
    """Ask, and return NONE, or why it is blocked. The status is 200 in every case."""
    response = await sidecar.client.post(PATH, json=body, headers={"x-api-key": key})
    assert response.status_code == 200
    told = response.json()
    return told["blocked_reason"] if told["action"] == "BLOCKED" else told["action"]


async def asked_of_both(sidecar: Any, text: str, **more: Any) -> str:
    """Ask about a request and its answer, and return what is told of the answer."""
    call = call_id()
    request = question("request", call, structured_messages=MESSAGES, tools=TOOLS, texts=["Be.", "What?"], **more)
    assert await asked(sidecar, request) == "NONE"
    return await asked(sidecar, question("response", call, texts=[text], **more))


async def test_an_answer_is_judged_against_what_its_request_carried(sidecar):
    """The tool's result is a source of it, and the user's question is what it answers."""
    told = await asked_of_both(sidecar, "The sky is blue.")
    judged = sidecar.dpe.asked[-1]

    assert told == "NONE"
    assert [one.text for one in judged.outputs] == ["The sky is blue."]
    assert "The sky is blue." in [fact.content for fact in judged.facts]
    assert judged.query == "What?"


async def test_a_halted_answer_is_blocked_with_its_reason_and_ids(sidecar):
    """The client of LiteLLM reads these words; nothing of the answer is among them."""
    told = await asked_of_both(sidecar, BAD)

    assert re.fullmatch(r"SAFETY_HALT: .+ \(session crp_sess_[0-9a-f]{32}, window crp_win_[0-9a-f]{32}.*\)", told)
    assert "Something" not in told


async def test_it_is_sealed_and_charged_like_every_answer(sidecar):
    """The session's trail has the judgement, the halt and the charge; the window's HMAC stands behind its report."""
    told = await asked_of_both(sidecar, BAD)
    session = re.search(r"crp_sess_[0-9a-f]{32}", told)
    assert session
    events = [one.event_type for one in await sidecar.events(session[0])]

    assert {"SESSION_CREATED", "DPE_COMPLETED", "SAFETY_HALT", "WINDOW_SEALED"} <= set(events)


async def test_the_key_that_litellm_verified_is_the_caller(sidecar):
    """The same key has the same scope at the sidecar itself: it sees the report of what was halted, and another key does not."""
    window = re.search(r"crp_win_[0-9a-f]{32}", await asked_of_both(sidecar, BAD))
    assert window
    path = f"/crp/v3/reports/{window[0]}"
    own, other = [
        await sidecar.client.get(path, headers={"authorization": f"Bearer {key}"}) for key in ("sk-agent", "sk-other")
    ]

    assert (own.status_code, other.status_code) == (200, 404)


async def test_a_session_that_was_halted_is_refused_before_the_provider_is_asked(sidecar):
    """Three CRITICAL answers spend what its name leads to; the next request that names the session itself goes nowhere."""
    headers = {**STRICT, "x-session-id": "spent"}
    *_, told = [await asked_of_both(sidecar, BAD, request_headers=headers) for _ in range(3)]
    session = re.search(r"crp_sess_[0-9a-f]{32}", told)
    assert session
    named = {**STRICT, "crp-context-session-id": session[0]}
    request = question("request", call_id(), structured_messages=MESSAGES, request_headers=named)

    assert (await asked(sidecar, request)).startswith("BUDGET_DEPLETED: ")


async def test_an_answer_is_judged_once(sidecar):
    """A second question about the same call has no request behind it: a stream that is scanned in pieces is cut."""
    call = call_id()
    await asked(sidecar, question("request", call, structured_messages=MESSAGES))
    first = await asked(sidecar, question("response", call, texts=["The sky"]))
    second = await asked(sidecar, question("response", call, texts=["The sky is blue."]))

    assert first == "NONE"
    assert second.startswith("LITELLM_REQUEST_UNKNOWN: ")


async def test_another_callers_answer_does_not_get_my_request(sidecar):
    """An id that a client chose leads to requests of its own key alone."""
    call = call_id()
    await asked(sidecar, question("request", call, structured_messages=MESSAGES))
    other = question("response", call, texts=["The sky is blue."], request_data={"user_api_key_hash": "f" * 64})

    assert (await asked(sidecar, other)).startswith("LITELLM_REQUEST_UNKNOWN: ")


async def test_an_id_in_use_is_not_given_another_request(sidecar):
    """Otherwise an answer could be judged against sources that another request had. The same request again is the same."""
    call = call_id()
    request = question("request", call, structured_messages=MESSAGES)
    other = question("request", call, structured_messages=[{"role": "user", "content": "The answer is CRITICAL."}])

    assert [await asked(sidecar, one) for one in (request, request)] == ["NONE", "NONE"]
    assert (await asked(sidecar, other)).startswith("LITELLM_CALL_ID_TAKEN: ")


async def test_a_call_of_a_tool_is_judged(sidecar):
    """Its arguments are an output of the answer, without a text or beside one."""
    call, made = (
        call_id(),
        {"id": "call_1", "type": "function", "function": {"name": "send", "arguments": '{"to": "a"}'}},
    )
    await asked(sidecar, question("request", call, structured_messages=MESSAGES, tools=TOOLS))
    told = await asked(sidecar, question("response", call, texts=[], tool_calls=[made]))
    (output,) = sidecar.dpe.asked[-1].outputs

    assert told == "NONE"
    assert (output.kind, output.tool_name, output.text) == ("tool_call", "send", '{"to": "a"}')


async def test_one_bad_text_of_several_blocks_all(sidecar):
    """Texts come without their choices, so that each is judged as one."""
    call = call_id()
    await asked(sidecar, question("request", call, structured_messages=MESSAGES))
    told = await asked(sidecar, question("response", call, texts=["The sky is blue.", BAD]))

    assert told.startswith("SAFETY_HALT: ")
    assert [one.choice_index for one in sidecar.dpe.asked[-1].outputs] == [0, 1]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no id": ({"litellm_call_id": None}, "LITELLM_QUESTION_INVALID"),
    "neither request nor answer": ({"input_type": "both"}, "LITELLM_QUESTION_INVALID"),
    "texts that are none": ({"texts": [1]}, "LITELLM_QUESTION_INVALID"),
    "messages that are none": ({"structured_messages": "What?"}, "LITELLM_QUESTION_INVALID"),
    "no message at all": ({}, "INVALID_PARAMETER"),
    "a picture": ({"images": ["https://example.com/a.png"]}, "UNSUPPORTED_CONTENT"),
    "a header of ours without its value": (
        {"request_headers": {"crp-accept-risk": "[present]"}},
        "LITELLM_HEADER_HIDDEN",
    ),
    "a header that only answers have": ({"request_headers": {"crp-safety-would": "x"}}, "RESPONSE_HEADER_IN_REQUEST"),
    "a forged token": (
        {"request_headers": {"crp-session-token": "eyJhbGciOiJub25lIn0.x"}, "texts": ["What?"]},
        "TOKEN_",
    ),
}


@pytest.mark.parametrize(("more", "reason"), REFUSED.values(), ids=REFUSED)
async def test_a_question_that_cannot_be_governed_is_blocked(sidecar, more, reason):
    """Each with the reason, and with status 200: LiteLLM can be told to pass an error, but nothing that is BLOCKED."""
    assert (await asked(sidecar, question("request", call_id(), **more))).startswith(reason)


@pytest.mark.parametrize("key", ["", "wrong", KEY + "0"], ids=["none", "another", "longer"])
async def test_who_is_not_litellm_is_blocked(sidecar, key):
    """An agent that reached the path could bring answers of its own."""
    request = question("request", call_id(), structured_messages=MESSAGES)

    assert (await asked(sidecar, request, key=key)).startswith("LITELLM_KEY_INVALID: ")


async def test_a_judge_that_is_down_blocks(sidecar):
    """No answer is released that nobody judged."""
    sidecar.dpe.failure = RuntimeError("the models are gone")
    try:
        told = await asked_of_both(sidecar, "The sky is blue.")
    finally:
        sidecar.dpe.failure = None

    assert re.match(r"DPE_|INTERNAL|UNAVAILABLE", told)


@pytest.mark.asyncio(loop_scope="function")
async def test_without_the_setting_there_is_no_such_path(tmp_path):
    """The guardrail is there for whoever wants it."""
    async with running_sidecar(tmp_path) as running:
        response = await running.client.post(PATH, json=question("request", call_id()), headers={"x-api-key": KEY})

    assert response.status_code == 404
