"""Stage 3b, distortion: a claim that refers to a source fact and misrepresents it (SPEC-005 §5.3).

Values and names are compared directly and stand alone. A turned sense or a dropped limit stands alone only where the
claim otherwise copies its source; else the NLI model must see it too, so that a paraphrase is not accused.
"""

from collections.abc import Iterator

from interlock.dpe.comparison.cues import NEGATION_FLIP, Cue
from interlock.dpe.comparison.direct import cues
from interlock.dpe.document import Claim, Distortion, Fact, NliScores
from interlock.dpe.values.frames import Frame, FramedSentence, frame

_CONTRADICTED = 0.5
_HALF_CONTRADICTED = 0.3
_NOT_ENTAILED = 0.5


def find(claim: Claim, fact: Fact, nli: NliScores) -> tuple[Distortion, ...]:
    """Return what a claim says otherwise than the fact that it rests on; ``nli`` is of that pair."""
    mine, its = frame(claim.text), frame(fact.content)
    found = [each for sentence in mine.sentences for each in _in_sentence(sentence, mine, its, nli)]
    return tuple(Distortion(kind, source, said, fact.id) for kind, source, said in dict.fromkeys(found))


def _in_sentence(sentence: FramedSentence, claim: Frame, fact: Frame, nli: NliScores) -> Iterator[tuple[str, str, str]]:
    for cue in cues(sentence, claim, fact):
        if cue.certain or _seen_by_model(cue, nli):
            yield cue.type, cue.source_value, cue.claim_value


def _seen_by_model(cue: Cue, nli: NliScores) -> bool:
    """Whether the NLI model sees what a cue suggests."""
    if cue.type == NEGATION_FLIP:
        return nli.contradiction >= _CONTRADICTED or (
            nli.contradiction >= _HALF_CONTRADICTED and nli.entailment < _HALF_CONTRADICTED
        )
    return nli.entailment < _NOT_ENTAILED or nli.contradiction >= _CONTRADICTED
