"""Governed calls over the HTTP front: headers, budget, policy, tokens, streaming."""

from __future__ import annotations

import hashlib
import json

import pytest

from interlock.api.dpe.v1 import dpe_pb2
from tests.support.servers.provider import completion as provided
from tests.support.servers.provider import message, tool_call
from tests.support.sidecar.sidecar import a_report, reason_of, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)


@pytest.mark.req("HDR-4", "SVC-2", "BUD-1")
async def test_tv_001_a_governed_call_has_the_basic_headers(sidecar):
    """SPEC-014 TV-001: the seven headers of CRP-Basic on a plain call, in their grammar."""
    response = await sidecar.chat()
    headers = response.headers

    assert response.status_code == 200
    assert response.json()["choices"][0]["message"]["content"] == "The answer is fine."
    assert headers["crp-context-session-id"].startswith("crp_sess_")
    assert len(headers["crp-context-session-id"]) == len("crp_sess_") + 32
    assert headers["crp-safety-hallucination-risk"] == "LOW"
    assert headers["crp-safety-hallucination-score"] == "0.050"
    assert headers["crp-provenance-hmac"].startswith("sha256:")
    assert headers["crp-provenance-chain-integrity"] == "UNVERIFIED"
    assert headers["crp-set-session"].startswith("token=")
    assert headers["crp-context-protocol-version"] == "3.0.0"
    assert headers["crp-agent-safety-budget"] == "1.00"
    assert headers["crp-context-window"] == "1/200"


@pytest.mark.req("HDR-5")
async def test_tv_002_nothing_of_ours_reaches_the_provider(sidecar, provider):
    """SPEC-014 TV-002: no CRP header, no session token, no header that the list does not name."""
    token = token_of(await sidecar.chat())
    sent = {
        "crp-safety-policy": "halt-on CRITICAL", "crp-accept-quality": "S, A", "authorization": "Bearer the-caller",
        "cookie": "a=b", "x-forwarded-for": "10.0.0.1", "idempotency-key": "k", "openai-organization": "org",
    }  # fmt: skip
    await sidecar.chat(headers={**sent, "crp-accept-risk": "HIGH"}, interlock={"query": "q"})
    second = provider.received[-1]

    assert {name for name, _ in second.headers} <= {
        "host", "connection", "accept", "accept-encoding", "user-agent", "content-type", "content-length",
        "authorization", "traceparent",
    }  # fmt: skip
    assert second.header("authorization") == "Bearer the-caller"
    assert second.body == {"model": "test-model", "messages": [{"role": "user", "content": "What is it?"}]}
    assert token not in str(provider.received)
    assert "crp" not in str(provider.received).lower()


@pytest.mark.req("HDR-5")
async def test_the_deployments_key_replaces_the_callers(tmp_path, upstream, provider):
    """With a key of its own the sidecar never shows the caller's to the provider."""
    async with running_sidecar(tmp_path, upstream=upstream, upstream_api_key="deployment") as sidecar:
        await sidecar.chat(headers={"authorization": "Bearer the-caller"})

    assert provider.received[0].header("authorization") == "Bearer deployment"


@pytest.mark.req("SVC-3", "BUD-5")
async def test_tv_003_a_critical_risk_is_halted_with_451(sidecar, provider):
    """SPEC-014 TV-003 and SPEC-002 §13.2: status, headers and body of a halt; the answer is not in it."""
    provider.answers("CRITICAL nonsense")
    response = await sidecar.chat(headers={"crp-safety-policy": "halt-on CRITICAL"})
    body = response.json()

    assert response.status_code == 451
    assert response.headers["crp-safety-hallucination-risk"] == "CRITICAL"
    assert response.headers["crp-safety-retry-after"] == "oversight-required"
    assert response.headers["crp-agent-safety-budget"] == "0.65"
    assert body["crp_halt_reason"] == "CRITICAL_HALLUCINATION_RISK"
    assert body["session_id"] == response.headers["crp-context-session-id"]
    assert body["audit_trail_uri"] == response.headers["crp-compliance-audit-trail-uri"]
    assert (body["oversight_required"], body["retry_condition"]) == (True, "oversight-required")
    assert (body["reason"], body["error"]["code"]) == ("SAFETY_HALT", "safety_halt")
    assert "nonsense" not in response.text


