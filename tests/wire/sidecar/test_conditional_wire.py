"""Conditional calls, the cache status and the measures of the context, over HTTP and gRPC (SPEC-002 §4; SPEC-003 §9, §11)."""

from __future__ import annotations

import json

import grpc
import pytest

from interlock.api.sidecar.v1 import sidecar_pb2
from tests.support.servers.provider import completion, message, tool_call
from tests.support.sidecar import answering
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import dag, onward, window_of

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.sidecar

QUESTION = "What is ISO 42001?"
ETAG = "sha256:" + "ab" * 32
"""The ETag that the analysis of these tests gives every context."""
OTHER = "sha256:" + "cd" * 32
STATUS = "crp-context-cache-status"
CREDENTIALS = {"crp-set-session", "crp-context-continuation-id", "crp-safety-nonce"}


def again(etag: str = ETAG, **more: str) -> dict[str, str]:
    """Headers of a call that has an answer already."""
    return {"crp-context-if-match": etag, **{f"crp-{name.replace('_', '-')}": value for name, value in more.items()}}


def crp(response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith("crp-") and name != STATUS}


@pytest.mark.finding("F-19")
async def test_an_unchanged_call_is_answered_304_with_the_headers_of_its_answer(sidecar, provider):
    """TV-004: no body, every header as it was, and nothing is dispatched, opened or charged."""
    first = await sidecar.chat(QUESTION)
    then = await sidecar.chat(QUESTION, token=token_of(first), headers=again(first.headers["crp-context-etag"]))

    assert (then.status_code, then.content) == (304, b"")
    assert then.headers[STATUS] == "HIT"
    assert crp(then) == crp(first)
    assert len(provider.received) == 1
    assert list(await dag(sidecar, first)) == [window_of(first)]


@pytest.mark.finding("F-19")
async def test_without_the_token_a_304_gives_no_session_away(sidecar, provider):
    """Who knows a request and its ETag learns that its answer stands, and gets nothing to go on in its session with."""
    first = await sidecar.chat(QUESTION)
    then = await sidecar.chat(QUESTION, headers=again())

    assert then.status_code == 304
    assert CREDENTIALS & first.headers.keys() == CREDENTIALS
    assert not CREDENTIALS & then.headers.keys() and "set-cookie" not in then.headers
    assert {name: value for name, value in crp(first).items() if name not in CREDENTIALS} == crp(then)
    assert len(provider.received) == 1


@pytest.mark.finding("F-19")
async def test_a_stream_and_any_etag_are_answered_alike(sidecar, provider):
    """The form of the answer does not matter to one that is not sent; * is any answer of the token's session."""
    first = await sidecar.chat(QUESTION)
    streamed = await sidecar.chat(QUESTION, token=token_of(first), headers=again("*"), stream=True)
    untold = await sidecar.chat(QUESTION, headers=again("*"))

    assert (streamed.status_code, streamed.content, streamed.headers[STATUS]) == (304, b"", "HIT")
    assert (untold.status_code, untold.headers[STATUS]) == (200, "MISS; reason=token-needed")


@pytest.mark.finding("F-19")
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"headers": again(OTHER)}, "facts-updated"),
        ({"headers": again(context_cache="no-cache")}, "no-cache"),
        ({"headers": again(), "temperature": 0.3}, "not-known"),
        ({"headers": again(safety_policy="halt-on HIGH")}, "not-known"),
        ({"headers": again(context_strategy="pull")}, "not-known"),
        ({"headers": again(), "interlock": {"facts": [{"id": "a", "content": "It is a standard."}]}}, "not-known"),
        ({"headers": again(context_cache="max-age=0")}, "expired"),
    ],
)
async def test_a_call_that_is_not_the_same_is_made(sidecar, provider, changed, reason):
    """Another context, question, policy, strategy or age: the answer is made anew, and the header says why."""
    first = await sidecar.chat(QUESTION)
    then = await sidecar.chat(QUESTION, token=token_of(first), **changed)

    assert (then.status_code, then.headers[STATUS]) == (200, f"MISS; reason={reason}")
    assert len(provider.received) == 2


