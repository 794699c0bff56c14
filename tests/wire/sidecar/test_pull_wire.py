"""The strategy pull and the grounding modes through the served sidecar (SPEC-008 §4; SPEC-002 §11.2; SPEC-003 §13)."""

from __future__ import annotations

import json

import pytest

from interlock.api.sidecar.v1 import sidecar_pb2
from tests.support.sidecar import answering
from tests.support.sidecar.sidecar import DpeDouble, a_report, reason_of, running_sidecar
from tests.support.sidecar.windows import dag, window_of

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.sidecar

FACTS = [{"id": "f1", "content": "The tower was finished in 1889.", "importance": 0.9}]
EXTRACT = (
    "You are performing a document extraction task. Answer using ONLY the provided context. Structure your response to faithfully "
    "reproduce the relevant information from the source material. Do not add interpretation or external knowledge."
)
STRICT = "Answer only using the provided context. Do not use external knowledge."
PREFERRED = "Prefer the provided context. Indicate when using general knowledge."


@pytest.mark.finding("F-19")
@pytest.mark.parametrize(
    "sent",
    [{"crp-context-strategy": "pull"}, {"crp-agent-dispatch-strategy": "pull"}, {"crp-accept-strategy": "pull, push"}],
)
async def test_pull_extracts_from_the_context_alone(sidecar, provider, dpe, sent):
    """The printed prompt, the strict instruction, the facts and one call; judged in context-strict, also over a milder header."""
    response = await sidecar.chat(
        "How old?", headers={**sent, "crp-llm-grounding-mode": "open"}, interlock={"facts": FACTS}
    )
    told = provider.context("How old?")

    assert response.status_code == 200
    assert EXTRACT in told and STRICT in told and FACTS[0]["content"] in told
    assert dpe.of(response).grounding_mode == "context-strict"
    assert response.headers["crp-context-strategy"] == response.headers["crp-agent-dispatch-strategy"] == "pull"
    assert response.headers["crp-agent-revision-round"] == "1/1"
    assert (await dag(sidecar, response))[window_of(response)].strategy == "pull"
    assert len(provider.received) == 1


@pytest.mark.finding("F-19")
async def test_pull_over_grpc_and_in_a_batch_item(sidecar, provider):
    """The same prompt whichever front the call came by."""
    body = {"model": "test-model", "messages": [{"role": "user", "content": "How old?"}]}
    context = sidecar_pb2.CallContext(strategy="pull")
    request = sidecar_pb2.DispatchRequest(chat_request=json.dumps(body).encode(), context=context)
    answer = await sidecar.stub.Dispatch(request)

    assert answer.outcome.headers["CRP-Context-Strategy"] == "pull"
    assert EXTRACT in provider.context("How old?")


@pytest.mark.finding("F-19")
async def test_strict_mode_makes_a_pull_reflexive(sidecar, provider):
    """What the breaker or strict mode forces stands; the extraction is reviewed and told as what it was."""
    response = await sidecar.chat("How old?", headers={"crp-context-strategy": "pull", "crp-safety-mode": "strict"})

    assert response.headers["crp-context-strategy"] == "reflexive"
    assert EXTRACT in provider.context("How old?")
    assert len(provider.bodies("verify")) == 1


@pytest.mark.finding("F-19")
@pytest.mark.parametrize(
    ("mode", "instruction"),
    [("context-strict", STRICT), ("context-preferred", PREFERRED), ("open", None), (None, None)],
)
async def test_each_grounding_mode_gives_its_instruction(sidecar, provider, dpe, mode, instruction):
    """The printed instruction of §11.2 reaches the model, and the analysis has the mode; without facts auto adds none."""
    response = await sidecar.chat("How old?", headers={"crp-llm-grounding-mode": mode} if mode else {})
    systems = [one["content"] for one in provider.request("How old?")["messages"] if one["role"] == "system"]

    assert systems == ([instruction] if instruction else [])
    assert dpe.of(response).grounding_mode == (mode or "auto")


@pytest.mark.finding("F-19")
async def test_the_response_says_in_which_mode_it_was_judged(tmp_path, running, provider):
    """CRP-LLM-Grounding-Mode of a response is what the analysis applied, which a policy may have made stricter."""
    del provider
    judge = DpeDouble(report=a_report(grounding_mode="context-preferred"))
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=judge) as one:
        response = await one.chat("How old?", headers={"crp-llm-grounding-mode": "open"})
        refused = await one.chat("How old?", headers={"crp-llm-grounding-mode": "loose"})

    assert response.headers["crp-llm-grounding-mode"] == "context-preferred"
    assert (refused.status_code, reason_of(refused)) == (400, "INVALID_HEADER")
