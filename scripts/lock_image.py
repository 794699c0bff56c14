"""Write what the image holds: hash-locked requirements, a bill of materials, and the page of licences.

python scripts/lock_image.py            resolves with pip, for this Python and platform: run it where the image runs (3.11, amd64)

Writes deploy/image/requirements.lock and build.lock, deploy/image/sbom.cdx.json (CycloneDX 1.6) and docs/licences.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from importlib.metadata import PackageNotFoundError
from importlib.metadata import metadata as metadata_of
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
IMAGE = ROOT / "deploy" / "image"
EXTRAS = "cel,dpe,otlp,postgres,triton"
HEAD = "# By scripts/lock_image.py: CPython 3.11 on Linux, amd64. Do not edit.\n"

Package = dict[str, Any]


def resolved(*wanted: str) -> list[Package]:
    """Return pip's report of what it would install into an empty environment."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        options = ["--quiet", "--dry-run", "--ignore-installed", "--only-binary", ":all:", "--report", str(report)]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, *wanted], check=True, cwd=ROOT)
        found: list[Package] = json.loads(report.read_text(encoding="utf-8"))["install"]
    return sorted(found, key=lambda one: name_of(one).lower())


def name_of(package: Package) -> str:
    """Return a package's name as it is written in locks."""
    return str(package["metadata"]["name"]).replace("_", "-").lower()


def digest_of(package: Package) -> str:
    """Return the SHA-256 of its wheel."""
    return str(package["download_info"]["archive_info"]["hashes"]["sha256"])


def licence_of(package: Package) -> str:
    """Return its licence as its metadata says it: an expression, a classifier, or the first line of a text."""
    metadata = package["metadata"]
    if expression := metadata.get("license_expression") or _installed_expression(package):
        return str(expression)
    classified = [c.rpartition(" :: ")[2] for c in metadata.get("classifier", ()) if c.startswith("License ::")]
    named = [one for one in classified if one != "OSI Approved"]
    first = str(metadata.get("license") or "").strip().splitlines()[:1]
    return ", ".join(named) or (first[0][:60] if first else "not said")


def _installed_expression(package: Package) -> str | None:
    """Return the expression of the same version where it is installed here: the reports of older pips leave it out."""
    try:
        found = metadata_of(name_of(package))
    except PackageNotFoundError:
        return None
    return found.get("License-Expression") if found["Version"] == package["metadata"]["version"] else None


def lock(packages: list[Package]) -> str:
    """Return the requirements with their hashes."""
    lines = [f"{name_of(one)}=={one['metadata']['version']} --hash=sha256:{digest_of(one)}\n" for one in packages]
    return HEAD + "".join(lines)


def bill(packages: list[Package]) -> str:
    """Return the bill of materials of the image's Python packages."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    components = [
        {
            "type": "library", "name": name_of(one), "version": one["metadata"]["version"],
            "purl": f"pkg:pypi/{name_of(one)}@{one['metadata']['version']}",
            "hashes": [{"alg": "SHA-256", "content": digest_of(one)}],
            "licenses": [{"license": {"name": licence_of(one)}}],
        }
        for one in packages
    ]  # fmt: skip
    ours = {"type": "application", "name": project["name"], "version": project["version"]}
    document = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": {"component": ours}}
    return json.dumps({**document, "components": components}, indent=1) + "\n"


def page(packages: list[Package]) -> str:
    """Return docs/licences.md."""
    head = (
        "# Licences of the image's packages\n\n`scripts/lock_image.py` writes this page from the packages' own metadata. Do not edit it. Interlock\n"
        "itself is Apache-2.0; models are in [models.md](models.md), the base image's packages in the base's own documentation.\n\n"
        "| package | version | licence |\n| --- | --- | --- |\n"
    )
    return head + "".join(
        f"| {name_of(one)} | {one['metadata']['version']} | {licence_of(one)} |\n" for one in packages
    )


def main() -> int:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    packages = [one for one in resolved(f".[{EXTRAS}]") if name_of(one) != "interlock"]
    (IMAGE / "requirements.lock").write_text(lock(packages), encoding="utf-8")
    (IMAGE / "build.lock").write_text(lock(resolved("wheel", *build)), encoding="utf-8")
    (IMAGE / "sbom.cdx.json").write_text(bill(packages), encoding="utf-8")
    (ROOT / "docs" / "licences.md").write_text(page(packages), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
