"""Partial credit (SPEC-012 §9.2): which passages cover a sub-query, and what covers nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from interlock.dpe.inference.port import EMBEDDING_WIDTH
from interlock.dpe.quality.coverage import AgentAnswer, SubQuery, admits, as_completeness, coverage, score
from interlock.dpe.quality.profile import EmbeddedProfile, TextProfile
from interlock.dpe.quality.queries import Need
from tests.support.dpe import claim

LEGAL = SubQuery("Legal analysis", (Need("Legal analysis", "legal-analysis"),))
MONEY = SubQuery("Financial analysis", (Need("Financial analysis", "financial-analysis"),))
TWO = SubQuery("Sales and debt", (Need("Sales", "sales"), Need("debt", "debt")))
NAMED = SubQuery("Height of the tower", (Need("Height of the tower", "height-tower"),))


def row(*values: float) -> list[float]:
    """A direction: how much of it is each need's, the rest nobody's."""
    rest = max(0.0, 1.0 - sum(value * value for value in values)) ** 0.5
    return [*values, *[0.0] * (EMBEDDING_WIDTH - len(values) - 1), rest]


def said(
    *sentences: tuple[str, list[float]], name: str = "a", asked: str = "", specificity: float = 0.5
) -> AgentAnswer:
    texts = tuple(text for text, _ in sentences)
    claims = tuple(
        replace(claim(text, number, specificity=specificity), sentence_index=number - 1)
        for number, text in enumerate(texts, 1)
    )
    rows = np.array([direction for _, direction in sentences], dtype=np.float32).reshape(len(texts), EMBEDDING_WIDTH)
    none = np.zeros((0, EMBEDDING_WIDTH), dtype=np.float32)
    return AgentAnswer(
        name,
        EmbeddedProfile(TextProfile(texts, claims, (), frozenset(), None, ()), rows, rows, none, none, none),
        asked,
    )


def found(parts: list[SubQuery], *answers: AgentAnswer, method: str = "nli"):
    needs = sum(len(part.needs) for part in parts)
    vectors = np.eye(needs, EMBEDDING_WIDTH, dtype=np.float32)
    return coverage(parts, vectors, answers, method=method)


@pytest.mark.req("DPE-19")
@pytest.mark.parametrize(
    "sentence",
    [
        "A detailed breakdown of revenue, margins and debt could not be obtained.",
        "I could not find any passenger numbers for the Lyon metro.",
        "No statistics of the operator were available.",
        "We were unable to verify the figures.",
        "The figures for 2024 are not yet available.",
        "Pricing is beyond the scope of this report.",
        "Taxes are not covered here.",
        "It could not be determined who owns the land.",
        "The effect on wages remains to be assessed.",
        "I have no information about its debt.",
        "I wasn't given it and didn't find it, so I can't say what it costs.",
    ],
)
def test_sentences_that_only_say_what_is_missing(sentence):
    """By what was not found, not available, not covered."""
    assert admits(sentence)


@pytest.mark.req("DPE-19")
@pytest.mark.parametrize(
    "sentence",
    [
        "The licence is not available in Norway.",
        "The company could not pay its debt in May.",
        "No dividend was paid for 2024.",
        "Three of the ten samples contained no lead.",
        "The figures rose by 12 percent.",
        "Passengers cannot open the doors between stations.",
        "The court found that the records had been destroyed.",
    ],
)
def test_sentences_that_tell_something(sentence):
    """A no and a not are also news."""
    assert not admits(sentence)


@pytest.mark.req("DPE-19")
def test_a_sub_query_is_covered_as_far_as_its_needs_are():
    """Both, one, none; what is open is named."""
    sales, debt = ("Sales were 5.", row(0.8, 0.0)), ("Debt is 3.", row(0.0, 0.8))
    for sentences, credit, uncovered in (
        ((sales, debt), 1.0, ()), ((sales,), 0.5, ("debt",)), ((debt,), 0.5, ("sales",)), ((), 0.0, ("sales", "debt")),
    ):  # fmt: skip
        [one] = found([TWO], said(*sentences))
        assert (one.credit, one.uncovered, one.source_id) == (credit, uncovered, "a" if credit else "")


@pytest.mark.req("DPE-19")
def test_what_is_missing_covers_nothing_and_makes_the_rest_partial():
    """Alone it is no coverage, however near it is; beside an answer it says that the answer is not whole."""
    tells, lacks = ("The tower is 330 m.", row(0.7)), ("I could not find its height.", row(0.9))
    [alone], [beside], [whole] = (
        found([NAMED], said(lacks)),
        found([NAMED], said(tells, lacks)),
        found([NAMED], said(tells)),
    )

    assert (alone.credit, alone.uncovered) == (0.0, ("height-tower",))
    assert (beside.credit, beside.uncovered) == (0.5, ("height-tower-detail",))
    assert whole.credit == 1.0


@pytest.mark.req("DPE-19")
def test_a_field_is_covered_by_the_passages_nearest_to_it():
    """Two sentences that go into detail; they are far from the words of the sub-query, and nearer than to any other."""
    law = [("Clause 9 ends in May.", row(0.25, 0.1)), ("Two suits are pending.", row(0.2, 0.1))]
    legal, money = found([LEGAL, MONEY], said(*law, name="l"))

    assert (legal.credit, legal.source_id, legal.uncovered) == (1.0, "l", ())
    assert (money.credit, money.source_id, money.uncovered) == (0.0, "", ("financial-analysis",))


@pytest.mark.req("DPE-19")
def test_a_field_without_detail_is_covered_in_part():
    """One sentence, or several that name and count nothing; four claims are detail enough."""
    vague = [("It looks healthy.", row(0.0, 0.3))]
    for count, specificity, credit in ((1, 0.5, 0.5), (2, 0.5, 1.0), (3, 0.1, 0.5), (4, 0.1, 1.0)):
        _, money = found([LEGAL, MONEY], said(*vague * count, specificity=specificity))
        assert (money.credit, money.uncovered) == (credit, () if credit == 1.0 else ("financial-detail",))


@pytest.mark.req("DPE-19")
def test_a_field_of_which_something_is_missing_is_covered_in_part():
    """However much else is told of it."""
    told = [("Revenue was 5.", row(0.0, 0.3)), ("Debt is 3.", row(0.0, 0.3)), ("The margin is 2.", row(0.0, 0.3))]
    _, money = found([LEGAL, MONEY], said(*told, ("No figures for 2023 are available.", row(0.0, 0.3))))

    assert (money.credit, money.uncovered) == (0.5, ("financial-detail",))


@pytest.mark.req("DPE-19")
def test_an_answer_that_was_asked_for_a_field_is_taken_for_it_sooner():
    """Nearer than nothing, and not much nearer to another; without the name of its sub-query it is not taken."""
    faint = [("Item 1 is fine.", row(0.02, 0.08)), ("Item 2 is fine.", row(0.02, 0.08))]
    other = [("Clause 9 ends.", row(0.3, 0.08)), ("Clause 8 ends.", row(0.3, 0.08))]
    assert found([LEGAL, MONEY], said(*faint))[1].credit == 0.0
    assert found([LEGAL, MONEY], said(*faint, asked="financial  Analysis"))[1].credit == 1.0
    assert found([LEGAL, MONEY], said(*other, asked="Financial analysis"))[1].credit == 0.0


@pytest.mark.req("DPE-19")
def test_the_score_is_the_mean_credit():
    """1.0, 0.5 and 1.0 are the 0.83 of §9.2, and MOSTLY_COMPLETE."""
    parts = [NAMED, TWO, SubQuery("Width", (Need("Width", "width"),))]
    answers = said(("330 m.", row(0.8)), ("Sales were 5.", row(0.0, 0.8)), ("40 m.", row(0.0, 0.0, 0.0, 0.8)))
    covered = found(parts, answers)

    assert score(covered) == pytest.approx(2.5 / 3)
    assert round(score(covered), 2) == 0.83
    assert (as_completeness(covered).level, len(as_completeness(covered).needs)) == ("MOSTLY_COMPLETE", 4)
    assert score(()) is None


@pytest.mark.req("DPE-19")
def test_the_source_is_the_answer_that_covers_best():
    """The nearer of two."""
    [one] = found([NAMED], said(("It is tall.", row(0.5)), name="b"), said(("It is 330 m tall.", row(0.9)), name="c"))

    assert one.source_id == "c"


@pytest.mark.req("DPE-19")
@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("Financial analysis", True), ("Market research", True), ("Legal due-diligence review", True), ("analysis", False),
        ("Analysis of the debt of Norvik Software", False), ("What is the height of the tower?", False),
    ],
)  # fmt: skip
def test_which_sub_queries_name_a_field(text, field):
    """A field of work, and no detail of it."""
    assert SubQuery(text, (Need(text, "x"),)).is_field is field
