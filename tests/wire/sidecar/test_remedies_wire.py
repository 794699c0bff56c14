"""Remedies through the served sidecar: what the provider is asked, what is told, what it costs, what is not given away."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from contextlib import asynccontextmanager

import pytest
from prometheus_client import REGISTRY

from interlock.api.policy.v1 import policy_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.domain.errors import unavailable
from interlock.sidecar.provider import prompts
from interlock.sidecar.provider.remediation import seed_of
from tests.support.servers.provider import RunningProvider, completion, message, tool_call
from tests.support.sidecar.remedies import EVERY_REMEDY, NO_ISSUES, Judge, Script, cut_off, fields_of, told
from tests.support.sidecar.sidecar import Hooked, reason_of, running_sidecar, token_of

UPGRADE = {"crp-safety-policy": "upgrade-on-risk reflexive"}
REVIEWED = ["generate", "verify"]


@pytest.fixture(scope="module")
def running():
    with RunningProvider(Script()) as provider:
        yield provider


@pytest.fixture
def script(running) -> Script:
    running.provider.reset()
    running.provider.plays()
    return running.provider


@pytest.fixture
def judge() -> Judge:
    return Judge()


@asynccontextmanager
async def serving(tmp_path, running, judge, **more):
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=judge, **{**EVERY_REMEDY, **more}) as sidecar:
        yield sidecar


@pytest.fixture
async def sidecar(tmp_path, running, judge):
    async with serving(tmp_path, running, judge) as one:
        yield one


def counted(remedy: str) -> float:
    """interlock_redispatch_total of a remedy so far."""
    return REGISTRY.get_sample_value("interlock_redispatch_total", {"remedy": remedy}) or 0.0


def said(response) -> str:
    return response.json()["choices"][0]["message"]["content"]


async def second(sidecar, script, first: str = "The first window said this. It said more.", **more):
    """Govern a first window, forget what it asked for, and govern a second one."""
    steps = more.pop("steps", {})
    script.plays(generate=[first])
    before = await sidecar.chat()
    script.received.clear()
    script.plays(**steps)
    onward = {"CRP-Context-Continuation-Id": before.headers["crp-context-continuation-id"], **more.pop("headers", {})}
    return before, await sidecar.chat("And then?", token=token_of(before), headers=onward, **more)


@pytest.mark.req("DPE-16", "BUD-5")
async def test_a_risk_is_answered_by_one_reflexive_dispatch(sidecar, script, judge):
    """upgrade-on-risk: cooler, another seed, only the context, verified; one charge, and the first answer is nowhere."""
    script.plays(generate=["A HIGH risk answer.", "A safe answer."])
    messages = [{"role": "system", "content": "The tower is old."}, {"role": "user", "content": "How old?"}]
    response = await sidecar.chat(headers=UPGRADE, messages=messages, temperature=0.9, seed=7, max_tokens=50)
    again, events = script.body("generate", 1), await told(sidecar, response.headers["crp-context-session-id"])

    assert said(response) == "A safe answer."
    assert script.steps == ["generate", *REVIEWED]
    assert (again["temperature"], again["max_tokens"]) == (0.2, 50)
    assert again["seed"] == seed_of(fields_of(events, "WINDOW_SEALED")[0]["window_id"], 1, 7) != 7
    assert "Answer only using the provided context." in script.system("generate", 1)
    assert again["messages"][1:] == script.body("generate")["messages"]
    assert response.headers["crp-agent-safety-budget"] == "1.00"
    assert response.headers["crp-safety-hallucination-risk"] == "LOW"
    assert (response.headers["crp-context-strategy"], response.headers["crp-agent-revision-round"]) == (
        "reflexive", "1/2",
    )  # fmt: skip
    assert "HIGH risk" not in response.text
    assert judge.texts == ["A HIGH risk answer.", "A safe answer."]


@pytest.mark.req("DPE-16", "AUD-1", "BUD-5")
async def test_every_round_is_on_record_and_the_last_one_is_charged(sidecar, script):
    """RE_DISPATCH, STRATEGY_UPGRADE and both analyses are sealed in order; tokens of all calls are added up."""
    script.plays(generate=["A HIGH risk answer.", "A MEDIUM risk answer."])
    response = await sidecar.chat(headers=UPGRADE)
    events = await told(sidecar, response.headers["crp-context-session-id"])
    again = fields_of(events, "RE_DISPATCH")

    assert [kind for kind, _ in events[1:]] == [
        "DISPATCH_STARTED", "DISPATCH_COMPLETED", "DPE_COMPLETED", "EU_AI_ACT_CLASSIFIED",
        "RE_DISPATCH", "STRATEGY_UPGRADE", "AGENT_LOOP_ITERATION", "DISPATCH_STARTED", "DISPATCH_COMPLETED",
        "AGENT_LOOP_ITERATION", "DISPATCH_STARTED", "DISPATCH_COMPLETED", "DPE_COMPLETED", "EU_AI_ACT_CLASSIFIED",
        "WINDOW_SEALED",
    ]  # fmt: skip
    looped = fields_of(events, "AGENT_LOOP_ITERATION")
    assert [(one["phase"], one["iteration"]) for one in looped] == [("generate", 1), ("verify", 2)]
    assert {one["budget_remaining"] for one in looped} == {"1.00"}
    assert again[0] | {"seed": 0} == {
        "round": 1, "remedies": ["upgrade"], "reason": ["risk_upgrade"], "original_risk": "HIGH",
        "original_score": 0.5, "strategy": "reflexive", "temperature": 0.2, "seed": 0, "tokens": 30,
    }  # fmt: skip
    assert [fields["risk_level"] for fields in fields_of(events, "DPE_COMPLETED")] == ["HIGH", "MEDIUM"]
    assert [fields.get("step") for fields in fields_of(events, "DISPATCH_STARTED")] == [None, None, "verify"]
    assert fields_of(events, "WINDOW_SEALED")[0]["charge_micros"] == 50_000
    assert response.headers["crp-agent-safety-budget"] == "0.95"
    assert response.json()["usage"] == {"prompt_tokens": 30, "completion_tokens": 15, "total_tokens": 45}


@pytest.mark.req("DPE-16")
async def test_two_re_dispatches_are_the_most(sidecar, script):
    """Still HIGH after the second: decided as it is, charged once, each round with a seed of its own."""
    script.plays(generate=["A HIGH risk answer."])
    response = await sidecar.chat(headers={"crp-safety-policy": "halt-on HIGH; upgrade-on-risk reflexive"})
    seeds = [script.body("generate", number).get("seed") for number in range(3)]

    assert (response.status_code, reason_of(response)) == (451, "SAFETY_HALT")
    assert script.steps == ["generate", *REVIEWED, *REVIEWED]
    assert len(set(seeds)) == 3
    assert response.headers["crp-agent-safety-budget"] == "0.85"
    assert "HIGH risk answer" not in response.text


@pytest.mark.req("DPE-16")
async def test_without_the_directive_a_risk_is_not_dispatched_again(sidecar, script):
    """upgrade-on-risk is the policy's to set."""
    script.plays(generate=["A HIGH risk answer."])
    response = await sidecar.chat()

    assert said(response) == "A HIGH risk answer."
    assert script.steps == ["generate"]


