"""Values that pass between the stages: sentences, claims, and findings about them.

Every offset counts Unicode code points in the output as the model wrote it, never in a normalised copy, so that a
reader of the report can mark the released text.
"""

from dataclasses import dataclass
from enum import IntEnum


class ClaimType(IntEnum):
    """Kind of a claim (SPEC-005 §3.3); the numbers are those of the proto."""

    FACTUAL = 1
    OPINION = 2
    PROCEDURAL = 3
    META = 4


@dataclass(frozen=True)
class Entity:
    """A named entity or a value, with its span in the output."""

    text: str
    label: str
    start: int
    end: int


@dataclass(frozen=True)
class Sentence:
    """One sentence of an output."""

    index: int
    text: str
    start: int
    end: int
    choice_index: int


@dataclass(frozen=True)
class Claim:
    """One atomic assertion (SPEC-005 §3.2)."""

    claim_id: str
    text: str
    sentence_index: int
    choice_index: int
    start: int
    end: int
    claim_type: ClaimType
    specificity: float
    entities: tuple[Entity, ...]
    output_index: int = 0  # index of the request's output that the offsets refer to


@dataclass(frozen=True)
class NliScores:
    """Class probabilities of the NLI cross-encoder for one (premise, hypothesis) pair. They sum to 1.0."""

    entailment: float
    neutral: float
    contradiction: float


@dataclass(frozen=True)
class Distortion:
    """A claim that misrepresents its source (SPEC-005 §5.3)."""

    type: str
    source_value: str
    claim_value: str
    fact_id: str
    slot: str = ""  # what the claim fills otherwise: agent, object, recipient, place, said-by, condition, …


@dataclass(frozen=True)
class PiiFinding:
    """Span, kind and score of one piece of personal data, never the data itself."""

    type: str
    category: str
    where: str
    start: int
    end: int
    score: float
    output_index: int | None = None  # index of the output that the offsets refer to; None for the prompt


@dataclass(frozen=True)
class Fact:
    """One fact of the envelope."""

    id: str
    content: str
    importance: float
