"""Probe of ``interlock check`` for emergency actions that are recorded here while their kernels cannot be reached."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from interlock.domain.errors import Refused
from interlock.runtime.keys.emergency_keys import keys_at_hand
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from interlock.runtime.rpc.kernels.seen import KernelsSeen
from interlock.runtime.rpc.kernels.spool import DOUBTED, SpoolFile
from interlock.runtime.settings.model import Settings

HINT = "interlock kernel emergencies shows them"


def emergency_actions(settings: Settings) -> Iterator[ProbeFinding]:
    """Check what is recorded: whether others changed it, whether something needs a person, what waits to be sealed. Changes nothing."""
    line = partial(ProbeFinding, "emergencies", "recorded actions")
    folder = settings.emergency_dir or settings.state_dir / "emergencies"
    if not folder.is_dir():
        yield line(ProbeStatus.OK, "none")
        return
    try:
        keys = keys_at_hand(settings)
    except Refused as refused:
        yield line(ProbeStatus.SKIP, refused.message, "correct the key first")
        return
    spool = SpoolFile(folder, keys, settings.emergency_bytes).peek()
    faults = [*spool.faults, *sorted(one.name for one in folder.glob(DOUBTED + "*"))]
    if faults:
        hint = f"nothing is permitted through this sidecar until a person has looked: {HINT}, then --looked"
        yield line(ProbeStatus.FAIL, "changed by others: " + "; ".join(faults), hint)
    if spool.stuck:
        reasons = ", ".join(sorted(set(spool.stuck.values())))
        yield line(
            ProbeStatus.FAIL,
            f"{len(spool.stuck)} cannot be sealed ({reasons})",
            f"a person has to deal with them: {HINT}",
        )
    if waiting := len(spool.open) - len(spool.stuck):
        yield line(
            ProbeStatus.WARN,
            f"{waiting} wait to be sealed",
            "they are, once store, session and audit service can be reached",
        )
    if not faults and not spool.open:
        yield line(ProbeStatus.OK, "all sealed")
    if doubted := [*KernelsSeen(folder, keys).doubted()]:
        hint = "they are written anew when the kernels are used; until then their emergency actions are not known here"
        yield ProbeFinding(
            "emergencies", "known kernels", ProbeStatus.WARN, f"{len(doubted)} files were changed by others", hint
        )
