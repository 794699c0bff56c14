"""The fault matrix: component × fault → what is promised, and a run that shows what happens (reliability.md §4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.faults import faults as do
from tests.faults.facts import RELEASED
from tests.faults.faults import Fault
from tests.faults.parts.cluster import Shape
from tests.faults.parts.proxy import BACK, TO
from tests.faults.play import Plan, Run
from tests.faults.workload import STREAMED_WAYS, WAYS

CLOSED, SERVES, EITHER = "closed", "serves", "either"
"""While the fault stands: nothing is released; something is; both may be."""

HOURS = 7200

SHAPES: dict[str, Shape] = {
    "mesh": Shape(),
    "postgres": Shape(database="postgres"),
    "sentinel": Shape(store="sentinel"),
    "models": Shape(
        sidecars=1, triton=True,
        settings=(("dpe_timeout_s", 5), ("request_timeout_s", 8), ("upstream_timeout_s", 4), ("rpc_timeout_s", 2), ("stream_timeout_s", 5.5)),
    ),
    "disk": Shape(small_disk=True),
    "narrow": Shape(settings=(("max_in_flight", 6),)),
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One cell of the matrix."""

    component: str
    fault: str
    promised: str
    """FC, ND, BM, AR n, DG of reliability.md §4, in its words."""
    faults: tuple[Fault, ...]
    expect: str = CLOSED
    hold_s: float = 2.0
    clients: int = 4
    shape: str = "mesh"
    ways: Sequence[str] = WAYS

    @property
    def name(self) -> str:
        """Component and fault."""
        return f"{self.component}: {self.fault}"

    def plan(self, seed: int) -> Plan:
        """Return how its run goes."""
        return Plan(seed, clients=self.clients, hold_s=self.hold_s, ways=self.ways)


LONG = 4.0
"""Longer than a call's deadline: what hangs has to be refused while the fault stands."""


def _service(label: str, kill: str, *, component: str = "") -> Iterator[Cell]:
    """Yield the cells that every service behind the sidecar has."""
    name = component or label
    yield Cell(name, "kill -9", kill, (do.kill(label),), hold_s=3)
    yield Cell(
        name, "restart (rolling)", "calls beyond retried UNAVAILABLE: none; ND", (do.restart(label),), EITHER, 0.5
    )
    yield Cell(name, "pause (SIGSTOP)", "FC at time-out; ND; BM", (do.pause(label),), hold_s=LONG)
    yield Cell(name, "slow (0.2 s each way)", "DG latency; deadline", (do.slow(label, 0.2),), EITHER, 3)
    yield Cell(name, "slow beyond the deadline", "deadline; FC", (do.slow(label, 3.0),), hold_s=LONG)
    yield Cell(name, "cut on the way there", "FC", (do.cut(label, TO),), hold_s=LONG)
    yield Cell(
        name, "cut on the way back", "FC; ND; BM: done and not acknowledged", (do.cut(label, BACK),), hold_s=LONG
    )
    yield Cell(name, "connections reset", "FC; AR 2", (do.reset(label),), hold_s=3)
    yield Cell(name, "half-open", "FC at time-out", (do.half_open(label),), hold_s=LONG)


def _skewed(label: str, ahead: str, behind: str) -> Iterator[Cell]:
    yield Cell(label, "clock 2 h ahead", ahead, (do.skew(label, HOURS),), EITHER)
    yield Cell(label, "clock 2 h behind", behind, (do.skew(label, -HOURS),), EITHER)


def _sidecar() -> Iterator[Cell]:
    one, way = "sidecar-0", "front-0"
    yield Cell("sidecar", "kill -9", "in-flight calls fail, none released unsettled; ND; AR 2", (do.kill(one),), SERVES)
    yield Cell("sidecar", "all killed", "FC; ND; AR 2", (do.kill("sidecar-0", "sidecar-1"),))
    yield Cell("sidecar", "restart (rolling)", "drain; zero failed calls", (do.restart(one),), EITHER, 0.5)
    yield Cell("sidecar", "pause (SIGSTOP)", "others serve; a late resume releases nothing unsettled", (do.pause(one),),
               EITHER, LONG)  # fmt: skip
    yield Cell("sidecar", "slow way to it", "DG latency", (do.slow(way, 0.2),), SERVES)
    yield Cell("sidecar", "cut from its agent", "FC for the agent", (do.cut(way),), EITHER, LONG)
    yield Cell(
        "sidecar", "cut on the way back to its agent", "ND; nothing is charged twice", (do.cut(way, BACK),), EITHER, 3
    )
    yield from (
        Cell("sidecar", f"clock 2 h {word}", "FC only past leeway", (do.skew(one, by),), SERVES)
        for word, by in (("ahead", HOURS), ("behind", -HOURS))
    )
    yield Cell("sidecar", "overload", "shed with OVERLOADED before any model call", (do.rogue("slow"),), EITHER, 3, clients=40,
               shape="narrow")  # fmt: skip


