"""A-42: what comes with the package, and what it does before anybody asked it to."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import interlock
from tests.support.paths import ROOT

pytestmark = pytest.mark.req("DPE-17")

PACKAGE = Path(interlock.__file__).parent
NETWORK = """
import importlib, pkgutil, sys

def watch(event, arguments):
    if event in {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request"}:
        raise RuntimeError(f"{event} at import")
    if event in {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"}:
        raise RuntimeError(f"{event} at import: {arguments[:1]}")

sys.addaudithook(watch)
import interlock
skipped = ("interlock._deploy",)
names = [m.name for m in pkgutil.walk_packages(interlock.__path__, "interlock.") if not m.name.endswith("__main__")]
assert len(names) > 150
for name in names:
    if not name.startswith(skipped):
        importlib.import_module(name)
print(len(names))
"""


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a42_no_module_reaches_the_network_or_starts_a_program_when_it_is_imported(tmp_path):
    """Every module of ours, and all that it imports, is loaded with every way out watched."""
    said = subprocess.run([sys.executable, "-c", NETWORK], capture_output=True, text=True, cwd=tmp_path, check=False)

    assert said.returncode == 0, said.stderr[-2000:]


def test_a42_the_watch_notices_a_connection():
    """The watch of the test above stops a module that connects."""
    program = (
        NETWORK.split("import interlock", maxsplit=1)[0] + "import socket; socket.create_connection(('127.0.0.1', 9))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert "at import" in said.stderr


def test_a42_nothing_in_the_package_runs_by_itself():
    """No .pth file, no sitecustomize, no compiled library: nothing that Python would run or load unasked."""
    suspect = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*")
        if path.suffix in {".pth", ".so", ".dll", ".dylib", ".egg-link"}
        or path.stem in {"sitecustomize", "usercustomize"}
    ]

    assert suspect == []


def test_a42_every_dependency_has_both_bounds():
    """A release of the next major version of anything we need is not installed unseen."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    outside = [one for one in listed if not one.startswith("interlock[")]
    loose = [one for one in outside if not re.search(r"==[\w.]+$|>=[\w.]+,<[\w.]+$", one.split(";")[0].strip())]

    assert len(outside) > 20
    assert loose == []


def test_a42_nothing_is_taken_from_anywhere_but_the_registry():
    """No dependency is a URL, a path or a branch."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]

    assert not [one for one in listed if "@" in one or "://" in one or "file:" in one]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a42_the_wheel_holds_our_package_and_nothing_that_runs_unasked(tmp_path):
    """The wheel as pip builds it: our folder and its own metadata, no .pth, no data or scripts folder."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", str(tmp_path), str(ROOT)],
        check=True, cwd=tmp_path,
    )  # fmt: skip
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    tops = {name.split("/")[0] for name in names}

    assert not [name for name in names if name.endswith((".pth", ".so", ".egg-link"))]
    assert {top for top in tops if not top.endswith(".dist-info")} == {"interlock"}
