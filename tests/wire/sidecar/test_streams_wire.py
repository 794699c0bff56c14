"""Answers that leave sentence by sentence, over a real mesh, a scripted provider and the real ``openai`` client (API-4, BUD-11)."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
import threading
from dataclasses import replace
from typing import Any

import openai
import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.domain.errors import KEPT_UNKNOWN, Kind, Refused
from tests.support.servers.streaming import DONE, chunk, spoken, streams, usage
from tests.support.sidecar.sidecar import DpeDouble, Hooked, a_report, reason_of, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [pytest.mark.req("API-4", "BUD-11")]

FIRST, SECOND, THIRD = "The sky is blue.", " The sea is wide.", " The hill is high."
QUESTION: Any = [{"role": "user", "content": "What is it?"}]


def client_of(sidecar) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{sidecar.http}/v1", api_key="sk-client", max_retries=0)


async def events_of(sidecar, kind: str = "") -> list[Any]:
    """The events of the one session that there is, by kind, as data."""
    (session_id,) = {one.session_id for one in sidecar.dpe.asked}
    found = await sidecar.events(session_id)
    return [json.loads(one.data_json) for one in found if not kind or one.event_type == kind]


async def verified(sidecar) -> bool:
    (session_id,) = {one.session_id for one in sidecar.dpe.asked}
    return not (await sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=session_id))).faults


def hashed(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


async def test_the_first_sentence_leaves_before_the_provider_has_ended(sidecar, provider):
    """The provider waits for the client's first token; the rest comes, the running hash covers it, and the hold is gone."""
    heard = threading.Event()
    streams(provider, [*spoken(FIRST, SECOND)[:3], heard, *spoken(SECOND, THIRD)[2:]])
    said = ""
    async with client_of(sidecar) as client:
        stream = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
        async for one in stream:
            said += one.choices[0].delta.content or "" if one.choices else ""
            heard.set()
            last = one

    parts = await events_of(sidecar, "STREAM_PART")
    (ended,) = await events_of(sidecar, "STREAM_ENDED")
    assert said == FIRST + SECOND + THIRD
    assert last.choices[0].finish_reason == "stop"
    assert parts[0]["running_hash"] == hashed(FIRST)
    assert (ended["ending"], ended["running_hash"]) == ("COMPLETE", hashed(said))
    assert await verified(sidecar)
    assert provider.received[0].body["stream"] is True


async def collected(client: openai.AsyncOpenAI, **more: Any) -> tuple[str, list[Any], Exception | None]:
    """What a client makes of a stream: the text, the chunks and the error that ended it."""
    said, chunks = "", []
    try:
        async for one in await client.chat.completions.create(model="m", messages=QUESTION, stream=True, **more):
            chunks.append(one)
            said += (one.choices[0].delta.content or "") if one.choices else ""
    except openai.APIError as error:
        return said, chunks, error
    return said, chunks, None


async def test_a_part_that_may_not_pass_ends_the_stream(sidecar, provider):
    """Sentence 1 arrives, then 2, the third never; the client gets an error, the chain verifies and says where it was cut."""
    heard, rest, judged = threading.Event(), threading.Event(), threading.Event()
    texts = spoken(FIRST, SECOND, " It is CRITICAL that this leaves.", " Then more.")
    streams(provider, [*texts[:3], heard, texts[3], rest, texts[4], judged, *texts[5:]])
    headers = {"CRP-Safety-Policy": "halt-on CRITICAL", "CRP-Stream-Final": "event"}
    said, finishes = "", []

    async def third_is_judged() -> None:
        while not any("CRITICAL" in output.text for one in sidecar.dpe.asked for output in one.outputs):
            await asyncio.sleep(0.01)
        judged.set()

    looking = asyncio.create_task(third_is_judged())
    async with client_of(sidecar) as client:
        with pytest.raises(openai.APIError) as caught:
            stream = await client.chat.completions.create(
                model="m", messages=QUESTION, stream=True, extra_headers=headers
            )
            async for one in stream:
                for choice in one.choices:
                    said += choice.delta.content or ""
                    finishes.append(choice.finish_reason)
                heard.set()
                if said == FIRST + SECOND:
                    rest.set()
    await looking
    (ended,) = await events_of(sidecar, "STREAM_ENDED")
    (sealed,) = await events_of(sidecar, "WINDOW_SEALED")

    assert said == FIRST + SECOND
    assert finishes[-1] == "content_filter"
    assert caught.value.body["code"] == "safety_halt"
    assert (ended["ending"], ended["parts"], ended["running_hash"]) == ("CUT", 2, hashed(said))
    assert (sealed["status"], sealed["charge_micros"]) == ("HALTED", 350_000)
    assert await verified(sidecar)


