"""Who the session store is, and whether it may carry a safety budget (BUD-9; reliability.md §5; docs/adr/0012).

A server has a run id for each of its starts and a replication id for each history of its data. Together they are the epoch
that sessions are verified under: after a restart, a failover or a restored backup it is another one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import hiredis

from interlock.domain.errors import Refused, unavailable
from interlock.session.store.connection import Connection, StoreServer, code_of, store_unavailable

CHECK_EVERY_S = 60.0
SECTIONS = ("server", "replication", "memory", "persistence")
UNKNOWN = "unknown"


async def learn(connection: Connection) -> StoreServer:
    """Ask a server who it is. Refused with SESSION_STORE_UNAVAILABLE when it does not answer."""
    told: Any = await connection.send("INFO", *SECTIONS)
    if isinstance(told, hiredis.ReplyError):
        if code_of(told) != "NOPERM":
            raise store_unavailable(code_of(told))
        hint = "its ACL keeps INFO to itself, so that a restart or a failover cannot be told; allow +info"
        return StoreServer(UNKNOWN, master=True, unfit=hint, hint="")
    if not isinstance(told, bytes):
        raise store_unavailable("PROTOCOL")
    return _described(told)


def _described(told: bytes) -> StoreServer:
    pairs = (line.split(":", 1) for line in told.decode(errors="replace").splitlines() if ":" in line)
    facts = {name: value.strip() for name, value in pairs}
    run_id = facts.get("run_id", "")
    history = facts.get("master_replid", "")
    if not run_id:
        raise store_unavailable("PROTOCOL")
    return StoreServer(
        epoch=hashlib.sha256(f"{run_id} {history}".encode()).hexdigest()[:20],
        master=facts.get("role", "master") == "master",
        unfit="; ".join(_unfit(facts)),
        hint=_hint(facts),
        cluster=facts.get("redis_mode") == "cluster",
    )


def _unfit(facts: Mapping[str, str]) -> list[str]:
    hints = []
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        hints.append(f"maxmemory-policy is {policy}: an evicted session is lost; set maxmemory-policy noeviction")
    if facts.get("aof_enabled", "1") != "1":
        hints.append("the append-only file is off: a restart would lose sessions; set appendonly yes")
    return hints


def _hint(facts: Mapping[str, str]) -> str:
    """A server with replicas that does not wait for one keeps writing when it is cut off from them."""
    replicated = facts.get("connected_slaves", "0") != "0"
    if replicated and "min_slaves_good_slaves" not in facts:
        return "it has replicas, but writes without one; set min-replicas-to-write 1"
    return ""


def unfit(why: str) -> Refused:
    """Return the refusal of a store that may lose sessions by its settings."""
    return unavailable(
        "SESSION_STORE_UNFIT", "the session store may lose sessions as it is set up; no session is started or continued on it",
        retry_after_ms=0, hint=why,
    )  # fmt: skip
