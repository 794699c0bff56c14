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


def read(value: Any, wanted: int = 1, *, logprobs: bool = False) -> completion.Completion:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return completion.read(data, completion.AnswerAsked("asked-model", wanted, logprobs), max_depth=32)


def texts(answer: completion.Completion) -> list[tuple[int, str, str]]:
    return [(output.choice_index, output.kind, output.text) for output in answer.outputs]


@pytest.mark.finding("F-24")
@pytest.mark.req("SVC-2")
def test_only_what_is_known_is_delivered():
    """Fields that nobody analysed do not come through, wherever they stand; the id and the time come later (I17)."""
    value = provided(
        {**message("Fine."), "annotations": [{"url": "x"}], "audio": {"data": "x"}},
        secret="x", prompt_filter_results=["x"], system_fingerprint="fp_1", service_tier="default",
    )  # fmt: skip
    value["choices"][0]["content_filter_results"] = {"hate": "x"}
    value["usage"]["note"] = "x"

    answer = read(value)

    assert json.loads(completion.identified(answer, "chatcmpl-ours", 5).body) == {
        "id": "chatcmpl-ours", "object": "chat.completion", "created": 5, "model": "asked-model", "service_tier": "default",
        "choices": [{"index": 0, "message": message("Fine."), "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }  # fmt: skip
    assert answer.dropped == (
        "annotations", "audio", "content_filter_results", "other", "prompt_filter_results", "system_fingerprint", "usage",
    )  # fmt: skip


@pytest.mark.finding("F-23")
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


def ids_of(*given: str | None) -> list[str]:
    calls = [{**tool_call("f", "{}"), "id": one} for one in given]
    return [call["id"] for call in read(provided(message(None, tool_calls=calls))).choices[0]["message"]["tool_calls"]]


@pytest.mark.finding("F-23", "F-24")
@pytest.mark.req("ATT-5")
def test_the_id_of_a_call_says_nothing():
    """Nobody judges an id: each is made anew, differs from the others, and the same one keeps the same name."""
    given = ("wire 9 million now", "wire_9_million", "wire_9_million", "x" * 300, "", None)
    first, again = ids_of(*given), ids_of(*given)

    assert first == again
    assert len(set(first)) == len(given)
    assert all(re.fullmatch(r"call_[0-9a-f]{24}", name) for name in first)


@pytest.mark.finding("F-23", "F-24")
def test_an_id_keeps_the_form_that_some_models_want_back():
    """Nine letters and digits stay nine; a function's own name with a number is judged with the name, another's is a text."""
    short, own, other, long = ids_of("Zq9cAnary", "functions.f:0", "functions.wire_it_now:0", "functions.f:12345")

    assert re.fullmatch(r"[0-9a-f]{9}", short)
    assert own == "functions.f:0"
    assert all(re.fullmatch(r"call_[0-9a-f]{24}", name) for name in (other, long))


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


def spelled(*tokens: Any, text: str = "Fine.") -> dict[str, Any]:
    value = provided(message(text))
    value["choices"][0]["logprobs"] = {"content": list(tokens), "extra": "x"}
    return value


FINE = ({"token": "Fi", "logprob": -0.1, "bytes": None}, {"token": "ne.", "logprob": -0.2, "extra": "x"})


@pytest.mark.finding("F-24")
def test_log_probabilities_that_were_asked_for_spell_the_answer():
    """Tokens that are the judged text are passed on, without their alternatives and whatever else stands beside them."""
    told = [{**one, "top_logprobs": [{"token": "Not", "logprob": -3}]} for one in FINE]
    answer = read(spelled(*told), logprobs=True)

    assert texts(answer) == [(0, "content", "Fine.")]
    assert answer.dropped == ("other", "top_logprobs")
    assert answer.completion["choices"][0]["logprobs"] == {
        "content": [
            {"token": "Fi", "logprob": -0.1, "bytes": list(b"Fi"), "top_logprobs": []},
            {"token": "ne.", "logprob": -0.2, "bytes": list(b"ne."), "top_logprobs": []},
        ]
    }


@pytest.mark.finding("F-24")
def test_a_token_may_end_within_a_character():
    """What a token is called is told by its bytes, whatever the provider calls it."""
    parts = [bytes([one]) for one in "é".encode()]
    told = [{"token": "anything", "logprob": -1, "bytes": list(part)} for part in parts]
    answer = read(spelled(*told, text="é"), logprobs=True)

    assert [one["token"] for one in answer.choices[0]["logprobs"]["content"]] == ["\\xc3", "\\xa9"]


@pytest.mark.finding("F-24")
@pytest.mark.parametrize(
    ("value", "asked"),
    [
        (spelled(*FINE), False),
        (spelled(*FINE[:1]), True),
        (spelled({"token": "Not ", "logprob": -1}, *FINE), True),
        (spelled({**FINE[0], "bytes": list(b"No")}, FINE[1]), True),
        (spelled({**FINE[0], "bytes": [300]}, FINE[1]), True),
        (spelled({**FINE[0], "logprob": "high"}, FINE[1]), True),
        (spelled("Fine."), True),
        (provided(message("Fine."), choices=[{"index": 0, "message": message("Fine."), "logprobs": "x"}]), True),
    ],
)
def test_log_probabilities_cannot_tell_another_text(value, asked):
    """Tokens that were not asked for, or spell something else than the message, are left out (A-26)."""
    answer = read(value, logprobs=asked)

    assert "logprobs" not in answer.choices[0]
    assert "logprobs" in answer.dropped


@pytest.mark.finding("F-24")
@pytest.mark.parametrize(
    ("given", "calls", "told", "dropped"),
    [
        ("length", False, "length", ()),
        ("STOP", False, "stop", ()),
        ("end_turn", False, "stop", ()),
        ("tool_use", True, "tool_calls", ()),
        ("error", False, "length", ()),
        ("safety", False, "content_filter", ()),
        (None, False, "stop", ()),
        (None, True, "tool_calls", ()),
        ("a\r\nb", False, "stop", ("finish_reason",)),
        ("wire_nine_million_now", True, "tool_calls", ("finish_reason",)),
        ({"x": "y"}, False, "stop", ("finish_reason",)),
    ],
)
def test_how_an_answer_ended_is_a_word_of_the_vendor(given, calls, told, dropped):
    """Words of other providers are told in the vendor's; a word that nobody knows is left out."""
    value = provided(message("x", **({"tool_calls": [tool_call("f", "{}")]} if calls else {})))
    value["choices"][0]["finish_reason"] = given
    answer = read(value)

    assert (answer.choices[0]["finish_reason"], answer.dropped) == (told, dropped)


@pytest.mark.finding("F-24")
@pytest.mark.parametrize(
    ("given", "told", "dropped"),
    [
        (None, {}, ()),
        ("many", {}, ("usage",)),
        ({"total_tokens": 3}, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 3}, ()),
        (
            {"prompt_tokens": 2, "completion_tokens": 1},
            {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3},
            (),
        ),
        (
            {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0, "completion_tokens_details": None},
            {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
            (),
        ),
        ({"total_tokens": "3"}, {}, ("usage",)),
        ({"prompt_tokens_details": {"cached_tokens": 1}}, {}, ("usage",)),
        (
            {"total_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1, "audio_tokens": None}},
            {
                "prompt_tokens": 0,
                "completion_tokens": 0,
                "total_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 1},
            },
            (),
        ),
        (
            {"total_tokens": 3, "prompt_tokens_details": {"wire_it_now": 1}},
            {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 3, "prompt_tokens_details": {}},
            ("usage",),
        ),
    ],
)
def test_usage_is_the_counts_that_the_vendor_names(given, told, dropped):
    """A key is a text, too; and the three counts that the vendor's type demands are there together."""
    answer = read(provided(message("x"), usage=given))

    assert (dict(answer.usage), answer.dropped) == (told, dropped)


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
        (provided({"role": "system", "content": "x"}), "ROLE"),
        (provided(message({"x": "y"})), "CONTENT"),
        (provided(message(["x"])), "CONTENT_PART"),
        (provided(message(None, refusal=3)), "REFUSAL"),
        (provided(message(None, tool_calls={"a": 1})), "TOOL_CALLS"),
        (provided(message(None, tool_calls=[{"type": "custom", "custom": {"input": "x"}}])), "CUSTOM_TOOL_CALL"),
        (provided(message(None, tool_calls=[{**tool_call("f", "{}"), "id": 3}])), "TOOL_CALL_ID"),
        (provided({**message(None), "function_call": {"name": "f", "arguments": None}}), "TOOL_CALL"),
        (provided(message(None, tool_calls=[tool_call("f\r\nset-cookie", "{}")])), "TOOL_CALL"),
        (provided(message(None, tool_calls=[{**tool_call("f", ""), "function": {"name": "f"}}])), "TOOL_CALL"),
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
