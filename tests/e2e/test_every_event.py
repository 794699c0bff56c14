"""Every type of event that a serving path can produce, produced by real calls (SPEC-011 §1, AUD-1).

One process, a real Valkey, a real provider over HTTP. What was appended is read back from the log and held against the
table of types, field by field.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.audit.erasure.erasure import truncate
from interlock.domain.chain import audit_events
from interlock.domain.chain.audit_events import SEVERITIES, TYPES
from interlock.runtime.rpc.errors import answers_refusals
from interlock.runtime.rpc.kernels.kernels import Kernels
from interlock.runtime.rpc.peers import Peers
from tests.support.audit.streaming import url, write_sinks
from tests.support.decision_kernels import AGENT, ReservingClient, SharedKernel
from tests.support.decision_service import BusClient, DecisionClient, proposes, serving
from tests.support.decisions import PROTOCOL
from tests.support.kernels import UNIT, KernelClient
from tests.support.paths import ROOT
from tests.support.policy import agents
from tests.support.servers.provider import Provider, RunningProvider, completion, message, tool_call
from tests.support.servers.streaming import spoken, streams
from tests.support.servers.webhooks import Receiver
from tests.support.sidecar import remedies
from tests.support.sidecar.oversight import HOLDS, decision, token_for
from tests.support.sidecar.remedies import FOUND, Judge
from tests.support.sidecar.sidecar import RunningSidecar, reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import Answering, delegated, fan_in, fan_out, onward, result_of

pytestmark = pytest.mark.req("AUD-1")

LONG = " ".join(f"Sentence {n} says that revenue was {n} million." for n in range(60))
FINDS = {
    "fabrication_count": 1, "fabricated_entities": ["Ada"], "distortion_count": 1, "distortion_types": ["DATE_SHIFTED"],
    "claims": [dpe_pb2.Claim(claim_id="c1", claim_type=dpe_pb2.CLAIM_TYPE_FACTUAL, text="A claim.",
                             attribution=dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED,
                             distortions=[dpe_pb2.Distortion(type="DATE_SHIFTED")])],
    "gdpr_pii_detected": True,
    "pii": [dpe_pb2.PiiFinding(type="EMAIL_ADDRESS", category="direct")],
}  # fmt: skip
PASSES = {"stitch": "A bridge leads on.", "continue": "The rest is fine.", "refine": "Refined."}
REPORTS = "report-to safety"


class Model(Answering):
    """Answers by the question, and each pass of a remedy in its own way."""

    async def _answer(self, request):
        step = remedies.step_of(self.received[-1].body)
        if step in PASSES:
            return JSONResponse(completion(message(PASSES[step])))
        return await super()._answer(request)


class Finder(Judge):
    """Finds what an answer names, and vouches for summaries."""

    @answers_refusals(dpe_pb2.CheckSummaryResponse)
    async def CheckSummary(self, request, _context):
        return dpe_pb2.CheckSummaryResponse(fidelity_score=0.9, claims=1)


@pytest.fixture
def model():
    FOUND["FINDS"] = FINDS
    made = Model()
    with RunningProvider(made) as running:
        yield made, running.base_url
    del FOUND["FINDS"]


def turns(*answers: str) -> Any:
    """Answers in turn; the last one stays."""
    waiting = list(answers)
    return lambda _body: waiting.pop(0) if len(waiting) > 1 else waiting[0]


async def then(sidecar: RunningSidecar, before: Any, question: str, *, headers: Any = None, **more: Any) -> Any:
    return await sidecar.chat(question, token=token_of(before), headers={**onward(before), **(headers or {})}, **more)


async def remedied(sidecar: RunningSidecar, model: Model) -> None:
    """Risk, repetition, contradiction, a jump, a gap, findings, a stricter mode, a failing provider."""
    model.by_question = {
        "Risk?": turns("A HIGH risk answer, it FINDS.", "A safe answer."),
        "Jump?": "It JUMPS. It ends.",
        "Gap?": remedies.cut_off("This is PARTIAL."),
        "Reviewed?": completion(*(message(f"Choice {n}.") for n in range(5))),
        "Bad?": turns("It REPEATS and CONTRADICTS.", "It is fine."),
        "Fails?": 500,
    }
    first = await sidecar.chat("Risk?", headers={"crp-safety-policy": "upgrade-on-risk reflexive"})
    jumped = await then(
        sidecar, first, "Jump?", headers={"crp-safety-policy": "upgrade-on-risk reflexive; require-flow 0.50"}
    )
    await sidecar.chat("Gap?", headers={"crp-safety-policy": "require-completeness 0.90"})
    again = await then(sidecar, jumped, "Bad?")
    await sidecar.chat("Strict?", headers={"crp-safety-mode": "strict"})
    model.by_step["verify"] = '{"issues": ["The year is wrong."]}'
    await sidecar.chat("Reviewed?", headers={"crp-safety-mode": "strict"}, n=5)
    model.by_step["verify"] = remedies.NO_ISSUES
    assert (await sidecar.chat("Fails?")).status_code == 502
    ended = await sidecar.client.delete(
        f"/crp/v3/session/{again.headers['crp-context-session-id']}", headers={"crp-session-token": token_of(again)}
    )
    assert ended.status_code in {200, 204}, ended.text


async def tools_and_facts(sidecar: RunningSidecar, model: Model) -> None:
    """A call of a declared tool and its result, a declared fact, an image, and embeddings."""
    call = tool_call("look_up", '{"q":"x"}')
    model.by_question = {"Tool?": completion(message(None, tool_calls=[call]))}
    declared = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]
    facts = {"facts": [{"id": "f1", "content": "The first topic is known."}]}
    first = await sidecar.chat("Tool?", tools=declared, interlock=facts)
    assert first.status_code == 200, first.text
    named = {"crp-session-token": token_of(first)}
    passed = await sidecar.client.post("/v1/embeddings", json={"model": "e", "input": "x"}, headers=named)
    assert passed.status_code == 200, passed.text
    shown = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Tool?"}, shown]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "The tool says 7.", "tool_call_id": call["id"]},
    ]
    body = {"model": "m", "messages": messages, "tools": declared}
    sent = {"crp-session-token": token_of(first), **onward(first)}
    assert (await sidecar.client.post("/v1/chat/completions", json=body, headers=sent)).status_code == 200


async def windows(sidecar: RunningSidecar, model: Model) -> None:
    """Fan-out with a child that fails, fan-in, a summary of what was long."""
    model.by_question = {"First?": LONG, "Broken?": 500}
    root = await sidecar.chat("First?")
    a, b, broken = await fan_out(sidecar, root, "A?", "B?", "Broken?")
    assert broken.status_code == 502
    merged = await fan_in(sidecar, [a, b], headers={"crp-agent-fan-in-policy": "partial"})
    assert merged.status_code == 200, merged.text
    long = await sidecar.chat("First?")
    summed = await then(sidecar, long, "And then?", interlock={"transfer": "auto", "token_budget": 400})
    assert summed.status_code == 200, summed.text


async def trees(sidecar: RunningSidecar, model: Model) -> None:
    """A sub-agent whose answer is used, and one whose answers spend its own budget and its parent's."""
    model.by_question = {"Grave?": "A CRITICAL risk answer."}
    root = await sidecar.chat("All?")
    law = await delegated(sidecar, root, "Law?")
    used = await then(sidecar, root, "All in all?", interlock={"sub_agent_results": [result_of(law)]})
    assert used.status_code == 200, used.text
    halts = {"crp-safety-policy": f"halt-on CRITICAL; {REPORTS}"}
    other = await sidecar.chat("All?", headers=halts)
    grave = await delegated(sidecar, other, "Grave?")
    for _ in range(3):
        grave = await then(sidecar, grave, "Grave?") if "crp-context-continuation-id" in grave.headers else grave


