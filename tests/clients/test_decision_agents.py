"""Agents in Node and Go, built from the clients as they are published, pass the compliance kit (DEC-9)."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from interlock.client.decision.reference.agents import AGENTS
from tests.clients.toolchains import needs
from tests.clients.toolchains import run as ran
from tests.support.paths import ROOT
from tests.support.servers.processes import environment, run

pytestmark = [pytest.mark.req("DEC-9"), pytest.mark.long]


@pytest.fixture
def descriptor(tmp_path) -> Path:
    """Both agents declare what the reference agent of their role does."""
    path = tmp_path / "agent.json"
    path.write_text(json.dumps(AGENTS["protocol"].descriptor.told()))
    return path


def report_of(tmp_path: Path, descriptor: Path, *command: str | Path) -> dict:
    """Run the kit against a command."""
    arguments = ("--descriptor", str(descriptor), "-o", "json", "--", *map(str, command))
    said = run("decision", "certify", *arguments, env=environment(tmp_path / "state"), timeout_s=110)
    assert said.stdout, said.stderr
    return json.loads(said.stdout)


def wrong(report: dict) -> list:
    return [(one["test"], one["findings"]) for one in report["tests"] if not one["passed"]]


@needs("node", "npm")
def test_an_agent_in_node_is_certified(tmp_path, descriptor):
    """Its process() is twenty lines; the client does the rest."""
    folder = tmp_path / "node"
    shutil.copytree(ROOT / "clients" / "node", folder, ignore=shutil.ignore_patterns("node_modules"))
    shutil.copy(ROOT / "services" / "interlock" / "api" / "descriptors.binpb", folder)
    ran("npm", "ci", "--no-audit", "--no-fund", cwd=folder)
    shutil.copy(folder / "decision.d.ts", folder / "decision.d.mts")
    ran(
        "npx", "tsc", "--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "decision.d.mts", cwd=folder
    )

    assert not wrong(report_of(tmp_path, descriptor, "node", folder / "example_agent.mjs"))


@needs("go")
def test_an_agent_in_go_is_certified(tmp_path, descriptor):
    """Built from stubs that are generated now."""
    folder = tmp_path / "go"
    shutil.copytree(ROOT / "clients" / "go", folder, ignore=shutil.ignore_patterns("gen"))
    ran(sys.executable, ROOT / "scripts" / "gen_clients.py", "go", "--out", folder, cwd=ROOT)
    ran("go", "vet", ".", "./cmd/...", cwd=folder)
    ran("go", "build", "-o", folder / "agent", "./cmd/example_agent", cwd=folder)

    assert not wrong(report_of(tmp_path, descriptor, folder / "agent"))
