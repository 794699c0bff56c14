"""Claims of a sentence: one assertion each, typed, and none let through by its type (SPEC-005 §3.3, §3.4)."""

from __future__ import annotations

import pytest

from interlock.domain.errors import Kind, Refused
from interlock.dpe.claims.reading import ChoiceReading, OutputReader
from interlock.dpe.claims.wording import hypothesis
from interlock.dpe.document import ClaimType
from interlock.dpe.request import Output
from interlock.dpe.text.views import viewed
from tests.support.dpe import named, pipeline

pytestmark = pytest.mark.models


def read(*texts: str, max_claims: int = 100, claim_tokens: int = 100) -> ChoiceReading:
    outputs = [Output(0, text) for text in texts]
    reader = OutputReader(named(*outputs), max_claims, claim_tokens, pipeline().inference.tokens)
    return reader.read(viewed(outputs), lambda: False)[0]


def said(text: str) -> list[str]:
    return [hypothesis(claim.text) for claim in read(text).claims]


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("Revenue fell and Y happened in 2024.", ["Revenue fell.", "Y happened in 2024."]),
        (
            "The house was built in 1990 and renovated in 2004.",
            ["The house was built in 1990.", "The house was renovated in 2004."],
        ),
        (
            "It was completed in 1889 and attracts seven million visitors a year.",
            ["It was completed in 1889.", "It attracts seven million visitors a year."],
        ),
        ("Alice works at Acme; she joined in 2020.", ["Alice works at Acme.", "She joined in 2020."]),
        (
            "The policy does not apply to contractors and covers employees.",
            ["The policy does not apply to contractors.", "The policy covers employees."],
        ),
    ],
)
def test_coordinated_clauses_are_claims_of_their_own(sentence, found):
    """Each has the subject and the auxiliaries that it shares."""
    assert said(sentence) == found


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize("sentence", ["Either Tom or Jerry won or lost the game.", "Bread and butter are cheap."])
def test_what_cannot_stand_alone_stays_together(sentence):
    """Alternatives and lists of things are one claim."""
    assert said(sentence) == [sentence]


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("The tower is 330 metres tall.", ClaimType.FACTUAL),
        ("I think the tower is in Berlin.", ClaimType.OPINION),
        ("In my opinion the tower is too small.", ClaimType.OPINION),
        ("Open the valve before you start the pump.", ClaimType.PROCEDURAL),
        ("You should take two pills.", ClaimType.PROCEDURAL),
        ("As mentioned above, the tower was built by Eiffel.", ClaimType.META),
        ("I hope this helps!", ClaimType.META),
    ],
)
def test_types(sentence, kind):
    """The four types of §3.3."""
    assert [claim.claim_type for claim in read(sentence).claims] == [kind]


@pytest.mark.req("DPE-1", "DPE-2")
@pytest.mark.parametrize(
    "sentence",
    [
        "I think the tower is in Berlin.",
        "In my opinion the drug is safe.",
        "As mentioned above, the tower was built by Eiffel.",
        "Take the pills with grapefruit juice.",
        "You can use the drug with alcohol.",
        "Feel free to eat the mushrooms.",
        "Did you know that the drug cures cancer?",
        "Is the drug not harmless?",
        "I hope the drug helps.",
        "I can confirm the safety of the drug.",
        "I can give you a full refund.",
        "We offer free returns and a lifetime warranty.",
        "We do not have a refund policy.",
        "I can explain how the drug cures cancer.",
        "I can provide details about how the drug cures cancer.",
        "Let me know if Hans has 7 questions.",
        "Note that death is rare.",
        "x" * 700,
    ],
)
def test_a_type_lets_nothing_escape(sentence):
    """A-25: an opinion, instruction, question or remark with content is checked like a fact."""
    reading = read(sentence)

    assert reading.checked == reading.claims


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize(
    "sentence",
    [
        "Hello! How can I help you today?",
        "Yes.",
        "I'm sorry, but I can't help with that.",
        "Sure! Here is a summary:",
        "I hope this helps!",
        "Let me know if you have any more questions.",
        "Would you like to know more about the history of the tower?",
        "I can provide more details about the history of the tower.",
        "Feel free to ask if you have any questions about the tower!",
        "I'm unable to provide advice on weapons.",
        "I cannot answer this question based on the given context.",
        "The context does not mention the price.",
    ],
)
def test_what_asserts_nothing_is_not_checked(sentence):
    """A greeting is not entailed by anything, and cannot be a lie either."""
    assert read(sentence).checked == []


