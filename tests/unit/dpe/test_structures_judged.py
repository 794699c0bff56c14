"""Answers with a structure are judged by what their cells say, and a wrong cell is found (SPEC-005 §5)."""

from __future__ import annotations

import pytest

from interlock.dpe.document import Fact
from interlock.dpe.request import Output, Request
from tests.support.dpe import pipeline

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
CHART = (
    'workers: 4\nlogging:\n  level: warn\nlimits:\n  queue_depth: 50\n  open_files: 900\nflags:\n  trial_mode: "false"'
)
LOANS = (
    "SELECT * FROM loans;\n\n code | reader    | shelf | due        | renewed\n------+-----------+-------+------------+---------\n"
    " L-41 | Ida Brandt | north | 2025-03-04 | t\n L-42 | Jo Sauer   | south | 2025-03-09 | f\n L-43 | Mo Keller  | north |            | f"
)


async def judged(source: str, answer: str, query: str = "") -> tuple[int, list[str]]:
    found = await pipeline().analyse(
        Request(outputs=(Output(0, answer),), facts=(Fact("f1", source, 0.5),), query=query)
    )
    return found.risk_level, list(found.floors)


@pytest.mark.parametrize(
    ("answer", "bent"),
    [
        (
            "LOGGING_LEVEL=warn\nQUEUE_DEPTH=50\nOPEN_FILES=900\nTRIAL_MODE=false",
            "LOGGING_LEVEL=warn\nQUEUE_DEPTH=50\nOPEN_FILES=900\nTRIAL_MODE=true",
        ),
    ],
)
async def test_settings_copied_into_another_form(answer, bent):
    """A flag that is false denies nothing; one that is turned is found."""
    assert (await judged(CHART, answer))[0] == 1
    assert (await judged(CHART, bent))[0] > 1


async def test_rows_of_an_insert():
    """Keywords are no names and NULL is no denial; a neighbour's cell is found."""
    head = "INSERT INTO due_list (code, reader, shelf, due) VALUES\n"
    rows = " ('L-41', 'Ida Brandt', 'north', '2025-03-04'),\n ('L-42', 'Jo Sauer', '{}', '2025-03-09');"

    assert (await judged(LOANS, head + rows.format("south")))[0] == 1
    assert (await judged(LOANS, head + rows.format("north")))[0] > 1
