"""What the pods' containers hold: this tree's own package, the packages of the virtual environment, and this machine's base."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from tests.support.paths import ROOT

APP = "/opt/interlock"
PACKAGES = "/srv/packages"
ENTRYPOINT = [f"{APP}/bin/python3", "-I", "-m", "interlock.cli.main"]
"""ENTRYPOINT of deploy/Dockerfile. tests/deploy runs that file's own steps."""
ENV = {
    "PATH": f"{APP}/bin:/usr/local/bin:/usr/bin:/bin",
    "APP": APP,
    "INTERLOCK_STATE_DIR": "/var/lib/interlock",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
}


@dataclass(frozen=True)
class Image:
    """Folders of this machine by the place where a container has them, all to be read only."""

    mounts: tuple[tuple[str, str], ...]


def make(folder: Path) -> Image:
    """Make /opt/interlock below *folder*: the whole tree's package in it, so that ``python -I`` finds that and no other."""
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "services" / "interlock", site / "interlock", ignore=ignored)
    shutil.copytree(ROOT / "deploy" / "triton", site / "interlock" / "_deploy" / "triton", ignore=ignored)
    (site / "packages.pth").write_text(PACKAGES + "\n")
    base = Path(sys.base_prefix)
    python = base / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").symlink_to(python)
    (folder / "pyvenv.cfg").write_text(f"home = {python.parent}\ninclude-system-site-packages = false\n")
    etc = folder.parent / "etc"
    etc.mkdir()
    (etc / "passwd").write_text("root:x:0:0::/:/bin/false\nnobody:x:65534:65534::/:/bin/false\n")
    (etc / "group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (etc / "nsswitch.conf").write_text("hosts: files dns\n")
    for name in ("ssl", "ld.so.cache", "alternatives", "localtime"):
        if (found := Path("/etc") / name).exists():
            (shutil.copytree if found.is_dir() else shutil.copy)(found, etc / name, **_links(found))
    system = [one for one in ("/usr", "/bin", "/lib", "/lib64") if Path(one).exists()]
    own = [] if str(base).startswith("/usr") else [(str(base), str(base))]
    packages = sysconfig.get_paths()["purelib"]
    return Image(
        (
            # One by one: the folder itself is the container's, since volumes are mounted in it.
            *((str(one), f"/etc/{one.name}") for one in sorted(etc.iterdir())),
            *((one, one) for one in system),
            *own,
            (str(folder), APP),
            (packages, PACKAGES),
        )
    )


def _links(found: Path) -> dict[str, bool]:
    return {"symlinks": True} if found.is_dir() else {}
