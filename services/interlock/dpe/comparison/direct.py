"""Direct comparison of one sentence of a claim with its source: all cues, from all comparers (SPEC-005 §5.3)."""

from collections.abc import Iterator

from interlock.dpe.comparison.alignment import align
from interlock.dpe.comparison.conflicts import sentence_conflicts
from interlock.dpe.comparison.cues import Cue
from interlock.dpe.comparison.denied_values import denies_another
from interlock.dpe.comparison.polarity import flips
from interlock.dpe.comparison.stripping import stripped
from interlock.dpe.values.frames import Frame, FramedSentence


def cues(sentence: FramedSentence, claim: Frame, fact: Frame) -> Iterator[Cue]:
    """Yield every cue, certain or not. To deny a value that the source does not state either flips nothing."""
    alignment = align(sentence, claim, fact)
    yield from sentence_conflicts(sentence, alignment, claim, fact)
    if not denies_another(sentence, claim, fact):
        yield from flips(sentence, alignment, claim, fact)
    yield from stripped(sentence, alignment, claim, fact)
