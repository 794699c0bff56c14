"""Profiles over real HTTP: who knows nothing of CRP is watched or held to it, and who asks for protection gets it in both.

The analysis finds the risk that an answer names; everything else is real, and the caller is the plain ``openai`` client.
"""

from __future__ import annotations

import asyncio
import json

import httpx
import openai
import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from typer.testing import CliRunner

from interlock.api.audit.v1 import audit_pb2
from interlock.cli.main import app
from interlock.sidecar.admission import admission
from tests.support.sidecar import fronts
from tests.support.sidecar.sidecar import NO_COOKIES, a_report, reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import fan_out

pytestmark = pytest.mark.req("ATT-9")

running_provider, provider, upstream = fronts.running_provider, fronts.provider, fronts.upstream

QUESTION = [{"role": "user", "content": "What is it?"}]
CRITICAL, HIGH = "A CRITICAL answer.", "A HIGH answer."
HALTS = "halt-on CRITICAL"
OBSERVE = {"profile": "observe", "remediation": "none", "default_policy": HALTS}
ENFORCE = {**OBSERVE, "profile": "enforce"}
UNREVIEWED = {"reviewers_file": None}


def agent(sidecar) -> openai.AsyncOpenAI:
    """A client that knows a base URL and a key, and tries nothing twice."""
    http = httpx.AsyncClient(trust_env=False, timeout=30, cookies=NO_COOKIES)
    return openai.AsyncOpenAI(base_url=f"{sidecar.http}/v1", api_key="sk-plain", max_retries=0, http_client=http)


async def said(client: openai.AsyncOpenAI, **more):
    """What the client gets, with its headers."""
    return await client.chat.completions.with_raw_response.create(model="m", messages=QUESTION, **more)


async def refused(client: openai.AsyncOpenAI, **more) -> openai.APIStatusError:
    with pytest.raises(openai.APIStatusError) as caught:
        await said(client, **more)
    return caught.value


def would(action: str, reason: str) -> float:
    return REGISTRY.get_sample_value("interlock_would_have_total", {"action": action, "reason": reason}) or 0.0


async def trail(sidecar, session_id: str) -> dict[str, dict]:
    """The last event of each type in a session's trail."""
    return {one.event_type: json.loads(one.data_json) for one in await sidecar.events(session_id)}


async def test_observe_delivers_every_answer_and_tells_what_it_would_have_done(tmp_path, provider, upstream):
    """Twelve CRITICAL answers reach a plain client as they came; each is counted, shown, on record, exported and in the line."""
    provider.answers(CRITICAL)
    before = would("halt", "CRITICAL_HALLUCINATION_RISK")
    async with running_sidecar(tmp_path, upstream=upstream, **OBSERVE) as sidecar, agent(sidecar) as client:
        with capture_logs() as lines:
            answers = [await said(client) for _ in range(12)]
        sessions = [one.headers["crp-context-session-id"] for one in answers]
        trails = [await trail(sidecar, session_id) for session_id in sessions]
    exported = CliRunner(env={"INTERLOCK_STATE_DIR": str(sidecar.settings.state_dir)}).invoke(
        app, ["audit", "export", sessions[0], "--format", "ocsf"]
    )
    siem = [json.loads(line) for line in exported.stdout.splitlines()]

    assert [one.parse().choices[0].message.content for one in answers] == [CRITICAL] * 12
    assert {one.headers["crp-safety-would"] for one in answers} == {"halt; reason=CRITICAL_HALLUCINATION_RISK"}
    assert {one.headers["crp-safety-oversight-mode"] for one in answers} == {"log-only"}
    assert {one.headers["crp-agent-safety-budget"] for one in answers} == {"0.65"}
    assert would("halt", "CRITICAL_HALLUCINATION_RISK") == before + 12
    for told in trails:
        assert (told["WOULD_HAVE"]["action"], told["WOULD_HAVE"]["directive"]) == ("halt", "halt-on CRITICAL")
        assert told["POLICY_VIOLATION"]["report_only"] is True
        assert not {"SAFETY_HALT", "OVERSIGHT_TRIGGERED"} & told.keys()
    assert [one["api"]["operation"] for one in siem].count("WOULD_HAVE") == 1
    governed = [line for line in lines if line["event"] == "call.governed"]
    assert [line["would"] for line in governed] == [["halt CRITICAL_HALLUCINATION_RISK"]] * 12
    assert {line["outcome"] for line in governed} == {"DELIVERED"}