def _store() -> Iterator[Cell]:
    yield Cell("Valkey", "kill -9", "FC until back; BM after", (do.kill_store(),))
    yield Cell("Valkey", "pause (SIGSTOP)", "FC at time-out", (do.pause_store(),), hold_s=LONG)
    yield Cell("Valkey", "slow (0.2 s each way)", "deadline, breaker; FC", (do.slow("store", 0.2),), EITHER, 3)
    yield Cell("Valkey", "cut on the way there", "FC", (do.cut("store", TO),), hold_s=LONG)
    yield Cell(
        "Valkey",
        "cut on the way back",
        "FC; BM: the script ran and nobody knows",
        (do.cut("store", BACK),),
        hold_s=LONG,
    )
    yield Cell("Valkey", "connections reset", "FC; AR 2", (do.reset("store"),))
    yield Cell("Valkey", "connections dropped once", "BM; AR 0", (do.drop("store"),), EITHER, 1)
    yield Cell("Valkey", "out of memory", "noeviction: write error → FC; BM", (do.full_store(),))
    yield Cell(
        "Valkey",
        "everything lost (FLUSHALL)",
        "sessions rebuilt as 1.0 minus the ledger; BM, I2",
        (do.flush_store(),),
        EITHER,
    )
    yield Cell("Valkey", "half evicted", "FC for the session or rebuilt; others unaffected; BM", (do.evict(),), EITHER)
    yield Cell(
        "Valkey", "rolled back", "detected; rebuilt before the first settle; BM, I2", (do.roll_back_store(),), EITHER
    )


def _sentinel() -> Iterator[Cell]:
    yield Cell("Valkey", "failover, primary killed", "detected (run id), rebuilt before the first settle; BM, I2",
               (do.kill_primary(),), EITHER, 8, shape="sentinel")  # fmt: skip
    yield Cell("Valkey", "failover, writes lost by a cut link", "detected, rebuilt before the first settle; BM, I2",
               (do.fail_over_with_loss(),), EITHER, 8, shape="sentinel")  # fmt: skip


def _audit() -> Iterator[Cell]:
    yield from _service("audit", "FC; ND; AR 5")
    yield from _skewed("audit", "order by sequence, not by time; ND", "order by sequence, not by time; ND")
    yield Cell(
        "audit", "disk full", "FC with AUDIT_STORE_FULL; never truncates; ND", (do.full_disk(),), hold_s=3, shape="disk"
    )


def _decision() -> Iterator[Cell]:
    label, on = "decision", "the experiment goes on: CONTINUE, with the reason; ND; no other call notices"
    yield Cell(label, "kill -9", on, (do.kill(label),), SERVES, 3)
    yield Cell(label, "restart (rolling)", "the experiment goes on; ND", (do.restart(label),), EITHER, 0.5)
    yield Cell(label, "pause (SIGSTOP)", on, (do.pause(label),), SERVES, LONG)
    yield Cell(label, "cut on the way back", "decided and not told: named as unheard, settled once", (do.cut(label, BACK),),
               SERVES, LONG)  # fmt: skip


def _postgres() -> Iterator[Cell]:
    label = "PostgreSQL"
    yield Cell(label, "kill -9", "FC for release; ND", (do.kill_database(),), hold_s=3, shape="postgres")
    yield Cell(label, "restart", "AR 10", (do.restart_database(),), EITHER, 0.5, shape="postgres")
    yield Cell(label, "pause (SIGSTOP)", "FC at time-out", (do.pause_database(),), hold_s=LONG, shape="postgres")
    yield Cell(label, "slow (0.2 s each way)", "deadline; FC", (do.slow("database", 0.2),), EITHER, 3, shape="postgres")
    yield Cell(label, "cut on the way there", "FC", (do.cut("database", TO),), hold_s=LONG, shape="postgres")
    yield Cell(label, "cut on the way back", "FC; ND: committed and not acknowledged", (do.cut("database", BACK),),
               hold_s=LONG, shape="postgres")  # fmt: skip
    yield Cell(label, "connections reset", "FC; AR 2", (do.reset("database"),), hold_s=3, shape="postgres")


