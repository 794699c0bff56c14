"""The wheel, installed: it verifies itself at start, and one changed byte anywhere in it refuses to start (DPE-17)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.servers.processes import environment

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.req("DPE-17")]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A fresh environment with our wheel; what it depends on is taken from this one."""
    folder = tmp_path_factory.mktemp("shipped")
    out = folder / "wheel"
    pip = [sys.executable, "-m", "pip", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(out), str(ROOT)], check=True, cwd=folder)
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    wheel = next(out.glob("*.whl"))
    subprocess.run([*pip, "--python", str(python), "install", "--no-deps", str(wheel)], check=True, cwd=folder)
    ours = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "env"), "platbase": str(folder / "env")}))
    (ours / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python, ours / "interlock"


def alone(env: dict[str, str]) -> dict[str, str]:
    """Return *env* without the places that this test run imports from: the child runs what is installed for it."""
    return {name: value for name, value in env.items() if name != "PYTHONPATH"}


def serve(python: Path, folder: Path, *, part: str = "session", **settings: str) -> subprocess.CompletedProcess[str]:
    """Start a part and end it once it serves; one that refuses has ended by itself."""
    env = alone(environment(folder / "state", {"redis_url": "memory://", **settings}))
    program = (
        "import subprocess, sys, signal, threading\n"
        "child = subprocess.Popen([sys.executable, '-m', 'interlock.cli.main', 'serve', sys.argv[1]],"
        " stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)\n"
        "first = child.stdout.readline()\n"
        "child.send_signal(signal.SIGTERM) if first else None\n"
        "rest, said = child.communicate()\n"
        "sys.stdout.write(first); sys.stderr.write(said); sys.exit(child.returncode)\n"
    )
    return subprocess.run(
        [str(python), "-c", program, part], env=env, capture_output=True, text=True, cwd=folder, timeout=120
    )


def test_what_was_shipped_starts_and_says_that_it_was_verified(installed, tmp_path):
    """The unchanged wheel serves, also where verified code is demanded."""
    done = serve(installed[0], tmp_path, require_verified_code="true")

    assert done.returncode == 0, done.stderr
    assert "code.verified" in done.stderr


@pytest.fixture(scope="module")
def editable(tmp_path_factory):
    """A fresh environment with the README's install, `pip install -e`, of a copy of our source whose threshold was changed."""
    folder = tmp_path_factory.mktemp("editable")
    source = folder / "source"
    for part in ("services", "deploy", "protos"):
        shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / part, source / part)
    budget = source / "services" / "interlock" / "domain" / "breaker.py"
    budget.write_text(budget.read_text() + "\nHALF_OPEN_AT = 0\n")
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", str(python)]
    subprocess.run([*pip, "install", "--no-deps", "-e", str(source)], check=True, cwd=folder)
    ours = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "env"), "platbase": str(folder / "env")}))
    # After our own link in the order of names, so that the changed source comes first.
    (ours / "zz_dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python, source


def test_an_editable_install_is_not_verified_and_says_so(editable, tmp_path):
    """Its record names files of another folder than the code that runs: it is not called verified, and its gauge is 0."""
    program = (
        "from interlock.runtime.integrity import VERIFIED, require, verify\n"
        "found = require(verified=False)\n"
        "print(found.ok, found.files, VERIFIED._value.get(), found.why)\n"
    )
    env = alone(environment(tmp_path))
    said = subprocess.run(
        [str(editable[0]), "-c", program], env=env, capture_output=True, text=True, cwd=tmp_path, check=True
    )
    done = serve(editable[0], tmp_path)

    assert said.stdout.splitlines()[-1].startswith("False 0 0.0 interlock runs from ")
    assert str(editable[1]) in said.stdout
    assert "not verifiable" in said.stdout
    assert (done.returncode, "code.unverified" in done.stderr, "code.verified" in done.stderr) == (0, True, False)


def test_an_editable_install_does_not_start_where_verified_code_is_demanded(editable, tmp_path):
    """REQUIRE_VERIFIED_CODE refuses it, and with it the threshold that was changed in its source."""
    done = serve(editable[0], tmp_path, require_verified_code="true")

    assert done.returncode == 2
    assert "CODE_UNVERIFIED" in done.stderr
    assert done.stdout == ""


def test_a_folder_that_comes_first_is_not_what_was_shipped(installed, tmp_path):
    """The wheel is there and unchanged, and PYTHONPATH lets other code run: refused where verified code is demanded."""
    shutil.copytree(ROOT / "services" / "interlock", tmp_path / "first" / "interlock")
    program = "from interlock.runtime.integrity import verify; print(verify().ok, verify().why)"
    env = {**environment(tmp_path), "PYTHONPATH": str(tmp_path / "first")}
    said = subprocess.run(
        [str(installed[0]), "-c", program], env=env, capture_output=True, text=True, cwd=tmp_path, check=True
    )

    assert said.stdout.startswith("False interlock runs from ")


def changed(path: Path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    return bytes(content)


@pytest.mark.parametrize(
    "name",
    ["domain/budget.py", "session/lua/commit.lua", "audit/sql", "dpe/models/nli", "dpe/models/nli/manifest.json"],
)
def test_one_changed_byte_refuses_to_start_and_is_named(installed, tmp_path, name):
    """A rule, a script of the store, a migration, a model, its manifest."""
    python, package = installed
    path = package / name
    if path.is_dir():
        path = min(one for one in path.rglob("*") if one.suffix in {".sql", ".onnx"})
    was = path.read_bytes()
    path.write_bytes(changed(path))
    try:
        done = serve(python, tmp_path)
    finally:
        path.write_bytes(was)

    assert done.returncode in {2, 1}, done.stderr
    assert path.name in done.stderr
    assert "CODE_CHANGED" in done.stderr


def test_a_module_that_was_not_shipped_refuses_to_start(installed, tmp_path):
    """A file beside ours is no part of what was shipped."""
    python, package = installed
    extra = package / "runtime" / "helper.py"
    extra.write_text("")
    try:
        done = serve(python, tmp_path)
    finally:
        extra.unlink()

    assert (done.returncode, "CODE_CHANGED" in done.stderr, "helper.py" in done.stderr) == (2, True, True)


def test_every_kind_of_file_is_in_the_record(installed):
    """Python, Lua, SQL, protos' modules and models all have their hash in RECORD."""
    record = next(installed[1].parent.glob("interlock-*.dist-info")) / "RECORD"
    hashed = [line.split(",")[0] for line in record.read_text().splitlines() if ",sha256=" in line]

    for kind in (".py", ".lua", ".sql", ".onnx", ".json", "_pb2.py"):
        assert any(name.endswith(kind) for name in hashed), kind
