"""``interlock check --cluster``: what the cluster holds of a release, and what is wrong with it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from interlock.cli.cluster import findings
from interlock.cli.cluster.installation import Everywhere, Installation, everywhere, installation
from interlock.cli.cluster.kubeconfig import access
from interlock.cli.cluster.trust import certificates
from interlock.cli.probing import probes
from interlock.domain.errors import Refused
from interlock.runtime.egress.kubernetes import Cluster
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus

LIMIT_S = 20.0
"""How long the whole look may take, whatever the size of the cluster."""


async def examine_cluster(kubeconfig: Path | None, context: str, namespace: str) -> list[ProbeFinding]:
    """Return the findings of every release, or of that in *namespace*. What cannot be looked at is a finding itself."""
    line = partial(ProbeFinding, "api server")
    try:
        return await probes.in_time(_examined(kubeconfig, context, namespace), LIMIT_S)
    except TimeoutError:
        return [
            line(
                "time",
                ProbeStatus.FAIL,
                f"no result after {LIMIT_S:g} s",
                "the API server or a credential helper hangs",
            )
        ]
    except Exception as error:  # noqa: BLE001 - a check that ends here would tell nothing
        return [probes.broken(line, "reached", error)]


async def _examined(kubeconfig: Path | None, context: str, namespace: str) -> list[ProbeFinding]:
    line = partial(ProbeFinding, "api server")
    cluster = Cluster(await probes.in_thread(partial(access, kubeconfig, context)))
    try:
        version = await cluster.get("/version")
        told = [line("reached", ProbeStatus.OK, f"Kubernetes {version.get('gitVersion', 'of unknown version')}")]
        found = await everywhere(cluster)
        if isinstance(found.deployments, Refused):
            return [*told, findings.unread(line, "deployments", found.deployments)]
        places = sorted(
            {one["metadata"]["namespace"] for one in found.deployments} & ({namespace} if namespace else _all(found))
        )
        if not places:
            where = f"in namespace {namespace}" if namespace else "in any namespace"
            return [
                *told,
                line("release", ProbeStatus.FAIL, f"no release of interlock {where}", "helm install, or --namespace"),
            ]
        releases = await asyncio.gather(*(installation(cluster, found, place) for place in places))
        return [*told, *(finding for one in releases for finding in _of_release(one, found, several=len(places) > 1))]
    finally:
        await cluster.close()


def _all(found: Everywhere) -> set[str]:
    return (
        set() if isinstance(found.deployments, Refused) else {one["metadata"]["namespace"] for one in found.deployments}
    )


def _of_release(release: Installation, found: Everywhere, *, several: bool) -> Iterator[ProbeFinding]:
    for finding in (
        *findings.deployments(release), *findings.versions(release), *findings.webhook(release), *certificates(release),
        *findings.secrets(release), *findings.namespaces(release, found), *findings.identity(release), *findings.pods(release, found),
    ):  # fmt: skip
        group = f"{release.namespace}: {finding.group}" if several else finding.group
        yield ProbeFinding(group, finding.name, finding.status, finding.detail, finding.hint)
