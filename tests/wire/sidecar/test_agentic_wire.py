"""The agentic strategy through the served sidecar: its phases, windows, charges, tools and ends (SPEC-008 §6)."""

from __future__ import annotations

import json

import pytest

from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from tests.support.servers.provider import completion, message, tool_call
from tests.support.sidecar import answering
from tests.support.sidecar.remedies import fields_of, full_report, told
from tests.support.sidecar.sidecar import DpeDouble, reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import budget, dag
from tests.support.sidecar.world import agents_file

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.sidecar

AGENTIC = {"crp-context-strategy": "agentic"}
LAW, MONEY = "What of law?", "What of money?"
TOOLS = [{"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}}}]


async def ask(sidecar, question: str = "All?", **more):
    return await sidecar.chat(question, headers={**AGENTIC, **more.pop("headers", {})}, **more)


def said(response) -> str:
    return response.json()["choices"][0]["message"]["content"]


def systems(body) -> str:
    return "\n".join(one["content"] for one in body["messages"] if one["role"] == "system")


@pytest.mark.finding("F-19")
@pytest.mark.req("HDR-4")
async def test_a_task_is_planned_done_step_by_step_and_put_together(sidecar, provider):
    """Four windows in a row, each made from the results before it; the headers of §6.5 and a trail of every phase."""
    response = await ask(sidecar)
    asked = [one.body for one in provider.received]
    nodes = sorted((one.window_number, one.pattern, one.strategy) for one in (await dag(sidecar, response)).values())
    looped = fields_of(await told(sidecar, response.headers["crp-context-session-id"]), "AGENT_LOOP_ITERATION")

    assert (response.status_code, said(response)) == (200, "This answers it. All?")
    assert nodes == [(number, "LINEAR", "agentic") for number in (1, 2, 3, 4)]
    assert [LAW in systems(asked[1]), MONEY in systems(asked[1])] == [True, False]
    assert "This answers it. All?" in systems(asked[2]) and MONEY in systems(asked[2])
    assert "Merge them into one answer" in systems(asked[3])
    assert response.headers["crp-context-strategy"] == response.headers["crp-agent-dispatch-strategy"] == "agentic"
    assert response.headers["crp-agent-phase"] == "COMPLETE"
    assert (response.headers["crp-agent-loop-depth"], response.headers["crp-agent-tool-calls"]) == ("0", "0")
    assert response.headers["crp-provenance-chain-integrity"] == "VALID"
    assert [(one["phase"], one["iteration"]) for one in looped] == [
        ("ANALYZE", 1), ("PLAN", 1), ("GENERATE", 2), ("GENERATE", 3), ("EVALUATE", 4), ("INTEGRATE", 4),
    ]  # fmt: skip
    assert response.json()["usage"]["total_tokens"] == 60


@pytest.mark.finding("F-19")
@pytest.mark.req("BUD-6")
async def test_every_step_costs_what_it_costs(sidecar, provider):
    """Each HIGH iteration comes off the session's budget, one after the other (§6.4)."""
    provider.by_question["All?"] = lambda body: "Fine." if "Merge them" in systems(body) else "This is HIGH."
    response = await ask(sidecar, headers={"crp-safety-policy": "warn-on HIGH"})

    assert response.headers["crp-agent-safety-budget"] == "0.70"
    assert await budget(sidecar, response) == 700_000


@pytest.mark.finding("F-19")
async def test_a_step_that_is_halted_ends_the_loop_and_says_where(sidecar, provider):
    """451 in the phase that it came to; nothing is asked for after it and nothing of it is released."""
    provider.by_question["All?"] = "This is CRITICAL."
    response = await ask(sidecar, headers={"crp-safety-policy": "halt-on CRITICAL"})

    assert (response.status_code, reason_of(response)) == (451, "SAFETY_HALT")
    assert (response.headers["crp-agent-phase"], response.headers["crp-context-strategy"]) == ("GENERATE", "agentic")
    assert len(provider.received) == 2
    assert "CRITICAL." not in response.text and token_of(response)


@pytest.mark.finding("F-19")
async def test_a_step_that_calls_a_tool_is_the_agents_to_run(sidecar, provider):
    """The call is returned in its phase with its count; with the result the loop goes on to its end."""
    provider.by_question["All?"] = completion(message(tool_calls=[tool_call("lookup", "{}")]))
    called = await ask(sidecar, tools=TOOLS)
    provider.reset()
    messages = [
        {"role": "user", "content": "All?"},
        {"role": "assistant", "content": None, "tool_calls": [tool_call("lookup", "{}")]},
        {"role": "tool", "tool_call_id": "call_1", "content": "The law is old."},
    ]
    ended = await sidecar.chat(token=token_of(called), headers=AGENTIC, tools=TOOLS, messages=messages)

    assert called.json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "lookup"
    assert (called.headers["crp-agent-phase"], called.headers["crp-agent-tool-calls"]) == ("GENERATE", "1")
    assert (ended.status_code, ended.headers["crp-agent-phase"]) == (200, "COMPLETE")
    assert ended.headers["crp-context-session-id"] == called.headers["crp-context-session-id"]
    assert [("tools" in one.body) for one in provider.received] == [False, True, True, False]


@pytest.mark.finding("F-19")
async def test_after_ten_results_no_tool_is_offered(sidecar, provider):
    """A loop that only calls tools comes to an end (§6.3)."""
    calls = [tool_call("lookup", "{}", f"call_{number}") for number in range(10)]
    results = [{"role": "tool", "tool_call_id": one["id"], "content": "Nothing."} for one in calls]
    messages = [
        {"role": "user", "content": "All?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *results,
    ]
    response = await sidecar.chat(headers=AGENTIC, tools=TOOLS, messages=messages)

    assert response.headers["crp-agent-phase"] == "COMPLETE"
    assert not any("tools" in one.body for one in provider.received)


@pytest.mark.finding("F-19")
async def test_what_the_answer_leaves_open_is_done_in_a_further_step(tmp_path, running, provider):
    """Completeness below 0.85: EVALUATE, CRITIQUE, REFINE, and a second answer that has the gap's result (§6.2, §6.3)."""

    class Gaps(DpeDouble):
        """An analysis that finds the first answer of the whole task incomplete."""

        def asked_whole(self) -> int:
            return sum(bool(one.sub_queries) for one in self.asked)

        async def Analyze(self, request, context):
            score = 0.5 if request.sub_queries and not self.asked_whole() else 1.0
            gap = dpe_pb2.SubQuery(text=MONEY, token="money", covered=score == 1.0)
            self.report = full_report(completeness_score=score, completeness_level="PARTIAL", sub_queries=[gap])
            return await super().Analyze(request, context)

    judge = Gaps()
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=judge) as one:
        response = await ask(one)
        looped = fields_of(await told(one, response.headers["crp-context-session-id"]), "AGENT_LOOP_ITERATION")

    assert (response.status_code, response.headers["crp-agent-phase"]) == (200, "COMPLETE")
    assert [each["phase"] for each in looped][-5:] == ["EVALUATE", "CRITIQUE", "REFINE", "EVALUATE", "INTEGRATE"]
    assert response.headers["crp-context-window"].startswith("6/")
    assert judge.asked_whole() == 2


@pytest.mark.finding("F-19")
async def test_a_plan_of_the_callers_own_is_sealed_and_a_task_of_one_step_needs_no_merging(sidecar, provider):
    """sub_queries are the steps; a single one is the answer itself."""
    own = await ask(sidecar, interlock={"sub_queries": [LAW, MONEY]})
    asked = len(provider.received)
    single = await ask(sidecar, "One?", interlock={"sub_queries": [LAW]})

    assert (own.status_code, asked, len(provider.received)) == (200, 3, 4)
    assert own.headers["crp-context-window"].startswith("4/") and single.headers["crp-context-window"].startswith("2/")
    assert single.headers["crp-agent-phase"] == "COMPLETE"


@pytest.mark.finding("F-19")
async def test_a_plan_without_steps_is_refused(sidecar, provider):
    """A model that plans nothing gets no loop, and the phase says where it ended."""
    provider.by_step["plan"] = "I would rather not."
    response = await ask(sidecar)

    assert (response.status_code, reason_of(response)) == (502, "PLAN_UNUSABLE")
    assert response.headers["crp-agent-phase"] == "PLAN"


@pytest.mark.finding("F-19")
@pytest.mark.req("AGT-1")
async def test_an_agent_that_may_not_loop_is_refused(tmp_path, running, provider):
    """The registry's strategies hold for agentic too."""
    agents = agents_file(tmp_path, {"simple": {"allowed_strategies": ["push"]}})
    async with running_sidecar(tmp_path, upstream=running.base_url, agents_file=agents) as one:
        response = await ask(one, headers={"authorization": "Bearer simple"})

    assert (response.status_code, reason_of(response)) == (403, "STRATEGY_NOT_ALLOWED")
    assert not provider.received


@pytest.mark.finding("F-19")
async def test_agentic_over_grpc(sidecar):
    """The same loop; a text that is there already cannot be asked for."""
    body = {"model": "test-model", "messages": [{"role": "user", "content": "All?"}]}
    context = sidecar_pb2.CallContext(strategy="agentic")
    request = sidecar_pb2.DispatchRequest(chat_request=json.dumps(body).encode(), context=context)
    call = sidecar.stub.Dispatch(request)
    answer, trailing = await call, dict(await call.trailing_metadata())
    with pytest.raises(Exception, match="asked for"):
        await sidecar.stub.Check(sidecar_pb2.CheckRequest(text="A text.", context=context))

    assert trailing["crp-agent-phase"] == answer.outcome.headers["CRP-Agent-Phase"] == "COMPLETE"
    assert answer.outcome.headers["CRP-Context-Strategy"] == "agentic"
