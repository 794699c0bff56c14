"""How many answers may be on their way to be judged, and when a refused one should come again. Rates are answers per second."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from interlock.runtime.keys import shares

WAITING_S = 0.4
"""Work that may wait, seconds: as long as some does the judge is never idle, and what waits longer only comes later."""
AWAY_SHARE = 0.2
"""Share of the time at the provider that may be added: beside ten seconds there, two more do not matter."""
MOST_PROMISED_S = 10.0
"""The farthest that a refused call is told to come again, seconds."""
FIRST_GUESS_S = 0.1
"""Work of one answer, seconds, before one was measured."""
_KEPT = 0.9
_NOTHING = 0.001


@dataclass(frozen=True)
class Demand:
    """What is on its way at one moment."""

    held: int
    """Places that are held."""
    judged: Mapping[str, float] = field(default_factory=dict)
    """Answers that are being judged, or wait for it, by caller."""
    levels: Mapping[str, float] = field(default_factory=dict)
    """Answers admitted that are not worked off yet at the measured rate, by caller."""

    @property
    def judging(self) -> float:
        """Answers of all callers that are being judged, or wait for it."""
        return sum(self.judged.values())

    @property
    def level(self) -> float:
        """Answers of all callers that are not worked off yet."""
        return sum(self.levels.values())


@dataclass(frozen=True)
class Capacity:
    """What a judge can do: as many *workers* at once, *rate* answers a second, after *away_s* seconds at the provider."""

    workers: int
    rate: float
    away_s: float = 0.0

    @property
    def least(self) -> int:
        """Places that there are always: fewer would leave workers idle between two answers, and refuse an agent's small fan-out."""
        return 2 * self.workers + 4

    @property
    def room(self) -> float:
        """How many answers may wait."""
        return max(float(self.least), self.rate * (WAITING_S + AWAY_SHARE * self.away_s))

    def admits(self, now: Demand, who: str = "") -> bool:
        """Whether *who* may ask for one more."""
        if now.held < self.least:
            return True
        return shares.admits(who, now.levels, self.room) and shares.admits(who, now.judged, math.ceil(self.room))

    def wait_s(self, now: Demand) -> float:
        """Return after how many seconds one more is admitted, as far as is known."""
        ahead = max(now.level + 1 - self.room, now.judging + 1 - self.room, 1.0)
        return ahead / self.rate


def rate_of(works_s: Sequence[float]) -> float:
    """Return the rate at which answers are judged that took so many seconds of the whole machine each.

    The largest tenth does not count: one answer of four hundred claims takes turns with the others and does not stop them.
    """
    counted = sorted(works_s)[: max(1, round(len(works_s) * _KEPT))]
    return len(counted) / max(sum(counted), 1e-6)


def drained(levels: Mapping[str, float], seconds: float, rate: float) -> dict[str, float]:
    """Return what is left of the levels of callers after some time: each loses the same share."""
    level = sum(levels.values())
    left = max(0.0, level - seconds * rate) / level if level else 0.0
    return {who: each * left for who, each in levels.items() if each * left > _NOTHING}


def promised_s(wait_s: float, *, now_s: float, last_s: float, rate: float) -> float:
    """Return when a refused call should come again: after those that were refused before it, who come at *last_s* at the latest."""
    return min(max(now_s + wait_s, last_s + 1 / rate), now_s + MOST_PROMISED_S)