@pytest.mark.req("BUD-1", "BUD-5", "DAG-11")
async def test_a_session_goes_on_and_pays_for_each_answer(sidecar, provider):
    """Windows are counted, chained and charged once each; the lineage grows."""
    provider.in_turn(["fine", "MEDIUM", "HIGH"])
    first = await sidecar.chat()
    second = await sidecar.chat(token=token_of(first))
    third = await sidecar.chat(token=token_of(second))

    assert [r.headers["crp-agent-safety-budget"] for r in (first, second, third)] == ["1.00", "0.95", "0.80"]
    assert [r.headers["crp-context-window"] for r in (first, second, third)] == ["1/200", "2/200", "3/200"]
    assert third.headers["crp-provenance-chain-integrity"] == "VALID"
    assert third.headers["crp-provenance-window-lineage"].count(" -> ") == 2
    assert third.headers["crp-set-session"].endswith("Window=3; QualityHistory=A,A,A")


@pytest.mark.req("DAG-10")
async def test_the_last_window_has_no_continuation(tmp_path, upstream):
    """SPEC-004 §11.4: the pointer is absent, and the next call is refused by name."""
    async with running_sidecar(tmp_path, upstream=upstream, max_windows=1) as sidecar:
        last = await sidecar.chat()
        after = await sidecar.chat(token=token_of(last))
        events = [event.event_type for event in await sidecar.events(last.headers["crp-context-session-id"])]

    assert "crp-context-continuation-id" not in last.headers
    assert (after.status_code, reason_of(after)) == (403, "MAX_WINDOWS_EXCEEDED")
    assert events[-1] == "SESSION_TERMINATED"


@pytest.mark.req("BRK-2", "BRK-3", "BRK-5")
async def test_a_depleted_session_is_halted_before_the_model_is_called(sidecar, provider):
    """CLOSED, HALF_OPEN, OPEN: review is forced, then nothing is dispatched any more (litellm#18261)."""
    provider.answers("CRITICAL")
    first = await sidecar.chat()
    second = await sidecar.chat(token=token_of(first))
    third = await sidecar.chat(token=token_of(second))
    fourth = await sidecar.chat(token=token_of(third))
    events = [event.event_type for event in await sidecar.events(first.headers["crp-context-session-id"])]

    assert [r.headers["crp-agent-safety-budget"] for r in (first, second, third)] == ["0.65", "0.30", "0.00"]
    assert second.headers["crp-safety-budget-warning"] == "caution"
    assert (third.status_code, third.headers["crp-safety-oversight-mode"]) == (451, "human-review")
    assert (fourth.status_code, reason_of(fourth)) == (451, "BUDGET_DEPLETED")
    assert fourth.headers["crp-safety-retry-after"] == "new-session-required"
    assert fourth.json()["crp_halt_reason"] == "SAFETY_BUDGET_DEPLETED"
    assert fourth.json()["session_id"] == first.headers["crp-context-session-id"]
    assert fourth.json()["audit_trail_uri"] == third.headers["crp-compliance-audit-trail-uri"]
    assert fourth.headers["crp-safety-hallucination-risk"] == "CRITICAL"
    assert len(provider.received) == 2 + 2  # the third under HALF_OPEN: generated and verified (BRK-2)
    assert third.headers["crp-context-strategy"] == "reflexive"
    assert events.count("BREAKER_TRANSITION") == 2
    assert {"SAFETY_BUDGET_DEPLETED", "SESSION_TERMINATED"} <= set(events)


