"""What a recount of the rows of an answer says of the findings in its claims (SPEC-005 §5.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.comparison.cues import MAGNITUDE_ALTERED, NUMBER_CHANGED
from interlock.dpe.document import Claim, Distortion
from interlock.dpe.grounding.placing.recounting.recount import recounted
from interlock.dpe.request import Request
from interlock.dpe.values.extraction import read

_FIGURES = frozenset({NUMBER_CHANGED, MAGNITUDE_ALTERED})
_EXACT = 3  # significant digits of a figure that is not another one's by chance


def without_made(
    looked: Sequence[tuple[Claim, ChoiceReading]], fabricated: Mapping[str, tuple[str, ...]], request: Request
) -> tuple[dict[str, tuple[str, ...]], frozenset[str]]:
    """Leave out the figures that rows and columns of the answer and of the sources make. Return the totals that none makes, too."""
    left = dict(fabricated)
    firm: frozenset[str] = frozenset()
    for index in dict.fromkeys(reading.index for _, reading in looked):
        names = [claim.claim_id for claim, reading in looked if reading.index == index]
        untold = dict.fromkeys(text for name in names for text in fabricated[name])
        texts = [output.text for output in request.outputs if output.choice_index == index]
        found = recounted(tuple(untold), texts, [fact.content for fact in request.facts])
        left |= {name: tuple(text for text in fabricated[name] if text not in found.made) for name in names}
        firm |= found.firm
    return left, firm


def changed_but_made(distorted: Mapping[str, tuple[Distortion, ...]], request: Request) -> frozenset[str]:
    """Return the changed figures that a row makes to the last of three digits or more: the rate of overtime is no bent hourly rate."""
    changed = {each.claim_value for found in distorted.values() for each in found if each.type in _FIGURES}
    exact = [text for text in changed if any(len(each.digits.strip("0")) >= _EXACT for each in read(text).values)]
    texts = [output.text for output in request.outputs]
    return recounted(exact, texts, [fact.content for fact in request.facts]).made if exact else frozenset()
