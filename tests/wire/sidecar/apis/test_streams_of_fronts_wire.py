"""Answers that leave sentence by sentence by every front, from providers of every API, read by the vendors' own clients (API-4, BUD-11)."""

from __future__ import annotations

import hashlib
import json
import threading
from typing import Any

import openai
import pytest

from interlock.sidecar.fronts import streamed
from interlock.sidecar.openai import fields
from tests.support.servers.scripts import FAILS, SCRIPTS
from tests.support.servers.streaming import streams
from tests.support.sidecar.listening import FRONTS, Heard, listened
from tests.support.sidecar.listening import MESSAGES as MESSAGE
from tests.support.sidecar.sidecar import RunningSidecar, running_sidecar

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("API-4", "BUD-11")

FIRST, SECOND, THIRD = "The sky is blue.", " The sea is wide.", " The hill is high."
GRAVE = " It is CRITICAL that this leaves."
HALTS = {"CRP-Safety-Policy": "halt-on CRITICAL", "CRP-Stream-Final": "event"}
RESPONSES, MESSAGES, COMPLETIONS = "/v1/responses", "/v1/messages", "/v1/completions"


def pairs(*quick: tuple[str, str]) -> pytest.MarkDecorator:
    """Every front with every API of a provider; every run takes the *quick* ones."""
    marks = dict.fromkeys(quick, ())
    return pytest.mark.parametrize(
        ("path", "api"),
        [
            pytest.param(path, api, marks=marks.get((path, api), pytest.mark.long), id=f"{path}-{api}")
            for path in FRONTS
            for api in SCRIPTS
        ],
    )


async def events_of(sidecar: RunningSidecar, kind: str) -> list[Any]:
    """The events of the one session that there is, of one kind, as data."""
    (session_id,) = {one.session_id for one in sidecar.dpe.asked}
    return [json.loads(one.data_json) for one in await sidecar.events(session_id) if one.event_type == kind]


