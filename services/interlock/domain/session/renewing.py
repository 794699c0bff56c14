"""The lease of a window whose answer is still coming in: it is prolonged while its holder lives (BUD-11, API-4).

``renew.lua`` is this rule in Redis.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from interlock.domain.ids import SessionId, WindowId
from interlock.domain.session.session_refusals import refusal
from interlock.domain.session.state import SessionState


@dataclass(frozen=True)
class RenewLease:
    """A window that holds its lease asks for more time, until a time in milliseconds since the epoch."""

    session_id: SessionId
    root_session_id: SessionId
    window_id: WindowId
    until_ms: int


def renew_lease(state: SessionState | None, ask: RenewLease) -> tuple[SessionState, int]:
    """Return a session whose window holds its lease for longer, and until when. A lease is never shortened.

    Refused with LEASE_LOST once another opening has found that it ran out, or its window is settled: who looks after that window
    then is not its holder any more.
    """
    if state is None:
        raise refusal("SESSION_STATE_LOST")
    own = [lease for lease in state.leases if lease.window_id == ask.window_id]
    if not own or state.node(ask.window_id):
        raise refusal("LEASE_LOST")
    until = max(own[0].until_ms, ask.until_ms)
    renewed = replace(own[0], until_ms=until)
    return replace(state, leases=tuple(renewed if lease is own[0] else lease for lease in state.leases)), until
