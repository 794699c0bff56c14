"""Citation marks that point to the wrong source or to none, on the real models (ATT-7)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.dpe.document import Fact
from interlock.dpe.request import Output, Request
from tests.support.dpe import pipeline, request

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]

BRIDGE = "The Halden bridge opened in 1931 and is 412 metres long."
TUNNEL = "The Mirren tunnel was finished in 2004 at a cost of 90 million euros."
FERRY = "Ferries on the Skerry line run every 40 minutes from May to September."
THREE = (BRIDGE, TUNNEL, FERRY)
NUMBERED = tuple(f"[{number}] {text}" for number, text in enumerate(THREE, 1))
CODED = (f"[KB-1] {TUNNEL}", f"[KB-2] {BRIDGE}")
UNNUMBERED = [Fact(f"m0s{number}", text, 0.5) for number, text in enumerate(THREE)]
LATE = [
    Fact(f"m0s{number}", text, 0.5)
    for number, text in enumerate([f"[1] {FERRY}", "They carry no cars.", f"[2] {BRIDGE}"])
]


async def judged(text: str, facts: Sequence[Fact | str], **fields: object) -> dpe_pb2.Report:
    if all(isinstance(fact, str) for fact in facts):
        return await pipeline().analyse(request(text, *facts, **fields))
    return await pipeline().analyse(Request(outputs=(Output(0, text),), facts=tuple(facts), **fields))


def findings(report: dpe_pb2.Report) -> list[tuple[str, str]]:
    return [(found.mark, found.kind) for found in report.misattributions]


@pytest.mark.req("ATT-7")
@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("The Halden bridge opened in 1931 [1].", THREE),
        ("Ferries on the Skerry line run every 40 minutes [3].", NUMBERED),
        ("The Mirren tunnel was finished in 2004.² It cost 90 million euros.²", THREE),
        ("The Mirren tunnel cost 90 million euros【2†source】.", THREE),
        ("The bridge opened in 1931 [1] and the tunnel was finished in 2004 [2].", THREE),
        ("The Halden bridge is 412 metres long (source 1).", NUMBERED),
        ("According to [1], the Halden bridge opened in 1931.", THREE),
        ("They carry no cars [1].", LATE),
        ("The Halden bridge is 412 metres long [2].", LATE),
        ("The Halden bridge opened in 1931 [KB-2].", CODED),
        ("The Halden bridge opened in 1931 [3].", UNNUMBERED),  # what 3 means is not known
    ],
)  # fmt: skip
async def test_a_right_mark_raises_nothing(text, facts):
    """It is no value, no name, and accuses nobody."""
    report = await judged(text, facts)

    assert findings(report) == []
    assert (report.risk_level, report.fabrication_count) == (common_pb2.RISK_LEVEL_LOW, 0)


@pytest.mark.req("ATT-7")
@pytest.mark.parametrize(
    ("text", "facts", "mark", "held_by"),
    [
        ("The Halden bridge opened in 1931 [2].", THREE, "[2]", "f1"),
        ("Ferries on the Skerry line run every 40 minutes [1].", NUMBERED, "[1]", "f3"),
        ("The Mirren tunnel cost 90 million euros【3†source】.", THREE, "【3†source】", "f2"),
        ("The Halden bridge is 412 metres long.³", THREE, "³", "f1"),
        ("The Halden bridge is 412 metres long (2).", NUMBERED, "(2)", "f1"),
        ("The Halden bridge is 412 metres long [1].", LATE, "[1]", "m0s2"),
    ],
)
async def test_a_mark_at_the_wrong_source_is_a_finding(text, facts, mark, held_by):
    """The sentence is true, and its source is not the one that it names."""
    report = await judged(text, facts)

    assert [(each.mark, each.kind, each.held_by) for each in report.misattributions] == [
        (mark, "WRONG_SOURCE", held_by)
    ]
    assert "MISATTRIBUTION_FOUND" in report.floors
    assert report.risk_level >= common_pb2.RISK_LEVEL_MEDIUM


@pytest.mark.req("ATT-7")
async def test_marks_that_were_swapped_are_both_found():
    """Each stands behind its own part of the sentence."""
    text = "The Halden bridge opened in 1931 [2] and the Mirren tunnel was finished in 2004 [1]."

    assert findings(await judged(text, THREE)) == [("[2]", "WRONG_SOURCE"), ("[1]", "WRONG_SOURCE")]


@pytest.mark.req("ATT-7")
@pytest.mark.parametrize(
    ("text", "facts", "written"),
    [
        ("The Halden bridge is 412 metres long [7].", THREE, "[7]"),
        ("The Halden bridge is 412 metres long [7].", NUMBERED, "[7]"),
        ("The Halden bridge is 412 metres long [1](https://roads.test/halden/412).", THREE, "https://roads.test/halden/412"),
        ("The Halden bridge opened in 1931 (Source: Wikipedia).", THREE, "(Source: Wikipedia)"),
        ("The Halden bridge opened in 1931 [KB-9].", CODED, "[KB-9]"),
        ("Water boils at 100 degrees at sea level [1].", (), "[1]"),
        ("The rule is well known (https://www.nature.com/articles/s41586-023-01234).", (), "https://www.nature.com/articles/s41586-023-01234"),
        ("The effect was shown by Moreau et al. (2019).", (), "Moreau et al. (2019)"),
    ],
)  # fmt: skip
async def test_a_mark_that_points_nowhere_is_invented(text, facts, written):
    """A source that the call never gave; also where no source was given at all."""
    report = await judged(text, facts)

    assert written in report.fabricated_entities
    assert report.risk_level >= common_pb2.RISK_LEVEL_MEDIUM


@pytest.mark.req("ATT-7")
@pytest.mark.parametrize(
    "text",
    [
        "The documentation is at https://docs.python.org/3/library/asyncio.html.",
        "Open http://localhost:8080/health in a browser.",
        "Their site is https://www.python.org.",
        "You asked about https://shop.test/items/4711, which I cannot open.",
    ],
)
async def test_an_address_that_needs_no_source_is_not_invented(text):
    """The site of a project, an example, and a page that the caller named."""
    report = await judged(text, (), prompt="What is https://shop.test/items/4711 about?")

    assert report.risk_level == common_pb2.RISK_LEVEL_LOW


HOUSE = (
    "1. Term. The lease runs from 1 April 2024 to 31 March 2026.\n2. Rent. The rent is 900 euros per month.\n"
    "3. Pets. The tenant may keep one cat. Dogs need consent.\n4. Repairs. The landlord repairs the roof."
)


@pytest.mark.req("ATT-7")
@pytest.mark.parametrize(
    "text",
    [
        "The rent is 900 euros per month (clause 2).",
        "Under clause 4 the landlord repairs the roof.",
        "Section 3 says that dogs need consent.",
        "The lease runs for two years (§ 1).",
        "The tenant may keep one cat (page 12).",  # nobody knows what stands on page 12
    ],
)
async def test_a_right_part_raises_nothing(text):
    """The number of a clause is no value, and its sentence follows from it."""
    report = await judged(text, [HOUSE])

    assert findings(report) == []
    assert report.risk_level == common_pb2.RISK_LEVEL_LOW


@pytest.mark.req("ATT-7")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The rent is 900 euros per month (clause 3).", ("clause 3", "WRONG_SOURCE")),
        ("Under clause 2 the landlord repairs the roof.", ("clause 2", "WRONG_SOURCE")),
        ("The tenant may keep one cat (clause 9).", ("clause 9", "NO_SOURCE")),
        ("According to section 7, dogs need consent.", ("section 7", "NO_SOURCE")),
    ],
)
async def test_a_wrong_or_invented_part_is_a_finding(text, found):
    """Another clause holds the sentence, or the lease has no such clause."""
    report = await judged(text, [HOUSE])

    assert findings(report) == [found]
    assert report.risk_level >= common_pb2.RISK_LEVEL_MEDIUM
