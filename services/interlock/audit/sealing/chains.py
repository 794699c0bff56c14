"""Session chains as the RPCs read them: verified, and a chain that does not verify becomes an incident."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType

import structlog
from prometheus_client import Counter

from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.prefixes import Again, Prefixes, VerifiedChain
from interlock.audit.sealing.readers import Readers
from interlock.audit.sealing.seal import Sealer
from interlock.audit.sealing.verify import ChainBroken, require_valid_chain
from interlock.audit.store.log import AuditLog, Chain
from interlock.domain.chain.chain import Verification

log = structlog.get_logger()

CHAIN_BROKEN_TOTAL = Counter("interlock_audit_chain_broken", "Times that a session's chain did not verify.")


class _Reporting:
    """Reports a ``ChainBroken`` of its block. A class instead of a generator for speed: every call enters two."""

    __slots__ = ("_report",)

    def __init__(self, report: Callable[[ChainBroken], Awaitable[None]]) -> None:
        self._report = report

    async def __aenter__(self) -> None:
        """Do nothing: only what is raised counts."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, ChainBroken):
            await self._report(error)


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
        self, session_id: str, *, excluding: str = "", window_ids: Sequence[str] = (), again: Again = "short"
    ) -> VerifiedChain:
        """Return what a session's chain says, verified as far as it is new to this process. Raises ``ChainBroken``.

        It blocks: call it in a reader thread. The other names are those of ``Prefixes.verified``.
        """
        return self.prefixes.verified(self._log, session_id, excluding=excluding, window_ids=window_ids, again=again)

    async def read(self, session_id: str) -> Chain:
        """Return a session's chain, read in a reader thread. A broken one is reported and raised as ``ChainBroken``."""
        async with self.reporting(session_id):
            return await self._readers.run(partial(self.load, session_id))

    def reporting(self, session_id: str) -> _Reporting:
        """Return a block that reports a ``ChainBroken`` in it, then lets it pass on."""
        return _Reporting(partial(self._report, session_id))

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
