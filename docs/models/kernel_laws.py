"""What must hold in every state of the model, and which states are the same (``kernel.py``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from docs.models.checker import Broken
from docs.models.kernel import AGENTS, FEW, RESERVED, Agent, Bounds, Call, World
from interlock.domain.kernel.state import Fields, KernelRecord, Resource


def check(world: World) -> None:
    """T1, T2, T3, T4 and T5, and that the ledger is what an accountant makes of the chain."""
    usd = Resource.of(world.held["r:usd"])
    net = usd.gross - usd.refunded
    _require(world.world_spent <= net <= usd.limit, f"T1: spent {world.world_spent} in the world, {net} in the ledger")
    _require(0 <= usd.leased <= net, "T1: more is leased than spent")
    _require(int(world.held["steps"]) <= usd.limit, "T2: too many steps")
    _require(int(world.held["v:done"][2:]) <= FEW, "T3: the invariant is broken")
    link = world.chain[-1].link
    if link not in _ACCOUNTS:
        _ACCOUNTS[link] = accounted(world.chain)
    gross, refunded, done = _ACCOUNTS[link]
    _require((usd.gross, usd.refunded) == (gross, refunded), "T5: the ledger is not what the records charge")
    _require(int(world.held["v:done"][2:]) == done, "T5: an effect without its charge, or a charge without its effect")
    for agent in world.agents:
        _check_told(world, agent)


def _check_told(world: World, agent: Agent) -> None:
    """What an agent was told is in the chain, and stays as it was told."""
    if agent.slice:
        fence = int(agent.slice.fence)
        record = world.chain[fence - 1] if fence <= len(world.chain) else None
        told = (
            record is not None and record.type == "KERNEL_LEASED" and json.loads(record.data)["key"] == agent.slice.key
        )
        _require(told, "T5: a lease was told that the chain does not have")
    if agent.permit:
        text = world.held.get("x:" + agent.permit)
        kept = text is not None and json.loads(text)["state"] == "P"
        _require(kept or world.passes > 0, "T5: a permit was told that the chain does not have")


_ACCOUNTS: dict[str, tuple[int, int, int]] = {}
"""By the last link of a chain, which names it."""


def accounted(chain: tuple[KernelRecord, ...]) -> tuple[int, int, int]:
    """Return gross, refunded and effects, from what the records say and no rule. Gross spending never falls (T4)."""
    gross = refunded = done = before = 0
    for record in chain[1:]:
        data = json.loads(record.data)
        changes = data["changes"]
        usd = Resource.of(changes["r:usd"]) if "r:usd" in changes else None
        if record.type in {"KERNEL_LEASED", "KERNEL_PERMITTED"}:
            gross += sum(int(amount) for _, amount in data["costs"])
            done += record.type == "KERNEL_PERMITTED"
        elif record.type == "KERNEL_CONFIRMED":
            refunded += RESERVED - sum(int(amount) for _, amount in data["costs"])
        elif record.type == "KERNEL_ABORTED":
            refunded, done = refunded + RESERVED, done - 1
        elif record.type == "KERNEL_RETURNED" and usd:
            refunded = usd.refunded
        if usd:
            _require(usd.gross >= before, "T4: gross spending fell")
            before = usd.gross
    return gross, refunded, done


def _require(holds: bool, what: str) -> None:  # noqa: FBT001 - it is the property
    if not holds:
        raise Broken(what)


class _Names:
    """Names of agents and of records, by the order in which a state first speaks of them."""

    def __init__(self, agents: tuple[Agent, ...], chain: tuple[KernelRecord, ...], over: str) -> None:
        """Keys of agents in *over* are not asked for any more."""
        self.over = over
        self.order = "".join(one.name for one in agents)
        self._letters = str.maketrans(self.order, AGENTS[: len(self.order)])
        self._links = {chain[-1].link: -1}
        self._chain = chain

    def text(self, value: str) -> str:
        return value.translate(self._letters)

    def link(self, link: str) -> int:
        return self._links.setdefault(link, len(self._links))

    def record(self, one: KernelRecord) -> Any:
        """Return a record: its place in the chain, or what it does."""
        place = one.sequence - 1
        if place < len(self._chain) and self._chain[place].link == one.link:
            return one.sequence
        return one.sequence, self.link(one.previous), self.link(one.link), self._told(one)

    def _told(self, one: KernelRecord) -> Any:
        if (found := _TOLD.get((one.link, self.order, self.over))) is None:
            data = json.loads(one.data)
            lines = self._lines(data["changes"])
            found = _TOLD[one.link, self.order, self.over] = (
                one.type.lower(),
                self.text(data["key"]),
                lines,
                *map(self.text, data["dropped"]),
            )
        return found

    def fields(self, fields: Fields) -> Any:
        """Return the fields of a store, which the last link and what is sealed name."""
        known = (fields["link"], fields["sealed"], self.order, self.over)
        if known not in _TOLD:
            _TOLD[known] = self._lines(fields)
        return _TOLD[known]

    def _lines(self, fields: Mapping[str, str]) -> list[str]:
        """Return fields without what nothing depends on: times, versions, checks that were told, and the texts of records."""
        return sorted(
            self.text(f"{name}={_entry(value) if name[:2] == 'x:' else value}")
            for name, value in fields.items()
            if self._counts(name)
        )

    def _counts(self, name: str) -> bool:
        if name[:2] == "x:":
            return name[2] not in self.over
        return name[:2] in {"l:", "r:", "v:"} or name in {"steps", "sealed", "seq"}


_TOLD: dict[tuple[str, ...], Any] = {}


def _entry(text: str) -> str:
    entry = json.loads(text)
    answer = entry["answer"]
    told = answer["sequence"] if answer["granted"] else ""
    return f"{entry['digest']} {entry['state'].lower()} {answer['approved']} {told} {len(entry['undo'] or ())} {entry['costs']}"


def same(world: World, bounds: Bounds) -> Any:
    """Return what is equal for worlds that behave alike: agents may change places, and only the unsealed end of a history counts."""
    agents = tuple(sorted(world.agents, key=_local))
    names = _Names(agents, world.chain, _over(world, bounds))
    return (
        len(world.chain), names.fields(world.held), [_store(names, one) for one in world.stores],
        [names.text(repr(_agent(names, one))) for one in agents], sorted(names.text(repr(one)) for one in world.late),
        world.world_spent, world.time, world.crashes, world.failovers, world.passes,
    )  # fmt: skip


def _over(world: World, bounds: Bounds) -> str:
    """Return the agents that have nothing left to do, and nothing on its way: nobody asks for their keys."""
    late = {dict(ask)["key"][0] for ask in world.late}
    done = (
        one.name for one in world.agents if one.used >= bounds.operations and not (one.call or one.slice or one.permit)
    )
    return "".join(sorted({*done} - late))


def _store(names: _Names, fields: Fields) -> Any:
    if not fields:
        return None
    tail = [names.record(_record(fields[f"o:{n}"])) for n in range(int(fields["sealed"]) + 1, int(fields["seq"]) + 1)]
    link = "" if tail and isinstance(tail[-1], int) else names.link(fields["link"])
    return names.fields(fields), tail, link


@lru_cache(maxsize=100_000)
def _record(stored: str) -> KernelRecord:
    return KernelRecord.of(stored)


def _local(agent: Agent) -> str:
    return repr((agent.kind, agent.used, agent.permit != "", agent.acted, agent.slice, *_call(agent.call))).replace(
        agent.name, "@"
    )


def _call(call: Call | None) -> Iterator[Any]:
    if call:
        granted = call.answer.get("granted")
        yield from (call.ask, call.at, call.store, call.status, call.answer.get("approved"))
        yield (granted, call.answer["sequence"]) if granted else None


def _agent(names: _Names, agent: Agent) -> Any:
    call = agent.call
    records = [names.record(one) for one in call.records] if call else []
    read = len(call.read) if call else 0
    return agent.kind, agent.used, agent.slice, agent.permit, agent.acted, [*_call(call)], records, read
