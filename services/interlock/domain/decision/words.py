"""The fixed words of the protocol: roles' authority, risks, states of agents, and how an answer came (SEED-5 §3, §12)."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class AgentAuthority(IntEnum):
    """What an agent may do. Only the last two propose."""

    OBSERVE = 1
    SUGGEST = 2
    PROPOSE = 3
    VETO = 4
    """It proposes emergency actions alone, and these win whatever the score of others is. Every guard holds for it."""

    @property
    def proposes(self) -> bool:
        """Whether it may propose at all."""
        return self >= AgentAuthority.PROPOSE


class ActionRisk(IntEnum):
    """How much harm an action can do."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4


class AgentStatus(StrEnum):
    """How an agent stands."""

    ACTIVE = "ACTIVE"
    DEGRADED = "DEGRADED"
    """Its last answer was missing or unusable; its role's rules spoke for it. It is asked again."""
    FAILED = "FAILED"
    """So many in a row were; it is not asked."""
    PROBATION = "PROBATION"
    """It failed and is asked again, but its role's rules speak until it answered well so many times in a row."""


class Arrival(StrEnum):
    """How an agent's answer came."""

    ANSWERED = "ANSWERED"
    LATE = "LATE"
    """It took its task and did not answer before its deadline."""
    LEFT = "LEFT"
    """It took its task, and its stream ended before it answered."""
    ABSENT = "ABSENT"
    """It did not take its task."""
    NOT_ASKED = "NOT_ASKED"
    """It has failed."""


class Speaker(StrEnum):
    """Who spoke in an agent's place."""

    AGENT = "AGENT"
    RULES = "RULES"
