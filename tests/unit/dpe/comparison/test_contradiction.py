"""Contradictions within one answer (SPEC-005 §5.4)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.contradiction import contradictions, neighbours, probabilities
from interlock.dpe.document import Entity
from tests.support.dpe import WordInference, claim


def names(*texts: str) -> tuple[Entity, ...]:
    return tuple(Entity(text, "LOC", 0, len(text)) for text in texts)


async def compare(*claims):
    twin = WordInference()
    pairs = neighbours(claims, await twin.embed([c.text for c in claims]))
    return contradictions(claims, pairs, await probabilities(claims, pairs, twin))


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("one", "other", "method", "severity"),
    [
        ("Revenue was 4.2 million dollars.", "Revenue was 5.1 million dollars.", "numbers", "CRITICAL"),
        ("The tower opened in 1889.", "The tower opened in 1899.", "dates", "HIGH"),
    ],
)
async def test_values_that_differ_are_contradictions(one, other, method, severity):
    """Same words, other value: no model is needed to see it."""
    found = await compare(claim(one, 1), claim(other, 2))

    assert [(c.claim_id, c.other_claim_id, c.method, c.severity) for c in found] == [("c1", "c2", method, severity)]
    assert found[0].probability >= 0.75


@pytest.mark.req("DPE-3")
async def test_a_negation_is_a_contradiction():
    """The plan was approved, and it was not."""
    found = await compare(claim("the plan was approved", 1), claim("the plan was not approved", 2))

    assert len(found) == 1
    assert found[0].method in {"nli", "negation"}


@pytest.mark.req("DPE-3")
async def test_other_subjects_do_not_contradict_each_other():
    """France has 68 million people and Germany 84 million: the pair is not even shown to the model."""
    france = claim("France has 68 million people.", 1, *names("France"))
    germany = claim("Germany has 84 million people.", 2, *names("Germany"))
    again = claim("France has 84 million people.", 3, *names("France"))
    vectors = await WordInference().embed([c.text for c in (france, germany, again)])

    assert neighbours([france, germany, again], vectors) == [(0, 2)]


@pytest.mark.req("DPE-3")
async def test_other_times_do_not_contradict_each_other():
    """This year's figure and last year's, however sure the model is."""
    claims = [claim("Revenue was $4M in 2023.", 1), claim("Revenue was $5M in 2024.", 2)]

    assert contradictions(claims, [(0, 1)], [0.99]) == []
    assert len(contradictions([claims[0], claim("Revenue was not $4M in 2023.", 2)], [(0, 1)], [0.99])) == 1


@pytest.mark.req("DPE-3")
async def test_claims_that_agree_are_left_alone():
    """The same value written otherwise is no contradiction."""
    assert await compare(claim("Revenue was $4.2M.", 1), claim("Revenue was 4.2 million dollars.", 2)) == []


async def test_one_claim_contradicts_nothing():
    """There is no pair."""
    assert await compare(claim("Alone.")) == []
    assert await compare() == []
