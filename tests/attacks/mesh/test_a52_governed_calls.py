"""A-52: a governed call whose service is answered for by something else ends in a refusal, and nothing sealed is lost."""

from __future__ import annotations

import asyncio

import httpx
import pytest
import pytest_asyncio

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import FULL
from interlock.runtime.rpc import answers, echo_channel, mesh
from interlock.runtime.rpc.channel import LocalContext
from tests.support.servers.bending import BENDS
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.bent import Bent, bent_sidecar
from tests.support.sidecar.sidecar import reason_of, token_of
from tests.support.sidecar.world import agents_file

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.finding("F-22", "F-29")]

SECRET = "the-answer-that-nobody-gets"
REASONS = {*answers.UNUSABLE, "DPE_REPORT_INVALID"}
CACHED_S = 0.1
LIMITS = {"rpc_timeout_s": 5, "request_timeout_s": 8, "dpe_timeout_s": 5}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bent(tmp_path_factory):
    provider = Provider()
    with RunningProvider(provider) as served:
        provider.answers(f"{SECRET} LOW")
        folder = tmp_path_factory.mktemp("mesh")
        agents = agents_file(folder, {"analyst": {}})
        async with bent_sidecar(
            folder, served.base_url, agents_file=agents, agent_cache_s=CACHED_S, **LIMITS
        ) as running:
            running.provider = provider
            yield running


@pytest.fixture(scope="module")
def left_open() -> list[tuple[str, str]]:
    """Session and token of every call that was refused, for the last test: what a refusal left open waits for its lease."""
    return []


async def chat(bent: Bent, *, token: str = "", text: str = "What is it?", **headers: str) -> httpx.Response:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    sent = {**headers, **({"crp-session-token": token} if token else {})}
    return await bent.client.post("/v1/chat/completions", json=body, headers=sent)


async def whole(bent: Bent, session_id: str) -> None:
    """Check that what was sealed is settled: the chain verifies, and the session holds the budget that it tells."""
    audit, session = bent.services["audit"].servicer, bent.services["session"].servicer
    context = LocalContext(10)
    found = await audit.Verify(audit_pb2.VerifyRequest(session_id=session_id), context)
    standing = (await audit.GetStanding(audit_pb2.GetStandingRequest(session_id=session_id), context)).standing
    state = (await session.GetSession(session_pb2.GetSessionRequest(session_id=session_id), context)).session

    assert found.integrity in {common_pb2.CHAIN_INTEGRITY_VALID, common_pb2.CHAIN_INTEGRITY_UNVERIFIED}, found
    assert standing.sealed_windows == sum(window.status != "FAILED" for window in state.windows)
    assert FULL - found.charged_micros == state.safety_budget_micros


def no_answer(response: httpx.Response, reasons: set[str] = REASONS) -> None:
    assert response.status_code == 503, response.text
    assert reason_of(response) in reasons
    assert SECRET not in response.text


GOVERNING = (
    "session.StartSession", "session.OpenWindow", "session.CommitWindow", "policy.IdentifyAgent", "policy.Resolve", "policy.Decide",
    "dpe.Analyze", "audit.Append", "audit.Record",
)  # fmt: skip


@pytest.mark.parametrize("bend", BENDS)
@pytest.mark.parametrize("name", GOVERNING)
async def test_a52_a_call_with_a_bent_answer_releases_nothing(bent, left_open, name, bend):
    """The caller gets a refusal with a reason in time, and another session is served once the answers are right."""
    bent.heal()
    first = await chat(bent)
    assert first.status_code == 200, first.text
    assert SECRET in first.text
    token, session_id = token_of(first), first.headers["crp-context-session-id"]
    service, method = name.split(".")
    bent.proxies[service].bends[method] = BENDS[bend]
    await asyncio.sleep(CACHED_S * 2)  # what was learned of the caller is forgotten
    opens = method in {"StartSession", "Record"}  # asked for by a new session alone

    async with asyncio.timeout(LIMITS["request_timeout_s"] + 5):
        refused = await chat(
            bent, token="" if opens else token, text="And then?", **{"crp-safety-policy": "halt-on CRITICAL"}
        )

    assert method in bent.proxies[service].bent
    no_answer(refused)
    bent.heal()
    other = await chat(bent)
    assert other.status_code == 200, other.text
    await whole(bent, other.headers["crp-context-session-id"])
    left_open.append((session_id, token))


async def settled(bent: Bent, session_id: str, token: str) -> None:
    """Go on with a session until what was left open in it is settled."""
    async with asyncio.timeout(40):
        while True:
            after = await chat(bent, token=token, text="Go on.")
            if (
                after.status_code == 200 or reason_of(after) == "TOKEN_REPLAYED"
            ):  # settled, and the token was in that answer
                break
            assert after.status_code in {409, 503}, after.text
            token = token_of(after) if "crp-set-session" in after.headers else token
            await asyncio.sleep(0.5)
    await whole(bent, session_id)


def _decided(answer) -> None:
    answer.decision.action = policy_pb2.ACTION_DELIVER
    answer.decision.reason = "SAFETY_HALT"