def hashed(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def test_every_front_and_every_api_of_a_provider_has_its_row():
    """A front that is wired and not listened to would stream untested."""
    from tests.support.sidecar import parity

    assert set(FRONTS) == set(parity.REQUESTS)
    assert set(SCRIPTS) == set(parity.PROVIDERS)


@pairs((RESPONSES, "chat"), (RESPONSES, "responses"), (MESSAGES, "messages"), (COMPLETIONS, "chat"))
async def test_the_first_sentence_is_on_record_and_leaves_before_the_provider_has_ended(
    tmp_path, provider, upstream, path, api
):
    """The provider waits for the client's first sentence; what the client has is in the chain by then, and the whole at the end."""
    heard, script = threading.Event(), SCRIPTS[api](FIRST, SECOND, THIRD)
    streams(provider, [*script.begins, *script.says[:2], heard, *script.says[2:], *script.ends])
    recorded: list[str] = []
    async with running_sidecar(tmp_path, upstream=upstream, upstream_api=api) as sidecar:

        async def said(text: str) -> None:
            if not heard.is_set():
                recorded.append(text)
                recorded.extend(one["running_hash"] for one in await events_of(sidecar, "STREAM_PART"))
            heard.set()

        whole = await listened(path, sidecar.http, said=said)
        (ended,) = await events_of(sidecar, "STREAM_ENDED")

    assert recorded == [FIRST, hashed(FIRST)]
    assert (whole.text, whole.error) == (FIRST + SECOND + THIRD, None)
    assert whole.ended in {"stop", "end_turn", "completed"}
    assert (ended["ending"], ended["running_hash"]) == ("COMPLETE", hashed(whole.text))
    assert provider.received[0].body["stream"] is True


def assert_cut(path: str, heard: Heard) -> None:
    """Hold that a client knows that the answer was cut: by how it ended, and by an error with the reason."""
    if path == RESPONSES:
        last = heard.events[-1].response
        assert (heard.ended, last.incomplete_details.reason, last.output_text) == (
            "incomplete",
            "content_filter",
            heard.text,
        )
        assert [one.sequence_number for one in heard.events if one.type != "crp"] == [
            number for number, one in enumerate(heard.events) if one.type != "crp"
        ]
    elif path == MESSAGES:
        assert heard.ended == "refusal"
        assert "message_stop" not in heard.kinds
        (delta,) = [one for one in heard.events if one.type == "message_delta"]
        assert delta.usage.output_tokens == 0  # not known before the end
    else:
        assert heard.ended == "content_filter"
    body: Any = heard.error.body
    assert (body["error"]["type"] if path == MESSAGES else body["code"]) in {"permission_error", "safety_halt"}


@pairs((RESPONSES, "chat"), (MESSAGES, "messages"))
async def test_a_grave_sentence_never_leaves_and_the_client_knows_that_it_was_cut(
    tmp_path, provider, upstream, path, api
):
    """What was released stays; the third sentence and what follows do not come; the chain says where it was cut."""
    heard, script = threading.Event(), SCRIPTS[api](FIRST, SECOND, GRAVE, THIRD)
    streams(provider, [*script.begins, *script.says[:2], heard, *script.says[2:], *script.ends])

    async def said(_text: str) -> None:
        heard.set()

    async with running_sidecar(tmp_path, upstream=upstream, upstream_api=api) as sidecar:
        cut = await listened(path, sidecar.http, said=said, headers=HALTS)
        (ended,) = await events_of(sidecar, "STREAM_ENDED")
        (sealed,) = await events_of(sidecar, "WINDOW_SEALED")

    assert (FIRST + SECOND).startswith(cut.text)
    assert cut.text.startswith(FIRST)
    assert_cut(path, cut)
    assert (ended["ending"], ended["running_hash"], sealed["status"]) == ("CUT", hashed(cut.text), "HALTED")


@pairs((RESPONSES, "responses"))
async def test_a_provider_that_fails_later_is_told_as_a_failure(tmp_path, provider, upstream, path, api):
    """The first sentence has left: the client gets an error that it raises, none of the provider's words, and no end."""
    heard, script = threading.Event(), SCRIPTS[api](FIRST, SECOND)
    streams(provider, [*script.begins, *script.says, heard, FAILS[api]])

    async def said(_text: str) -> None:
        heard.set()

    async with running_sidecar(tmp_path, upstream=upstream, upstream_api=api) as sidecar:
        broken = await listened(path, sidecar.http, said=said)
        (ended,) = await events_of(sidecar, "STREAM_ENDED")

    assert (broken.text, broken.ended) == (FIRST, "failed" if path == RESPONSES else None)
    assert broken.error is not None
    assert "secret" not in str(broken.error.body)
    assert (ended["ending"], ended["running_hash"]) == ("BROKEN", hashed(FIRST))


@pairs((RESPONSES, "responses"), (MESSAGES, "messages"))
async def test_reasoning_and_calls_leave_whole_once_they_were_judged(tmp_path, provider, upstream, path, api):
    """Reasoning comes before the first sentence and is on record with it; the call comes at the end."""
    arguments, thought = '{"at": "sky"}', "Let me see."
    heard, script = threading.Event(), SCRIPTS[api](FIRST, SECOND, reasoning=thought, call=arguments)
    streams(provider, [*script.begins, *script.says, heard, *script.ends])

    async def said(_text: str) -> None:
        heard.set()

    async with running_sidecar(tmp_path, upstream=upstream, upstream_api=api) as sidecar:
        whole = await listened(path, sidecar.http, said=said)
        parts = await events_of(sidecar, "STREAM_PART")
        judged = [{(output.kind, output.text) for output in one.outputs} for one in sidecar.dpe.asked]

    silent = path == COMPLETIONS  # this API has neither
    assert (whole.text, whole.thought) == (FIRST + SECOND, "" if silent else thought)
    assert whole.arguments.replace(" ", "") == ("" if silent else arguments.replace(" ", ""))
    assert parts[0]["running_hash"] == hashed(thought + FIRST)
    assert judged[0] == {("content", thought), ("content", FIRST)}
    assert any(kind == "tool_call" for kind, _ in judged[-1])


async def test_grave_reasoning_never_leaves(tmp_path, provider, upstream):
    """The judge is handed the reasoning with the first sentence: neither leaves, and the answer is refused as a whole."""
    script = SCRIPTS["chat"](FIRST, SECOND, reasoning="It is CRITICAL.")
    streams(provider, script.whole)
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        halted = await listened(MESSAGES, sidecar.http, headers=HALTS)

    assert (halted.text, halted.thought, halted.kinds) == ("", "", [])
    assert halted.error.status_code == 451


async def test_a_response_that_came_in_parts_can_be_gone_on_from(tmp_path, provider, upstream):
    """It is kept as it left: by its id it is shown again, item by item, and the next request has it in front."""
    heard, script = threading.Event(), SCRIPTS["chat"](FIRST, SECOND, reasoning="Let me see.")
    streams(provider, [*script.begins, *script.says, heard, *script.ends])

    async def said(_text: str) -> None:
        heard.set()

    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        whole = await listened(RESPONSES, sidecar.http, said=said)
        last = whole.events[-1].response
        key = {"authorization": "Bearer sk-client"}
        kept = (await sidecar.client.get(f"/v1/responses/{last.id}", headers=key)).json()
        provider.answers("Fine.")
        asked = {"model": "m", "input": "Why?", "previous_response_id": last.id}
        after = await sidecar.client.post(RESPONSES, json=asked, headers=key)

    assert kept["output"] == [one.model_dump(mode="json", exclude_unset=True) for one in last.output]
    assert kept["created_at"] == last.created_at == whole.events[0].response.created_at
    assert after.status_code == 200
    assert [one["content"] for one in provider.received[1].body["messages"]] == ["What is it?", FIRST + SECOND, "Why?"]


@pytest.mark.long
async def test_a_response_that_was_cut_is_not_kept(tmp_path, provider, upstream):
    """Nothing goes on from what may not leave."""
    heard, script = threading.Event(), SCRIPTS["chat"](FIRST, SECOND, GRAVE)
    streams(provider, [*script.begins, *script.says[:2], heard, *script.says[2:], *script.ends])

    async def said(_text: str) -> None:
        heard.set()

    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        cut = await listened(RESPONSES, sidecar.http, said=said, headers=HALTS)
        found = await sidecar.client.get(
            f"/v1/responses/{cut.events[-1].response.id}", headers={"authorization": "Bearer sk-client"}
        )

    assert found.status_code == 404


@pytest.mark.parametrize(
    ("path", "sign"), [pytest.param(RESPONSES, ": keep-alive", marks=pytest.mark.long), (MESSAGES, "event: ping")]
)
async def test_a_silent_stream_lives(tmp_path, provider, upstream, monkeypatch, path, sign):
    """While the provider is silent after the first part, the client is told so in the words of its API."""
    monkeypatch.setattr(streamed, "KEEP_ALIVE_S", 0.01)
    heard, script = threading.Event(), SCRIPTS["chat"](FIRST, SECOND)
    streams(provider, [*script.begins, *script.says, heard, *script.ends])
    asked = (
        {"model": "m", "max_tokens": 9, "messages": MESSAGE} if path == MESSAGES else {"model": "m", "input": "What?"}
    )
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        said = ""
        async with sidecar.client.stream("POST", path, json={**asked, "stream": True}) as answer:
            async for piece in answer.aiter_text():
                said += piece
                if sign in said.partition("blue.")[2]:
                    heard.set()

    assert sign in said.partition("blue.")[2].partition("wide.")[0]


@pytest.mark.parametrize("path", [RESPONSES, pytest.param(MESSAGES, marks=pytest.mark.long)])
async def test_reasoning_behind_the_first_part_is_left_out_and_counted(tmp_path, provider, upstream, path):
    """It has no place any more. The chain says that the provider's answer had it."""
    heard, script, late = threading.Event(), SCRIPTS["chat"](FIRST, SECOND), SCRIPTS["chat"](reasoning="Wait, secret.")
    streams(provider, [*script.begins, *script.says, heard, *late.begins, *script.ends])

    async def said(_text: str) -> None:
        heard.set()

    counted = fields.DROPPED.labels("reasoning")._value.get()
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        whole = await listened(path, sidecar.http, said=said)
        (completed,) = await events_of(sidecar, "DISPATCH_COMPLETED")

    assert (whole.text, whole.thought, whole.error) == (FIRST + SECOND, "", None)
    assert "reasoning" in json.dumps(completed)
    assert fields.DROPPED.labels("reasoning")._value.get() == counted + 1


async def test_a_last_event_that_says_something_else_breaks_the_answer_off(tmp_path, provider, upstream):
    """The deltas were released, the whole at the end begins otherwise: nothing more leaves, and the window is sealed as broken."""
    heard, script, other = (
        threading.Event(),
        SCRIPTS["responses"](FIRST, SECOND),
        SCRIPTS["responses"]("The sky is green."),
    )
    streams(provider, [*script.begins, *script.says, heard, other.ends[-1]])

    async def said(_text: str) -> None:
        heard.set()

    async with running_sidecar(tmp_path, upstream=upstream, upstream_api="responses") as sidecar:
        broken = await listened("/v1/chat/completions", sidecar.http, said=said)
        (ended,) = await events_of(sidecar, "STREAM_ENDED")

    assert (broken.text, broken.ended, broken.error.body["code"]) == (FIRST, None, "upstream_invalid_response")
    assert (ended["ending"], ended["running_hash"]) == ("BROKEN", hashed(FIRST))


@pytest.mark.long
@pytest.mark.parametrize("grave", [False, True])
async def test_the_agents_sdk_streams_by_its_default_api(tmp_path, provider, upstream, grave):
    """Its runner hears the first sentence before the provider has ended; of a stream that is cut it makes an error, no answer."""
    from agents import Agent, ModelSettings, OpenAIResponsesModel, RunConfig, Runner

    heard, script = threading.Event(), SCRIPTS["chat"](FIRST, SECOND, GRAVE if grave else THIRD)
    streams(provider, [*script.begins, *script.says[:2], heard, *script.says[2:], *script.ends])
    said, error, final = "", None, None
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        async with openai.AsyncOpenAI(base_url=f"{sidecar.http}/v1", api_key="sk-client", max_retries=0) as client:
            agent = Agent(
                name="one",
                model=OpenAIResponsesModel("m", client),
                model_settings=ModelSettings(extra_headers=HALTS),
            )
            run = Runner.run_streamed(agent, "What is it?", run_config=RunConfig(tracing_disabled=True))
            try:
                async for event in run.stream_events():
                    if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                        said += event.data.delta
                        heard.set()
                final = run.final_output
            except Exception as raised:  # whichever of its classes
                error = raised
        (ended,) = await events_of(sidecar, "STREAM_ENDED")

    if grave:
        assert (said in {FIRST, FIRST + SECOND}, final, ended["ending"]) == (True, None, "CUT")
        assert error is not None
    else:
        assert (said, final, error, ended["ending"]) == (
            FIRST + SECOND + THIRD,
            FIRST + SECOND + THIRD,
            None,
            "COMPLETE",
        )
