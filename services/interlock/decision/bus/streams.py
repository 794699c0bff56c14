"""The port of signal streams, one for each experiment, and its twin in memory."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from interlock.domain.decision.bus import BusPlaces


@dataclass(frozen=True)
class StreamEntry:
    """A signal to be put: its id, whose share of the places it takes, its type, and its JSON. *cycle*: 0 outside of one."""

    id: str
    share: str
    type: str
    cycle: int
    text: str


@dataclass(frozen=True)
class PutSignals:
    """What became of signals: number and whether it was there before, of each; and how many were let go for them."""

    epoch: str
    dropped: int
    places: Sequence[tuple[int, bool]]


@dataclass(frozen=True)
class StreamRow:
    """A signal that is held."""

    number: int
    type: str
    cycle: int
    text: str


@dataclass(frozen=True)
class StreamPage:
    """Signals after a number, in order. *epoch* is empty where there is no bus."""

    epoch: str
    rows: Sequence[StreamRow]


class SignalStreams(Protocol):
    """Signals by experiment. They are transient: what the store loses is gone, and its epoch says so."""

    async def put(self, experiment_id: str, most: int, entries: Sequence[StreamEntry]) -> PutSignals:
        """Put signals in order, in one step."""
        ...

    async def page(self, experiment_id: str, after: int, limit: int) -> StreamPage:
        """Return signals after a number."""
        ...

    async def close(self) -> None:
        """Close the store."""
        ...


@dataclass
class _Held:
    places: BusPlaces
    epoch: str = field(default_factory=lambda: secrets.token_hex(8))
    rows: dict[int, StreamRow] = field(default_factory=dict)


class MemoryStreams:
    """Signals in this process alone, by the domain's rule as it is."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}

    async def put(self, experiment_id: str, most: int, entries: Sequence[StreamEntry]) -> PutSignals:
        """Put signals in order."""
        held = self._held.setdefault(experiment_id, _Held(BusPlaces(most)))
        found, dropped = [], 0
        for one in entries:
            number, known, gone = held.places.put(one.id, one.share)
            if not known:
                held.rows[number] = StreamRow(number, one.type, one.cycle, one.text)
            for old in gone:
                del held.rows[old]
            dropped += len(gone)
            found.append((number, known))
        return PutSignals(held.epoch, dropped, found)

    async def page(self, experiment_id: str, after: int, limit: int) -> StreamPage:
        """Return signals after a number."""
        held = self._held.get(experiment_id)
        if held is None:
            return StreamPage("", ())
        return StreamPage(held.epoch, [row for number, row in held.rows.items() if number > after][:limit])

    async def close(self) -> None:
        """Nothing is open."""