LIES = {
    "a policy with the hash of another": ("policy.Resolve", lambda a: setattr(a, "policy_text", "halt-on CRITICAL; x")),
    "a resolved policy without its hash": ("policy.Resolve", lambda a: a.ClearField("policy_hash")),
    "no decision": ("policy.Decide", lambda a: a.ClearField("decision")),
    "an unknown action": ("policy.Decide", lambda a: setattr(a.decision, "action", 99)),
    "delivered for a reason to halt": ("policy.Decide", _decided),
    "halted for no reason": ("policy.Decide", lambda a: setattr(a.decision, "action", policy_pb2.ACTION_HALT)),
    "no report": ("dpe.Analyze", lambda a: a.ClearField("report")),
    "0.99 as LOW": ("dpe.Analyze", lambda a: setattr(a.report, "composite_score", 0.99)),
    "every stage skipped": ("dpe.Analyze", lambda a: [setattr(s, "status", 2) for s in a.report.stages]),
    "no stages": ("dpe.Analyze", lambda a: a.report.ClearField("stages")),
    "a claim that is not listed": ("dpe.Analyze", lambda a: setattr(a.report, "claims_total", 7)),
    "a score that is no number": ("dpe.Analyze", lambda a: setattr(a.report, "grounding_pct", float("nan"))),
    "a choice that is worse than all": (
        "dpe.Analyze",
        lambda a: a.report.choices.add(choice_index=5, composite_score=0.9, risk_level=common_pb2.RISK_LEVEL_CRITICAL),
    ),
    "a seal without its HMAC": ("audit.Append", lambda a: a.ClearField("hmac")),
    "a seal of unknown integrity": ("audit.Append", lambda a: setattr(a, "integrity", 99)),
    "an empty seal": ("audit.Append", lambda a: a.Clear()),
    "a budget above the full one": ("session.CommitWindow", lambda a: setattr(a, "session_budget_micros", 2_000_000)),
    "a budget that rises": ("session.CommitWindow", lambda a: setattr(a, "safety_budget_micros", 1_000_000)),
    "a breaker milder than its budget": ("session.CommitWindow", lambda a: setattr(a, "session_budget_micros", 50_000)),
    "a settlement without a token": ("session.CommitWindow", lambda a: a.ClearField("token")),
    "a window of no session": ("session.OpenWindow", lambda a: a.window.ClearField("session_id")),
    "an opened policy with another hash": (
        "session.OpenWindow",
        lambda a: setattr(a.window, "policy_hash", "sha256:0"),
    ),
    "a window whose breaker is unknown": ("session.OpenWindow", lambda a: a.window.ClearField("breaker")),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a52_an_answer_that_contradicts_itself_decides_nothing(bent, left_open, lie):
    """It carries the echo of its call, so only its own fields speak against it."""
    bent.heal()
    bent.provider.answers(f"{SECRET} MEDIUM")  # so that the budget could rise
    first = await chat(bent)
    bent.provider.answers(f"{SECRET} LOW")
    service, method = LIES[lie][0].split(".")
    bent.servicers[service].lies[method] = lambda answer: None if answer.HasField("refusal") else LIES[lie][1](answer)

    async with asyncio.timeout(LIMITS["request_timeout_s"] + 5):
        refused = await chat(bent, token=token_of(first), text="And then?", **{"crp-safety-policy": "halt-on CRITICAL"})

    no_answer(refused)
    left_open.append((first.headers["crp-context-session-id"], token_of(first)))


async def test_a52_every_session_goes_on_once_the_answers_are_right(bent, left_open):
    """All that the cases above left open is settled, a window that was sealed included. They wait for their leases together."""
    assert left_open, "the cases above leave the sessions; run the whole file"
    bent.heal()

    await asyncio.gather(*(settled(bent, session_id, token) for session_id, token in left_open))


async def test_a52_an_empty_policy_does_not_take_the_callers_policy_away(bent):
    """F-22: a CRITICAL answer under ``halt-on HIGH`` was delivered when Resolve came back empty."""
    bent.heal()
    bent.provider.answers(f"{SECRET} CRITICAL")
    try:
        halted = await chat(bent, **{"crp-safety-policy": "halt-on HIGH"})
        bent.proxies["policy"].bends["Resolve"] = BENDS["empty"]
        await asyncio.sleep(CACHED_S * 2)  # the good answer is not used any more
        refused = await chat(bent, **{"crp-safety-policy": "halt-on HIGH"})
    finally:
        bent.heal()
        bent.provider.answers(f"{SECRET} LOW")

    assert halted.status_code == 451
    no_answer(refused)


async def test_a52_without_the_defences_the_answer_gets_out(tmp_path, monkeypatch):
    """What the tests above show is the work of the echo and of the rules: with both switched off, F-22 is back."""
    monkeypatch.setattr(mesh, "EchoChannel", lambda channel, **_: channel)
    monkeypatch.setattr(answers, "fault_of", lambda *_: "")
    provider = Provider()
    with RunningProvider(provider) as served:
        provider.answers(f"{SECRET} CRITICAL")
        async with bent_sidecar(tmp_path, served.base_url, **LIMITS) as running:
            running.proxies["policy"].bends["Resolve"] = BENDS["empty"]
            delivered = await chat(running, **{"crp-safety-policy": "halt-on HIGH"})

    assert echo_channel.EchoChannel is not mesh.EchoChannel
    assert (delivered.status_code, SECRET in delivered.text) == (200, True), delivered.text
