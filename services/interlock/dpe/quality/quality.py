"""Stages 6 to 9 on one choice, and the quality score over them (SPEC-005 §8 to §11, §18).

Each choice is compared with the answers that the session has released. With several choices the report shows the worst
of each value, so that no choice hides another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from interlock.domain.policy.directives import Repetition
from interlock.domain.policy.quality import FIRST_WINDOW_FLOW, QualityWeights, contradiction_ratio, quality_score
from interlock.domain.risk.composite import Amplifier
from interlock.dpe.comparison.contradiction import Contradiction, counted
from interlock.dpe.grounding.attribution import Method
from interlock.dpe.inference.port import EMBEDDING_WIDTH, Floats
from interlock.dpe.quality import coherence, completeness, coverage, profile, repetition
from interlock.dpe.quality.coherence import CrossWindow, EarlierWindow
from interlock.dpe.quality.completeness import Completeness
from interlock.dpe.quality.coverage import AgentAnswer, SubQuery
from interlock.dpe.quality.cross_agent import NOTHING_MERGED, FanIn
from interlock.dpe.quality.flow import Flow
from interlock.dpe.quality.profile import EmbeddedProfile
from interlock.dpe.quality.queries import Need
from interlock.dpe.quality.repetition import EarlierSentence, Repetitions


@dataclass(frozen=True)
class Query:
    """The information needs of the query with their vectors. Without needs, ``why_not`` is the reason.

    ``parts`` are the sub-queries of a task that was sent decomposed; the needs are theirs.
    """

    needs: tuple[Need, ...]
    vectors: Floats
    why_not: str = ""
    parts: tuple[SubQuery, ...] = ()

    @property
    def sub_queries(self) -> tuple[SubQuery, ...]:
        """The parts, or each need as a sub-query of its own."""
        return self.parts or tuple(SubQuery(need.text, (need,)) for need in self.needs)


@dataclass(frozen=True)
class EarlierWindows:
    """The earlier windows, combined once for all choices."""

    windows: tuple[EarlierWindow, ...]
    claims: coherence.EarlierClaims
    sentences: tuple[EarlierSentence, ...]
    sentence_vectors: Floats

    @property
    def last(self) -> EmbeddedProfile | None:
        """The last earlier answer with any text, or ``None``."""
        return next((w.profile for w in reversed(self.windows) if w.profile.text.sentences), None)


@dataclass(frozen=True)
class Quality:
    """Findings of the quality stages in one choice. ``None`` marks a value that could not be computed."""

    cross_window: tuple[CrossWindow, ...]
    repetitions: Repetitions
    completeness: Completeness | None
    flow: Flow | None
    coherence: float
    score: float | None


NOT_AN_ANSWER = (
    EarlierWindows((), coherence.earlier((), EMBEDDING_WIDTH), (), np.zeros((0, EMBEDDING_WIDTH), dtype=np.float32)),
    Query((), np.zeros((0, EMBEDDING_WIDTH), dtype=np.float32), "the choice calls a tool and says nothing yet"),
)
"""What a choice is compared with that only calls tools: the answer to the query is still to come."""


def merge_windows(windows: Sequence[EarlierWindow]) -> EarlierWindows:
    """Return the earlier windows, combined."""
    sentences = tuple(
        EarlierSentence(text, window.window_id) for window in windows for text in window.profile.text.sentences
    )
    rows = [window.profile.sentences for window in windows if window.profile.text.sentences]
    vectors = np.concatenate(rows) if rows else np.zeros((0, EMBEDDING_WIDTH), dtype=np.float32)
    return EarlierWindows(tuple(windows), coherence.earlier(windows, EMBEDDING_WIDTH), sentences, vectors)


def repetitions(current: EmbeddedProfile, earlier: EarlierWindows, *, choice_index: int) -> Repetitions:
    """Return what one choice repeats (stage 7)."""
    overlap = repetition.overlap(current.text.grams, [w.profile.text.gram_set for w in earlier.windows])
    sentences = current.text.sentences
    found = repetition.repeated(
        sentences, current.sentences, earlier.sentences, earlier.sentence_vectors, choice_index=choice_index
    )
    return repetition.repetitions(overlap, found, len(sentences))


def session_completeness(
    current: EmbeddedProfile, earlier: EarlierWindows, query: Query, *, method: Method
) -> Completeness | None:
    """Return how complete the session is with this choice (stage 8), or ``None`` without a need."""
    if not query.needs:
        return None
    if query.parts:
        answers = [
            *(AgentAnswer(window.window_id, window.profile) for window in earlier.windows),
            AgentAnswer("", current),
        ]
        return coverage.as_completeness(coverage.coverage(query.parts, query.vectors, answers, method=method))
    sentences = [*(sentence.text for sentence in earlier.sentences), *current.text.sentences]
    sentence_vectors = np.concatenate([earlier.sentence_vectors, current.sentences])
    return completeness.completeness(query.needs, query.vectors, sentences, sentence_vectors, method=method)


def answer_flow(current: EmbeddedProfile, earlier: EarlierWindows) -> Flow | None:
    """Return how well one choice continues the last answer (stage 9), or ``None`` without one."""
    return None if earlier.last is None else profile.continued(earlier.last, current)


def quality(
    current: EmbeddedProfile,
    earlier: EarlierWindows,
    query: Query,
    *,
    choice_index: int,
    cross_window: Sequence[CrossWindow],
    intra: Sequence[Contradiction],
    method: Method,
    weights: QualityWeights,
    merged: FanIn = NOTHING_MERGED,
) -> Quality:
    """Return the findings of the quality stages in one choice, given its contradictions.

    The merged answers that it was made from count with it: their claims, and those that another merged answer
    contradicts.
    """
    repeated = repetitions(current, earlier, choice_index=choice_index)
    covered = session_completeness(current, earlier, query, method=method)
    flow = answer_flow(current, earlier)
    coherent = 1.0 - contradiction_ratio(
        contradicted=len(_contradicted_claims(intra, cross_window)) + merged.contradicted(),
        claims=len(current.text.claims) + (merged.claims if merged.between else 0),
    )
    score = None
    if covered is not None:
        score = quality_score(
            repetition=repeated.ratio,
            completeness=covered.score,
            flow=FIRST_WINDOW_FLOW if flow is None else flow.score,
            coherence=coherent,
            weights=weights,
        )
    return Quality(tuple(cross_window), repeated, covered, flow, coherent, score)


def _contradicted_claims(intra: Sequence[Contradiction], cross_window: Sequence[CrossWindow]) -> set[str]:
    """Return the claims of this answer that contradict something. Minor contradictions do not count."""
    inside = {name for each in counted(intra) for name in (each.claim_id, each.other_claim_id)}
    return inside | {each.claim_id for each in counted(cross_window)}


def session_amplifiers(quality: Quality, between: int) -> list[Amplifier]:
    """Return the amplifiers of the session for one choice (§16.1).

    *between* counts contradictions of merged answers.
    """
    crossed = between or counted(quality.cross_window)
    crossing = [Amplifier.CROSS_WINDOW_CONTRADICTION] if crossed else []
    severe = [Amplifier.SEVERE_REPETITION] if quality.repetitions.level is Repetition.SEVERE else []
    return [*crossing, *severe]
