"""So many actions by four processes while everything is killed, and every kernel verified: python -m bench.kernel --actions 1000000

Session, audit, two sidecars and the store are processes; one of them is killed every few seconds (kill -9), in half of the cases at a failpoint,
and one of the four agents dies in each kernel. A kernel takes some thousand actions, until its budget is gone and beyond; then
``tests/support/kernel_verifier.py`` compares its trace, its state and what the agents were told: T1 to T5, T7 and T8: each emergency action that was answered is in the trace
once, and behind a stop that was answered while the store was down nothing is permitted. A violation is told, and the run goes on.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Self

from interlock.client.errors import InterlockError
from interlock.client.kernel import KernelCalls
from tests.support import kernel_verifier
from tests.support.kernels import UNIT, definition
from tests.support.paths import ROOT
from tests.support.servers.processes import Process, Processes
from tests.support.valkey import Valkey

AGENTS, EACH = 4, 1000
POINTS = (
    "kernel.before_step", "kernel.after_step", "kernel.before_seal", "kernel.after_seal", "kernel.after_record", "kernel.after_append",
)  # fmt: skip


def limits(each: int) -> list[dict[str, Any]]:
    """What a kernel has: gone before its agents are done, so that its limits are met."""
    return [
        {"name": "usd", "limit_micros": AGENTS * each * UNIT * 6 // 10, "min_cost_micros": UNIT},
        {"name": "mails", "limit_micros": AGENTS * each * UNIT * 3 // 10},
    ]


class Shaking:
    """Kills one part after the other until it is told to stop."""

    def __init__(self, pieces: list[Process], valkey: Valkey, rng: random.Random) -> None:
        self._pieces, self._valkey, self._rng = pieces, valkey, rng
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.kills: Counter[str] = Counter()
        self.fault: BaseException | None = None

    def _run(self) -> None:
        try:
            while not self._over.wait(self._rng.uniform(0.5, 4.0)):
                self._once()
        except BaseException as fault:  # told by the run: without faults it would show nothing
            self.fault = fault

    def _once(self) -> None:
        self._raise_the_dead()
        one = self._rng.choice([*self._pieces, self._valkey])
        if isinstance(one, Valkey):
            one.kill()
            one.start()
            self.kills["valkey"] += 1
            return
        one.kill()
        self.kills[str(one.name)] += 1
        if self._rng.random() < 0.5:
            one.env["INTERLOCK_FAILPOINTS"] = f"{self._rng.choice(POINTS)}:kill@{self._rng.randint(2, 40)}"
        one.restart()

    def _raise_the_dead(self) -> None:
        """Start again what died at its failpoint."""
        for one in self._pieces:
            one.env.pop("INTERLOCK_FAILPOINTS", None)
            if one.child.poll() is not None:
                self.kills[f"{one.name} at a failpoint"] += 1
                one.restart()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        for one in self._pieces:  # none is left with a failpoint
            one.env.pop("INTERLOCK_FAILPOINTS", None)
            one.kill()
            one.restart()


def acted(kernel: str, urls: list[str], each: int, rng: random.Random) -> tuple[list[dict[str, Any]], int]:
    """Let four agents act, one of which dies; return what they were told, and how many died. A line that was cut off is none."""
    command = [sys.executable, "-m", "tests.support.kernel_agents", "acting", kernel]
    agents = [
        subprocess.Popen([*command, urls[number % 2], str(each)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for number in range(AGENTS)
    ]
    killing = threading.Timer(rng.uniform(2, 20), agents[rng.randrange(AGENTS)].kill)
    killing.start()
    found: list[str] = []
    readers = [threading.Thread(target=lambda one=one: found.extend(one.stdout)) for one in agents]
    for one in readers:
        one.start()
    for one in readers:
        one.join()
    killing.cancel()
    died = sum(one.wait() != 0 for one in agents)
    told = []
    for line in found:
        with contextlib.suppress(json.JSONDecodeError):
            told.append(json.loads(line))
    return told, died


def stopped(calls: KernelCalls, kernel: str, valkey: Valkey) -> tuple[list[dict[str, Any]], int]:
    """Stop a kernel while its store is down; return what was told, and how many actions were permitted through that sidecar after it.

    Asked again until it is sealed: under its key it is one action.
    """
    valkey.kill()
    verdict = calls.post(kernel, "emergency", {"action": "leave", "stop": True, "key": "stop"})["verdict"]
    told = [{"key": "stop", "approved": verdict["approved"], "recorded": "recorded_at_ms" in verdict}]
    valkey.start()
    permitted = 0
    for number in range(5):
        with contextlib.suppress(InterlockError):
            late = calls.post(kernel, "execute", {"action": "small", "key": f"late{number}"})["verdict"]
            permitted += late["approved"]
    while (
        "recorded_at_ms" in calls.post(kernel, "emergency", {"action": "leave", "stop": True, "key": "stop"})["verdict"]
    ):
        time.sleep(0.2)
    return told, permitted


def verified(calls: KernelCalls, kernel: str, told: list[dict[str, Any]]) -> Counter[str]:
    """Verify a kernel; return what was counted, with a violation where there was one."""
    trace: list[dict[str, Any]] = []
    while page := calls.trace(kernel, int(trace[-1]["sequence"]) if trace else 0):
        trace += page
    counted: Counter[str] = Counter({"unanswered": sum("failed" in one for one in told)})
    counted["rejected"] = sum(one["type"] == "KERNEL_REJECTED" for one in trace)
    try:
        counted.update(kernel_verifier.verify(trace, calls.describe(kernel), told))
    except AssertionError as violation:
        print(f"{kernel}: VIOLATION {violation}", file=sys.stderr, flush=True)
        counted["violations"] += 1
    return counted


def run(actions: int, seed: int = 1) -> int:
    """Run so many actions, tell the figures, and return 1 where one of them was wrong."""
    rng, each = random.Random(seed), min(EACH, -(-actions // AGENTS))
    counted: Counter[str] = Counter()
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as scratch,
        Valkey(Path(scratch)) as valkey,
        Processes(Path(scratch), {"redis_url": valkey.url, "log_level": "error"}) as processes,
    ):
        session, audit = (processes.process(name).start() for name in ("session", "audit"))
        places = {f"{name}_address": "127.0.0.1:9" for name in ("policy", "dpe")}
        places |= {f"{one.name}_address": f"127.0.0.1:{one.wait().ports[str(one.name)]}" for one in (session, audit)}
        sidecars = [processes.process("sidecar", label=f"sidecar{n}", **places).start() for n in (0, 1)]
        urls = [f"http://127.0.0.1:{one.wait().ports['sidecar_http']}" for one in sidecars]
        calls = KernelCalls(urls[0], retries=12)
        while counted["answers"] + counted["unanswered"] < actions:
            kernel = f"run{counted['kernels']}"
            calls.post(kernel, "open", {"definition": definition(resources=limits(each))})
            with Shaking([session, audit, *sidecars], valkey, rng) as shaking:
                told, died = acted(kernel, urls, each, rng)
            if shaking.fault:
                raise shaking.fault
            last, permitted = stopped(calls, kernel, valkey)
            if permitted:
                print(f"{kernel}: VIOLATION of T8: {permitted} permitted after a stop", file=sys.stderr, flush=True)
            counted["violations"] += permitted
            counted["recorded"] += sum(bool(one.get("recorded")) for one in [*told, *last])
            counted.update(verified(calls, kernel, [*told, *last]))
            counted.update(kernels=1, kills=shaking.kills.total() + died)
            print(dict(counted), dict(shaking.kills), file=sys.stderr, flush=True)
        calls.close()
    took = time.monotonic() - began
    print(json.dumps({f"kernel: {name} under kill -9": figure for name, figure in figures(counted, took).items()}))
    return int(counted["violations"] > 0)


def figures(counted: Counter[str], took_s: float) -> dict[str, dict[str, object]]:
    plain = {
        name: counted[name] for name in ("answers", "steps", "rejected", "unanswered", "recorded", "kernels", "kills")
    }
    return {
        "violations of T1 to T5, T7, T8": {"value": counted["violations"], "target": 0, "better": "lower", "unit": ""},
        **{name: {"value": value, "target": None, "better": "", "unit": ""} for name, value in plain.items()},
        "answers per second": {"value": counted["answers"] / took_s, "target": None, "better": "", "unit": "1/s"},
    }
