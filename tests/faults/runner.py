"""Runs of one shape after the other on one cluster, each with its verdict, and a fresh cluster after one that failed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.faults import Fault
from tests.faults.parts.cluster import Cluster, Shape, running
from tests.faults.play import Plan, Run, play


@dataclass
class Stage:
    """A place for runs: the cluster of the shape at hand, made when it is needed."""

    ends: AsyncExitStack = field(default_factory=AsyncExitStack)
    shape: Shape | None = None
    cluster: Cluster | None = None
    started: int = 0

    async def of(self, shape: Shape) -> Cluster:
        """Return a whole cluster of that shape."""
        if self.cluster is None or self.shape != shape:
            await self.close()
            folder = Path(tempfile.mkdtemp(prefix="interlock-faults-"))
            self.ends.callback(shutil.rmtree, folder, ignore_errors=True)
            self.cluster = await self.ends.enter_async_context(running(folder, shape))
            self.shape, self.started = shape, self.started + 1
        return self.cluster

    async def play(self, shape: Shape, faults: Sequence[Fault], plan: Plan) -> Run:
        """Play one run; what could not even be played has failed."""
        cluster = await self.of(shape)
        try:
            run = await play(cluster, faults, plan)
        except BaseException:
            await self.close()
            raise
        if run.violations or shape.store == "sentinel":
            await self.close()  # what failed is not gone on with, and after a failover the line leads to the replica
        return run

    async def attempt(
        self, shape: Shape, faults: Sequence[Fault], plan: Plan, named: tuple[str, str, str]
    ) -> Run | Row:
        """Play one run; where it cannot be played to its end, return the row that says so."""
        try:
            return await self.play(shape, faults, plan)
        except Exception as error:
            why = f"not played: {type(error).__name__}: {str(error)[-400:]}"
            return Row(*named, "nothing", held=False, settles=0, calls=0, back_s=None, seed=plan.seed, wrong=(why,))

    async def close(self) -> None:
        """End the cluster at hand."""
        self.cluster = None
        await self.ends.aclose()


@dataclass(frozen=True)
class Row:
    """A run as the results keep it."""

    component: str
    fault: str
    promised: str
    seen: str
    held: bool
    settles: int
    calls: int
    back_s: float | None
    seed: int
    wrong: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it for the results file."""
        return asdict(self)


def row_of(component: str, fault: str, promised: str, run: Run, seen: str, wrong: Sequence[str]) -> Row:
    """Return the row of a run."""
    faults = [*map(str, run.violations), *wrong]
    back = None if run.back_s is None else round(run.back_s, 2)
    return Row(
        component, fault, promised, seen, not faults, run.settles, len(run.facts.calls), back, run.plan.seed,
        tuple(faults[:6]),
    )  # fmt: skip


def say(row: Row) -> Row:
    """Tell how a run ended."""
    mark = "held" if row.held else "FAILED"
    print(f"{mark:<6} {row.component}: {row.fault}  [seed {row.seed}] {row.seen}", flush=True)
    for one in row.wrong:
        print(f"         {one}", flush=True)
    return row
