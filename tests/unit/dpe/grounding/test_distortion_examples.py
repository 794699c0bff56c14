"""The six distortions of SPEC-005 §5.3 exactly as printed, through the whole pipeline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.api.common.v1 import common_pb2
from tests.support.dpe import pipeline, request

pytestmark = pytest.mark.models

EXAMPLES = [
    ("NUMBER_CHANGED", "revenue was $4.2M", "revenue was $4.8M"),
    ("NEGATION_FLIP", "the policy does not apply", "the policy applies"),
    ("DATE_SHIFTED", "enacted in 2024", "enacted in 2023"),
    ("ENTITY_SUBSTITUTED", "according to NIST", "according to ISO"),
    ("MAGNITUDE_ALTERED", "increased by 15%", "increased by 50%"),
    ("CONTEXT_STRIPPED", "conditionally approved pending review", "approved"),
]


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("kind", "source", "response"), EXAMPLES)
async def test_each_distortion_is_found_and_named(kind, source, response):
    """As printed, fragments and all: found, named, and the answer is not LOW."""
    report = await pipeline().analyse(request(response, source))

    assert kind in report.distortion_types
    assert report.risk_level > common_pb2.RISK_LEVEL_LOW


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("kind", "source", "response"), EXAMPLES)
async def test_the_source_itself_is_no_distortion(kind, source, response):
    """What repeats its source is left alone, whatever else the envelope says."""
    report = await pipeline().analyse(request(source, source, "The sky over the harbour was blue that morning."))

    assert list(report.distortion_types) == []


@pytest.mark.req("DPE-3", "DPE-4")
@pytest.mark.parametrize(
    ("source", "response"),
    [
        ("The company's revenue was $4.2 million in the third quarter of 2025.", "Revenue was $4.2M in Q3 2025."),
        ("The tower was opened to visitors on 6 May 1889.", "The tower opened to visitors on May 6, 1889."),
        ("Sales increased by 15 percent in 2024.", "In 2024, sales rose by 15%."),
        (
            "More than 13, 000 twins from six countries were studied.",
            "Over 13,000 twins from six countries were studied.",
        ),
        ("The 75 - year - old man was taken to hospital.", "The 75-year-old man was taken to hospital."),
        ("The fortress lies 3, 840 km from the capital.", "The fortress lies 3,840 km from the capital."),
        ("The owner was given a ten - year ban from the club.", "The owner was given a ten-year ban from the club."),
    ],
)
async def test_the_same_in_other_words_is_left_alone(source, response):
    """Figures, dates and units in other forms: nothing is found, and the risk is LOW."""
    report = await pipeline().analyse(request(response, source))

    assert list(report.distortion_types) == []
    assert report.fabrication_count == 0
    assert report.risk_level == common_pb2.RISK_LEVEL_LOW


@pytest.mark.req("DPE-2", "DPE-4")
async def test_the_plain_reading_is_reported_as_it_is():
    """dpe_attribution=cosine: bands of the cosine alone, P(entailment) as the model gives it, and its name in the report."""
    asked = request("The tower is extremely tall.", "The tower is 330 metres tall and stands in Paris.")
    judged = await pipeline().analyse(asked)
    plain = await replace(pipeline(), method="cosine").analyse(asked)

    assert {claim.method for claim in judged.claims} == {"nli+values"}
    assert {claim.method for claim in plain.claims} == {"cosine"}
    assert plain.entailment_score != judged.entailment_score


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("source", "response"),
    [
        (
            "Among the injured was a Japanese citizen, who was reportedly flown to Japan in the morning.",
            "Among the injured was a Japanese citizen, who was flown to Japan in the morning.",
        ),
        (
            "However, the fire is now under control, and is expected to be contained by September 4.",
            "However, the fire is now under control, and will be contained by September 4.",
        ),
    ],
)
async def test_a_limit_dropped_from_one_clause_is_found_in_its_sentence(source, response):
    """The clause is judged as a claim of its own, in other words than its source; the sentence shows what is gone."""
    report = await pipeline().analyse(request(response, source))

    assert [[found.type for found in claim.distortions] for claim in report.claims] == [[], ["CONTEXT_STRIPPED"]]
    assert report.distortion_count == 1


@pytest.mark.req("DPE-3")
async def test_a_sense_turned_in_one_clause_is_found_in_its_sentence():
    """The source has no word for it: the claim that turns it is named."""
    source = "The board met in May, which was open to the public, and it approved the merger with the bank."
    response = "The board met in May, which was open to the public, and it never approved the merger with the bank."
    report = await pipeline().analyse(request(response, source))

    bent = [claim.text for claim in report.claims if claim.distortions]
    assert report.risk_level > common_pb2.RISK_LEVEL_LOW
    assert len(bent) == 1
    assert "never" in bent[0]


@pytest.mark.req("DPE-3", "DPE-4")
@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        (
            "Parcels are not left on the porch, but with the neighbour.",
            "Parcels are left on the porch.",
            "Parcels are left with the neighbour.",
        ),
        (
            "Spare seed is not sold to shops, but given to the school in Mill Lane.",
            "Spare seed is sold to shops.",
            "Spare seed goes to the school in Mill Lane.",
        ),
        (
            "The hall is not heated in winter, but the chapel is heated.",
            "The hall is heated in winter.",
            "The chapel is heated.",
        ),
    ],
)
async def test_a_denial_is_of_its_own_phrase(source, bent, faithful):
    """What is preferred to a denied phrase is not denied; to say the denied phrase is a flip."""
    told, turned = [await pipeline().analyse(request(text, source)) for text in (faithful, bent)]

    assert list(told.distortion_types) == []
    assert "NEGATION_FLIP" in turned.distortion_types
    assert turned.risk_level > common_pb2.RISK_LEVEL_LOW
