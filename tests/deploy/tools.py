"""Real Helm and the schemas of Kubernetes, built and installed once into a folder outside the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clients.toolchains import run
from tests.support.paths import ROOT

HELM, VALIDATE = "v3.22.0", "1.37.0"
CHART = ROOT / "helm" / "interlock"
PROFILES = ("dev", "ha", "airgap", "observe", "regulated")
OLDEST, MONITORING = "1.29.0", "monitoring.coreos.com/v1"


def folder() -> Path:
    """Return where tools are kept: INTERLOCK_TOOLS, else the user's cache."""
    cached = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    made = Path(os.environ.get("INTERLOCK_TOOLS") or Path(cached) / "interlock-tools")
    made.mkdir(parents=True, exist_ok=True)
    return made


@cache
def helm() -> str:
    """Return the path of Helm, built from its Go module at the first use by ``make kube-lint``; skips where it is not there.

    Building it takes ten minutes of two cores, which the long suite does not have.
    """
    built = folder() / f"helm-{HELM}" / "helm"
    if not built.exists():
        if not os.environ.get("INTERLOCK_BUILD_TOOLS"):
            pytest.skip("Helm is not built here: make kube-lint builds it once")
        if shutil.which("go") is None:
            pytest.skip("Helm is built from its Go module, and go is not installed here")
        run("go", "install", f"helm.sh/helm/v3/cmd/helm@{HELM}", cwd=folder(), GOBIN=str(built.parent))
    return str(built)


@cache
def validator() -> str:
    """Return the path of kubernetes-validate, which brings the schemas of each version."""
    built = folder() / f"kubernetes-validate-{VALIDATE}"
    if not (built / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", built], check=True)
        done = subprocess.run(
            [built / "bin" / "pip", "install", "-q", f"kubernetes-validate=={VALIDATE}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"kubernetes-validate cannot be installed here: {done.stderr[-300:]}")
        (built / "ready").touch()
    return str(built / "bin" / "kubernetes-validate")


def helmed(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Helm, with folders of its own."""
    own = {f"HELM_{kind}_HOME": str(folder() / "helm-home" / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
    return subprocess.run(
        [helm(), *map(str, arguments)], capture_output=True, text=True, env={**os.environ, **own}, check=False
    )


def template(
    profile: str = "", *sets: str, version: str = OLDEST, apis: Sequence[str] = (MONITORING,)
) -> subprocess.CompletedProcess[str]:
    """Render the chart as release `il` in the namespace `interlock`."""
    values = ["-f", CHART / "profiles" / f"{profile}.yaml"] if profile else []
    given = [part for one in sets for part in ("--set", one)]
    known = [part for one in apis for part in ("--api-versions", one)]
    return helmed(
        "template", "il", CHART, "--namespace", "interlock", "--kube-version", version, *values, *given, *known
    )


@cache
def rendered(profile: str, *sets: str) -> tuple[dict[str, Any], ...]:
    """Return the objects of a profile."""
    done = template(profile, *sets)
    assert done.returncode == 0, done.stderr
    return tuple(one for one in yaml.safe_load_all(done.stdout) if one)
