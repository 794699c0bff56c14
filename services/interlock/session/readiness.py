"""Whether the session store may carry a safety budget: it answers, evicts nothing and writes to disk."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from interlock.domain.errors import Refused
from interlock.session.batcher import Batcher

LIMIT_S = 1.0


async def missing(batcher: Batcher) -> Mapping[str, str]:
    """Return ``redis`` with a hint, or nothing when the store is fit. Never raises."""
    try:
        async with asyncio.timeout(LIMIT_S):
            await batcher.command("PING")
            wrong = _unfit(await _told(batcher))
    except TimeoutError:
        return {"redis": _unreachable("TIMEOUT")}
    except Refused as refused:
        return {"redis": _unreachable(refused.metadata.get("error", refused.reason))}
    return {"redis": wrong} if wrong else {}


def _unreachable(why: str) -> str:
    return (
        f"Redis or Valkey does not answer ({why}): start it, or set INTERLOCK_REDIS_URL; sessions are refused until it is "
        "back"
    )


async def _told(batcher: Batcher) -> dict[str, str]:
    """Return what the server says of its memory and persistence; nothing where its ACL keeps that to itself."""
    try:
        told: bytes = b"\n".join([await batcher.command("INFO", part) for part in ("memory", "persistence")])
    except Refused as refused:
        if refused.metadata.get("error") == "NOPERM":
            return {}
        raise
    pairs = (line.split(":", 1) for line in told.decode(errors="replace").splitlines() if ":" in line)
    return {name: value.strip() for name, value in pairs}


def _unfit(told: Mapping[str, str]) -> str:
    hints = []
    policy = told.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        hints.append(f"maxmemory-policy is {policy}: an evicted session is lost; set maxmemory-policy noeviction")
    if told.get("aof_enabled", "1") != "1":
        hints.append("the append-only file is off: a restart would lose sessions; set appendonly yes")
    return "; ".join(hints)
