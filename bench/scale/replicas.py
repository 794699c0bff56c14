"""Two sidecars over one: python -m bench.scale.replicas [--logs N] [--asks CALL] [--rounds N] [--seconds S] [--force] ...

The mesh in processes of its own, with enough of everything but sidecars; each sidecar asks all processes of a service in turn. Client processes
call in closed loop, in turns: one sidecar, then both with the same number of callers. A call has a provider asked, which answers at once, as does
the dpe in place of the models; the stores are in memory where there is room, so that no disk is measured.

One audit log takes little more than one sidecar brings (docs/scale.md). So each sidecar has audit services and a log of its own, in one PostgreSQL;
``--logs 1`` has both on one log. Beside the rates stands how many cores each kind of process had, and how long the log's lock was held: in the
turns of one sidecar that sidecar is to be full, and nothing else.

Refused with fewer than eight free cores, where the ratio would tell how processes share cores; ``--force`` runs all the same, and tells no ratio.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg

from bench.scale.callers import ASKS, Client, Turn, clients
from bench.scale.parts import Part, Parts, places, used
from interlock.audit.store.log_postgres import _WRITERS
from interlock.runtime.cores import usable_cores
from tests.support.servers.postgres import OWNER, Postgres, folder_in_memory
from tests.support.valkey import Valkey

SIDECARS = 2
FREE_CORES = 8.0
WATCHED_S = 0.02
_HELD = """
SELECT DISTINCT d.datname FROM pg_locks l JOIN pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.classid = %s AND l.objid = %s AND l.granted
"""


@dataclass(frozen=True)
class Options:
    """What is started and for how long, as the command line says."""

    sessions: int
    audits: int
    policies: int
    dpes: int
    logs: int
    clients: int
    callers: int
    rounds: int
    seconds: float
    warm: float
    asks: str


@dataclass
class Measured:
    """One turn: calls, cores that each kind of process had, and the share of time that the busiest log was held."""

    sidecars: int
    rate: float
    failed: int
    errors: list[str]
    cores: dict[str, float] = field(default_factory=dict)
    fullest: dict[str, float] = field(default_factory=dict)
    machine: float = 0.0
    log_held: float = 0.0


class LogWatch:
    """Looks again and again which logs are held by a writer. Its own connection is one of PostgreSQL's processes."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection, self._ended = connection, threading.Event()
        self._looks, self._held = 0, Counter[str]()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Look until the block ends, in a thread."""
        self._looks, self._held = 0, Counter()
        self._ended.clear()
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    @property
    def share(self) -> float:
        """The part of the looks in which the log that was held most was held."""
        return max(self._held.values(), default=0) / max(self._looks, 1)

    def _watch(self) -> None:
        while not self._ended.wait(WATCHED_S):
            rows = self._connection.execute(_HELD, divmod(_WRITERS, 2**32)).fetchall()
            self._looks += 1
            self._held.update(row[0] for row in rows)


@dataclass
class Mesh:
    """Everything that runs."""

    parts: Parts
    sidecars: list[Part]
    valkey: Valkey
    postgres: Postgres
    watch: LogWatch

    def pids(self) -> dict[str, list[int]]:
        """Return the process ids of each kind, as of now."""
        found = self.parts.pids()
        found["valkey"] = [self.valkey.process.pid] if self.valkey.process else []
        found["postgres"] = [one.pid for one in self.postgres.processes()]
        return found


@contextlib.contextmanager
def mesh(options: Options) -> Iterator[Mesh]:
    """Start the mesh with two sidecars; it ends with the block."""
    with contextlib.ExitStack() as ends:
        scratch = Path(ends.enter_context(tempfile.TemporaryDirectory(dir=folder_in_memory())))
        (scratch / "valkey").mkdir()
        postgres = ends.enter_context(Postgres())
        valkey = ends.enter_context(Valkey(scratch / "valkey"))
        parts = Parts(scratch, redis_url=valkey.url, log_level="error", max_windows=60, max_dag_nodes=60,
                      remediation="full", max_roots_per_minute=1_000_000)  # fmt: skip
        ends.callback(parts.stop)
        sidecars = _started(parts, postgres, options)
        watch = LogWatch(ends.enter_context(postgres.admin()))
        yield Mesh(parts, sidecars, valkey, postgres, watch)


def _started(parts: Parts, postgres: Postgres, options: Options) -> list[Part]:
    """Start all services, and the sidecars over them: each over every one of them, of the audit services those of its log."""
    logs = [postgres.url(postgres.database(), OWNER) for _ in range(options.logs)]
    audits = [parts.start("audit", audit_url=logs[number % len(logs)]) for number in range(options.audits)]
    counts = {"policy": options.policies, "stand-in": options.dpes, "session": options.sessions, "provider": SIDECARS}
    found = {kind: [parts.start(kind) for _ in range(count)] for kind, count in counts.items()}
    sidecars = []
    for number in range(SIDECARS):
        own = audits[number % len(logs) :: len(logs)]
        beside = places(policy=found["policy"], dpe=found["stand-in"], session=found["session"], audit=own)
        upstream = f"http://127.0.0.1:{found['provider'][number].ports['only']}/v1"
        sidecars.append(parts.start("sidecar", **beside, upstream_base_url=upstream))
    return sidecars


def turn(running: Mesh, callers: Sequence[Client], asked: Sequence[Part], options: Options) -> Measured:
    """Call the sidecars that are *asked* for a while, after a warm-up."""
    ports = [one.ports["sidecar_grpc"] for one in asked]
    _call(callers, ports, options, options.warm)
    pids = {**running.pids(), "client": [one.process.pid for one in callers]}
    before, began = {pid: used([pid]) for each in pids.values() for pid in each}, time.perf_counter()
    psutil.cpu_percent()
    with running.watch.watching():
        turns = _call(callers, ports, options, options.seconds)
    share, ms = psutil.cpu_percent() / 100, (time.perf_counter() - began) * 1000
    cores = {
        kind: [(used([pid]) - before[pid]) / ms for pid in each if psutil.pid_exists(pid)]
        for kind, each in pids.items()
    }
    return Measured(
        len(asked), sum(one.calls / one.seconds for one in turns), sum(one.failed for one in turns),
        [text for one in turns for text in one.errors], {kind: sum(each) for kind, each in cores.items()},
        {kind: max(each) for kind, each in cores.items()}, share * (psutil.cpu_count() or 1), running.watch.share,
    )  # fmt: skip


def _call(callers: Sequence[Client], ports: Sequence[int], options: Options, seconds: float) -> list[Turn]:
    """Let all client processes call at the same time."""
    for one in callers:
        one.begin(ports, options.callers, seconds, options.asks)
    return [one.end() for one in callers]


def measure(options: Options) -> list[Measured]:
    """Measure one sidecar and two in turns; the one is now the first and now the second."""
    found = []
    with mesh(options) as running, clients(options.clients) as callers:
        for number in range(options.rounds):
            for asked in ([running.sidecars[number % SIDECARS]], running.sidecars):
                found.append(turn(running, callers, asked, options))
                print(told(found[-1]), flush=True)
    return found


def told(one: Measured) -> str:
    """Return a turn in words."""
    kinds = ", ".join(f"{kind} {one.cores[kind]:.2f} ({one.fullest[kind]:.2f})" for kind in sorted(one.cores))
    lines = [
        f"{one.sidecars} sidecar{'s' * (one.sidecars > 1)}: {one.rate:.1f} calls/s, {one.failed} failed",
        f"  cores (of the fullest process): {kinds}",
        f"  cores of the whole machine {one.machine:.2f}; the busiest log was held {one.log_held:.0%} of the time",
        *(f"  failed: {error}" for error in one.errors[:3]),
    ]
    return "\n".join(lines)


def figures(found: Sequence[Measured], logs: int, *, free: bool) -> dict[str, dict[str, object]]:
    """Return what was found; without enough free cores the ratio has no value."""
    single, double = ([one for one in found if one.sidecars == count] for count in (1, SIDECARS))
    on = "on one log" if logs == 1 else "each with a log of its own"
    rates = [statistics.median(one.rate for one in several) for several in (single, double)]
    failed = float(sum(one.failed for one in found))
    rows: dict[str, tuple[float | None, float | None, str, str]] = {
        f"replicas: two sidecars over one, {on}": (
            rates[1] / rates[0] if free and not failed else None,
            1.8,
            "higher",
            "ratio",
        ),
        f"replicas: calls that failed, {on}": (failed, 0.0, "lower", ""),
        f"replicas: cores here, {on}": (float(usable_cores()), None, "", "cores"),
    }
    for name, rate, several in zip(("one sidecar", "two sidecars"), rates, (single, double), strict=True):
        rows[f"replicas: {name}, {on}"] = (rate, None, "", "1/s")
        rows[f"replicas: {name}, {on}: time that a log was held"] = (_median(several, "log_held"), None, "", "share")
        rows[f"replicas: {name}, {on}: the whole machine"] = (_median(several, "machine"), None, "", "cores")
        for kind in sorted(several[0].fullest):
            fullest = statistics.median(one.fullest[kind] for one in several)
            rows[f"replicas: {name}, {on}: fullest {kind}"] = (fullest, None, "", "cores")
    names = ("value", "target", "better", "unit")
    return {figure: dict(zip(names, row, strict=True)) for figure, row in rows.items()}


def _median(several: Sequence[Measured], what: str) -> float:
    return float(statistics.median(getattr(one, what) for one in several))


def free_cores() -> float:
    """Return how many cores nobody uses, over two seconds."""
    return usable_cores() * (1 - float(psutil.cpu_percent(interval=2)) / 100)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    counts = {
        "sessions": (3, "session services"), "audits": (4, "audit services, of all logs"), "policies": (2, "policy services"),
        "dpes": (2, "dpe services that answer at once"), "clients": (6, "client processes"),
        "callers": (8, "callers of each client process"), "rounds": (2, "turns of one sidecar, and as many of two"),
    }  # fmt: skip
    for name, (count, meaning) in counts.items():
        parser.add_argument(f"--{name}", type=int, default=count, help=f"{meaning}: {count} without")
    parser.add_argument(
        "--logs", type=int, choices=(1, 2), default=2, help="audit logs: 2 without, one for each sidecar"
    )
    parser.add_argument(
        "--asks", choices=sorted(ASKS), default="dispatch", help="the call: dispatch without, check has no provider"
    )
    parser.add_argument("--seconds", type=float, default=12.0, help="of each turn")
    parser.add_argument("--warm", type=float, default=3.0, help="seconds before each turn that are not counted")
    parser.add_argument("--force", action="store_true", help="run on fewer free cores too, without a ratio")
    return parser.parse_args()


def main() -> int:
    given = vars(_arguments())
    forced, free = given.pop("force"), free_cores()
    print(f"{usable_cores()} cores, {free:.1f} of them free", flush=True)
    if free < FREE_CORES and not forced:
        raise SystemExit(
            f"two sidecars over one need {FREE_CORES:.0f} free cores, and {free:.1f} of {usable_cores()} are free: the ratio would tell "
            "how processes share cores. --force runs it all the same, and tells no ratio"
        )
    options = Options(**given)
    found = measure(options)
    print(json.dumps(figures(found, options.logs, free=free >= FREE_CORES)))
    return 1 if any(one.failed for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
