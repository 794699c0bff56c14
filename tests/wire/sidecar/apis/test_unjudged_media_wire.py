"""Images, sound and files, over the vendors' own clients: refused by name, or passed and marked, as ``unjudged_media`` says (API-6)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anthropic
import httpx
import openai
import pytest
import pytest_asyncio

from interlock.sidecar.openai.media import PASSED
from tests.support.servers.provider import anthropic as of_anthropic
from tests.support.servers.provider import completion, message
from tests.support.sidecar.sidecar import NO_COOKIES, RunningSidecar, running_sidecar

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("API-6")]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PNG, PDF = f"data:image/png;base64,{PIXEL}", "data:application/pdf;base64,JVBERi0xLjQK"
SOUND = "UklGRiQAAABXQVZF"
HEADER = "crp-safety-unjudged-media"
CHAT_PARTS: Mapping[str, dict[str, Any]] = {
    "image": {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
    "audio": {"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}},
    "file": {"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}},
}
RESPONSES_PARTS: Mapping[str, dict[str, Any]] = {
    "image": {"type": "input_image", "image_url": PNG, "detail": "low"},
    "audio": {"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}},
    "file": {"type": "input_file", "file_data": PDF, "filename": "a.pdf"},
}
BLOCKS: Mapping[str, dict[str, Any]] = {
    "image": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
    "file": {
        "type": "document", "title": "a.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQK"},
    },
}  # fmt: skip
FRONTS = [
    *(("chat", kind) for kind in CHAT_PARTS), *(("responses", kind) for kind in RESPONSES_PARTS),
    *(("messages", kind) for kind in BLOCKS),
]  # fmt: skip
SAID = "What does it show?"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def passing(tmp_path_factory, running_provider):
    """A sidecar that passes media, before a provider that is asked by chat completions."""
    settings = {"upstream": running_provider.base_url, "unjudged_media": "pass"}
    async with running_sidecar(tmp_path_factory.mktemp("media"), **settings) as running:
        yield running


def client_of(sidecar: RunningSidecar) -> openai.AsyncOpenAI:
    http = httpx.AsyncClient(trust_env=False, cookies=NO_COOKIES)
    return openai.AsyncOpenAI(base_url=f"{sidecar.http}/v1", api_key="sk-m", max_retries=0, http_client=http)


async def asked(sidecar: RunningSidecar, front: str, kind: str, **more: Any) -> Any:
    """Ask with one medium, by the vendor's client; return its raw answer."""
    if front == "messages":
        content = [BLOCKS[kind], {"type": "text", "text": SAID}]
        async with anthropic.AsyncAnthropic(base_url=sidecar.http, api_key="sk-m", max_retries=0) as made:
            return await made.messages.with_raw_response.create(
                model="m", max_tokens=100, messages=[{"role": "user", "content": content}], **more
            )
    async with client_of(sidecar) as made:
        if front == "responses":
            parts = [RESPONSES_PARTS[kind], {"type": "input_text", "text": SAID}]
            return await made.responses.with_raw_response.create(
                model="m", input=[{"role": "user", "content": parts}], **more
            )
        parts = [CHAT_PARTS[kind], {"type": "text", "text": SAID}]
        return await made.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": parts}], **more
        )


async def marks(sidecar: RunningSidecar, headers: Mapping[str, str]) -> tuple[list[Any], list[Any]]:
    """Return what the report and the chain say of a call's media."""
    path = headers["crp-provenance-report-uri"].partition("/crp/")[2]
    report = (await sidecar.client.get(f"/crp/{path}", headers={"authorization": "Bearer sk-m"})).json()
    events = await sidecar.events(headers["crp-context-session-id"])
    told = [json.loads(one.data_json) for one in events if one.event_type == "UNJUDGED_MEDIA"]
    return report["unjudged_media"], told


@pytest.mark.parametrize(("front", "kind"), FRONTS)
async def test_media_are_refused_with_the_name_of_the_setting(shared_sidecar, provider, front, kind):
    """Nothing is begun and nothing reaches the provider; the message tells the way."""
    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)) as refused:
        await asked(shared_sidecar, front, kind)

    body = refused.value.response.json()
    assert body["reason"] == "UNSUPPORTED_CONTENT"
    assert "unjudged_media=pass" in body["error"]["message"]
    assert body["metadata"]["param"].startswith(("messages[0].content[0]", "input[0].content[0]"))
    assert provider.received == []


