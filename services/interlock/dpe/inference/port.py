"""The port to the neural models: sentence embeddings, natural language inference and named entities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from interlock.dpe.document import Entity
from interlock.dpe.inference.models import ModelManifest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
else:
    Floats = Any

EMBEDDING_WIDTH = 384
ENTAILMENT, NEUTRAL, CONTRADICTION = 0, 1, 2

deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
"""Deadline of the caller on the event loop's clock. Remote models receive it as their timeout."""


@dataclass(frozen=True)
class ModelInfo:
    """A model in use: its slot, name with version, hash and runtime."""

    slot: str
    name: str
    hash: str
    runtime: str

    @classmethod
    def of(cls, manifest: ModelManifest, runtime: str) -> ModelInfo:
        """Return the description of a pinned model for the report."""
        return cls(manifest.slot, f"{manifest.name} {manifest.version}", manifest.hash, runtime)


class Inference(Protocol):
    """The operations that the stages need from the models.

    A text is never truncated; one that does not fit is refused. A score depends on its own text alone, never on the
    rest of the batch. Refused with UNAVAILABLE (MODEL_OUTPUT_INVALID and others) or TIMEOUT when a model cannot answer;
    there is no default score.
    """

    max_pair_tokens: int
    """Token budget of a premise and a hypothesis together."""

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return one row of 384 values for each text, each of length 1.0."""
        ...

    async def nli(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Return P(entailment), P(neutral) and P(contradiction) for each (premise, hypothesis); a row sums to 1.0.

        Refused with CLAIM_TOO_LONG when a pair has more than ``max_pair_tokens``.
        """
        ...

    async def names(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """Return the names in each text, in order, with their spans. The kinds are those of ``inference.ner``."""
        ...

    def tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of NLI tokens of each text."""
        ...

    def models(self) -> tuple[ModelInfo, ...]:
        """Return the models in use."""
        ...

    async def check(self) -> None:
        """Return when every model can be used now. Refused with the reason otherwise."""
        ...

    def close(self) -> None:
        """Release the models."""
        ...