async def test_observe_says_nothing_of_an_answer_that_passes(tmp_path, provider, upstream):
    """No would-have, no header, no event where nothing would have been done."""
    provider.answers("A calm answer.")
    async with running_sidecar(tmp_path, upstream=upstream, **OBSERVE) as sidecar, agent(sidecar) as client:
        answer = await said(client)
        told = await trail(sidecar, answer.headers["crp-context-session-id"])

    assert "crp-safety-would" not in answer.headers
    assert answer.headers["crp-safety-oversight-mode"] == "auto"
    assert "WOULD_HAVE" not in told


async def test_observe_streams_and_keeps_what_it_delivered(tmp_path, provider, upstream):
    """A stream is delivered whole, and later windows may build on its text: it was received."""
    provider.answers(CRITICAL)
    async with running_sidecar(tmp_path, upstream=upstream, **OBSERVE) as sidecar, agent(sidecar) as client:
        stream = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
        text = "".join([one.choices[0].delta.content or "" async for one in stream])
        session_id = stream.response.headers["crp-context-session-id"]
        window_id = (await sidecar.events(session_id))[-1].window_id
        asked = audit_pb2.GetContentsRequest(session_id=session_id, window_ids=[window_id])
        kept = await sidecar.mesh.audit.GetContents(asked)

    assert text == CRITICAL
    assert [one.text for one in kept.contents] == [CRITICAL]


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"CRP-Safety-Policy": HALTS}, "SAFETY_HALT"),
        ({"CRP-Safety-Policy": "require-grounding 0.99"}, "SAFETY_HALT"),
        ({"CRP-Safety-Mode": "strict"}, "SAFETY_HALT"),
        ({"CRP-Safety-Mode": "permissive"}, "SAFETY_HALT"),
        ({"CRP-Safety-Oversight-Mode": "human-review"}, "SAFETY_HALT"),
        ({"CRP-Accept-Risk": "LOW"}, "SAFETY_HALT"),
        ({"CRP-Agent-Safety-Budget": "0.40"}, "BUDGET_DEPLETED"),
    ],
)
async def test_observe_enforces_what_a_caller_asks_for(tmp_path, provider, upstream, headers, reason):
    """A policy, a mode, a bound or a ceiling is enforced in every profile, the deployment's policy with it (SPEC-006, SPEC-012)."""
    provider.answers(CRITICAL)
    async with running_sidecar(tmp_path, upstream=upstream, **OBSERVE) as sidecar, agent(sidecar) as client:
        error = await refused(client, extra_headers=headers)

    assert (error.status_code, error.response.json()["reason"]) == (451, reason)
    assert "crp-safety-would" not in error.response.headers


async def test_observe_enforces_the_session_of_a_token(tmp_path, provider, upstream):
    """The same caller with the token of its session is held to the policy."""
    provider.answers(CRITICAL)
    async with running_sidecar(tmp_path, upstream=upstream, **OBSERVE) as sidecar, agent(sidecar) as client:
        first = await said(client)
        error = await refused(client, extra_headers={"CRP-Session-Token": token_of(first)})

    assert (error.status_code, error.response.json()["reason"]) == (451, "SAFETY_HALT")


@pytest.mark.req("AGT-1")
async def test_observe_enforces_a_sub_agent_although_it_sends_no_more_than_its_grant(tmp_path, provider, upstream):
    """Who was delegated to is bound by its orchestrator, which asked for it."""
    provider.answers("A calm answer.")
    async with running_sidecar(tmp_path, upstream=upstream, **OBSERVE) as sidecar:
        root = await sidecar.chat()
        granted = await sidecar.client.post(
            "/crp/v3/delegations", json={}, headers={"crp-session-token": token_of(root)}
        )
        provider.answers(CRITICAL)
        child = await sidecar.chat(headers={"crp-agent-delegation-grant": granted.json()["grant"]})

    assert (child.status_code, reason_of(child)) == (451, "SAFETY_HALT")