@pytest.mark.finding("F-19")
async def test_an_answer_does_not_stand_once_its_session_went_on_or_ended(sidecar, provider):
    """An answer of an earlier window, of an ended session or of another caller's is not vouched for again."""
    first = await sidecar.chat(QUESTION)
    second = await sidecar.chat("And then?", token=token_of(first), headers=onward(first))
    moved = await sidecar.chat(QUESTION, headers=again())
    other = await sidecar.chat("And then?", token=token_of(moved), headers=again())
    await sidecar.client.delete(
        f"/crp/v3/session/{moved.headers['crp-context-session-id']}", headers={"crp-session-token": token_of(moved)}
    )
    ended = await sidecar.chat(QUESTION, headers=again())
    foreign = await sidecar.chat(QUESTION, headers={**again(), "authorization": "Bearer another-key"})

    assert second.status_code == 200
    assert moved.headers[STATUS] == "MISS; reason=session-moved-on"
    assert other.headers[STATUS] == "MISS; reason=other-session"
    assert ended.headers[STATUS] in {"MISS; reason=session-ended", "MISS; reason=session-moved-on"}
    assert foreign.headers[STATUS] == "MISS; reason=not-known"


@pytest.mark.finding("F-19")
async def test_what_was_not_delivered_or_not_to_be_kept_is_never_vouched_for(sidecar, provider):
    """A halted answer was never had; under no-store nothing of an answer is kept."""
    provider.by_question[QUESTION] = "This is CRITICAL."
    halted = await sidecar.chat(QUESTION, headers={"crp-safety-policy": "halt-on CRITICAL"})
    again_halted = await sidecar.chat(QUESTION, headers=again(safety_policy="halt-on CRITICAL"))
    await sidecar.chat("Who?", headers={"crp-context-cache": "no-store"})
    unkept = await sidecar.chat("Who?", headers=again(context_cache="no-store"))

    assert (halted.status_code, again_halted.status_code) == (451, 451)
    assert (unkept.status_code, unkept.headers[STATUS]) == (200, "MISS; reason=not-known")


@pytest.mark.finding("F-19")
async def test_grpc_says_not_modified(sidecar, provider):
    """The same over gRPC: a field of the answer, the headers of the outcome, and trailing metadata."""
    body = json.dumps({"model": "test-model", "messages": [{"role": "user", "content": QUESTION}]}).encode()
    first = await sidecar.stub.Dispatch(sidecar_pb2.DispatchRequest(chat_request=body))
    context = sidecar_pb2.CallContext(
        session_token=first.outcome.session_token, if_match=first.outcome.headers["CRP-Context-ETag"]
    )
    call = sidecar.stub.Dispatch(sidecar_pb2.DispatchRequest(chat_request=body, context=context))
    then, trailing = await call, dict(await call.trailing_metadata())

    assert (first.not_modified, then.not_modified, then.chat_response) == (False, True, b"")
    assert dict(then.outcome.headers) == {**first.outcome.headers, "CRP-Context-Cache-Status": "HIT"}
    assert trailing[STATUS] == "HIT"
    assert trailing["crp-provenance-hmac"] == first.outcome.headers["CRP-Provenance-HMAC"]
    assert len(provider.received) == 1


@pytest.mark.finding("F-19")
async def test_a_malformed_condition_is_refused(sidecar):
    """What is no ETag names nothing."""
    refused = await sidecar.chat(QUESTION, headers=again("sha256:short"))

    assert (refused.status_code, reason_of(refused)) == (400, "INVALID_HEADER")


@pytest.mark.finding("F-19")
async def test_a_batch_says_that_it_takes_no_condition(sidecar):
    """Each item has a context of its own, so each is answered, with the reason in its headers."""
    body = {"model": "test-model", "messages": [{"role": "user", "content": QUESTION}]}
    await sidecar.chat(QUESTION)
    batch = await sidecar.client.post("/crp/v3/batch", json={"items": [{"id": "a", "body": body}]}, headers=again())
    (result,) = batch.json()["results"]

    assert (result["status"], result["headers"]["CRP-Context-Cache-Status"]) == (200, "MISS; reason=several-windows")


