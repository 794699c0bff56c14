"""The files that are ours: what git tracks or would track."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from tests.support.paths import ROOT

_NOT_OURS = {".git", ".venv", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}
_NOT_OURS |= {".import_linter_cache", ".interlock", ".venv-agents", ".venv-litellm", "node_modules", "build", "dist"}
GENERATED = ROOT / "services" / "interlock" / "api"


@cache
def files() -> tuple[Path, ...]:
    """Every file of the repository that exists; in a copy without git, every file outside caches."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode == 0:
        found = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        found = [p for p in ROOT.rglob("*") if not _NOT_OURS & set(p.relative_to(ROOT).parts)]
    return tuple(sorted(p for p in found if p.is_file()))


def texts() -> list[tuple[Path, str]]:
    """Every text file with its content, generated stubs aside."""
    pairs = []
    for path in files():
        if GENERATED not in path.parents:
            data = path.read_bytes()
            if b"\0" not in data:
                pairs.append((path.relative_to(ROOT), data.decode("utf-8", errors="replace")))
    return pairs


def python() -> list[tuple[Path, str]]:
    """Every Python file of ours with its content, generated stubs aside."""
    return [(path, text) for path, text in texts() if path.suffix == ".py"]
