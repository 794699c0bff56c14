"""``interlock check``: name missing or misconfigured parts with a hint for each, and never hang."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from interlock.cli.check import probes_keys, probes_provider
from interlock.cli.check.probes_emergencies import emergency_actions
from interlock.cli.check.probes_listeners import certificates, ports
from interlock.cli.check.probes_profile import profile
from interlock.cli.check.probes_sign_in import sign_in
from interlock.cli.cluster.command import examine_cluster
from interlock.cli.output import NEGATIVE, OK, Format, Output, print_json
from interlock.cli.probing import groups, probes
from interlock.cli.probing.groups import answering, blocking
from interlock.cli.probing.probes_audit import audit_store
from interlock.cli.probing.probes_checkpoint import checkpoint
from interlock.cli.probing.probes_files import files, second_place
from interlock.cli.probing.probes_parts import code, traces, triton
from interlock.cli.probing.probes_services import services
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings

PAUSE_S = 0.5
REST = ProbeFinding("everything else", "all", ProbeStatus.SKIP, "correct the settings first")


def check(
    output: Output = Format.TEXT,
    wait: Annotated[float, typer.Option(help="Seconds to wait until all services are ready.", min=0, max=3600)] = 0,
    *,
    cluster: Annotated[
        bool,
        typer.Option(
            "--cluster", help="Check what a Kubernetes cluster holds of the release, and nothing of this machine."
        ),
    ] = False,
    namespace: Annotated[
        str, typer.Option(help="With --cluster: the namespace of the release. Default: all releases.")
    ] = "",
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="With --cluster. Default: KUBECONFIG, the pod's service account, ~/.kube/config."),
    ] = None,
    context: Annotated[
        str, typer.Option(help="With --cluster: context of the kubeconfig. Default: its current one.")
    ] = "",
) -> None:
    """Check configuration, code, profile, keys, emergency actions, certificates, embedded parts, Redis and clock, audit store, models, Triton, services, provider, sign-in, traces and ports.

    Changes nothing and ends within five seconds, later only where the machine is busy (and within --wait). A part that is broken ends no other probe. OK: works. SKIP: does not apply. WARN: works, but maybe
    not as you expect. FAIL: does not work. Exit code 1 on any FAIL.

    With --cluster it asks the API server instead, within twenty seconds: Deployments and their versions, webhook and its authority, certificates,
    Secrets, labels of namespaces, and every pod that runs without the sidecar that it should have.

    Examples: interlock check | interlock check -o json | interlock check --wait 60 | interlock check --cluster --namespace interlock
    """
    until = time.monotonic() + wait
    while True:
        findings = asyncio.run(examine_cluster(kubeconfig, context, namespace) if cluster else examine())
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
        settings = await probes.in_time(probes.in_thread(load), groups.GROUP_LIMIT_S)
    except TimeoutError:
        late = f"they cannot be read within {groups.GROUP_LIMIT_S:g} s"
        return [ProbeFinding("configuration", "settings", ProbeStatus.FAIL, late, "a disk or the network hangs"), REST]
    except Exception as error:  # noqa: BLE001 - a check that ends here would tell nothing
        problem = probes.broken(partial(ProbeFinding, "configuration"), "settings", error)
        return [problem, REST]
    running = asyncio.create_task(answering("services", lambda: services(settings)))
    looks = [
        blocking("configuration", lambda: chain(probes.configuration(settings, os.environ), files(settings))),
        blocking("code", lambda: code(settings)),
        blocking("profile", lambda: profile(settings)),
        blocking("keys", lambda: probes_keys.keys(settings)),
        blocking("emergencies", lambda: emergency_actions(settings)),
        blocking("certificates", lambda: certificates(settings)),
        blocking("embedded parts", lambda: probes.embedded(settings)),
        answering("redis", lambda: probes.redis(settings)),
        blocking("audit store", lambda: chain(audit_store(settings), second_place(settings))),
        answering("audit store", lambda: checkpoint(settings)),
        blocking("models", lambda: probes.models(settings)),
        answering("triton", lambda: triton(settings)),
        running,
        answering("upstream", lambda: probes_provider.upstream(settings)),
        answering("sign-in", lambda: sign_in(settings)),
        answering("traces", lambda: traces(settings)),
        _ports(settings, running),
    ]
    return [finding for group in await asyncio.gather(*looks) for finding in group]


async def _ports(settings: Settings, running: Awaitable[list[ProbeFinding]]) -> list[ProbeFinding]:
    found = {finding.name: finding.status for finding in await running}
    return await blocking("ports", lambda: ports(settings, found))


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
