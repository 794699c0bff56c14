"""A claim that takes the other side of what its source says, in whatever words (SPEC-005 §5.3, ADR 54)."""

from __future__ import annotations

from collections import Counter

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.bindings.stances.axes import FILES
from interlock.dpe.comparison.worded.opposed import opposed
from interlock.dpe.text.wordlists import lines
from tests.unit.dpe.comparison.bindings.reading import found as compared
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]

CASES = [
    ("The second filter is sent to subscribers free of charge.", "Subscribers get the second filter at no cost.", "Subscribers get the second filter at their own expense."),
    ("The mayor's post on Rona is held temporarily by Ada Quist.", "Ada Quist holds the mayor's post on Rona for the time being.", "Ada Quist holds the mayor's post on Rona for good."),
    ("The council turned down the plan for a toll bridge.", "The plan for a toll bridge was rejected by the council.", "The council gave the plan for a toll bridge the green light."),
    ("Wearing a helmet in the quarry is mandatory.", "In the quarry a helmet is compulsory.", "Wearing a helmet in the quarry is a matter of choice."),
    ("The tribunal upheld the fine against the ferry line.", "The fine against the ferry line was confirmed by the tribunal.", "The tribunal quashed the fine against the ferry line."),
    ("The choir rehearses behind closed doors in March.", "In March the choir rehearses in private.", "In March the choir rehearses in public."),
    ("The seedlings must be kept indoors during April.", "During April the seedlings have to stay indoors.", "During April the seedlings must be kept in the open air."),
    ("The bakery admitted that the flour had been mixed up.", "The bakery conceded that the flour had been mixed up.", "The bakery denied that the flour had been mixed up."),
    ("The labels are printed by hand at the Oban works.", "At the Oban works the labels are printed manually.", "At the Oban works the labels are printed automatically."),
    ("The harbour master waived the mooring fee of 40 euros.", "The harbour master let them off the mooring fee of 40 euros.", "The harbour master charged the mooring fee of 40 euros."),
    ("The tunnel was finished ahead of schedule.", "The tunnel was finished earlier than planned.", "The tunnel was finished behind schedule."),
]  # fmt: skip


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next((each for claim in passages(answer) if (each := opposed(claim, evidence)) is not None), None)


@pytest.mark.parametrize(("source", "faithful", "bent"), CASES)
def test_the_other_side_is_found_and_another_wording_is_not(source: str, faithful: str, bent: str) -> None:
    """The finding names both phrases and the fact."""
    told = found(source, bent)

    assert found(source, faithful) is None
    assert told is not None and told.slot == "stance" and told.fact_id == "f0"
    assert told.source_value.split()[-1] in source and told.claim_value.split()[-1] in bent


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        # To deny one side is to take the other.
        ("Payment by voucher is not optional.", "Payment by voucher is compulsory."),
        ("Wearing gloves is not mandatory, but voluntary.", "Wearing gloves is optional."),
        # What a sentence says of one case lets the other side hold in the other.
        ("Cancellation is free of charge only until Friday.", "Cancellation on Saturday is possible for a fee."),
        ("The museum is closed to the public except on Sundays.", "On Sundays the museum is open to everyone."),
        # Two things beside each other.
        ("The trail to the lake was kept and the trail to the ridge was given up.", "The trail to the ridge was abandoned."),
        # Other names and other figures are of something else.
        ("In Oslo the clinic is open to the public.", "In Bergen the clinic is closed to the public."),
        ("Of the plots, 40 survived.", "Of the plots, 9 were destroyed."),
        # A word of the clause's subject is not denied by its verb.
        ("Families with free lunch do not pay the levy.", "Families with free lunch are spared the levy."),
        # Nothing in common but the word.
        ("The ferry is free of charge.", "The cable car can be used for a fee."),
        # A supposed case.
        ("If the bridge is closed, the bus turns at the mill.", "The bridge is open."),
    ],
)  # fmt: skip
def test_what_is_not_surely_of_one_thing_is_left_alone(source: str, claim: str) -> None:
    """A false finding costs more than a miss."""
    assert found(source, claim) is None


def test_of_several_members_a_denial_says_nothing() -> None:
    """Not by train may be by bus; by ferry is not by train."""
    assert found("The parcels are sent by rail from Ghent.", "The parcels from Ghent are sent by ferry.") is not None
    assert found("The parcels are not sent by rail from Ghent.", "The parcels from Ghent are sent by ferry.") is None


@pytest.mark.parametrize("file", FILES)
def test_each_axis_has_sides_that_share_no_phrase(file: str) -> None:
    """A phrase on two sides of a question, or a denial in it, would turn a text into its opposite."""
    names: Counter[str] = Counter()
    for line in lines(file):
        name, _, rest = line.partition("=" if "=" in line.partition("|")[0] else "|")
        names[name] += 1
        sides = [{each.strip() for each in side.split(";")} for side in rest.split("|")]
        phrases = [each for side in sides for each in side]
        assert len(sides) >= 2 and all(all(side) for side in sides), name
        assert len(phrases) == len(set(phrases)), (name, [p for p, n in Counter(phrases).items() if n > 1])
        assert not [each for each in phrases if each.split()[0] in {"not", "never"} or each.startswith("no longer")], (
            name
        )
    assert not [name for name, count in names.items() if count > 1]


def test_an_answer_is_compared_by_its_stances() -> None:
    """Among all that compares a sentence, no other rule knows the two phrases."""
    source, faithful, bent = CASES[0]
    assert [each.slot for each in compared((source,), bent)] == ["stance"]
    assert not compared((source,), faithful)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        # an idiom is not its verb
        ("The bakery below, run by Ana Roth, denied any blame for the shelf.", "A shelf in the bakery below gave way.", ""),
        # two parts of a whole
        ("The train derailed when three of its 22 wagons left the rails at Orton.", "At Orton, 19 of the 22 wagons stayed on the rails.", "At Orton the wagons stayed on the rails."),
        # how often something is paid, and for how long
        ("Her wage is 30,000 francs a year, paid to her account on the 25th of each month.", "Her annual wage of 30,000 francs is paid to her account on the 25th.", ""),
        # each in its own case
        ("When the boat is sold, the cover of the policy continues in the name of the buyer.", "If the owner dies, the cover of the policy comes to an end.", "When the boat is sold, the cover of the policy comes to an end."),
    ],
)  # fmt: skip
def test_the_other_case_and_the_other_part_are_not_opposed(source: str, faithful: str, bent: str) -> None:
    """What is said of one part or one case says nothing of another."""
    assert found(source, faithful) is None
    assert not bent or found(source, bent) is not None