@pytest.fixture
def bound(monkeypatch):
    """A caller whose session is found although it says nothing of CRP: its token binds, and does not make it aware."""
    monkeypatch.setattr(admission, "aware", lambda asked: bool(asked.policies))


def together(count: int):
    """A gate that opens for all once so many wait at it."""
    barrier = asyncio.Barrier(count)
    return barrier.wait


async def spend(sidecar, count: int, first_headers=None) -> list[httpx.Response]:
    """So many turns of one session, whatever becomes of them."""
    answers = [await sidecar.chat(headers=first_headers)]
    while len(answers) < count:
        answers.append(await sidecar.chat(token=token_of(answers[-1])))
    return answers


async def test_observe_goes_on_when_the_budget_is_spent(bound, tmp_path, provider, upstream):
    """Charges are booked as always, and the breaker opens; answers are still delivered, unrefined, with what would have been."""
    provider.answers(CRITICAL)
    plain = {**OBSERVE, "default_policy": "", **UNREVIEWED}
    async with running_sidecar(tmp_path, upstream=upstream, **plain) as sidecar:
        answers = await spend(sidecar, 3)
        told = await trail(sidecar, answers[0].headers["crp-context-session-id"])

    assert [one.status_code for one in answers] == [200, 200, 200]
    assert [one.headers["crp-agent-safety-budget"] for one in answers] == ["0.65", "0.30", "0.00"]
    assert [one.headers.get("crp-safety-would") for one in answers] == [
        None,
        "halt; reason=HUMAN_REVIEW_UNAVAILABLE",
        "rewrite; reason=HALF_OPEN, halt; reason=SAFETY_BUDGET_DEPLETED",
    ]
    assert {one.headers["crp-context-strategy"] for one in answers} == {"push"}
    assert len(provider.received) == 3
    assert told["SAFETY_BUDGET_DEPLETED"]["remaining_budget"] == "0.00"


@pytest.mark.req("BUD-11")
async def test_observe_delivers_what_a_budget_no_longer_covers_at_its_settle(bound, tmp_path, provider, upstream):
    """Siblings that spent the budget between decision and settle end nothing; the one that would have been halted says so."""
    plain = {**OBSERVE, "default_policy": "", "budget_accumulate": "sum", "max_windows": 9}
    async with running_sidecar(tmp_path, upstream=upstream, **plain) as sidecar:
        provider.in_turn([CRITICAL, CRITICAL, "A MEDIUM answer.", "A MEDIUM answer."])
        answers = await spend(sidecar, 4)
        provider.answers("A MEDIUM answer.")
        sidecar.dpe.gate = together(2)
        both = await fan_out(sidecar, answers[-1], "One?", "Two?")
        events = await sidecar.events(answers[0].headers["crp-context-session-id"])

    assert answers[-1].headers["crp-agent-safety-budget"] == "0.20"
    assert [one.status_code for one in both] == [200, 200]
    assert sorted(one.headers.get("crp-safety-would", "") for one in both) == [
        "rewrite; reason=HALF_OPEN", "rewrite; reason=HALF_OPEN, halt; reason=SAFETY_BUDGET_DEPLETED",
    ]  # fmt: skip
    depleted = [one for one in events if one.event_type == "WOULD_HAVE" and "DEPLETED" in one.data_json]
    assert len(depleted) == 1


async def test_observe_would_hold_where_there_is_a_reviewer(bound, tmp_path, provider, upstream):
    """With a reviewer the would-have is a hold, and nothing waits for a decision."""
    provider.answers(HIGH)
    async with running_sidecar(
        tmp_path, upstream=upstream, **{**OBSERVE, "default_policy": "oversight human-review"}
    ) as sidecar:
        answers = await spend(sidecar, 2)
        told = await trail(sidecar, answers[0].headers["crp-context-session-id"])
        held = await sidecar.mesh.audit.ListHeld(audit_pb2.ListHeldRequest())

    assert [one.status_code for one in answers] == [200, 200]
    assert {one.headers["crp-safety-would"] for one in answers} == {"hold; reason=HELD_FOR_REVIEW"}
    assert told["WOULD_HAVE"]["directive"] == "oversight human-review"
    assert not held.items


