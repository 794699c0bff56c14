"""Stage 9, flow: whether an answer reads as a continuation of the previous one (SPEC-005 §11.3, §11.4).

The previous answer is the last released one with any text. A first answer has nothing to continue, so its flow is
absent, not good.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from interlock.dpe.text.patterns import pattern

OPENING_SENTENCES = 2
CLOSING_SENTENCES = 2
TRANSITION_SENTENCES = 3
REMEDY_BELOW = 0.50
REMEDIES = frozenset({"prompt-augmented", "stitched"})

_ROUNDING = 1e-9
_WEIGHTS = {
    "opening_coherence": 0.35, "topic_continuity": 0.25, "register_consistency": 0.20, "transition_presence": 0.20
}  # fmt: skip
_MARKERS = (
    "above all", "accordingly", "added to this", "additionally", "afterwards", "again", "against this background",
    "along the same lines", "along with this", "alongside this", "alongside these", "also", "apart from this",
    "as a consequence", "as a next step", "as a result", "as already", "as described", "as discussed", "as mentioned",
    "as noted", "as outlined", "as explained", "as shown", "as stated", "as well as this", "aside from this",
    "at the same time", "based on this", "based on these", "based on that", "because of this", "besides", "beyond that",
    "beyond these", "beyond this", "building on", "building upon", "by contrast", "by extension", "by the same token",
    "carrying on", "consequently", "continuing", "conversely", "correspondingly", "despite this", "equally",
    "even so", "expanding on", "extending this", "extending the", "following from", "following on", "following this",
    "for the same reason", "for this reason", "for these reasons", "from here", "from there", "further", "furthermore",
    "given this", "given these", "having covered", "having described", "having discussed", "having established",
    "having explained", "having outlined", "having seen", "hence", "however", "in addition", "in contrast", "in line with",
    "in light of this", "in response to this", "in the same way", "in this context", "in this light", "in turn",
    "instead", "it follows", "just as", "let us now turn", "let's now turn", "likewise", "looking further",
    "meanwhile", "more broadly", "more specifically", "moreover", "moving on", "moving to", "nevertheless", "next",
    "nonetheless", "not only that", "notwithstanding", "now that", "on that basis", "on the other hand",
    "on this basis", "on top of", "once this", "once these", "otherwise", "picking up", "proceeding",
    "relatedly", "returning to", "similarly", "since then", "so far", "specifically", "still", "subsequently",
    "taken together", "taking this further", "that said", "the following aspect", "the following part",
    "the following step", "the next", "the second", "the third", "the other", "then", "thereby", "therefore",
    "this also", "this leads", "this means", "thus", "to build on", "to continue", "to expand on", "to extend this",
    "to that end", "to this end", "turning now", "turning to", "under these circumstances", "what follows",
    "what is more", "with regard to this", "with that", "with this in mind", "with these", "yet",
)  # fmt: skip
_TRANSITION = pattern(r"[\s\p{P}]*(?:" + "|".join(_MARKERS) + r")(?:[^\p{L}\p{N}]|$)", ignore_case=True)


@dataclass(frozen=True)
class FlowSignals:
    """The four signals, each from 0.0 (worst) to 1.0 (best)."""

    opening_coherence: float
    topic_continuity: float
    register_consistency: float
    transition_presence: float


@dataclass(frozen=True)
class Flow:
    """The flow score and its signals."""

    score: float
    signals: FlowSignals


def weights() -> dict[str, float]:
    """Return the weight of each signal (§11.4). They sum to 1.0."""
    return dict(_WEIGHTS)


def flow(signals: FlowSignals) -> Flow:
    """Return the flow score (§11.4)."""
    values = {name: min(1.0, max(0.0, value)) for name, value in asdict(signals).items()}
    score = math.fsum(_WEIGHTS[name] * value for name, value in values.items())
    return Flow(min(1.0, score), FlowSignals(**values))


def opening(sentences: Sequence[str]) -> str:
    """Return the opening sentences of an answer (signal 9a)."""
    return " ".join(sentences[:OPENING_SENTENCES])


def closing(sentences: Sequence[str]) -> str:
    """Return the closing sentences of an answer (signal 9a)."""
    return " ".join(sentences[-CLOSING_SENTENCES:])


def has_transition(sentences: Sequence[str]) -> bool:
    """Whether one of the first three sentences starts with a continuing phrase (signal 9d).

    Phrases that only close ("In conclusion") do not count: §11.2 shows one as an abrupt opening.
    """
    return any(_TRANSITION.match(sentence) for sentence in sentences[:TRANSITION_SENTENCES])