@pytest.mark.parametrize(("front", "kind"), FRONTS)
async def test_media_that_pass_are_marked(passing, provider, front, kind):
    """They reach the provider as they are; header, report, chain and metric say that nobody judged them."""
    counted = PASSED.labels(kind, "request")._value.get()
    raw = await asked(passing, front, kind)
    [report], [told] = await marks(passing, raw.headers)
    parts = provider.received[0].body["messages"][0]["content"]

    expected = {**CHAT_PARTS[kind]} if front != "messages" else {
        "image": {"type": "image_url", "image_url": {"url": PNG}}, "file": CHAT_PARTS["file"],
    }[kind]  # fmt: skip
    assert parts == [expected, {"type": "text", "text": SAID}]
    assert raw.headers[HEADER] == f"request-{kind}=1"
    assert (report["direction"], report["kind"], report["count"]) == ("request", kind, 1)
    assert told == {"direction": "request", "kind": kind, "count": 1, "content_hash": report["content_hash"]}
    assert PASSED.labels(kind, "request")._value.get() == counted + 1


async def test_a_call_without_media_is_not_marked(passing, provider):
    """The report's bytes and the trail are what they were."""
    del provider
    async with client_of(passing) as made:
        raw = await made.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": SAID}]
        )
    path = raw.headers["crp-provenance-report-uri"].partition("/crp/")[2]
    report = (await passing.client.get(f"/crp/{path}", headers={"authorization": "Bearer sk-m"})).json()

    assert HEADER not in raw.headers
    assert "unjudged_media" not in report
    assert not [one for one in await passing.events(raw.headers["crp-context-session-id"]) if one.event_type == "UNJUDGED_MEDIA"]  # fmt: skip


async def test_a_streamed_call_is_marked_before_its_first_byte(passing, provider):
    """The mark is among the headers of the admitted call."""
    provider.answers("It shows a dot. It is red.")
    async with client_of(passing) as made:
        parts = [CHAT_PARTS["image"], {"type": "text", "text": SAID}]
        stream = await made.chat.completions.create(
            model="m", messages=[{"role": "user", "content": parts}], stream=True
        )
        headers = stream.response.headers
        said = "".join([one.choices[0].delta.content or "" async for one in stream if one.choices])

    assert (headers[HEADER], said) == ("request-image=1", "It shows a dot. It is red.")


@pytest.mark.parametrize(
    ("api", "front", "kind", "sent"),
    [
        ("messages", "messages", "image", BLOCKS["image"]),
        ("messages", "chat", "file", BLOCKS["file"]),
        ("responses", "responses", "image", RESPONSES_PARTS["image"]),
        ("responses", "messages", "file", RESPONSES_PARTS["file"]),
    ],
)
async def test_a_provider_gets_media_in_the_words_of_its_api(
    tmp_path, upstream, running_provider, provider, api, front, kind, sent
):
    """Whichever front brought them."""
    del running_provider
    reply = (
        of_anthropic({"type": "text", "text": "A dot."})
        if api == "messages"
        else {
            "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed",
            "output": [{"type": "message", "id": "m1", "role": "assistant", "status": "completed",
                        "content": [{"type": "output_text", "text": "A dot.", "annotations": []}]}],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
        }
    )  # fmt: skip
    provider.completes(reply)
    async with running_sidecar(tmp_path, upstream=upstream, upstream_api=api, unjudged_media="pass") as sidecar:
        raw = await asked(sidecar, front, kind)

    body = provider.received[0].body
    [turn] = body["messages"] if api == "messages" else body["input"]
    assert turn["content"][0] == sent
    assert raw.headers[HEADER] == f"request-{kind}=1"


@pytest.mark.parametrize("api", ["messages", "responses"])
async def test_sound_is_refused_where_the_provider_takes_none(tmp_path, upstream, provider, api):
    """By name, before anything is begun."""
    async with running_sidecar(tmp_path, upstream=upstream, upstream_api=api, unjudged_media="pass") as sidecar:
        with pytest.raises(openai.BadRequestError) as refused:
            await asked(sidecar, "chat", "audio")

    assert refused.value.response.json()["metadata"]["param"] == "messages[0].content[0]"
    assert provider.received == []


ANSWERED = completion(
    message(
        "It shows a dot.",
        images=[{"type": "image_url", "image_url": {"url": PNG}}, {"type": "image_url", "image_url": {"url": "https://a.example/x"}}],
        audio={"id": "audio_1", "data": SOUND, "expires_at": 1_800_000_000, "transcript": "It says dot."},
    )
)  # fmt: skip


