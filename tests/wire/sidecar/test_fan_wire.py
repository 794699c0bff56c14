"""Fan-out and fan-in through the served sidecar: siblings, merging, what failed, what is refused (SPEC-004 §6, §7, §16)."""

from __future__ import annotations

import asyncio

import pytest

from interlock.domain.errors import unavailable
from tests.support.sidecar import answering
from tests.support.sidecar.remedies import fields_of, told
from tests.support.sidecar.sidecar import Hooked, reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import (
    Merger,
    budget,
    dag,
    fan_in,
    fan_out,
    onward,
    window_of,
)

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.sidecar


def lineage(response) -> str:
    return response.headers["crp-provenance-window-lineage"]


def spent(response) -> str:
    return response.headers["crp-agent-safety-budget"]


@pytest.mark.req("DAG-3", "BUD-6")
async def test_children_of_a_fan_out_are_siblings_and_begin_with_the_whole_budget(sidecar, provider):
    """One token, three windows at once: the same parent and number, and each with the budget that the parent had left."""
    provider.by_question = {"All?": "MEDIUM", "A?": "LOW", "B?": "HIGH", "C?": "MEDIUM"}
    root = await sidecar.chat("All?")
    children = await fan_out(sidecar, root, "A?", "B?", "C?")
    windows = await dag(sidecar, root)
    nodes = [windows[window_of(one)] for one in children]

    assert [one.status_code for one in children] == [200, 200, 200]
    assert {(n.window_number, n.pattern, tuple(n.parent_ids)) for n in nodes} == {(2, "FAN_OUT", (window_of(root),))}
    assert [n.safety_budget_micros for n in nodes] == [950_000, 800_000, 900_000]
    assert await budget(sidecar, root) == 800_000
    assert {(one.headers["crp-context-strategy"], n.strategy) for one, n in zip(children, nodes, strict=True)} == {
        ("fan-out", "fan-out")
    }


@pytest.mark.req("DAG-3", "AUD-1")
async def test_every_child_is_sealed_with_its_place(sidecar):
    """FAN_OUT_CREATED in each child's record, chained from the common parent; the whole session verifies."""
    root = await sidecar.chat("All?")
    children = await fan_out(sidecar, root, "A?", "B?")
    events = await told(sidecar, root.headers["crp-context-session-id"])

    created = {fields["child_ids"][0]: fields for fields in fields_of(events, "FAN_OUT_CREATED")}
    assert created == {
        window_of(one): {"parent_window_id": window_of(root), "child_count": 1, "child_ids": [window_of(one)]}
        for one in children
    }
    assert {one.headers["crp-provenance-chain-integrity"] for one in children} == {"VALID"}


@pytest.mark.req("DAG-3", "DAG-11", "BUD-6", "PRV-1")
async def test_a_fan_in_begins_with_the_least_of_its_parents_and_chains_from_all_of_them(sidecar, provider):
    """SPEC-004 §7 and the session of Appendix A: a deeper branch, the minimum, sorted HMACs, brackets in the lineage."""
    provider.by_question = {"A?": "MEDIUM", "A more?": "HIGH", "B?": "MEDIUM", "C?": "MEDIUM", "All in all?": "LOW"}
    root = await sidecar.chat("All?")
    a, b, c = await fan_out(sidecar, root, "A?", "B?", "C?")
    deeper = await sidecar.chat("A more?", token=token_of(a), headers=onward(a))
    merged = await fan_in(sidecar, [deeper, b, c])
    windows = await dag(sidecar, root)
    node = windows[window_of(merged)]

    assert merged.status_code == 200, merged.text
    assert (node.pattern, node.window_number, node.safety_budget_micros) == ("FAN_IN", 4, 800_000)
    assert sorted(node.parent_ids) == sorted(window_of(one) for one in (deeper, b, c))
    assert (spent(merged), merged.headers["crp-context-strategy"]) == ("0.80", "fan-in")
    assert lineage(merged).startswith(f"{window_of(root)} -> [")
    assert lineage(merged).endswith(f"] -> {window_of(merged)}")
    events = await told(sidecar, root.headers["crp-context-session-id"])
    (event,) = fields_of(events, "FAN_IN_MERGED")
    assert (sorted(event["parent_ids"]), event["merged_budget"]) == (sorted(node.parent_ids), "0.80")
    assert merged.headers["crp-provenance-chain-integrity"] == "VALID"


