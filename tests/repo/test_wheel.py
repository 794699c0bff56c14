"""The wheel holds everything, and works where only pip was used."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.repo.tree import files
from tests.support.paths import ROOT

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
PACKAGE = ROOT / "services"


def run(*command: str | Path, cwd: Path) -> str:
    said = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=cwd, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel as pip builds it from this tree."""
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", out, ROOT, cwd=out)
    return next(out.glob("interlock-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder of commands of a fresh environment with the wheel and nothing but its own dependencies."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=True)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    return folder / "bin"


def test_the_wheel_holds_every_file_of_the_package(wheel):
    """Lua scripts, SQL, models, the recorded conversation: what is beside the code is in the wheel."""
    held = set(zipfile.ZipFile(wheel).namelist())
    ours = {str(p.relative_to(PACKAGE)) for p in files() if PACKAGE in p.parents}

    assert ours <= held
    for kind in (".lua", ".sql", ".onnx", "profiles/observe.yaml", "conversation.json", "LICENSE"):
        assert any(name.endswith(kind) for name in held), kind


def test_the_wheel_tells_what_it_is_and_brings_its_interface(wheel):
    """Types for a checker, protos and descriptors for other languages; links and classifiers for whoever finds it."""
    archive = zipfile.ZipFile(wheel)
    held = set(archive.namelist())
    about = archive.read(next(name for name in held if name.endswith(".dist-info/METADATA"))).decode()
    protos = {f"interlock/_protos/{path.relative_to(ROOT / 'protos')}" for path in (ROOT / "protos").rglob("*.proto")}

    assert {"interlock/py.typed", "interlock/api/descriptors.binpb", *protos} <= held
    assert len(protos) > 5
    for line in (
        "Project-URL: Homepage,",
        "Classifier: Typing :: Typed",
        "Requires-Python: >=3.11",
        "License-Expression: Apache-2.0",
    ):
        assert line in about, line


def test_the_installed_command_tells_its_version(installed, tmp_path):
    """``interlock --version`` works outside the repository."""
    assert "0.1.0" in run(installed / "interlock", "--version", cwd=tmp_path)


def test_the_installed_command_parses_a_policy(installed, tmp_path):
    """The policy language needs no model and no store."""
    assert "halt-on CRITICAL" in run(installed / "interlock", "policy", "parse", "halt-on CRITICAL", cwd=tmp_path)


def test_the_installed_demo_says_what_it_needs(installed, tmp_path):
    """Without the openai client the demo names the command that installs it."""
    said = subprocess.run([installed / "interlock", "demo"], capture_output=True, text=True, cwd=tmp_path, check=False)

    assert said.returncode == 2
    assert "pip install" in said.stderr
