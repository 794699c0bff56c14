"""Recorded answers under another policy: what would have happened to each, and how far the record tells it.

An answer is decided again by the code that decided it. Nothing is made up: what the record does not hold is a reason why an
answer is left out, and each answer is decided under its own policy too, so that it shows where the replay and the record differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from interlock.domain.policy.decision import PolicyOutcome
from interlock.domain.policy.directives import Policy
from interlock.domain.policy.enforcement import Action
from interlock.domain.policy.policy_order import merge
from interlock.domain.policy.workbench.trial import FRESH, WORDS, Trial, tried, word

OUTCOMES = tuple(WORDS.values())
"""delivered, held, halted, refused."""

_GRAVITY = {name: number for number, name in enumerate(OUTCOMES)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An answer as the audit log has it."""

    session_id: str
    window_id: str
    agent_type: str
    at: str
    """Time of its seal."""
    trial: Trial
    policy: Policy
    """The policy in force when it was decided."""
    outcome: str
    """What was decided. Of an answer that was only watched: what would have been done."""
    observed: bool
    """Whether the record says that it was only watched."""


@dataclass(frozen=True, slots=True)
class ReplayedAnswer:
    """An answer under its own policy again, and under the other one."""

    recorded: Recorded
    own: PolicyOutcome
    other: PolicyOutcome
    retried: bool
    """Whether the other policy would first have asked for a better answer; the record has none."""

    @property
    def agrees(self) -> bool:
        """Whether its own policy decides it again as it is recorded."""
        return word(self.own) == self.recorded.outcome

    @property
    def moves(self) -> bool:
        """Whether the other policy decides otherwise than the record has it."""
        return word(self.other) != self.recorded.outcome

    @property
    def stricter(self) -> bool:
        """Whether the other policy keeps back what was delivered, or more than it was."""
        return _GRAVITY[word(self.other)] > _GRAVITY[self.recorded.outcome]


@dataclass(frozen=True)
class Summary:
    """All answers together. Every mapping is by outcome, by cause or by nothing else, as its name says."""

    answers: int
    sessions: int
    observed: int
    recorded: dict[str, int]
    other: dict[str, int]
    newly_stopped: int
    """Delivered in the record, and not under the other policy."""
    newly_delivered: int
    stopped_by: dict[str, int]
    """Cause → answers that the other policy would newly have kept back, the most frequent first."""
    retried: int
    disagree: int


def replay(recorded: Recorded, other: Policy, *, on_top: bool = False) -> ReplayedAnswer:
    """Decide a recorded answer under *other*; *on_top*: joined with its own, so that the tighter value counts.

    Refused with POLICY_UNSATISFIABLE when the two cannot be joined.
    """
    policy = merge(recorded.policy, other) if on_top else other
    first = tried(policy, recorded.trial, FRESH).outcome.action
    return ReplayedAnswer(
        recorded,
        tried(recorded.policy, recorded.trial).outcome,
        tried(policy, recorded.trial).outcome,
        retried=first in {Action.REDISPATCH, Action.CONTINUE, Action.STITCH},
    )


def summary(found: Sequence[ReplayedAnswer]) -> Summary:
    """Return the figures of a replay."""
    before = Counter(one.recorded.outcome for one in found)
    after = Counter(word(one.other) for one in found)
    stopped = [one for one in found if one.recorded.outcome == "delivered" and one.moves]
    causes = Counter(one.other.cause for one in stopped)
    return Summary(
        answers=len(found),
        sessions=len({one.recorded.session_id for one in found}),
        observed=sum(one.recorded.observed for one in found),
        recorded={name: before[name] for name in OUTCOMES},
        other={name: after[name] for name in OUTCOMES},
        newly_stopped=len(stopped),
        newly_delivered=sum(one.moves and word(one.other) == "delivered" for one in found),
        stopped_by=dict(causes.most_common()),
        retried=sum(one.retried for one in found),
        disagree=sum(not one.agrees for one in found),
    )
