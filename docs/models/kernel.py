"""A model of leases and permits of a kernel: agents, sidecars, a store that fails over, and the chain (ADR 43).

What is decided is decided by the code itself: ``MemoryKernels`` (``interlock.domain.kernel.rule``, which a property test holds equal to the
Lua) and ``following``, by which the audit service appends. The model adds who asks when, what gets lost, and what agents do in the world.
Its steps bear the names of the code: those of the service (``step_kernel``, ``seal_kernel``, ``acknowledge_kernel``, ``get_kernel_record``,
``restore_kernel``) and of the rule (``lease``, ``give_back``, ``permit``, ``confirm``, ``abort``).

Left out on purpose: the clocks of agents (one that holds a slice may spend at any time, also after its end, which is more than any clock
allows) and the order of messages (each is decided at any time, or never).
"""

from __future__ import annotations

import json
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from interlock.domain.ids import SessionId
from interlock.domain.kernel.definition import Condition, Definition, RegisteredAction, opened
from interlock.domain.kernel.state import (
    SKEW_MS,
    Fields,
    KernelRecord,
    Resource,
    Stepped,
    following,
    linked,
    replayed,
)
from interlock.session.store.kernels.store import MemoryKernels

SLICE, RESERVED, ACTUAL = 1, 2, 1
LIFETIME_MS = 1_000
TIMES = (1_000_000, 1_000_000 + LIFETIME_MS + SKEW_MS + 1)
"""Before the end of every lease, and after it and the largest clock error."""
KERNEL = SessionId("crp_sess_" + "0" * 32)
AGENTS = "XYZ"

FEW = 2
"""Most payments, by an invariant."""

Ask = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Bounds:
    """How much may happen in one run: operations of each agent, and what goes wrong."""

    agents: tuple[str, ...] = ("lease", "lease", "lease")
    limit: int = 2
    operations: int = 1
    crashes: int = 1
    failovers: int = 1
    cut_off: bool = False
    """Whether the primary that a failover replaced goes on answering."""
    fine: bool = False
    """Whether others may come between a seal and what the store is told of it."""
    passes: int = 0
    """How often 10,000 records of others pass, so that keys are forgotten."""


@dataclass(frozen=True)
class Call:
    """A call of an agent on its way. *records* is what has to be sealed before *answer* is given."""

    ask: Ask
    at: str = "asked"
    status: str = ""
    answer: Mapping[str, Any] = field(default_factory=dict)
    records: tuple[KernelRecord, ...] = ()
    read: tuple[KernelRecord, ...] = ()
    store: int = 0


@dataclass(frozen=True)
class Slice:
    """What an agent holds of a lease."""

    key: str
    fence: str
    left: int


@dataclass(frozen=True)
class Agent:
    """One agent. *permit* is the key of a permit that it holds, *acted* whether it did in the world what that permits."""

    name: str
    kind: str
    used: int = 0
    call: Call | None = None
    slice: Slice | None = None
    permit: str = ""
    acted: bool = False


@dataclass(frozen=True)
class World:
    """Everything. *stores* are the primary and, after a failover, the one that was cut off and still answers; an empty one lost the kernel."""

    stores: tuple[Fields, ...]
    chain: tuple[KernelRecord, ...]
    held: Fields
    """What the chain says."""
    agents: tuple[Agent, ...]
    late: tuple[Ask, ...] = ()
    """Requests whose agents died before they were decided, and second copies of requests that were tried again."""
    world_spent: int = 0
    """What agents spent in the world."""
    time: int = 0
    crashes: int = 0
    failovers: int = 0
    passes: int = 0


def started(bounds: Bounds) -> World:
    """Return a world whose kernel was opened and sealed."""
    fields, record = opened(_definition(bounds.limit), KERNEL, TIMES[0])
    held = {**fields, "seq": "1", "sealed": "1"}
    agents = tuple(Agent(name, kind) for name, kind in zip(AGENTS, bounds.agents, strict=False))
    return World((held,), (record,), held, agents)


