"""How many root sessions one caller may begin: a full budget each is what a depleted agent would want (SPEC-012 §10.2; A-04).

The count is in the store that every process shares, by the caller's key and the minute; the store that does not answer
refuses, as it does for everything else. Sub-agents' sessions are not counted: a grant limits them.
"""

from __future__ import annotations

import hashlib

import structlog

from interlock.domain.errors import Kind, Refused
from interlock.session import metrics
from interlock.session.store.store import Store

MINUTE_US = 60_000_000

log = structlog.get_logger()


async def admit(store: Store, scope: str, *, most: int, now_us: int) -> None:
    """Count one more root session of *scope*. Refused with ROOT_SESSIONS_EXCEEDED past *most* in this minute; 0: no bound."""
    if not most:
        return
    digest = hashlib.sha256(scope.encode()).hexdigest()[:32]
    minute, into = divmod(now_us, MINUTE_US)
    if await store.count_root(digest, minute) > most:
        metrics.ROOTS_REFUSED.inc()
        log.warning("session.roots_exceeded", scope=scope, limit=most)
        raise _exceeded(most, (MINUTE_US - into) // 1000)


def _exceeded(most: int, wait_ms: int) -> Refused:
    return Refused(
        Kind.EXHAUSTED, "ROOT_SESSIONS_EXCEEDED",
        f"a key may begin {most} root sessions in a minute; go on in one that there is",
        metadata={"limit": "max_roots_per_minute", "value": str(most)}, retry_after_ms=wait_ms + 1,
    )  # fmt: skip
