"""A claim whose words are the source's but whose bindings are not is a distortion with its slot (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.dpe.document import Distortion
from interlock.dpe.grounding.bound import with_bindings
from tests.support.dpe import pipeline, request

TABLE = "| Name | Role | Office |\n|---|---|---|\n| Ana Silva | auditor | Porto |\n| Kim Berg | analyst | Oslo |"


async def report(answer: str, *facts: str) -> dpe_pb2.Report:
    return await pipeline().analyse(request(answer, *facts))


def slots(message: dpe_pb2.Report) -> list[tuple[str, str, str, str, str]]:
    return [
        (each.type, each.slot, each.source_value, each.claim_value, each.fact_id)
        for claim in message.claims
        for each in claim.distortions
    ]


@pytest.mark.models
@pytest.mark.req("DPE-3")
async def test_a_swap_that_the_model_entails_is_not_grounded():
    """The report names the slot, both fillers and the fact, and the answer is not LOW."""
    found = await report("The notary was paid by the broker.", "The notary paid the broker.", "The sky is blue.")

    assert slots(found) == [("ENTITY_SUBSTITUTED", "agent", "The notary", "the broker", "f1")]
    assert found.claims[0].entailment > 0.9
    assert found.claims[0].attribution != dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED
    assert "DISTORTION_FOUND" in found.floors
    assert found.risk_level != common_pb2.RISK_LEVEL_LOW


@pytest.mark.models
@pytest.mark.req("DPE-3", "DPE-14")
async def test_one_swap_among_many_right_statements_makes_an_answer_high():
    """It reads as if it were the source, and the reader takes it for one: a policy that stops HIGH stops it."""
    right = ("The office opens at nine.", "Parking is free on Sundays.", "The lift stops at every floor.")
    found = await report(
        " ".join((*right, "The notary was paid by the broker.")), "The notary paid the broker.", *right
    )

    assert "MISBINDING_FOUND" in found.floors
    assert found.risk_level == common_pb2.RISK_LEVEL_HIGH
    assert (await report(" ".join(right), *right)).risk_level == common_pb2.RISK_LEVEL_LOW


@pytest.mark.models
@pytest.mark.req("DPE-3")
async def test_a_finding_belongs_to_the_claim_that_it_is_about():
    """Of two claims of one sentence, only the one with the swapped roles is accused."""
    found = await report(
        "The guard locked the gate and the broker sued the bank.",
        "The guard locked the gate.",
        "The bank sued the broker.",
    )

    accused = [claim.text for claim in found.claims if claim.distortions]
    assert accused == ["the broker sued the bank"]


@pytest.mark.models
@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("source", "answer", "turned"),
    [
        (
            "The museum loaned the vase to Vienna, and the curator, who had restored it, travelled with it by train.",
            "The museum loaned the vase to Vienna, and the curator, who had restored it, did not travel with it by train.",
            "the curator did not travel with it by train",
        ),
        (
            "The inspector visited the bakery, which had been closed for a week, and she signed the permit for the ovens.",
            "The inspector visited the bakery, which had been closed for a week, and she never signed the permit for the ovens.",
            "she never signed the permit for the ovens",
        ),
        (
            "The crew repaired the pump, which had leaked since spring, and the harbour master reopened the lock.",
            "The crew repaired the pump, which had leaked since spring, and the harbour master did not reopen the lock.",
            "the harbour master did not reopen the lock",
        ),
    ],
)
async def test_a_denial_belongs_to_the_clause_that_has_its_words(source, answer, turned):
    """A rule that reads the whole sentence names the clause, so that the claims beside it stay grounded."""
    found = await report(answer, source)

    assert [claim.text for claim in found.claims if claim.distortions] == [turned]
    assert [c.text for c in found.claims if c.attribution != dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED] == [turned]


@pytest.mark.models
@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Kim Berg is an analyst in Oslo.", []),
        ("Kim Berg is an analyst, and Ana Silva is an auditor.", []),
        ("Kim Berg is an auditor.", [("ENTITY_SUBSTITUTED", "role", "analyst", "auditor", "f1")]),
        ("Ana Silva works in Oslo.", [("ENTITY_SUBSTITUTED", "office", "Porto", "Oslo", "f1")]),
        ("Ana Silva does not work in Oslo.", []),
    ],
)
async def test_the_cell_of_another_row_is_found(answer, expected):
    """The header names the slot; a claim that denies or compares takes nothing."""
    assert [each for each in slots(await report(answer, TABLE)) if each[1]] == expected


@pytest.mark.models
@pytest.mark.req("DPE-3")
async def test_source_passages_are_parsed_once():
    """The second call of a session finds the sentences of its sources read."""
    facts = ("The otter chased the pike.", "The heron watched the otter.")
    await report("The pike was chased by the otter. The otter was watched by the heron.", *facts)
    read = pipeline().passages.of(facts, None)
    await report("The pike was chased by the otter, who was watched by the heron.", *facts)
    again = pipeline().passages.of(facts, None)

    assert all(again[text] is read[text] for text in facts)


@pytest.mark.req("DPE-3")
def test_what_was_found_already_is_not_found_again():
    """A flip that the values show stays as it is, and another type is added."""
    flip, slot = Distortion("NEGATION_FLIP", "not", "", "f1"), Distortion("NEGATION_FLIP", "a", "b", "f1", "predicate")
    other = Distortion("ENTITY_SUBSTITUTED", "a", "b", "f1", "agent")

    assert with_bindings({"c1": (flip,)}, {"c1": (slot, other), "c2": (slot,)}) == {"c1": (flip, other), "c2": (slot,)}


@pytest.mark.models
@pytest.mark.req("DPE-3")
async def test_a_cause_is_sought_in_sentences_that_are_far_from_the_rest_of_its_claim():
    """The sentence that tells of the damp walls is not among those nearest to a claim about the tapestry."""
    tapestry = (
        "Curator Ines Vale moved the tapestry to the chapel because the light in the gallery was too bright.",
        "Ines Vale had the tapestry cleaned in Ghent.",
        "The tapestry in the chapel shows a hunt.",
        "Visitors may photograph the tapestry.",
        "A tapestry of the same size hangs in Mechelen.",
        "Ines Vale wrote a book about the tapestry.",
        "The chapel is lit by candles.",
    )
    found = await report(
        "Curator Ines Vale moved the tapestry to the chapel on account of damp walls.",
        *tapestry,
        "Surveyor Poul Krag has had the damp walls of the cellar lined with lime.",
    )

    assert [each[:2] for each in slots(found)] == [("ENTITY_SUBSTITUTED", "cause")]