def _definition(limit: int) -> Definition:
    return Definition(
        resources={"usd": Resource(limit, 1)},
        variables={"done": "n:0"},
        invariants=[Condition("few", f"done <= 0.{FEW:06}", blocking=True)],
        actions=[RegisteredAction("pay", "pay", [("done", "increment", "n:1")], [("usd", RESERVED)])],
        open_registry=False,
    )


class Model:
    """The steps of the protocol. A planted fault overrides one of its methods (``kernel_faults.py``)."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        """Yield every step that is possible, and the world after it."""
        for number, agent in enumerate(world.agents):
            steps = self._calling(world, agent) if agent.call else self._free(world, agent)
            for name, after, changed in steps:
                yield f"{agent.name}.{name}", replace(after, agents=_put(after.agents, number, changed))
        yield from self._crashes(world)
        yield from self._surroundings(world)

    # What an agent does by itself. What it asks it has decided at once: a request that is on its way longer is one of a dead agent.

    def _free(self, world: World, agent: Agent) -> Iterator[tuple[str, World, Agent]]:
        for ask in self._asks(world, agent):
            anew = replace(agent, used=agent.used + (ask[0][1] == agent.kind), slice=None, permit="", acted=False)
            yield from self._asked(world, anew, ask)
            if world.crashes < self.bounds.crashes:
                late = replace(world, crashes=world.crashes + 1, late=(*world.late, ask))
                yield f"{ask[0][1]}, dies", late, anew
                for name, after, changed in self._asked(late, anew, ask):
                    yield f"{name}, sent twice", after, changed

    def _asks(self, world: World, agent: Agent) -> Iterator[Ask]:
        """Yield what an agent can ask next."""
        own = f"{agent.name}b"
        if agent.slice:
            held = agent.slice
            yield _ask("give_back", own, lease=held.key, fence=held.fence, unspent=str(held.left))
        elif agent.acted:
            yield _ask("confirm", own, permit=agent.permit, actual=[["usd", str(ACTUAL)]])
        elif agent.permit:
            yield _ask("abort", own, executions=[agent.permit])
        elif agent.used < self.bounds.operations and f"x:{agent.name}" not in world.held:
            yield _begun(agent)

    def _asked(self, world: World, agent: Agent, ask: Ask) -> Iterator[tuple[str, World, Agent]]:
        for number in range(len(world.stores)):
            after, found = self.step_kernel(world, number, ask)
            where = ":cut_off" if number else ""
            yield f"{ask[0][1]}{where}", after, replace(agent, call=_decided(Call(ask), number, found))

    # What becomes of a call.

    def _calling(self, world: World, agent: Agent) -> Iterator[tuple[str, World, Agent]]:
        call = agent.call
        assert call is not None
        if call.at == "asked":
            yield from self._asked(world, agent, call.ask)
        elif call.at == "decided":
            yield from self._sealing(world, agent, call)
        elif call.at == "sealed":
            yield from self._answered("acknowledge_kernel", self.acknowledge_kernel(world, call), agent, call)
        elif call.at == "lost" and self.bounds.fine:
            yield "get_kernel_record", world, replace(agent, call=replace(call, at="read", read=world.chain))
        elif call.at == "lost":
            read = replace(call, read=world.chain)
            yield "restore_kernel", self.restore_kernel(world, read), replace(agent, call=Call(call.ask))
        else:
            yield "restore_kernel", self.restore_kernel(world, call), replace(agent, call=Call(call.ask))

    def _sealing(self, world: World, agent: Agent, call: Call) -> Iterator[tuple[str, World, Agent]]:
        sealed = self.seal_kernel(world, call.records)
        if sealed is None:
            yield "seal_kernel: conflict", world, replace(agent, call=replace(call, at="lost"))
        elif self.bounds.fine:
            yield "seal_kernel", sealed, replace(agent, call=replace(call, at="sealed"))
        else:
            yield from self._answered("seal_kernel", self.acknowledge_kernel(sealed, call), agent, call)
            if world.crashes < self.bounds.crashes and call.records:
                unknown = replace(sealed, crashes=world.crashes + 1)
                yield "seal_kernel, sidecar dies", unknown, replace(agent, call=Call(call.ask))

    def step_kernel(self, world: World, number: int, ask: Ask) -> tuple[World, Stepped]:
        """Decide by the rule."""
        store = _kernels(world.stores[number])
        found = _ran(store.step(KERNEL, dict(ask), TIMES[world.time]))
        fields = store._kernels.get(KERNEL, {})  # noqa: SLF001 - the store is the model's own
        if fields == world.stores[number]:
            return world, found
        return replace(world, stores=_put(world.stores, number, fields)), found

    def seal_kernel(self, world: World, records: tuple[KernelRecord, ...]) -> World | None:
        """Append as the audit service does; nothing where another history was sealed."""
        if not records:
            return world
        chain = world.chain
        given = [(one.sequence, one.previous, one.link) for one in records]
        there, upto = following(len(chain), chain[-1].link, given, lambda index: records[index] in chain)
        if upto < len(given):
            return None
        longer = chain + records[there:]
        return replace(world, chain=longer, held=held_by(longer))

    def acknowledge_kernel(self, world: World, call: Call) -> World:
        """Let the store forget what is sealed."""
        if not call.records:
            return world
        store, last = _kernels(world.stores[call.store]), call.records[-1]
        _ran(store.sealed(KERNEL, last.sequence, last.link))
        return replace(world, stores=_put(world.stores, call.store, store._kernels.get(KERNEL, {})))  # noqa: SLF001

    def restore_kernel(self, world: World, call: Call) -> World:
        """Make a store what the chain said when it was read."""
        store, records = _kernels(world.stores[call.store]), call.read
        _ran(store.restore(KERNEL, replayed(records), len(records)))
        return replace(world, stores=_put(world.stores, call.store, store._kernels[KERNEL]))  # noqa: SLF001

    def _answered(self, name: str, world: World, agent: Agent, call: Call) -> Iterator[tuple[str, World, Agent]]:
        """Tell an agent what was decided. It spends or acts at once or never: what is spent later breaks nothing that this does not."""
        told = self.answered(agent, call)
        yield name, world, told
        if told.slice and told.slice.left:
            spent = replace(told, slice=replace(told.slice, left=0))
            yield f"{name}, spends", replace(world, world_spent=world.world_spent + told.slice.left), spent
        if told.permit and not told.acted:
            yield f"{name}, acts", replace(world, world_spent=world.world_spent + ACTUAL), replace(told, acted=True)

    @staticmethod
    def answered(agent: Agent, call: Call) -> Agent:
        """Return an agent that knows what was decided."""
        op, approved = call.ask[0][1], call.answer.get("approved") == "1"
        agent = replace(agent, call=None)
        if op == "lease" and approved:
            key = dict(call.ask)["key"]
            return replace(agent, slice=Slice(key, call.answer["sequence"], int(call.answer["granted"])))
        if op == "permit" and approved:
            return replace(agent, permit=dict(call.ask)["key"])
        return agent

    # What goes wrong.

    def _crashes(self, world: World) -> Iterator[tuple[str, World]]:
        if world.crashes >= self.bounds.crashes:
            return
        world = replace(world, crashes=world.crashes + 1)
        for number, agent in enumerate(world.agents):
            call = agent.call
            if call and call.at != "asked":
                again = replace(agent, call=Call(call.ask))
                yield f"{agent.name}.sidecar_dies", replace(world, agents=_put(world.agents, number, again))
            if call or agent.slice or agent.permit:
                anew = Agent(agent.name, agent.kind, agent.used)
                late = (*world.late, call.ask) if call and call.at == "asked" else world.late
                yield f"{agent.name}.dies", replace(world, agents=_put(world.agents, number, anew), late=late)

    def _surroundings(self, world: World) -> Iterator[tuple[str, World]]:
        if world.time + 1 < len(TIMES) and any(name[:2] == "l:" for fields in world.stores for name in fields):
            yield "leases_end", replace(world, time=world.time + 1)
        for index, ask in enumerate(world.late):
            rest = replace(world, late=world.late[:index] + world.late[index + 1 :])
            yield "late.step_kernel", self.step_kernel(rest, 0, ask)[0]
        if world.failovers < self.bounds.failovers:
            after = replace(world, failovers=world.failovers + 1)
            cut_off = world.stores[:1] if self.bounds.cut_off else ()
            for lost in (1, 2):
                if replica := _set_back(world, lost):
                    yield f"failover: {lost} lost", replace(after, stores=(replica, *cut_off))
            yield "flush", replace(after, stores=({},))
        in_step = world.stores == (world.held,) and not any(one.call for one in world.agents)
        if in_step and world.passes < self.bounds.passes:
            yield "keys_forgotten", _forgotten(replace(world, passes=world.passes + 1))


_HELD: dict[str, Fields] = {}


def held_by(chain: tuple[KernelRecord, ...]) -> Fields:
    """Return what a chain says; its last link names it."""
    link = chain[-1].link
    if link not in _HELD:
        _HELD[link] = {**replayed(chain), "seq": str(len(chain)), "sealed": str(len(chain))}
    return _HELD[link]


def _set_back(world: World, lost: int) -> Fields:
    """Return the primary without its last records: what a replica has that lags."""
    fields = world.stores[0]
    if not fields or int(fields["seq"]) <= lost:
        return {}
    sealed, upto = int(fields["sealed"]), int(fields["seq"]) - lost
    outbox = {f"o:{n}": fields[f"o:{n}"] for n in range(sealed + 1, upto + 1)}
    records = (*world.chain[:sealed], *map(KernelRecord.of, outbox.values()))[:upto]
    back = held_by(records)
    return {**back, **outbox, "sealed": str(min(sealed, upto))}


def _forgotten(world: World) -> World:
    """Let 10,000 records of others pass, as one: the keys of what was done before are forgotten, as ``commit`` does it."""
    dropped = [name for name in world.held if name[:2] in {"x:", "k:"}]
    sequence, previous = len(world.chain) + 1, world.chain[-1].link
    data = json.dumps({"sequence": str(sequence), "changes": {}, "dropped": dropped, "moments": []})
    record = KernelRecord(sequence, previous, linked(previous, data), "KERNEL_REGISTERED", 2, data)
    held = held_by((*world.chain, record))
    return replace(world, chain=(*world.chain, record), held=held, stores=(held,))


def _begun(agent: Agent) -> Ask:
    if agent.kind == "lease":
        body = {"resource": "usd", "wanted": str(SLICE), "lifetime_ms": str(LIFETIME_MS), "child": ""}
        return _ask("lease", agent.name, **body)
    return _ask("permit", agent.name, action="pay", version="0", saga="", child="")


def _ask(op: str, key: str, **body: Any) -> Ask:
    return (("op", op), ("key", key), ("digest", op), *body.items())


def _decided(call: Call, number: int, found: Stepped) -> Call:
    if found.status == "KERNEL_NOT_FOUND":
        return replace(call, at="lost", store=number)
    return replace(
        call, at="decided", store=number, status=found.status, answer=found.answer, records=tuple(found.unsealed)
    )


def _kernels(fields: Fields) -> MemoryKernels:
    store = MemoryKernels()
    if fields:
        store._kernels[KERNEL] = dict(fields)  # noqa: SLF001 - the store is the model's own
    return store


def _ran(work: Coroutine[Any, Any, Any]) -> Any:
    """Run what waits for nothing."""
    try:
        work.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("the store in memory waits for nothing")


def _put(items: tuple[Any, ...], number: int, item: Any) -> tuple[Any, ...]:
    return (*items[:number], item, *items[number + 1 :])