async def test_what_no_continuation_cures_ends_it_at_once(tmp_path, provider, upstream):
    """A fabrication that the policy blocks: the provider is not listened to any longer, and the client hears of it at once."""
    never, heard = threading.Event(), threading.Event()
    script = spoken(FIRST, SECOND, " Otto Krause CRITICAL painted it.", " And on it goes.")
    streams(provider, [*script[:3], heard, *script[3:5], never, *script[5:]])
    policy = {"CRP-Safety-Policy": "block-fabrication", "CRP-Stream-Final": "event"}

    class Finding(DpeDouble):
        async def Analyze(self, request, context):
            found = sum("Otto" in output.text for output in request.outputs)
            more = {"fabricated_entities": ["Otto Krause"]} if found else {}
            self.report = a_report("MEDIUM" if found else "LOW", fabrication_count=found, **more)
            return await super().Analyze(request, context)

    async with running_sidecar(tmp_path, upstream=upstream, dpe=Finding()) as sidecar, client_of(sidecar) as client:
        said = ""
        with pytest.raises(openai.APIError) as caught:
            async for one in await client.chat.completions.create(
                model="m", messages=QUESTION, stream=True, extra_headers=policy
            ):
                said += (one.choices[0].delta.content or "") if one.choices else ""
                heard.set()
        (ended,) = await events_of(sidecar, "STREAM_ENDED")
    never.set()

    assert said == FIRST
    assert caught.value.body["code"] == "safety_halt"
    assert ended["ending"] == "CUT"


async def test_final_values_come_at_the_end_by_request(sidecar, provider):
    """The last event has the token for the next window and the risk; without the wish a caller that knows of CRP gets it whole."""
    streams(provider, spoken(FIRST, SECOND, THIRD))
    body = {"model": "m", "messages": QUESTION, "stream": True}
    parts = await sidecar.client.post("/v1/chat/completions", json=body, headers={"CRP-Stream-Final": "event"})
    whole = await sidecar.client.post("/v1/chat/completions", json=body, headers={"CRP-Accept-Risk": "HIGH"})
    final = json.loads(parts.text.split("event: crp\ndata: ")[1].split("\n\n")[0]) if "event: crp" in parts.text else {}

    assert parts.text.endswith(DONE.decode())
    assert "crp-set-session" in whole.headers
    assert "event: crp" not in whole.text
    if final:  # the provider was slower than the judge
        assert final["choices"] == []
        assert final["crp"]["CRP-Set-Session"].startswith("token=")
        assert final["crp"]["CRP-Safety-Hallucination-Risk"] == "LOW"


async def test_the_session_goes_on_after_a_stream(sidecar, provider):
    """The next call presents the token of the last event and gets window 2, with the budget that the stream left."""
    heard = threading.Event()
    script = spoken(FIRST, SECOND)
    streams(provider, [*script[:3], heard, *script[3:]])
    token = ""
    async with client_of(sidecar) as client:
        stream = await client.chat.completions.create(
            model="m", messages=QUESTION, stream=True, extra_headers={"CRP-Stream-Final": "event"}
        )
        async for one in stream:
            heard.set()
            final = (one.model_extra or {}).get("crp") or {}
            token = final.get("CRP-Set-Session", "").split(";")[0].removeprefix("token=") or token
    provider.answers("Fine.")
    second = await sidecar.chat(token=token, headers={"Authorization": "Bearer sk-client"})

    assert second.headers["crp-context-window"] == "2/200"
    assert second.headers["crp-agent-safety-budget"] == "1.00"


