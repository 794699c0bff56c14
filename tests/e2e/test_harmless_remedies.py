"""Remedies do no harm, on the real analysis with every remedy switched on (ATT-10): what F-05 saw does not happen again."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from interlock.dpe.wiring import open_service
from interlock.runtime.settings.model import Settings
from tests.support.servers.provider import RunningProvider
from tests.support.sidecar.remedies import EVERY_REMEDY, Script, cut_off, fields_of, told
from tests.support.sidecar.sidecar import RunningSidecar, running_sidecar, token_of

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]

CONTEXT = (
    "The Eiffel Tower is 330 metres tall. The Eiffel Tower stands in Paris. The Eiffel Tower was completed in 1889. "
    "The Eiffel Tower was repainted in 2022."
)
GREETING = "Hello! How can I help you today?"
TRUE = "The Eiffel Tower stands in Paris."
WRONG = "The Eiffel Tower is 990 metres tall. It was moved to Berlin by Otto Krause in 1953."
MOVED = "Furthermore, the Eiffel Tower in Paris was moved to Berlin by Otto Krause in 1953."


@pytest.fixture(scope="module")
def running():
    with RunningProvider(Script()) as provider:
        yield provider


@pytest.fixture
def script(running) -> Script:
    running.provider.reset()
    running.provider.plays()
    return running.provider


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sidecar(tmp_path_factory, running) -> AsyncIterator[RunningSidecar]:
    """A sidecar before the real dpe service."""
    folder = tmp_path_factory.mktemp("remedies")
    service = await open_service(Settings(state_dir=folder / "dpe"))
    settings = {**EVERY_REMEDY, "request_timeout_s": 120}
    async with running_sidecar(folder, upstream=running.base_url, dpe=service.servicer, **settings) as one:
        yield one
    await service.close()


async def ask(sidecar, question: str, *, after=None, **headers: str):
    messages = [{"role": "system", "content": CONTEXT}, {"role": "user", "content": question}]
    token = token_of(after) if after is not None else None
    return await sidecar.chat(messages=messages, token=token, headers=headers)


def said(response) -> str:
    assert response.status_code == 200, response.text
    return response.json()["choices"][0]["message"]["content"]


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Does the Eiffel Tower stand in Paris, and was it completed in 1889?", "Yes."),
        ("Where does the Eiffel Tower stand, and when was it repainted?", TRUE),
    ],
)
async def test_a_finished_answer_is_left_alone(sidecar, script, question, answer):
    """Not "Yes.\n\nYes.", and no greeting behind a true sentence, however much of the question is open."""
    script.plays(generate=[answer], **{"continue": [GREETING]})
    response = await ask(sidecar, question)

    assert (said(response), script.steps) == (answer, ["generate"])


@pytest.mark.req("ATT-10")
async def test_a_greeting_does_not_complete_a_cut_answer(sidecar, script):
    """It is asked for, looked at, and not appended."""
    script.plays(generate=[cut_off(TRUE)], **{"continue": [GREETING]})
    response = await ask(sidecar, "Where does the Eiffel Tower stand, and when was it repainted?")

    assert said(response) == TRUE
    assert len(script.steps) <= 2


@pytest.mark.req("ATT-10", "BUD-5")
async def test_a_grounded_draft_is_not_replaced_by_an_invented_answer(sidecar, script):
    """A remedy for a repetition brings an invention: the draft and its charge stand, and the trail says why."""
    script.plays(generate=[TRUE])
    first = await ask(sidecar, "Tell me about the Eiffel Tower.")
    script.plays(generate=[TRUE, MOVED])
    onward = {"CRP-Context-Continuation-Id": first.headers["crp-context-continuation-id"]}
    second = await ask(sidecar, "Tell me more about the Eiffel Tower.", after=first, **onward)
    events = await told(sidecar, second.headers["crp-context-session-id"])

    assert said(second) == TRUE
    assert second.headers["crp-safety-hallucination-risk"] == "LOW"
    assert second.headers["crp-agent-safety-budget"] == first.headers["crp-agent-safety-budget"]
    assert "risk" in fields_of(events, "REMEDY_DISCARDED")[0]["worse"]


@pytest.mark.req("ATT-10", "DPE-7")
async def test_the_same_question_asked_again_takes_one_call(sidecar, script):
    """The same answer is the right one."""
    script.plays(generate=[TRUE])
    first = await ask(sidecar, "Where does the Eiffel Tower stand?")
    script.received.clear()
    again = await ask(sidecar, "Where does the Eiffel Tower stand?", after=first)

    assert (said(again), script.steps) == (TRUE, ["generate"])


@pytest.mark.req("ATT-10", "DPE-16")
async def test_an_invented_answer_is_replaced_by_a_grounded_one(sidecar, script):
    """Better on the risk that called for it, worse on nothing that the analysis judges."""
    script.plays(generate=[WRONG, TRUE])
    response = await ask(
        sidecar, "Tell me about the Eiffel Tower.", **{"CRP-Safety-Policy": "upgrade-on-risk reflexive"}
    )

    assert said(response) == TRUE
    assert response.headers["crp-safety-hallucination-risk"] == "LOW"
