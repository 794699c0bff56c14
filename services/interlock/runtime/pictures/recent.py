"""What governed calls of this process came to in the last day, minute by minute: what the console's pictures are drawn from.

It is bounded whatever happens: one row a minute, ``KEPT`` rows, each of fixed size. It is no record: a process that ends forgets it.
"""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

KEPT = 1_440
"""Minutes that are kept: a day. With two distributions of ``BINS`` numbers each that is about a megabyte at most."""
BINS, LEAST_S, STEPS = 80, 0.001, 4
"""Bins of a distribution of times: four for each doubling, from a millisecond up to a quarter of an hour."""
RISKS = ("LOW", "MEDIUM", "HIGH", "CRITICAL")
UNJUDGED = "NONE"
"""Calls that were refused before their answer was judged."""


def bin_of(seconds: float) -> int:
    """Return the bin of a time. What is shorter or longer than all bins is in the first or the last."""
    if seconds <= LEAST_S:
        return 0
    return min(BINS - 1, math.ceil(math.log2(seconds / LEAST_S) * STEPS))


def upper_of(place: int) -> float:
    """Return the longest time of a bin, seconds."""
    return float(LEAST_S * 2 ** (place / STEPS))


@dataclass
class Distribution:
    """How many times fell into each bin."""

    counts: array[int] = field(default_factory=lambda: array("Q", bytes(8 * BINS)))

    def add(self, seconds: float) -> None:
        """Count a time."""
        self.counts[bin_of(seconds)] += 1

    def merge(self, other: Distribution) -> None:
        """Count what another one counted."""
        for place, count in enumerate(other.counts):
            self.counts[place] += count

    def quantile(self, share: float) -> float | None:
        """Return the time that *share* of them do not exceed, to a bin's width; ``None`` without any."""
        wanted, seen = max(1, math.ceil(share * sum(self.counts))), 0
        for place, count in enumerate(self.counts):
            seen += count
            if count and seen >= wanted:
                return upper_of(place)
        return None


@dataclass
class Figures:
    """The figures of some minutes."""

    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*RISKS, UNJUDGED), 0))
    took: Distribution = field(default_factory=Distribution)
    first: Distribution = field(default_factory=Distribution)
    usd_micros: int = 0
    tokens: int = 0

    def merge(self, other: Figures) -> None:
        """Add the figures of other minutes."""
        for risk, count in other.calls.items():
            self.calls[risk] += count
        self.took.merge(other.took)
        self.first.merge(other.first)
        self.usd_micros += other.usd_micros
        self.tokens += other.tokens


class RecentFigures:
    """A ring of minutes. *clock* is monotonic, so that a changed clock of the machine moves nothing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._minutes = clock, dict[int, Figures]()

    def called(self, risk: str, took_s: float) -> None:
        """Note the end of a governed call, by the risk of its answer; empty where none was judged."""
        now = self._now()
        now.calls[risk if risk in RISKS else UNJUDGED] += 1
        now.took.add(took_s)

    def first_token(self, seconds: float) -> None:
        """Note how long a provider took until the first bytes of a stream."""
        self._now().first.add(seconds)

    def spent(self, *, usd_micros: int, tokens: int) -> None:
        """Note what model calls were charged."""
        now = self._now()
        now.usd_micros += usd_micros
        now.tokens += tokens

    def columns(self, count: int, minutes_each: int) -> Sequence[Figures]:
        """Return the last *count* columns of so many minutes each, the earliest first; the last one is not over yet."""
        last = self._minute()
        found = []
        for column in range(count - 1, -1, -1):
            end = last - column * minutes_each
            merged = Figures()
            for minute in range(end - minutes_each + 1, end + 1):
                if minute in self._minutes:
                    merged.merge(self._minutes[minute])
            found.append(merged)
        return found

    def _minute(self) -> int:
        return int(self._clock() // 60)

    def _now(self) -> Figures:
        minute = self._minute()
        if minute not in self._minutes:
            for old in [one for one in self._minutes if one <= minute - KEPT]:
                del self._minutes[old]
            self._minutes[minute] = Figures()
        return self._minutes[minute]


RECENT = RecentFigures()
"""The figures of this process."""
