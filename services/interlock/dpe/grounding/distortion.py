"""Stage 3b, distortion: how a claim misrepresents the source fact that it rests on (SPEC-005 §5.3).

Values and names are compared directly, and the result stands without a model. A negation flip or a dropped limit stands
alone only if the claim otherwise copies its source; else the NLI model must confirm it, so that no paraphrase is
accused.
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
    """Return the distortions of a claim against the fact that it rests on. *nli* scores that pair."""
    claim_frame, fact_frame = frame(claim.text), frame(fact.content)
    found = [
        each for sentence in claim_frame.sentences for each in _in_sentence(sentence, claim_frame, fact_frame, nli)
    ]
    return tuple(Distortion(kind, source, claim_value, fact.id) for kind, source, claim_value in dict.fromkeys(found))


def _in_sentence(sentence: FramedSentence, claim: Frame, fact: Frame, nli: NliScores) -> Iterator[tuple[str, str, str]]:
    for cue in cues(sentence, claim, fact):
        if cue.certain or _seen_by_model(cue, nli):
            yield cue.type, cue.source_value, cue.claim_value


def _seen_by_model(cue: Cue, nli: NliScores) -> bool:
    """Whether the NLI model confirms a cue."""
    if cue.type == NEGATION_FLIP:
        return nli.contradiction >= _CONTRADICTED or (
            nli.contradiction >= _HALF_CONTRADICTED and nli.entailment < _HALF_CONTRADICTED
        )
    return nli.entailment < _NOT_ENTAILED or nli.contradiction >= _CONTRADICTED
