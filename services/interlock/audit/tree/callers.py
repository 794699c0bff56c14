"""The record of a caller: what its sessions were charged, by period (ATT-2; docs/adr/0018).

It is read from two places, and a charge that either holds counts: the settlements that the windows were sealed with, and the
caller's own chain, which says it once more after the settlement. A chain that does not verify gives no record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.audit.sealing.chains import VerifiedChains
from interlock.audit.sealing.readers import Readers
from interlock.audit.sealing.verify import require_valid_chain
from interlock.audit.settlements import settlement_message
from interlock.audit.store.log import AuditLog, Chain
from interlock.domain import ids
from interlock.domain.errors import invalid
from interlock.runtime.keys.derivation import Keyring

LOWERED = "CALLER_BUDGET_LOWERED"

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|\+00:00)", re.ASCII)

Charge = tuple[int, str, str, int]
"""Period, session, window, millionths."""


class CallerRecords:
    """Reads the records of callers from chains that verify."""

    def __init__(self, audit_log: AuditLog, readers: Readers, chains: VerifiedChains, keyring: Keyring) -> None:
        self._log, self._readers, self._chains, self._keyring = audit_log, readers, chains, keyring

    async def one(self, request: audit_pb2.GetCallerRecordRequest) -> audit_pb2.GetCallerRecordResponse:
        """Return the charges of a caller for windows sealed from a time on; nothing of a caller that the log does not know.

        Refused with INVALID_ID, INVALID_FIELD, or CHAIN_BROKEN where a chain that says something of it does not verify.
        """
        caller_id = ids.check("crp_sess_", request.caller_id)
        if not _TIME.fullmatch(request.since):
            raise invalid("INVALID_FIELD", "since must be an ISO 8601 time in UTC", field="since")
        sessions = await self._readers.run(partial(self._log.charged_to, caller_id, request.since))
        told: set[Charge] = set()
        for session_id in (caller_id, *sessions):
            async with self._chains.reporting(session_id):
                told |= await self._readers.run(partial(self._charges, session_id, caller_id))
        sums: dict[tuple[int, str], int] = {}
        for period, session_id, _, amount in told:
            sums[period, session_id] = sums.get((period, session_id), 0) + amount
        return audit_pb2.GetCallerRecordResponse(
            charges=[
                session_pb2.CallerCharge(period=period, session_id=session_id, charged_micros=amount)
                for (period, session_id), amount in sorted(sums.items())
            ]
        )

    def _charges(self, session_id: str, caller_id: str) -> set[Charge]:
        chain = self._log.chain(session_id)
        if not chain.events and not chain.windows:
            return set()
        require_valid_chain(chain, session_id, self._keyring)
        return set(_told(chain) if session_id == caller_id else _sealed(chain, caller_id))


def _sealed(chain: Chain, caller_id: str) -> Iterator[Charge]:
    """Yield the charges that a session's windows were sealed with."""
    for window in chain.windows:
        settled = settlement_message(window.settle_json) if window.charge_micros else None
        if settled is not None and settled.caller_id == caller_id:
            yield settled.caller_period, window.session_id, window.window_id, window.charge_micros


def _told(chain: Chain) -> Iterator[Charge]:
    """Yield the charges that the caller's own chain tells of."""
    for event in chain.events:
        if event.event_type == LOWERED:
            data: dict[str, Any] = json.loads(event.data_json)
            yield data["period"], data["child_session_id"], data["window_id"], data["charge_micros"]