@pytest.mark.req("DPE-16", "DPE-7")
async def test_severe_repetition_is_told_not_to_repeat(sidecar, script):
    """The printed text of §9.3 with what was said and what repeats it, by a reflexive dispatch, without any directive."""
    before, response = await second(sidecar, script, steps={"generate": ["It REPEATS this.", "Something new."]})
    system, events = script.system("generate", 1), await told(sidecar, response.headers["crp-context-session-id"])

    assert said(response) == "Something new."
    head, tail = prompts.ANTI_REPETITION.split("{summary}")
    assert head in system
    assert tail in system
    assert prompts.quoted(said(before)) in system
    assert f"[REPEATED] {prompts.quoted('It REPEATS this.')}" in system
    assert script.steps == ["generate", *REVIEWED]
    assert response.headers["crp-quality-repetition"] == "NONE"
    assert fields_of(events, "REPETITION_DETECTED") == [
        {"level": "SEVERE", "overlap_ratio": 0.8, "semantic_ratio": 0.9}
    ]
    assert fields_of(events, "RE_DISPATCH")[0]["reason"] == ["repetition"]


@pytest.mark.req("DPE-16", "DPE-6")
async def test_a_critical_contradiction_is_told_what_it_contradicts(sidecar, script):
    """Both sides of the pair are in the instruction (§18.1)."""
    _, response = await second(sidecar, script, steps={"generate": ["It CONTRADICTS that.", "It agrees."]})

    assert said(response) == "It agrees."
    assert prompts.quoted("Revenue was $4.2M.") in script.system("generate", 1)
    assert prompts.quoted("A claim.") in script.system("generate", 1)
    assert response.headers["crp-safety-contradictions"] == "0"


