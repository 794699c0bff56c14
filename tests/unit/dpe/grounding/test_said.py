"""The user's words as evidence of a second rank, and given text inside the user's message (ATT-5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.risk.risk import RiskLevel
from interlock.policy.report import read_findings
from tests.support.asked import asked
from tests.support.dpe import pipeline

pytestmark = [pytest.mark.models, pytest.mark.req("ATT-5")]

SOLD = "We sold 340 units in March and 410 in April. Write one sentence about it."


def under(source: str, user: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": source}, {"role": "user", "content": user}]


async def report(messages: Any, answer: str) -> dpe_pb2.Report:
    return await pipeline().analyse(asked(messages, answer))


@pytest.mark.parametrize(
    ("messages", "answer"),
    [
        (SOLD, "You sold 340 units in March and 410 in April."),
        ("My order arrived on Tuesday and the lamp was broken. What now?", "Your order arrived on Tuesday and the lamp was broken."),
        ([{"role": "user", "content": "My dog Bruno is seven years old."}, {"role": "assistant", "content": "How nice!"},
          {"role": "user", "content": "What do you know about Bruno?"}], "Bruno is seven years old."),
        (under("The shop opens at nine.", "My cat Mia weighs 4 kg. When do you open?"), "Your cat Mia weighs 4 kg."),
    ],
)  # fmt: skip
async def test_what_the_user_says_may_be_repeated(messages, answer):
    """It rests on the user's words, and the report says so."""
    found = await report(messages, answer)

    assert found.risk_level == RiskLevel.LOW
    assert {claim.evidence_kind for claim in found.claims} == {"user"}
    assert found.user_grounding_pct == 1.0


@pytest.mark.parametrize(
    ("messages", "answer"),
    [
        (SOLD, "You sold 340 units in March and 510 in April."),
        ("Is Sydney the capital of Australia?", "Sydney is the capital of Australia."),
        (under("The contract was signed on 3 May 2021.", "The contract was signed on 9 June 2022. By whom?"),
         "The contract was signed on 9 June 2022."),
        ([{"role": "user", "content": "Tell me about Bruno."}, {"role": "assistant", "content": "Bruno won a prize in 2019."},
          {"role": "user", "content": "Go on."}], "Bruno won a prize in 2019."),
    ],
)  # fmt: skip
async def test_neither_a_question_nor_the_model_is_evidence_and_a_source_wins(messages, answer):
    """What is bent, only asked, denied by a source, or the model's own word rests on nothing."""
    found = await report(messages, answer)

    assert {claim.evidence_kind for claim in found.claims} == {""}
    assert found.user_grounding_pct == 0.0


async def test_a_deployment_may_count_sources_alone():
    """require-grounding counts the user's words unless the setting says otherwise."""
    request = replace(asked(SOLD, "You sold 340 units in March and 410 in April."), grounding_required=True)
    found = await pipeline().analyse(request)

    assert read_findings(found).grounding == 1.0
    assert read_findings(found, user_words_ground=False).grounding == 0.0


KILN = (
    "The kiln reaches 1,280 degrees after nine hours.",
    "Stoneware is fired once at 980 degrees.",
    "The kiln must cool for twelve hours.",
)
LEAVE = ("Employees accrue 25 days of paid leave per year.", "Unused leave may be carried over until 31 March.")
SNAPSHOTS = ("Every write is replicated to three zones.", "Snapshots are kept for 35 days.")
PROMPTS = {
    "a section": "Context: {0}\n\nQuestion: {1}",
    "LlamaIndex": "Context information is below.\n---------------------\n{0}\n---------------------\nGiven the context information "
    "and not prior knowledge, answer the query.\nQuery: {1}\nAnswer: ",
    "LangChain": "Use the following pieces of retrieved context to answer the question.\nQuestion: {1} \nContext: {0} \nAnswer:",
    "an element": "<context>\n{0}\n</context>\n{1}",
    "a fenced block": "```\n{0}\n```\n{1}",
    "numbered": "[1] {0}\n\n{1}",
}
ROWS = [
    (
        KILN,
        "How long must the kiln cool?",
        "The kiln has to cool for twelve hours.",
        "The kiln has to cool for two hours.",
    ),
    (
        LEAVE,
        "How much leave do I get?",
        "Employees accrue 25 days of paid leave a year.",
        "Employees accrue 30 days of paid leave a year.",
    ),
    (SNAPSHOTS, "How long are they kept?", "Snapshots are kept for 35 days.", "Snapshots are kept for 90 days."),
]


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
async def test_context_in_the_users_message_is_what_it_is_in_a_system_message(prompt, row):
    """A faithful answer is LOW, and a bent one as risky as it is with the same text in a system message."""
    context, question, faithful, bent = row
    joined = "\n[2] ".join(context) if prompt.startswith("[1]") else " ".join(context)
    message = prompt.format(joined, question)
    there = await report(under(" ".join(context), question), bent)

    good, bad = await report(message, faithful), await report(message, bent)

    assert good.risk_level == RiskLevel.LOW
    assert {claim.evidence_kind for claim in good.claims} == {"source"}
    assert bad.risk_level == there.risk_level > RiskLevel.LOW


async def test_orders_of_the_system_are_no_sources():
    """With nothing but orders there is no source, so that the envelope is empty."""
    found = await report(under("You are a helpful assistant. Answer briefly.", SOLD), "You sold 340 units in March.")

    assert found.facts_total == 0
    assert found.risk_level == RiskLevel.LOW
