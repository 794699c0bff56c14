"""Counts of another size, and counts that follow from others (SPEC-005 §5.2)."""

from __future__ import annotations

import pytest

from interlock.dpe.values.reckoning.counted import settled_counts
from tests.support.dpe import pipeline, request

pytestmark = pytest.mark.req("DPE-3", "ATT-5")

RULES = "The ticket is valid for two hours. Each family may bring one dog. A group needs at least six people. Two bags are free."


@pytest.mark.parametrize(
    ("source", "answer", "told"),
    [
        (RULES, "Each family may bring two dogs.", "one"),
        (RULES, "A group needs at least two people.", "six"),
        ("The committee has nine members and meets in two rooms.", "The committee has seven members.", "nine"),
        ("Each player gets seven cards. The dealer keeps three cards.", "Each player gets five cards.", "seven"),
        ("The recipe needs two onions and four carrots.", "For the recipe you need three onions.", "two"),
    ],
)
async def test_another_count_of_the_same_thing_is_found(source, answer, told):
    """Also where the number stands elsewhere in the sources, with another noun."""
    assert ("count", told) in await _found(source, answer)


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (RULES, "You can bring one dog per family."),
        (RULES, "A family with two dogs may not bring both."),
        (RULES, "You have two dogs; only one may come along."),
        ("Team A has 4 players, team B has 5 players.", "Together the teams have nine players."),
        ("The box contains 12 eggs. Two eggs are broken.", "Ten eggs in the box are fine."),
        ("Each workshop has two trainers. There are four workshops.", "That makes eight trainers for the four workshops."),
        ("The train has 8 coaches; 2 coaches are first class.", "Six coaches are second class."),
    ],
)  # fmt: skip
async def test_a_count_that_follows_and_one_of_the_users_own_are_left(source, answer):
    """Sums, what is left, so many of each; what is denied or the user's is no count of the sources."""
    assert "count" not in {slot for slot, _ in await _found(source, answer)}


async def test_what_the_user_asked_for_and_a_tool_did_are_no_counts_of_the_sources():
    """*Scale it to ten replicas*: the runbook's bound of twelve is another thing, and so is what the tool's answer has."""
    bound = "Never scale settle to more than 12 replicas."
    asked = await _found(bound, "Done, settle is scaling to 10 replicas.", "Scale settle to 10 replicas.")
    done = await _found(f'{bound}\n\n{{"scaled": "10 replicas"}}', "Done, settle is scaling to 10 replicas.")

    assert "count" not in {slot for slot, _ in asked | done}


@pytest.mark.parametrize(
    ("claim", "sources", "settled"),
    [
        ("15 applicants were men.", ["Of 40 applicants, 25 were women."], {"15"}),
        ("14 applicants were men.", ["Of 40 applicants, 25 were women."], set()),
        ("There are nine players.", ["4 players came.", "5 players left."], {"nine"}),
        ("There are one player.", ["4 players came.", "5 players left."], {"one"}),
        ("It has seven members.", ["It has nine members and two rooms."], set()),
        ("It lasts three hours.", ["It lasts two hours.", "Then one hour is left."], set()),
    ],
)
def test_which_counts_follow(claim, sources, settled):
    """A number of another noun is no part of what is counted, and a quantity with a unit is no count."""
    assert settled_counts(claim, sources) == settled


async def _found(source: str, answer: str, query: str = "What is the rule?") -> set[tuple[str, str]]:
    report = await pipeline().analyse(request(answer, source, query=query))
    return {(each.slot, each.source_value) for claim in report.claims for each in claim.distortions}