@pytest.mark.req("DPE-19", "DAG-3")
async def test_the_synthesis_is_made_from_what_its_parents_said(sidecar, provider):
    """Their answers stand quoted in its prompt, are its facts, and are analysed as merged, not as windows before it."""
    root = await sidecar.chat("All?")
    a, b = await fan_out(sidecar, root, "A?", "B?")
    merged = await fan_in(sidecar, [a, b], interlock={"sub_queries": ["A?", "B?"]})
    asked, context = sidecar.dpe.of(merged), provider.context("All in all?")

    assert {one.source_id: one.text for one in asked.merged} == {
        window_of(a): "This answers it. A?", window_of(b): "This answers it. B?"
    }  # fmt: skip
    assert {fact.id: fact.content for fact in asked.facts} == {one.source_id: one.text for one in asked.merged}
    assert list(asked.sub_queries) == ["A?", "B?"]
    assert [one.window_id for one in asked.prior] == [window_of(root)]
    assert "This answers it. A?" in context
    assert "This answers it. B?" in context
    assert "Where two of them contradict each other, say so." in context


@pytest.mark.req("DAG-1", "DAG-5")
async def test_every_merged_window_has_its_edge(sidecar):
    """What came across, of what type and size, is stored with the synthesis."""
    root = await sidecar.chat("All?")
    a, b = await fan_out(sidecar, root, "A?", "B?")
    merged = await fan_in(sidecar, [a, b])
    node = (await dag(sidecar, root))[window_of(merged)]

    assert {(e.source_id, e.target_id, e.transfer_type, e.transferred_tokens) for e in node.edges} == {
        (window_of(one), window_of(merged), 1, 7) for one in (a, b)
    }


@pytest.mark.req("DAG-9")
async def test_a_child_that_failed_is_named_and_left_out_only_on_demand(sidecar, provider):
    """§16.3: a FAILED node; require-all refuses and names it, partial goes on without it and says so."""
    provider.by_question = {"B?": 500}
    root = await sidecar.chat("All?")
    a, b, c = await fan_out(sidecar, root, "A?", "B?", "C?")
    windows = await dag(sidecar, root)
    failed = [one for one in windows.values() if one.status == "FAILED"]
    refused = await fan_in(sidecar, [a, c])
    merged = await fan_in(sidecar, [a, c], headers={"crp-agent-fan-in-policy": "partial"})

    assert (b.status_code, [(n.pattern, n.hmac, n.charge_micros) for n in failed]) == (502, [("FAN_OUT", "", 0)])
    assert (refused.status_code, reason_of(refused)) == (409, "FAN_IN_INCOMPLETE")
    assert failed[0].window_id in str(refused.json()["metadata"])
    assert merged.status_code == 200, merged.text
    events = await told(sidecar, root.headers["crp-context-session-id"])
    assert fields_of(events, "FAN_IN_MERGED")[0]["left_out_ids"] == [failed[0].window_id]
    assert merged.headers["crp-provenance-chain-integrity"] == "VALID"


@pytest.mark.req("DAG-9")
async def test_the_one_child_that_is_left_is_merged_alone_on_demand(sidecar, provider):
    """A partial fan-in of a single window is a fan-in still; with require-all one pointer is too few."""
    provider.by_question = {"B?": 500}
    root = await sidecar.chat("All?")
    a, _ = await fan_out(sidecar, root, "A?", "B?")
    refused = await fan_in(sidecar, [a])
    merged = await fan_in(sidecar, [a], headers={"crp-agent-fan-in-policy": "partial"})

    assert refused.status_code in {400, 409}, refused.text
    assert merged.status_code == 200, merged.text


@pytest.mark.req("DAG-9")
async def test_a_refusal_before_the_dispatch_leaves_no_failed_window(sidecar):
    """Bad input is not a child that failed: nothing is left behind, and the same token fans out again."""
    root = await sidecar.chat("All?")
    named = {"sub_agent_results": [{"session_id": "crp_sess_" + "0" * 32, "hmac": "sha256:" + "0" * 64}]}
    refused = (await fan_out(sidecar, root, "A?", interlock=named))[0]
    again = (await fan_out(sidecar, root, "A?"))[0]

    assert (refused.status_code, reason_of(refused)) == (403, "RESULT_NOT_LINKED")
    assert again.status_code == 200
    assert {one.status for one in (await dag(sidecar, root)).values()} == {"COMPLETED"}


