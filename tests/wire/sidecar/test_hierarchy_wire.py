"""The hierarchical strategy through the served sidecar: a plan, its parts, one answer (SPEC-008 §7)."""

from __future__ import annotations

import pytest

from tests.support.sidecar import answering
from tests.support.sidecar.remedies import fields_of, told
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import PLAN, Merger, budget, dag, onward
from tests.support.sidecar.world import agents_file

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.sidecar

HIERARCHICAL = {"crp-context-strategy": "hierarchical"}
LAW, MONEY = "What of law?", "What of money?"


async def ask(sidecar, question: str = "All?", **more):
    return await sidecar.chat(question, headers={**HIERARCHICAL, **more.pop("headers", {})}, **more)


def said(response) -> str:
    return response.json()["choices"][0]["message"]["content"]


async def shape(sidecar, response) -> list[tuple[int, str, str]]:
    return sorted((n.window_number, n.pattern, n.status) for n in (await dag(sidecar, response)).values())


@pytest.mark.req("DAG-3", "HDR-4")
async def test_one_call_is_planned_answered_side_by_side_and_put_together(sidecar, provider):
    """SPEC-008 §7.2 to §7.4: the synthesis is window 3 of 5, made from both parts."""
    provider.expected = 2
    response = await ask(sidecar)
    asked = sidecar.dpe.of(response)

    assert (response.status_code, said(response)) == (200, "This answers it. All?")
    assert response.headers["crp-context-strategy"] == "hierarchical"
    assert response.headers["crp-context-window"] == "3/200"
    assert await shape(sidecar, response) == [
        (1, "LINEAR", "COMPLETED"), (2, "FAN_OUT", "COMPLETED"), (2, "FAN_OUT", "COMPLETED"), (3, "FAN_IN", "COMPLETED"),
    ]  # fmt: skip
    assert {(one.sub_query, one.text) for one in asked.merged} == {
        (LAW, f"This answers it. {LAW}"), (MONEY, f"This answers it. {MONEY}")
    }  # fmt: skip
    assert list(asked.sub_queries) == [LAW, MONEY]
    assert provider.together == 2
    assert response.headers["crp-provenance-chain-integrity"] == "VALID"


@pytest.mark.req("BUD-6", "BUD-5")
async def test_every_window_of_it_is_charged_and_sealed(sidecar, provider):
    """The plan, each part from the plan's budget, the synthesis from the least of the parts; usage is the sum."""
    provider.by_question = {LAW: "It is HIGH.", MONEY: "It is MEDIUM."}
    provider.by_step["generate"] = "All is MEDIUM."
    response = await ask(sidecar)
    events = await told(sidecar, response.headers["crp-context-session-id"])

    assert response.headers["crp-agent-safety-budget"] == "0.80"
    assert await budget(sidecar, response) == 800_000
    assert sum(kind == "WINDOW_SEALED" for kind, _ in events) == 4
    assert len(fields_of(events, "FAN_OUT_CREATED")) == 2
    assert fields_of(events, "FAN_IN_MERGED")[0]["merged_budget"] == "0.85"
    assert response.json()["usage"]["total_tokens"] == 4 * 15


async def test_the_parts_are_asked_with_the_callers_context_and_nothing_else(sidecar, provider):
    """Each has the system message and its sub-query; the plan is asked for a list, without the answer's own form."""
    messages = [{"role": "system", "content": "Revenue was 4 million."}, {"role": "user", "content": "All?"}]
    tools = [{"type": "function", "function": {"name": "look"}}]
    response = await sidecar.client.post(
        "/v1/chat/completions", headers=HIERARCHICAL,
        json={"model": "m", "messages": messages, "tools": tools, "response_format": {"type": "json_object"}},
    )  # fmt: skip
    plan, part = provider.bodies("plan")[0], provider.request(LAW)

    assert response.status_code == 200
    assert part["messages"] == [messages[0], {"role": "user", "content": LAW}]
    assert [m["content"] for m in plan["messages"][1:]] == ["Revenue was 4 million.", "All?"]
    assert not {"tools", "response_format"} & (plan.keys() | part.keys())
    assert provider.received[-1].body["response_format"] == {"type": "json_object"}


