"""``interlock.client`` against a whole mesh: linear calls, delegation, fan-out, and the frameworks of the examples."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse

from interlock.client import Answer, AsyncSession, Conflict, Forbidden, Session, Unauthenticated
from tests.support.paths import ROOT
from tests.support.servers.provider import Provider, RunningProvider, completion, message
from tests.support.sidecar.mesh import Front, start_front

EXAMPLES = ROOT / "examples"
KEYS = {"orchestrator": "example-orchestrator", "legal": "example-legal", "finance": "example-finance"}
LEGAL = "The tenant pays a rent of 48,000 euros a year. The term is five years from 1 March 2025."
FINANCE = "Revenue was 1.9 million euros in 2024. The company employed 14 people."
PLAN = "A landlord asks what the lease demands and how the company does."
NO_ISSUES = '{"issues": []}'

pytestmark = [pytest.mark.models, pytest.mark.timeout(240)]


@dataclass(frozen=True)
class World:
    """A running mesh, its provider, and the client's arguments for an agent."""

    front: Front
    provider: Provider

    def client(self, agent: str) -> dict[str, Any]:
        return {"base_url": f"{self.front.http}/v1", "api_key": KEYS[agent], "model": "test-model"}

    def session(self, agent: str = "orchestrator", **more: Any) -> Session:
        return Session(**self.client(agent), **more)


def answer_by_question(body: dict[str, Any]) -> str:
    """What the model says: each specialist restates its source, the orchestrator what they said."""
    asked = str(body["messages"][-1]["content"])
    if "for accuracy" in asked:
        return NO_ISSUES
    if "lease demand" in asked:
        return LEGAL
    if "How did the company do" in asked:
        return FINANCE
    if "Should the tenant" in asked:
        return f"{LEGAL} {FINANCE}"
    return PLAN


def answering(by: Callable[[dict[str, Any]], str]) -> Callable[[Request], Any]:
    async def reply(request: Request) -> JSONResponse:
        return JSONResponse(completion(message(by(await request.json()))))

    return reply


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A mesh in one process with the agent types of the examples, and a scripted provider."""
    folder = tmp_path_factory.mktemp("client")
    with RunningProvider(Provider()) as running:
        running.provider._reply = answering(answer_by_question)
        settings = {
            "upstream_base_url": running.base_url, "agents_file": EXAMPLES / "agents.yaml", "remediation": "none",
        }  # fmt: skip
        front = start_front("local", folder, settings)
        with front.processes:
            yield World(front, running.provider)


def sources() -> dict[str, tuple[str, str]]:
    """Source and question of each specialist, as the examples have them."""
    found: dict[str, Any] = {}
    exec((EXAMPLES / "sources.py").read_text(encoding="utf-8"), found)
    return found["TASKS"]


def asked(source: str, question: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": source}, {"role": "user", "content": question}]


@pytest.mark.req("AGT-4", "PRV-3", "BUD-7")
def test_a_tree_is_delegated_merged_and_drawn(world):
    """Two children answer, the orchestrator consumes both, and the picture of the tree names all three."""
    with world.session() as session:
        session.chat("Name the two questions.")
        results = []
        for agent, (source, question) in sources().items():
            with session.delegate(agent, api_key=KEYS[agent]) as child:
                answer = child.chat(asked(source, question))
                assert "1" == answer.headers["crp-agent-loop-depth"]
                results.append(answer.as_result(question))
        merged = session.chat("Should the tenant be able to pay the rent?", results=results)
        picture = session.dag("text", tree=True)

    assert f"{LEGAL} {FINANCE}" == merged.text
    assert {result["session_id"] for result in results} <= {
        word for word in picture.replace("]", " ").replace("[", " ").split() if word.startswith("crp_sess_")
    }


@pytest.mark.req("AGT-4")
def test_a_result_of_another_tree_is_refused(world):
    """An answer that nobody delegated cannot be consumed, whatever its HMAC."""
    with world.session() as stranger, world.session() as session:
        foreign = stranger.chat("Name the two questions.")
        session.chat("Name the two questions.")
        with pytest.raises(Forbidden) as raised:
            session.chat("Should the tenant be able to pay?", results=[foreign])

    assert "RESULT_NOT_LINKED" == raised.value.reason


@pytest.mark.req("AGT-2")
def test_a_specialist_that_may_not_delegate_is_refused(world):
    """Its limit is named with its value."""
    with world.session() as session:
        session.chat("Name the two questions.")
        with session.delegate("legal", api_key=KEYS["legal"]) as child:
            child.chat(asked(*sources()["legal"]))
            with pytest.raises(Forbidden) as raised:
                child.delegation("finance")

    assert raised.value.reason in {"MAX_DELEGATIONS_EXCEEDED", "MAX_LOOP_DEPTH_EXCEEDED"}
    assert "0" == raised.value.metadata["limit"]


@pytest.mark.req("AGT-1")
def test_a_grant_is_used_once_and_by_its_agent_type(world):
    """Another agent's key gets nothing for it, and its own gets it once."""
    with world.session() as session:
        session.chat("Name the two questions.")
        granted = session.delegation("legal")
        source, question = sources()["legal"]
        with world.session("finance", delegation=granted) as wrong, pytest.raises(Unauthenticated):
            wrong.chat(asked(source, question))
        with world.session("legal", delegation=granted) as right:
            right.chat(asked(source, question))
        with world.session("legal", delegation=granted) as again, pytest.raises((Conflict, Unauthenticated)):
            again.chat(asked(source, question))


