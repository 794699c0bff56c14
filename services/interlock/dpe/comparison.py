"""One sentence of a claim against its source: everything that a direct comparison finds."""

from collections.abc import Iterator

from interlock.dpe.alignment import align
from interlock.dpe.conflicts import sentence_conflicts
from interlock.dpe.cues import Cue
from interlock.dpe.frames import Frame, Sentence
from interlock.dpe.polarity import flips, stripped


def cues(sentence: Sentence, claim: Frame, fact: Frame) -> Iterator[Cue]:
    """Yield every cue, certain or not."""
    alignment = align(sentence, claim, fact)
    yield from sentence_conflicts(sentence, alignment, claim, fact)
    yield from flips(sentence, alignment, claim, fact)
    yield from stripped(sentence, alignment, claim, fact)
