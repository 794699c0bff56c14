"""The use case of spending: what model calls of a window can cost is reserved, or charged where it will not be sealed (KRN-9)."""

from __future__ import annotations

import structlog
from prometheus_client import Counter

from interlock.domain.errors import Refused
from interlock.domain.session.spending import SpendingLimits, SpendWindow
from interlock.session.ledger import Ledger
from interlock.session.recording import naming

log = structlog.get_logger()

REFUSED = Counter(
    "interlock_spending_refused",
    "Model calls that a spending limit did not hold, by resource: tokens or usd.",
    ["resource"],
)


async def spend(ledger: Ledger, ask: SpendWindow) -> SpendingLimits:
    """Reserve or charge, and return what is left under the lowest limit."""
    try:
        with naming(ask.root_session_id, ask.session_id):
            left = await ledger.store.spend(ask)
    except Refused as refused:
        if refused.reason == "SPENDING_LIMIT":
            REFUSED.labels(refused.metadata["resource"]).inc()
        raise
    log.info(
        "window.spent" if ask.final else "window.reserved", session_id=ask.session_id, window_id=ask.window_id,
        tokens=ask.amount.tokens, usd_micros=ask.amount.usd,
    )  # fmt: skip
    return left