async def test_media_of_an_answer_are_left_out(shared_sidecar, provider):
    """As every field that nobody looks at, counted by name."""
    provider.completes(ANSWERED)
    async with client_of(shared_sidecar) as made:
        raw = await made.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": SAID}]
        )
    events = await shared_sidecar.events(raw.headers["crp-context-session-id"])
    [ended] = [json.loads(one.data_json) for one in events if one.event_type == "DISPATCH_COMPLETED"]

    assert json.loads(raw.content)["choices"][0]["message"] == {"role": "assistant", "content": "It shows a dot."}
    assert ended["dropped_fields"] == ["audio", "images"]
    assert HEADER not in raw.headers


async def test_media_of_an_answer_pass_marked_and_what_is_said_in_them_is_judged(passing, provider):
    """Bytes alone: an image by its address is a text, and is left out. The transcript of the sound goes to the judge."""
    provider.completes(ANSWERED)
    async with client_of(passing) as made:
        raw = await made.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": SAID}], modalities=["text", "audio"],
            audio={"voice": "alloy", "format": "wav"},
        )  # fmt: skip
    said = json.loads(raw.content)["choices"][0]["message"]
    reported, told = await marks(passing, raw.headers)
    judged = passing.dpe.asked[-1].outputs

    assert said["images"] == [{"type": "image_url", "image_url": {"url": PNG}}]
    assert (said["audio"]["data"], said["audio"]["transcript"]) == (SOUND, "It says dot.")
    assert raw.headers[HEADER] == "answer-image=1, answer-audio=1"
    assert [one["kind"] for one in reported] == [one["kind"] for one in told] == ["image", "audio"]
    assert [one.text for one in judged] == ["It shows a dot.", "It says dot."]
    assert raw.parse().choices[0].message.audio.transcript == "It says dot."


@pytest.mark.parametrize("front", ["responses", "messages"])
async def test_other_fronts_pass_no_media_of_an_answer(passing, provider, front):
    """Their APIs have no word for them: they are left out and counted."""
    provider.completes(ANSWERED)
    raw = await asked(passing, front, "image")
    events = await passing.events(raw.headers["crp-context-session-id"])
    ended = [json.loads(one.data_json) for one in events if one.event_type == "DISPATCH_COMPLETED"]

    assert raw.headers[HEADER] == "request-image=1"
    assert PIXEL not in raw.http_response.text
    assert ended[-1]["dropped_fields"] == ["audio", "images"]


@pytest.mark.parametrize("front", ["messages", "responses"])
async def test_media_of_a_tool_are_refused_also_where_others_pass(passing, provider, front):
    """What a tool brings is a source, which an answer would be held against: an image is none."""
    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)) as refused:
        if front == "messages":
            result = {"type": "tool_result", "tool_use_id": "c1", "content": [BLOCKS["image"]]}
            async with anthropic.AsyncAnthropic(base_url=passing.http, api_key="sk-m", max_retries=0) as made:
                await made.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": [result]}])
        else:
            output = {"type": "function_call_output", "call_id": "c1", "output": [RESPONSES_PARTS["image"]]}
            async with client_of(passing) as made:
                await made.responses.create(model="m", input=[output])

    body = refused.value.response.json()
    assert body["reason"] == "UNSUPPORTED_CONTENT"
    assert "what a tool brings is a source" in body["error"]["message"]
    assert provider.received == []


@pytest.mark.parametrize(
    ("part", "param"),
    [
        ({"type": "image_url", "image_url": {"url": "ftp://a.example/x"}}, "image_url.url"),
        ({"type": "image_url", "image_url": {"url": PNG, "more": 1}}, "image_url.more"),
        ({"type": "image_url", "image_url": PNG}, "image_url"),
        ({"type": "input_audio", "input_audio": {"data": " " * 30_000 + "!", "format": "wav"}}, "input_audio.data"),
        ({"type": "file", "file": {"file_data": PDF, "file_id": "f"}}, "file"),
        ({"type": "file", "file": {"file_data": PDF, "filename": "a\nb"}}, "file.filename"),
        ({"type": "video_url", "video_url": {"url": PNG}}, ""),
    ],
)
async def test_media_of_another_shape_are_refused_by_their_place(passing, provider, part, param):
    """Addresses, bytes and names are checked, and kinds that no list has are none."""
    body = {"model": "m", "messages": [{"role": "user", "content": [part]}]}
    answer = await passing.client.post("/v1/chat/completions", json=body, headers={"authorization": "Bearer sk-m"})

    assert answer.status_code == 400
    assert answer.json()["metadata"]["param"] == f"messages[0].content[0].{param}".rstrip(".")
    assert provider.received == []