@pytest.mark.finding("F-19")
async def test_only_if_ckf_refuses_an_answer_without_a_source(sidecar, provider):
    """424, over HTTP and gRPC, before anything is begun; with a source the call is made."""
    cache = {"crp-context-cache": "only-if-ckf"}
    refused = await sidecar.chat(QUESTION, headers=cache)
    given = await sidecar.chat(QUESTION, headers=cache, interlock={"facts": [{"id": "a", "content": "A standard."}]})
    checked = sidecar_pb2.CheckRequest(
        text="It is a standard.", context=sidecar_pb2.CallContext(context_cache="only-if-ckf")
    )
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await sidecar.stub.Check(checked)

    assert (refused.status_code, reason_of(refused)) == (424, "NO_CONTEXT")
    assert refused.headers[STATUS] == "MISS; reason=no-context"
    assert "crp-context-session-id" not in refused.headers
    assert given.status_code == 200
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND
    assert len(provider.received) == 1


@pytest.mark.finding("F-19")
async def test_saturation_is_the_share_of_the_budget_that_the_context_takes(tmp_path, running, provider, dpe):
    """Tokens of the context over what the model's window, the answer's limit and the request leave, or over the call's budget."""
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=dpe, model_context_tokens=2048) as one:
        plain = await one.chat(QUESTION, max_tokens=1024)
        full = await one.chat(QUESTION, max_tokens=2000)
        own = await one.chat(
            "Q?", interlock={"facts": [{"id": "a", "content": "It is blue."}], "token_budget": 30}
        )  # 2 tokens of question

    assert plain.headers["crp-context-tokens-used"] == "7"
    # 2048 - 1024 for the answer - 512 of margin - (10 that the provider counted - 7 of the context)
    assert float(plain.headers["crp-context-saturation"]) == pytest.approx(7 / 509, abs=0.001)
    assert full.headers["crp-context-saturation"] == "1.000"
    assert 7 / 30 <= float(own.headers["crp-context-saturation"]) < 0.5


@pytest.mark.finding("F-19")
async def test_the_memory_tier_and_the_cache_status_tell_what_earlier_windows_gave(sidecar):
    """Tier 0 and MISS for a context of this request alone, tier 1 and PARTIAL where an earlier answer came along."""
    first = await sidecar.chat(QUESTION)
    alone = await sidecar.chat("And then?", token=token_of(first), headers=onward(first))
    moved = await sidecar.chat("More?", token=token_of(alone), headers=onward(alone), interlock={"transfer": "auto"})

    assert [(one.headers["crp-memory-tier-hit"], one.headers[STATUS]) for one in (first, alone, moved)] == [
        ("0", "MISS"), ("0", "MISS"), ("1", "PARTIAL; reason=earlier-windows"),
    ]  # fmt: skip


@pytest.mark.finding("F-19")
@pytest.mark.parametrize(
    "name", ["Context-Saturation", "Context-Cache-Status", "Agent-Phase", "Agent-Tool-Calls", "Memory-Tier-Hit"]
)
async def test_a_measure_is_the_gateways_to_write(sidecar, name):
    """A client that sends one is refused by name."""
    refused = await sidecar.chat(QUESTION, headers={f"crp-{name.lower()}": "1"})

    assert (refused.status_code, reason_of(refused)) == (400, "RESPONSE_HEADER_IN_REQUEST")


@pytest.mark.finding("F-19")
async def test_tool_calls_are_counted(sidecar, provider):
    """The calls that the answer asks for; 0 where tools were offered and none is called; nothing where none was offered."""
    tools = [{"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}}}]
    provider.by_question["Call it."] = completion(
        message(tool_calls=[tool_call("lookup", "{}", "call_1"), tool_call("lookup", "{}", "call_2")])
    )
    called = await sidecar.chat("Call it.", tools=tools)
    offered = await sidecar.chat(QUESTION, tools=tools)
    plain = await sidecar.chat(QUESTION)

    assert called.headers["crp-agent-tool-calls"] == "2"
    assert offered.headers["crp-agent-tool-calls"] == "0"
    assert "crp-agent-tool-calls" not in plain.headers