@pytest.mark.req("DAG-3", "BUD-6")
async def test_a_fan_out_is_merged_by_a_fan_in(world):
    """Three windows side by side have one number; the window that merges them has the next."""
    async with AsyncSession(**world.client("orchestrator")) as session:
        await session.chat("Name the two questions.")
        answers = await session.fan_out([asked(*task) for task in (*sources().values(), sources()["legal"])])
        merged = await session.fan_in(answers, "Should the tenant be able to pay the rent?")

    assert {"2/200"} == {answer.headers["crp-context-window"] for answer in answers}
    assert "3/200" == merged.headers["crp-context-window"]
    assert merged.headers["crp-provenance-window-lineage"].count("[") == 1


@pytest.mark.req("SVC-2", "DAG-12")
def test_a_batch_is_answered_item_by_item_and_the_session_goes_on_until_it_ends(world):
    """Each question has an answer of its own, the session is drawn in every format, and its end is for good."""
    with world.session() as session:
        results = session.batch([asked(*task) for task in sources().values()])
        after = session.chat("Name the two questions.")
        pictures = [session.dag(form) for form in ("text", "mermaid", "dot", "json")]
        session.terminate()
        with pytest.raises(Conflict):
            session.chat("Name the two questions.")

    assert [LEGAL, FINANCE] == [one.text for one in results if isinstance(one, Answer)]
    assert after.session_id == results[0].session_id
    assert all(pictures)


@pytest.mark.parametrize("example", ["plain.py", "langgraph_tree.py", "openai_agents_tree.py"])
@pytest.mark.req("HDR-5")
def test_an_example_runs_against_the_mesh(world, example):
    """Each ends with the tree, made of what its specialists said; no header of ours reaches the provider."""
    world.provider.received.clear()
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "INTERLOCK_"))},
        "OPENAI_BASE_URL": f"{world.front.http}/v1", "OPENAI_MODEL": "test-model",
        "OPENAI_API_KEY": KEYS["orchestrator"], "LEGAL_API_KEY": KEYS["legal"], "FINANCE_API_KEY": KEYS["finance"],
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example)], env=env, capture_output=True, text=True, timeout=120, check=False
    )

    assert 0 == done.returncode, done.stderr[-3000:]
    assert f"{LEGAL} {FINANCE}" in done.stdout
    assert done.stdout.count("crp_sess_") >= 3
    assert not [n for received in world.provider.received for n, _ in received.headers if n.startswith("crp-")]