@pytest.mark.req("BUD-4")
async def test_a_callers_ceiling_only_lowers_the_budget(sidecar, provider):
    """CRP-Agent-Safety-Budget in a request is a ceiling (SPEC-002 §12.4); 0.05 leaves nothing to dispatch for."""
    lowered = await sidecar.chat(headers={"crp-agent-safety-budget": "0.60"})
    raised = await sidecar.chat(token=token_of(lowered), headers={"crp-agent-safety-budget": "1.0"})
    asked = len(provider.received)
    spent = await sidecar.chat(token=token_of(raised), headers={"crp-agent-safety-budget": "0.05"})
    again = await sidecar.chat(token=token_of(raised))

    assert lowered.headers["crp-agent-safety-budget"] == "0.60"
    assert raised.headers["crp-agent-safety-budget"] == "0.60"
    assert (spent.status_code, reason_of(spent)) == (451, "BUDGET_DEPLETED")
    assert asked == 2
    assert again.status_code == 200


@pytest.mark.req("POL-6", "POL-7", "POL-8")
async def test_a_policy_can_only_be_tightened(sidecar, provider):
    """A relaxation is 403 naming directive and both values, and the lease goes back: the next call works."""
    first = await sidecar.chat(headers={"crp-safety-policy": "halt-on HIGH; require-grounding 0.75"})
    looser = await sidecar.chat(
        token=token_of(first), headers={"crp-safety-policy": "halt-on CRITICAL; require-grounding 0.75"}
    )
    tighter = await sidecar.chat(token=token_of(first), headers={"crp-safety-mode": "strict"})

    assert first.headers["crp-safety-policy-applied"] == "halt-on HIGH; require-grounding 0.75"
    assert (looser.status_code, looser.json()["error"]["code"]) == (403, "safety_policy_inheritance_violation")
    assert json.loads(looser.json()["metadata"]["relaxations"]) == [
        {"directive": "halt-on", "parent": "HIGH", "child": "CRITICAL"}
    ]
    assert tighter.status_code == 200
    assert "block-ungrounded" in tighter.headers["crp-safety-policy-applied"]
    assert len(provider.received) == 1 + 2  # strict mode is reflexive (SPEC-008 §5.6)


@pytest.mark.req("POL-2")
async def test_report_only_changes_no_outcome(sidecar, provider):
    """A report-only policy is evaluated and written down, and the answer is delivered all the same (I13)."""
    provider.answers("CRITICAL")
    response = await sidecar.chat(headers={"crp-safety-policy-report-only": "halt-on CRITICAL"})
    events = await sidecar.events(response.headers["crp-context-session-id"])
    violations = [json.loads(e.data_json) for e in events if e.event_type == "POLICY_VIOLATION"]

    assert response.status_code == 200
    assert [(v["directive"], v["report_only"]) for v in violations] == [("halt-on CRITICAL", True)]


async def test_a_malformed_policy_is_refused_before_anything_begins(sidecar, provider):
    """400 with position and expectation; no session, no call."""
    response = await sidecar.chat(headers={"crp-safety-policy": "halt-on SOMETIMES"})

    assert response.status_code == 400
    assert response.json()["metadata"]["header"] == "CRP-Safety-Policy"
    assert provider.received == []


@pytest.mark.req("POL-2")
async def test_a_held_response_is_not_released(sidecar, provider):
    """Human review holds HIGH and CRITICAL (reading 2): 451, charged, and nothing of the text."""
    provider.answers("HIGH stakes")
    response = await sidecar.chat(headers={"crp-safety-oversight-mode": "human-review"})

    assert (response.status_code, reason_of(response)) == (451, "HELD_FOR_REVIEW")
    assert response.headers["crp-safety-retry-after"] == "oversight-required"
    assert response.headers["crp-agent-safety-budget"] == "0.85"
    assert "stakes" not in response.text


async def test_an_unaccepted_quality_is_503_with_the_best_tier(sidecar):
    """SPEC-002 §4.13: the highest tier that can be had is in the header."""
    response = await sidecar.chat(headers={"crp-accept-quality": "S"})

    assert response.status_code == 503
    assert response.headers["crp-context-quality-tier"] == "A"
    assert response.headers["x-should-retry"] == "false"


