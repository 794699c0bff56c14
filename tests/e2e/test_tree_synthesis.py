"""Fan-in and the hierarchical strategy on the real analysis: what the merged answers say of one another reaches the report."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from interlock.dpe.wiring import open_service
from interlock.runtime.settings.model import Settings
from tests.support.sidecar import answering
from tests.support.sidecar.remedies import fields_of, told
from tests.support.sidecar.sidecar import RunningSidecar, running_sidecar, token_of
from tests.support.sidecar.windows import dag, delegated, fan_in, fan_out, onward, report, result_of, window_of

running, provider = answering.running, answering.provider

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]

FACTS = [
    {"id": "f1", "content": "The population of France was 68 million in 2024.", "importance": 0.5},
    {"id": "f2", "content": "The population of Germany was 84 million in 2024.", "importance": 0.5},
    {"id": "f3", "content": "Revenue of Acme grew by 15% in 2024.", "importance": 0.5},
]
FRANCE, GERMANY = (
    "The population of France was 68 million in 2024.",
    "The population of Germany was 84 million in 2024.",
)
BOTH = f"{FRANCE} {GERMANY}"
LONG = " ".join(
    f"In {1980 + year} revenue of Acme was {year + 3}.5 million dollars, and the board of Acme approved the accounts of that year."
    for year in range(40)
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sidecar(tmp_path_factory, running) -> AsyncIterator[RunningSidecar]:
    """A sidecar before the real dpe service."""
    folder = tmp_path_factory.mktemp("synthesis")
    service = await open_service(Settings(state_dir=folder / "dpe"))
    async with running_sidecar(folder, upstream=running.base_url, dpe=service.servicer, remediation="none") as one:
        yield one
    await service.close()


async def rooted(sidecar, **more):
    root = await sidecar.chat("What of France?", interlock={"facts": FACTS}, **more)
    assert root.status_code == 200, root.text
    return root


@pytest.mark.req("DPE-19")
async def test_two_subjects_are_no_contradiction_and_two_figures_of_one_are(sidecar, provider):
    """SPEC-012 §9.1: France and Germany differ, and may; grew and declined cannot both be so. It is in the sealed report."""
    provider.by_question = {"What of France?": FRANCE, "F?": FRANCE, "G?": GERMANY, "All in all?": BOTH,
                            "Up?": "Revenue of Acme grew by 15% in 2024.", "Down?": "Revenue of Acme declined by 3% in 2024."}  # fmt: skip
    root = await rooted(sidecar)
    held = {"interlock": {"facts": FACTS}}
    apart = await fan_in(sidecar, await fan_out(sidecar, root, "F?", "G?", **held), **held)
    other = await rooted(sidecar)
    clash = await fan_in(sidecar, await fan_out(sidecar, other, "Up?", "Down?", **held), **held)
    told_apart, told_clash = await report(sidecar, apart), await report(sidecar, clash)

    assert (apart.status_code, told_apart["cross_agent"]["merged"]) == (200, 2)
    assert told_apart["cross_agent"].get("contradictions", []) == []
    assert len(told_clash["cross_agent"]["contradictions"]) == 1


@pytest.mark.req("DPE-19", "DAG-3")
async def test_the_hierarchical_strategy_on_the_real_analysis(sidecar, provider):
    """Plan, parts and synthesis under a policy that demands grounding: the plan claims nothing and is let through."""
    provider.by_step["plan"] = (
        "1. What was the population of France in 2024?\n2. What was the population of Germany in 2024?"
    )
    provider.by_question = {"What was the population of France in 2024?": FRANCE,
                            "What was the population of Germany in 2024?": GERMANY, "What of both?": BOTH}  # fmt: skip
    response = await sidecar.chat(
        "What of both?", interlock={"facts": FACTS},
        headers={"crp-context-strategy": "hierarchical", "crp-safety-policy": "halt-on CRITICAL; require-grounding 0.80"},
    )  # fmt: skip
    found = await report(sidecar, response) if response.status_code == 200 else response.text
    costs = {n.pattern: n.charge_micros for n in (await dag(sidecar, response)).values()}

    assert response.status_code == 200, response.text
    assert found["cross_agent"]["completeness"] == 1.0
    assert response.headers["crp-safety-hallucination-risk"] == "LOW"
    assert costs == {"LINEAR": 0, "FAN_OUT": 0, "FAN_IN": 0}


@pytest.mark.req("DAG-7")
@pytest.mark.parametrize(
    ("summary", "used"),
    [
        ("Revenue of Acme was 3.5 million dollars in 1980 and 42.5 million dollars in 2019.", True),
        ("Revenue of Acme was 93.5 million dollars in 1980 and the board rejected the accounts.", False),
    ],
)
async def test_a_summary_is_held_against_its_source_before_it_is_used(sidecar, provider, summary, used):
    """A poisoned one does not get into the next prompt; a true one does (SPEC-004 §17.5)."""
    provider.by_question = {"What of France?": FRANCE, "History?": LONG, "Then?": FRANCE}
    provider.by_step["summarise"] = summary
    root = await rooted(sidecar)
    history = await sidecar.chat("History?", token=token_of(root), headers=onward(root), interlock={"facts": FACTS})
    then = await sidecar.chat(
        "Then?", token=token_of(history), headers=onward(history),
        interlock={"facts": FACTS, "transfer": "auto", "token_budget": 1_200},
    )  # fmt: skip
    (event,) = fields_of(await told(sidecar, root.headers["crp-context-session-id"]), "SUMMARISATION")

    assert then.status_code == 200, then.text
    assert (event["used"], summary in provider.context("Then?")) == (used, used)
    assert (await dag(sidecar, root))[window_of(then)].edges[0].transfer_type == (2 if used else 4)


@pytest.mark.req("PRV-3", "DPE-19")
async def test_an_answer_rests_on_what_a_sub_agent_said(sidecar, provider):
    """The sub-agent's sealed words are evidence: the orchestrator's answer is grounded in them and linked to them."""
    provider.by_question = {"What of France?": FRANCE, "G?": GERMANY, "All in all?": GERMANY}
    root = await rooted(sidecar)
    child = await delegated(sidecar, root, "G?", interlock={"facts": FACTS})
    made = await sidecar.chat(
        "All in all?", token=token_of(root), headers=onward(root), interlock={"sub_agent_results": [result_of(child)]}
    )
    found = await report(sidecar, made)

    assert made.status_code == 200, made.text
    assert (found["grounding_pct"], [one["session_id"] for one in found["linked_results"]]) == (
        1.0, [child.headers["crp-context-session-id"]],
    )  # fmt: skip