async def reviews(sidecar: RunningSidecar, model: Model, audit: Any) -> None:
    """Held responses: approved and released twice over, rejected, expired."""
    model.by_question = {"Held?": "A HIGH risk answer."}
    for number, action in enumerate(("release", "reject", "expire"), 1):
        held = await sidecar.chat("Held?", headers=HOLDS)
        assert held.status_code == 451, held.text
        item = (
            await sidecar.mesh.audit.GetHeld(audit_pb2.GetHeldRequest(window_id=held.json()["metadata"]["window_id"]))
        ).item
        if action == "expire":
            continue
        token = token_for(item, action=action, number=number)
        assert not (await sidecar.mesh.audit.DecideHeld(decision(token))).HasField("refusal")
        for _ in range(2 if action == "release" else 0):
            released = await sidecar.chat("Held?", token=token_of(held), headers={"crp-oversight-token": token})
            assert released.status_code == 200, released.text
    del audit


def seen_in(database: Path) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    found = defaultdict(list)
    with sqlite3.connect(database) as connection:
        for kind, severity, data in connection.execute("SELECT event_type, severity, data_json FROM events"):
            found[kind].append((severity, json.loads(data)))
    connection.close()
    return found


async def test_every_producible_type_is_produced_with_its_fields(tmp_path, redis_url, model):
    """Type by type of the table: seen at least once, with its fields and one of its severities, and no other field."""
    made, upstream = model
    reviewers = agents.write(tmp_path / "reviewers.yaml", agents.reviewers())
    async with Receiver() as receiver:
        sinks = tmp_path / "sinks.yaml"
        write_sinks(sinks, siem={"url": url(receiver)}, safety={"url": url(receiver, "/r"), "format": "report"})
        settings = {
            "redis_url": redis_url, "sinks_file": sinks, "egress_allow": receiver.origin, "reviewers_file": reviewers,
            "hold_expires_s": 2, "ai_domain": "general", **remedies.EVERY_REMEDY, "max_provider_calls": 6, "unjudged_media": "pass",
        }  # fmt: skip
        async with running_sidecar(tmp_path, upstream=upstream, dpe=Finder(), **settings) as sidecar:
            audit = sidecar.services["audit"].servicer
            await reviews(sidecar, made, audit)
            await remedied(sidecar, made)
            await tools_and_facts(sidecar, made)
            await windows(sidecar, made)
            await trees(sidecar, made)
            await kernels(sidecar)
            await experiments(sidecar)
            await reservations(sidecar)
            await _gone(sidecar, audit)
            await _expired(sidecar)
            await receiver.until(lambda: any(posted.path == "/r" for posted in receiver.received))
            database = tmp_path / "state" / "audit.db"
            await receiver.until(lambda: seen_in(database).keys() >= {"COMPLY_EXPORT", "REPORT_DELIVERED"})
            await _broken(sidecar, database)
            found = seen_in(database)
    watched = {
        "profile": "observe",
        "default_policy": "halt-on CRITICAL",
        "caller_budget": 1.0,
        "stream_release": "sentences",
    }
    async with running_sidecar(tmp_path / "watched", upstream=upstream, dpe=Finder(), **watched) as sidecar:
        for _ in range(2):
            assert (await sidecar.chat("Grave?", headers={"x-session-id": "chat"})).status_code == 200
    await streamed(tmp_path / "watched", watched)
    await rejected(tmp_path / "rejected")
    for place in ("watched", "rejected"):
        for kind, events in seen_in(tmp_path / place / "state" / "audit.db").items():
            found[kind].extend(events)

    expected = {name for name, one in TYPES.items() if one.produced}
    assert sorted(expected - found.keys()) == []
    assert sorted(found.keys() - expected) == []
    for kind, events in found.items():
        for severity, data in events:
            audit_events.check(kind, severity, data)
            known = {*TYPES[kind].fields, *TYPES[kind].more}
            if not TYPES[kind].own:
                assert data.keys() <= known, f"{kind} has fields that the table does not name: {data.keys() - known}"
            assert SEVERITIES[severity - 1] in TYPES[kind].severities


