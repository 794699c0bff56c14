"""Context of earlier windows through the served sidecar: transfers, summaries, deferred facts, facts that were seen."""

from __future__ import annotations

import pytest

from interlock.domain.errors import unavailable
from tests.support.sidecar import answering
from tests.support.sidecar.remedies import fields_of, told
from tests.support.sidecar.sidecar import DpeDouble, reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import Merger, budget, dag, fan_in, fan_out, onward, window_of

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.sidecar

LONG = " ".join(f"Sentence {number} says that revenue was {number} million." for number in range(60))
FACTS = [
    {"id": "high", "content": "The audit of May found no error at all in the books.", "importance": 0.9},
    {"id": "low", "content": "The office has eleven rooms and one of them is blue.", "importance": 0.1},
]


async def second(sidecar, first, interlock, question: str = "And then?"):
    return await sidecar.chat(question, token=token_of(first), headers=onward(first), interlock=interlock)


async def edge_of(sidecar, response):
    (edge,) = (await dag(sidecar, response))[window_of(response)].edges
    return edge


@pytest.mark.req("DAG-5")
async def test_nothing_is_transferred_unless_it_is_asked_for(sidecar, provider):
    """A client that sends its own history gets nothing twice; the edge says so."""
    first = await sidecar.chat("First?")
    then = await second(sidecar, first, {})

    assert len(provider.request("And then?")["messages"]) == 1
    assert (await edge_of(sidecar, then)).transfer_type == 0


@pytest.mark.req("DAG-5")
async def test_a_short_answer_comes_whole(sidecar, provider):
    """FULL_CONTEXT in the prompt, in the evidence and on the edge."""
    first = await sidecar.chat("First?")
    then = await second(sidecar, first, {"transfer": "auto"})

    assert "This answers it. First?" in provider.context("And then?")
    assert [(f.id, f.content) for f in sidecar.dpe.of(then).facts] == [(window_of(first), "This answers it. First?")]
    assert (await edge_of(sidecar, then)).transfer_type == 1


@pytest.mark.req("DAG-7", "BUD-5")
async def test_a_long_answer_comes_as_a_checked_summary_that_costs_no_budget(sidecar, provider, dpe):
    """One more provider call, counted in the usage and the trail, never charged (SPEC-004 §12.4)."""
    provider.by_question = {"First?": LONG}
    provider.by_step["summarise"] = "Revenue rose. This is CRITICAL."
    first = await sidecar.chat("First?")
    then = await second(sidecar, first, {"transfer": "auto", "token_budget": 400})
    edge = await edge_of(sidecar, then)

    assert dpe.summaries == [(LONG, "Revenue rose. This is CRITICAL.")]
    assert "Revenue rose. This is CRITICAL." in provider.context("And then?")
    assert "Sentence 7 says" not in provider.context("And then?")
    assert (edge.transfer_type, len(edge.summary_hash)) == (2, 71)
    assert await budget(sidecar, then) == 1_000_000
    assert then.json()["usage"]["total_tokens"] == 30
    events = await told(sidecar, then.headers["crp-context-session-id"])
    (event,) = fields_of(events, "SUMMARISATION")
    assert (event["source_id"], event["used"], event["summary_hash"]) == (window_of(first), True, edge.summary_hash)
    assert [e.get("step") for e in fields_of(events, "DISPATCH_STARTED")] == [None, "summarise", None]


@pytest.mark.req("DAG-7")
@pytest.mark.parametrize("fault", [0.79, unavailable("DPE_UNAVAILABLE", "x"), "unimplemented"])
async def test_a_summary_that_is_not_known_to_be_faithful_reaches_nobody(tmp_path, running, provider, fault):
    """Distorted, unchecked, or a dpe too old to check: the conclusion in its own words comes instead (§12.3)."""
    dpe = DpeDouble() if fault == "unimplemented" else Merger(fidelity=fault)
    provider.by_question = {"First?": LONG}
    provider.by_step["summarise"] = "Revenue fell to nothing."
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=dpe) as sidecar:
        first = await sidecar.chat("First?")
        then = await second(sidecar, first, {"transfer": "auto", "token_budget": 400})
        edge, events = await edge_of(sidecar, then), await told(sidecar, then.headers["crp-context-session-id"])

    assert then.status_code == 200, then.text
    assert "Revenue fell to nothing." not in provider.context("And then?")
    assert "Sentence 59 says that revenue was 59 million." in provider.context("And then?")
    assert (edge.transfer_type, edge.summary_hash) == (4, "")
    assert [event["used"] for event in fields_of(events, "SUMMARISATION")] == [False]


@pytest.mark.req("DAG-7")
async def test_a_check_that_vouches_for_anything_would_let_a_poisoned_summary_in(sidecar, provider, dpe):
    """What the fidelity check keeps out: with a dpe that says yes to all, the same words reach the next prompt (§17.5)."""
    dpe.fidelity = 1.0
    provider.by_question = {"First?": LONG}
    provider.by_step["summarise"] = "Revenue fell to nothing."
    first = await sidecar.chat("First?")
    await second(sidecar, first, {"transfer": "auto", "token_budget": 400})

    assert "Revenue fell to nothing." in provider.context("And then?")


@pytest.mark.req("DAG-7")
async def test_a_provider_that_gives_no_summary_ends_no_call(sidecar, provider):
    """The answer does without it."""
    provider.by_question = {"First?": LONG}
    provider.by_step["summarise"] = 500
    first = await sidecar.chat("First?")
    then = await second(sidecar, first, {"transfer": "summary"})

    assert (then.status_code, (await edge_of(sidecar, then)).transfer_type) == (200, 4)


