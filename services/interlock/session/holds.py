"""The use case of a hold: the most that a window may cost is set aside before a part of its answer leaves (BUD-11; docs/adr/0030)."""

from __future__ import annotations

import structlog

from interlock.domain.budget import Micros
from interlock.domain.session.hold import HoldWindow
from interlock.runtime import failpoints
from interlock.session.ledger import Ledger
from interlock.session.recording import naming

log = structlog.get_logger()


async def hold(ledger: Ledger, ask: HoldWindow) -> Micros:
    """Set aside what a window may cost, and return it."""
    await failpoints.reached("session.before_hold")
    with naming(ask.root_session_id, ask.session_id), ledger.callers.naming_id(ask.caller_id):
        held = await ledger.store.hold(ask)
    await failpoints.reached("session.after_hold")
    log.info("window.held", session_id=ask.session_id, window_id=ask.window_id, held_micros=held)
    return held