async def kernels(sidecar: RunningSidecar) -> None:
    """A kernel is opened, added to, asked for everything, and stopped."""
    team = KernelClient(sidecar.client, "team")
    await team.open()
    await team.open(actions=[{"id": "more", "costs": [{"resource": "usd", "micros": UNIT}]}])
    await team.execute("task", "one")
    await team.post("rollback", executions=["one"], key="undo")
    for key, settle in (("kept", "confirm"), ("taken", "abort")):
        await team.post("permit", action="task", key=key)
        await team.post(settle, permit=key, key=f"{settle}-{key}")
    lease = (await team.post("lease", resource="usd", wanted_micros=UNIT, lifetime_ms=60_000, key="slice")).json()
    await team.post("return", lease="slice", fence=lease["fence"], key="back")
    await team.post("ticket", lifetime_ms=10_000, key="turn")
    await team.execute("small", "in-turn", ticket="turn")
    await team.post("ticket", lifetime_ms=10_000, key="unused")
    await team.post("return-ticket", ticket="unused", key="back-in-line")
    await team.post("open-child", child="part", limits=[{"resource": "usd", "micros": UNIT}], key="part")
    undo = {"id": "unpay"}
    pay = {"id": "pay", "costs": [{"resource": "usd", "micros": UNIT}], "compensation": "unpay"}
    await team.open(actions=[pay, undo, {**pay, "id": "send", "compensation": "", "irreversible": True}])
    for saga, action, end in (("kept", "pay", "end-saga"), ("sent", "send", "rollback"), ("paid", "pay", "rollback")):
        await team.post("begin-saga", key=f"saga-{saga}", lifetime_ms=60_000)
        await team.execute(action, f"step-{saga}", saga=f"saga-{saga}")
        await team.post(end, saga=f"saga-{saga}", key=f"end-{saga}")
    await left_by_a_person(sidecar, team)
    given = (await team.post("claim-compensation", lifetime_ms=60_000, key="claim")).json()["compensation"]
    for outcome in ("OUTCOME_FAILED", "OUTCOME_RETRY", "OUTCOME_DONE"):
        if outcome == "OUTCOME_DONE":  # what is to be tried again is done by whoever was given it
            given = (await team.post("claim-compensation", lifetime_ms=60_000, key="again")).json()["compensation"]
        settled = {"execution": given["execution"], "fence": given["fence"], "outcome": outcome, "key": outcome}
        assert (await team.post("settle-compensation", **settled)).status_code == 200
    await team.post("emergency", action="leave", stop=True, key="stop")
    assert not (await team.execute("task", "late"))["verdict"]["approved"]