@pytest.mark.parametrize(
    "asked",
    [
        {"crp-safety-policy": HALTS},
        {"crp-safety-policy": f"{HALTS}; block-pii"},
        {"crp-agent-safety-budget": "0.9"},
        {"crp-safety-mode": "permissive"},
    ],
    ids=str,
)
async def test_observe_enforces_a_session_that_was_begun_with_a_wish(bound, tmp_path, provider, upstream, asked):
    """A later call without a header is still under what its caller asked for, also where that is what holds anyway."""
    provider.answers("A calm answer.")
    async with running_sidecar(tmp_path, upstream=upstream, **OBSERVE) as sidecar:
        first = await sidecar.chat(headers=asked)
        provider.answers(CRITICAL)
        later = await sidecar.chat(token=token_of(first))

    assert (later.status_code, reason_of(later)) == (451, "SAFETY_HALT")


@pytest.mark.req("BUD-9")
async def test_a_session_that_was_rebuilt_is_enforced_as_before(bound, tmp_path, provider, upstream):
    """The store is lost with its process; the chain knows that its caller asked for protection."""
    provider.answers("A calm answer.")
    async with running_sidecar(tmp_path, upstream=upstream, **OBSERVE) as sidecar:
        first = await sidecar.chat(headers={"crp-safety-policy": HALTS})
    provider.answers(CRITICAL)
    async with running_sidecar(tmp_path, upstream=upstream, **OBSERVE) as sidecar:
        later = await sidecar.chat(token=token_of(first))

    assert (later.status_code, reason_of(later)) == (451, "SAFETY_HALT")


async def test_observe_enforces_a_session_that_was_tightened_later(bound, tmp_path, provider, upstream):
    """A policy that came with a later call holds for the calls after it."""
    provider.answers("A calm answer.")
    async with running_sidecar(tmp_path, upstream=upstream, **{**OBSERVE, "default_policy": ""}) as sidecar:
        first = await sidecar.chat()
        second = await sidecar.chat(token=token_of(first), headers={"crp-safety-policy": HALTS})
        provider.answers(CRITICAL)
        later = await sidecar.chat(token=token_of(second))

    assert (later.status_code, reason_of(later)) == (451, "SAFETY_HALT")


async def test_observe_enforces_every_item_of_a_batch(tmp_path, provider, upstream):
    """Who asks for a batch knows of CRP: the first item, which has no token yet, is no exception."""
    provider.answers(CRITICAL)
    items = [{"id": name, "body": {"model": "m", "messages": QUESTION}} for name in ("a", "b")]
    async with running_sidecar(tmp_path, upstream=upstream, **OBSERVE) as sidecar:
        answer = await sidecar.client.post("/crp/v3/batch", json={"items": items})

    ends = answer.json()["results"]
    assert [(one["status"], one["body"]["reason"]) for one in ends] == [(451, "SAFETY_HALT")] * 2


async def test_observe_refuses_no_session_for_its_quality(bound, tmp_path, provider, upstream):
    """A refusal that the deployment chose for poor quality is told instead of made."""
    provider.answers("A calm answer.")
    chosen = {**OBSERVE, "refuse_persistent_deficiency": True}
    async with running_sidecar(tmp_path, upstream=upstream, **chosen) as sidecar:
        sidecar.dpe.report = a_report(quality_tier="D")
        answers = await spend(sidecar, 3)

    assert [one.status_code for one in answers] == [200, 200, 200]
    assert answers[2].headers["crp-safety-would"] == "reject; reason=PERSISTENT_DEFICIENCY"


async def test_observe_asks_the_model_once_though_a_remedy_is_on(tmp_path, provider, upstream):
    """A remedy that the operator switched on is told, and not made, to an answer that is only watched."""
    provider.answers(HIGH)
    wanted = {**OBSERVE, "remediation": "full", "default_policy": "upgrade-on-risk reflexive"}
    async with running_sidecar(tmp_path, upstream=upstream, **wanted) as sidecar, agent(sidecar) as client:
        answer = await said(client)

    assert answer.parse().choices[0].message.content == HIGH
    assert answer.headers["crp-safety-would"] == "rewrite; reason=UPGRADE"
    assert len(provider.received) == 1


