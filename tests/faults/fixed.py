"""The fixed list: a crash at every durable step, and every bug that the suite has found, by name and for ever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from interlock.runtime.failpoints import POINTS
from tests.faults import faults as do
from tests.faults.faults import Fault
from tests.faults.parts.cluster import Shape
from tests.faults.parts.proxy import BACK
from tests.faults.play import Plan
from tests.faults.randomised import REACHED, where
from tests.faults.workload import STREAMED_WAYS, WAYS

MESH = Shape()
SUMMING = Shape(settings=(("budget_accumulate", "sum"),))
LIGHT = Shape(light=True)
SHORT = Shape(light=True, settings=(("max_windows", 4),))


@dataclass(frozen=True)
class Scenario:
    """A run that is always played."""

    name: str
    tells: str
    faults: tuple[Fault, ...]
    shape: Shape = MESH
    hold_s: float = 1.5
    clients: int = 4
    ways: Sequence[str] = WAYS

    def plan(self, seed: int) -> Plan:
        """Return how it goes."""
        return Plan(seed, clients=self.clients, hold_s=self.hold_s, ways=self.ways)


def _crashes() -> list[Scenario]:
    """Return one crash per durable step that clients reach; a restore needs a loss first."""
    found = []
    for name in REACHED:
        label = where(name)
        loss = (do.evict(0.9),) if "restore" in name else ()
        at = (
            1
            if any(word in name for word in ("restore", "creat", "start"))
            else 2
            if name.startswith("decision")
            else 4
        )
        fault = do.failpoint(label, f"{name}:kill@{at}")
        found.append(Scenario(f"crash {name}", f"kill -9 {POINTS[name]}", (fault, *loss)))
    return found


PHASES: Sequence[tuple[str, int, str]] = (
    ("session.before_hold", 2, "before the hold: nothing has left"),
    ("session.after_hold", 2, "between the hold and its record: nothing has left, the hold goes"),
    ("sidecar.after_part", 1, "between the record of the first part and its bytes"),
    ("sidecar.after_part", 5, "between the record of a later part and its bytes"),
    ("sidecar.before_seal", 3, "all parts but the last have left, nothing is sealed"),
    ("sidecar.after_seal", 3, "sealed, its hold not settled"),
    ("sidecar.after_settle", 3, "settled, the last part not released"),
    ("session.after_settle", 3, "settled, and the sidecar not told"),
    ("audit.before_commit", 20, "in the middle of a record"),
    ("audit.after_commit", 20, "a record is durable, nobody is told"),
)
"""Where a stream is killed: failpoint, pass, what has happened by then."""


def _streams() -> list[Scenario]:
    """Return a crash in each phase of an answer that leaves in parts, whose clients ask for nothing else, and what cuts it."""
    crashes = [
        Scenario(
            f"stream crash {name}@{at}", tells, (do.failpoint(where(name), f"{name}:kill@{at}"),), ways=STREAMED_WAYS,
        )
        for name, at, tells in PHASES
    ]  # fmt: skip
    return [
        *crashes,
        Scenario("streams that are refused on the way", "a part is on record, and its process fails: closed at what it holds",
                 (do.inside("sidecar.after_part:error@3"),), LIGHT, ways=STREAMED_WAYS),
        Scenario("streams whose provider fails in the middle", "what has left is judged, sealed and charged",
                 (do.rogue("break", "", "stall", ""),), LIGHT, ways=STREAMED_WAYS),
        Scenario("streams that lose their store", "leases and holds go with it, and come back from the record",
                 (do.flush_store(),), ways=STREAMED_WAYS),
        Scenario("streams whose store is set back", "holds come back of windows that are settled: freed when they are rebuilt",
                 (do.roll_back_store(),), LIGHT, hold_s=1, ways=STREAMED_WAYS),
        Scenario("streams on a way that is cut", "the client has what it has, each part of it on record",
                 (do.drop("front-0"), do.throttle("front-0", 2_000)), ways=STREAMED_WAYS),
    ]  # fmt: skip


def _named() -> list[Scenario]:
    return [
        Scenario(
            "seal acknowledged to nobody", "the seal is durable, its answer is lost; whoever comes next settles it",
            (do.failpoint("audit", "audit.after_commit:delay=1500@6"), do.cut("audit", BACK)), hold_s=3,
        ),
        Scenario(
            "seal refused for certain", "the audit log fails before its commit: refused, nothing charged, lease given back",
            (do.failpoint("audit", "audit.before_commit:error@8"),),
        ),
        Scenario(
            "settled and not told", "the settlement ran, its answer failed: told again under the same id, charged once",
            (do.failpoint("session", "session.after_settle:error@3"),),
        ),
        Scenario(
            "two crashes in a row", "the sidecar dies between seal and settlement, then the audit log before its next commit",
            (do.failpoint("sidecar-0", "sidecar.after_seal:kill@2"), do.kill("audit")), hold_s=2.5,
        ),
        Scenario(
            "everything lost but the log", "the store is emptied and its service killed at the same moment",
            (do.kill("session"), do.flush_store()), hold_s=2,
        ),
        Scenario(
            "rolled back under a crash", "the store goes back half a second while a sidecar dies after its settlement",
            (do.failpoint("sidecar-0", "sidecar.after_settle:kill@2"), do.roll_back_store()), hold_s=1.5,
        ),
        Scenario(
            "rolled back in place, and full", "an older token fits the older state: caught by the chain at the seal, then rebuilt",
            (do.roll_back_store(), do.full_store(), do.failpoint("session", "session.before_settle:delay=300@2")), hold_s=1,
        ),
        Scenario(
            "rolled back at the last window", "a rebuild settles windows, the last ones too: their tokens point nowhere, and end it",
            (do.inside("sidecar.after_seal:error@3"), do.roll_back_store()), shape=SHORT, hold_s=0.3, clients=6,
        ),
        Scenario(
            "a sum that is lost", "trees that add up lose their store while children spend: rebuilt, to the last charge",
            (do.failpoint("sidecar-0", "sidecar.after_settle:kill@3"), do.flush_store()), shape=SUMMING, hold_s=1.5,
        ),
        Scenario(
            "a sum that is set back in place", "an older copy of a root refills no tree: its chain tells what children spent",
            (do.roll_back_store(),), shape=SUMMING, hold_s=1,
        ),
        Scenario(
            "drained while a provider hangs", "a sidecar is told to end with calls that outlast its drain",
            (do.rogue("hang"), do.restart("sidecar-0")), hold_s=0.5,
        ),
        Scenario(
            "lost while windows are in flight", "leases go with the store, seals come after: settled from the chain",
            (do.failpoint("sidecar-0", "sidecar.before_seal:delay=700"), do.flush_store()), hold_s=1.5,
        ),
    ]  # fmt: skip


def scenarios() -> list[Scenario]:
    """Return the list, the crashes first."""
    return [*_crashes(), *_named(), *_streams()]
