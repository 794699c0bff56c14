"""What a claim is surer of, or says of more, than the one sentence of the sources on it."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.pairings.certainty import overstated
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]

_QUARRY = "The quarry has 60 carts, 45 of which run on rails."
_SHIPS = "About 300 ships waited in the roads; 250 of them were through the lock by 06:40."
_MOSS = "Botanist Ada Ross said that the frost in May had probably thinned the moss."


def _over(sources: tuple[str, ...], claim: str) -> str:
    evidence = Evidence(tuple(p for source in sources for p in passages(source)))
    found = overstated(passages(claim)[-1], evidence)
    return found.slot if found is not None else ""


@pytest.mark.parametrize(
    ("source", "claim", "slot"),
    [
        (_QUARRY, "The quarry has 60 carts, all of them on rails.", "quantifier"),
        (_SHIPS, "Every one of them had left the lock by 06:40.", "quantifier"),
        (_MOSS, "It is beyond doubt that the frost in May thinned the moss.", "certainty"),
        (_MOSS, "Ada Ross did not see the moss herself, but it is certain that the May frost had thinned it.", "certainty"),
    ],
)  # fmt: skip
def test_what_goes_beyond_its_source_is_found(source: str, claim: str, slot: str) -> None:
    """A part counted in figures, one shared time, the month that is no *may*, and a denial of something else."""
    assert _over((source,), claim) == slot


@pytest.mark.parametrize(
    ("sources", "claim"),
    [
        ((_QUARRY,), "The quarry has 60 carts, most of them on rails."),
        ((_MOSS,), "It is likely that the frost in May thinned the moss."),
        ((_MOSS,), "It is not certain that the frost in May thinned the moss."),
        (("A cart carries at most 800 kg of slate.",), "Each cart carries 800 kg of slate at most."),
        ((_QUARRY, "The quarry has 60 carts with brakes."), "The quarry has 60 carts, all of them with brakes."),
    ],
)  # fmt: skip
def test_what_says_no_more_is_left_alone(sources: tuple[str, ...], claim: str) -> None:
    """A part for a part, a doubt for a doubt, *at most*, and two sentences that may both be meant."""
    assert not _over(sources, claim)
