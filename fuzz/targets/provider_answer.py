"""Answers of providers by every API, at once and in events: one reading, however the bytes come (API-4, API-6, A-26)."""

from __future__ import annotations

import json

from fuzz.reading import told
from interlock.sidecar.openai.completion import AnswerAsked, Completion
from interlock.sidecar.provider import (  # noqa: F401  imported here, so that they are instrumented
    chat_stream,
    messages_answer,
    messages_stream,
    responses_answer,
    responses_stream,
)
from interlock.sidecar.provider.provider_api import APIS, ProviderApi
from interlock.sidecar.provider.streams import ProviderStream

ASKED, DEPTH, LIMIT = AnswerAsked("m", 2, logprobs=True), 64, 8192
NAMES = ("chat", "messages", "responses")
WORDS = (
    b"data: ", b"event: ", b"\n\n", b"data: [DONE]\n\n", b'{"type":"', b'"message_start"', b'"content_block_start"',
    b'"content_block_delta"', b'"content_block_stop"', b'"message_delta"', b'"message_stop"', b'"text_delta"', b'"thinking_delta"',
    b'"input_json_delta"', b'"partial_json":', b'"tool_use"', b'"content_block":', b'"delta":', b'"index":', b'"message":',
    b'"response.created"', b'"response.output_item.added"', b'"response.output_text.delta"', b'"response.completed"',
    b'"response.output_item.done"', b'"output_index":', b'"content_index":', b'"item":', b'"item_id":', b'"response":', b'"output":[',
    b'"output_text"', b'"function_call"', b'"call_id":', b'"choices":[', b'"finish_reason":"stop"', b'"content":', b'"usage":',
    b'"stop_reason":"end_turn"', b'"status":"completed"', b'"error":',
)  # fmt: skip


def TestOneInput(data: bytes) -> None:
    """The first byte names the API and whether the answer is streamed. A stream read byte by byte is the stream read at once."""
    if not data:
        return
    number, body = data[0], data[1:]
    api = APIS[NAMES[number % 3]]()
    if number & 4:
        whole = told(lambda: streamed(api, [body]))
        again = told(lambda: streamed(api, [body[at : at + 1] for at in range(len(body))]))
        assert (whole and whole.body) == (again and again.body)
    else:
        whole = told(lambda: api.read(body, ASKED, max_depth=DEPTH))
    if whole is not None:
        consistent(whole)


def streamed(api: ProviderApi, pieces: list[bytes]) -> Completion:
    """Return the answer of a stream that comes in *pieces*. What there is so far is the beginning of what there is at the end."""
    stream = ProviderStream(
        api.events(ASKED), lambda data: api.read(data, ASKED, max_depth=DEPTH), limit=LIMIT, max_depth=DEPTH
    )
    said = []
    for piece in pieces:
        stream.feed(piece)
        said.append(stream.said)
    stream.finished()
    answer = stream.completion()
    text = answer.choices[0]["message"]["content"] or ""
    assert stream.said is None or all(text.startswith(one.text) for one in said if one is not None)
    return answer


def consistent(answer: Completion) -> None:
    """The bytes that are delivered are the answer that was read, and every text of it is judged."""
    assert json.loads(answer.body)["choices"] == list(answer.choices)
    judged = {output.text for output in answer.outputs}
    for choice in answer.choices:
        texts = [choice["message"].get(name) for name in ("content", "refusal", "reasoning_content")]
        assert {text for text in texts if text} <= judged


def seeds() -> dict[str, bytes]:
    """A text, a thought and a call by each API, at once and streamed."""
    from tests.support.servers.provider import anthropic, completion, message, tool_call
    from tests.support.servers.scripts import SCRIPTS

    called = message("Yes.", tool_calls=[tool_call("f", "{}")], reasoning_content="Hm.")
    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Yes.", "annotations": []}],
    }
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}
    blocks = (
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "text", "text": "Yes."},
        {"type": "tool_use", "id": "c", "name": "f", "input": {}},
    )
    whole = {
        "chat": completion(called),
        "messages": anthropic(*blocks),
        "responses": {"status": "completed", "output": [thought, said, call]},
    }
    at_once = {name: bytes([NAMES.index(name)]) + json.dumps(whole[name]).encode() for name in NAMES}
    streams = {
        f"{name}_stream": bytes([4 + (NAMES.index(name) - 4) % 3])
        + b"".join(SCRIPTS[name]("Yes.", " No.", reasoning="Hm.", call="{}").whole)
        for name in NAMES
    }
    return {**at_once, **streams}
