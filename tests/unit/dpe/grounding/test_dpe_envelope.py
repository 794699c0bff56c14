"""The facts as evidence: all of them, whole (SPEC-003)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from nupunkt import sent_spans

from interlock.domain.errors import Kind, Refused
from interlock.dpe.document import Fact
from interlock.dpe.grounding.envelope import Envelope, check_facts, cut, etag, quality_tier
from tests.support.dpe import WordInference

TWIN = WordInference()


def facts(*texts: str) -> tuple[Fact, ...]:
    return tuple(Fact(f"f{n}", text, 0.5) for n, text in enumerate(texts, 1))


async def envelope(*texts: str, limit: int = 50) -> Envelope:
    made = cut(facts(*texts), limit=limit, count=TWIN.tokens, split=sent_spans)
    rows = await TWIN.embed([*(unit.text for unit in made.units), *made.texts])
    return Envelope(made, rows[: len(made.units)], rows[len(made.units) :])


@pytest.mark.req("DPE-2")
async def test_a_fact_is_cut_into_sentences_and_nothing_is_left_out():
    """Units hold every word of every fact, in order, and none is longer than the limit."""
    long = " ".join(f"w{n}" for n in range(130))
    found = (await envelope("One is here. Two is there.", f"- item\n- {long}")).cut.units

    assert [unit.fact for unit in found] == [0, 0, 1, 1, 1, 1]
    assert " ".join(unit.text for unit in found) == f"One is here. Two is there. item {long}"
    assert max(unit.tokens for unit in found) <= 50


@pytest.mark.req("DPE-2")
async def test_hidden_characters_in_facts_change_nothing():
    """Facts are normalised like answers, so that both sides compare."""
    plain, hidden = await envelope("The Eiffel Tower."), await envelope("The Eif\u200bfel Tower.")

    assert [unit.text for unit in plain.cut.units] == [unit.text for unit in hidden.cut.units]


@pytest.mark.req("DPE-2")
async def test_the_nearest_unit_comes_first():
    """Retrieval is by cosine similarity."""
    found = await envelope("Paris is big.", "The tower is tall.", "Bread is cheap.")
    (best, similarity), *_ = found.nearest((await TWIN.embed(["The tower is very tall."]))[0])

    assert found.cut.units[best].text == "The tower is tall."
    assert 0.5 < similarity <= 1.0


@pytest.mark.req("DPE-2")
async def test_a_window_crosses_facts_and_stays_short():
    """The premise by words is the shortest run that shares most of them."""
    found = await envelope("Bread is cheap.", "The tower is tall.", "It stands in Paris.", "Milk is white.")

    assert found.window("tall tower Paris", 50) == "The tower is tall. It stands in Paris."
    assert found.window("tall tower Paris", 4) == "The tower is tall."
    assert found.window("zebra", 50) == ""


@pytest.mark.req("DPE-2")
async def test_collected_units_stand_in_their_order():
    """Together they read as the envelope does, and the nearest is in even when it alone is too long."""
    found = await envelope("One is here now.", "Two is there.", "Three.")

    assert found.collected([2, 0, 1], 5) == "One is here now. Three."
    assert found.collected([0, 1], 2) == "One is here now."


@pytest.mark.parametrize(
    ("fact", "reason"),
    [
        (Fact("", "text", 0.5), "FACT_ID_INVALID"),
        (Fact("x" * 129, "text", 0.5), "FACT_ID_INVALID"),
        (Fact("f1", "", 0.5), "FACT_CONTENT_INVALID"),
        (Fact("f1", " \n", 0.5), "FACT_CONTENT_INVALID"),
        (Fact("f1", "x" * 262_145, 0.5), "FACT_CONTENT_INVALID"),
        (Fact("f1", "text", math.nan), "FACT_IMPORTANCE_INVALID"),
        (Fact("f1", "text", 1.01), "FACT_IMPORTANCE_INVALID"),
        (Fact("f1", "text", -0.01), "FACT_IMPORTANCE_INVALID"),
    ],
)
def test_facts_outside_the_interface_are_refused(fact, reason):
    """A-40 and the bounds of the proto."""
    with pytest.raises(Refused) as refused:
        check_facts([fact], max_facts=5)

    assert (refused.value.kind, refused.value.reason) == (Kind.INVALID, reason)


def test_too_many_or_equal_facts_are_refused():
    """None is dropped to make the rest fit, and an id names one fact."""
    with pytest.raises(Refused, match="FACT_LIMIT_EXCEEDED"):
        check_facts(facts("a", "b", "c"), max_facts=2)
    with pytest.raises(Refused, match="DUPLICATE_FACT_ID"):
        check_facts([Fact("f", "a", 0.5), Fact("f", "b", 0.5)], max_facts=2)


@pytest.mark.req("DPE-20")
def test_the_etag_is_of_the_set_of_facts():
    """Order does not matter; an id, a text and a weight each do."""
    one, two = Fact("a", "x", 0.5), Fact("b", "y", 0.5)
    found = etag([one, two])

    assert found == etag([two, one])
    assert found.startswith("sha256:")
    others = ([one], [one, Fact("b", "z", 0.5)], [one, Fact("c", "y", 0.5)], [one, Fact("b", "y", 0.6)])
    assert len({found, *map(etag, others)}) == 5


@pytest.mark.parametrize(
    ("count", "relevance", "tier"),
    [(0, 1.0, "D"), (3, 0.0, "C"), (3, 0.39, "C"), (3, 0.40, "B"), (3, 0.70, "A"), (3, 0.90, "S"), (3, -1.0, "C"), (3, 2.0, "S")],
)  # fmt: skip
def test_quality_tiers(count, relevance, tier):
    """Coverage is full, saturation unknown: relevance decides, and nothing given is D."""
    assert quality_tier(facts=count, relevance=relevance) == tier


async def test_without_units_there_is_nothing_to_find():
    """An envelope of signs alone is empty evidence, not an error."""
    found = await envelope("!!!")

    assert found.cut.units == ()
    assert np.asarray(found.vectors).shape[0] == 0
