"""The LLM contract against a whole mesh: a scripted model through the sidecar, an agent over gRPC, and the sealed trace (DEC-10)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest

from interlock.client.decision import DecisionProposal, ExperimentClient, ExperimentSnapshot, Signal
from interlock.client.decision.advice import Advice, ModelAdvisor, ModelChoice
from interlock.client.decision.reference.agents import ProtocolAgent
from interlock.client.decision.running import arun
from tests.support.decision_service import ml
from tests.support.servers.provider import Provider, RunningProvider, completion, message
from tests.support.sidecar.mesh import Front, start_front

pytestmark = [pytest.mark.models, pytest.mark.timeout(240), pytest.mark.req("DEC-10"), pytest.mark.long]

FACT = "The best loss has not moved for ten trials."
GOOD = {"sampler": "tpe", "confidence": 0.9, "rationale": FACT, "expected_effect": FACT}
STATE = {"note": FACT, "search": {"sampler": "random", "samplers": ["random", "tpe"]}, "trial_active": False}
PLATEAU = Signal(
    type="metric_plateau", payload={"metric": "loss", "slope": 0.0}, confidence=0.95, source="executor", id="sig_1"
)


class SamplerChoice(ModelChoice):
    """The one thing that this agent's model may choose."""

    sampler: Literal["random", "tpe"]


class ModelledProtocol:
    """The protocol agent, whose choice a model makes; its rules are those of the reference agent."""

    descriptor = replace(ProtocolAgent.descriptor, version="model")

    def __init__(self, advisor: ModelAdvisor) -> None:
        self.advisor = advisor

    def process(self, state, signals):
        return (), self.advisor.proposals(
            "Which sampler is next?", SamplerChoice, state, signals, made=self.made,
            rules=lambda: ProtocolAgent().process(state, signals)[1],
        )  # fmt: skip

    @staticmethod
    def made(choice: SamplerChoice) -> list[DecisionProposal]:
        return [
            DecisionProposal(
                action_type="SWITCH_HPO", target="search", parameters={"sampler": choice.sampler}, id="by-model",
                rationale=choice.rationale, expected_effect=choice.expected_effect, confidence=choice.confidence,
            )
        ]  # fmt: skip


class Lying(ModelAdvisor):
    """An advisor whose proposals say something else of their window."""

    def __init__(self, bend: dict[str, str], **more: Any) -> None:
        super().__init__(**more)
        self.bend = bend

    def proposals(self, *asked: Any, **more: Any) -> list[DecisionProposal]:
        return [replace(one, **self.bend) for one in super().proposals(*asked, **more)]


@dataclass(frozen=True)
class World:
    """A running mesh, and what its provider says."""

    front: Front
    provider: Provider

    def advisor(self, **more: Any) -> ModelAdvisor:
        return ModelAdvisor(base_url=f"{self.front.http}/v1", api_key="the-agent", model="test-model", **more)

    def says(self, text: str | dict[str, Any]) -> None:
        self.provider.answers(text if isinstance(text, str) else json.dumps(text))

    def ask(self, seconds: float = 20.0, **more: Any) -> Advice[SamplerChoice]:
        state = ExperimentSnapshot(STATE, deadline=time.monotonic() + seconds)
        return self.advisor(**more).ask("Which sampler is next?", SamplerChoice, state, [PLATEAU])


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    with RunningProvider(Provider()) as running:
        settings = {
            "upstream_base_url": running.base_url, "remediation": "none", "default_policy": "halt-on CRITICAL",
        }  # fmt: skip
        front = start_front("local", folder, settings)
        with front.processes:
            yield World(front, running.provider)


@pytest.fixture(autouse=True)
def forgets(world):
    world.provider.reset()


def test_a_bounded_choice_is_read_with_its_window_and_risk(world):
    """The model was given the schema and the snapshot; the choice is a value, not a text."""
    world.says(GOOD)
    advice = world.ask()
    sent = world.provider.received[0].body

    assert advice.choice == SamplerChoice(**GOOD)
    assert advice.window_id.startswith("crp_win_")
    assert advice.risk in {"LOW", "MEDIUM", "HIGH"}
    assert sent["response_format"]["json_schema"]["schema"]["additionalProperties"] is False
    assert FACT in json.dumps(sent["messages"])


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("import os; os.system('true')", "MODEL_ANSWER_INVALID"),
        ({**GOOD, "sampler": "__import__('os')"}, "MODEL_ANSWER_INVALID"),
        ({**GOOD, "command": "rm"}, "MODEL_ANSWER_INVALID"),
        ({**GOOD, "rationale": ""}, "MODEL_ANSWER_INVALID"),
        ({**GOOD, "confidence": 1.5}, "MODEL_CONFIDENCE_INVALID"),
        ({**GOOD, "confidence": "0.9"}, "MODEL_CONFIDENCE_INVALID"),
        ({**GOOD, "expected_effect": FACT + " " * 4_000}, "MODEL_ANSWER_TOO_LONG"),
    ],
)
def test_anything_but_the_schema_is_no_choice(world, said, fault):
    """Code, unknown fields, other types, confidences outside, too long: each by a name, and the rules speak."""
    world.says(said)

    assert world.ask() == Advice(fault=fault)


