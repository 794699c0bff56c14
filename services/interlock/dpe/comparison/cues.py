"""The cues that the direct comparison of a claim with its source can find (SPEC-005 §5.3)."""

from dataclasses import dataclass

NUMBER_CHANGED = "NUMBER_CHANGED"
MAGNITUDE_ALTERED = "MAGNITUDE_ALTERED"
DATE_SHIFTED = "DATE_SHIFTED"
ENTITY_SUBSTITUTED = "ENTITY_SUBSTITUTED"
NEGATION_FLIP = "NEGATION_FLIP"
CONTEXT_STRIPPED = "CONTEXT_STRIPPED"


@dataclass(frozen=True)
class Cue:
    """A sign that a claim misrepresents its source. A cue that is not certain needs confirmation by the NLI model."""

    type: str
    source_value: str
    claim_value: str
    certain: bool = True


NORM = "norm"
"""The slot of what may, must or must not be done."""
