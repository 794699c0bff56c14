"""The suite notices a missing defence: a run that holds with it fails the verifier without it, and for the right reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.faults import faults as do
from tests.faults.faults import Fault
from tests.faults.parts.cluster import Shape
from tests.faults.parts.proxy import BACK
from tests.faults.play import Plan, Run
from tests.faults.runner import Stage
from tests.faults.workload import STREAMED_WAYS, WAYS

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]


@dataclass(frozen=True)
class Off:
    """A defence that is switched off, a fault under which that matters, and the invariants that must then break."""

    weakness: str
    part: str
    faults: tuple[Fault, ...]
    breaks: frozenset[str]
    hold_s: float = 2.0
    tries: int = 8
    """The fault has to meet a call at the right moment; each try is another seed."""
    ways: Sequence[str] = WAYS


DEFENCES: Sequence[Off] = (
    Off("release-unsealed", "sidecar", (do.failpoint("audit", "audit.before_commit:error@8"), do.kill("audit")),
        frozenset({"I4", "I3", "I10"}), hold_s=3),
    Off("parts-before-their-record", "sidecar", (do.failpoint("audit", "audit.before_commit:error@12"), do.kill("audit")),
        frozenset({"I4"}), hold_s=3, ways=STREAMED_WAYS),
    Off("lost-streams-for-nothing", "sidecar", (do.failpoint("sidecar-0", "sidecar.after_part:kill@3"),), frozenset({"I3"}),
        ways=STREAMED_WAYS),
    Off("kernels-told-unsealed", "sidecar", (do.kill("audit"), do.flush_store()), frozenset({"I18"}), hold_s=3),
    Off("emergencies-forgotten", "sidecar", (do.kill("session"),), frozenset({"I18"}), hold_s=6),
    Off("decisions-told-unsealed", "decision", (do.kill("audit"),), frozenset({"I21"}), hold_s=3),
    Off("reservations-anew", "decision", (do.failpoint("decision", "decision.before_seal:error"),), frozenset({"I21"}), hold_s=3),
    Off("unguarded-decisions", "decision", (do.restart("decision"),), frozenset({"I21"})),
    Off("settle-before-seal", "sidecar", (do.kill("audit"),), frozenset({"I3", "I4"})),
    Off("no-idempotency", "session", (do.cut("session", BACK),), frozenset({"I1", "I3", "I8"})),
    Off("silent-defaults", "sidecar", (do.kill("dpe"),), frozenset({"FC"})),
    Off("refilled-sessions", "sidecar", (do.flush_store(),), frozenset({"I1"})),
    Off("forgotten-charges", "sidecar", (do.flush_store(),), frozenset({"I3"})),
    Off("reports-that-act", "policy", (do.restart("policy"),), frozenset({"I13"})),
    Off("a-way-around", "sidecar", (do.restart("sidecar-0"),), frozenset({"I14"})),
)  # fmt: skip


async def broken(off: Off, *, weakened: bool, seed: int) -> tuple[set[str], Run]:
    """Play a run with the defence on or off and return the invariants that it broke."""
    shape = Shape(weakened=((off.part, off.weakness),) if weakened else ())
    stage = Stage()
    try:
        run = await stage.play(shape, off.faults, Plan(seed, hold_s=off.hold_s, ways=off.ways))
    finally:
        await stage.close()
    found = {violation.invariant for violation in run.violations}
    if "FC" in off.breaks and run.during.get("delivered"):
        found.add("FC")  # the cell says closed, and something was released while the fault stood
    return found, run


@pytest.mark.parametrize("off", DEFENCES, ids=[off.weakness for off in DEFENCES])
async def test_a_run_fails_when_the_defence_is_off(off):
    """Of a few runs at least one breaks an invariant that the defence is there for."""
    seen: set[str] = set()
    for seed in range(1, off.tries + 1):
        found, _run = await broken(off, weakened=True, seed=seed)
        seen |= found
        if seen & off.breaks:
            break

    assert seen & off.breaks, f"without {off.weakness} only {seen or 'nothing'} broke"
