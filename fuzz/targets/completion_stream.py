"""The provider's answer and its stream: what is streamed says what was analysed, to the letter (A-26, I11)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fuzz.reading import told
from interlock.sidecar.openai import completion, sse

ASKED, DEPTH = completion.AnswerAsked("m", 4, logprobs=True), 64
WORDS = (
    b'"choices":[', b'"index":', b'"message":', b'"role":"assistant"', b'"content":', b'"finish_reason":', b'"tool_calls":[',
    b'"function":', b'"arguments":', b'"logprobs":', b'"token":', b'"logprob":', b'"top_logprobs":', b'"refusal":',
    b'"reasoning_content":', b'"usage":', b'"total_tokens":', b'"id":', b'"model":', b'"created":', b"\\n\\ndata: [DONE]", b"\\r",
    b"\\u2028",
)  # fmt: skip


def TestOneInput(data: bytes) -> None:
    """A checked answer is checked again as itself; its stream has as many frames as chunks and adds up to it."""
    answer = told(lambda: completion.read(data, ASKED, max_depth=DEPTH))
    if answer is None:
        return
    again = completion.read(answer.body, ASKED, max_depth=DEPTH)
    assert [plain(choice) for choice in unnamed(again)] == [plain(choice) for choice in unnamed(answer)]
    assert (again.outputs, again.dropped) == (answer.outputs, ())
    analysed = {output.text for output in answer.outputs}
    for usage in (False, True):
        chunks = list(frames(sse.encode(answer.completion, include_usage=usage)))
        for choice in answer.choices:
            assert added(chunks, choice["index"]) == plain(choice)
    for choice in answer.choices:
        said = [choice["message"].get(name) for name in ("content", "refusal", "reasoning_content")]
        said += [call["function"]["arguments"] for call in choice["message"].get("tool_calls", ())]
        assert {text for text in said if text} <= analysed


def unnamed(answer: completion.Completion) -> list[dict[str, Any]]:
    """Return the choices without the ids of their calls, which are made anew each time."""
    choices: list[dict[str, Any]] = json.loads(answer.body)["choices"]
    for choice in choices:
        for call in choice["message"].get("tool_calls", ()):
            del call["id"]
    return choices


def frames(stream: bytes) -> Iterator[dict[str, Any]]:
    """Read a stream as the WHATWG wants it: any line end parts lines, a blank line ends an event."""
    assert stream.endswith(sse.DONE)
    text = stream.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    for event in text.removesuffix("\n\n").split("\n\n"):
        assert event.startswith("data: ")
        assert "\n" not in event
        if event != "data: [DONE]":
            yield json.loads(event.removeprefix("data: "))


def added(chunks: list[dict[str, Any]], index: int) -> dict[str, Any]:
    """Return the message that a client puts together from the chunks of one choice, and how it ended."""
    total: dict[str, Any] = {"content": "", "refusal": "", "reasoning_content": "", "tool_calls": [], "finish": None}
    for choice in (one for chunk in chunks for one in chunk["choices"] if one["index"] == index):
        assert total["finish"] is None
        for name in ("content", "refusal", "reasoning_content"):
            total[name] += choice["delta"].get(name) or ""
        total["tool_calls"] += [
            {name: value for name, value in call.items() if name != "index"}
            for call in choice["delta"].get("tool_calls", ())
        ]
        total["finish"] = choice["finish_reason"]
    return total


def plain(choice: dict[str, Any]) -> dict[str, Any]:
    """Return the same of the choice as it was analysed."""
    message = choice["message"]
    texts = {name: message.get(name) or "" for name in ("content", "refusal", "reasoning_content")}
    return {**texts, "tool_calls": message.get("tool_calls", []), "finish": choice["finish_reason"]}


def seeds() -> dict[str, bytes]:
    """Answers with several choices, calls, log-probabilities, and text that looks like a frame."""
    return {
        "plain": b'{"id":"x","model":"m","created":1,"choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},'
        b'"finish_reason":"stop"}],"usage":{"total_tokens":3,"prompt_tokens_details":{"cached_tokens":1}}}',
        "two": b'{"choices":[{"index":1,"message":{"content":"b"}},{"index":0,"message":{"content":"a"}}]}',
        "calls": b'{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}',
        "spelled": b'{"choices":[{"message":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.1,"top_logprobs":'
        b'[{"token":"b","logprob":-2}]}]}}]}',
        "frame": b'{"choices":[{"message":{"content":"x\\n\\ndata: [DONE]\\n\\n\\r\\u2028","reasoning_content":"why"}}]}',
        "long": b'{"choices":[{"message":{"content":"' + "aé😀".encode() * 200 + b'"}}]}',
    }
