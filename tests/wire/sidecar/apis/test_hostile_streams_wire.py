"""Providers of every API that stream in odd and hostile ways: read to the letter, or refused by name (API-4; A-26)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import pytest_asyncio

from interlock.domain.errors import Refused
from interlock.runtime.settings.model import Settings
from interlock.sidecar.provider.upstream import Upstream
from tests.support.servers.scripts import FAILS, SCRIPTS, Script, named
from tests.support.servers.streaming import streams
from tests.support.sidecar import parity
from tests.support.sidecar.listening import listened
from tests.support.sidecar.sidecar import running_sidecar

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("API-4")]

TEXT = "Ünïcödé ist schön. Zweiter Satz."
FRONT = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
"""By the provider's API, the front that is asked: the same API's."""


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=list(SCRIPTS))
async def sidecar(request, tmp_path_factory, running_provider):
    """One sidecar for each API of a provider."""
    folder = tmp_path_factory.mktemp(request.param)
    limits = {"upstream_timeout_s": 2.0, "max_body_bytes": 65_536, "upstream_api": request.param}
    async with running_sidecar(folder, upstream=running_provider.base_url, **limits) as running:
        yield running


def script_of(api: str) -> Script:
    return SCRIPTS[api]("Ünïcödé ist schön.", " Zweiter Satz.")


def joined(script: Script) -> bytes:
    return b"".join(script.whole)


def quick(table: Iterable[str], *names: str) -> list[Any]:
    """The rows of a table; every run takes the named ones, the others are long."""
    return [pytest.param(one, marks=() if one in names else pytest.mark.long) for one in table]


ODD: dict[str, Callable[[Script], list[bytes]]] = {
    "one byte at a time": lambda script: [bytes([one]) for one in joined(script)],
    "three bytes at a time": lambda script: [joined(script)[at : at + 3] for at in range(0, len(joined(script)), 3)],
    "all at once": lambda script: [joined(script)],
    "carriage returns": lambda script: [one.replace(b"\n", b"\r\n") for one in script.whole],
    "comments": lambda script: [b": hello\n\n", *script.whole],
    "no last mark": lambda script: script.whole[:-1],
    "unknown events": lambda script: [
        *script.begins,
        named("something.new", choices=[], hello="secret"),
        *script.says,
        *script.ends,
    ],
}


@pytest.mark.parametrize("how", quick(ODD, "one byte at a time", "no last mark", "unknown events"))
async def test_odd_streams_are_read_to_the_letter(sidecar, provider, how):
    """Bytes in any pieces: the same text, and an ending of its own. A Response without its last event has no end."""
    api = sidecar.settings.upstream_api
    streams(provider, ODD[how](script_of(api)))
    heard = await listened(FRONT[api], sidecar.http)

    if (how, api) == ("no last mark", "responses"):
        assert TEXT.startswith(heard.text)
        assert heard.text != TEXT
        assert heard.error.body["code"] == "upstream_disconnected"
    else:
        assert (heard.text, heard.error) == (TEXT, None)
        assert heard.ended in {"stop", "end_turn", "completed"}


async def test_a_provider_that_does_not_stream_is_answered_for_whole(sidecar, provider):
    """Plain JSON instead of events: read as an answer that came at once."""
    api = sidecar.settings.upstream_api
    provider.completes(parity.ANSWERS[api](parity.Said(frozenset(), "text", "fine")))
    heard = await listened(FRONT[api], sidecar.http)

    assert provider.received[0].body["stream"] is True
    assert (heard.text, heard.error) == ("It is fine.", None)


HOSTILE: dict[str, tuple[Callable[[str, Script], list[bytes]], str]] = {
    "fails in mid-stream": (lambda api, script: [*script.begins, FAILS[api]], "UPSTREAM_ERROR"),
    "breaks off": (lambda _api, script: script.begins, "UPSTREAM_DISCONNECTED"),
    "no JSON": (lambda _api, script: [*script.begins, b"data: {nope\n\n"], "UPSTREAM_INVALID_RESPONSE"),
    "no object": (lambda _api, script: [*script.begins, b"data: []\n\n"], "UPSTREAM_INVALID_RESPONSE"),
    "endless whitespace": (lambda api, script: [*script.begins, *SCRIPTS[api](*[" " * 4096] * 20).says], "UPSTREAM_INVALID_RESPONSE"),
    "endless line": (lambda _api, _script: [b"data: " + b"x" * 65_536] * 3, "UPSTREAM_INVALID_RESPONSE"),
}  # fmt: skip


@pytest.mark.parametrize("how", quick(HOSTILE, "fails in mid-stream", "breaks off"))
async def test_a_provider_that_breaks_off_before_the_first_sentence_is_refused(sidecar, provider, how):
    """A refusal like any other, with nothing of the provider's own words."""
    api, (steps, reason) = sidecar.settings.upstream_api, HOSTILE[how]
    streams(provider, steps(api, script_of(api)))
    heard = await listened(FRONT[api], sidecar.http)
    body: Any = heard.error.response.json()

    assert (heard.text, body["reason"]) == ("", reason)
    assert "secret" not in json.dumps(body)


