"""From what a call takes to what many calls a second need. Pure: everything measured comes in, every assumption has a name.

A part that can be repeated needs rate × CPU per call ÷ the share of a core that it is filled to. A part that cannot be repeated holds up
everything above 1 ÷ its time per call: beyond that the deployment is divided into whole ones, each with a log of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

FILLED = 0.6
"""Share of a core that a process is filled to, so that queues stay short."""
CORE_HOUR_USD, GB_MONTH_USD, HOURS = 0.04, 0.10, 730
"""Prices that are assumed, as of a general machine and a network disk in a public cloud; put your own."""
DAYS_KEPT = 30
REPEATED = {
    "sidecar": "sidecar_cpu_ms", "session": "session_cpu_ms", "policy": "policy_cpu_ms", "audit": "audit_cpu_ms",
    "dpe": "dpe_cpu_ms", "Valkey primary": "valkey_cpu_ms",
}  # fmt: skip
"""Processes of which there may be more, and what a call takes of them. Each fills one core, a dpe as many as it has."""


@dataclass(frozen=True)
class Plan:
    """What a rate needs."""

    rate: float
    deployments: int
    replicas: Mapping[str, int]
    """In all deployments together; of dpe cores."""
    postgres_cores: int
    cores: int
    stored_tb: float
    usd_month: float
    log_load: float
    """What the calls would be to one audit log: above 1 it cannot take them."""
    fullest: str


def log_limit(per_call: Mapping[str, float]) -> float:
    """Return calls per second that one audit log takes at most: writers hold its lock for their own CPU and the database's."""
    return 1000 / (per_call["writer_cpu_ms"] + per_call["postgres_cpu_ms"])


def plan(rate: float, per_call: Mapping[str, float]) -> Plan:
    """Return what so many governed calls per second need."""
    most = FILLED * log_limit(per_call)
    deployments = max(1, math.ceil(rate / most))
    each = rate / deployments
    replicas = {
        name: deployments * max(1, math.ceil(each * per_call[cpu] / 1000 / FILLED)) for name, cpu in REPEATED.items()
    }
    postgres = deployments * max(1, math.ceil(each * per_call["postgres_cpu_ms"] / 1000 / FILLED))
    cores = sum(replicas.values()) + postgres
    stored = rate * per_call["log_bytes"] * 86_400 * DAYS_KEPT / 1e12
    return Plan(
        rate, deployments, replicas, postgres, cores, stored,
        cores * CORE_HOUR_USD * HOURS + stored * 1000 * GB_MONTH_USD, rate / log_limit(per_call), fullest(rate, per_call),
    )  # fmt: skip


def fullest(rate: float, per_call: Mapping[str, float]) -> str:
    """Return what is full first where there is one of each."""
    loads = {name: rate * per_call[cpu] / 1000 for name, cpu in REPEATED.items()}
    loads["the audit log"] = rate / log_limit(per_call)
    name = max(loads, key=lambda one: loads[one])
    return f"{name}, {loads[name]:,.3g} times what one can do"


def table(per_call: Mapping[str, float], rates: tuple[float, ...] = (10, 1_000, 100_000)) -> str:
    """Return the plans as a table in Markdown."""
    plans = [plan(rate, per_call) for rate in rates]
    rows = {
        "deployments, each with a log of its own": [f"{one.deployments:,}" for one in plans],
        **{f"{name}, in all": [f"{one.replicas[name]:,}" for one in plans] for name in REPEATED if name != "dpe"},
        "cores of dpe, in all": [f"{one.replicas['dpe']:,}" for one in plans],
        "cores of PostgreSQL, in all": [f"{one.postgres_cores:,}" for one in plans],
        "cores altogether": [f"{one.cores:,}" for one in plans],
        f"audit log after {DAYS_KEPT} days, TB": [f"{one.stored_tb:,.3g}" for one in plans],
        "USD a month, at the assumed prices": [f"{round(one.usd_month, -1):,.0f}" for one in plans],
        "first bottleneck, with one of each": [one.fullest for one in plans],
        "load of one audit log, which cannot be repeated": [f"{one.log_load:,.3g}" for one in plans],
    }
    head = "| governed calls per second | " + " | ".join(f"{rate:,.0f}" for rate in rates) + " |"
    lines = [f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows.items()]
    return "\n".join([head, "| --- |" + " --- |" * len(rates), *lines])