async def left_by_a_person(sidecar: RunningSidecar, team: KernelClient) -> None:
    """A step that cannot be made up for is looked at, as the oversight service asks it once it knows who decides."""
    shown = await team.describe()
    stuck = next(one for one in shown["compensations"] if one["stuck"])
    decision = session_pb2.DecideCompensationRequest(
        kernel_id=shown["kernel_id"], execution=stuck["execution"], fence=int(stuck["fence"]), reason="UNCLEAR",
        decision=session_pb2.PERSONS_DECISION_LEAVE, reviewer_id=agents.REVIEWER, approval_id=agents.APPROVAL, token="signed",
    )  # fmt: skip
    verdict = await Kernels(sidecar.settings, Peers.over(sidecar.mesh, sidecar.settings)).decide(decision)
    assert verdict.approved


async def experiments(sidecar: RunningSidecar) -> None:
    """An experiment is opened, decides a cycle without its agent, and a person brings that back."""
    async with serving(sidecar.settings.model_copy(update={"decision_port": 0}), sidecar.services["audit"]) as stub:
        search = DecisionClient(stub)
        await search.open(deadline_ms=50)
        await search.register(PROTOCOL)
        assert (await search.run(1)).outcome == "CONTINUE"
        await search.reinstate("protocol", "mended")
        await BusClient(search).register(
            "layer_frozen", '{"type": "object", "properties": {"layer": {"type": "string"}}}'
        )


async def reservations(sidecar: RunningSidecar) -> None:
    """What an experiment decides is reserved in a kernel, and settled."""
    settings, services = sidecar.settings.model_copy(update={"decision_port": 0}), sidecar.services
    await SharedKernel(settings, services["session"], services["audit"], key="bob").open()
    async with serving(settings, services["audit"], session=services["session"]) as stub:
        search = ReservingClient(stub, key="bob")
        await search.open()
        await search.register(AGENT)
        proposal = proposes("EXTEND_TRIALS", "strategy", risk_level="MEDIUM", parameters_json='{"trials": 30}')
        async with search.working("strategy", lambda _: {"proposals": [proposal]}):
            assert (await search.run(1)).outcome == "EXTEND_TRIALS"
        await search.settle(1, done=False)


async def rejected(folder: Path) -> None:
    """A tool call that the caller's kernel would reject."""
    calls, alice = Provider(), {"authorization": "Bearer alice"}
    calls.completes(completion(message("I will.", tool_calls=[tool_call("mail", "{}", "call_1")])))
    declared = [{"type": "function", "function": {"name": "mail", "parameters": {"type": "object"}}}]
    with RunningProvider(calls) as upstream:
        async with running_sidecar(folder, upstream=upstream.base_url, dpe=Finder(), tool_kernel="team") as sidecar:
            await KernelClient(sidecar.client, "team", key="alice").open(
                resources=[{"name": "usd", "limit_micros": UNIT, "min_cost_micros": UNIT}, {"name": "mails"}]
            )
            assert reason_of(await sidecar.chat(headers=alice, tools=declared)) == "KERNEL_ACTION_REFUSED"


async def streamed(folder: Path, settings: dict[str, Any]) -> None:
    """An answer of which the first part leaves while the provider still writes: it waits until that was heard."""
    provider, heard = Provider(), threading.Event()
    streams(provider, [*spoken("It is fine. ", "It is safe. ")[:3], heard, *spoken("It is late. ")[2:]])
    body = {"model": "m", "messages": [{"role": "user", "content": "Fine?"}], "stream": True}
    with RunningProvider(provider) as upstream:
        async with running_sidecar(folder, upstream=upstream.base_url, dpe=Finder(), **settings) as sidecar:
            async with sidecar.client.stream(
                "POST", "/v1/chat/completions", json=body, headers={"authorization": "Bearer sk-s"}
            ) as answer:
                async for _ in answer.aiter_lines():
                    heard.set()