HOSTILE: dict[str, Any] = {
    "one byte at a time": lambda: [bytes([one]) for one in b"".join(spoken("Ünïcödé ist schön.", " Zweiter Satz."))],
    "carriage returns": lambda: [one.replace(b"\n", b"\r\n") for one in spoken("Ünïcödé ist schön.", " Zweiter Satz.")],
    "usage first": lambda: [usage(), *spoken("Ünïcödé ist schön.", " Zweiter Satz.")],
    "no DONE": lambda: spoken("Ünïcödé ist schön.", " Zweiter Satz.")[:-1],
    "comments": lambda: [b": hello\n\n", *spoken("Ünïcödé ist schön.", " Zweiter Satz.")],
}


@pytest.mark.parametrize("how", HOSTILE)
async def test_odd_streams_are_read_to_the_letter(sidecar, provider, how):
    """Bytes in any pieces, frames in any order: the same text, and an ending of its own."""
    streams(provider, HOSTILE[how]())
    async with client_of(sidecar) as client:
        said, chunks, error = await collected(client)

    assert (said, error) == ("Ünïcödé ist schön. Zweiter Satz.", None)
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert await verified(sidecar)


BROKEN: dict[str, Any] = {
    "error in mid-stream": (
        lambda: [*spoken(FIRST)[:-3], b'data: {"error": {"message": "secret"}}\n\n'],
        "upstream_error",
    ),
    "cut off": (lambda: spoken(FIRST)[:-3], "upstream_disconnected"),
    "not JSON": (lambda: [*spoken(FIRST)[:-3], b"data: {nope\n\n"], "upstream_invalid_response"),
    "a choice nobody asked for": (
        lambda: [*spoken(FIRST)[:-3], chunk({"content": "x"}, index=1)],
        "upstream_invalid_response",
    ),
    "no choices": (lambda: [b"data: {}\n\n"], "upstream_invalid_response"),
    "after the end": (lambda: [*spoken(FIRST)[:-2], chunk({"content": "x"})], "upstream_invalid_response"),
    "endless whitespace": (lambda: [chunk({"content": " " * 4096})] * 600, "upstream_invalid_response"),
    "endless line": (lambda: [b"data: " + b"x" * 65_536] * 40, "upstream_invalid_response"),
}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("how", BROKEN)
async def test_a_provider_that_breaks_off_before_the_first_sentence_costs_nothing(shared_sidecar, provider, how):
    """A refusal like any other: status, reason, and nothing of the provider's own words."""
    steps, reason = BROKEN[how]
    streams(provider, [one.replace(b"blue.", b"blue") for one in steps()])
    async with client_of(shared_sidecar) as client:
        said, _, error = await collected(client)

    assert said == ""
    assert isinstance(error, openai.APIStatusError)
    assert error.body["code"] == reason
    assert "secret" not in str(error)


async def test_a_provider_that_breaks_off_later_is_settled_for_what_it_said(sidecar, provider):
    """The first sentence has left: the window is sealed and charged, and the client gets an error and no end."""
    heard = threading.Event()
    script = spoken("This is of MEDIUM worth.", SECOND)
    streams(provider, [*script[:3], heard, b'data: {"error": {"message": "secret"}}\n\n'])
    said = ""
    with pytest.raises(openai.APIError) as caught:
        async with client_of(sidecar) as client:
            async for one in await client.chat.completions.create(model="m", messages=QUESTION, stream=True):
                said += one.choices[0].delta.content or ""
                heard.set()
    (ended,) = await events_of(sidecar, "STREAM_ENDED")
    (sealed,) = await events_of(sidecar, "WINDOW_SEALED")

    assert said == "This is of MEDIUM worth."
    assert caught.value.body["code"] == "upstream_error"
    assert (ended["ending"], ended["running_hash"]) == ("BROKEN", hashed(said))
    assert sealed["charge_micros"] == 50_000
    assert await verified(sidecar)


async def test_a_provider_that_does_not_stream_is_answered_for_whole(sidecar, provider):
    """Plain JSON instead of events: every header is there, as before."""
    provider.answers(FIRST)
    async with client_of(sidecar) as client:
        raw = await client.chat.completions.with_raw_response.create(model="m", messages=QUESTION, stream=True)
        said = "".join([one.choices[0].delta.content or "" async for one in raw.parse()])

    assert said == FIRST
    assert raw.headers["crp-safety-hallucination-risk"] == "LOW"


