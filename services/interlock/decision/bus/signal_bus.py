"""What is done with signals: emitted, taken into cycles, and read by subscribers in order (SEED-5 §5; ADR 39)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from interlock.decision import metrics
from interlock.decision.bus.streams import SignalStreams, StreamEntry, StreamPage
from interlock.domain.decision import engine
from interlock.domain.decision.agents import described
from interlock.domain.decision.bus import (
    EXECUTION,
    BusGap,
    BusPlace,
    emitter_fault,
    gap_between,
    put_fault,
    shared_out,
)
from interlock.domain.decision.experiment import ExperimentState
from interlock.domain.decision.reading import canonical
from interlock.domain.decision.signals import Signal, apart
from interlock.domain.errors import Refused, exhausted, forbidden, unavailable
from interlock.runtime.clock import Clock

log = structlog.get_logger()

MOST_EMITTED, LARGEST_EMITTED = 256, 262_144
PAGE, MOST_SUBSCRIPTIONS = 500, 16
POLLED_EVERY_S = 0.2
"""How often a subscriber looks for what other processes put. What this process puts wakes it at once."""


@dataclass(frozen=True)
class Emitted:
    """What became of one signal. *reason* is empty where it was taken."""

    id: str = ""
    number: int = 0
    reason: str = ""
    duplicate: bool = False


@dataclass(frozen=True)
class Delivered:
    """A signal for a subscriber: what there is of it but the payload, and that as JSON."""

    number: int
    cycle: int
    signal: Signal
    payload_json: str


@dataclass(frozen=True)
class DeliveredPage:
    """What a subscriber gets at once."""

    place: BusPlace
    gap: BusGap | None
    signals: Sequence[Delivered]


class SignalBus:
    """The buses of all experiments that this process knows."""

    def __init__(self, streams: SignalStreams, clock: Clock) -> None:
        self._streams, self._clock = streams, clock
        self._put: dict[str, asyncio.Event] = {}
        self._open: Counter[tuple[str, str]] = Counter()
        self._leaving = False

    async def emit(
        self, experiment_id: str, state: ExperimentState, agent: str, raw: Sequence[Mapping[str, Any]]
    ) -> list[Emitted]:
        """Put signals of an agent, or of the owner where it is empty. Each is refused by itself.

        Refused as a whole with DECISION_SIGNALS_TOO_MANY or DECISION_STORE_UNAVAILABLE.
        """
        if len(raw) > MOST_EMITTED or sum(len(one["payload_json"]) for one in raw) > LARGEST_EMITTED:
            message = f"at most {MOST_EMITTED} signals of {LARGEST_EMITTED} bytes in all"
            raise exhausted("DECISION_SIGNALS_TOO_MANY", message)
        rules, now_us = state.rules, self._clock()
        fault = emitter_fault(str(state.standing(agent).status)) if agent else ""
        types = state.agents[agent]["outputs"] if agent else [*rules.signals]
        read = [
            (None, "", fault)
            if fault
            else put_fault(one, rules, source=agent, types=types, now_us=now_us, agents=state.agents)
            for one in raw
        ]
        metrics.count_refused([reason for _, _, reason in read if reason])
        entries = [_entry(one, text, agent, 0) for one, text, _ in read if one is not None]
        places = iter(await self._placed(experiment_id, state, entries))
        found = []
        for signal, _, reason in read:
            number, known = next(places) if signal is not None else (0, False)
            found.append(Emitted(signal["id"] if signal else "", number, reason, known))
        return found

    async def collected(self, experiment_id: str, state: ExperimentState) -> dict[str, Any] | None:
        """Return what a cycle takes from the bus; ``None`` where there never was one. Never raises for the store."""
        before = BusPlace(state.bus.get("epoch", ""), state.bus.get("number", 0))
        try:
            epoch, rows, gap = await self._since(experiment_id, before)
        except Refused as refused:
            log.warning("decision.bus_unread", experiment_id=experiment_id, reason=refused.reason)
            told = {"epoch": before.epoch, "after": before.number, "to": before.number, "fault": refused.reason}
            return {**told, "gone": 0, "left": {}, "restarted": False, "signals": []}
        if not epoch and not before.epoch:
            return None
        restarted = bool(before.epoch) and before.epoch != epoch
        after = 0 if restarted else before.number
        kept, left = shared_out([json.loads(one.text) for one in rows if not one.cycle])
        metrics.BUS_LEFT.inc(sum(left.values()))
        return {
            "epoch": epoch, "after": after, "to": rows[-1].number if rows else after, "fault": "", "restarted": restarted,
            "gone": gap.count if gap else 0, "left": left, "signals": kept,
        }  # fmt: skip

    async def publish(self, experiment_id: str, state: ExperimentState, trace: Mapping[str, Any]) -> None:
        """Tell subscribers the signals of a decided cycle. They are in its trace, so a store that is down costs a line of the log."""
        agents, cycle = state.agents, trace["cycle"]
        found = engine.emitted(state.rules, trace["inputs"])
        entries = [
            _entry(one, canonical(one), one["source"] if one["source"] in agents else "", cycle) for one in found
        ]
        try:
            for at in range(0, len(entries), MOST_EMITTED):
                await self._placed(experiment_id, state, entries[at : at + MOST_EMITTED])
        except Refused as refused:
            log.warning("decision.bus_unpublished", experiment_id=experiment_id, reason=refused.reason)

    async def pages(
        self, experiment_id: str, state: ExperimentState, agent: str, types: Sequence[str], after: str
    ) -> AsyncIterator[DeliveredPage]:
        """Yield the signals after a token, and those to come.

        Refused with DECISION_TOKEN_INVALID, DECISION_TYPE_UNDECLARED where an agent asks for what is not among its inputs, or
        DECISION_SUBSCRIPTIONS_TOO_MANY.
        """
        place, wanted = BusPlace.of(after), _wanted(state, agent, types)
        if self._open[experiment_id, agent] >= MOST_SUBSCRIPTIONS:
            raise exhausted("DECISION_SUBSCRIPTIONS_TOO_MANY", f"at most {MOST_SUBSCRIPTIONS} are open at a time")
        self._open[experiment_id, agent] += 1
        try:
            while True:
                put = self._put.setdefault(experiment_id, asyncio.Event())
                page = await self._streams.page(experiment_id, place.number, PAGE)
                if found := _page(place, page, wanted):
                    place = found.place
                    yield found
                    continue
                if self._leaving:
                    raise unavailable("DECISION_ENDING", "this process ends; subscribe again with the last token")
                await _either(put, POLLED_EVERY_S)
        finally:
            self._open[experiment_id, agent] -= 1
            if not self._open[experiment_id, agent]:
                del self._open[experiment_id, agent]

    def leave(self) -> None:
        """End the streams of subscribers, so that a stop need not wait for them."""
        self._leaving = True
        for experiment_id in list(self._put):
            self._told(experiment_id)

    async def close(self) -> None:
        """Close the store."""
        await self._streams.close()

    async def _placed(
        self, experiment_id: str, state: ExperimentState, entries: Sequence[StreamEntry]
    ) -> Sequence[tuple[int, bool]]:
        if not entries:
            return ()
        done = await self._streams.put(experiment_id, state.rules.whole("bus_signals"), entries)
        metrics.BUS_TAKEN.inc(sum(not known for _, known in done.places))
        metrics.BUS_DROPPED.inc(done.dropped)
        self._told(experiment_id)
        return done.places

    async def _since(self, experiment_id: str, before: BusPlace) -> tuple[str, list[Any], BusGap | None]:
        """Return the epoch, all that is held after a place, and what is gone of it."""
        page = await self._streams.page(experiment_id, before.number, PAGE)
        after = before.number
        if page.epoch != before.epoch and before.number:
            after = 0
            page = await self._streams.page(experiment_id, 0, PAGE)
        epoch, rows = page.epoch, [*page.rows]
        while len(page.rows) == PAGE and page.epoch == epoch:
            page = await self._streams.page(experiment_id, rows[-1].number, PAGE)
            rows += page.rows if page.epoch == epoch else ()
        return epoch, rows, gap_between(after, [one.number for one in rows])

    def _told(self, experiment_id: str) -> None:
        if event := self._put.pop(experiment_id, None):
            event.set()


def _page(place: BusPlace, page: StreamPage, wanted: frozenset[str] | None) -> DeliveredPage | None:
    """Return what a subscriber at a place gets of a page; ``None`` where there is nothing to tell."""
    if place.epoch and page.epoch and page.epoch != place.epoch:
        return DeliveredPage(BusPlace(page.epoch), BusGap(0, 0, 0, restarted=True), ())
    if not page.rows:
        return None
    gap = gap_between(place.number, [one.number for one in page.rows])
    if gap:
        metrics.BUS_GAPS.inc()
    found = [
        Delivered(one.number, one.cycle, *apart(one.text)) for one in page.rows if wanted is None or one.type in wanted
    ]
    return DeliveredPage(BusPlace(page.epoch, page.rows[-1].number), gap, found)


def _entry(signal: Signal, text: str, agent: str, cycle: int) -> StreamEntry:
    return StreamEntry(signal["id"], agent or EXECUTION, signal["type"], cycle, text)


def _wanted(state: ExperimentState, agent: str, types: Sequence[str]) -> frozenset[str] | None:
    """Return the types that a subscriber gets; ``None``: all of them."""
    if not agent:
        return frozenset(types) or None
    descriptor = described(state.known(agent), state.rules)
    if foreign := [one for one in types if not descriptor.hears(one)]:
        raise forbidden(
            "DECISION_TYPE_UNDECLARED", "the agent did not declare this type as an input", type=foreign[0][:64]
        )
    hears_all = "*" in descriptor.inputs
    return frozenset(types) or (None if hears_all else frozenset(descriptor.inputs))


async def _either(event: asyncio.Event, at_most_s: float) -> None:
    try:
        async with asyncio.timeout(at_most_s):
            await event.wait()
    except TimeoutError:
        return
