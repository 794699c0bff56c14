"""An answer that no source is about is open; an invention about the subject of a source is judged (ATT-8)."""

from __future__ import annotations

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.risk.grounding import GroundingMode
from interlock.dpe.document import Fact
from interlock.dpe.request import ANSWERED, USER, Output, Request, SaidText
from tests.support.dpe import pipeline
from tests.support.texts.beside_the_point import ABOUT, ABOUT_LATER, BEFORE_COMPANY, COMPANY, OPEN, OPEN_LATER

pytestmark = pytest.mark.models

Row = tuple[tuple[str, ...], tuple[str, str], str, str]
SKY = next(row for row in OPEN if "sky" in row[2])


def turn(row: Row, **more: object) -> Request:
    """A turn of a conversation whose sources were all given in an earlier turn."""
    sources, (asked, answered), question, answer = row
    facts = tuple(Fact(f"m1s{number}", text, 0.5) for number, text in enumerate(sources))
    said = (SaidText("m0u0", asked, USER), SaidText("m2a0", answered, ANSWERED), SaidText("m3u0", question, USER))
    given = {"earlier_facts": frozenset(fact.id for fact in facts), **more}
    return Request(outputs=(Output(0, answer),), facts=facts, query=question, said=said, **given)  # type: ignore[arg-type]


async def judged(row: Row, **more: object) -> dpe_pb2.Report:
    return await pipeline().analyse(turn(row, **more))


@pytest.mark.req("ATT-8")
async def test_what_no_source_is_about_is_open():
    """Common knowledge, jokes, lists and poems after a look-up raise nothing."""
    reports = {row[2]: await judged(row) for row in (*OPEN, *OPEN_LATER)}

    assert [asked for asked, found in reports.items() if found.grounding_mode != GroundingMode.OPEN] == []
    assert [asked for asked, found in reports.items() if found.risk_level > common_pb2.RISK_LEVEL_LOW] == []


@pytest.mark.req("ATT-8")
async def test_what_is_said_of_the_subject_of_a_source_is_judged():
    """A founder, a price or a size that no source gives is compared with the sources, however it is asked for.

    A name or a figure that they do not have is found. Of a sentence without either one cannot tell, and the report says so.
    """
    reports = {row[2]: await judged(row) for row in (*ABOUT, *ABOUT_LATER)}

    assert [asked for asked, found in reports.items() if found.grounding_mode == GroundingMode.OPEN] == []
    silent = [
        asked
        for asked, found in reports.items()
        if found.risk_level == common_pb2.RISK_LEVEL_LOW and not found.cannot_tell_count
    ]
    assert silent == []


@pytest.mark.req("ATT-8")
@pytest.mark.parametrize(
    "more",
    [
        {"earlier_facts": frozenset()},
        {"earlier_facts": frozenset({"m1s0"})},
        {"grounding_mode": GroundingMode.PREFERRED},
        {"grounding_mode": GroundingMode.STRICT},
        {"grounding_required": True},
    ],
    ids=[
        "sources of this turn",
        "one source of this turn",
        "context-preferred",
        "context-strict",
        "grounding required",
    ],
)
async def test_only_auto_and_only_earlier_sources_leave_an_answer_open(more: dict[str, object]):
    """What was looked up for the question, what the caller asks for and what a policy requires are held to."""
    found = await judged(SKY, **more)

    assert found.grounding_mode != GroundingMode.OPEN
    assert found.risk_level > common_pb2.RISK_LEVEL_LOW or found.cannot_tell_count


@pytest.mark.req("ATT-8")
async def test_an_invented_citation_is_found_beside_the_point_too():
    """What can be judged without a source is judged in every mode."""
    answer = "Cats purr to heal their bones, as shown at https://www.feline-journal.org/2019/purring-study."
    found = await judged((COMPANY, BEFORE_COMPANY, "Why do cats purr?", answer))

    assert found.grounding_mode == GroundingMode.OPEN
    assert found.risk_level > common_pb2.RISK_LEVEL_LOW
    assert found.fabrication_count == 1