async def test_a_tool_call_leaves_whole_at_its_end(sidecar, provider):
    """Deltas of two calls out of order are put together; the text before them left early, the calls once all was judged."""
    heard = threading.Event()
    early = [chunk({"role": "assistant", "content": FIRST}), chunk({"content": SECOND})]
    calls = [
        {"index": 1, "id": "b", "type": "function", "function": {"name": "walk", "arguments": ""}},
        {"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at":'}},
        {"index": 1, "function": {"arguments": "{}"}},
        {"index": 0, "function": {"arguments": ' "sky"}'}},
    ]
    late = [*(chunk({"tool_calls": [one]}) for one in calls), chunk(finish="tool_calls"), DONE]
    streams(provider, [*early, heard, *late])
    tools = [{"type": "function", "function": {"name": name}} for name in ("look", "walk")]
    async with client_of(sidecar) as client:
        chunks = []
        async for one in await client.chat.completions.create(model="m", messages=QUESTION, stream=True, tools=tools):
            chunks.append(one.choices[0])
            heard.set()
    made = [call.function for one in chunks for call in one.delta.tool_calls or ()]

    assert "".join(one.delta.content or "" for one in chunks) == FIRST + SECOND
    assert [(one.name, one.arguments) for one in made] == [("look", '{"at": "sky"}'), ("walk", "{}")]
    assert chunks[-1].finish_reason == "tool_calls"


WHOLE: dict[str, tuple[dict[str, Any], dict[str, str], dict[str, Any]]] = {
    "two choices": ({"max_choices": 4}, {}, {"n": 2}),
    "log-probabilities": ({}, {}, {"logprobs": True}),
    "structured output": ({}, {}, {"response_format": {"type": "json_object"}}),
    "setting": ({"stream_release": "whole"}, {}, {}),
    "aware": ({}, {"CRP-Accept-Risk": "HIGH"}, {}),
    "review": ({"review_required": True}, {}, {}),
    "remedies": ({"remedies": "redispatch"}, {}, {}),
    "half open": ({}, {"CRP-Agent-Safety-Budget": "0.45", "CRP-Stream-Final": "event"}, {}),
    "upgrade": ({}, {"CRP-Safety-Policy": "upgrade-on-risk reflexive", "CRP-Stream-Final": "event"}, {}),
    "oversight": ({}, {"CRP-Safety-Policy": "oversight human-review", "CRP-Stream-Final": "event"}, {}),
}


QUICK = {"two choices", "setting", "aware", "half open", "upgrade"}


@pytest.mark.parametrize("how", [pytest.param(how, marks=[] if how in QUICK else pytest.mark.long) for how in WHOLE])
async def test_where_parts_may_not_leave_the_whole_does(tmp_path, provider, upstream, how):
    """The provider is not even asked to stream, and the answer has every header."""
    settings, headers, asked = WHOLE[how]
    provider.answers(*[FIRST] * asked.get("n", 1))
    async with running_sidecar(tmp_path, upstream=upstream, **settings) as sidecar:
        body = {"model": "m", "messages": QUESTION, "stream": True, **asked}
        answer = await sidecar.client.post("/v1/chat/completions", json=body, headers=headers)

    assert answer.status_code == 200
    assert "stream" not in provider.received[0].body
    assert answer.headers["crp-safety-hallucination-risk"] == "LOW"


async def test_what_the_budget_does_not_cover_leaves_whole(tmp_path, provider, upstream):
    """The worst would open the breaker: the first sentence is judged, nothing is held, and nothing leaves before the end."""
    heard = threading.Event()
    script = spoken(FIRST, SECOND)
    streams(provider, [*script[:3], heard, *script[3:]])
    headers = {"CRP-Agent-Safety-Budget": "0.55", "CRP-Stream-Final": "event"}
    async with (
        running_sidecar(tmp_path, upstream=upstream, decrement_critical=0.5) as sidecar,
        client_of(sidecar) as client,
    ):
        call = asyncio.create_task(collected(client, extra_headers=headers))
        async with asyncio.timeout(10):
            while not sidecar.dpe.asked:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        heard.set()
        said, _, error = await call
        parts = await events_of(sidecar, "STREAM_PART")

    assert (said, error, parts) == (FIRST + SECOND, None, [])


async def test_a_client_that_hangs_up_pays_for_what_was_generated(sidecar, provider):
    """The first sentence left, then the client: the window is sealed, charged and says so."""
    never = threading.Event()
    streams(provider, [*spoken("This is of MEDIUM worth.", SECOND)[:3], never])
    async with client_of(sidecar) as client:
        stream = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
        async for _ in stream:
            break
        await stream.close()
    async with asyncio.timeout(10):
        while not (ended := await events_of(sidecar, "STREAM_ENDED")):
            await asyncio.sleep(0.02)
    never.set()
    (sealed,) = await events_of(sidecar, "WINDOW_SEALED")

    assert ended[0]["ending"] == "CALLER_LEFT"
    assert sealed["charge_micros"] == 50_000
    assert await verified(sidecar)


async def test_a_caller_that_is_only_watched_gets_every_sentence(tmp_path, provider, upstream):
    """Profile observe: what would be halted leaves all the same, and what would have been done is on record."""
    heard = threading.Event()
    script = spoken(FIRST, " It is CRITICAL that this leaves.")
    streams(provider, [*script[:3], heard, *script[3:]])
    async with running_sidecar(tmp_path, upstream=upstream, unaware_callers="observe") as sidecar:
        async with client_of(sidecar) as client:
            said = ""
            async for one in await client.chat.completions.create(model="m", messages=QUESTION, stream=True):
                said += one.choices[0].delta.content or ""
                heard.set()
        (ended,) = await events_of(sidecar, "STREAM_ENDED")

    assert said == FIRST + " It is CRITICAL that this leaves."
    assert ended["ending"] == "COMPLETE"


class Down:
    """An audit service that seals nothing for a while, as if the sidecar had died before it asked."""

    def __init__(self) -> None:
        self.now = False

    async def __call__(self, _request: Any) -> None:
        if self.now:
            raise Refused(Kind.UNAVAILABLE, "AUDIT_UNAVAILABLE", "the log cannot be reached")


@pytest.mark.parametrize("lost", ["nothing", "the store"])
async def test_a_stream_that_nobody_closed_is_charged_what_it_held(tmp_path, provider, upstream, lost):
    """Its part is on record and its seal is not: others see the budget less the hold, and whoever comes next has it charged.

    Where the store lost the session meanwhile, the chain brings the hold back.
    """
    down, heard = Down(), threading.Event()

    def wrap(services):
        return {**services, "audit": Hooked(services["audit"], Append=down)}

    limits = {"request_timeout_s": 2.0, "stream_timeout_s": 2.0, "rpc_timeout_s": 0.5}
    async with running_sidecar(tmp_path, upstream=upstream, wrap=wrap, **limits) as sidecar:
        first = await sidecar.chat()
        token = token_of(first)
        script = spoken(FIRST, SECOND)
        streams(provider, [*script[:3], heard, *script[3:]])
        body = {"model": "m", "messages": QUESTION, "stream": True}
        sent = {"CRP-Stream-Final": "event", "CRP-Session-Token": token}
        async with sidecar.client.stream("POST", "/v1/chat/completions", json=body, headers=sent) as answer:
            said = ""
            async for piece in answer.aiter_text():
                said += piece
                down.now = True
                heard.set()
        provider.answers("Fine.")
        down.now = False
        if lost == "the store":
            sidecar.services["session"].servicer._ledger.store._trees.clear()
        meanwhile = await sidecar.chat(token=token)
        async with asyncio.timeout(15):
            while (closed := await sidecar.chat(token=token)).json().get("reason") == "WINDOW_IN_FLIGHT":
                await asyncio.sleep(0.1)
        after = await sidecar.chat(token=token_of(closed))
        found = await sidecar.events(first.headers["crp-context-session-id"])
        valid = await sidecar.mesh.audit.Verify(
            audit_pb2.VerifyRequest(session_id=first.headers["crp-context-session-id"])
        )
    (ended,) = [json.loads(one.data_json) for one in found if one.event_type == "STREAM_ENDED"]
    sealed = [json.loads(one.data_json) for one in found if one.event_type == "WINDOW_SEALED"]

    assert FIRST in said
    assert SECOND not in said
    assert "[DONE]" not in said
    assert reason_of(meanwhile) == "WINDOW_IN_FLIGHT"
    assert reason_of(closed) == "WINDOW_ALREADY_SETTLED"
    assert (ended["ending"], ended["running_hash"]) == ("LOST", hashed(FIRST))
    assert (sealed[1]["status"], sealed[1]["charge_micros"]) == ("HALTED", 350_000)
    assert after.headers["crp-agent-safety-budget"] == "0.65"
    assert not valid.faults


class FirstPartInDoubt(Hooked):
    """Keeps the first part, and loses the answer; then keeps nothing while it is down."""

    down = False

    async def Record(self, request: Any, context: Any) -> Any:
        if self.down:
            raise Refused(Kind.UNAVAILABLE, "AUDIT_STORE_UNAVAILABLE", "the audit log is unavailable")
        answer = await self._inner.Record(request, context)
        if any(one.event_type == "STREAM_PART" for one in request.events):
            self.down = True
            raise Refused(
                Kind.UNAVAILABLE, "AUDIT_STORE_UNAVAILABLE", "the audit log is unavailable", metadata=KEPT_UNKNOWN
            )
        return answer

    async def Append(self, request: Any, context: Any) -> Any:
        if self.down:
            raise Refused(Kind.UNAVAILABLE, "AUDIT_STORE_UNAVAILABLE", "the audit log is unavailable")
        return await self._inner.Append(request, context)


async def test_a_first_part_that_may_be_on_record_binds_its_window(tmp_path, provider, upstream):
    """One of several tries was kept and the last one was not: nothing left, and the window is closed at what it held all the same."""
    parts = {}

    def wrap(services):
        parts["audit"] = FirstPartInDoubt(services["audit"])
        return {**services, **parts}

    limits = {"request_timeout_s": 2.0, "stream_timeout_s": 2.0, "rpc_timeout_s": 0.5}
    async with running_sidecar(tmp_path, upstream=upstream, wrap=wrap, **limits) as sidecar:
        first = await sidecar.chat()
        token, never = token_of(first), threading.Event()
        script = spoken(FIRST, SECOND)
        streams(provider, [*script[:3], never])
        body = {"model": "m", "messages": QUESTION, "stream": True}
        sent = {"CRP-Stream-Final": "event", "CRP-Session-Token": token}
        refused = await sidecar.client.post("/v1/chat/completions", json=body, headers=sent)
        never.set()
        parts["audit"].down = False
        provider.answers("Fine.")
        async with asyncio.timeout(15):
            while (closed := await sidecar.chat(token=token)).json().get("reason") == "WINDOW_IN_FLIGHT":
                await asyncio.sleep(0.1)
        found = await sidecar.events(first.headers["crp-context-session-id"])
    begun = {one.window_id for one in found if one.event_type == "STREAM_PART"}
    sealed = {one.window_id for one in found if one.event_type == "WINDOW_SEALED"}

    assert FIRST not in refused.text
    assert refused.status_code >= 500
    assert reason_of(closed) == "WINDOW_ALREADY_SETTLED"
    assert begun
    assert begun <= sealed


class FirstPartIsLate(Hooked):
    """Answers nothing about the first part, which it keeps on its way; *arrives* brings it there."""

    late: Any = None

    async def Record(self, request: Any, context: Any) -> Any:
        if self.late is None and any(one.event_type == "STREAM_PART" for one in request.events):
            self.late = request
            await asyncio.sleep(60)
        if self.late is not None and request.window_id == self.late.window_id and request.once:
            await asyncio.sleep(0 if request.events[0].event_type == "STREAM_ENDED" else 60)
        return await self._inner.Record(request, context)

    async def arrives(self) -> Any:
        return await self._inner.Record(self.late, None)


async def test_a_first_part_that_arrives_late_is_refused_by_the_log(tmp_path, provider, upstream):
    """Whoever gives the window up says so there first: what comes in afterwards finds it closed, and the session goes on unharmed."""
    parts = {}

    def wrap(services):
        parts["audit"] = FirstPartIsLate(services["audit"])
        return {**services, **parts}

    limits = {"request_timeout_s": 2.0, "stream_timeout_s": 2.0, "rpc_timeout_s": 0.5}
    async with running_sidecar(tmp_path, upstream=upstream, wrap=wrap, **limits) as sidecar:
        first = await sidecar.chat()
        token, never = token_of(first), threading.Event()
        streams(provider, [*spoken(FIRST, SECOND)[:3], never])
        body = {"model": "m", "messages": QUESTION, "stream": True}
        sent = {"CRP-Stream-Final": "event", "CRP-Session-Token": token}
        refused = await sidecar.client.post("/v1/chat/completions", json=body, headers=sent)
        never.set()
        provider.answers("Fine.")
        async with asyncio.timeout(15):
            while (after := await sidecar.chat(token=token)).json().get("reason") == "WINDOW_IN_FLIGHT":
                await asyncio.sleep(0.1)
        late = await parts["audit"].arrives()
        found = await sidecar.events(first.headers["crp-context-session-id"])

    assert refused.status_code >= 500
    assert after.status_code == 200
    assert (after.headers["crp-context-window"], after.headers["crp-agent-safety-budget"]) == ("2/200", "1.00")
    assert late.refusal.reason == "STREAM_GIVEN_UP"
    assert "STREAM_PART" not in {one.event_type for one in found}


@pytest.mark.req("BUD-9")
async def test_a_stream_whose_place_is_taken_in_the_chain_is_charged_beside_it(tmp_path, provider, upstream):
    """The store was set back and admitted it where another window is sealed: its part has left, so it is a branch at what it held."""
    heard = threading.Event()
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        first = await sidecar.chat()
        trees = sidecar.services["session"].servicer._ledger.store._trees
        before = copy.deepcopy(trees)
        await sidecar.chat(token=token_of(first))
        trees.clear()
        trees.update(before)
        script = spoken(FIRST, SECOND)
        streams(provider, [*script[:3], heard, *script[3:]])
        body = {"model": "m", "messages": QUESTION, "stream": True}
        sent = {"CRP-Stream-Final": "event", "CRP-Session-Token": token_of(first)}
        async with sidecar.client.stream("POST", "/v1/chat/completions", json=body, headers=sent) as answer:
            said = ""
            async for piece in answer.aiter_text():
                said += piece
                heard.set()
        session_id = first.headers["crp-context-session-id"]
        found = await sidecar.events(session_id)
        (state,) = [one for tree in trees.values() for one in tree.values()]
        patterns = {node.window_id: node.pattern for node in state.nodes}
        valid = await sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=session_id))
        shown = await sidecar.client.get(
            f"/crp/v3/session/{session_id}", headers={"CRP-Session-Token": token_of(first)}
        )
    (part,) = [one for one in found if one.event_type == "STREAM_PART"]
    (sealed,) = [
        json.loads(one.data_json)
        for one in found
        if one.event_type == "WINDOW_SEALED" and one.window_id == part.window_id
    ]

    assert FIRST in said
    assert "CHAIN_CONFLICT" in said
    assert (sealed["status"], sealed["charge_micros"]) == ("HALTED", 350_000)
    assert patterns[part.window_id] == "BRANCH"
    assert state.holds == ()
    assert not valid.faults
    assert shown.json()["safety_budget_micros"] == 650_000


