"""Places: who may have an answer judged. One is taken before the provider is asked, so that no answer is paid for in vain.

How many there are follows from what was measured (``capacity``): the work of an answer, and the time at the provider.
A place is a lease: it ends with its holder, by ``release``, or without one, by its expiry. Used on the event loop alone.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import Counter, Gauge

from interlock.domain.errors import Kind, Refused
from interlock.dpe.inference import capacity
from interlock.dpe.inference.capacity import Capacity, Demand

HELD = Gauge("interlock_dpe_places", "Places held, by what their answers do: away (asked for), judged.", ["state"])
RATE = Gauge("interlock_dpe_rate", "Answers that can be judged, per second, as measured.")
RESERVED = Counter("interlock_dpe_places_reserved", "Places asked for, by outcome: taken, refused.", ["outcome"])
EXPIRED = Counter("interlock_dpe_places_expired", "Places whose holder neither used nor gave them back in time.")

WITHOUT_PLACE = 32
"""Analyses without a place that may be under way: those of the command line, of peers that know no places, and of places lost."""
MOST_LEASE_S = 900.0
_MEASURED = 64
_WEIGHT = 0.1


@dataclass
class PlaceLease:
    """One lease: when it ends and for which caller, analyses under way, and their work, in seconds of the whole machine."""

    expires_s: float
    who: str = ""
    judging: int = 0
    judged: bool = False
    work_s: float = 0.0
    away_since_s: float | None = None
    away_s: float = 0.0


class PlaceLedger:
    """The places of one dpe. *clock* gives seconds."""

    def __init__(self, workers: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._workers, self._clock = workers, clock
        self._held: dict[str, PlaceLease] = {}
        self._without: set[str] = set()
        self._works = {f"guess_{number}": capacity.FIRST_GUESS_S for number in range(4)}
        self._rate = capacity.rate_of([*self._works.values()])
        self._away_s = 0.0
        self._levels: dict[str, float] = {}
        self._at = self._promised_s = clock()

    @property
    def capacity(self) -> Capacity:
        """What was measured."""
        return Capacity(self._workers, self._rate, self._away_s)

    def demand(self) -> Demand:
        """Return what is on its way now."""
        self._advance()
        return Demand(len(self._held), self._judged, self._levels)

    def reserve(self, lease_s: float, who: str = "") -> str:
        """Take a place for a caller, for at most so many seconds, and return its id. Refused with OVERLOADED while there is none."""
        self._expire()
        demand, found = self.demand(), self.capacity
        if not found.admits(demand, who):
            RESERVED.labels("refused").inc()
            raise self._refused(found.wait_s(demand))
        RESERVED.labels("taken").inc()
        place_id = "place_" + secrets.token_hex(12)
        self._held[place_id] = PlaceLease(self._at + min(lease_s, MOST_LEASE_S), who, away_since_s=self._at)
        self._levels[who] = self._levels.get(who, 0.0) + 1
        self._tell()
        return place_id

    def keep(self, place_id: str, lease_s: float) -> bool:
        """Let a place that is held go on for so many seconds from now on, never for less than it has; no, where it has ended."""
        self._expire()
        place = self._held.get(place_id)
        if place is not None:
            place.expires_s = max(place.expires_s, self._at + min(lease_s, MOST_LEASE_S))
        return place is not None

    def release(self, place_id: str) -> None:
        """Give a place back. One that is not known, or was given back before, changes nothing."""
        self._advance()
        place = self._held.get(place_id)
        if place is not None and not place.judging:
            self._end(place_id)
        elif place is not None:
            place.expires_s = self._at  # its analysis is being cancelled: the place ends with it
        self._tell()

    @contextmanager
    def judging(self, place_id: str, place_for: str | None = None) -> Iterator[str]:
        """Hold a place while an answer is judged; yields whose it is. Without one, one is taken for the caller *place_for*, as ``reserve``
        does; ``None``: refused with OVERLOADED where too many are judged without.
        """
        self._advance()
        place = self._held.get(place_id)
        if place is None and place_for is not None:
            place_id = self.reserve(0.0, place_for)  # its time is over with the analysis
            place = self._held[place_id]
        elif place is None:
            place_id, place = self._without_place()
        if place.away_since_s is not None:
            place.away_s += self._at - place.away_since_s
        place.away_since_s = None
        place.judging += 1
        place.judged = True
        self._tell()
        try:
            yield place.who
        finally:
            self._advance()
            place.judging -= 1
            place.away_since_s = self._at
            self._learn(place_id, place.work_s)
            if not place.judging and (place_id in self._without or place.expires_s <= self._at):
                self._end(place_id)
            self._tell()

    def _without_place(self) -> tuple[str, PlaceLease]:
        if len(self._without) >= self._workers + WITHOUT_PLACE:
            raise self._refused(self.capacity.wait_s(self.demand()))
        place_id = "without_" + secrets.token_hex(12)
        self._without.add(place_id)
        self._held[place_id] = place = PlaceLease(self._at + MOST_LEASE_S)
        return place_id, place

    def _refused(self, wait_s: float) -> Refused:
        self._promised_s = capacity.promised_s(wait_s, now_s=self._at, last_s=self._promised_s, rate=self._rate)
        return Refused(
            Kind.EXHAUSTED, "OVERLOADED", "as many answers are on their way as can be judged in time; try again",
            retry_after_ms=max(1, round((self._promised_s - self._at) * 1000)),
        )  # fmt: skip

    @property
    def _judged(self) -> dict[str, float]:
        """How many answers of each caller are judged, or wait for it."""
        found: dict[str, float] = {}
        for place in self._held.values():
            if place.judging:
                found[place.who] = found.get(place.who, 0.0) + 1
        return found

    def _advance(self) -> None:
        """Let the time that has passed count: as work of the answers being judged, and against the level."""
        now = self._clock()
        passed, self._at = now - self._at, now
        busy = [place for place in self._held.values() if place.judging]
        if busy:
            # Fewer answers than workers do not use the whole machine.
            share = passed * min(len(busy), self._workers) / self._workers / len(busy)
            for place in busy:
                place.work_s += share
        self._levels = capacity.drained(self._levels, passed, self._rate)

    def _expire(self) -> None:
        self._advance()
        late = [name for name, place in self._held.items() if not place.judging and place.expires_s <= self._at]
        for name in late:
            EXPIRED.inc()
            self._end(name)

    def _end(self, place_id: str) -> None:
        """Forget a place, and learn from it how long its answer was away. One that was never judged counts no longer."""
        place = self._held.pop(place_id)
        self._without.discard(place_id)
        if not place.judged:
            self._levels[place.who] = max(0.0, self._levels.get(place.who, 0.0) - 1)
            return
        self._away_s += _WEIGHT * (place.away_s - self._away_s)

    def _learn(self, place_id: str, work_s: float) -> None:
        """Count what an answer took so far. One that is judged in parts may be open for long: it teaches with each part, as one."""
        self._works[place_id] = work_s
        while len(self._works) > _MEASURED:
            del self._works[next(iter(self._works))]
        self._rate = capacity.rate_of([*self._works.values()])

    def _tell(self) -> None:
        judged = sum(place.judging > 0 for place in self._held.values())
        HELD.labels("judged").set(judged)
        HELD.labels("away").set(len(self._held) - judged)
        RATE.set(self._rate)
