"""The signal bus: who may put what on it, what it lets go when it is full, and what a reader missed (SEED-5 §5; ADR 39).

``decision/lua/emit.lua`` carries the rule of ``BusPlaces`` too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from interlock.domain.decision.definition import ExperimentRules
from interlock.domain.decision.reading import canonical
from interlock.domain.decision.signals import LARGEST_PAYLOAD, Signal, admitted_text
from interlock.domain.errors import invalid

EXECUTION = "*"
"""The one share of everything that is not an agent."""
LONGEST_NUMBER = 16
"""Digits of a signal's number: a store knows none that is longer."""
MOST_COLLECTED, LARGEST_COLLECTED = 256, 262_144
"""Signals, and characters of them, that one cycle takes from the bus: they are in its trace."""


def put_fault(
    raw: Mapping[str, Any], rules: ExperimentRules, *, source: str, types: Sequence[str], now_us: int, agents: Collection[str]
) -> tuple[Signal | None, str, str]:  # fmt: skip
    """Return the admitted signal and its canonical text, or ``None`` with the name of what is wrong with it last.

    *source*: the agent that emits; empty for the owner, who may name none of the *agents*.
    """
    payload = raw.get("payload_json")
    if isinstance(payload, str) and len(payload.encode("utf-8", "replace")) > LARGEST_PAYLOAD:
        return None, "", "SIGNAL_PAYLOAD_TOO_LARGE"
    if not source and raw.get("source") in agents:
        return None, "", "SIGNAL_SOURCE_FOREIGN"
    return admitted_text(raw, rules, source=source, types=types, now_us=now_us)


@dataclass
class BusPlaces:
    """Which signals a bus of at most *most* holds. A full one lets the oldest go of whoever holds the most.

    So a flood takes the places of its own sender, and nobody else's. Numbers have no gaps when they are given, so that whoever reads
    sees how many were let go.
    """

    most: int
    last: int = 0
    by_id: dict[str, int] = field(default_factory=dict)
    shares: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def put(self, signal_id: str, share: str) -> tuple[int, bool, list[int]]:
        """Return the number of a signal, whether it was there before, and the numbers that were let go for it."""
        if signal_id in self.by_id:
            return self.by_id[signal_id], True, []
        self.last += 1
        self.by_id[signal_id] = self.last
        self.shares.setdefault(share, []).append((self.last, signal_id))
        gone: list[int] = []
        while len(self.by_id) > self.most:
            largest = max(self.shares, key=lambda one: (len(self.shares[one]), one))
            number, oldest = self.shares[largest].pop(0)
            del self.by_id[oldest]
            gone.append(number)
        return self.last, False, gone


@dataclass(frozen=True)
class BusPlace:
    """A place on a bus: after the signal of a number. *epoch* names the life of the store's copy."""

    epoch: str = ""
    number: int = 0

    @property
    def token(self) -> str:
        """The place as a text, for a reader to resume with."""
        return f"{self.epoch}.{self.number}"

    @classmethod
    def of(cls, token: str) -> BusPlace:
        """Read a token; empty: the beginning. Refused with DECISION_TOKEN_INVALID."""
        epoch, _, number = token.partition(".")
        if not token:
            return cls()
        digits = number.isascii() and number.isdigit() and len(number) <= LONGEST_NUMBER
        if not (epoch.isascii() and epoch.isalnum() and digits and len(token) <= 64):
            raise invalid("DECISION_TOKEN_INVALID", "after is a token that Subscribe gave, or empty")
        return cls(epoch, int(number))


@dataclass(frozen=True)
class BusGap:
    """Numbers that a reader does not get any more. *restarted*: the store lost the bus, and nobody knows how many."""

    first: int
    last: int
    count: int
    restarted: bool = False


def gap_between(after: int, numbers: Sequence[int]) -> BusGap | None:
    """Return what is missing after a number among those that are held, in order; ``None`` where nothing is."""
    missing, previous, first, last = 0, after, 0, 0
    for number in numbers:
        if number > previous + 1:
            first, last = first or previous + 1, number - 1
            missing += number - previous - 1
        previous = number
    return BusGap(first, last, missing) if missing else None


def shared_out(signals: Sequence[Signal]) -> tuple[list[Signal], dict[str, int]]:
    """Return what a cycle takes of the signals since the last one, by id, and how many of each source it leaves.

    Sources take turns, each with its newest first, so that a flood of one leaves none of another out.
    """
    waiting: dict[str, list[Signal]] = {}
    for one in sorted(signals, key=lambda one: (one["at_us"], one["id"])):
        waiting.setdefault(one["source"], []).append(one)
    kept: list[Signal] = []
    size = 0
    open_sources = sorted(waiting)
    while open_sources and len(kept) < MOST_COLLECTED:
        for source in list(open_sources):
            one = waiting[source][-1]
            size += len(canonical(one))
            if len(kept) == MOST_COLLECTED or size > LARGEST_COLLECTED:
                open_sources = []
                break
            kept.append(waiting[source].pop())
            if not waiting[source]:
                open_sources.remove(source)
    left = {source: len(rest) for source, rest in sorted(waiting.items()) if rest}
    return sorted(kept, key=lambda one: str(one["id"])), left


def emitter_fault(status: str) -> str:
    """Return why an agent that stands so is not heard on the bus; empty where it is."""
    return {"FAILED": "SIGNAL_AGENT_FAILED", "PROBATION": "SIGNAL_AGENT_ON_PROBATION"}.get(status, "")
