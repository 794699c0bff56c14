"""Direct comparison of one sentence of a claim with its source: all cues, from all comparers (SPEC-005 §5.3)."""

from collections.abc import Iterator

from interlock.dpe.comparison.alignment import align
from interlock.dpe.comparison.cases.cases import is_case
from interlock.dpe.comparison.conflicts import sentence_conflicts
from interlock.dpe.comparison.cues import Cue
from interlock.dpe.comparison.denied_values import denies_another
from interlock.dpe.comparison.exceptions import tells_exception
from interlock.dpe.comparison.polarity import flips
from interlock.dpe.comparison.stripping import stripped
from interlock.dpe.values.frames import Frame, FramedSentence


def cues(sentence: FramedSentence, claim: Frame, fact: Frame) -> Iterator[Cue]:
    """Yield every cue, certain or not. To deny a value that the source does not state either flips nothing."""
    alignment = align(sentence, claim, fact)
    yield from sentence_conflicts(sentence, alignment, claim, fact)
    if _tells_exception(sentence, claim, fact) or any(is_case(value, claim, fact) for value in sentence.values):
        return  # what lies beyond a bound is denied what lies within it
    if not denies_another(sentence, claim, fact):
        yield from flips(sentence, alignment, claim, fact)
    yield from stripped(sentence, alignment, claim, fact)


def _tells_exception(sentence: FramedSentence, claim: Frame, fact: Frame) -> bool:
    """Whether a sentence tells what a sentence of its source excepts."""
    said = claim.written(sentence.first, sentence.last)
    return any(tells_exception(said, fact.written(each.first, each.last)) for each in fact.sentences)
