"""Carries out a Dockerfile in clean folders, without a container engine: COPY, RUN, ENV, ARG and WORKDIR as they are written.

A stage's root is a folder. RUN happens on this machine's own base: absolute paths of ENV and WORKDIR are below the root, and so a RUN
line must name what it writes by them. Users, capabilities and the base's own files are not shown this way.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Stage:
    """One stage after its last step."""

    root: Path
    base: str
    env: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = ""
    entrypoint: list[str] = field(default_factory=list)

    def inside(self, path: str) -> Path:
        """Return where a path of the image is here."""
        return self.root / str(Path("/") / self.workdir / path).lstrip("/")

    def environment(self) -> dict[str, str]:
        """Return the variables of a process, absolute paths below the root."""
        inherited = {
            name: os.environ[name]
            for name in os.environ
            if not name.startswith(("PYTHON", "INTERLOCK_", "VIRTUAL_ENV"))
        }
        return inherited | {name: str(self.inside(v)) if v.startswith("/") else v for name, v in self.env.items()}


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions with their arguments, continued lines joined and comments left out."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    joined = re.sub(r"\\\n", " ", lines)
    return [
        (word, rest.strip()) for line in joined.splitlines() if line.strip() for word, _, rest in [line.partition(" ")]
    ]


def build(dockerfile: Path, context: Path, scratch: Path, *, python: str) -> Stage:
    """Carry out *dockerfile* and return its last stage. *python* is the base's python3."""
    stages: dict[str, Stage] = {}
    stage = Stage(scratch, "")
    for word, rest in instructions(dockerfile.read_text(encoding="utf-8")):
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            stage = Stage(scratch / (name or "last"), base)
            stages[name or "last"] = stage
            stage.root.mkdir()
            _base_python(stage, python)
        else:
            _step(stage, word, rest, context, stages)
    return stage


def _base_python(stage: Stage, python: str) -> None:
    """Put the base's python3 first on the path, as the base image has it."""
    folder = stage.root.parent / f"{stage.root.name}-base"
    folder.mkdir()
    (folder / "python3").symlink_to(python)
    stage.env["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


def _step(stage: Stage, word: str, rest: str, context: Path, stages: dict[str, Stage]) -> None:
    if word == "ENV":
        stage.env |= dict(part.split("=", 1) for part in shlex.split(rest))
    elif word == "WORKDIR":
        stage.workdir = rest
        stage.inside(".").mkdir(parents=True, exist_ok=True)
    elif word == "COPY":
        _copy(stage, shlex.split(rest), context, stages)
    elif word == "RUN":
        done = subprocess.run(
            ["sh", "-euc", rest],
            cwd=stage.inside("."),
            env=_running(stage),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{rest}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    elif word == "USER":
        stage.user = rest
    elif word == "ENTRYPOINT":
        stage.entrypoint = [part.strip().strip('"') for part in rest.strip("[]").split(",")]
    else:
        assert word in {"ARG", "LABEL", "EXPOSE", "CMD"}, f"{word} is not carried out"


def _running(stage: Stage) -> dict[str, str]:
    return stage.environment() | {"PATH": stage.env["PATH"]}


def _copy(stage: Stage, parts: list[str], context: Path, stages: dict[str, Stage]) -> None:
    source = context
    if parts[0].startswith("--from="):
        source = stages[parts.pop(0).removeprefix("--from=")].root
    *names, target = parts
    for name in names:
        found = source / name.lstrip("/")
        into = stage.inside(target)
        if found.is_dir():
            shutil.copytree(
                found, into, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            into.mkdir(parents=True, exist_ok=True)
            shutil.copy(found, into)