@pytest.mark.req("DPE-16", "DPE-9")
async def test_a_low_flow_is_told_how_the_last_window_ended(sidecar, script, judge):
    """The printed text of §11.5, option A, with the last three sentences; the header says what was done."""
    first = "One went. Two came. Three stayed. Four left."
    _, response = await second(sidecar, script, first, steps={"generate": ["It JUMPS about.", "Next it FLOWS on."]})
    head, tail = prompts.FLOW.split("{ending}")

    assert said(response) == "Next it FLOWS on."
    assert head + prompts.quoted("Two came. Three stayed. Four left.") + tail in script.system("generate", 1)
    assert response.headers["crp-quality-flow"] == "0.800; remediation=prompt-augmented"
    assert judge.asked[-1].flow_remediation == "prompt-augmented"


@pytest.mark.req("DPE-16", "DPE-9")
async def test_a_flow_that_stays_low_is_bridged(sidecar, script, judge):
    """Two re-dispatches, then the printed stitch call at 0.2; its bridge stands before the answer, analysed as a whole."""
    begun = {remedy: counted(remedy) for remedy in ("flow-augmentation", "stitch", "upgrade")}
    _, response = await second(sidecar, script, "It ended. So it did.", steps={"generate": ["It JUMPS. It ends."]})
    session_id = response.headers["crp-context-session-id"]
    events, body = await told(sidecar, session_id), script.body("stitch")
    stitch = fields_of(events, "FLOW_STITCH")[0]

    assert said(response) == "A bridge leads on.\n\nIt JUMPS. It ends."
    assert script.steps == ["generate", *REVIEWED, *REVIEWED, "stitch"]
    assert body["messages"][-1]["content"] == prompts.STITCH.format(
        ending=prompts.quoted("It ended. So it did."), beginning=prompts.quoted("It JUMPS. It ends.")
    )
    assert body["temperature"] == 0.2
    assert "tools" not in body
    assert judge.texts[-1] == "A bridge leads on.\n\nIt JUMPS. It ends."
    assert judge.asked[-1].flow_remediation == "stitched"
    assert (stitch["round"], stitch["tokens"]) == (3, 15)
    assert stitch["stitch_content_hash"] == "sha256:" + hashlib.sha256(b"A bridge leads on.").hexdigest()
    assert stitch["prior_window_id"] == fields_of(events, "WINDOW_SEALED")[0]["window_id"]
    assert [fields["remediation_type"] for fields in fields_of(events, "FLOW_REMEDIATION")] == [
        "prompt-augmented", "prompt-augmented", "stitched",
    ]  # fmt: skip
    assert {remedy: counted(remedy) - before for remedy, before in begun.items()} == {
        "flow-augmentation": 2, "stitch": 1, "upgrade": 0,
    }  # fmt: skip