@pytest.mark.req("DAG-4", "DAG-3")
async def test_windows_that_cannot_be_merged_are_refused_by_name(sidecar, provider):
    """Foreign, unknown, twice, an ancestor of another, one alone: each has its reason, and the parents can still be merged."""
    root, other = await sidecar.chat("All?"), await sidecar.chat("Other?")
    a, b = await fan_out(sidecar, root, "A?", "B?")
    foreign = (await fan_out(sidecar, other, "X?"))[0]
    unknown = Pointing("crp_cont_" + "0" * 32, a)
    deeper = await sidecar.chat("A more?", token=token_of(a), headers=onward(a))
    asked = {
        "foreign": [foreign, a], "unknown": [unknown, a], "twice": [a, a], "ancestor": [a, deeper], "alone": [a],
    }  # fmt: skip
    provider.received.clear()
    found = {name: await fan_in(sidecar, parents) for name, parents in asked.items()}

    reasons = {name: (one.status_code, reason_of(one)) for name, one in found.items()}
    assert reasons["foreign"] == reasons["unknown"] == (404, "CONTINUATION_NOT_FOUND")
    assert {name: status for name, (status, _) in reasons.items() if status not in {400, 404, 409}} == {}
    assert len({reason for _, reason in reasons.values()}) >= 4
    assert provider.received == []
    assert (await fan_in(sidecar, [deeper, b])).status_code == 200


class Pointing:
    """A response whose continuation is another's invention."""

    def __init__(self, continuation_id: str, response) -> None:
        self.headers = {**response.headers, "crp-context-continuation-id": continuation_id}


@pytest.mark.req("DAG-9")
async def test_a_halted_window_is_not_merged(sidecar, provider):
    """Nobody was given its answer: require-all refuses and names it, partial merges the others."""
    provider.by_question = {"B?": "It is CRITICAL."}
    root = await sidecar.chat("All?", headers={"crp-safety-policy": "halt-on CRITICAL"})
    a, b, c = await fan_out(sidecar, root, "A?", "B?", "C?")
    refused = await fan_in(sidecar, [a, b, c])
    merged = await fan_in(sidecar, [a, b, c], headers={"crp-agent-fan-in-policy": "partial"})

    assert (refused.status_code, reason_of(refused)) == (409, "FAN_IN_INCOMPLETE")
    assert window_of(b) in str(refused.json()["metadata"])
    assert merged.status_code == 200, merged.text
    assert {one.source_id for one in sidecar.dpe.of(merged).merged} == {window_of(a), window_of(c)}


@pytest.mark.req("DAG-9")
async def test_an_unfinished_child_cannot_be_left_out(sidecar, provider):
    """A synthesis that does not wait is refused while a sibling is in flight."""
    gate = asyncio.Event()

    async def held():
        await gate.wait()

    root = await sidecar.chat("All?")
    a, c = await fan_out(sidecar, root, "A?", "C?")
    sidecar.dpe.gate = held
    flying = asyncio.create_task(sidecar.chat("B?", token=token_of(root), headers=onward(root, "fan-out")))
    while not [one for one in sidecar.dpe.asked if "B?" in one.query]:
        await asyncio.sleep(0.01)
    sidecar.dpe.gate = None
    refused = await fan_in(sidecar, [a, c])
    gate.set()
    b = await flying

    assert (refused.status_code, reason_of(refused)) == (409, "FAN_IN_INCOMPLETE")
    assert (await fan_in(sidecar, [a, b, c])).status_code == 200


@pytest.mark.req("BRK-2", "BUD-6")
async def test_a_half_open_breaker_makes_every_window_reflexive(sidecar, provider):
    """Fan-out and fan-in keep their name; each answer is verified before it counts."""
    provider.by_question = {"All?": "CRITICAL", "Once more?": "HIGH"}
    root = await sidecar.chat("All?")
    after = await sidecar.chat("Once more?", token=token_of(root), headers=onward(root))
    assert spent(after) == "0.50"
    provider.received.clear()
    a, b = await fan_out(sidecar, after, "A?", "B?")
    merged = await fan_in(sidecar, [a, b])

    assert len(provider.bodies("verify")) == 3
    assert {one.headers["crp-agent-revision-round"] for one in (a, b, merged)} == {"1/2"}
    assert [one.headers["crp-context-strategy"] for one in (a, b, merged)] == ["fan-out", "fan-out", "fan-in"]
    events = await told(sidecar, root.headers["crp-context-session-id"])
    assert [e["trigger_risk_level"] for e in fields_of(events, "STRATEGY_UPGRADE")] == ["HALF_OPEN"] * 3


