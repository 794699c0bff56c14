"""The image: its steps carried out in a clean folder, what it starts, and what is said of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.dockerfile import Stage, build, instructions
from tests.support.paths import ROOT

DOCKERFILE = ROOT / "deploy" / "Dockerfile"
IMAGE = ROOT / "deploy" / "image"
pytestmark = pytest.mark.req("KUB-1")


def locked() -> dict[str, str]:
    """Return the packages of the lock with their versions."""
    lines = [line for line in (IMAGE / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"\S+==\S+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    return dict(line.split(" ")[0].split("==") for line in lines)


def test_the_lock_holds_every_dependency_in_a_version_that_we_take():
    """A dependency that was added or moved without a new lock is named here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [Requirement(one) for part in ("dpe", "otlp", "postgres", "triton") for one in extras[part]]
    wanted += [Requirement(one) for one in project["dependencies"]]
    held = {canonicalize_name(name): version for name, version in locked().items()}

    assert not [str(one) for one in wanted if not one.specifier.contains(held.get(canonicalize_name(one.name), "0"))]


def test_the_bill_of_materials_and_the_page_of_licences_name_what_is_locked():
    """All three are of one run of scripts/lock_image.py."""
    bill = json.loads((IMAGE / "sbom.cdx.json").read_text())
    page = (ROOT / "docs" / "licences.md").read_text()

    assert locked() == {one["name"]: one["version"] for one in bill["components"]}
    assert "CycloneDX" == bill["bomFormat"]
    assert all(f"| {name} | {version} |" in page for name, version in locked().items())


def test_the_image_runs_as_nobody_and_imports_from_nowhere_else():
    """A numeric user that is not root, no shell as entry, and python -I: a file in the working folder is no module."""
    found = instructions(DOCKERFILE.read_text())
    last = dict(found)

    assert "10001:10001" == last["USER"]
    assert '"-I"' in last["ENTRYPOINT"]
    assert last["ENTRYPOINT"].startswith("[")


def test_every_package_of_the_image_is_checked_by_its_hash():
    """No RUN line lets pip take what no lock names."""
    installs = [
        part
        for word, rest in instructions(DOCKERFILE.read_text())
        if word == "RUN"
        for part in rest.split("&&")
        if " install " in part and "pip" in part
    ]

    assert installs
    assert all("--require-hashes" in one or "--no-index" in one for one in installs)


@pytest.fixture(scope="module")
def image(tmp_path_factory) -> Stage:
    """The last stage, built in a clean folder."""
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the lock is for CPython 3.11")
    base = Path(sys.base_prefix) / "bin" / "python3.11"
    return build(DOCKERFILE, ROOT, tmp_path_factory.mktemp("image"), python=str(base))


def entry(image: Stage) -> list[str]:
    return [str(image.inside(image.entrypoint[0])), *image.entrypoint[1:]]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_steps_of_the_dockerfile_make_an_image_that_judges(image, tmp_path):
    """From the locks alone, in folders that held nothing: the command answers, models are inside, and nothing of the checkout is used."""
    where = subprocess.run(
        [entry(image)[0], "-I", "-c", "import interlock, sys; print(interlock.__file__); print('pip' in sys.modules)"],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    ).stdout  # fmt: skip
    answer = tmp_path / "answer.json"
    answer.write_text(
        json.dumps(
            {
                "response": "The plan costs $9,000.",
                "facts": [{"id": "p", "content": "The plan costs $630.", "importance": 0.9}],
            }
        )
    )
    said = subprocess.run(
        [*entry(image), "dpe", "analyze", str(answer), "-o", "json"], capture_output=True, text=True, cwd=tmp_path, env=image.environment(), check=False,
    )  # fmt: skip

    assert str(image.root) in where
    assert "CRITICAL" in said.stdout or "HIGH" in said.stdout, said.stdout[-1500:] + said.stderr[-1500:]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_image_holds_no_start_up_hooks_and_no_installer(image):
    """No .pth file runs code at each start (A-42), and pip is gone."""
    site = next(image.inside("/opt/interlock").glob("lib/python3.*/site-packages"))
    hooks = [
        path.name
        for path in site.glob("*.pth")
        if re.search(r"^import\b", path.read_text(errors="replace"), re.MULTILINE)
    ]

    assert not hooks
    assert not (site / "pip").exists()
    assert os.access(image.inside("/var/lib/interlock"), os.W_OK)