@pytest.mark.req("TOK-3")
async def test_a_nonce_belongs_to_its_session(sidecar):
    """The session's own nonce passes; another one, or one without a session, is 400."""
    first = await sidecar.chat()
    good = await sidecar.chat(token=token_of(first), headers={"crp-safety-nonce": first.headers["crp-safety-nonce"]})
    wrong = await sidecar.chat(token=token_of(good), headers={"crp-safety-nonce": "base64:AAAAAAAAAAAAAAAAAAAAAA=="})
    without = await sidecar.chat(headers={"crp-safety-nonce": first.headers["crp-safety-nonce"]})

    assert [r.status_code for r in (first, good, wrong, without)] == [200, 200, 400, 400]


@pytest.mark.req("SVC-2", "BUD-5")
async def test_every_choice_is_analysed_and_the_window_is_charged_once(sidecar, provider):
    """n=3 with one bad choice: the whole answer is judged by it (A-26)."""
    provider.answers("fine", "CRITICAL", "fine")
    response = await sidecar.chat(n=3, headers={"crp-safety-policy": "halt-on CRITICAL"})

    assert response.status_code == 451
    assert [output.choice_index for output in sidecar.dpe.asked[0].outputs] == [0, 1, 2]
    assert response.headers["crp-agent-safety-budget"] == "0.65"


@pytest.mark.req("SVC-2")
async def test_tool_call_arguments_are_analysed(sidecar, provider):
    """What a model writes into a tool call is text like any other (A-26)."""
    call = tool_call("pay", '{"to": "CRITICAL"}')
    provider.completes(provided(message(None, tool_calls=[call])))
    response = await sidecar.chat(headers={"crp-safety-policy": "halt-on CRITICAL"})

    assert response.status_code == 451
    assert [(o.kind, o.text) for o in sidecar.dpe.asked[0].outputs] == [("tool_call", '{"to": "CRITICAL"}')]


@pytest.mark.req("ATT-5")
async def test_the_roles_of_a_request_reach_the_analysis(sidecar, provider):
    """Given text as facts, the user's words and the declared tools beside them, an empty call with its name."""
    provider.completes(provided(message(None, tool_calls=[tool_call("get_weather", "")])))
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    await sidecar.chat(
        messages=[
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": "Context: Grass is green.\n\nQuestion: Weather in Paris?"},
        ],
        tools=[{"type": "function", "function": {"name": "get_weather", "parameters": schema}}],
    )
    asked = sidecar.dpe.asked[0]

    assert [fact.content for fact in asked.facts] == ["Grass is green."]
    assert [(one.kind, one.text) for one in asked.said] == [
        ("instruction", "You are a helpful assistant."), ("user", "Weather in Paris?"),
    ]  # fmt: skip
    assert [(one.name, json.loads(one.parameters_json)) for one in asked.tools] == [("get_weather", schema)]
    assert [(o.kind, o.tool_name, o.text) for o in asked.outputs] == [("tool_call", "get_weather", "")]


@pytest.mark.req("SVC-2")
@pytest.mark.parametrize("answer", ["fine", "CRITICAL"])
async def test_streaming_changes_no_decision(sidecar, provider, answer):
    """The same request with stream true and false ends alike, with the same headers (I14)."""
    provider.answers(answer)
    policy = {"crp-safety-policy": "halt-on CRITICAL"}
    whole, streamed = await sidecar.chat(headers=policy), await sidecar.chat(headers=policy, stream=True)
    same = {name for name in whole.headers if name.startswith(("crp-safety-", "crp-agent", "crp-context-q"))}

    assert whole.status_code == streamed.status_code
    assert {n: whole.headers[n] for n in same - {"crp-safety-nonce"}} == {
        n: streamed.headers[n] for n in same - {"crp-safety-nonce"}
    }
    assert ("text/event-stream" in streamed.headers["content-type"]) == (answer == "fine")
    assert "stream" not in provider.received[-1].body


