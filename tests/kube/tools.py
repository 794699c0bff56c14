"""The control plane of Kubernetes, built from its Go modules once into the folder where Helm is kept."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.clients.toolchains import run
from tests.deploy.tools import folder
from tests.support.paths import ROOT

KUBERNETES = "1.37.2"
SOURCES = ROOT / "tests" / "kube" / "control_plane"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
CANNOT_BE_BUILT = "the API server is built from its Go modules by `make kube`"


@cache
def control_plane() -> Path:
    """Return the folder of etcd, kube-apiserver and kube-controller-manager; skips where they cannot be built.

    They are built at a low priority and one package at a time: fifteen minutes of one core, once.
    """
    made = folder() / f"kubernetes-{KUBERNETES}"
    if all((made / name).exists() for name in PROGRAMS):
        return made
    if not os.environ.get("INTERLOCK_BUILD_TOOLS"):
        pytest.skip(CANNOT_BE_BUILT)
    if shutil.which("go") is None:
        pytest.skip(f"{CANNOT_BE_BUILT}, and go is not installed here")
    version = "k8s.io/component-base/version.git"
    major, minor, _ = KUBERNETES.split(".")
    named = {"Version": f"v{KUBERNETES}", "Major": major, "Minor": minor}
    flags = " ".join(["-s", "-w", *(f"-X {version}{name}={value}" for name, value in named.items())])
    with tempfile.TemporaryDirectory(dir=made.parent) as scratch:
        build = ["go", "build", "-p", "1", "-trimpath", "-ldflags", flags, "-o", scratch]
        run("nice", "-n", "15", *build, *(f"./{name}" for name in PROGRAMS), cwd=SOURCES, CGO_ENABLED="0")
        made.mkdir(exist_ok=True)
        for name in PROGRAMS:
            (Path(scratch) / name).replace(made / name)
    return made
