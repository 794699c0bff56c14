"""Whether two claims cannot both hold, with the examples of SPEC-005 §8.2 as printed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.dpe.comparison.contradiction import across, contradictions, counted
from interlock.dpe.comparison.disagreement import CONTRADICTED_ABOVE, SEVERITIES, classify
from interlock.dpe.document import ClaimType, Entity
from tests.support.dpe import WordInference, claim


def kind_of(one: str, other: str, probability: float = 0.0) -> tuple[str, str] | None:
    found = classify(claim(one, 1), claim(other, 2), probability)
    return (found.kind, found.severity) if found else None


@pytest.mark.req("DPE-3", "DPE-6")
@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("$4.2M revenue", "$5.1M revenue", ("numeric", "CRITICAL")),
        ("policy approved", "policy rejected", ("logical", "HIGH")),
        ("launched in 2024", "launched in 2025", ("temporal", "HIGH")),
        ("generally positive", "largely negative", ("stance", "MEDIUM")),
        ("about 15%", "approximately 16%", ("minor", "LOW")),
    ],
)
def test_the_five_severities_as_printed(one, other, expected):
    """§8.2, both ways round, and in whole sentences; no model is needed."""
    assert kind_of(one, other) == kind_of(other, one) == expected
    assert set(SEVERITIES) == {"CRITICAL", "HIGH", "MEDIUM", "LOW"}


@pytest.mark.req("DPE-3", "DPE-6")
@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("Revenue was $4.2M.", "Revenue reached $5.1M.", "numeric"),
        ("Revenue grew 15 %.", "Revenue declined 3 %.", "numeric"),
        ("Revenue increased 20%.", "Revenue decreased 5%.", "numeric"),
        ("The policy was approved.", "The policy was rejected.", "logical"),
        ("The drug is effective.", "The drug is not effective.", "logical"),
        ("The product launched in 2024.", "The product was launched in 2025.", "temporal"),
        ("Feedback was generally positive.", "Feedback was largely negative.", "stance"),
        ("Churn was about 15%.", "Churn was approximately 16%.", "minor"),
        ("smallest pack: 10", "The smallest pack holds 20.", "numeric"),
    ],
)
def test_contradictions_in_sentences(one, other, kind):
    """What the five look like in an answer."""
    assert (kind_of(one, other) or ("",))[0] == kind


@pytest.mark.req("DPE-3", "DPE-6")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("France has 68 million people.", "Germany has 84 million people."),
        ("Revenue was $4M in 2023.", "Revenue was $5M in 2024."),
        ("Revenue was $4.2M.", "Revenue was 4.2 million dollars."),
        ("Sales rose 5% in Europe.", "Sales fell 2% in Asia."),
        ("Revenue from games was $4M.", "Revenue from books was $5M."),
        ("The meeting was in 2024.", "The meeting was in 2025."),
        ("The policy was approved.", "The policy was not rejected."),
        ("The plan was approved in 2023.", "The plan was rejected in 2024."),
        ("mg per tablet: 400", "An adult may take up to 3 tablets (1200 mg) in 24 hours."),
        ("Side effects of one in 10 people: heartburn", "up to 1 in 100 people may be affected"),
        ("Blocks; sleep: yes; asleep: no", "Blocks; sleep: yes; asleep: yes"),
    ],
)
def test_claims_of_two_things_or_two_times_agree(one, other):
    """Another country, another year, another product, and two negations that cancel out."""
    assert kind_of(one, other) is None


@pytest.mark.req("DPE-3", "DPE-6")
def test_the_model_is_heard_above_the_threshold_only():
    """P(contradiction) > 0.75, of one subject and one time."""
    one, other = "The mayor praised the plan{}.", "The mayor attacked the scheme{}."
    one, other, *dated = one.format(""), other.format(""), one.format(" in 2023"), other.format(" in 2024")

    assert kind_of(one, other, CONTRADICTED_ABOVE) is None
    assert kind_of(one, other, 0.751) == ("logical", "HIGH")
    assert kind_of(*dated, 0.99) is None


@pytest.mark.req("DPE-3", "DPE-6")
def test_advice_contradicts_no_silence():
    """Whom to ask about gluten is no statement on what the leaflet says; what it contains is."""
    silent = claim("The leaflet doesn't mention gluten.", 1)
    advice = replace(claim("Please ask the manufacturer about gluten.", 2), claim_type=ClaimType.PROCEDURAL)

    assert classify(silent, advice, 0.99) is None
    assert classify(silent, claim("The leaflet mentions gluten.", 3), 0.99) is not None


@pytest.mark.req("DPE-3", "DPE-6")
def test_what_is_to_be_done_denies_no_state_before_it():
    """*Nothing is raised* tells the fault, *raise the error* the cure."""
    state = claim("The error is not raised again.", 1)
    cure = claim("The error is raised again.", 2)

    assert classify(state, cure, 0.0) is not None
    assert classify(state, replace(cure, claim_type=ClaimType.PROCEDURAL), 0.0) is None


@pytest.mark.req("DPE-6")
async def test_a_line_that_announces_its_items_contradicts_nothing():
    """Each item repeats it; beside them it states nothing."""
    earlier, later = [claim("The tower opened in 1889:", 1)], [claim("The tower opened in 1899.", 2)]
    assert contradictions([*earlier, *later], [(0, 1)], [0.9]) == []


@pytest.mark.req("DPE-6")
async def test_windows_are_compared_with_each_other_only():
    """A claim of this answer meets claims of earlier windows of its subject, and none of its own answer."""
    earlier = [claim("The tower opened in 1889.", 1), claim("Bread is cheap.", 2)]
    later = [claim("The tower opened in 1899.", 3), claim("The tower opened in 1909.", 4)]
    twin = WordInference()
    vectors = [await twin.embed([each.text for each in side]) for side in (earlier, later)]

    pairs = across(earlier, vectors[0], later, vectors[1])
    found = contradictions([*earlier, *later], pairs, [0.0] * len(pairs))

    assert pairs == [(0, 2), (0, 3)]
    assert [(one.claim_id, one.other_claim_id, one.kind) for one in found] == [
        ("c1", "c3", "temporal"),
        ("c1", "c4", "temporal"),
    ]
    assert across([], vectors[0][:0], later, vectors[1]) == []


@pytest.mark.req("DPE-6")
async def test_other_subjects_of_other_windows_are_not_asked_about():
    """France then, Germany now: not a pair."""
    france = claim("France has 68 million people.", 1, Entity("France", "LOC", 0, 6))
    germany = claim("Germany has 84 million people.", 2, Entity("Germany", "LOC", 0, 7))
    twin = WordInference()

    assert across([france], await twin.embed([france.text]), [germany], await twin.embed([germany.text])) == []


@pytest.mark.req("DPE-3")
def test_a_minor_inconsistency_does_not_weigh():
    """It is in the report, and costs nothing."""
    claims = [claim("Churn was about 15%.", 1), claim("Churn was approximately 16%.", 2)]
    found = contradictions(claims, [(0, 1)], [0.0])

    assert [each.severity for each in found] == ["LOW"]
    assert counted(found) == []


@pytest.mark.req("DPE-3", "DPE-6")
def test_a_difference_without_a_subject_denies_no_other():
    """*£80 less* leaves out than what; *the fee is £80* does not."""
    assert kind_of("£80 less.", "That is still £210 more than the deposit.") is None
    assert kind_of("Three weeks later.", "It came five weeks earlier than the boat.") is None
    assert kind_of("The fee is £80.", "The fee is £210.") == ("numeric", "CRITICAL")