@pytest.mark.req("AUD-1", "PRV-2")
async def test_the_sealed_hash_is_the_hash_of_what_was_delivered(sidecar):
    """The response hash in the trail is the SHA-256 of the body as the client got it."""
    response = await sidecar.chat()
    events = await sidecar.events(response.headers["crp-context-session-id"])
    completed = next(json.loads(e.data_json) for e in events if e.event_type == "DISPATCH_COMPLETED")

    assert completed["response_hash"] == "sha256:" + hashlib.sha256(response.content).hexdigest()


@pytest.mark.req("TOK-3", "TOK-5")
async def test_tokens_that_do_not_hold_are_refused(sidecar, provider):
    """Forged, truncated, of another caller, replayed: 401 or 409, nothing dispatched, the good one still works."""
    first = await sidecar.chat(headers={"authorization": "Bearer one"})
    token = token_of(first)
    forged = await sidecar.chat(token=token[:-2] + ("AA" if token[-2:] != "AA" else "BB"))
    cut = await sidecar.chat(token=token[:-20])
    foreign = await sidecar.chat(token=token, headers={"authorization": "Bearer two"})
    second = await sidecar.chat(token=token, headers={"authorization": "Bearer one"})
    replayed = await sidecar.chat(token=token, headers={"authorization": "Bearer one"})

    assert [r.status_code for r in (forged, cut, foreign)] == [401, 401, 401]
    assert (forged.headers["crp-safety-retry-after"], reason_of(foreign)) == ("0", "TOKEN_SCOPE_MISMATCH")
    assert second.status_code == 200
    assert (replayed.status_code, reason_of(replayed)) == (409, "TOKEN_REPLAYED")
    assert replayed.headers["x-should-retry"] == "false"
    assert len(provider.received) == 2


@pytest.mark.req("POL-2")
async def test_a_report_address_joins_the_policy(sidecar):
    """CRP-Safety-Report-URI becomes report-uri; alone in a later call it does not stand for a looser policy."""
    where = {"crp-safety-report-uri": "https://reports.example/in"}
    first = await sidecar.chat(headers={"crp-safety-policy": "halt-on HIGH"})
    second = await sidecar.chat(token=token_of(first), headers=where)
    alone = await sidecar.chat(headers=where)

    applied = second.headers["crp-safety-policy-applied"]
    assert applied == "halt-on HIGH; report-uri https://reports.example/in"
    assert alone.headers["crp-safety-policy-applied"].endswith("report-uri https://reports.example/in")


async def test_what_the_caller_prefers_about_the_model_is_done(sidecar, provider):
    """Seed and grounding mode reach the provider as parameter and instruction, and the strategy is the first usable one."""
    sent = {"crp-llm-reproducibility-seed": "42", "crp-llm-grounding-mode": "context-strict"}
    response = await sidecar.chat(headers={**sent, "crp-accept-strategy": "streaming, reflexive"})
    events = await sidecar.events(response.headers["crp-context-session-id"])
    started = next(json.loads(e.data_json) for e in events if e.event_type == "DISPATCH_STARTED")

    assert (provider.received[0].body["seed"], started["seed"]) == (42, 42)
    assert provider.received[0].body["messages"][0]["role"] == "system"
    assert response.headers["crp-context-strategy"] == response.headers["crp-agent-dispatch-strategy"] == "reflexive"


async def test_personal_data_is_on_record_with_the_callers_declaration(sidecar):
    """CRP-Context-Cache: no-store reaches the trail beside what was found (SPEC-002 §7.3)."""
    sidecar.dpe.report = a_report(
        gdpr_pii_detected=True, pii=[dpe_pb2.PiiFinding(type="EMAIL_ADDRESS", category="direct")]
    )
    response = await sidecar.chat(headers={"crp-context-cache": "no-store"})
    events = await sidecar.events(response.headers["crp-context-session-id"])
    found = next(json.loads(e.data_json) for e in events if e.event_type == "PII_DETECTED")

    assert response.headers["crp-compliance-gdpr-pii"] == "true"
    assert found == {"pii_categories": ["direct"], "pii_types": ["EMAIL_ADDRESS"], "no_store_set": True}
