"""The port to the neural models: embeddings, natural language inference, and names."""

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
"""When the caller of an analysis stops waiting, on the event loop's clock: models elsewhere are told."""


@dataclass(frozen=True)
class ModelInfo:
    """A model in use: its slot, name with version, hash, and where it runs."""

    slot: str
    name: str
    hash: str
    runtime: str

    @classmethod
    def of(cls, manifest: ModelManifest, runtime: str) -> ModelInfo:
        """Return what a report says of a pinned model."""
        return cls(manifest.slot, f"{manifest.name} {manifest.version}", manifest.hash, runtime)


class Inference(Protocol):
    """What the stages ask of the models. No text is ever cut to fit: one that cannot fit is refused.

    A score depends on its own text alone, never on what else is asked for at the same time.
    Refused with UNAVAILABLE (MODEL_OUTPUT_INVALID and others) or TIMEOUT when a model cannot answer; never a default.
    """

    max_pair_tokens: int
    """Tokens that a premise and a hypothesis may have together."""

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return one row for each text, 384 wide, each of length 1.0."""
        ...

    async def nli(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Return entailment, neutral and contradiction for each (premise, hypothesis); a row sums to 1.0.

        Refused with CLAIM_TOO_LONG when a pair has more than ``max_pair_tokens``.
        """
        ...

    async def names(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """Return the names in each text, in order, with their places in it; kinds are those of ``interlock.dpe.inference.ner``."""
        ...

    def tokens(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens of the NLI model each text has."""
        ...

    def models(self) -> tuple[ModelInfo, ...]:
        """Return the models in use."""
        ...

    async def check(self) -> None:
        """Return when every model can be used now; refused with the reason when one cannot."""
        ...

    def close(self) -> None:
        """Let go of the models."""
        ...
