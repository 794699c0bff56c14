"""One cluster for all tests of this folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from tests.kube.__main__ import INSIDE
from tests.kube.agents import TRUE, job, pod
from tests.kube.figures import FIGURES
from tests.kube.release import AGENTS, MESH, Release, namespace, secret
from tests.kube.stage import Stage, standing


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A real API server with a node whose pods are processes; skips outside of ``make kube``."""
    if not os.environ.get(INSIDE):
        pytest.skip("it needs namespaces of its own: make kube")
    folder = tmp_path_factory.mktemp("kube", numbered=True)
    folder.chmod(0o755)
    with standing(folder) as made:
        yield made


@pytest.fixture(scope="session")
def release(stage: Stage) -> Release:
    """The chart, installed, and an agent's first governed call made."""
    api = stage.api
    namespace(api, MESH)
    namespace(api, AGENTS, **{"interlock.dev/inject": "enabled"})
    secret(api, "interlock-postgres", MESH, **stage.store())
    secret(api, "provider", AGENTS, api_key="sk-of-the-provider")
    made = Release(stage, stage.folder)
    began = time.monotonic()
    made.apply()
    FIGURES["helm install until all is ready"] = f"{time.monotonic() - began:.1f} s"
    stage.provider.answers(TRUE)
    assert job(made, "first", pod())[0]["status"] == 200
    FIGURES["helm install until an agent's first governed call"] = f"{time.monotonic() - began:.1f} s"
    return made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell the figures of docs/deploy-kubernetes.md."""
    for what, seen in FIGURES.items():
        terminalreporter.write_line(f"{what}: {seen}")
