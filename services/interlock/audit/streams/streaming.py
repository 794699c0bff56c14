"""Streaming the audit log to sinks: at least once, in order, nothing dropped (AUD-4; reliability.md §4, report-uri row).

Each sink has a durable cursor into the Merkle log and a task of its own, so that a slow sink delays no other. The transaction
that records a delivery also moves the cursor: a crash between sending and recording repeats a message and loses none. Messages
that a sink does not accept are retried with back-off. After ``max_age_s``, or a final refusal, they become a dead letter, which
stays in the database until it is sent again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterable

import structlog
from prometheus_client import Counter

from interlock.audit.requests import Note
from interlock.audit.sealing.seal import Sealer
from interlock.audit.store.log import AuditLog
from interlock.audit.streams.delivery import Courier, addresses
from interlock.audit.streams.feed import Feed, Submitting
from interlock.audit.streams.sinks import REPORTED, load_sinks, report_sinks
from interlock.domain.errors import Refused, unavailable
from interlock.runtime.clock import Clock
from interlock.runtime.egress.addresses import url_host
from interlock.runtime.egress.fetch import Egress, Resolver, system_resolver
from interlock.runtime.settings.model import Settings

log = structlog.get_logger()

REFUSED_REPORTS = Counter(
    "interlock_audit_reports_refused",
    "Violation reports that were asked for and are not delivered, by reason.",
    ["reason"],
)

POLL_S = 0.25
RELOAD_S = 0.5
TASK = "stream"


class Streaming:
    """Serves every sink, and refuses new windows while a required one is too far behind."""

    def __init__(
        self,
        audit_log: AuditLog,
        writer: Submitting,
        sealer: Sealer,
        courier: Courier,
        *,
        settings: Settings,
    ) -> None:
        """Refused with SINKS_INVALID or SINKS_NOT_READABLE if the sinks file cannot be used."""
        self._log, self._writer, self._sealer, self._courier = audit_log, writer, sealer, courier
        self._settings, self._reports = settings, report_sinks(settings)
        self._sinks = {**load_sinks(settings), **self._reports}
        self._feeds: dict[str, tuple[Feed, asyncio.Task[None]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._told = ""

    def start(self) -> None:
        """Start serving, if there are sinks or may be later."""
        if self._settings.sinks_file is not None or self._reports:
            self._task = asyncio.create_task(self._run(), name="audit-stream")

    async def close(self) -> None:
        """Stop serving. Messages under way are sent again after the next start."""
        tasks = [task for task in (self._task, *(task for _, task in self._feeds.values())) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def require(self) -> None:
        """Refuse with AUDIT_SINK_LAG while a required sink is too far behind. It blocks: call it in a reader thread."""
        if not self.required:
            return
        size = self._log.log_size()
        for sink in filter(lambda sink: sink.required, self._sinks.values()):
            if size - self._log.cursor(sink.name) > sink.max_lag:
                raise unavailable(
                    "AUDIT_SINK_LAG",
                    "a required sink is too far behind; no window is sealed",
                    sink=sink.name,
                )

    @property
    def required(self) -> bool:
        """Whether there is a sink without which no window is sealed."""
        return any(sink.required for sink in self._sinks.values())

    def notice(self, notes: Iterable[Note]) -> None:
        """Count the reports that a policy requests but this deployment does not deliver (SPEC-006 §7.2)."""
        for note in notes:
            if note.event_type != REPORTED:
                continue
            urls, groups = addresses(json.loads(note.data_json))
            unknown = ["HOST_NOT_ALLOWED" for url in urls if url_host(url) not in self.hosts]
            for reason in (*unknown, *("GROUP_UNKNOWN" for group in groups if group not in self.groups)):
                REFUSED_REPORTS.labels(reason).inc()
                log.warning("report.not_delivered", reason=reason, hint="see report_uri_hosts and sinks_file")

    @property
    def hosts(self) -> frozenset[str]:
        """Hosts that violations may be reported to."""
        return frozenset(sink.host for sink in self._reports.values())

    @property
    def groups(self) -> frozenset[str]:
        """Names that ``report-to`` may use."""
        return frozenset(sink.name for sink in self._sinks.values() if sink.format == "report" and not sink.host)

    async def _run(self) -> None:
        reloaded = time.monotonic()
        while True:
            try:
                with contextlib.suppress(Refused):
                    await self._round()
                if time.monotonic() - reloaded >= RELOAD_S:
                    reloaded = time.monotonic()
                    await self._reload()
            except Exception:  # a defect must not end the task: every sink would silently stop
                log.exception("stream.defect")
            await asyncio.sleep(POLL_S)

    async def _round(self) -> None:
        """Read the size of the log and serve each configured sink. Only the leading process serves them."""
        leads = await asyncio.to_thread(self._log.leads, TASK)
        size = await asyncio.to_thread(self._log.log_size) if leads else 0
        wanted = self._sinks if leads else {}
        for name, (feed, task) in list(self._feeds.items()):
            if wanted.get(name) != feed.sink or task.done():
                await self._end(name, task)
        for name, sink in wanted.items():
            if name not in self._feeds:
                feed = Feed(sink, self._log, self._writer, self._sealer, self._courier)
                self._feeds[name] = (feed, asyncio.create_task(feed.run(), name=f"audit-stream-{name}"))
        for feed, _ in self._feeds.values():
            feed.size = max(feed.size, size)
            feed.grown.set()

    async def _end(self, name: str, task: asyncio.Task[None]) -> None:
        """End a feed. The next one sends messages under way again."""
        del self._feeds[name]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _reload(self) -> None:
        """Read the sinks again. A bad file is logged once and leaves the current sinks unchanged."""
        try:
            self._sinks = {**await asyncio.to_thread(load_sinks, self._settings), **self._reports}
            self._told = ""
        except Refused as refused:
            if self._told != refused.message:
                log.error("stream.sinks_refused", reason=refused.reason, hint=refused.message)  # noqa: TRY400 - no defect
            self._told = refused.message


def check_sinks(settings: Settings) -> None:
    """Refuse unusable sinks before anything is opened, with SINKS_INVALID or SINKS_NOT_READABLE."""
    load_sinks(settings)
    report_sinks(settings)


def open_courier(settings: Settings, clock: Clock, *, resolver: Resolver = system_resolver) -> Courier:
    """Return a courier with the settings' egress rules and source name."""
    ca_file = str(settings.egress_ca_file) if settings.egress_ca_file else None
    egress = Egress(allow=settings.egress_allow, ca_file=ca_file, resolver=resolver)
    source = (
        f"{settings.public_base_url.rstrip('/')}/crp/v3/audit" if settings.public_base_url else "urn:interlock:audit"
    )
    return Courier(egress, clock, source)


def open_streaming(
    settings: Settings, audit_log: AuditLog, writer: Submitting, sealer: Sealer, *, resolver: Resolver = system_resolver
) -> Streaming:
    """Return the streaming that the settings configure. Refused with SINKS_INVALID or SINKS_NOT_READABLE."""
    courier = open_courier(settings, sealer.clock, resolver=resolver)
    return Streaming(audit_log, writer, sealer, courier, settings=settings)
