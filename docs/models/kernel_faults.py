"""Planted faults: the protocol without one of its rules. The checker must find each (``kernel.py``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from docs.models.kernel import Agent, Ask, Call, Model, World, held_by
from interlock.domain.kernel.state import KernelRecord, Stepped


class ReturnedWithoutFence(Model):
    """``give_back`` takes whatever fence is named for the right one."""

    def step_kernel(self, world: World, number: int, ask: Ask) -> tuple[World, Stepped]:
        """Decide a return as if the fence were that of the lease."""
        named = dict(ask)
        lease = world.stores[number].get(f"l:{named.get('lease')}")
        if named["op"] == "give_back" and lease:
            ask = tuple((named | {"fence": lease.split(" ")[2]}).items())
        return super().step_kernel(world, number, ask)


class AnsweredBeforeTheSeal(Model):
    """An agent is told what the store decided; sealing is left to whoever comes next."""

    def _sealing(self, world: World, agent: Agent, call: Call) -> Iterator[tuple[str, World, Agent]]:
        yield from self._answered("answer", world, agent, call)


class SealedBesideTheChain(Model):
    """The audit service appends what it is given, in place of what stands there."""

    def seal_kernel(self, world: World, records: tuple[KernelRecord, ...]) -> World | None:
        """Let the last one to seal win."""
        if not records or records[0].sequence > len(world.chain):
            return super().seal_kernel(world, records)
        chain = world.chain[: records[0].sequence - 1] + records
        return replace(world, chain=chain, held=held_by(chain)) if chain[-2].link == records[0].previous else None
