"""Whether the session store may carry a safety budget: it answers, evicts nothing and writes to disk."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from interlock.domain.errors import Refused
from interlock.session.store.batcher import Batcher

LIMIT_S = 1.0


async def unready_dependencies(batcher: Batcher) -> Mapping[str, str]:
    """Return ``redis`` with a hint, or nothing when the store is fit. Never raises."""
    try:
        async with asyncio.timeout(LIMIT_S):
            server = await batcher.server()
    except TimeoutError:
        return {"redis": _unreachable("TIMEOUT")}
    except Refused as refused:
        return {"redis": _unreachable(refused.metadata.get("error", refused.reason))}
    return {"redis": server.unfit} if server.unfit and not batcher.allow_unfit else {}


def _unreachable(why: str) -> str:
    return (
        f"Redis or Valkey does not answer ({why}): start it, or set INTERLOCK_REDIS_URL; sessions are refused until it is "
        "back"
    )
