"""Randomised runs: a shape, some traffic and some faults, all drawn from one seed. The seed plays the run again."""

from __future__ import annotations

import random
from dataclasses import dataclass

from interlock.runtime.failpoints import POINTS
from tests.faults import faults as do
from tests.faults.faults import Fault
from tests.faults.parts.cluster import Shape
from tests.faults.parts.proxy import BACK, TO
from tests.faults.parts.rogue import FAULTS as TRICKS
from tests.faults.play import Plan
from tests.faults.workload import STREAMED_WAYS, WAYS

BLOCK = 25
"""Runs that share a cluster: those whose seeds, divided by it, are equal."""

LIGHT_SHARE = 0.85
"""Share of the blocks whose mesh is one process."""

WHERE = {
    "sidecar": "sidecar-0", "session": "session", "audit": "audit", "stream": "audit", "decision": "decision",
    "kernel.before_step": "session",
    "kernel.after_step": "session", "kernel.before_seal": "sidecar-0", "kernel.after_seal": "sidecar-0",
    "kernel.after_record": "sidecar-0", "kernel.after_append": "sidecar-0",
}  # fmt: skip
"""Which part passes a failpoint, by its name or else by the first word of that."""

REACHED = tuple(
    name
    for name in POINTS
    if name.partition(".")[0] in {"sidecar", "session", "kernel", "decision"} or "commit" in name
)
"""Failpoints that the traffic of the suite passes."""


def where(name: str) -> str:
    """Return the part that passes a failpoint."""
    return WHERE.get(name) or WHERE[name.partition(".")[0]]


@dataclass(frozen=True)
class Drawn:
    """What a seed says."""

    shape: Shape
    faults: tuple[Fault, ...]
    plan: Plan


def draw(seed: int) -> Drawn:
    """Return the run of a seed."""
    shape = shape_of(seed)
    rng = random.Random(f"run {seed}")
    pick = _light if shape.light else _heavy
    faults = tuple(pick(rng, shape) for _ in range(rng.choice((1, 1, 2, 3))))
    plan = Plan(
        seed, clients=rng.randint(2, 2 if shape.light else 4), warm_s=rng.uniform(0.1, 0.4),
        hold_s=rng.uniform(0.1, 0.4 if shape.light else 2.5), after_s=rng.uniform(0.05, 0.2),
        pause_s=rng.choice((0.02, 0.04, 0.08)), ways=rng.choice((WAYS, WAYS, STREAMED_WAYS)),
    )  # fmt: skip
    return Drawn(shape, faults, plan)


def shape_of(seed: int) -> Shape:
    """Return the shape of a seed's block."""
    rng = random.Random(f"shape {seed // BLOCK}")
    settings = (("max_fan_out", rng.choice((3, 4, 6))), ("max_windows", rng.choice((8, 20, 40))),
                ("budget_accumulate", rng.choice(("min", "min", "sum"))))  # fmt: skip
    if rng.random() < LIGHT_SHARE:
        return Shape(light=True, settings=settings)
    database = "postgres" if rng.random() < 0.4 else "sqlite"
    return Shape(sidecars=rng.choice((1, 2, 3)), database=database, settings=settings)


def _light(rng: random.Random, _shape: Shape) -> Fault:
    """Draw a fault for a mesh in one process: its store, its provider, its lines, its failpoints."""
    return rng.choice((
        lambda: do.kill_store(), lambda: do.pause_store(), lambda: do.full_store(), lambda: do.flush_store(),
        lambda: do.evict(rng.choice((0.1, 0.5, 0.9))), lambda: do.roll_back_store(),
        *([lambda: do.inside(_rule(rng, ("error", f"delay={rng.choice((50, 300, 1200))}")))] * 6),
        *([lambda: _line(rng, ("store", "provider", "front-0"))] * 4),
        lambda: do.rogue(*_tricks(rng)),
    ))()  # fmt: skip


def _heavy(rng: random.Random, shape: Shape) -> Fault:
    """Draw a fault for a mesh of processes."""
    sidecar = f"sidecar-{rng.randrange(shape.sidecars)}"
    part = rng.choice(("session", "policy", "dpe", "audit", "decision", sidecar))
    lines = ["session", "policy", "dpe", "audit", "decision", "provider", "store", "front-0"]
    if shape.database == "postgres":
        lines.append("database")
    more = [do.kill_database, do.pause_database, do.restart_database] if shape.database == "postgres" else []
    return rng.choice((
        *([lambda: do.kill(part)] * 3), lambda: do.revive(part, rng.uniform(0, 0.5)), lambda: do.restart(part),
        *([lambda: do.pause(part)] * 2), *([lambda: _line(rng, lines)] * 5),
        *([lambda: _point(rng)] * 6), lambda: do.skew(part, rng.choice((-7200, -20, 20, 7200))),
        lambda: do.rogue(*_tricks(rng)), do.kill_store, do.pause_store, do.flush_store, lambda: do.evict(0.5),
        do.everything, *more,
    ))()  # fmt: skip


def _line(rng: random.Random, lines: tuple[str, ...] | list[str]) -> Fault:
    line = rng.choice(lines)
    return rng.choice((
        lambda: do.cut(line), lambda: do.cut(line, TO), lambda: do.cut(line, BACK), lambda: do.reset(line),
        lambda: do.drop(line), lambda: do.half_open(line), lambda: do.slow(line, rng.choice((0.05, 0.2, 1.0))),
        lambda: do.throttle(line, rng.choice((2_000, 50_000))),
    ))()  # fmt: skip


def _point(rng: random.Random) -> Fault:
    rule = _rule(rng, ("kill", "kill", "error", "delay=500"))
    return do.failpoint(where(rule.partition(":")[0]), rule)


def _rule(rng: random.Random, actions: tuple[str, ...]) -> str:
    return f"{rng.choice(REACHED)}:{rng.choice(actions)}@{rng.randint(1, 12)}"


def _tricks(rng: random.Random) -> list[str]:
    return [rng.choice((*TRICKS, "", "", "")) for _ in range(rng.randint(2, 8))]
