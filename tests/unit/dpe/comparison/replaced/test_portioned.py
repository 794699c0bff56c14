"""Words for a share that the share in the sources is not (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.cues import NUMBER_CHANGED
from interlock.dpe.comparison.replaced.portioned import portioned
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next((each for claim in passages(answer) if (each := portioned(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        ("Of the drivers, 38 % use the app daily.", "Fewer than half of the drivers use the app daily.", "Most drivers use the app daily."),
        ("71% of the nurses want fixed shifts.", "Most nurses want fixed shifts.", "Only a few of the nurses want fixed shifts."),
        ("Two of the seven wells near the dam ran dry.", "Fewer than half of the wells near the dam ran dry.", "Most of the wells near the dam ran dry."),
        ("Five of the six boats returned on Sunday.", "The majority of the boats returned on Sunday.", "All the boats returned on Sunday."),
        ("A third of the pupils walk to school.", "A minority of the pupils walk to school.", "More than half of the pupils walk to school."),
        ("One in eight households owns a boat.", "Few of the households own a boat.", "Most households own a boat."),
    ],
)  # fmt: skip
def test_a_word_for_another_share_is_found(source: str, faithful: str, bent: str) -> None:
    """Per cent, fractions, and so many of so many."""
    told = found(source, bent)

    assert found(source, faithful) is None
    assert told is not None and (told.type, told.slot, told.fact_id) == (NUMBER_CHANGED, "share", "f0")


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("Two of the seven wells ran dry.", "Most of the pumps ran dry."),
        ("Two of the seven wells ran dry.", "Most of the wells ran low."),
        ("Two of the seven wells did not run dry.", "Most of the wells ran dry."),
        ("At least 40 % of the nurses want fixed shifts.", "Most nurses want fixed shifts."),
        ("38 % of the drivers use the app daily, another 30 % use the app weekly.", "Most drivers use the app."),
        ("In May 40 % of the nurses want fixed shifts. In June 60 % of the nurses want fixed shifts.", "Most nurses want fixed shifts."),
        ("The most popular app has 38 % of drivers.", "The app that is most popular has drivers."),
    ],
)  # fmt: skip
def test_another_share_is_left_alone(source: str, answer: str) -> None:
    """Another thing or another predicate, a denial, a limit, two shares of one thing, and *most* of a degree."""
    assert found(source, answer) is None
