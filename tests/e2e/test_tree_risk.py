"""The risk of a consumed result reaches whoever repeats it, on the real analysis (SPEC-012 §6.1; requirements.md, reading 16)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from interlock.dpe.wiring import open_service
from interlock.runtime.settings.model import Settings
from tests.support.sidecar import answering
from tests.support.sidecar.sidecar import RunningSidecar, running_sidecar, token_of
from tests.support.sidecar.windows import delegated, fan_in, fan_out, onward, report, result_of

running, provider = answering.running, answering.provider

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module"), pytest.mark.finding("F-14")]

FACTS = [
    {"id": "f1", "content": "Revenue of Acme grew by 15% in 2024.", "importance": 0.5},
    {"id": "f2", "content": "The board of Acme approved the accounts in May 2024.", "importance": 0.5},
]
TRUE = "Revenue of Acme grew by 15% in 2024."
BENT = "Revenue of Acme fell by 40% in 2023."
WORST = {"crp-safety-policy": "halt-on CRITICAL"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sidecar(tmp_path_factory, running) -> AsyncIterator[RunningSidecar]:
    """A sidecar before the real dpe service."""
    folder = tmp_path_factory.mktemp("risk")
    service = await open_service(Settings(state_dir=folder / "dpe"))
    async with running_sidecar(folder, upstream=running.base_url, dpe=service.servicer, remediation="none") as one:
        yield one
    await service.close()


def share(response) -> float:
    return float(response.headers.get("crp-safety-grounding-pct", "nan"))


def score(response) -> float:
    return float(response.headers["crp-safety-hallucination-score"])


async def asks(sidecar, parent, *results, question="All in all?", facts=None, **more):
    named = {"sub_agent_results": list(results), **({"facts": facts} if facts else {})}
    return await sidecar.chat(question, token=token_of(parent), headers=onward(parent), interlock=named, **more)


async def tree(sidecar, provider, said: str):
    """An orchestrator and the answer of its sub-agent, which had the facts and said this of them."""
    provider.by_question = {"All?": "Hello!", "Law?": said, "All in all?": said}
    root = await sidecar.chat("All?", headers=WORST)
    child = await delegated(sidecar, root, "Law?", interlock={"facts": FACTS})
    return root, child


async def test_an_invention_is_no_truer_for_being_repeated(sidecar, provider):
    """The parent's risk is at least the child's, its grounding the child's, and the report says what it rests on."""
    root, child = await tree(sidecar, provider, BENT)
    made = await asks(sidecar, root, result_of(child))
    told = await report(sidecar, made)

    assert child.headers["crp-safety-hallucination-risk"] in {"HIGH", "CRITICAL"}
    assert share(child) < 0.5
    assert score(made) >= score(child)
    assert made.headers["crp-safety-hallucination-risk"] == child.headers["crp-safety-hallucination-risk"]
    assert share(made) <= share(child) + 0.001
    assert "CONSUMED_RISK" in str(told)


async def test_it_goes_on_through_every_agent_above(sidecar, provider):
    """Root, middle, leaf: the middle one repeats the leaf, the root the middle one."""
    provider.by_question = {"All?": "Hello!", "Middle?": "Hello!", "Law?": BENT, "Sum?": BENT, "All in all?": BENT}
    root = await sidecar.chat("All?", headers=WORST)
    middle = await delegated(sidecar, root, "Middle?")
    leaf = await delegated(sidecar, middle, "Law?", interlock={"facts": FACTS})
    summed = await asks(sidecar, middle, result_of(leaf), question="Sum?")
    made = await asks(sidecar, root, result_of(summed))

    assert score(made) >= score(summed) >= score(leaf) >= 0.5


async def test_a_grounded_result_is_as_good_as_it_was(sidecar, provider):
    """Repeated, it stays LOW and grounded: nothing is accused that was not."""
    root, child = await tree(sidecar, provider, TRUE)
    made = await asks(sidecar, root, result_of(child))

    assert child.headers["crp-safety-hallucination-risk"] == "LOW"
    assert (made.headers["crp-safety-hallucination-risk"], share(made)) == ("LOW", share(child))


async def test_what_the_parent_has_its_own_sources_for_rests_on_those(sidecar, provider):
    """The sub-agent had invented much; the orchestrator says only what its own facts show."""
    root, child = await tree(sidecar, provider, f"{BENT} {TRUE}")
    provider.by_question["All in all?"] = TRUE
    made = await asks(sidecar, root, result_of(child), facts=FACTS)

    assert (made.headers["crp-safety-hallucination-risk"], share(made)) == ("LOW", 1.0)


async def test_pasting_the_result_beside_naming_it_makes_it_no_source(sidecar, provider):
    """The sub-agent's words as a fact of the caller's own, or as a tool's answer, are the sub-agent's words."""
    root, child = await tree(sidecar, provider, BENT)
    pasted = await asks(
        sidecar,
        root,
        result_of(child),
        facts=[{"id": "law", "content": f"The legal agent says: {BENT}", "importance": 1.0}],
    )

    assert score(pasted) >= score(child)
    assert share(pasted) < 0.5


async def test_a_merged_branch_is_no_source_either(sidecar, provider):
    """The windows of a fan-in are earlier answers like a sub-agent's: their risk is the floor of the synthesis."""
    provider.by_question = {"All?": "Hello!", "A?": BENT, "B?": TRUE, "All in all?": f"{TRUE} {BENT}"}
    root = await sidecar.chat("All?", headers=WORST)
    branches = await fan_out(sidecar, root, "A?", "B?", interlock={"facts": FACTS})
    made = await fan_in(sidecar, branches)

    assert {one.status_code for one in (*branches, made)} == {200}, made.text
    assert score(made) >= max(map(score, branches)) >= 0.5
    assert share(made) < 1.0