@pytest.mark.req("BUD-8")
async def test_a_lost_stream_whose_hold_leaves_nothing_is_closed_by_the_call_that_it_refuses(
    tmp_path, provider, upstream
):
    """A branch spends what the hold had left. No window opens any more, so the call that is refused has the lost one charged."""
    down, heard = Down(), threading.Event()

    def wrap(services):
        return {**services, "audit": Hooked(services["audit"], Append=down)}

    limits = {"request_timeout_s": 2.0, "stream_timeout_s": 2.0, "rpc_timeout_s": 0.5}
    async with running_sidecar(tmp_path, upstream=upstream, wrap=wrap, dpe=DpeDouble(), **limits) as sidecar:
        first = await sidecar.chat()
        branch = {"CRP-Session-Token": token_of(first), "CRP-Session-Action": "branch"}
        second = await sidecar.chat(token=token_of(first))
        script = spoken(FIRST, SECOND)
        streams(provider, [*script[:3], heard, *script[3:]])
        body = {"model": "m", "messages": QUESTION, "stream": True}
        sent = {"CRP-Stream-Final": "event", "CRP-Session-Token": token_of(second)}
        async with sidecar.client.stream("POST", "/v1/chat/completions", json=body, headers=sent) as answer:
            async for _ in answer.aiter_text():
                down.now = True
                heard.set()
        provider.answers("Fine.")
        down.now = False
        sidecar.dpe.report = a_report("CRITICAL")
        spent = await sidecar.chat(headers=branch)
        spent = await sidecar.chat(token=token_of(spent))
        sidecar.dpe.report = None
        while_it_may_end = await sidecar.chat(token=token_of(second))
        async with asyncio.timeout(15):
            while (closed := await sidecar.chat(token=token_of(second))).json().get("reason") == "BUDGET_HELD":
                await asyncio.sleep(0.1)
        found = await sidecar.events(first.headers["crp-context-session-id"])
    (ended,) = [json.loads(one.data_json) for one in found if one.event_type == "STREAM_ENDED"]

    assert reason_of(while_it_may_end) == "BUDGET_HELD"
    assert "left_open" not in while_it_may_end.text
    assert reason_of(closed) == "WINDOW_ALREADY_SETTLED"
    assert (ended["ending"], ended["running_hash"]) == ("LOST", hashed(FIRST))