async def _gone(sidecar: RunningSidecar, audit: Any) -> None:
    """Content looked at and dropped, a session erased, a session removed by retention."""
    first, second, third = [await sidecar.chat(question) for question in ("One?", "Two?", "Three?")]
    window = first.headers["crp-provenance-report-uri"].rpartition("/")[2]
    looked = audit_pb2.GetContentsRequest(
        session_id=first.headers["crp-context-session-id"], window_ids=[window], viewer="operator"
    )
    assert (await sidecar.mesh.audit.GetContents(looked)).contents
    dropped = await sidecar.mesh.audit.DropContent(
        audit_pb2.DropContentRequest(session_id=first.headers["crp-context-session-id"], window_id=window)
    )
    assert dropped.dropped
    erased = await sidecar.mesh.audit.EraseSession(
        audit_pb2.EraseSessionRequest(
            session_id=second.headers["crp-context-session-id"],
            approval_id=f"crp_appr_{9:032x}",
            reviewer_id=agents.REVIEWER,
            reason="ERASURE_REQUEST",
        )
    )
    assert erased.erased, erased
    removed = partial(truncate, sealer=audit._eraser._sealer, session_id=third.headers["crp-context-session-id"])
    assert await audit._appender.submit(removed)


async def _expired(sidecar: RunningSidecar) -> None:
    """Nobody decided in time: the queue shows it as expired, and the chain says so."""
    async with asyncio.timeout(60):
        while True:
            asked = audit_pb2.ListHeldRequest(status=audit_pb2.HELD_STATUS_EXPIRED)
            over = (await sidecar.mesh.audit.ListHeld(asked)).items
            said = [event.event_type for item in over for event in await sidecar.events(item.session_id)]
            if "OVERSIGHT_EXPIRED" in said:
                return
            await asyncio.sleep(0.2)


async def _broken(sidecar: RunningSidecar, database: Path) -> None:
    """Somebody changes a stored event: the next look at its chain writes an incident."""
    last = await sidecar.chat("Last?")
    session_id = last.headers["crp-context-session-id"]
    with sqlite3.connect(database, isolation_level=None) as connection:
        connection.execute("PRAGMA busy_timeout = 5000")
        triggers = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE events SET severity = 1 WHERE session_id = ? AND sequence = 2", (session_id,))
    connection.close()
    found = await sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=session_id))
    assert found.faults
    with sqlite3.connect(database, isolation_level=None) as connection:
        connection.execute("UPDATE events SET severity = 2 WHERE session_id = ? AND sequence = 2", (session_id,))
    connection.close()


def test_the_table_names_every_type_of_the_specification():
    """SPEC-011 §1, by name: none is missing, and what cannot be produced says why."""
    specified = (
        "SESSION_CREATED SESSION_CONTINUED SESSION_TERMINATED DISPATCH_STARTED DISPATCH_COMPLETED DISPATCH_FAILED "
        "RE_DISPATCH STRATEGY_UPGRADE DPE_COMPLETED FABRICATION_DETECTED DISTORTION_DETECTED CONTRADICTION_DETECTED "
        "REPETITION_DETECTED COMPLETENESS_GAP FLOW_REMEDIATION STOP_INJECT SAFETY_HALT SAFETY_BUDGET_DEPLETED "
        "OVERSIGHT_TRIGGERED POLICY_VIOLATION PII_DETECTED EU_AI_ACT_CLASSIFIED COMPLY_EXPORT FACT_RETRIEVED "
        "FACT_INGESTED FACT_DELETED FACT_QUARANTINED CKF_ETAG_CHANGED TOOL_CALL AGENT_LOOP_ITERATION FAN_OUT_CREATED "
        "FAN_IN_MERGED COMPLETENESS_CONTINUATION FLOW_STITCH"
    ).split()
    assert set(specified) <= set(TYPES)
    assert {name for name in specified if not TYPES[name].produced} == {
        "STOP_INJECT", "FACT_INGESTED", "FACT_DELETED", "FACT_QUARANTINED", "CKF_ETAG_CHANGED",
    }  # fmt: skip
    assert all(one.path.startswith("Nothing: ") for one in TYPES.values() if not one.produced)


def test_the_page_of_events_is_fresh():
    """docs/events.md is what the table says."""
    page = ROOT / "docs" / "events.md"
    assert page.read_text(encoding="utf-8") == audit_events.events_page()
