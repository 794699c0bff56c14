"""The parts of a mesh in words: what each is called, and what stands while it does not work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus

STATES = {
    ProbeStatus.OK: "works",
    ProbeStatus.WARN: "look at it",
    ProbeStatus.FAIL: "does not work",
    ProbeStatus.SKIP: "not in use",
}
_WORST = (ProbeStatus.FAIL, ProbeStatus.WARN, ProbeStatus.OK, ProbeStatus.SKIP)
"""Statuses, the worst first."""


class MeshPart(NamedTuple):
    """A part: what it is called, and what stands without it."""

    name: str
    without: str


PARTS: dict[tuple[str, str], MeshPart] = {
    ("redis", ""): MeshPart(
        "Session store", "no call is admitted; what is open is rebuilt from the audit log when it is back"
    ),
    ("redis", "clock"): MeshPart("Clock", "tokens and leases end at another time than events say"),
    ("audit store", ""): MeshPart("Audit store", "no answer is released: it cannot be sealed"),
    ("audit store", "checkpoint"): MeshPart("Checkpoint", "a loss at the end of the log is noticed later"),
    ("services", "session"): MeshPart("Sessions", "no call is admitted"),
    ("services", "policy"): MeshPart("Policy", "no answer is delivered without a decision"),
    ("services", "dpe"): MeshPart("Analysis (dpe)", "no answer is judged, so none is delivered"),
    ("services", "audit"): MeshPart("Audit", "no answer is released unsealed"),
    ("services", "sidecar"): MeshPart("Sidecar", "agents reach no model through it"),
    ("services", "decision"): MeshPart("Decisions", "no cycle is decided; whoever asks goes on as before"),
    ("triton", ""): MeshPart("Models on Triton", "no answer is analysed"),
    ("traces", ""): MeshPart("Traces (OTLP)", "calls go on, their traces are lost"),
}
"""Group and name of a finding → its part. An empty name: all of the group that have none of their own."""


class PartHealth(NamedTuple):
    """A part with all that was found of it, the worst first."""

    part: MeshPart
    status: ProbeStatus
    findings: Sequence[ProbeFinding]


def parts_of(findings: Iterable[ProbeFinding]) -> list[PartHealth]:
    """Return the parts in the order of ``PARTS``. What belongs to none is a part of its own: nothing that was found is left out."""
    found: dict[MeshPart, list[ProbeFinding]] = {part: [] for part in PARTS.values()}
    for one in findings:
        part = (
            PARTS.get((one.group, one.name)) or PARTS.get((one.group, "")) or MeshPart(f"{one.group}: {one.name}", "")
        )
        found.setdefault(part, []).append(one)
    ranked = {part: sorted(some, key=lambda one: _WORST.index(one.status)) for part, some in found.items() if some}
    return [PartHealth(part, some[0].status, some) for part, some in ranked.items()]
