"""What the decision service counts. No experiment and no agent is ever a label."""

from __future__ import annotations

from collections import Counter as Counted
from collections.abc import Mapping, Sequence
from typing import Any

from prometheus_client import Counter

CYCLES = Counter("interlock_decision_cycles_total", "Decided cycles, by whether an action was accepted.", ["accepted"])
REJECTIONS = Counter("interlock_decision_rejections_total", "Proposals that were rejected, by reason.", ["reason"])
SIGNALS_REJECTED = Counter(
    "interlock_decision_signals_rejected_total", "Signals that were left out, by reason.", ["reason"]
)
ANSWERS = Counter("interlock_decision_answers_total", "Agents asked in a cycle, by how their answer came.", ["arrival"])
BUS_TAKEN = Counter("interlock_decision_bus_signals_total", "Signals that were put on a bus.")
BUS_DROPPED = Counter(
    "interlock_decision_bus_dropped_total", "Signals that a full bus let go, the oldest of whoever held the most."
)
BUS_LEFT = Counter("interlock_decision_bus_left_total", "Signals of the bus that a cycle had no room for.")
BUS_GAPS = Counter("interlock_decision_bus_gaps_total", "Pages whose subscriber was told that signals are gone.")
RESERVATIONS = Counter(
    "interlock_decision_reservations_total", "What the shared kernel answered about accepted actions.", ["outcome"]
)
FAULTS = Counter("interlock_decision_faults_total", "Answers that counted for nothing, by reason.", ["reason"])


def count(trace: Mapping[str, Any]) -> None:
    """Count a decided cycle."""
    CYCLES.labels("yes" if trace["chosen"] else "no").inc()
    for counter, names in (
        (REJECTIONS, [one["reason"] for one in trace["rejected"]]),
        (SIGNALS_REJECTED, [one["reason"] for one in trace["signals_rejected"]]),
        (ANSWERS, [one["arrival"] for one in trace["agents"]]),
    ):
        for name, often in Counted(names).items():
            counter.labels(name).inc(often)
    for one in trace["agents"]:
        for name, often in one["faults"].items():
            FAULTS.labels(name).inc(often)


def count_refused(reasons: Sequence[str]) -> None:
    """Count signals that a bus refused."""
    for reason, often in Counted(reasons).items():
        SIGNALS_REJECTED.labels(reason).inc(often)