@pytest.mark.req("DPE-16", "DPE-8", "BUD-5")
async def test_what_was_cut_off_is_continued_in_the_same_window(sidecar, script, judge):
    """Once, at the caller's own settings, towards what is uncovered, the facts that concern it first; one window."""
    script.plays(generate=[cut_off("The first topic is PARTIAL.")], **{"continue": ["The rest is the second topic."]})
    response = await sidecar.chat(
        "Two topics?", temperature=0.9, seed=7,
        messages=[
            {"role": "system", "content": "The first topic is old. The second topic is new."},
            {"role": "user", "content": "Two topics?"},
        ],
    )  # fmt: skip
    events, body = await told(sidecar, response.headers["crp-context-session-id"]), script.body("continue")
    told_to = body["messages"][0]["content"]

    assert said(response) == "The first topic is PARTIAL.\n\nThe rest is the second topic."
    assert script.steps == ["generate", "continue"]
    assert (body["temperature"], body["seed"]) == (0.9, 7)
    assert (
        prompts.CONTINUATION.format(
            covered=prompts.quoted("the first topic"), uncovered=prompts.quoted("the second topic")
        )
        in told_to
    )
    assert told_to.index("The second topic is new.") < told_to.index("The first topic is old.")
    assert body["messages"][-2] == {"role": "assistant", "content": "The first topic is PARTIAL."}
    assert judge.texts[-1] == said(response)
    assert response.headers["crp-context-window"] == "1/200"
    assert response.headers["crp-quality-completeness"] == "COMPLETE; sub-queries=1/1"
    assert len(fields_of(events, "WINDOW_SEALED")) == 1
    continued = fields_of(events, "COMPLETENESS_CONTINUATION")[0]
    assert (continued["uncovered_topics"], continued["round"]) == ([2], 1)
    assert response.json()["usage"]["total_tokens"] == 30


@pytest.mark.req("DPE-8")
@pytest.mark.parametrize(
    ("headers", "more"),
    [
        ({"crp-context-cache": "no-cache"}, {}),
        ({}, {"response_format": {"type": "json_object"}}),
    ],
)
async def test_no_continuation_where_it_is_not_wanted_or_would_spoil_the_answer(sidecar, script, headers, more):
    """no-cache forbids it (§10.3); JSON cannot be joined. The gap is told."""
    script.plays(generate=[cut_off("This is PARTIAL.")])
    response = await sidecar.chat(headers=headers, **more)

    assert said(response) == "This is PARTIAL."
    assert script.steps == ["generate"]
    assert response.headers["crp-quality-completeness"] == ("PARTIAL; sub-queries=1/2; uncovered=the-second-topic")


@pytest.mark.req("DPE-8")
async def test_the_last_window_is_not_continued(tmp_path, running, script, judge):
    """Without windows left the client is told what is missing."""
    async with serving(tmp_path, running, judge, max_windows=1) as sidecar:
        script.plays(generate=[cut_off("This is PARTIAL.")])
        response = await sidecar.chat()

    assert script.steps == ["generate"]
    assert response.headers["crp-quality-completeness"].startswith("PARTIAL")


@pytest.mark.req("DPE-16")
async def test_a_text_cut_by_the_callers_limit_is_not_lengthened(sidecar, script):
    """max_tokens stays what was asked."""
    script.plays(generate=[cut_off("This is PARTIAL.")])
    response = await sidecar.chat(max_tokens=4)

    assert script.steps == ["generate"]
    assert response.json()["choices"][0]["finish_reason"] == "length"


@pytest.mark.req("DPE-16")
async def test_all_remedies_of_a_round_are_applied_at_once(sidecar, script):
    """One dispatch is told about the repetition, the contradiction, the flow and the context."""
    bad = "It REPEATS, CONTRADICTS and JUMPS at HIGH risk."
    _, response = await second(
        sidecar,
        script,
        steps={"generate": [bad, "It is better."]},
        headers={"crp-safety-policy": "upgrade-on-risk batch"},
    )
    events = await told(sidecar, response.headers["crp-context-session-id"])

    assert said(response) == "It is better."
    assert fields_of(events, "RE_DISPATCH")[0]["remedies"] == [
        "upgrade", "context-correction", "anti-repetition", "flow-augmentation",
    ]  # fmt: skip
    assert response.headers["crp-context-strategy"] == "reflexive"


@pytest.mark.req("DPE-16")
async def test_what_an_earlier_round_was_told_still_holds(sidecar, script):
    """The second round is told about the flow and still not to repeat."""
    _, response = await second(sidecar, script, steps={"generate": ["It REPEATS and JUMPS.", "It JUMPS.", "It FLOWS."]})
    system = script.system("generate", 2)

    assert said(response) == "It FLOWS."
    assert "DO NOT repeat this content." in system
    assert "This is a continuation of a prior response." in system
    assert response.headers["crp-quality-flow"].endswith("remediation=prompt-augmented")


