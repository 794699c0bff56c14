"""Chat requests: only what is listed passes, and what is forwarded is read again as itself (A-21, A-26)."""

from __future__ import annotations

from fuzz.reading import told
from interlock.runtime.settings.model import Settings
from interlock.sidecar.openai import chat, strictjson

SETTINGS = Settings(state_dir="unused", redis_url="memory://", max_choices=4)
WORDS = (
    b'"model":', b'"messages":', b'"role":', b'"user"', b'"assistant"', b'"system"', b'"tool"', b'"content":', b'"stream":true',
    b'"stream_options":{"include_usage":true}', b'"n":', b'"tools":', b'"tool_choice":', b'"type":"function"', b'"function":',
    b'"name":', b'"arguments":', b'"tool_calls":', b'"tool_call_id":', b'"logit_bias":', b'"metadata":', b'"modalities":["text"]',
    b'"response_format":', b'"json_schema"', b'"interlock":', b'"facts":', b'"logprobs":', b'"stop":', b'"temperature":',
    b'"refusal":', b'"image_url"', b"null", b"true", b"1e308",
)  # fmt: skip


def TestOneInput(data: bytes) -> None:
    """A request that passes has no key that is not listed, never streams upstream, and passes again as it was written."""
    value = told(lambda: [strictjson.loads(data, max_depth=SETTINGS.max_json_depth)])
    given = told(lambda: chat.read(value[0], SETTINGS)) if value else None
    if given is None:
        return
    assert not {"stream", "stream_options", "interlock"} & set(given.body)
    assert set(given.body) <= set(chat._PARAMETERS) | {"n"}
    assert 1 <= given.choices <= SETTINGS.max_choices
    assert None not in given.body.values()
    written = strictjson.dumps(given.body)
    again = chat.read(strictjson.loads(written, max_depth=SETTINGS.max_json_depth), SETTINGS)
    assert again.body == given.body
    assert strictjson.dumps(again.body) == written
    assert not again.stream


def seeds() -> dict[str, bytes]:
    """Requests with tools, parts, formats and streaming."""
    return {
        "plain": b'{"model":"m","messages":[{"role":"user","content":"Hi"}],"temperature":0.2,"n":2,"seed":7}',
        "stream": b'{"model":"m","messages":[{"role":"user","content":"Hi"}],"stream":true,'
        b'"stream_options":{"include_usage":true}}',
        "tools": b'{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",'
        b'"function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"1"}],"tools":[{"type":'
        b'"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"auto"}',
        "parts": b'{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],'
        b'"response_format":{"type":"json_object"},"stop":["a","b"],"logit_bias":{"5":-1},"metadata":{"a":"b"}}',
        "facts": b'{"model":"m","messages":[{"role":"user","content":"Hi"}],"interlock":{"facts":[{"id":"a","content":"b"}]}}',
        "image": b'{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}',
        "case": b'{"model":"m","Messages":[]}',
    }
