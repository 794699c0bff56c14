"""The use case of a renewal: a window keeps its lease while its answer is still coming in (BUD-11, API-4)."""

from __future__ import annotations

from interlock.domain.ids import SessionId, WindowId
from interlock.domain.session.renewing import RenewLease
from interlock.session.ledger import Ledger
from interlock.session.recording import naming


async def renew(ledger: Ledger, root: SessionId, session: SessionId, window: WindowId, *, lease_ms: int) -> int:
    """Prolong the lease of a window from now on, and return until when, milliseconds since the epoch."""
    ask = RenewLease(session, root, window, ledger.clock() // 1000 + lease_ms)
    with naming(root, session):
        return await ledger.store.renew(ask)
