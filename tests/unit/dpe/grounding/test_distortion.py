"""Stage 3b: rules alone for values and names, rules and the NLI model for sense and limits (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.document import Claim, ClaimType, Distortion, Fact, NliScores
from interlock.dpe.grounding.distortion import find

ENTAILED = NliScores(0.97, 0.02, 0.01)
NEUTRAL = NliScores(0.05, 0.9, 0.05)
CONTRADICTED = NliScores(0.02, 0.03, 0.95)


def distorted(source: str, text: str, nli: NliScores, in_context: NliScores | None = None) -> tuple[Distortion, ...]:
    claim = Claim("c1", text, 0, 0, 0, len(text), ClaimType.FACTUAL, 0.5, ())
    return find(claim, Fact("f7", source, 0.8), nli, in_context)


@pytest.mark.req("DPE-3")
def test_a_changed_number_stands_although_the_model_agrees():
    """TV-011: the comparer does not ask the model about figures."""
    found = distorted("Revenue increased by 15% in Q3 2025.", "Revenue increased by 25% in Q3 2025.", ENTAILED)

    assert found == (Distortion("NUMBER_CHANGED", "15%", "25%", "f7"),)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("source", "claim", "kind"),
    [
        ("enacted in 2024", "enacted in 2023", "DATE_SHIFTED"),
        ("increased by 15%", "increased by 50%", "MAGNITUDE_ALTERED"),
        ("According to NIST, it is voluntary.", "According to ISO, it is voluntary.", "ENTITY_SUBSTITUTED"),
        ("the policy does not apply", "the policy applies", "NEGATION_FLIP"),
        ("conditionally approved pending review", "approved", "CONTEXT_STRIPPED"),
    ],
)
def test_each_example_of_the_specification_is_found(source, claim, kind):
    """The examples of §5.3 are found; a dropped condition with the model's word that it matters."""
    nli = NEUTRAL if kind == "CONTEXT_STRIPPED" else ENTAILED

    assert kind in {each.type for each in distorted(source, claim, nli)}


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("claim", "stripped"),
    [("Scale settle to 12 replicas.", True), ("Scale settle to 10 replicas.", False)],
)
def test_a_bound_is_stripped_only_from_its_own_figure(claim, stripped):
    """*At most 12* limits twelve; of ten it says nothing."""
    found = distorted("Otherwise scale settle to at most 12 replicas.", claim, NEUTRAL)

    assert ("CONTEXT_STRIPPED" in {each.type for each in found}) == stripped


REPHRASED_FLIP = (
    "The council, after a long debate, rejected the plan for the harbour.",
    "The harbour plan was approved by the council.",
)
REPHRASED_STRIP = (
    "Researchers think that the new tablet may reduce the pain of most patients.",
    "The new tablet reduces the pain of patients.",
)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("pair", "nli", "expected"),
    [
        (REPHRASED_FLIP, CONTRADICTED, {"NEGATION_FLIP"}),
        (REPHRASED_FLIP, ENTAILED, set()),
        (REPHRASED_STRIP, NEUTRAL, {"CONTEXT_STRIPPED"}),
        (REPHRASED_STRIP, ENTAILED, set()),
    ],
)
def test_a_rephrased_claim_is_accused_only_with_the_model(pair, nli, expected):
    """Away from a copy, the sense and the limits of a source need the model's word too."""
    assert {each.type for each in distorted(*pair, nli)} == expected


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize("nli", [ENTAILED, NEUTRAL, CONTRADICTED])
@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("Revenue was $4.2 million in 2024.", "In 2024, revenue was $4.2M."),
        (
            "The EU AI Act was adopted in 2024 by the European Parliament.",
            "The European Parliament adopted the EU AI Act in 2024.",
        ),
        ("The drug may reduce pain.", "The drug may reduce pain."),
        ("The deputy mayor Anna Berg opened the fair.", "Anna Berg opened the fair."),
        ("The doctor says the rider needs rest but won't be operated on.", "The doctor says the rider needs rest."),
    ],
)
def test_a_faithful_claim_is_not_distorted_whatever_the_model_says(source, claim, nli):
    """No cue, no distortion: the model alone accuses nobody here."""
    assert distorted(source, claim, nli) == ()


@pytest.mark.req("DPE-3")
def test_a_dropped_limit_is_judged_with_the_sentences_beside_it():
    """*Until then* tells nothing alone. With the sentence that it points to, the claim follows, or it drops a limit after all."""
    source, claim = "Until then, guests can book a room by letter.", "Within ten days, a room can be booked by letter."

    assert {each.type for each in distorted(source, claim, NEUTRAL)} == {"CONTEXT_STRIPPED"}
    assert distorted(source, claim, NEUTRAL, ENTAILED) == ()
    assert {each.type for each in distorted(source, claim, NEUTRAL, NEUTRAL)} == {"CONTEXT_STRIPPED"}


@pytest.mark.req("DPE-3")
def test_a_turned_sentence_is_judged_by_itself():
    """Sentences beside it may agree with the claim by chance."""
    assert {each.type for each in distorted(*REPHRASED_FLIP, CONTRADICTED, ENTAILED)} == {"NEGATION_FLIP"}


@pytest.mark.req("DPE-3")
def test_the_fact_is_named():
    """A distortion says which fact it was compared with."""
    assert {each.fact_id for each in distorted("It cost $5.", "It cost $9.", NEUTRAL)} == {"f7"}


@pytest.mark.req("DPE-3")
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "pump",
    [
        "12 ",
        "1.5 million people, ",
        "Anna Ax ",
        "not ",
        "may not rise or fall ",
        "Mr. ",
        "in 1999 ",
        "about 7% ",
        "\n",
        "½ ",
        "\u200b1",
    ],
)
def test_a_long_fact_is_compared_in_time(pump):
    """A fact of 20,000 characters without a full stop does not make the comparison run away."""
    found = distorted(pump * (20_000 // len(pump)), "About 13% of 4,321 people did not meet Bob Bix in 2011.", NEUTRAL)

    assert isinstance(found, tuple)
