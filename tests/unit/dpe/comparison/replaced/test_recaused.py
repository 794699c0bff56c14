"""A cause that belongs to another effect is found in many wordings, and the same cause in other words is not (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.replaced.recaused import recaused
from tests.unit.dpe.comparison.bindings.reading import found, passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
TRAMS = (
    "The tram to the airport was late because a tree had fallen on the line.",
    "The night bus was late because its driver was ill.",
    "The tree was cleared by the fire brigade at noon.",
    "Drivers who are ill must call the depot before 5 a.m.",
)
BAKERY = (
    "The bakery closed its shop in Mill Lane because the landlord doubled the rent.",
    "Sales of rye bread fell by 12% after a supermarket opened next door.",
    "The oven in the shop was twenty years old and broke down twice.",
    "The bakery now delivers to cafés; as a result, it needs two more vans.",
)
RELEASE = (
    "The release was delayed by a week because the payment tests kept failing.",
    "The tests failed since a certificate had expired on the staging server.",
    "The mobile app crashed on start due to a missing icon file.",
    "Analyst Per Lie credited the new search page with the rise in visits.",
    "The advertising page was redesigned in May.",
)
PEARS = (
    "Wasps damaged the late pears, which led to a loss of two tonnes.",
    "The cooperative rejected the pears on the grounds that they were bruised.",
    "The grower sold his tractor because he could not repay the loan.",
    "Hail destroyed the young vines in May.",
)


def rule(sources: tuple[str, ...], answer: str) -> Misbinding | None:
    evidence = Evidence(tuple(p for n, fact in enumerate(sources) for p in passages(fact, f"f{n}")))
    return next((each for claim in passages(answer) if (each := recaused(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("text", "cause", "effect"),
    [
        ("The rider braked; as a result, three parcels fell.", "rider", "parcel"),
        ("The fuse had blown, which made the pump fail.", "fus", "pump"),
        ("Ada opened the hatch, and because of that the cabin froze.", "hatch", "cabin"),
        ("The cabin froze on account of an open hatch.", "hatch", "cabin"),
        ("The cabin froze, as the hatch had been left ajar.", "hatch", "cabin"),
        ("The cabin has been cold since the hatch broke.", "hatch", "cabin"),
        ("The broken hatch is the reason why the cabin froze.", "hatch", "cabin"),
        ("The reason for the cold in the cabin was a broken hatch.", "hatch", "cabin"),
        ("The cold cabin was the consequence of a broken hatch.", "hatch", "cabin"),
        ("The cabin is closed, the reason being a broken hatch.", "hatch", "cabin"),
        ("She blamed the hatch for the cold in the cabin.", "hatch", "cabin"),
        ("The cold in the cabin was attributed to the hatch.", "hatch", "cabin"),
        ("She put the cold in the cabin down to the hatch.", "hatch", "cabin"),
        ("The hatch forced the crew to leave the cabin.", "hatch", "cabin"),
        ("The cabin stays closed for hatch reasons.", "hatch", "cabin"),
        ("The hatch broke, so the cabin froze.", "hatch", "cabin"),
        ("The hatch broke. That is why the cabin froze.", "hatch", "cabin"),
        ("The cabin froze. The reason is a broken hatch.", "hatch", "cabin"),
        ("The hatch broke. This led to a cold cabin.", "hatch", "cabin"),
        ("The cabin froze. She puts this down to a broken hatch.", "hatch", "cabin"),
    ],
)
def test_cause_and_effect_are_read_from_any_wording(text: str, cause: str, effect: str) -> None:
    """The one stands on the side of the cause, the other on that of the effect, and neither on both."""
    (told,) = [each for sentence in passages(text) for each in sentence.causes]

    assert cause in told.first - told.second
    assert effect in told.second - told.first


@pytest.mark.parametrize(
    "text",
    [
        "It was not because of the frost that the harvest failed.",
        "The frost did not cause the loss.",
        "As the report says, the harvest failed.",
        "The harvest was as good as last year.",
        "So far nobody has been hurt.",
        "Did the harvest fail because of the frost?",
        "The only result was a scratch.",
    ],
)
def test_what_gives_no_cause_has_none(text: str) -> None:
    """A denied cause, a comparison and a question tell of none."""
    assert [each for sentence in passages(text) for each in sentence.causes if each.first and each.second] == []


@pytest.mark.parametrize(
    ("sources", "bent", "cause"),
    [
        (TRAMS, "The airport tram was late because its driver was ill.", "a tree had fallen on the line"),
        (TRAMS, "A tree had fallen on the line. Therefore the night bus was late.", "its driver was ill"),
        (BAKERY, "The oven broke down twice, so the bakery closed its shop in Mill Lane.", "the landlord doubled the rent"),
        (BAKERY, "The bakery closed its shop in Mill Lane. The reason was a supermarket that had opened next door.", "the landlord doubled the rent"),
        (BAKERY, "Sales of rye bread fell because the landlord doubled the rent.", "After"),
        (RELEASE, "The release was delayed because the mobile app crashed on start.", "the payment tests kept failing"),
        (RELEASE, "The tests failed due to a missing icon file.", "a certificate had expired on the staging server"),
        (RELEASE, "Visits rose. Per Lie puts this down to the redesigned advertising page.", "the new search page"),
        (PEARS, "The grower sold his tractor because hail destroyed the young vines.", "he could not repay the loan"),
        (PEARS, "The pears were turned down because wasps had damaged them.", "they were bruised"),
    ],
)  # fmt: skip
def test_the_cause_of_something_else_is_found(sources: tuple[str, ...], bent: str, cause: str) -> None:
    """The finding names the cause that the source gives."""
    one = rule(sources, bent)

    assert one is not None
    assert (one.type, one.slot) == (ENTITY_SUBSTITUTED, "cause")
    assert one.source_value.lower() == cause.lower()


@pytest.mark.parametrize(
    ("sources", "bent"),
    [
        (BAKERY, "The bakery needs two more vans; as a result, it delivers to cafés."),
        (RELEASE, "The certificate expired because the tests had failed."),
        (RELEASE, "The failing tests are the reason why the certificate expired."),
        (PEARS, "The grower could not repay the loan because he had sold his tractor."),
    ],
)
def test_an_effect_is_not_the_cause_of_its_cause(sources: tuple[str, ...], bent: str) -> None:
    """Cause and effect have changed places."""
    one = rule(sources, bent)

    assert one is not None
    assert (one.type, one.slot) == (NEGATION_FLIP, "cause")


@pytest.mark.parametrize(
    ("sources", "faithful"),
    [
        (TRAMS, "The airport tram ran late as a tree was blocking the line."),
        (TRAMS, "Illness of its driver made the night bus late."),
        (TRAMS, "A tree fell on the line. That is why the tram was late."),
        (TRAMS, "The fire brigade came because a tree had fallen."),
        (BAKERY, "Because the rent had become too high, the bakery gave up its shop in Mill Lane."),
        (BAKERY, "The shop could no longer afford the rent and therefore closed."),
        (BAKERY, "Less rye bread was sold because a supermarket had opened next door."),
        (BAKERY, "The oven broke down twice because it was old."),
        (BAKERY, "Since the bakery has begun to deliver to cafés, it needs two more vans."),
        (RELEASE, "The release was delayed because a certificate on the staging server had expired."),
        (RELEASE, "A missing icon made the mobile app crash on start."),
        (RELEASE, "Visits rose. Per Lie puts this down to the new search page."),
        (RELEASE, "An expired certificate on the staging server caused the tests to fail."),
        (PEARS, "Wasps caused a loss of two tonnes of pears."),
        (PEARS, "Because he was in debt, the grower had to sell his tractor."),
    ],
)
def test_the_same_cause_in_other_words_is_left_alone(sources: tuple[str, ...], faithful: str) -> None:
    """So is the cause of a cause, and one of an effect that the sources give no cause for."""
    assert not found(sources, faithful)


def test_one_of_two_causes_of_an_effect_is_a_cause() -> None:
    """Where the sources give two, either is right."""
    both = (*TRAMS, "The tram to the airport was also late because its driver was ill.")

    assert not found(both, "The airport tram was late because its driver was ill.")


VILLAGE = (
    "The village dug a second well in order to water the orchards.",
    "The school bought tablets so that pupils could read at home.",
    "A fence was put up around the pond to keep the dogs out.",
    "The mayor wants to attract more tourists to the village.",
    "The ducks on the pond breed in April.",
)


@pytest.mark.parametrize(
    ("bent", "purpose"),
    [
        ("The fence around the pond was put up so that the ducks could breed in April.", "to keep the dogs out"),
        ("The school bought tablets with the aim of attracting tourists.", "pupils could read at home"),
    ],
)
def test_the_purpose_of_something_else_is_found(bent: str, purpose: str) -> None:
    """What the mayor wants is not what the tablets are for."""
    one = rule(VILLAGE, bent)

    assert one is not None
    assert (one.type, one.slot, one.source_value) == (ENTITY_SUBSTITUTED, "purpose", purpose)


@pytest.mark.parametrize(
    "faithful",
    [
        "The well was dug to irrigate the orchards.",
        "The second well was dug because the orchards needed water.",
        "Tablets were bought by the school to let pupils read at home.",
        "To keep dogs away, a fence was put up around the pond.",
        "The school bought tablets to help pupils.",
    ],
)
def test_the_same_purpose_in_other_words_is_left_alone(faithful: str) -> None:
    """So is a purpose that is told as a cause, and one that nothing else has."""
    assert not found(VILLAGE, faithful)


def test_the_cause_of_one_thing_of_a_series_says_nothing_of_another() -> None:
    """Ward 2 has a cause of its own, which another sentence tells without saying so."""
    wards = (
        "Ward 1 was closed on Monday because of flu.",
        "Ward 2 has been closed since Tuesday.",
        "Pipes had leaked there.",
    )

    assert not found(wards, "Ward 2 was closed because pipes had leaked.")
    assert rule((wards[0], wards[2]), "Ward 1 was closed because pipes had leaked.") is not None
