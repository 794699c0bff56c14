"""The chart's release in the cluster: installed, upgraded and removed by real Helm."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.tools import CHART, helmed
from tests.kube.cluster.api import Api, Json, until
from tests.kube.stage import PROVIDER, VALKEY, Stage

RELEASE, MESH, AGENTS = "il", "interlock", "agents"
RESTRICTED = {f"pod-security.kubernetes.io/{kind}": "restricted" for kind in ("enforce", "audit", "warn")}
SERVICES = ("session", "policy", "dpe", "audit", "oversight", "decision")

VALUES: Mapping[str, Any] = {
    "profile": "enforce",
    "settings": {"default_policy": "halt-on HIGH"},
    "sessionStore": {"url": f"redis://{VALKEY[0]}:{VALKEY[1]}/0"},
    "auditStore": {"existingSecret": "interlock-postgres"},
    "certificates": {"mode": "generated"},
    "decision": {"enabled": True},
    "sidecar": {"namespaces": [AGENTS], "upstreamUrl": f"http://{PROVIDER[0]}:{PROVIDER[1]}/v1"},
}


def namespace(api: Api, name: str, **labels: str) -> None:
    """Make a namespace that takes restricted pods alone."""
    api.create("namespaces", {"metadata": {"name": name, "labels": {**RESTRICTED, **labels}}})
    until(f"{name} has a service account", lambda: api.found("serviceaccounts", "default", name), 30)


def secret(api: Api, name: str, place: str, **data: str) -> None:
    """Make a Secret."""
    named = {key.replace("_", "-"): value for key, value in data.items()}
    api.create("secrets", {"metadata": {"name": name}, "stringData": named}, place)


@dataclass
class Release:
    """A release of the chart in a cluster."""

    stage: Stage
    folder: Path

    def helm(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run Helm against the cluster, in the mesh's namespace."""
        return helmed(*arguments, "--namespace", MESH, "--kubeconfig", self.stage.plane.kubeconfig)

    def apply(self, *, chart: Path = CHART, **values: Any) -> str:
        """Install or upgrade with the values of these tests and *values*; wait until all of it is ready, and return the notes."""
        file = self.folder / "values.yaml"
        file.write_text(yaml.safe_dump({**VALUES, **values}))
        limit = ("--wait", "--timeout", "4m")
        done = self.helm("upgrade", "--install", RELEASE, chart, "-f", file, *limit)
        assert done.returncode == 0, done.stderr + self.stage.node.logs(MESH)
        return done.stdout

    def objects(self, kind: str, place: str = MESH) -> dict[str, Json]:
        """Return the objects of a kind by name."""
        return {one["metadata"]["name"]: one for one in self.stage.api.items(kind, place)}
