"""Tables, objects and lists of an answer over sources of prose: what stands in the wrong row (SPEC-005 §5.3)."""

from __future__ import annotations

import numpy as np
import pytest

from interlock.dpe.document import Fact
from interlock.dpe.grounding.envelope import Cut, Envelope, EvidenceUnit
from interlock.dpe.grounding.placing.paired_cells import exchanged_cells
from interlock.dpe.grounding.placing.rows_told import columns
from interlock.dpe.grounding.placing.scopes import scopes
from interlock.dpe.request import Output, Request
from tests.support.dpe import claim, pipeline

pytestmark = pytest.mark.req("DPE-3")
TUTORS = ("Nadia Brandt is the tutor of the pottery course and Felix Orme that of the weaving course.",)
SALES = ("In the spring sale we sold 310 lamps for €12,400, and in the autumn sale 275 lamps for €13,750.",)
VETS = ("Ms Rao looks after Elm and Ash, and Mr Eley looks after Oak and Fir.",)
CABINS = ("The Kestrel cabin sleeps four. The Heron cabin sleeps six.",)


def split(text: str) -> list[str]:
    return [sentence for sentence in text.split(". ") if sentence]


def found(sources: tuple[str, ...], *answers: str) -> list[tuple[str, str, str]]:
    """What the rows of an answer exchange: the type, the source's value and the answer's."""
    facts = tuple(Fact(f"f{n}", text, 0.5) for n, text in enumerate(sources))
    units = tuple(EvidenceUnit(n, text, frozenset(), 20) for n, source in enumerate(sources) for text in split(source))
    known = scopes(Envelope(Cut(facts, sources, units, ()), np.zeros((0, 1)), np.zeros((0, 1))))
    told = columns([claim(text, number) for number, text in enumerate(answers, 1)])
    return [
        (one.type, one.source_value, one.claim_value) for each in exchanged_cells(told, known).values() for one in each
    ]


@pytest.mark.parametrize(
    ("sources", "faithful", "bent", "expected"),
    [
        (
            TUTORS,
            ("Pottery; Tutor: Nadia Brandt", "Weaving; Tutor: Felix Orme"),
            ("Pottery; Tutor: Felix Orme", "Weaving; Tutor: Nadia Brandt"),
            [("ENTITY_SUBSTITUTED", "Nadia Brandt", "Felix Orme"), ("ENTITY_SUBSTITUTED", "Felix Orme", "Nadia Brandt")],
        ),
        (
            SALES,
            ("spring revenue: 12400", "autumn revenue: 13750"),
            ("spring revenue: 13750", "autumn revenue: 12400"),
            [("NUMBER_CHANGED", "12400", "13750"), ("NUMBER_CHANGED", "13750", "12400")],
        ),
        (
            VETS,
            ("Rao; Farm: Elm", "Rao; Farm: Ash", "Eley; Farm: Oak"),
            ("Rao; Farm: Elm", "Eley; Farm: Ash", "Rao; Farm: Oak"),
            [("ENTITY_SUBSTITUTED", "Rao", "Eley"), ("ENTITY_SUBSTITUTED", "Eley", "Rao")],
        ),
        (
            CABINS,
            ("Kestrel:", "sleeps: 4", "Heron:", "sleeps: 6"),
            ("Kestrel:", "sleeps: 6", "Heron:", "sleeps: 4"),
            [("NUMBER_CHANGED", "4", "6"), ("NUMBER_CHANGED", "6", "4")],
        ),
        (
            ("Alma lands in May and Boris in March.",),
            ("Alma: May, by ship", "Boris: March, by ship"),
            ("Alma: March, by ship", "Boris: May, by ship"),
            [("DATE_SHIFTED", "May", "March"), ("DATE_SHIFTED", "March", "May")],
        ),
    ],
)  # fmt: skip
def test_cells_in_each_others_rows_are_found(sources, faithful, bent, expected):
    """A cell that the prose gives to another row is a finding; in its own row it is none."""
    assert found(sources, *faithful) == []
    assert found(sources, *bent) == expected


@pytest.mark.parametrize(
    "source",
    [
        "Nadia Brandt and Felix Orme teach pottery and weaving.",
        "Pottery is not taught by Nadia Brandt, and weaving is not taught by Felix Orme.",
        "Nadia Brandt teaches pottery instead of Felix Orme, who taught weaving before.",
        "Nadia Brandt founded the pottery course, and Felix Orme the weaving course. Felix Orme also teaches pottery.",
    ],
)
def test_where_the_source_does_not_tell_which_is_whose_nothing_is_found(source):
    """Lists, denials, changes and a name that is given both leave the rows alone."""
    assert ("ENTITY_SUBSTITUTED", "Nadia Brandt", "Felix Orme") not in found(
        (source,), "Pottery; Tutor: Felix Orme", "Weaving; Tutor: Nadia Brandt"
    )


def test_a_value_that_nothing_pairs_with_another_row_is_left_alone():
    """A difference that the answer calculated may be a number that stands in the sources otherwise."""
    sources = ("Elm sold 12 lamps and Oak 9.",)
    assert found(sources, "Elm; Left: 3", "Oak; Left: 6") == []


@pytest.mark.models
async def test_the_engine_finds_exchanged_rows_and_leaves_the_right_ones():
    """A table over two sentences of prose, judged as a whole."""
    for tutors, bent in (("Nadia Brandt", "Felix Orme"), False), (("Felix Orme", "Nadia Brandt"), True):
        table = f"| Course | Tutor |\n|---|---|\n| Pottery | {tutors[0]} |\n| Weaving | {tutors[1]} |"
        report = await pipeline().analyse(
            Request(outputs=(Output(0, table),), facts=(Fact("f1", TUTORS[0], 0.5),), query="Make a table.")
        )
        assert bool(report.distortion_count) is bent