@pytest.mark.req("BUD-8")
@pytest.mark.parametrize(("kind", "charged"), [(Hooked, 350_000), (FirstPartIsLate, 0)], ids=["charged", "freed"])
async def test_a_lost_stream_of_a_session_that_is_spent_is_closed_by_the_call_that_it_refuses(
    tmp_path, provider, upstream, kind, charged
):
    """The session stays refused as spent. What its stream held is charged where a part left, and given back to its caller where none did."""
    down, heard = Down(), threading.Event()

    def wrap(services):
        return {
            **services,
            "audit": kind(services["audit"], Append=down),
            "session": Hooked(services["session"], AbandonWindow=down),
        }

    limits = {"request_timeout_s": 2.0, "stream_timeout_s": 2.0, "rpc_timeout_s": 0.5, "caller_budget": 1.0}
    async with running_sidecar(tmp_path, upstream=upstream, wrap=wrap, **limits) as sidecar:
        first = await sidecar.chat()
        store, session_id = sidecar.services["session"]._inner._ledger.store, first.headers["crp-context-session-id"]
        script = spoken(FIRST, SECOND)
        streams(provider, [*script[:3], heard, *script[3:]])
        body = {"model": "m", "messages": QUESTION, "stream": True}
        sent = {"CRP-Stream-Final": "event", "CRP-Session-Token": token_of(first)}
        down.now = not charged
        async with sidecar.client.stream("POST", "/v1/chat/completions", json=body, headers=sent) as answer:
            async for _ in answer.aiter_text():
                down.now = True
                heard.set()
        heard.set()
        down.now = False
        (tree,) = store._trees.values()
        (caller,) = store._callers
        assert [len(tree[session_id].holds), len(store._callers[caller].now.holds)] == [1, 1]
        tree[session_id] = replace(tree[session_id], budget=50_000)  # as branches of another part of the tree spend it
        async with asyncio.timeout(15):
            while tree[session_id].holds:
                refused = await sidecar.chat(token=token_of(first))
                await asyncio.sleep(0.1)
        found = await sidecar.events(session_id)
        held = store._callers[caller].now
    (ended,) = [json.loads(one.data_json) for one in found if one.event_type == "STREAM_ENDED"]

    assert (refused.status_code, refused.json()["crp_halt_reason"]) == (451, "SAFETY_BUDGET_DEPLETED")
    assert "left_open" not in refused.text
    assert (ended["ending"], ended["parts"]) == ("LOST", int(charged > 0))
    assert (held.holds, sum(held.spent.values())) == ({}, charged)