def delta(kind: str, index: int, **more: Any) -> bytes:
    return named("content_block_delta", index=index, delta={"type": kind, **more})


def block(index: int, **more: Any) -> bytes:
    return named("content_block_start", index=index, content_block=more)


def item(index: int, **more: Any) -> bytes:
    return named("response.output_item.added", output_index=index, item=more)


def text_delta(index: int, text: Any = "x") -> bytes:
    return named("response.output_text.delta", output_index=index, content_index=0, delta=text)


FAULTS: dict[str, dict[str, list[bytes]]] = {
    "messages": {
        "a block out of order": [block(7, type="text", text="")],
        "a block of no type": [block(1, text="")],
        "a delta of no block": [delta("text_delta", 7, text="x")],
        "a delta of another kind": [delta("thinking_delta", 0, thinking="x")],
        "a delta without a text": [delta("text_delta", 0, text=7)],
        "a delta behind the end": [named("message_delta", delta={"stop_reason": "end_turn"}), delta("text_delta", 0, text="x")],
        "a delta behind its block": [named("content_block_stop", index=0), delta("text_delta", 0, text="x")],
        "another role": [named("message_start", message={"role": "user"})],
        "an input that is no JSON": [
            block(1, type="tool_use", id="t", name="f", input={}), delta("input_json_delta", 1, partial_json="{nope"),
            named("message_delta", delta={"stop_reason": "tool_use"}),
        ],
        "an end without a delta": [named("message_delta")],
    },
    "responses": {
        "an item out of order": [item(7, type="message")],
        "an item of no type": [item(1)],
        "a delta of no item": [text_delta(7)],
        "a delta of another kind": [item(1, type="reasoning"), text_delta(1)],
        "a delta without a text": [text_delta(0, 7)],
        "a delta behind its item": [
            named("response.output_item.done", output_index=0, item={"type": "message", "content": []}), text_delta(0),
        ],
        "an item that becomes another": [named("response.output_item.done", output_index=0, item={"type": "reasoning"})],
        "an end without a response": [named("response.completed")],
        "an event of no type": [b"data: {}\n\n"],
        "an event of a type that is no word": [b'data: {"type": [{}]}\n\n'],
    },
}  # fmt: skip


@pytest.mark.parametrize(("api", "how"), [(api, how) for api, faults in FAULTS.items() for how in faults])
async def test_events_that_cannot_be_are_refused(running_provider, provider, api, how):
    """Each is UPSTREAM_INVALID_RESPONSE, read as the sidecar reads it."""
    script = script_of(api)
    upstream = Upstream(Settings(upstream_base_url=running_provider.base_url, upstream_api=api))
    body = {"model": "m", "messages": [{"role": "user", "content": "What?"}]}
    reader = upstream.reader(body)
    streams(provider, [*script.begins, *FAULTS[api][how]])
    try:
        with pytest.raises(Refused) as caught:
            await upstream.stream(body, reader, key=None, timeout_s=5)
            reader.completion()
    finally:
        await upstream.close()

    assert caught.value.reason == "UPSTREAM_INVALID_RESPONSE"
