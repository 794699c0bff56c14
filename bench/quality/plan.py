"""How many rows of each measurement fit the time: rates are measured first, then sizes are chosen from them."""

from __future__ import annotations

import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.quality.rows import Row

WARM_UP = 2
STEP = 12
ROUNDS = 4
LOOKING = 0.4
"""Share of the time after which rates are no longer looked for."""
ENOUGH = 30
"""Rows below which a measurement is not worth its table line, unless the set has no more."""
RESERVE = 0.9
"""Share of the time that is planned; the rest is for what rates did not tell."""


@dataclass
class Job:
    """A measurement over rows that can stop after any of them: ``measure`` returns one result for each row."""

    name: str
    rows: Sequence[Row]
    measure: Callable[[Sequence[Row]], Awaitable[Sequence[Any]]]
    weight: int
    results: list[Any] = field(default_factory=list)
    failed: str = ""
    spent_s: float = 0.0
    """Time that the rows took, those of the first look aside: what is loaded late is not a row's time."""
    timed: int = 0

    @property
    def cost(self) -> float:
        """Seconds that a row takes; 0.0 while nobody knows."""
        return self.spent_s / self.timed if self.timed else 0.0

    @property
    def done(self) -> Sequence[Row]:
        """The rows that have a result."""
        return self.rows[: len(self.results)]

    async def run(self, size: int, until: float = float("inf")) -> None:
        """Measure up to *size* rows in all, in steps, until the clock says stop. A job that fails does not go on."""
        while not self.failed and len(self.results) < min(size, len(self.rows)) and time.monotonic() < until:
            at, began = len(self.results), time.monotonic()
            try:
                self.results += await self.measure(self.rows[at : min(at + STEP, size, len(self.rows))])
                if at:
                    self.spent_s += time.monotonic() - began
                    self.timed += len(self.results) - at
            except Exception as error:
                self.failed = type(error).__name__
                traceback.print_exc()


async def rates(jobs: Sequence[Job], say: Callable[[str], None], until: float = float("inf")) -> dict[str, float]:
    """Return the seconds that a row of each job takes, measured on its first rows, which are kept.

    A machine that is busy with other work may need all the time for this: jobs that it did not come to are not in it.
    """
    for job in jobs:
        await job.run(1, until)
        await job.run(1 + WARM_UP, until)
        if job.timed:
            say(f"{job.name}: {job.cost * 1000:.0f} ms a row")
    return {job.name: job.cost for job in jobs if job.timed}


def sizes(jobs: Sequence[Job], costs: Mapping[str, float], seconds: float) -> dict[str, int]:
    """Return how many rows of each job to have: as many as its weight says, times one factor for all that fits.

    A handful of rows tells nothing. So each job first gets enough of them, in order, while the time lasts; those that do
    not get enough get no more than they have.
    """
    budget, least = seconds * RESERVE, {}
    for job in jobs:
        more = max(0, min(ENOUGH, len(job.rows)) - len(job.results))
        if not job.failed and job.name in costs and more * costs[job.name] <= budget:
            budget -= more * costs[job.name]
            least[job.name] = len(job.results) + more

    def at(factor: float) -> dict[str, int]:
        return {
            job.name: min(len(job.rows), max(least[job.name], int(job.weight * factor)))
            if job.name in least
            else len(job.results)
            for job in jobs
        }

    def beyond(factor: float) -> float:
        wanted = at(factor)
        return sum((wanted[job.name] - least[job.name]) * costs[job.name] for job in jobs if job.name in least)

    low, high = 0.0, 1000.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) <= budget else (low, middle)
    return at(low)


async def within(jobs: Sequence[Job], seconds: float, say: Callable[[str], None]) -> None:
    """Measure what fits the time: sizes from the rates, and again from the rates since, until the time is used.

    Each job has its slice of a round, so that a slow one cuts only itself short.
    """
    end = time.monotonic() + seconds
    costs = await rates(jobs, say, end - seconds * (1 - LOOKING))
    for number in range(1, ROUNDS + 1):
        left = end - time.monotonic()
        wanted = sizes(jobs, costs, left)
        await _round(jobs, wanted, costs, end)
        say(
            f"round {number}: {sum(len(job.results) for job in jobs)} rows, {max(0.0, end - time.monotonic()):.0f} s left"
        )
        if end - time.monotonic() < seconds * (1 - RESERVE) / 2:
            break
        costs = {job.name: job.cost for job in jobs if job.timed}


async def _round(jobs: Sequence[Job], wanted: Mapping[str, int], costs: Mapping[str, float], end: float) -> None:
    began = time.monotonic()
    planned = {job.name: max(0, wanted[job.name] - len(job.results)) * costs.get(job.name, 0.0) for job in jobs}
    total, passed = sum(planned.values()) or 1.0, 0.0
    for job in jobs:
        passed += planned[job.name]
        if planned[job.name]:
            await job.run(wanted[job.name], began + (end - began) * min(1.0, 0.02 + passed / total))