@pytest.mark.req("BUD-4", "BUD-8")
async def test_parts_that_were_lost_when_a_window_was_full_are_charged_all_the_same(tmp_path, running, provider):
    """Sealed and never settled, with every place taken: who asks on has them settled, one by one, and no charge is lost."""
    provider.in_turn(["All?", "MEDIUM", "MEDIUM", "LOW"])
    away = True

    async def commit(request) -> None:
        if away and request.pattern == "FAN_OUT":
            raise unavailable("SESSION_STORE_UNAVAILABLE", "the store is away")

    def broken(services):
        return {**services, "session": Hooked(services["session"], CommitWindow=commit)}

    short = {"max_fan_out": 2, "request_timeout_s": 1, "rpc_timeout_s": 0.5}
    async with running_sidecar(tmp_path, upstream=running.base_url, wrap=broken, **short) as sidecar:
        root = await sidecar.chat("All?")
        lost = await fan_out(sidecar, root, "1?", "2?")
        away, settled, reasons = False, set(), set()
        async with asyncio.timeout(30):
            while len(settled) < 2:
                [further] = await fan_out(sidecar, root, "3?")
                reasons.add(reason_of(further))
                if reason_of(further) == "WINDOW_ALREADY_SETTLED":
                    settled.add(further.json()["metadata"]["window_id"])
                await asyncio.sleep(0.05)
        [full] = await fan_out(sidecar, root, "3?")
        nodes, left = await dag(sidecar, root), await budget(sidecar, root)

    assert {one.status_code for one in lost} <= {503, 504}
    assert reasons == {"MAX_FAN_OUT_EXCEEDED", "WINDOW_ALREADY_SETTLED"}
    assert settled == {one.window_id for one in nodes.values() if one.pattern == "FAN_OUT"}
    assert (left, reason_of(full)) == (950_000, "MAX_FAN_OUT_EXCEEDED")  # each is on a path of its own
    assert "left_open" not in full.text


@pytest.mark.req("BUD-4", "DAG-9")
async def test_parts_that_ended_unsealed_when_a_window_was_full_are_on_record_as_failed(tmp_path, running, provider):
    """Their own calls could not say so any more: who asks on does it."""
    away = True

    async def fail(_request) -> None:
        if away:
            raise unavailable("SESSION_STORE_UNAVAILABLE", "the store is away")

    def broken(services):
        return {**services, "session": Hooked(services["session"], FailWindow=fail, AbandonWindow=fail)}

    short = {"max_fan_out": 2, "request_timeout_s": 1, "rpc_timeout_s": 0.5}
    async with running_sidecar(tmp_path, upstream=running.base_url, wrap=broken, **short) as sidecar:
        root = await sidecar.chat("All?")
        provider.fails(500)
        lost = await fan_out(sidecar, root, "1?", "2?")
        away, nodes = False, {}
        async with asyncio.timeout(30):
            while len(nodes) < 3:
                [further] = await fan_out(sidecar, root, "3?")
                assert reason_of(further) == "MAX_FAN_OUT_EXCEEDED"
                nodes = await dag(sidecar, root)
                await asyncio.sleep(0.05)

    assert [one.status_code for one in lost] == [502, 502]
    assert [one.status for one in nodes.values() if one.pattern == "FAN_OUT"] == ["FAILED", "FAILED"]


@pytest.mark.req("AGT-3")
async def test_a_window_fans_out_no_wider_than_the_limit(tmp_path, running, provider):
    """Of siblings that race, exactly as many win as there is room for; the others are told the limit."""
    del provider
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=Merger(), max_fan_out=3) as sidecar:
        root = await sidecar.chat("All?")
        ends = await fan_out(sidecar, root, *(f"{number}?" for number in range(6)))
        nodes = (await dag(sidecar, root)).values()

    lost = [one for one in ends if one.status_code != 200]
    assert (len(lost), sum(n.pattern == "FAN_OUT" for n in nodes)) == (3, 3)
    assert {(one.status_code, reason_of(one), one.json()["metadata"]["limit"]) for one in lost} == {
        (403, "MAX_FAN_OUT_EXCEEDED", "3")
    }
