"""Each rule that looks at a whole sentence is asked where an answer is compared: without it, its fault is not found (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.pairings import compare
from tests.unit.dpe.comparison.bindings.reading import found

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


@pytest.mark.parametrize(
    ("rule", "source", "bent"),
    [
        ("recaused", "The mill closed its yard in Elm Lane because the owner doubled the rent. The saw in the yard was thirty years old and broke down twice.", "The saw broke down twice, so the mill closed its yard in Elm Lane."),
        ("voiced_by", "Head gardener Ida Holt praised the new hedge. The residents complained that the path is too narrow.", "The complaint that the path is too narrow came from Ida Holt."),
        ("directed", "The theatre had 12 % more guests than in the year before.", "Attendance at the theatre was down 12 %."),
        ("passed", "Norby bought six tugs from Brake and sold two of its barges to the port of Yarm.", "Two barges went from Yarm to Norby."),
        ("turned_threshold", "Dogs of 10 kg or more must travel in the hold.", "Dogs under 10 kg must travel in the hold."),
        ("extended", "The island can be reached only by boat.", "The island can be reached by boat as well as by plane."),
        ("refused", "The pass is valid on buses and trams, but not on ferries.", "The pass also works on ferries."),
        ("waived", "Those who join after 1 July may row only if they pass a swimming test.", "Those who join after 1 July need not take the swimming test."),
        ("of_others_too", "Two of the ferries carry cars; the others do not.", "All ferries carry cars."),
        ("narrowed", "The porter's lodge is staffed around the clock.", "The porter's lodge is staffed except on Sundays."),
        ("one_for_both", "One of the parents must sign the form.", "Both parents must sign the form."),
        ("exchanged_exception", "The market is held on Saturdays.", "The market is held every day except Saturday."),
        ("opposed", "Subscribers get the second filter free of charge.", "Subscribers get the second filter at their own expense."),
    ],
)  # fmt: skip
def test_a_rule_is_asked(rule: str, source: str, bent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it finds nothing else finds as it does."""
    told = [(each.slot, each.claim_value) for each in found((source,), bent)]
    monkeypatch.setattr(compare, "_RULES", tuple(each for each in compare._RULES if each.__name__ != rule))

    assert told
    assert [(each.slot, each.claim_value) for each in found((source,), bent)] != told