async def test_a_part_that_fails_ends_the_call_by_name(sidecar, provider):
    """require-all: the reason of the part and its number; the others were charged, and the session can go on."""
    provider.by_question = {MONEY: 500}
    response = await ask(sidecar)

    assert (response.status_code, reason_of(response)) == (502, "UPSTREAM_ERROR")
    assert response.json()["metadata"]["sub_query"] == "2"
    assert await shape(sidecar, response) == [
        (1, "LINEAR", "COMPLETED"), (2, "FAN_OUT", "COMPLETED"), (2, "FAN_OUT", "FAILED")
    ]  # fmt: skip
    assert (await sidecar.chat("And then?", token=token_of(response))).status_code == 200


@pytest.mark.req("DAG-9")
async def test_under_partial_a_part_that_failed_is_left_out(sidecar, provider):
    """The answer is made of the others, and the trail names what is missing."""
    provider.by_step["plan"] = PLAN + "\n3. What of time?"
    provider.by_question = {MONEY: 500}
    response = await ask(sidecar, headers={"crp-agent-fan-in-policy": "partial"})
    events = await told(sidecar, response.headers["crp-context-session-id"])

    assert response.status_code == 200, response.text
    assert {one.sub_query for one in sidecar.dpe.of(response).merged} == {LAW, "What of time?"}
    assert len(fields_of(events, "FAN_IN_MERGED")[0]["left_out_ids"]) == 1


async def test_one_part_that_is_left_is_gone_on_from(sidecar, provider):
    """There is nothing to merge it with; its whole answer comes along."""
    provider.by_question = {MONEY: 500}
    response = await ask(sidecar, headers={"crp-agent-fan-in-policy": "partial"})

    assert response.status_code == 200, response.text
    assert (await shape(sidecar, response))[-1] == (3, "LINEAR", "COMPLETED")
    assert f"This answers it. {LAW}" in provider.received[-1].body["messages"][0]["content"]


async def test_a_halted_part_ends_the_call_and_says_which(sidecar, provider):
    """Its 451 is the call's; what it cost is spent."""
    provider.by_question = {LAW: "It is CRITICAL."}
    response = await ask(sidecar, headers={"crp-safety-policy": "halt-on CRITICAL"})

    assert (response.status_code, reason_of(response)) == (451, "SAFETY_HALT")
    assert response.json()["metadata"]["sub_query"] == "1"
    assert response.headers["crp-safety-hallucination-risk"] == "CRITICAL"
    assert response.json()["audit_trail_uri"] == response.headers["crp-compliance-audit-trail-uri"]
    assert await budget(sidecar, response) == 650_000


@pytest.mark.parametrize("plan", ["I would rather not.", "Revenue was 3. That is all."])
async def test_a_plan_that_names_nothing_is_unusable(sidecar, provider, plan):
    """Refused by name after one window; nothing fans out."""
    provider.by_step["plan"] = plan
    response = await ask(sidecar)

    assert (response.status_code, reason_of(response)) == (502, "PLAN_UNUSABLE")
    assert await shape(sidecar, response) == [(1, "LINEAR", "COMPLETED")]


@pytest.mark.req("AGT-3")
async def test_a_plan_is_cut_to_what_may_fan_out(tmp_path, running, provider):
    """The model is told the limit, and held to it."""
    provider.by_step["plan"] = "\n".join(f"{n}. Part {n}?" for n in range(1, 8))
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=Merger(), max_fan_out=3) as sidecar:
        response = await ask(sidecar)
        found = await shape(sidecar, response)

    assert response.status_code == 200, response.text
    assert "at most 3" in provider.bodies("plan")[0]["messages"][0]["content"]
    assert sum(pattern == "FAN_OUT" for _, pattern, _ in found) == 3