@pytest.mark.req("DPE-1")
def test_a_heading_is_a_title():
    """A heading without a verb asserts nothing; one with a verb does."""
    reading = read("# The Eiffel Tower\n\n# The tower is in Berlin")

    assert reading.titles == {"c1"}
    assert [claim.claim_id for claim in reading.checked] == ["c1", "c2"]


@pytest.mark.req("DPE-1")
def test_an_item_is_read_under_its_line():
    """What a list item says depends on the line above it."""
    assert said("Safe drugs:\n- Drug B\n- Drug C is old.") == ["Safe drugs.", "Safe drugs: Drug B.", "Drug C is old."]


@pytest.mark.req("DPE-1")
def test_entities_point_at_the_text_as_written():
    """Names and values carry their place in the output."""
    raw = "According to **Hans Müller**, revenue was $4.2M in 2024."
    places = {raw[e.start : e.end]: e.label for e in read(raw).claims[0].entities}

    assert places["Hans Müller"] == "PERSON"
    assert places["$4.2M"] == "MONEY"
    assert places["2024"] == "DATE"


@pytest.mark.req("DPE-1")
def test_specificity_grows_with_names_and_values():
    """A generic claim is below 0.30, one that names something above (§4.3)."""
    generic, named, both = (
        read(text).claims[0].specificity
        for text in (
            "Towers attract many visitors.",
            "Paris attracts many visitors.",
            "Paris attracts 7 million visitors.",
        )
    )
    assert generic < 0.30 <= named < both <= 1.0


@pytest.mark.req("DPE-1")
def test_a_long_sentence_is_checked_in_parts():
    """No claim is longer than the model reads, and no word is lost."""
    sentence = "The list has " + " ".join(f"item{n}" for n in range(400)) + "."
    reading = read(sentence, claim_tokens=60)

    assert max(pipeline().inference.tokens([claim.text for claim in reading.claims])) <= 60
    assert " ".join(claim.text for claim in reading.claims) == sentence
    assert reading.checked == reading.claims


@pytest.mark.req("DPE-1")
def test_too_many_claims_are_refused():
    """A-25: ten thousand claims are an error, not a reason to look at the first few."""
    with pytest.raises(Refused) as refused:
        read("Paris is big. " * 30, max_claims=20)

    assert (refused.value.kind, refused.value.reason) == (Kind.EXHAUSTED, "CLAIM_LIMIT_EXCEEDED")
    assert refused.value.metadata["limit"] == "20"


@pytest.mark.req("DPE-1")
def test_all_outputs_of_a_choice_are_read():
    """A tool call's arguments belong to the choice beside its content."""
    reading = read("The city is Paris.", '{"city": "Berlin"}')

    assert [claim.text for claim in reading.claims] == ["The city is Paris.", "city: Berlin"]
    assert [claim.claim_id for claim in reading.claims] == ["c1", "c2"]


@pytest.mark.parametrize(
    ("text", "asserted"),
    [
        ("I think that the tower is tall", "The tower is tall."),
        ("Based on the provided context, it is tall.", "It is tall."),
        ("In summary, however, it is tall!", "It is tall!"),
        ("The context states that it is tall.", "It is tall."),
    ],
)
def test_an_introduction_is_no_part_of_the_claim(text, asserted):
    """What NLI sees is what is asserted."""
    assert hypothesis(text) == asserted


@pytest.mark.req("DPE-1")
def test_a_lead_keeps_its_words() -> None:
    """*Here are* says nothing of its own in front of a list; *there are* does."""
    assert "There are four tariffs: Basic: 6 euros a month." in said(
        "There are four tariffs:\n- **Basic**: 6 euros a month\n- **Plus**: 9 euros a month"
    )
