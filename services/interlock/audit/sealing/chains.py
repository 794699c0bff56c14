"""Session chains as the RPCs read them: verified, and a chain that does not verify becomes an incident."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from functools import partial

import structlog
from prometheus_client import Counter

from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.prefixes import Prefixes, VerifiedChain
from interlock.audit.sealing.readers import Readers
from interlock.audit.sealing.seal import Sealer
from interlock.audit.sealing.verify import ChainBroken, require_valid_chain
from interlock.audit.store.log import AuditLog, Chain
from interlock.domain.chain.chain import Verification

log = structlog.get_logger()

CHAIN_BROKEN_TOTAL = Counter("interlock_audit_chain_broken", "Times that a session's chain did not verify.")


class VerifiedChains:
    """Reads chains and verifies them; reports the ones that are broken."""

    def __init__(
        self, audit_log: AuditLog, readers: Readers, appender: Appender, sealer: Sealer, prefixes: Prefixes
    ) -> None:
        self._log, self._readers, self._appender, self._sealer = audit_log, readers, appender, sealer
        self.prefixes = prefixes

    def load(self, session_id: str) -> Chain:
        """Return a session's chain. Raises ``ChainBroken``. It blocks: call it in a reader thread."""
        chain = self._log.chain(session_id)
        require_valid_chain(chain, session_id, self._sealer.keyring)
        return chain

    def verified(
        self, session_id: str, *, excluding: str = "", window_ids: Sequence[str] = (), scrub: bool = False
    ) -> VerifiedChain:
        """Return what a session's chain says, verified as far as it is new to this process. Raises ``ChainBroken``.

        It blocks: call it in a reader thread. The other names are those of ``Prefixes.verified``.
        """
        return self.prefixes.verified(self._log, session_id, excluding=excluding, window_ids=window_ids, scrub=scrub)

    async def read(self, session_id: str) -> Chain:
        """Return a session's chain, read in a reader thread. A broken one is reported and raised as ``ChainBroken``."""
        async with self.reporting(session_id):
            return await self._readers.run(partial(self.load, session_id))

    @contextlib.asynccontextmanager
    async def reporting(self, session_id: str) -> AsyncIterator[None]:
        """Report a ``ChainBroken`` of the block, then let it pass on."""
        try:
            yield
        except ChainBroken as broken:
            await self._report(session_id, broken)
            raise

    async def report_faults(self, session_id: str, found: Verification) -> None:
        """Report the faults of a check, if there are any."""
        if found.faults:
            await self._report(session_id, ChainBroken(found.faults[0], faults=len(found.faults)))

    async def _report(self, session_id: str, broken: ChainBroken) -> None:
        """Make a break an incident: a metric, a log line, and an event where one can still be written."""
        CHAIN_BROKEN_TOTAL.inc()
        log.critical("audit.chain.broken", session_id=session_id, faults=broken.faults, **broken.metadata)
        try:
            await self._appender.submit(partial(self._sealer.incident, session_id=session_id, broken=broken))
        except Exception as error:  # noqa: BLE001 - a log that was tampered with may not be writable; the answer stays the same
            log.warning("audit.incident.not_written", session_id=session_id, error=type(error).__name__)
