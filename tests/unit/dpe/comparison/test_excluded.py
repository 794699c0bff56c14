"""Words that exclude each other, and other words for the same (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.text.wordlists import lines
from tests.support.dpe import pipeline, request

pytestmark = pytest.mark.req("DPE-3", "ATT-5")


@pytest.mark.parametrize(
    ("source", "answer", "stated"),
    [
        ("The report is published monthly.", "The report is published weekly.", "monthly"),
        ("The discount applies to domestic flights.", "The discount applies to international flights.", "domestic"),
        ("Prices are net of VAT.", "Prices include VAT.", "net of VAT"),
        ("The van collects glass on weekdays only.", "The van collects glass, also at weekends.", "weekdays"),
        (
            "A tour must be booked by noon on the day before.",
            "A tour must be booked by noon on the same day.",
            "on the day before",
        ),
        ("The door opens automatically.", "The door has to be opened by hand.", "automatically"),
        ("Fares are paid in cash on the bus.", "Fares are paid by card on the bus.", "in cash"),
        ("Wear cotton gloves when you touch the prints.", "Wear leather gloves when you touch the prints.", "cotton"),
        ("Turn the wheel clockwise to close it.", "Turn the wheel anticlockwise to close it.", "clockwise"),
    ],
)
async def test_another_member_of_a_set_is_found(source, answer, stated):
    """In the place of the one that the closest sentence of the sources has."""
    assert ("kind", stated) in await _found(source, answer)


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("The magazine appears monthly. Subscribers get a weekly newsletter.", "Subscribers get a newsletter every week."),
        ("Parking costs 2 EUR by card and 3 EUR in cash.", "If you pay in cash, parking costs 3 EUR."),
        ("The report is published monthly.", "The report is not published weekly."),
        ("The report is published monthly.", "A new report comes out every month."),
        ("Staff are paid monthly and trained quarterly.", "Staff get training every three months."),
        ("Meetings take place fortnightly.", "Meetings are every two weeks."),
        ("The wooden bridge was replaced by a steel bridge.", "A steel bridge replaced the wooden one."),
    ],
)  # fmt: skip
async def test_another_word_for_the_same_and_what_another_sentence_has_are_left(source, answer):
    """A member that stands anywhere in the sources, a denial and another form of one's own member are left."""
    assert not await _found(source, answer)


def test_no_word_is_in_a_set_twice():
    """A word that were two members would exclude itself."""
    for line in lines("exclusive.txt"):
        words = [word for member in line.split("|") for word in member.split("=")]
        assert len(words) == len(set(words)) > 1, line


async def _found(source: str, answer: str) -> set[tuple[str, str]]:
    report = await pipeline().analyse(request(answer, source, query="What is the rule?"))
    fabricated = {("", text) for claim in report.claims for text in claim.fabrications}
    return fabricated | {(each.slot, each.source_value) for claim in report.claims for each in claim.distortions}
