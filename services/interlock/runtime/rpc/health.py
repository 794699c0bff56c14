"""Health per service and overall, readiness that names each unready dependency, and findings about a part (SVC-4, SVC-9)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import structlog
from grpc_health.v1 import health, health_pb2
from prometheus_client import Gauge

from interlock.runtime.rpc.service import Service

log = structlog.get_logger()

READY = Gauge("interlock_ready", "1 while a service reaches all that it depends on.", ["service"])

MISSING_KEY = "interlock-missing"
"""Trailing metadata of a health check: a JSON object, dependency → hint. Absent when the service is ready."""

PERIOD_S = 1.0
FRESH_S = 0.2
LIMIT_S = 3.0
LONGEST_METADATA = 2048


class ProbeStatus(StrEnum):
    """Status of a finding."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"
    SKIP = "SKIP"


@dataclass(frozen=True)
class ProbeFinding:
    """What a look at a part found: a line of `interlock check`, and of the console's page of health."""

    group: str
    name: str
    status: ProbeStatus
    detail: str
    hint: str = ""


Look = Callable[[], Awaitable[Sequence[ProbeFinding]]]
"""Looks at every part now. It is bounded in time, and a part that is broken ends no other."""


class Readiness:
    """The unready dependencies of each service of this process.

    Checked once a second and on demand, but never more often than ``FRESH_S``, so that polling cannot overload a dependency.
    """

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = services
        self._lock = asyncio.Lock()
        self._asked_at = -FRESH_S
        self.by_service: dict[str, Mapping[str, str]] = {}

    async def refresh(self) -> dict[str, Mapping[str, str]]:
        """Return service name → (dependency → hint) for every service, at most ``FRESH_S`` old."""
        async with self._lock:
            if time.monotonic() - self._asked_at >= FRESH_S:
                found = await asyncio.gather(*(_ask(service) for service in self._services))
                for service, unready in zip(self._services, found, strict=True):
                    self._note(service.name, unready)
                self._asked_at = time.monotonic()
        return self.by_service

    async def unready_dependencies(self) -> dict[str, str]:
        """Return dependency → hint for all services; empty means ready."""
        found = await self.refresh()
        return {name: hint for unready in found.values() for name, hint in unready.items()}

    def _note(self, name: str, unready: Mapping[str, str]) -> None:
        before = self.by_service.get(name)
        self.by_service[name] = unready
        READY.labels(name).set(0 if unready else 1)
        if before is not None and set(before) == set(unready):
            return
        if unready:
            log.warning("service.not_ready", service=name, missing=sorted(unready), hint="; ".join(unready.values()))
        else:
            log.info("service.ready", service=name)


async def unready_across(parts: Sequence[Readiness]) -> dict[str, str]:
    """Return dependency → hint for several servers of one process."""
    found = await asyncio.gather(*(part.unready_dependencies() for part in parts))
    return {name: hint for unready in found for name, hint in unready.items()}


async def _ask(service: Service) -> Mapping[str, str]:
    try:
        async with asyncio.timeout(LIMIT_S):
            return await service.unready_dependencies()
    except TimeoutError:
        return {service.name: f"its own check took longer than {LIMIT_S:g} s"}
    except Exception as error:  # unready_dependencies() must not raise; if it does, the service is not ready
        log.exception("service.check_failed", service=service.name)
        return {service.name: f"its own check failed with {type(error).__name__}; the log has the place"}


class HealthFront(health.aio.HealthServicer):  # type: ignore[misc]
    """The standard health service. A process that answers is alive; a service without unready dependencies is SERVING."""

    def __init__(self, services: Sequence[Service], readiness: Readiness) -> None:
        super().__init__()
        self._services, self._readiness = services, readiness
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Determine the state now and keep it fresh."""
        await self.update()
        self._task = asyncio.create_task(self._keep_fresh())

    async def update(self) -> None:
        """Check the services and publish their states, also to watchers."""
        found = await self._readiness.refresh()
        for service in self._services:
            for full_name in service.full_names:
                await self.set(full_name, _status(not found[service.name]))
        await self.set(health.OVERALL_HEALTH, _status(not any(found[s.name] for s in self._services)))

    async def leave(self) -> None:
        """Report NOT_SERVING for good: this process is about to stop."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        await self.enter_graceful_shutdown()

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802 - gRPC's name
        """Answer from a fresh state. The trailing metadata name the unready dependencies."""
        await self.update()
        unready = {
            name: hint
            for service in self._services
            if request.service in {"", *service.full_names}
            for name, hint in self._readiness.by_service[service.name].items()
        }
        if unready:
            context.set_trailing_metadata(((MISSING_KEY, _metadata(unready)),))
        return await super().Check(request, context)

    async def _keep_fresh(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            await self.update()


def _status(serving: bool) -> Any:  # noqa: FBT001 - private, and clear at both uses
    status = health_pb2.HealthCheckResponse
    return status.SERVING if serving else status.NOT_SERVING


def _metadata(unready: Mapping[str, str]) -> str:
    text = json.dumps(unready)
    return text if len(text) <= LONGEST_METADATA else json.dumps(dict.fromkeys(unready, "see its log"))
