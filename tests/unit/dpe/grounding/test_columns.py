"""Columns, logs and terms: what an answer makes of the figures and times of a source (SPEC-005 §5.2, ATT-6)."""

from __future__ import annotations

import pytest

from bench.everyday import is_clean
from interlock.dpe.document import Fact
from interlock.dpe.grounding.tables.rows import of_csv
from interlock.dpe.request import Output, Request
from tests.support.dpe import pipeline

pytestmark = pytest.mark.req("DPE-3", "ATT-6")

QUARTER = "month,revenue,costs\nJan,120,80\nFeb,135,90\nMar,150,95"
STAY = "Hotel Aurora: double room 1,450 NOK a night. The airport train costs 252 NOK."

LOG = "2026-05-01T12:00:01Z INFO start\n2026-05-01T12:00:05Z WARN retry 1 of 3 host=db1\n2026-05-01T12:00:13Z INFO exit code=2"
INVOICE = (
    "Invoice 2026-114, dated 4 May 2026. 12 licences at 45.00 EUR, setup 150.00 EUR, VAT 131.10 EUR, total 821.10 EUR."
)
EVENT = "Join us on Friday, 12 June 2026, 18:30 at the Old Mill. Tickets 15 pounds."
MACHINE = "AeroBrew 3: 1.2 l tank, 1,450 W, brews 8 cups in 6 minutes."
NOTICE = "Notice is three months to the end of a month."


def test_a_month_of_a_column_is_read_in_full():
    """And a weekday. In a column of other things the same letters are what they are."""
    assert [row.fields[0].value for row in of_csv("month,n\nJan,1\nSept,2\nMay,3")] == ["January", "September", "May"]
    assert [row.fields[0].value for row in of_csv("day,n\nMon,1\nThurs,2")] == ["Monday", "Thurs"]
    assert [row.fields[0].value for row in of_csv("name,n\nJan,1\nSun,2")] == ["Jan", "Sun"]


async def _judged(source: str, query: str, text: str):
    return await pipeline().analyse(Request(outputs=(Output(0, text),), facts=(Fact("f", source, 0.5),), query=query))


@pytest.mark.models
@pytest.mark.parametrize(
    ("source", "text"),
    [
        (LOG, "It started at 12:00:01 UTC and exited with code 2 at 12:00:13, twelve seconds after the start."),
        (QUARTER, "Costs came to 265."),
        (QUARTER, "Revenue grew from 120 in January to 150 in March, 405 in all."),
        (QUARTER, "Revenue was 405. Costs were 265. The profit was 140."),
        (QUARTER, "Average costs were 88.3."),
        (QUARTER, "Revenue in February was 135."),
        (STAY, "Two nights cost 2,900 NOK, and the train for two people both ways 1,008 NOK: 3,908 NOK in total."),
    ],
)
async def test_sums_and_means_of_what_is_listed_are_left_alone(source, text):
    """They are calculated, not invented."""
    assert is_clean(await _judged(source, "Summarise it.", text))


@pytest.mark.models
@pytest.mark.parametrize(
    ("source", "text"),
    [
        (LOG, "It exited twenty seconds after the start."),
        (LOG, "It started at 13:30."),
        (QUARTER, "Revenue in February was 120."),
        (QUARTER, "Revenue in March was 405."),
        (QUARTER, "Total revenue was 415."),
        (QUARTER, "Average costs were 91."),
        (STAY, "A night in a double room costs 1,540 NOK."),
    ],
)
async def test_figures_of_another_row_and_wrong_sums_are_not(source, text):
    """A month has its own row, and a sum one value."""
    assert not is_clean(await _judged(source, "Summarise it.", text))


@pytest.mark.models
async def test_months_before_the_end_of_one_end_with_another():
    """Three months before the end of September is 30 June, and not the 20th."""
    query = "I want to leave at the end of September. When must I give notice?"
    said = "With three months' notice to the end of a month, you have to give notice by {} June."

    assert is_clean(await _judged(NOTICE, query, said.format(30)))
    assert not is_clean(await _judged(NOTICE, query, said.format(20)))


@pytest.mark.models
@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        (
            INVOICE,
            '{"date": "2026-05-04", "vat": 131.1, "total": 821.1}',
            '{"date": "2026-05-04", "vat": 131.1, "total": 812.1}',
        ),
        (
            EVENT,
            '{"start": "2026-06-12T18:30:00", "price_gbp": 15}',
            '{"start": "2026-06-12T19:30:00", "price_gbp": 15}',
        ),
        (MACHINE, '{"tank_l": 1.2, "power_w": 1450, "cups": 8}', '{"tank_l": 1.2, "power_w": 1540, "cups": 8}'),
        (MACHINE, '{"cups": 8, "minutes": 6}', '{"cups": 6, "minutes": 6}'),
    ],
)
async def test_fields_that_were_extracted_are_read_with_their_keys(source, right, wrong):
    """A key has the unit, a time stamp a day and an hour that the source states apart."""
    assert is_clean(await _judged(source, "Extract the fields as JSON.", right))
    assert not is_clean(await _judged(source, "Extract the fields as JSON.", wrong))


@pytest.mark.models
async def test_a_rating_that_was_asked_for_is_made():
    """One that was not asked for is a figure like others."""
    review, said = (
        "The room was clean, but the wifi kept dropping.",
        "3 out of 5: the room was clean, but the wifi kept dropping.",
    )

    assert is_clean(await _judged(review, "Rate it on a scale from 1 to 5.", said))
    assert not is_clean(await _judged(review, "Summarise it.", said))


CREWS = (
    "| Rower | Club | Spring km | Boats |\n|---|---|---|---|\n| Ilse Moor | Elbe | 310 | 2 |\n| Jan Ritter | Weser | 275 | 3 |\n"
    "| Ola Sand | Elbe | 190 | 4 |"
)
DOSES = '{"trial": "LARK", "arms": [{"name": "Fern", "dose_mg": 15, "n": 40}, {"name": "Moss", "dose_mg": 30, "n": 42}, {"name": "dummy", "dose_mg": 0, "n": 41}]}'


@pytest.mark.models
@pytest.mark.parametrize(
    ("source", "query", "faithful", "bent"),
    [
        (CREWS, "Tell me about Jan Ritter.", "Jan Ritter rows for Weser. The total was 275 spring km.", "Jan Ritter rows for Weser. The total was 310 spring km."),
        (CREWS, "We need four boats. Does Jan Ritter do?", "Jan Ritter falls one boat short.", "Jan Ritter has 4 boats."),
        (DOSES, "Who slept badly?", "Nobody taking 15 mg or the dummy slept badly.", "The dummy has a dose of 15 mg."),
    ],
)  # fmt: skip
async def test_a_row_of_its_own_and_a_difference_are_no_bent_cells(source, query, faithful, bent):
    """A total of the row that was spoken of, what is lacking, and two arms that are named together."""
    for text, clean in ((faithful, True), (bent, False)):
        report = await _judged(source, query, text)
        assert any(one.distortions for one in report.claims) is not clean, text
