"""What is left behind, for another place or another choice, is not where a claim may keep it."""

from __future__ import annotations

import pytest

from tests.unit.dpe.comparison.bindings.reading import found, passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]

_DEPOT = "The brewery relocated its bottling line from Hull to Goole in March."
_ARCHIVE = "The archive will move its maps from Cardiff to Newport; the film room stays in Cardiff."
_SMOKE = "The breeze pushed the smoke away from the chapel and towards the quarry."
_LEAVES = "Pruned twigs are not brought to the incinerator, but to the compost yard in Elm Road."
_LEVY = "The treasurer, and no longer the warden, has signed the cheques since May."
_MILK = "Guests who would like Gouda instead of Cheddar have to ask the cook."


@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        (_DEPOT, "The bottling line is in Hull now.", "The bottling line is in Goole now."),
        (_DEPOT, "Since March the bottling line has been at work in Hull.", "Since March the bottling line has been at work in Goole."),
        (_DEPOT, "The new home of the bottling line is in Hull.", "Until March the home of the bottling line was in Hull."),
        (_DEPOT, "The bottling line went to Hull.", "The bottling line was in Hull."),
        (_ARCHIVE, "The maps will have their shelves in Cardiff.", "For now the maps are in Cardiff."),
        (_ARCHIVE, "The maps are going to Cardiff.", "The film room will be in Cardiff."),
        (_SMOKE, "The smoke drifted towards the chapel.", "The smoke drifted away from the chapel."),
        (_LEAVES, "The twigs go to the incinerator rather than to the compost yard.", "The twigs go to the compost yard rather than to the incinerator."),
        (_LEAVES, "The yard gets no twigs, as they go to the incinerator instead of the compost yard.", "They go to the yard instead of the incinerator."),
        (_LEVY, "Cheques are signed by the warden in place of the treasurer.", "Cheques are signed by the treasurer in place of the warden."),
        (_MILK, "Unless you ask for Cheddar, you get Gouda.", "Unless you ask for Gouda, you get Cheddar."),
    ],
)  # fmt: skip
def test_what_is_left_behind_is_not_kept(source: str, bent: str, faithful: str) -> None:
    """In the present and the future of a move, and on the wrong side of a choice; before the move it was there."""
    assert [f for f in found((source,), bent) if f.slot in {"place", "choice"}]
    assert not found((source,), faithful)


@pytest.mark.parametrize(
    ("sources", "answer"),
    [
        ((_DEPOT, "A new bottling line for cider runs in Hull."), "A new bottling line runs in Hull."),
        (("The herd moved from the moor to the fen and back.",), "The herd is on its way to the moor."),
        ((_DEPOT,), "The office is in Hull."),
        (("Tea instead of coffee is served at noon.", "Coffee instead of tea is served at nine."), "Coffee instead of tea is served."),
    ],
)  # fmt: skip
def test_what_may_be_there_is_left_alone(sources: tuple[str, ...], answer: str) -> None:
    """Another sentence that has it there, a way back, and something else."""
    assert not [f for f in found(sources, answer) if f.slot in {"place", "choice"}]


def test_a_shift_tells_what_is_left_for_what() -> None:
    """And whether it is still to come."""
    (depot,), (archive,) = passages(_DEPOT), passages(_ARCHIVE)

    assert [("Hull", "Goole", False)] == [(s.old.text, s.new[0].text, s.later) for s in depot.shifts]
    assert [("Cardiff", "Newport", True)] == [(s.old.text, s.new[0].text, s.later) for s in archive.shifts]