@pytest.mark.finding("F-17")
@pytest.mark.req("DAG-5")
async def test_a_whole_answer_that_was_demanded_and_has_no_room_is_refused(sidecar, provider):
    """By name, before the provider is asked; the same token goes on."""
    provider.by_question = {"First?": LONG}
    first = await sidecar.chat("First?")
    provider.received.clear()
    refused = await second(sidecar, first, {"transfer": "full", "token_budget": 100})

    assert (refused.status_code, reason_of(refused)) == (413, "TRANSFER_TOO_LARGE")
    assert provider.received == []
    assert (await second(sidecar, first, {"transfer": "result", "token_budget": 100})).status_code == 200


@pytest.mark.req("DAG-6")
async def test_facts_that_do_not_fit_wait_for_the_next_window(sidecar, provider):
    """Sealed with the window, encrypted, read back and packed then; those that were packed are not packed again."""
    first = await sidecar.chat("First?", interlock={"facts": FACTS, "token_budget": 22})
    then = await second(sidecar, first, {"facts": FACTS, "token_budget": 400, "transfer": "facts"})
    third = await second(sidecar, then, {"facts": FACTS, "token_budget": 400, "transfer": "facts"}, "Third?")

    assert [one.id for one in sidecar.dpe.of(first).facts] == ["high"]
    assert first.headers["crp-context-facts-used"] == "1/2"
    assert FACTS[0]["content"] in provider.context("First?")
    assert FACTS[1]["content"] not in provider.context("First?")
    assert [one.id for one in sidecar.dpe.of(then).facts] == ["low"]
    assert FACTS[1]["content"] in provider.context("And then?")
    assert FACTS[0]["content"] not in provider.context("And then?")
    assert [one.id for one in sidecar.dpe.of(third).facts] == []
    assert (await edge_of(sidecar, then)).transfer_type == 3


@pytest.mark.req("DAG-6")
async def test_a_window_that_was_halted_used_up_no_facts(sidecar, provider):
    """What nobody was told is packed again when it is asked again."""
    provider.by_question = {"First?": "It is CRITICAL."}
    policy = {"crp-safety-policy": "halt-on CRITICAL"}
    root = await sidecar.chat("Root?", headers=policy)
    halted = await second(sidecar, root, {"facts": FACTS, "token_budget": 400}, "First?")
    again = await sidecar.chat(
        "Again?", token=halted.headers["crp-set-session"].split(";")[0].removeprefix("token="),
        interlock={"facts": FACTS, "token_budget": 400},
    )  # fmt: skip

    assert halted.status_code == 451
    assert [one.id for one in sidecar.dpe.of(again).facts] == ["high", "low"]


@pytest.mark.req("DAG-5", "DAG-7")
async def test_a_fan_in_summarises_long_answers_side_by_side(tmp_path, running, provider, dpe):
    """Each parent has its share of the room; the summaries are made at the same time."""
    provider.by_question = {"A?": LONG, "B?": LONG + " It ends.", "C?": "Short."}
    provider.by_step["summarise"] = "Revenue rose from 0 to 59 million."
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=dpe, max_provider_calls=3) as sidecar:
        root = await sidecar.chat("All?")
        children = await fan_out(sidecar, root, "A?", "B?", "C?")
        provider.together, provider.expected = 0, 2
        merged = await fan_in(sidecar, children, interlock={"token_budget": 900})
        edges = (await dag(sidecar, root))[window_of(merged)].edges

    assert {e.source_id: e.transfer_type for e in edges} == {
        window_of(one): kind for one, kind in zip(children, [2, 2, 1], strict=True)
    }
    assert provider.together == 2
    assert sorted(len(one.text) for one in dpe.of(merged).merged) == sorted([len(LONG), len(LONG) + 9, 6])


@pytest.mark.req("ATT-10", "DAG-7")
async def test_summaries_count_among_the_provider_calls(sidecar, provider):
    """By default two: one summary and the answer. What is not summarised comes by its conclusion, and that is on record."""
    provider.by_question = {"A?": LONG, "B?": LONG + " It ends."}
    provider.by_step["summarise"] = "Revenue rose from 0 to 59 million."
    root = await sidecar.chat("All?")
    children = await fan_out(sidecar, root, "A?", "B?")
    asked = len(provider.received)
    merged = await fan_in(sidecar, children, interlock={"token_budget": 900})
    edges = (await dag(sidecar, root))[window_of(merged)].edges
    told_of = fields_of(await told(sidecar, root.headers["crp-context-session-id"]), "SUMMARISATION")

    assert merged.status_code == 200
    assert len(provider.received) - asked == 2
    assert sorted(edge.transfer_type for edge in edges) == [2, 4]
    assert [one.get("fault") for one in told_of if not one["used"]] == ["PROVIDER_CALLS_SPENT"]


async def test_an_answer_whose_text_is_gone_cannot_be_merged(sidecar):
    """Refused by name, and the window is not consumed."""
    from interlock.api.audit.v1 import audit_pb2

    root = await sidecar.chat("All?")
    a, b = await fan_out(sidecar, root, "A?", "B?")
    session_id = root.headers["crp-context-session-id"]
    await sidecar.mesh.audit.DropContent(audit_pb2.DropContentRequest(session_id=session_id, window_id=window_of(a)))
    refused = await fan_in(sidecar, [a, b])

    assert (refused.status_code, reason_of(refused)) == (409, "RESULT_NOT_AVAILABLE")
    assert refused.json()["metadata"]["window_id"] == window_of(a)
