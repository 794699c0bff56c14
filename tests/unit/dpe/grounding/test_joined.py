"""Claims that a source and the words of the request hold together (ATT-5)."""

from __future__ import annotations

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.dpe.document import Fact, NliScores
from interlock.dpe.grounding.attribution import NOTHING, ClaimEvidence
from interlock.dpe.grounding.joined import joint
from interlock.dpe.request import DeclaredTool, Output, Request, SaidText
from tests.support.dpe import pipeline

NEUTRAL = NliScores(0.1, 0.9, 0.0)
RESULT = "ticket: LU-88213 status: open answer within hours: 24"
MAIL = "Your email is dana@example.com."
OPENS = "Open a ticket with the technical team."
ANSWER = "The technical team will get back to you at dana@example.com within 24 hours."


def found(premise: str, *others: str) -> ClaimEvidence:
    return ClaimEvidence("f1", 0.5, premise, NEUTRAL, premise, NEUTRAL, tuple(("f2", each) for each in others), NEUTRAL)


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("text", "source", "said", "declared", "premise"),
    [
        (ANSWER, found(RESULT), found(MAIL), [OPENS, "Read an article."], f"{OPENS} {MAIL} {RESULT}."),
        ("Ticket LU-88213 is open.", found("status: open", "ticket: LU-88213"), None, [OPENS], f"{OPENS} status: open ticket: LU-88213."),
        ("The team answers within 24 hours.", found(RESULT), None, ["Read an article."], ""),
        ("Ticket LU-99999 is open.", found(RESULT), found(MAIL), [OPENS], ""),
        ("I opened a ticket with the technical team.", found("No results."), None, [OPENS], ""),
        ("I opened a ticket with the technical team.", found("No results."), NOTHING, [OPENS], ""),
        ("The lamp is on the second floor.", found("The lamp needs a signal."), found("It is on the second floor."), [],
         "It is on the second floor. The lamp needs a signal."),
    ],
)  # fmt: skip
def test_texts_are_joined_where_they_have_the_figures_of_a_claim(text, source, said, declared, premise):
    """What a function is for counts only beside a result of it; a figure that is nowhere is held by nothing."""
    assert joint(text, source, said, declared).removesuffix(".") == premise.removesuffix(".")


@pytest.mark.models
@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("text", "level"),
    [
        (ANSWER, common_pb2.RISK_LEVEL_LOW),
        (ANSWER.replace("24", "48"), common_pb2.RISK_LEVEL_HIGH),
        (ANSWER.replace("dana", "ella"), common_pb2.RISK_LEVEL_HIGH),
    ],
)
async def test_a_confirmation_rests_on_the_result_the_user_and_the_declaration(text, level):
    """With another number of hours, or another address, it rests on nothing."""
    facts = (Fact("m3s0", '{"ticket": "LU-88213", "status": "open", "answer_within_hours": 24}', 0.5),)
    asked = "Yes please open one, my email is dana@example.com."
    said = (SaidText("m1u0", asked, "user"),)
    tools = (DeclaredTool("create_ticket", OPENS),)

    report = await pipeline().analyse(Request((Output(0, text),), facts, query=asked, said=said, tools=tools))

    assert report.risk_level == level or (level > 1 and report.risk_level > level)
