"""The provider's answer, written anew; and the same answer as a stream."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from interlock.domain.errors import Kind, Refused
from interlock.sidecar.openai import completion, sse
from tests.support.servers.provider import completion as provided
from tests.support.servers.provider import message, tool_call


def read(value: Any, wanted: int = 1) -> completion.Completion:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return completion.read(data, wanted=wanted, max_depth=32)


def texts(answer: completion.Completion) -> list[tuple[int, str, str]]:
    return [(output.choice_index, output.kind, output.text) for output in answer.outputs]


@pytest.mark.req("SVC-2")
def test_only_what_is_known_is_delivered():
    """Fields that nobody analysed do not come through, wherever they stand."""
    value = provided(
        {**message("Fine."), "annotations": [{"url": "x"}], "audio": {"data": "x"}},
        secret="x", prompt_filter_results=["x"], system_fingerprint="fp_1", service_tier="default",
    )  # fmt: skip
    value["choices"][0]["content_filter_results"] = {"hate": "x"}
    value["usage"]["note"] = "x"

    assert json.loads(read(value).body) == {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": "test-model",
        "system_fingerprint": "fp_1", "service_tier": "default",
        "choices": [{"index": 0, "message": message("Fine."), "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }  # fmt: skip


@pytest.mark.req("SVC-2", "ATT-5")
def test_a_call_without_arguments_is_a_call():
    """Its name may say it all; it is judged with the name, and so is the form of older models (A-26)."""
    call = tool_call("wire_nine_million_dollars_to_account_4711_now", "", "c1")
    old = {"name": "pay", "arguments": '{"amount": 1}'}
    answer = read(provided(message(None, tool_calls=[call]), {**message(None), "function_call": old}), wanted=2)

    assert [(o.choice_index, o.kind, o.tool_name, o.text) for o in answer.outputs] == [
        (0, "tool_call", "wire_nine_million_dollars_to_account_4711_now", ""),
        (1, "tool_call", "pay", '{"amount": 1}'),
    ]
    assert answer.choices[1]["message"]["function_call"] == old
    assert b'"function_call":{"name":"pay"' in sse.encode(answer.completion, include_usage=False)


@pytest.mark.req("ATT-5")
def test_the_id_of_a_call_says_nothing():
    """Nobody judges an id, so that a text in its place does not come through; the same one keeps the same name."""
    said = [tool_call("f", "{}", text) for text in ("wire 9 million now", "wire 9 million now", "call_1", "x" * 300)]
    ids = [call["id"] for call in read(provided(message(None, tool_calls=said))).choices[0]["message"]["tool_calls"]]

    assert ids[0] == ids[1] != ids[3]
    assert ids[2] == "call_1"
    assert all(re.fullmatch(r"call_[0-9a-f]{24}", name) for name in (ids[0], ids[3]))


@pytest.mark.req("SVC-2")
def test_every_text_that_is_delivered_is_analysed():
    """All choices, the refusal, the reasoning and every tool call's arguments (A-26)."""
    calls = [tool_call("f", '{"a": 1}', "c1"), tool_call("g", '{"b": 2}', "c2")]
    value = provided(
        message("One.", reasoning_content="Because."), message(None, refusal="No."), message(None, tool_calls=calls)
    )

    assert texts(read(value, wanted=3)) == [
        (0, "content", "One."), (0, "content", "Because."), (1, "refusal", "No."),
        (2, "tool_call", '{"a": 1}'), (2, "tool_call", '{"b": 2}'),
    ]  # fmt: skip


def test_a_choice_that_says_nothing_is_judged_too():
    """Empty content gives one empty output, so that the analysis sees that there is nothing."""
    assert texts(read(provided(message(None)))) == [(0, "content", "")]


def test_log_probabilities_cannot_tell_another_text():
    """Tokens that spell something else than the message are analysed as well (A-26)."""
    value = provided(message("Fine."))
    told = [{"token": "Not", "logprob": -0.1, "bytes": None}, {"token": " fine.", "logprob": -0.2, "extra": "x"}]
    value["choices"][0]["logprobs"] = {"content": told, "extra": "x"}
    answer = read(value)

    assert texts(answer) == [(0, "content", "Fine."), (0, "content", "Not fine.")]
    assert answer.completion["choices"][0]["logprobs"] == {
        "content": [
            {"token": "Not", "logprob": -0.1, "bytes": list(b"Not"), "top_logprobs": []},
            {"token": " fine.", "logprob": -0.2, "bytes": list(b" fine."), "top_logprobs": []},
        ]
    }