def _provider() -> Iterator[Cell]:
    for trick, promised, expect in (
        ("error", "502 mapped; no settlement", CLOSED), ("busy", "429 passed with Retry-After; no settlement", CLOSED),
        ("cut", "FC; no settlement", CLOSED), ("garbage", "FC; no settlement", CLOSED), ("huge", "FC; no settlement", CLOSED),
        ("nothing", "FC; no settlement", CLOSED), ("stream", "FC; no settlement", CLOSED),
        ("slow", "deadline", SERVES), ("hang", "deadline; FC", CLOSED),
    ):  # fmt: skip
        yield Cell(
            "LLM provider", f"answers: {trick}", promised, (do.rogue(trick),), expect, LONG if trick == "hang" else 1.5
        )
    for trick, what in (("break", "breaks off in mid-stream"), ("stall", "falls silent in mid-stream")):
        promised = "what has left is judged, sealed and charged; the rest is an error"
        yield Cell(
            "LLM provider",
            what,
            promised,
            (do.rogue(trick),),
            CLOSED,
            LONG if trick == "stall" else 1.5,
            ways=STREAMED_WAYS,
        )
    yield Cell(
        "LLM provider", "connections reset", "502/504 mapped; no settlement", (do.reset("provider"),), hold_s=1.5
    )
    yield Cell(
        "LLM provider", "cut on the way back", "deadline; no settlement", (do.cut("provider", BACK),), hold_s=LONG
    )


def _models() -> Iterator[Cell]:
    # The analysis of this shape is the real one; what it finds is its own, so that no expectation hangs on a risk.
    yield Cell("DPE workers", "kill -9 (real models)", "call fails FC; no partial score is used", (do.kill("dpe"),), hold_s=3,
               shape="models", clients=2)  # fmt: skip
    yield Cell("DPE workers", "pause (SIGSTOP, real models)", "FC at stage deadline", (do.pause("dpe"),), hold_s=11,
               shape="models", clients=2)  # fmt: skip
    yield Cell(
        "Triton", "kill -9", "FC (DETECTOR_UNAVAILABLE)", (do.kill_triton(),), hold_s=3, shape="models", clients=2
    )
    yield Cell(
        "Triton", "pause (SIGSTOP)", "gRPC deadline; FC", (do.pause_triton(),), hold_s=11, shape="models", clients=2
    )
    yield Cell("Triton", "cut on the way back", "FC", (do.cut("triton", BACK),), hold_s=11, shape="models", clients=2)


def _host() -> Iterator[Cell]:
    everything = "after power-off style kill of everything, I1–I6 hold; AR 60"
    yield Cell("whole host", "all processes and the store killed at once", everything, (do.everything(),))
    yield Cell("whole host", "all killed, on PostgreSQL", everything, (do.everything(),), shape="postgres")
    rolling = do.together(
        "restart each service in turn", [do.restart(one) for one in ("session", "policy", "dpe", "audit")]
    )
    yield Cell(
        "whole mesh", "rolling restart under load", "no failed call beyond retried UNAVAILABLE", (rolling,), EITHER, 0.5
    )


def cells() -> list[Cell]:
    """Return every cell that concerns code that exists, those of one shape together."""
    found = [
        *_sidecar(), *_service("session", "stateless: any replica continues; FC while none is there; ND"),
        *_skewed("session", "FC: tokens of the future are refused", "FC: tokens that look expired are refused"),
        *_store(), *_sentinel(), *_audit(), *_postgres(),
        *_service("policy", "FC (or the last good set for at most 60 s)"),
        *_service("dpe", "call fails FC; no partial score is used", component="DPE workers"),
        *_decision(), *_models(), *_provider(), *_host(),
    ]  # fmt: skip
    return sorted(found, key=lambda cell: list(SHAPES).index(cell.shape))


def kept(cell: Cell, run: Run) -> list[str]:
    """Return what of a cell's expectation did not come about; the verifier says the rest."""
    wrong = []
    delivered = run.during.get("delivered", 0)
    if cell.expect == CLOSED and delivered:
        wrong.append(f"{delivered} answers were released while the fault stood")
    if not run.asked:
        wrong.append("nothing was under way while the fault stood")
    if cell.expect == SERVES and not delivered:
        wrong.append("nothing was released while the fault stood, though something else could have served")
    if cell.component == "decision" and not any(told.cycle for one in run.facts.experiments for told in one.told):
        wrong.append("no decision was made at all")
    if not any(call.status == RELEASED for call in run.facts.calls):
        wrong.append("nothing was released at all")
    return wrong


def seen(run: Run) -> str:
    """Return what a run has shown, in a line."""
    said = sorted(run.during.items(), key=lambda one: -one[1])
    told = ", ".join(f"{count} {name}" for name, count in said[:4]) or f"none of {run.asked} calls answered yet"
    back = f"back after {run.back_s:.1f} s" if run.back_s is not None else "not back"
    advised = [_advised(run)] if "decision" in run.fault else []
    return "; ".join([told, back, *advised, *run.notes])


def _advised(run: Run) -> str:
    """Return how the experiment fared."""
    calls = [told for one in run.facts.experiments for told in one.told]
    decided = sum(not told.fault for told in calls)
    return f"experiment: {decided} decisions, {len(calls) - decided} times CONTINUE without one"