@pytest.mark.req("DPE-16", "SVC-9")
async def test_a_remedy_that_fails_leaves_the_answer_before_it(sidecar, script, judge):
    """The provider fails on round two: the answer of round one stands, decided as it is, and the record says so."""
    script.plays(generate=["A CRITICAL risk answer, first.", "A HIGH risk answer, second.", 500])
    response = await sidecar.chat(headers=UPGRADE)
    events = await told(sidecar, response.headers["crp-context-session-id"])
    failed = fields_of(events, "DISPATCH_FAILED")[0]

    assert said(response) == "A HIGH risk answer, second."
    assert (failed["round"], failed["error_code"], failed["remedies"]) == (2, "UPSTREAM_ERROR", ["upgrade"])
    assert [fields["round"] for fields in fields_of(events, "RE_DISPATCH")] == [1, 2]
    assert response.headers["crp-agent-safety-budget"] == "0.85"
    assert len(judge.texts) == 2


@pytest.mark.req("DPE-16", "SVC-9")
@pytest.mark.parametrize("step", ["verify", "refine"])
async def test_a_pass_that_fails_fails_the_remedy(sidecar, script, step):
    """A generated answer that could not be verified or refined does not take the place of the analysed one."""
    script.plays(generate=["A HIGH risk answer.", "An unverified one."], **{"verify": ["{}"], step: [503]})
    response = await sidecar.chat(headers=UPGRADE)

    assert said(response) == "A HIGH risk answer."
    assert "unverified" not in response.text
    assert response.headers["crp-context-strategy"] == "push"


@pytest.mark.req("SVC-9", "ATT-10")
async def test_a_remedy_that_cannot_be_analysed_leaves_the_draft(sidecar, script, judge):
    """The draft was analysed and is decided by itself; an answer that nobody has judged takes no one's place."""
    judge.failure = unavailable("DPE_UNAVAILABLE", "down")
    script.plays(generate=["A HIGH risk answer.", "Another one."])
    response = await sidecar.chat(headers=UPGRADE)
    events = await told(sidecar, response.headers["crp-context-session-id"])

    assert said(response) == "A HIGH risk answer."
    assert fields_of(events, "DISPATCH_FAILED")[0]["error_code"] == "DPE_UNAVAILABLE"
    assert response.headers["crp-safety-hallucination-risk"] == "HIGH"
    assert response.headers["crp-agent-safety-budget"] == "0.85"


@pytest.mark.req("SVC-9")
async def test_a_first_analysis_that_fails_is_a_refusal(sidecar, script, judge):
    """Nothing is charged, sealed or released that was not analysed."""
    judge.failure, judge.asked = unavailable("DPE_UNAVAILABLE", "down"), [None]
    response = await sidecar.chat(headers=UPGRADE)
    events = [event.event_type for event in await sidecar.events(response.headers["crp-context-session-id"])]

    assert (response.status_code, reason_of(response)) == (503, "DPE_UNAVAILABLE")
    assert "WINDOW_SEALED" not in events
    assert response.headers["crp-agent-safety-budget"] == "1.00"


@pytest.mark.req("BRK-2")
async def test_a_half_open_breaker_forces_reflexive(sidecar, script):
    """Below 0.50 the answer is generated, reviewed and refined before it is analysed (SPEC-012 §5.1)."""
    script.plays(generate=["A CRITICAL risk answer."])
    first = await sidecar.chat()
    half_open = await sidecar.chat(token=token_of(first))
    script.received.clear()
    script.plays(verify=['{"issues": ["The year is wrong."]}'])
    response = await sidecar.chat(token=token_of(half_open))

    assert script.steps == ["generate", "verify", "refine"]
    assert said(response) == "The refined answer is fine."
    assert (response.headers["crp-context-strategy"], response.headers["crp-agent-revision-round"]) == (
        "reflexive", "2/3",
    )  # fmt: skip


