"""``interlock demo --decide``: a real search, steered by four agents in processes of their own, of which one is killed (DEC-12)."""

from __future__ import annotations

import hashlib
import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import optuna
from optuna.trial import FrozenTrial
from rich.console import Console
from rich.text import Text

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.api.session.v1 import session_pb2
from interlock.client.decision import CycleDecision
from interlock.client.decision.places import AT, TICKET
from interlock.client.decision.reference.agents import AGENTS
from interlock.client.decision.search import OptunaCallback
from interlock.demo import decide_view
from interlock.demo.decide_search import MOST, SEEDS, TRIALS, Digits, optimize
from interlock.demo.mesh import DemoMesh, MeshFailedError, bare
from interlock.demo.run import wait
from interlock.domain.decision.reading import canonical
from interlock.domain.decision.replay import replayed

KILLED, KILLED_AFTER, BACK_AFTER = "analyst", 16, 23
LEAST_TRIALS = 30
DEADLINE_MS = 1_000
CONNECT_S, BASELINE_S = 30.0, 240.0
BASELINES = ("random", "tpe")


@dataclass(frozen=True)
class DecideRun:
    """Result of a run."""

    results: Mapping[str, Sequence[Mapping[str, Any]]]
    """By way of searching, one entry for each seed."""
    cycles: int
    statuses: Sequence[str]
    """How the killed agent stood after each cycle of the shown search."""
    broken: list[str]
    """A sentence for every broken promise."""

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "results": self.results, "cycles": self.cycles, "statuses": [*self.statuses], "broken": self.broken
        }  # fmt: skip


def run(out: Console) -> DecideRun:
    """Show the whole demonstration on *out*."""
    decide_view.introduce(out)
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="interlock-demo-decide-")))
        baselines = {name: _Child(ends, "interlock.demo.decide_search", name) for name in BASELINES}
        mesh = ends.enter_context(DemoMesh(folder / "mesh", {}))
        wait(out, mesh)
        digits, key = Digits(), secrets.token_hex(16)
        steered, shown = [], None
        for seed in SEEDS:
            search = _Search(out, mesh.address("decision"), key, seed)
            steered.append(search.run(digits))
            shown = shown or search
        assert shown is not None
        results = {"agents": steered, **{name: child.lines(len(SEEDS)) for name, child in baselines.items()}}
        decide_view.compare(out, results)
        failures = [*shown.broken(), *_replayed(out, shown), *_verify(out, mesh, shown.experiment_id)]
    return DecideRun(results, len(shown.callback.decisions), shown.statuses, failures)


