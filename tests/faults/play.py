"""One run: clients walk, something breaks and is mended, the clients continue, every doubt is settled, the verifier looks."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.faults.collect import collect, look_at_checkpoint, scope_of
from tests.faults.experiments import ExperimentOwner
from tests.faults.facts import CHAT, RELEASED, Call, Facts
from tests.faults.faults import Fault
from tests.faults.kernels import KernelClient
from tests.faults.parts.cluster import Cluster
from tests.faults.stream_rules import open_streams, still_holds
from tests.faults.verifier import Violation, unsettled, verify
from tests.faults.workload import WAYS, Agent, History, key_of

BACK_S = 30.0
"""How long a cluster may take to serve again before the run fails."""


SETTLED_S = 45.0
"""How long whatever is in doubt may take to be settled on a machine that does other things too."""


FIRST_S = 3.0
"""The most that a run waits for the first decision of its experiment."""


ROUNDS = 4
"""How often it is looked whether something is still open."""


@dataclass(frozen=True)
class Plan:
    """How a run goes."""

    seed: int
    clients: int = 4
    warm_s: float = 0.7
    hold_s: float = 1.5
    after_s: float = 0.5
    pause_s: float = 0.02
    """Between two steps of a client."""
    ways: Sequence[str] = WAYS
    """Ways in that its clients take."""


@dataclass
class Run:
    """What a run has shown."""

    plan: Plan
    fault: str
    facts: Facts = field(default_factory=Facts)
    violations: list[Violation] = field(default_factory=list)
    before: dict[str, int] = field(default_factory=dict)
    during: dict[str, int] = field(default_factory=dict)
    """Outcomes of calls that were asked for and decided while the fault stood."""
    asked: int = 0
    """Calls that were under way while the fault stood."""
    after: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    back_s: float | None = None
    """From the end of the fault to the first answer that was asked for after it."""

    @property
    def settles(self) -> int:
        """Windows that the session store holds as settled."""
        return sum(bool(window.hmac) for session in self.facts.sessions for window in session.windows)

    @property
    def released(self) -> int:
        """Answers that were given away."""
        return sum(call.kind == CHAT and call.status == RELEASED for call in self.facts.calls)


class Clients:
    """Clients that walk from session to session until they are told to stop."""

    def __init__(self, cluster: Cluster, history: History, plan: Plan) -> None:
        self._cluster, self._history, self._plan = cluster, history, plan
        self._chance = random.Random(plan.seed)
        self._stop = asyncio.Event()
        self._tasks = [
            asyncio.create_task(self._walk(n, random.Random(self._chance.random()))) for n in range(plan.clients)
        ]
        kernel = KernelClient(cluster, random.Random(f"kernel {plan.seed} {time.time_ns()}"))
        history.kernels.append(kernel)
        self._tasks.append(asyncio.create_task(self._act(kernel)))
        if cluster.decides and not (
            cluster.shape.light and plan.seed % 2
        ):  # every other light run: they are many, and short
            experiment = ExperimentOwner(cluster, random.Random(f"experiment {plan.seed} {time.time_ns()}"))
            history.experiments.append(experiment)
            self._tasks.append(asyncio.create_task(self._act(experiment)))

    async def _act(self, client: KernelClient | ExperimentOwner) -> None:
        while not self._stop.is_set():
            await client.step()
            await asyncio.sleep(self._plan.pause_s)

    async def under_way(self) -> None:
        """Wait a moment until the experiment has had its first decision, so that something is there to break."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_S):
                while any(not one.told for one in self._history.experiments):
                    await asyncio.sleep(0.02)

    async def _walk(self, number: int, rng: random.Random) -> None:
        turn = 0
        while not self._stop.is_set():
            turn += 1
            agent = Agent(self._cluster, self._history, f"c{number}-{turn}", rng, place=number, ways=self._plan.ways)
            for _ in range(rng.randint(3, 12)):
                if agent.ended or self._stop.is_set():
                    break
                await agent.step()
                agent.place += rng.randrange(2)
                await asyncio.sleep(self._plan.pause_s)

    async def stop(self) -> None:
        """Let every call that is under way end."""
        self._stop.set()
        await asyncio.gather(*self._tasks)


