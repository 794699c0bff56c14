"""Windows of a fan when something is in the way: partial with one left, a seal in doubt, a caller that leaves, sum and min."""

from __future__ import annotations

import asyncio

import pytest

from interlock.domain.errors import unavailable
from tests.support.sidecar import answering
from tests.support.sidecar.remedies import told
from tests.support.sidecar.sidecar import Hooked, reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import Merger, budget, dag, delegated, fan_in, fan_out, onward, window_of

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.sidecar


@pytest.mark.req("DAG-9")
async def test_a_partial_fan_in_goes_on_with_the_one_that_is_left(sidecar, provider):
    """A halted sibling is left out and named; the synthesis is sealed with one parent, and the chain holds."""
    provider.by_question = {"B?": "It is CRITICAL."}
    root = await sidecar.chat("All?", headers={"crp-safety-policy": "halt-on CRITICAL"})
    a, b = await fan_out(sidecar, root, "A?", "B?")
    merged = await fan_in(sidecar, [b, a], headers={"crp-agent-fan-in-policy": "partial"})

    assert (b.status_code, merged.status_code) == (451, 200), merged.text
    assert merged.headers["crp-provenance-chain-integrity"] == "VALID"
    await told(sidecar, root.headers["crp-context-session-id"])


@pytest.mark.req("DAG-9", "SVC-9")
async def test_a_child_that_fails_while_the_store_is_away_gives_its_lease_back(tmp_path, running, provider):
    """FailWindow cannot be written: the lease goes back instead, so that nothing waits for it."""

    async def away(_request):
        raise unavailable("SESSION_UNAVAILABLE", "x")

    def wrap(services):
        return {**services, "session": Hooked(services["session"], FailWindow=away)}

    provider.by_question = {"B?": 500}
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=Merger(), wrap=wrap) as sidecar:
        root = await sidecar.chat("All?")
        (b,) = await fan_out(sidecar, root, "B?")
        a, c = await fan_out(sidecar, root, "A?", "C?")
        merged = await fan_in(sidecar, [a, c])

    assert (b.status_code, merged.status_code) == (502, 200)


@pytest.mark.req("BUD-5")
async def test_a_caller_that_leaves_during_a_summary_is_charged_nothing(tmp_path, running, provider):
    """There is no answer yet: the provider's work is cut short, the lease goes back, the same token goes on."""
    waiting = asyncio.Event()

    async def checking(_request):
        waiting.set()
        await asyncio.sleep(30)

    long = " ".join(f"Sentence {number} says that revenue was {number} million." for number in range(60))
    provider.by_question = {"First?": long}
    dpe = Merger()

    def wrap(services):
        return {**services, "dpe": Hooked(dpe, CheckSummary=checking)}

    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=dpe, wrap=wrap, dpe_timeout_s=1) as sidecar:
        first = await sidecar.chat("First?")
        then = asyncio.create_task(
            sidecar.chat("Then?", token=token_of(first), headers=onward(first), interlock={"transfer": "summary"})
        )
        await waiting.wait()
        then.cancel()
        await asyncio.wait([then])
        for _ in range(100):
            again = await sidecar.chat("Again?", token=token_of(first), headers=onward(first))
            if again.status_code == 200:
                break
            await asyncio.sleep(0.05)

    assert again.status_code == 200, again.text
    assert again.headers["crp-agent-safety-budget"] == "1.00"


@pytest.mark.req("BUD-7", "BRK-4")
async def test_a_halted_sub_agent_takes_its_parent_to_028(sidecar, provider):
    """SPEC-012 §6.1, over the wire: 0.63 less one CRITICAL is 0.28, and the parent's next window is reflexive."""
    provider.by_question = {f"{n}?": f"It is {risk}." for n, risk in enumerate(["HIGH", "HIGH", "MEDIUM"])}
    provider.by_question["Law?"] = "It is CRITICAL."
    last = await sidecar.chat(
        "0?", headers={"crp-safety-policy": "halt-on CRITICAL", "crp-agent-safety-budget": "0.98"}
    )
    for question in ("1?", "2?"):
        last = await sidecar.chat(question, token=token_of(last), headers=onward(last))
    assert last.headers["crp-agent-safety-budget"] == "0.63"
    child = await delegated(sidecar, last, "Law?")
    provider.received.clear()
    after = await sidecar.chat("And then?", token=token_of(last), headers=onward(last))

    assert (child.status_code, reason_of(child)) == (451, "SAFETY_HALT")
    assert await budget(sidecar, last) == 280_000
    assert (after.headers["crp-context-strategy"], len(provider.bodies("verify"))) == ("reflexive", 1)


@pytest.mark.req("BUD-7", "BRK-4")
async def test_a_halted_sub_agent_costs_its_parent_one_critical_whatever_it_had_left_itself(sidecar, provider):
    """Reading 5: 0.50 less one CRITICAL is 0.15, though the child still has 0.50 of its 0.85."""
    provider.by_question = {"High?": "It is HIGH.", "Critical?": "It is CRITICAL.", "Law?": "It is CRITICAL."}
    last = await sidecar.chat("High?", headers={"crp-safety-policy": "halt-on CRITICAL"})
    child = await delegated(sidecar, last, "Fine?")
    halted = await sidecar.chat("Critical?", token=token_of(last), headers=onward(last))
    assert await budget(sidecar, last) == 500_000
    law = await sidecar.chat("Law?", token=token_of(child), headers=onward(child))

    assert (halted.status_code, law.status_code, law.headers["crp-agent-safety-budget"]) == (451, 451, "0.50")
    assert await budget(sidecar, last) == 150_000


@pytest.mark.req("DAG-3")
async def test_a_branch_goes_on_from_a_window_that_was_continued(sidecar):
    """SPEC-004 §1.2: a sibling of the line, with the same number and the same parent."""
    root = await sidecar.chat("All?")
    line = await sidecar.chat("On?", token=token_of(root), headers=onward(root))
    branch = await sidecar.chat("Or?", token=token_of(root), headers=onward(root, session_action="branch"))
    windows = await dag(sidecar, root)

    assert (line.status_code, branch.status_code) == (200, 200), branch.text
    node = windows[window_of(branch)]
    assert (node.pattern, node.window_number, list(node.parent_ids)) == ("BRANCH", 2, [window_of(root)])
