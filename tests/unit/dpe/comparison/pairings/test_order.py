"""The steps of a numbered list, and what a claim may not turn round among them (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP
from interlock.dpe.comparison.bindings.relations.order import steps
from interlock.dpe.comparison.pairings.compare import compare
from interlock.dpe.comparison.pairings.listed_steps import items, misordered
from interlock.dpe.comparison.pairings.reordered import reordered
from interlock.dpe.document import Sentence
from tests.unit.dpe.comparison.bindings.reading import found, passages

pytestmark = pytest.mark.req("DPE-3")
LIST = "How to bleed a radiator:\n1. Switch off the heating.\n2. Put a towel under the valve.\n3. Open the bleed screw with the key.\n4. Close it again."


def slots(answer: str) -> list[str]:
    """The slots that the steps of the list contradict."""
    evidence = Evidence((), (tuple(passages(step)[0] for step in steps(LIST)),))
    return [one.slot for told in passages(answer) for one in compare(told, evidence, told.content)]


def test_the_steps_of_a_list_are_its_numbered_lines():
    """Only a list that counts from 1 has an order, and one of two lines has none to speak of."""
    assert steps(LIST)[1] == "Put a towel under the valve."
    assert steps("2. Wait.\n3. Go.\n4. Stop.") == ()
    assert steps("1. Wait.\n2. Go.") == ()
    assert steps("No list.") == ()


def listed(answer: str) -> list[str]:
    """What stands in another order in the numbered list of an answer than in that of the source."""
    texts = steps(answer)
    evidence = Evidence((), (tuple(passages(step)[0] for step in steps(LIST)),))
    return [one.claim_value for _, one in misordered([passages(text)[0] for text in texts], evidence)]


@pytest.mark.models
def test_the_items_of_an_answer_stand_in_the_order_of_the_steps():
    """One item that has moved is named; a list that leaves steps out, or has another step, has no other order."""
    moved = "1. Turn the heating off.\n2. Open the bleed screw with its key.\n3. Put a towel under the valve.\n4. Close the screw again."
    right = "1. Turn off the heating.\n2. Put a towel under the valve.\n3. Use the key to open the bleed screw.\n4. Close it again."
    other = "1. Paint the wall.\n2. Turn off the heating.\n3. Put a towel under the valve.\n4. Open the bleed screw with the key."

    assert listed(moved) == ["behind step 3: Put a towel under the valve."]
    assert listed(right) == listed(other) == []


def test_the_items_of_a_numbered_list_are_told_from_sentences_of_prose():
    """An item begins behind a number, and a second sentence of it does not."""
    text = "1. Wait.\n2. Go on. Look.\n3. Stop.\n4. Rest."
    spans = [(3, 8), (12, 18), (19, 24), (28, 33), (37, 42)]
    told = [Sentence(n, text[a:b], a, b, 0) for n, (a, b) in enumerate(spans)]

    assert [each.text for each in items(told)] == ["Wait.", "Go on.", "Stop.", "Rest."]
    assert items(told[:2]) == []


@pytest.mark.models
def test_a_later_step_does_not_come_first():
    """What stands as step 3 does not come before step 2; what stands in order, or is no step, is left alone."""
    assert slots("Open the bleed screw before you put a towel under the valve.") == ["order"]
    assert slots("Once the bleed screw is open, switch off the heating.") == ["order"]
    assert slots("Put a towel under the valve before you open the bleed screw.") == []
    assert slots("Paint the wall before you open the bleed screw.") == []


@pytest.mark.models
@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        ("The digging must not begin before the board has given its permission.", "The permission of the board has to come before the beginning of the digging.", "The digging has to begin before the permission of the board."),
        ("No tile may be laid before the floor has dried.", "Tiles may be laid after the floor has dried.", "The tiles are laid before the floor has dried."),
        ("The crew will return in June, since the pass is closed until then.", "The crew will not return before June because the pass is closed.", ""),
        ("He had no debts and had paid the fine before the hearing.", "He had paid the fine before the hearing.", "He had paid the fine only after the hearing."),
        ("Do not forget to drain the tank before opening the valve.", "The tank has to be drained before the valve is opened.", "The valve has to be opened before the tank is drained."),
    ],
)  # fmt: skip
def test_what_must_not_come_before_comes_after(source: str, faithful: str, bent: str) -> None:
    """*Not before* tells the order from its other end, *until then* tells of none, and who must not forget does it first."""
    assert not found((source,), faithful)
    assert not bent or found((source,), bent)


@pytest.mark.models
@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        ("Permits go first to fishermen, then to divers.", "Divers take precedence over fishermen for permits.", "Fishermen take precedence over divers for permits."),
        ("The trainee fills in the chart first; the doctor adds remarks and both sign.", "The doctor adds remarks first, and the trainee fills in the chart afterwards.", "The trainee fills in the chart first, and the doctor adds remarks afterwards."),
        ("Spray the vines after the harvest, never before it.", "Spraying the vines precedes the harvest.", "The harvest precedes the spraying of the vines."),
        ("The tram was replaced in 1971 by a bus. When the toll bridge was abolished in 1994, the bus was moved.", "The toll bridge was abolished before the tram was replaced by a bus.", "The tram was replaced by a bus before the toll bridge was abolished."),
        ("The brewery lost the Hotel Adler in May and won the Hotel Krone in June.", "The brewery won the Hotel Krone before it lost the Hotel Adler.", "The brewery lost the Hotel Adler before it won the Hotel Krone."),
        ("The town banned cars from the quay in 2008, but closed the car park there only in 2015.", "The car park was closed before cars were banned from the quay.", "Cars were banned from the quay before the car park was closed."),
    ],
)  # fmt: skip
def test_an_order_is_read_from_more_words_and_from_days(source: str, bent: str, faithful: str) -> None:
    """The bent claim turns the order of two events round, and the faithful one keeps it."""
    assert "order" in {each.slot for each in found((source,), bent)}
    assert not found((source,), faithful)


@pytest.mark.models
@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The fair is in November and the concert in February.", "The concert comes after the fair."),
        ("The concert is in November. The fair is in February.", "The fair of February comes before the next concert in November."),
        ("Her licence ends in 2026. She may leave the choir before 2027 if it moves.", "She may leave the choir before 2027 if it moves."),
        ("The mill burned in 1950. He cut his hand at the mill in 1961 and got a stamp.", "He did not get a stamp after the mill burned."),
    ],
)  # fmt: skip
def test_days_of_which_the_order_is_not_sure_are_left(source: str, claim: str) -> None:
    """A month may be of the next year, and what a claim denies or dates itself has no order of two events."""
    assert "order" not in {each.slot for each in found((source,), claim)}


PLAN = (
    "The council approved the plan in May, after the neighbours had withdrawn their objection.",
    "The contractor will not start digging until the pipes have been marked.",
    "The library was flooded in 2021 and later moved to the station building.",
    "Market stalls are set up at 6 a.m.; after that the street is closed to cars.",
    "After the vote the club asked its lawyer to draft a contract.",
)
QUEUE = ("The launch followed a test on goats.", "The millers are served, then the farmers are.")
FLIGHT = (
    "The pilot first checked the flaps and then asked for clearance.",
    "The crew had already reported the leak when the alarm sounded.",
    "The old hangar stays open until the new one is finished.",
    "The airfield introduced the radar in 2019 to relieve the tower, where waits of an hour had been usual until then.",
    "The airline refunds the fare after the claim has been checked by the desk.",
)


@pytest.mark.models
@pytest.mark.parametrize(
    ("sources", "bent"),
    [
        (PLAN, "The council approved the plan. Only afterwards did the neighbours withdraw their objection."),
        (PLAN, "The pipes will not be marked until the contractor has started digging."),
        (PLAN, "The library moved to the station building and was later flooded."),
        (PLAN, "The street is closed to cars; after that the market stalls are set up."),
        (PLAN, "Ahead of the vote, the club asked its lawyer to draft a contract."),
        (QUEUE, "The launch was followed by a test on goats."),
        (QUEUE, "Farmers come first. They are followed by the millers."),
        (FLIGHT, "The pilot asked for clearance first. After that he checked the flaps."),
        (FLIGHT, "The alarm sounded first. Only then did the crew report the leak."),
        (FLIGHT, "The old hangar stays open once the new one is finished."),
        (FLIGHT, "Ever since the radar was introduced in 2019, waits of an hour have been usual."),
        (FLIGHT, "The fare is refunded first. Then the desk checks the claim."),
    ],
)
def test_an_order_is_turned_in_one_sentence_or_across_two(sources: tuple[str, ...], bent: str) -> None:
    """The finding is of the order."""
    evidence = Evidence(tuple(p for n, fact in enumerate(sources) for p in passages(fact, f"f{n}")))
    told = [one for claim in passages(bent) if (one := reordered(claim, evidence)) is not None]

    assert [(one.type, one.slot) for one in told] == [(NEGATION_FLIP, "order")]


@pytest.mark.models
@pytest.mark.parametrize(
    ("sources", "faithful"),
    [
        (PLAN, "The neighbours withdrew their objection. Only then did the council approve the plan."),
        (PLAN, "By May the council had approved the plan. Before that, the neighbours had withdrawn their objection."),
        (PLAN, "The pipes have to be marked first; digging comes afterwards."),
        (PLAN, "The library moved to the station building later. It had been flooded in 2021."),
        (PLAN, "Once the vote was over, the club asked its lawyer to draft a contract."),
        (QUEUE, "The test on goats was followed by the launch."),
        (QUEUE, "Millers come first. They are followed by the farmers."),
        (FLIGHT, "The pilot asked for clearance after checking the flaps."),
        (FLIGHT, "The alarm sounded after the crew had reported the leak."),
        (FLIGHT, "When the new hangar is finished, the old one will be closed."),
        (FLIGHT, "The old hangar remains open while the new one is being built."),
        (FLIGHT, "Since the radar was introduced in 2019, waits have become short."),
        (FLIGHT, "The fare is not refunded until the desk has checked the claim."),
        (FLIGHT, "The pilot looked after the flaps and asked for clearance."),
    ],
)
def test_the_same_order_in_other_words_is_left_alone(sources: tuple[str, ...], faithful: str) -> None:
    """So is what was so up to an event, and is otherwise since."""
    assert not found(sources, faithful)