def test_a_refusal_an_outage_and_silence_are_told_apart(world):
    """Each falls back by its own name; silence costs no more than the deadline."""
    world.provider.completes(completion(message(None, refusal="I will not.")))
    refused = world.ask().fault
    world.provider.fails(503)
    failed = world.ask().fault
    world.provider.hangs()
    silent = world.ask(seconds=2.0).fault

    assert (refused, failed, silent) == ("MODEL_REFUSED", "MODEL_UNAVAILABLE", "MODEL_TIMED_OUT")


INVENTED = {
    **GOOD,
    "rationale": "Professor Anna Keller of Zurich proved in 2019 that TPE cuts the loss by 73.5 percent on 12,400 data sets.",
    "expected_effect": "According to the Geneva Institute the loss falls to 0.0001 by 14 March 2027, and $2,500,000 is saved.",
}


@contextlib.contextmanager
def working(world: World, experiment: str, advisor: ModelAdvisor) -> Iterator[ExperimentClient]:
    """An experiment with the agent at work in a thread."""
    at = f"127.0.0.1:{world.front.processes.all['mesh'].ports['decision']}"
    with ExperimentClient(experiment, at=at, api_key="the-owner", definition=json.loads(ml())) as client:
        client.open()
        agent = ModelledProtocol(advisor)
        ticket = client.register(agent.descriptor)
        loop = asyncio.new_event_loop()
        task = loop.create_task(arun(agent, at=at, ticket=ticket))
        thread = threading.Thread(target=lambda: loop.run_until_complete(asyncio.gather(task, return_exceptions=True)))
        thread.start()
        try:
            while "protocol" not in client.connected():
                time.sleep(0.05)
            yield client
        finally:
            loop.call_soon_threadsafe(task.cancel)
            thread.join()
            loop.close()


def proposal_in(client: ExperimentClient, cycle: int) -> dict[str, Any]:
    [found] = json.loads(client.sealed(cycle)[1])["proposals_considered"]
    return found


def test_a_proposal_made_with_a_model_names_its_window_and_the_trace_has_what_the_guard_found(world):
    """The risk in the trace is that of the audit log, and the session it was found in is named."""
    world.says(GOOD)
    with working(world, "good", world.advisor()) as client:
        decision = client.decide(STATE, [PLATEAU])
        found = proposal_in(client, 1)

    assert decision.outcome == "SWITCH_HPO"
    assert found["model"]["window_id"].startswith("crp_win_")
    assert found["model"]["session_id"].startswith("crp_sess_")
    assert found["model"]["status"] == "COMPLETED"
    assert found["model"]["risk"] == found["model"]["told_risk"] != ""


def test_a_halted_answer_makes_no_proposal_and_the_rules_speak(world):
    """What the guard halts never reaches the agent: its rules propose, without a window."""
    world.says(INVENTED)
    halted = world.ask(policy="halt-on HIGH")
    with working(world, "halted", world.advisor(policy="halt-on HIGH")) as client:
        decision = client.decide(STATE, [PLATEAU])
        found = proposal_in(client, 1)

    assert halted == Advice(fault="MODEL_HALTED")
    assert decision.outcome == "SWITCH_HPO"
    assert "model" not in found
    assert found["by"] == "AGENT"


@pytest.mark.parametrize(
    ("bend", "reason"),
    [
        ({"window_id": "crp_win_" + "0" * 32, "model_risk": "LOW"}, "MODEL_WINDOW_UNKNOWN"),
        ({"model_risk": "NONE"}, "MODEL_RISK_FALSE"),
    ],
)
def test_a_window_that_is_not_there_or_another_risk_rejects_the_proposal(world, bend, reason):
    """What an agent says of its window is compared with the log."""
    world.says(GOOD)
    lying = Lying(bend, base_url=f"{world.front.http}/v1", api_key="the-agent", model="test-model")
    with working(world, reason.lower(), lying) as client:
        decision = client.decide(STATE, [PLATEAU])
        trace = json.loads(client.sealed(1)[1])

    assert decision.outcome == "CONTINUE"
    assert [one["reason"] for one in trace["rejected"]] == [reason]