async def test_enforce_holds_a_plain_caller_to_the_policy(tmp_path, provider, upstream):
    """The same plain client gets a 451 for each of its CRITICAL answers."""
    provider.answers(CRITICAL)
    async with running_sidecar(tmp_path, upstream=upstream, **ENFORCE) as sidecar, agent(sidecar) as client:
        errors = [await refused(client) for _ in range(3)]

    assert [one.status_code for one in errors] == [451] * 3
    assert {one.response.json()["crp_halt_reason"] for one in errors} == {"CRITICAL_HALLUCINATION_RISK"}


@pytest.mark.req("OVR-1")
async def test_without_a_reviewer_nothing_is_held(tmp_path, provider, upstream):
    """What a person should review is halted when there is none, by name, and leaves nothing that waits."""
    provider.answers(HIGH)
    asked = {**ENFORCE, "default_policy": "oversight human-review", **UNREVIEWED}
    async with running_sidecar(tmp_path, upstream=upstream, **asked) as sidecar, agent(sidecar) as client:
        error = await refused(client)
        body = error.response.json()
        held = await sidecar.mesh.audit.ListHeld(audit_pb2.ListHeldRequest())
        told = await trail(sidecar, body["session_id"])

    assert (error.status_code, body["reason"]) == (451, "HUMAN_REVIEW_UNAVAILABLE")
    assert (body["crp_halt_reason"], body["oversight_required"]) == ("HUMAN_REVIEW_UNAVAILABLE", False)
    assert error.response.headers["crp-safety-retry-after"] == "0"
    assert "held_uri" not in body["metadata"]
    assert not held.items
    assert told["SAFETY_HALT"]["halt_reason"] == "HUMAN_REVIEW_UNAVAILABLE"


@pytest.mark.req("OVR-1")
async def test_with_a_reviewer_it_is_held(tmp_path, provider, upstream):
    """The same answer waits for the reviewer that is registered."""
    provider.answers(HIGH)
    asked = {**ENFORCE, "default_policy": "oversight human-review"}
    async with running_sidecar(tmp_path, upstream=upstream, **asked) as sidecar, agent(sidecar) as client:
        error = await refused(client)
        held = await sidecar.mesh.audit.ListHeld(audit_pb2.ListHeldRequest())

    assert (error.status_code, error.response.json()["reason"]) == (451, "HELD_FOR_REVIEW")
    assert [one.window_id for one in held.items] == [error.response.json()["metadata"]["window_id"]]


async def test_regulated_has_every_high_risk_reviewed(tmp_path, provider, upstream):
    """Without any policy of anyone's, an answer of HIGH risk waits for a person, and a looser policy changes nothing."""
    provider.answers(HIGH)
    anchor = tmp_path / "anchor"
    anchor.mkdir()
    asked = {"profile": "regulated", "remediation": "none", "audit_anchor": anchor}
    async with running_sidecar(tmp_path, upstream=upstream, **asked) as sidecar:
        plain = await sidecar.chat()
        looser = await sidecar.chat(headers={"crp-safety-policy": "oversight log-only"})

        assert (sidecar.settings.budget_accumulate, sidecar.settings.audit_anchor_required) == ("sum", True)
    assert (plain.status_code, reason_of(plain)) == (451, "HELD_FOR_REVIEW")
    assert (looser.status_code, reason_of(looser)) == (451, "HELD_FOR_REVIEW")


@pytest.mark.req("ATT-1", "ATT-9")
async def test_a_watched_conversation_goes_on_after_its_budget_is_spent(tmp_path, upstream, provider):
    """A spent session stops no caller that is only watched: it goes on in one that is linked to it. One that is protected is halted."""
    provider.answers(CRITICAL)
    async with running_sidecar(tmp_path, upstream=upstream, **OBSERVE) as sidecar:
        answers = [await sidecar.chat("Q?", headers={"x-session-id": "one"}) for _ in range(8)]
        guarded = [
            await sidecar.chat("Q?", headers={"x-session-id": "two", "crp-safety-policy": "halt-on CRITICAL"})
            for _ in range(2)
        ]

    sessions = [one.headers["crp-context-session-id"] for one in answers]
    assert [one.status_code for one in answers] == [200] * 8
    assert 2 <= len(set(sessions)) < 8
    assert {one.headers["crp-session-binding"] for one in answers} == {"hint"}
    assert [one.status_code for one in guarded] == [451] * 2
