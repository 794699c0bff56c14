"""What a sentence pairs with what is compared although its predicate, its order or its mood is worded in another way."""

from __future__ import annotations

import pytest

from tests.unit.dpe.comparison.bindings.reading import found

pytestmark = pytest.mark.models

_PARALLEL = "A ride costs €3.10 for adults and €1.60 for children."
_GAPPED = "Adults pay £24, guests £17 and students £9."
_TWO = "The paper division grew by 9% to £344 million, whereas the glass division shrank by 3% to £268 million."
_TRENDS = "In 2024 fares rose 6% to €5.3 million, while fines fell 3% to €1.1 million."


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        (_PARALLEL, "A ride costs children €3.10.", "A ride costs children €1.60."),
        (_GAPPED, "Guests are charged £9.", "Guests are charged £17."),
        (_GAPPED, "Students have to pay £17.", "Students have to pay £9."),
        (_TWO, "The paper division had sales of £268 million.", "The paper division had sales of £344 million."),
        (_TWO, "Sales of the glass division came to £344 million.", "Sales of the glass division came to £268 million."),
        (_TRENDS, "Fines grew to €1.1 million.", "Fines dropped to €1.1 million."),
        ("Gate 4 closes in 5 minutes, gate 7 in 15 minutes.", "You have 15 minutes to reach gate 4.", "You have 5 minutes to reach gate 4."),
    ],
)  # fmt: skip
def test_values_of_parallel_parts_stay_apart(source: str, bent: str, faithful: str) -> None:
    """The value of one part of a sentence is not that of another, though the claim has none of the source's verbs."""
    assert found((source,), bent)
    assert not found((source,), faithful)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        (
            "The audit was carried out by the city of Bern and paid for by the operator, Lumo.",
            "Lumo ran the audit, and the city of Bern paid for it.",
            "The city of Bern ran the audit, and Lumo paid for it.",
        ),
        (
            "The tenants' union objected to the plan, and the mayor rejected its objection.",
            "The mayor's objection was turned down by the tenants' union.",
            "The objection of the tenants' union was turned down by the mayor.",
        ),
        (
            "Hale lent £3,000 to the choir, and the loan has to be repaid only if the choir earns a profit.",
            "Hale received a loan of £3,000 from the choir.",
            "The choir received a loan of £3,000 from Hale.",
        ),
        ("Elmside Town beat Corby Vale at Mill Lane.", "Elmside Town lost to Corby Vale.", "Corby Vale lost to Elmside Town."),
        ("The nurse, Ana Ruiz, called Dr. Osei about the dose.", "Dr. Osei phoned the nurse Ana Ruiz.", "Ana Ruiz phoned Dr. Osei."),
    ],
)  # fmt: skip
def test_who_does_what_is_told_by_event(source: str, bent: str, faithful: str) -> None:
    """Two who act in two events of a sentence are not exchanged, whatever pronouns and nouns the claim uses for the rest."""
    assert found((source,), bent)
    assert not found((source,), faithful)


_LOAN = "In May the school turned down a request for the piano, since the haulier would not insure the ride."
_EVENING = "Doors open at 17:30, the film starts at 18:00 and is followed by 20 minutes of talk, and the raffle begins at 20:15."


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        # to refuse to do a thing is an event of that thing
        (_LOAN, "The haulier refused to insure it.", "The haulier turned down the request for the piano."),
        # the words of the source, of which the parser makes something else
        (_EVENING, "17:30 – doors open", ""),
    ],
)
def test_an_event_that_another_verb_tells_is_not_exchanged(source: str, faithful: str, bent: str) -> None:
    """Who refuses to do one thing may act beside somebody who refuses another."""
    assert not found((source,), faithful)
    assert not bent or found((source,), bent)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        (
            "The rent was raised by 4% on 1 May, after the heating contract had expired.",
            "The rent was raised, and afterwards the heating contract ran out.",
            "The heating contract ran out, and afterwards the rent was raised.",
        ),
        (
            "Call the assistance line before any admission to a hospital.",
            "Once you have been admitted to a hospital, call the assistance line.",
            "Call the assistance line before you are admitted to a hospital.",
        ),
    ],
)
def test_order_is_compared_between_marks(source: str, bent: str, faithful: str) -> None:
    """*After*, *before*, *once* and *afterwards* say the same of an order, each from its side."""
    assert [one.slot for one in found((source,), bent)] == ["order"]
    assert not found((source,), faithful)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        (
            "The gel cools the skin; it does not heal a wound that has become infected.",
            "The gel does heal an infected wound, and it cools the skin.",
            "The gel does not heal an infected wound.",
        ),
        (
            "The booking fee of €75 is waived for members and is not refunded if a booking is cancelled.",
            "Your €75 booking fee is refunded if you cancel the booking.",
            "Your €75 booking fee is not refunded if you cancel the booking.",
        ),
    ],
)
def test_a_denied_event_is_not_stated(source: str, bent: str, faithful: str) -> None:
    """The polarity of an event counts although the clause names its things in another way."""
    assert [one.type for one in found((source,), bent)] == ["NEGATION_FLIP"]
    assert not found((source,), faithful)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        (
            "The winger limped off and may miss the final on 29 March.",
            "The winger will definitely miss the final on 29 March.",
            "The winger may well miss the final on 29 March.",
        ),
        (
            "Early figures suggest that the new ferries burn less fuel.",
            "The figures prove that the new ferries burn less fuel.",
            "The figures hint that the new ferries burn less fuel.",
        ),
        (
            "Most regulars of the library use the reading app.",
            "Hardly any regulars of the library use the reading app.",
            "A majority of the library's regulars use the reading app.",
        ),
        (
            "Fewer than half of the growers were insured against hail.",
            "Nearly all of the growers were insured against hail.",
            "Not even half of the growers were insured against hail.",
        ),
    ],
)
def test_a_claim_is_no_surer_than_its_source(source: str, bent: str, faithful: str) -> None:
    """What a source supposes, or says of some, is not certain, nor of all, nor of none."""
    assert {one.slot for one in found((source,), bent)} <= {"certainty", "quantifier"} and found((source,), bent)
    assert not found((source,), faithful)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        (
            "The night fare is only available to homes with a smart meter.",
            "You can choose the night fare with any type of meter.",
            "You can choose the night fare with a smart meter.",
        ),
        (
            "If the flat is empty for more than 30 days, theft is no longer covered.",
            "Theft stays covered however long the flat is empty.",
            "Theft stays covered as long as the flat is not empty for more than 30 days.",
        ),
        (
            "For any one item the limit is £900, unless it is named in the schedule.",
            "For any one item the limit is £900, even when the item is named in the schedule.",
            "For any one item the limit is £900, unless the schedule names it.",
        ),
    ],
)
def test_any_and_however_lift_a_condition(source: str, bent: str, faithful: str) -> None:
    """A claim that holds of any, or however long, drops the condition of its source."""
    assert "condition" in [one.slot for one in found((source,), bent)]
    assert not found((source,), faithful)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("source", "claim"),
    [
        (
            "If the count differs, do not restart the pump and call the foreman.",
            "Check the count before you restart the pump.",
        ),
        ("When the river is high, the ferry does not carry lorries.", "The ferry carries lorries."),
    ],
)
def test_a_denial_of_one_case_denies_no_other(source: str, claim: str) -> None:
    """What is not done in one case is no opposite of what is done, where the claim names no case."""
    assert not [each for each in found((source,), claim) if each.slot == "predicate"]
