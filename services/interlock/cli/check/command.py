"""``interlock check``: name missing or misconfigured parts with a hint for each, and never hang."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from interlock.cli.check import probes
from interlock.cli.check.probes import ProbeFinding, ProbeStatus
from interlock.cli.check.probes_audit import audit_store
from interlock.cli.check.probes_listeners import certificates, ports
from interlock.cli.check.probes_profile import profile
from interlock.cli.output import NEGATIVE, OK, Format, Output, print_json
from interlock.domain.errors import Refused
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings

GROUP_LIMIT_S = 4.0
PAUSE_S = 0.5


def check(
    output: Output = Format.TEXT,
    wait: Annotated[float, typer.Option(help="Seconds to wait until all services are ready.", min=0, max=3600)] = 0,
) -> None:
    """Check configuration, profile, keys, embedded parts, Redis, audit store, models, services, provider and ports.

    Changes nothing and ends within five seconds (and within --wait). OK: works. SKIP: does not apply. WARN: works, but maybe
    not as you expect. FAIL: does not work. Exit code 1 on any FAIL.

    Examples: interlock check | interlock check -o json | interlock check --wait 60
    """
    until = time.monotonic() + wait
    while True:
        findings = asyncio.run(examine())
        if _settled(findings) or time.monotonic() >= until:
            break
        time.sleep(PAUSE_S)
    failed = any(finding.status is ProbeStatus.FAIL for finding in findings)
    if output is Format.JSON:
        print_json({"ok": not failed, "findings": [asdict(finding) for finding in findings]})
    else:
        _print(findings)
    sys.stdout.flush()
    # Not sys.exit: a hanging resolver thread would block the process until its own timeout.
    os._exit(NEGATIVE if failed else OK)


def _settled(findings: list[ProbeFinding]) -> bool:
    return not any(
        finding.status is ProbeStatus.FAIL or (finding.group == "services" and finding.status is ProbeStatus.WARN)
        for finding in findings
    )


async def examine() -> list[ProbeFinding]:
    """Return all findings by group. A group that takes longer than ``GROUP_LIMIT_S`` is a finding itself."""
    try:
        settings = load()
    except Refused as refused:
        problem = ProbeFinding(
            "configuration", "settings", ProbeStatus.FAIL, refused.message, refused.metadata.get("hint", "")
        )
        return [problem, ProbeFinding("everything else", "all", ProbeStatus.SKIP, "correct the settings first")]
    running = asyncio.create_task(_bounded("services", _all(probes.services(settings))))
    groups = [
        _blocking("configuration", lambda: probes.configuration(settings, os.environ)),
        _blocking("profile", lambda: profile(settings)),
        _blocking("keys", lambda: probes.keys(settings)),
        _blocking("certificates", lambda: certificates(settings)),
        _blocking("embedded parts", lambda: probes.embedded(settings)),
        _bounded("redis", _all(probes.redis(settings))),
        _blocking("audit store", lambda: audit_store(settings)),
        _blocking("models", lambda: probes.models(settings)),
        running,
        _bounded("upstream", _all(probes.upstream(settings))),
        _ports(settings, running),
    ]
    return [finding for group in await asyncio.gather(*groups) for finding in group]


async def _ports(settings: Settings, running: Awaitable[list[ProbeFinding]]) -> list[ProbeFinding]:
    found = {finding.name: finding.status for finding in await running}
    return list(ports(settings, found))


async def _all(findings: AsyncIterator[ProbeFinding]) -> list[ProbeFinding]:
    return [finding async for finding in findings]


async def _blocking(group: str, look: Callable[[], Iterator[ProbeFinding]]) -> list[ProbeFinding]:
    return await _bounded(group, probes.in_thread(lambda: list(look())))


async def _bounded(group: str, findings: Awaitable[list[ProbeFinding]]) -> list[ProbeFinding]:
    try:
        async with asyncio.timeout(GROUP_LIMIT_S):
            return await findings
    except TimeoutError:
        return [
            ProbeFinding(
                group, "time", ProbeStatus.FAIL, f"no result after {GROUP_LIMIT_S:g} s", "a disk or the network hangs"
            )
        ]


def _print(findings: list[ProbeFinding]) -> None:
    group = ""
    for finding in findings:
        if finding.group != group:
            group = finding.group
            typer.secho(group, bold=True)
        typer.echo(f"  {_colored(finding.status)} {finding.name:<18} {finding.detail}")
        if finding.hint and finding.status is not ProbeStatus.OK:
            typer.echo(f"       hint: {finding.hint}")
    count = {status: sum(finding.status is status for finding in findings) for status in ProbeStatus}
    typer.echo(", ".join(f"{number} {status}" for status, number in count.items() if number))


def _colored(status: ProbeStatus) -> str:
    colors: dict[ProbeStatus, Any] = {
        ProbeStatus.OK: "green",
        ProbeStatus.WARN: "yellow",
        ProbeStatus.FAIL: "red",
        ProbeStatus.SKIP: "cyan",
    }
    plain = bool(os.environ.get("NO_COLOR")) or not sys.stdout.isatty()
    text = f"{status.value:<4}"
    return text if plain else typer.style(text, fg=colors[status])