async def play(cluster: Cluster, faults: Sequence[Fault], plan: Plan) -> Run:
    """Play one run and return what it has shown. The cluster is whole again afterwards."""
    history, since = History(), len(cluster.provider.received)
    run = Run(plan, ", then ".join(fault.name for fault in faults))
    cluster.notes.clear()
    await look_at_checkpoint(cluster)
    clients = Clients(cluster, history, plan)
    try:
        began = time.monotonic()
        await asyncio.sleep(plan.warm_s)
        await clients.under_way()
        broken = time.monotonic()
        for fault in faults:
            await fault(cluster)
        standing = time.monotonic()
        await asyncio.sleep(plan.hold_s)
        mended = time.monotonic()
        await cluster.heal()
        await look_at_checkpoint(cluster)
        run.back_s = await _back(cluster, history, mended)
        await asyncio.sleep(plan.after_s)
    finally:
        await clients.stop()
    run.notes = list(cluster.notes)
    run.before = history.outcomes(began, broken)
    run.during = _outcomes(history.calls, standing, mended)
    run.asked = sum(call.kind == CHAT and call.started < mended and call.ended > standing for call in history.calls)
    run.after = history.outcomes(mended)
    await asyncio.gather(
        *(agent.finish(SETTLED_S, mended) for agent in list(history.agents)),
        *(kernel.finish(SETTLED_S) for kernel in history.kernels),
        *(experiment.finish(SETTLED_S) for experiment in history.experiments),
    )
    run.facts = await _drained(cluster, history, since)
    run.violations = verify(run.facts)
    if run.back_s is None:
        run.violations.append(Violation("AR", f"nothing was answered within {BACK_S:g} s of the fault's end"))
    run.violations += [Violation("I3", f"it stayed in doubt what became of {one}") for one in history.doubts]
    return run


async def _drained(cluster: Cluster, history: History, since: int) -> Facts:
    """Return the facts when nothing is open any more that can be closed.

    An opening settles one window that was left; the budget of a caller that went back with its store is found at the next
    settlement of that caller (docs/limits.md).
    """
    for _ in range(ROUNDS):
        facts = await collect(cluster, history, since=since)
        left = {
            one.session_id
            for one in facts.sessions
            if unsettled(one, facts) or open_streams(one, facts) or still_holds(one, facts)
        }
        behind = {caller.scope for caller in facts.callers if caller.spent < caller.settled}
        if not left and not behind:
            break
        if left:
            await asyncio.sleep(cluster.lease_s)
        agents = [agent for agent in history.agents if agent.session_id in left and agent.token and not agent.ended]
        clients = {agent.client for agent in history.agents if scope_of(key_of(agent.name)) in behind}
        settled = await asyncio.gather(*(agent.finish(SETTLED_S, 0.0) for agent in agents))
        await asyncio.gather(
            *(Agent(cluster, history, f"{name}.again", random.Random(0)).chat("LOW") for name in sorted(clients))
        )
        if not all(settled):
            break  # a doubt that lasted so long is a violation, and another round would last as long
    return facts


def _outcomes(calls: Sequence[Call], since: float, until: float) -> dict[str, int]:
    """Count the outcomes of governed calls that were asked for, and decided, while the fault stood.

    A call with an approval hands out what was held before: it needs neither the provider nor the analysis.
    """
    found: dict[str, int] = {}
    for call in calls:
        if call.kind == CHAT and not (call.left or call.approval) and since <= call.started and call.ended <= until:
            name = "delivered" if call.status == RELEASED else (call.reason or str(call.status))
            found[name] = found.get(name, 0) + 1
    return found


async def _back(cluster: Cluster, history: History, mended: float) -> float | None:
    """Return the seconds until an answer that was asked for after *mended* was given; ``None`` when none was."""
    rng = random.Random(0)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(BACK_S):
            while True:
                for call in reversed(history.calls):
                    if call.kind == CHAT and call.status == RELEASED and call.started > mended:
                        return call.ended - mended
                await Agent(cluster, history, "probe", rng).chat("LOW")
    return None