@pytest.mark.req("DPE-16")
async def test_strict_mode_reviews_with_the_printed_prompts(sidecar, script, judge):
    """SPEC-008 §5.2: the review at 0.2, the revision at 0.3, only the revision analysed, all tokens counted."""
    script.plays(generate=["A first draft."], verify=['{"issues": ["The year is wrong."]}'])
    response = await sidecar.chat(headers={"crp-safety-mode": "strict"}, temperature=0.8, max_tokens=60)
    verify, refine = script.body("verify"), script.body("refine")

    assert verify["messages"][-1]["content"] == prompts.VERIFICATION.format(response=prompts.quoted("A first draft."))
    assert refine["messages"][-1]["content"] == prompts.REFINEMENT.format(
        findings=f"- {prompts.quoted('The year is wrong.')}", response=prompts.quoted("A first draft.")
    )
    assert [body["temperature"] for body in (script.body("generate"), verify, refine)] == [0.8, 0.2, 0.3]
    assert (verify["max_tokens"], refine["max_tokens"]) == (512, 60)
    assert judge.texts == ["The refined answer is fine."]
    assert "A first draft" not in response.text
    assert response.json()["usage"]["total_tokens"] == 45


@pytest.mark.req("DPE-16")
async def test_a_stream_holds_the_last_answer_alone(sidecar, script):
    """Chunks, headers and usage are of the final answer; no byte of an earlier one leaves."""
    script.plays(generate=["A HIGH risk answer.", "A safe answer."])
    response = await sidecar.chat(headers=UPGRADE, stream=True, stream_options={"include_usage": True})
    chunks = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
    text = "".join(c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"])

    assert text == "A safe answer."
    assert "HIGH risk" not in response.text
    assert chunks[-1]["usage"]["total_tokens"] == 45
    assert response.headers["crp-context-strategy"] == "reflexive"


@pytest.mark.req("DPE-16", "SVC-2")
async def test_the_grpc_front_remedies_the_same(sidecar, script):
    """Dispatch goes through the same rounds."""
    script.plays(generate=["A HIGH risk answer.", "A safe answer."])
    chat = json.dumps({"model": "m", "messages": [{"role": "user", "content": "What?"}]}).encode()
    context = sidecar_pb2.CallContext(safety_policy=["upgrade-on-risk reflexive"])
    answer = await sidecar.stub.Dispatch(sidecar_pb2.DispatchRequest(chat_request=chat, context=context))

    assert b"A safe answer." in answer.chat_response
    assert answer.outcome.headers["CRP-Context-Strategy"] == "reflexive"
    assert answer.outcome.decision.action == policy_pb2.ACTION_DELIVER


@pytest.mark.req("DPE-16")
async def test_a_text_that_was_brought_is_not_asked_for_again(sidecar, script, judge):
    """Check has nobody to ask: the decision is that of the last round, and it asks no provider."""
    context = sidecar_pb2.CallContext(safety_policy=["halt-on HIGH; upgrade-on-risk reflexive"])
    request = sidecar_pb2.CheckRequest(text="A HIGH risk text that is PARTIAL.", context=context)
    answer = await sidecar.stub.Check(request)

    assert answer.outcome.decision.action == policy_pb2.ACTION_HALT
    assert not script.received
    assert len(judge.asked) == 1


@pytest.mark.req("DPE-16")
async def test_tool_calls_are_asked_for_again_but_not_rewritten(sidecar, script):
    """The tools stay as asked, there is no review of a call, and the header says that it was a push."""
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    call = completion(message(None, tool_calls=[tool_call("look", '{"at": "it"}')]))
    script.plays(generate=["A HIGH risk answer.", call])
    response = await sidecar.chat(headers=UPGRADE, tools=tools, tool_choice="auto")
    again = script.body("generate", 1)

    assert response.json()["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"at": "it"}'
    assert (again["tools"], again["tool_choice"]) == (script.body("generate")["tools"], "auto")
    assert script.steps == ["generate", "generate"]
    assert (response.headers["crp-context-strategy"], response.headers["crp-agent-revision-round"]) == ("push", "1/1")


@pytest.mark.req("DPE-16")
async def test_every_choice_is_reviewed(sidecar, script):
    """n stays as asked; only the choice with issues is refined."""
    two = completion(message("The first."), message("The second."))
    script.plays(generate=[two], verify=[NO_ISSUES, '{"issues": ["wrong"]}'])
    response = await sidecar.chat(headers={"crp-safety-mode": "strict"}, n=2)

    assert [c["message"]["content"] for c in response.json()["choices"]] == [
        "The first.",
        "The refined answer is fine.",
    ]
    assert [c["index"] for c in response.json()["choices"]] == [0, 1]
    assert script.steps == ["generate", "verify", "verify", "refine"]
    assert [body.body.get("n") for body in script.received] == [2, None, None, None]


@pytest.mark.req("DPE-6", "DPE-7")
async def test_later_windows_are_compared_with_what_was_released(sidecar, script, judge):
    """The analysis gets the texts on the path, oldest first; a halted window is none of them."""
    script.plays(generate=["The first said."])
    first = await sidecar.chat(headers={"crp-safety-policy": "halt-on CRITICAL"})
    script.plays(generate=["A CRITICAL risk said."])
    halted = await sidecar.chat(token=token_of(first))
    script.plays(generate=["The third said."])
    await sidecar.chat(token=token_of(halted))

    assert halted.status_code == 451
    assert [[one.text for one in asked.prior] for asked in judge.asked] == [
        [], ["The first said."], ["The first said."],
    ]  # fmt: skip
    assert judge.asked[1].prior[0].window_id


@pytest.mark.req("SVC-9", "DPE-6")
async def test_contents_that_cannot_be_read_refuse_the_call(tmp_path, running, script, judge):
    """Nothing is compared with less than there is: 503, nothing sealed, and the lease goes back."""
    down = {"now": False}

    async def unreadable(_request):
        if down["now"]:
            raise unavailable("AUDIT_UNAVAILABLE", "cannot read")

    wrap = lambda services: {**services, "audit": Hooked(services["audit"], GetContents=unreadable)}  # noqa: E731
    async with serving(tmp_path, running, judge, wrap=wrap) as sidecar:
        first = await sidecar.chat()
        down["now"] = True
        refused = await sidecar.chat(token=token_of(first))
        down["now"] = False
        again = await sidecar.chat(token=token_of(first))

    assert (refused.status_code, reason_of(refused)) == (503, "AUDIT_UNAVAILABLE")
    assert again.status_code == 200
    assert len(judge.asked) == 2


@pytest.mark.req("DPE-6")
@pytest.mark.finding("F-17")
async def test_nobody_is_asked_before_the_chain_was_read(tmp_path, running, script, judge):
    """What earlier windows said comes with a verified chain: until it has come, the provider is not asked, nor paid."""
    waiting = asyncio.Event()

    async def slow(_request):
        await asyncio.wait_for(waiting.wait(), 10)

    wrap = lambda services: {**services, "audit": Hooked(services["audit"], GetContents=slow)}  # noqa: E731
    async with serving(tmp_path, running, judge, wrap=wrap) as sidecar:
        first = await sidecar.chat()
        script.asked.clear()
        call = asyncio.create_task(sidecar.chat(token=token_of(first)))
        asked_too_early = await asyncio.to_thread(script.asked.wait, 0.5)
        waiting.set()
        response = await call

    assert not asked_too_early
    assert script.asked.is_set()
    assert response.status_code == 200


@pytest.mark.req("DPE-16")
async def test_a_deployment_can_do_without(tmp_path, running, script, judge):
    """remediation: none, the older setting, decides about every answer as it came, whatever a policy names."""
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=judge, remediation="none") as sidecar:
        script.plays(generate=["It REPEATS, JUMPS and is PARTIAL at HIGH risk."])
        await sidecar.chat(headers=UPGRADE)

    assert script.steps == ["generate"]


@pytest.mark.req("SVC-4", "DPE-16")
async def test_no_remedy_begins_when_the_time_does_not_hold_another_dispatch(tmp_path, running, script, judge):
    """A model that took more than half of the deadline is not asked again; the first answer is decided about."""

    def late():
        time.sleep(1.6)
        return "A HIGH risk answer, PARTIAL."

    async with serving(tmp_path, running, judge, request_timeout_s=3) as sidecar:
        script.plays(generate=[late])
        response = await sidecar.chat(headers=UPGRADE)

    assert said(response) == "A HIGH risk answer, PARTIAL."
    assert script.steps == ["generate"]


class Endless(Hooked):
    """A policy service that would dispatch again for ever."""

    async def Decide(self, request, context):
        answer = await self._inner.Decide(request, context)
        answer.decision.action = policy_pb2.ACTION_REDISPATCH
        answer.decision.remedies[:] = [policy_pb2.REMEDY_UPGRADE]
        return answer


@pytest.mark.req("DPE-16")
async def test_a_policy_that_never_ends_is_ended(tmp_path, running, script, judge):
    """The sidecar counts too: two re-dispatches, and what policy did not deliver is not released."""
    wrap = lambda services: {**services, "policy": Endless(services["policy"])}  # noqa: E731
    async with serving(tmp_path, running, judge, wrap=wrap) as sidecar:
        response = await sidecar.chat()

    assert response.status_code == 451
    assert script.steps == ["generate", *REVIEWED, *REVIEWED]
    assert "fine" not in response.json()["error"]["message"]


@pytest.mark.req("BUD-5", "BUD-11", "DPE-16")
async def test_who_leaves_during_a_remedy_is_charged_for_the_answer_before_it(tmp_path, running, script, judge):
    """The provider's work is cut short, no other round is begun, and the analysed answer is sealed and charged."""
    asked, hold = threading.Event(), threading.Event()

    def held():
        asked.set()
        hold.wait(10)
        return "A HIGH risk answer."

    async with serving(tmp_path, running, judge) as sidecar:
        first = await sidecar.chat(headers=UPGRADE)
        script.received.clear()
        script.plays(generate=["A HIGH risk answer.", held])
        leaving = asyncio.create_task(sidecar.chat(token=token_of(first)))
        await asyncio.to_thread(asked.wait, 10)
        leaving.cancel()
        await asyncio.wait([leaving])
        await asyncio.sleep(0.1)  # the hang-up travels
        hold.set()
        shown = await sidecar.settled(first, windows=2)

    assert shown["safety_budget_micros"] == 850_000
    assert script.steps == ["generate", "generate"]


@pytest.mark.req("DPE-16", "HDR-4")
async def test_the_headers_of_the_later_stages(sidecar, script):
    """Stages 7 to 9, 12 and the quality score have their headers, from the final answer's report."""
    _, response = await second(sidecar, script, steps={"generate": ["It FLOWS."]})

    assert {name: response.headers[name] for name in response.headers if "quality-" in name or "compliance" in name} | {
        "crp-compliance-audit-trail-id": "", "crp-compliance-audit-trail-uri": "",
    } == {
        "crp-quality-repetition": "NONE", "crp-quality-completeness": "COMPLETE; sub-queries=1/1",
        "crp-quality-flow": "0.800", "crp-quality-score": "0.950", "crp-context-quality-tier": "A",
        "crp-compliance-eu-ai-act": "UNKNOWN", "crp-compliance-nist-tier": "TIER-2",
        "crp-compliance-iso-42001": "A.6.2, A.9.4", "crp-compliance-controls-met": "4/5",
        "crp-compliance-gdpr-pii": "false", "crp-compliance-audit-trail-id": "", "crp-compliance-audit-trail-uri": "",
    }  # fmt: skip


@pytest.mark.req("DPE-16")
async def test_require_flow_and_require_completeness_ask_again_before_they_halt(sidecar, script):
    """SPEC-006 §3.7 and §3.8: below the threshold it is remedied; what stays below is halted."""
    policy = {"crp-safety-policy": "require-completeness 0.80"}
    script.plays(generate=[cut_off("This is PARTIAL and")], **{"continue": ["still not all."]})
    halted = await sidecar.chat(headers=policy)
    script.plays(generate=[cut_off("This is PARTIAL and")], **{"continue": ["has a rest."]})
    cured = await sidecar.chat(headers=policy)

    assert (halted.status_code, halted.json()["crp_halt_reason"]) == (451, "COMPLETENESS_BELOW_THRESHOLD")
    assert cured.status_code == 200
    assert script.steps == ["generate", "continue"] * 2
