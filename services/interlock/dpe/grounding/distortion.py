"""Stage 3b, distortion: how a claim misrepresents the source fact that it rests on (SPEC-005 §5.3).

Values and names are compared directly, and the result stands without a model. A negation flip or a dropped limit stands
alone only if the claim otherwise copies its source; else the NLI model must confirm it, so that no paraphrase is
accused.
"""

from interlock.dpe.comparison.cues import CONTEXT_STRIPPED, NEGATION_FLIP, Cue
from interlock.dpe.comparison.direct import cues
from interlock.dpe.document import Claim, Distortion, Fact, NliScores
from interlock.dpe.values.frames import frame

_CONTRADICTED = 0.5
_HALF_CONTRADICTED = 0.3
_NOT_ENTAILED = 0.5


def find(claim: Claim, fact: Fact, nli: NliScores, in_context: NliScores | None = None) -> tuple[Distortion, ...]:
    """Return the distortions of a claim against the fact that it rests on. *nli* scores that pair.

    *in_context* scores the fact with the sentences beside it, where they were read together. A fact whose *then* or *these* stands in
    another sentence entails nothing alone, so that no dropped limit can be told from a limit that was never about the claim.
    """
    claim_frame, fact_frame = frame(claim.text), frame(fact.content)
    found = [
        (cue.type, cue.source_value, cue.claim_value)
        for sentence in claim_frame.sentences
        for cue in cues(sentence, claim_frame, fact_frame)
        if cue.certain or _seen_by_model(cue, in_context if in_context and cue.type == CONTEXT_STRIPPED else nli)
    ]
    return tuple(Distortion(kind, source, claim_value, fact.id) for kind, source, claim_value in dict.fromkeys(found))


def _seen_by_model(cue: Cue, nli: NliScores) -> bool:
    """Whether the NLI model confirms a cue."""
    if cue.type == NEGATION_FLIP:
        return nli.contradiction >= _CONTRADICTED or (
            nli.contradiction >= _HALF_CONTRADICTED and nli.entailment < _HALF_CONTRADICTED
        )
    return nli.entailment < _NOT_ENTAILED or nli.contradiction >= _CONTRADICTED