@pytest.mark.req("AGT-3", "DAG-10")
async def test_a_session_without_three_windows_left_refuses_before_anything_is_dispatched(
    tmp_path, running, provider, dpe
):
    """By the limit and the number that it would come to; the window is not used up."""
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=dpe, max_windows=5) as sidecar:
        one = await sidecar.chat("1?")
        two = await sidecar.chat("2?", token=token_of(one), headers=onward(one))
        three = await sidecar.chat("3?", token=token_of(two), headers=onward(two))
        provider.received.clear()
        refused = await ask(sidecar, token=token_of(three))

        assert (refused.status_code, reason_of(refused)) == (403, "MAX_WINDOWS_EXCEEDED")
        told_limit = {name: refused.json()["metadata"][name] for name in ("limit", "attempted")}
        assert (told_limit, provider.received) == ({"limit": "5", "attempted": "6"}, [])
        assert (await sidecar.chat("4?", token=token_of(three), headers=onward(three))).status_code == 200


async def test_a_task_that_the_caller_took_apart_is_not_planned_again(sidecar, provider):
    """Its sub-queries are sealed as the plan, without a call to the model."""
    response = await ask(sidecar, interlock={"sub_queries": ["One?", "Two?", "Three?"]})
    windows = await dag(sidecar, response)

    assert response.status_code == 200, response.text
    assert provider.bodies("plan") == []
    assert sum(n.pattern == "FAN_OUT" for n in windows.values()) == 3
    assert list(sidecar.dpe.of(response).sub_queries) == ["One?", "Two?", "Three?"]


async def test_a_plan_that_is_halted_ends_the_call_whoever_made_it(sidecar, provider):
    """The caller's own sub-queries are governed as the model's are: nothing fans out from what may not be released."""
    policy = {"crp-safety-policy": "halt-on CRITICAL"}
    halted = await ask(sidecar, headers=policy, interlock={"sub_queries": ["Is it CRITICAL?", "Two?"]})

    assert (halted.status_code, provider.received) == (451, [])


@pytest.mark.req("BRK-2")
async def test_under_a_half_open_breaker_every_window_of_it_is_verified(sidecar, provider):
    """Plan, parts and synthesis: four answers, four reviews."""
    provider.by_question = {"First?": "It is CRITICAL.", "More?": "It is HIGH."}
    first = await sidecar.chat("First?")
    after = await sidecar.chat("More?", token=token_of(first), headers=onward(first))
    provider.received.clear()
    response = await ask(sidecar, token=token_of(after))

    assert response.status_code == 200, response.text
    assert len(provider.bodies("verify")) == 4
    assert (response.headers["crp-context-strategy"], response.headers["crp-agent-revision-round"]) == (
        "hierarchical", "1/2",
    )  # fmt: skip


@pytest.mark.req("AGT-1", "AGT-2")
async def test_an_agent_needs_every_part_of_what_it_asks_for(tmp_path, running, provider):
    """Demanded it is refused before anything is dispatched; as a wish it gives way to what the agent may use."""
    kinds = {"plain": ["push", "reflexive", "hierarchical"], "whole": ["push", "hierarchical", "fan-out", "fan-in"]}
    registry = agents_file(tmp_path, {name: {"allowed_strategies": allowed} for name, allowed in kinds.items()})
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=Merger(), agents_file=registry) as sidecar:
        refused = await ask(sidecar, headers={"authorization": "Bearer plain"})
        calls = len(provider.received)
        wished = await sidecar.chat(
            "All?", headers={"authorization": "Bearer plain", "crp-accept-strategy": "hierarchical, reflexive"}
        )
        allowed = await ask(sidecar, headers={"authorization": "Bearer whole"})

    assert (refused.status_code, reason_of(refused), calls) == (403, "STRATEGY_NOT_ALLOWED", 0)
    assert refused.json()["metadata"]["attempted"] == "fan-out"
    assert (wished.status_code, wished.headers["crp-context-strategy"]) == (200, "reflexive")
    assert wished.headers["crp-context-window"] == "1/200"
    assert (allowed.status_code, allowed.headers["crp-context-window"]) == (200, "3/200")