class _Child:
    """A module in a process of its own."""

    def __init__(self, ends: ExitStack, module: str, argument: str, **more: str) -> None:
        env = {**bare(), **more}
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", module, argument], env=env, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        ends.callback(self.kill)

    def kill(self) -> None:
        """Kill -9 it."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def lines(self, count: int) -> list[dict[str, Any]]:
        """Return what it printed, once it ended."""
        try:
            printed, _ = self._process.communicate(timeout=BASELINE_S)
        except subprocess.TimeoutExpired:
            raise MeshFailedError("the search without agents does not end") from None
        found = [json.loads(line) for line in printed.splitlines()]
        if len(found) != count:
            raise MeshFailedError("the search without agents failed")
        return found


class _Search:
    """One search with its own experiment and four agents. The first is shown, and one of its agents killed."""

    def __init__(self, out: Console, at: str, key: str, seed: int) -> None:
        self._out, self._at, self._seed = out, at, seed
        definition = decide_view.definition(DEADLINE_MS)
        self.callback = OptunaCallback(
            f"digits-{seed}", trials=TRIALS, most=MOST, at=at, api_key=key, definition=definition, metric="error",
            seed=seed, on_decision=self._decided,
        )  # fmt: skip
        self.experiment_id = self.callback.experiment.open()
        self.statuses: list[str] = []
        self._best = 1.0
        self._is_shown = seed == SEEDS[0]
        self._agents: dict[str, _Child] = {}
        self._ends = ExitStack()

    def run(self, digits: Digits) -> dict[str, Any]:
        """Search, and return what was reached."""
        with self._ends:
            for name in AGENTS:
                self._start(name)
            self._connected(set(AGENTS))
            study = optuna.create_study(direction="minimize", sampler=self.callback.sampler)
            return {"seed": self._seed, **optimize(study, digits, callbacks=[self.callback])}

    def broken(self) -> list[str]:
        """Return what was promised of this search and is not so."""
        decisions = self.callback.decisions
        faults = [one.fault for one in decisions if one.fault]
        wanted = ["DEGRADED", "FAILED", "PROBATION", "ACTIVE"]
        after = [one for number, one in enumerate(self.statuses) if number + 1 >= KILLED_AFTER]
        passed = [one for number, one in enumerate(after) if not number or after[number - 1] != one]
        return [
            *([f"the search has {len(decisions)} trials, not {LEAST_TRIALS}"] if len(decisions) < LEAST_TRIALS else []),
            *(["some cycle had no decision: " + ", ".join(faults)] if faults else []),
            *(["nothing that agents proposed was accepted"] if not any(one.chosen for one in decisions) else []),
            *([f"the killed agent was {' -> '.join(passed)}"] if [*passed[-5:]][-4:] != wanted else []),
        ]  # fmt: skip

    def _decided(self, trial: FrozenTrial, decision: CycleDecision) -> None:
        """Show a cycle of the first search; kill one agent in the middle, and start it again later."""
        if not self._is_shown:
            return
        trace = json.loads(self.callback.experiment.sealed(decision.cycle)[1])
        self._best = min(self._best, trial.value if trial.value is not None else 1.0)
        state = self.callback.sampler.shrunk_percent
        decide_view.show(self._out, trial, trace, best=self._best, shrunk=state)
        self.statuses += [one["status_after"] for one in trace["agents"] if one["agent"] == KILLED]
        if decision.cycle == KILLED_AFTER:
            self._agents[KILLED].kill()
            self._out.print(Text(f"\n$ kill -9 {KILLED}", style="bold red"))
        if decision.cycle == BACK_AFTER:
            self._start(KILLED)
            self._connected({KILLED})
            self._out.print(Text(f"\n{KILLED} is started again", style="bold"))

    def _start(self, name: str) -> None:
        ticket = self.callback.experiment.register(AGENTS[name].descriptor)
        more = {AT: self._at, TICKET: ticket}
        self._agents[name] = _Child(self._ends, "interlock.client.decision.reference", name, **more)

    def _connected(self, names: set[str]) -> None:
        begin = time.monotonic()
        while not names <= self.callback.experiment.connected():
            if time.monotonic() - begin > CONNECT_S:
                raise MeshFailedError("the agents do not connect")
            time.sleep(0.05)


def _replayed(out: Console, search: _Search) -> list[str]:
    """Decide every sealed cycle of the shown search again, here."""
    cycles = [one.cycle for one in search.callback.decisions if one.cycle]
    parted = [cycle for cycle in cycles if not replayed(*search.callback.experiment.sealed(cycle)).is_same]
    out.print(f"\n{len(cycles) - len(parted)} of {len(cycles)} cycles decided again: the same bytes.")
    return [f"the replay of cycles {parted} parts"] if parted else []


def _verify(out: Console, mesh: DemoMesh, experiment_id: str) -> list[str]:
    """Verify the experiment's chain: what the log holds, by the command, and that each record follows the one before it, here."""
    out.print(Text(f"\n$ interlock audit verify {experiment_id}", style="bold"))
    said = mesh.command("audit", "verify", experiment_id)
    out.print(Text((said.stdout + said.stderr).rstrip()))
    with grpc.insecure_channel(mesh.address("audit")) as channel:
        request = audit_pb2.GetDecisionRecordRequest(experiment_id=experiment_id)
        records = audit_pb2_grpc.AuditServiceStub(channel).GetDecisionRecord(request, timeout=10).records
    linked = records and _are_linked(records)
    out.print(f"{len(records)} records, {'each follows the one before it' if linked else 'NOT linked to one another'}.")
    return [] if said.returncode == 0 and linked else ["the chain of the experiment is not whole"]


def _are_linked(records: Sequence[session_pb2.KernelRecord]) -> bool:
    previous = ""
    for one in records:
        link = hashlib.sha256((previous + canonical(json.loads(one.data_json))).encode()).hexdigest()[:40]
        if one.previous != previous or one.link != link:
            return False
        previous = link
    return True