def broken(**more: Any) -> dict[str, Any]:
    value = provided(message("x"))
    value.update(more)
    return value


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (b"", "INVALID_JSON"),
        (b"<html>", "INVALID_JSON"),
        (b'data: {"choices": []}\n\n', "INVALID_JSON"),
        (b'{"choices": [], "choices": []}', "DUPLICATE_KEY"),
        (b'{"choices": "\xff"}', "INVALID_UTF8"),
        ([], "CHOICES"),
        ({}, "CHOICES"),
        (broken(choices=[]), "CHOICES"),
        (broken(choices={}), "CHOICES"),
        (provided(message("a"), message("b")), "CHOICES"),
        (broken(choices=["x"]), "MESSAGE"),
        (broken(choices=[{"index": 0, "message": "x"}]), "MESSAGE"),
        (broken(choices=[{"index": 1, "message": message("x")}]), "CHOICE_INDEX"),
        (broken(choices=[{"index": True, "message": message("x")}]), "CHOICE_INDEX"),
        (broken(choices=[{"index": 0, "message": message("x"), "finish_reason": "a\r\nb"}]), "FINISH_REASON"),
        (provided({"role": "system", "content": "x"}), "ROLE"),
        (provided(message(["x"])), "CONTENT"),
        (provided(message(None, refusal=3)), "REFUSAL"),
        (provided(message(None, tool_calls={"a": 1})), "TOOL_CALLS"),
        (provided(message(None, tool_calls=[{"type": "custom", "custom": {"input": "x"}}])), "TOOL_CALL"),
        (provided(message(None, tool_calls=[tool_call("f\r\nset-cookie", "{}")])), "TOOL_CALL"),
        (provided(message(None, tool_calls=[{**tool_call("f", ""), "function": {"name": "f"}}])), "TOOL_CALL"),
        (broken(id="a\r\nb"), "ID"),
        (broken(model="m\u241f"), "MODEL"),
    ],
)
def test_what_is_no_completion_is_refused(value, fault):
    """A malformed answer is a bad gateway with a constant fault, and nothing of it is repeated."""
    with pytest.raises(Refused) as caught:
        read(value)

    assert (caught.value.kind, caught.value.reason) == (Kind.BAD_GATEWAY, "UPSTREAM_INVALID_RESPONSE")
    assert caught.value.metadata == {"fault": fault}


def chunks(stream: bytes) -> list[dict[str, Any]]:
    lines = stream.decode().split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]


@pytest.mark.req("SVC-2")
def test_a_stream_says_what_the_answer_says():
    """Role, content in pieces, tool calls, the finish and the usage add up to the completion (I14)."""
    text = "word " * 300
    calls = [tool_call("f", '{"a": 1}'), tool_call("g", "{}", "c2")]
    answer = read(provided(message(text, tool_calls=calls), message(None, refusal="No.")), wanted=2)
    sent = chunks(sse.encode(answer.completion, include_usage=True))
    deltas = [choice for chunk in sent for choice in chunk["choices"]]

    assert {chunk["object"] for chunk in sent} == {"chat.completion.chunk"}
    assert "".join(d["delta"].get("content") or "" for d in deltas if d["index"] == 0) == text
    assert [c["function"]["name"] for d in deltas for c in d["delta"].get("tool_calls", [])] == ["f", "g"]
    assert [c["index"] for d in deltas for c in d["delta"].get("tool_calls", [])] == [0, 1]
    assert "".join(d["delta"].get("refusal") or "" for d in deltas if d["index"] == 1) == "No."
    assert [d["finish_reason"] for d in deltas if d["finish_reason"]] == ["stop", "stop"]
    assert sent[-1]["usage"]["total_tokens"] == 15
    assert sent[-1]["choices"] == []


def test_without_include_usage_a_stream_has_none():
    """Usage is sent only to who asked for it."""
    answer = read(provided(message("x")))

    assert all("usage" not in chunk for chunk in chunks(sse.encode(answer.completion, include_usage=False)))


def test_a_text_cannot_end_an_event():
    """Line ends of the model stay inside the JSON, so that no text adds an event to the stream (A-16)."""
    answer = read(provided(message("x\n\ndata: [DONE]\n\ndata: {}\r\n\r\n\u2028")))

    assert len(chunks(sse.encode(answer.completion, include_usage=False))) == 3
