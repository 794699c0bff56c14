"""Attribution: embeddings propose, NLI and values decide (SPEC-005 §4)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nupunkt import sent_spans

from interlock.dpe.document import Fact, NliScores
from interlock.dpe.grounding.attribution import (
    NOTHING,
    Attribution,
    ClaimEvidence,
    attribute,
    evidence,
    limits,
)
from interlock.dpe.grounding.envelope import Envelope, cut
from tests.support.dpe import WordInference, claim


def found(entailment: float = 0.0, similarity: float = 0.0) -> ClaimEvidence:
    scores = NliScores(entailment, 1.0 - entailment, 0.0)
    return ClaimEvidence("f1", similarity, "source", scores, "source", scores)


async def weigh(
    text: str, *facts: str, titles=(), query: str = "", sentence: str = "", twin: WordInference | None = None
) -> ClaimEvidence:
    twin = twin or WordInference()
    made = cut(
        tuple(Fact(f"f{n}", fact, 0.5) for n, fact in enumerate(facts, 1)),
        limit=50,
        count=twin.tokens,
        split=sent_spans,
    )
    rows = await twin.embed([*(unit.text for unit in made.units), *made.texts])
    envelope = Envelope(made, rows[: len(made.units)], rows[len(made.units) :])
    one = claim(text)
    said = {"c1": sentence or text}
    found = await evidence([one], await twin.embed([text]), envelope, twin, titles=titles, query=query, sentences=said)
    return found["c1"]


@pytest.mark.req("DPE-2")
@pytest.mark.parametrize(
    ("entailment", "similarity", "specificity", "flawed", "expected"),
    [
        (0.50, 0.10, 0.9, False, Attribution.CONTEXT_GROUNDED),
        (0.99, 0.99, 0.9, True, Attribution.MIXED),
        (0.49, 0.10, 0.9, False, Attribution.MIXED),
        (0.24, 0.60, 0.9, False, Attribution.MIXED),
        (0.24, 0.59, 0.30, False, Attribution.UNVERIFIABLE),
        (0.24, 0.59, 0.29, False, Attribution.PARAMETRIC),
    ],
)
def test_nli_and_values_decide(entailment, similarity, specificity, flawed, expected):
    """Entailed and without a flaw is grounded; close but not following is mixed."""
    one = claim("text", specificity=specificity)

    assert attribute(one, found(entailment, similarity), flawed=flawed, method="nli") is expected


@pytest.mark.req("DPE-2")
@pytest.mark.parametrize(("contradiction", "expected"), [(0.75, "CONTEXT_GROUNDED"), (0.76, "MIXED")])
def test_what_its_best_premise_denies_is_not_grounded(contradiction, expected):
    """However high its words lift the support."""
    denied = replace(found(0.6), plain_scores=NliScores(0.2, 0.8 - contradiction, contradiction))

    assert attribute(claim("text"), denied, flawed=False, method="nli").name == expected


@pytest.mark.req("DPE-2")
@pytest.mark.parametrize(
    ("similarity", "specificity", "expected"),
    [
        (0.75, 0.9, Attribution.CONTEXT_GROUNDED),
        (0.74, 0.9, Attribution.MIXED),
        (0.60, 0.9, Attribution.MIXED),
        (0.59, 0.30, Attribution.UNVERIFIABLE),
        (0.59, 0.29, Attribution.PARAMETRIC),
    ],
)
def test_the_plain_reading_decides_by_cosine(similarity, specificity, expected):
    """§4.3 as printed, selected by dpe_attribution=cosine."""
    one = claim("text", specificity=specificity)

    assert attribute(one, found(0.0, similarity), flawed=True, method="cosine") is expected


@pytest.mark.req("DPE-2")
async def test_without_facts_nothing_is_entailed():
    """Fail closed: what rests on nothing is not supported."""
    assert await weigh("Paris is big.") is NOTHING
    assert attribute(claim("x", specificity=0.1), NOTHING, flawed=False, method="nli") is Attribution.PARAMETRIC
    assert attribute(claim("x", specificity=0.9), NOTHING, flawed=False, method="nli") is Attribution.UNVERIFIABLE


@pytest.mark.req("DPE-2")
async def test_the_best_fact_is_named():
    """The report says which fact a claim rests on, and how alike they are."""
    got = await weigh("The tower is tall.", "Bread is cheap.", "The tower is tall.")

    assert (got.fact_id, got.source) == ("f2", "The tower is tall.")
    assert got.similarity == pytest.approx(1.0)
    assert got.plain_scores.entailment == pytest.approx(1.0)
    assert got.scores.entailment > 0.95


@pytest.mark.req("DPE-2")
async def test_what_two_facts_support_together_is_supported():
    """No single fact entails the claim; both in one premise do."""
    got = await weigh("alpha beta gamma delta", "alpha beta", "milk bread", "gamma delta")

    assert got.source_scores.entailment == pytest.approx(0.5)
    assert got.plain_scores.entailment == pytest.approx(1.0)


@pytest.mark.req("DPE-2")
async def test_no_premise_is_judged_twice():
    """With one fact all four premises are the same, and NLI runs once."""
    twin = WordInference()
    await weigh("Tall is the tower.", "The tower is tall.", twin=twin)

    assert len(twin.pairs) == 1


@pytest.mark.req("DPE-2")
async def test_a_copy_of_a_sentence_needs_no_model():
    """It is supported by that sentence, and nothing is scored."""
    twin = WordInference()
    got = await weigh("the tower is TALL", "Milk is white.", "The tower is tall.", twin=twin)

    assert twin.pairs == []
    assert got.copied
    assert (got.source, got.scores.entailment) == ("The tower is tall.", 1.0)


@pytest.mark.req("DPE-2")
async def test_what_entails_the_sentence_entails_the_claim_cut_from_it():
    """The claim lost its subject in the cut; its sentence has it."""
    fact = "alpha beta gamma delta"
    alone = await weigh("omega gamma delta", fact)
    inside = await weigh("omega gamma delta", fact, sentence="alpha beta gamma delta")

    assert alone.plain_scores.entailment == pytest.approx(2 / 3)
    assert inside.plain_scores.entailment == pytest.approx(1.0)
    assert inside.premise == fact


@pytest.mark.req("DPE-2")
async def test_a_sentence_too_long_for_the_model_is_left_aside():
    """The claim, which fits, stands for it; nothing is cut and nothing is refused."""
    twin = WordInference()
    await weigh("alpha beta", "alpha gamma", sentence="alpha " * (limits(twin)[0] + 1), twin=twin)

    assert {said for _, said in twin.pairs} == {"Alpha beta."}


@pytest.mark.req("DPE-2")
async def test_a_sure_answer_ends_the_questions():
    """Only a doubtful claim is put to more than one premise."""
    sure, doubtful = WordInference(), WordInference()
    facts = ("The tower is tall and old.", "Bread is cheap here.", "A river is near.")
    await weigh("Tall is the tower.", *facts, twin=sure)
    await weigh("The towers seem high.", *facts, twin=doubtful)

    assert len(sure.pairs) == 1
    assert len(doubtful.pairs) > 1


@pytest.mark.req("DPE-2")
async def test_the_plain_reading_takes_the_model_at_its_word():
    """Uncalibrated, for dpe_attribution=cosine; the rest of the evidence is the same."""
    got = await weigh("The tower is very tall.", "The tower is tall.")

    assert got.scores.entailment != got.plain_scores.entailment == got.plain().scores.entailment
    assert got.plain().fact_id == got.fact_id


@pytest.mark.req("DPE-2")
async def test_a_title_rests_on_words():
    """A heading asserts nothing: its words must be in the envelope, the query, or in headings anywhere."""
    fact = "The tower is tall."
    known = await weigh("Key facts: the tower of Paris", fact, titles={"c1"}, query="Paris?")
    unknown = await weigh("Vaccine deaths", fact, titles={"c1"})

    assert known.scores.entailment == 1.0
    assert unknown.scores.entailment < 0.5


def test_pairs_always_fit_the_model():
    """A claim and a premise at their limits have no more tokens than the model reads."""
    twin = WordInference()
    for size in (61, 125, 253, 509):
        twin.max_pair_tokens = size
        assert sum(limits(twin)) <= size
