"""The blocks of the pages that a reader may copy: found, named, and run as they are written."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.paths import ROOT

_FENCE = re.compile(r"^```(sh|python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PAGES = ("README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))


@dataclass(frozen=True)
class Block:
    """One block, or one command of a block that lists commands. Its name is its page and its first line, without a comment."""

    page: str
    language: str
    text: str

    @property
    def name(self) -> str:
        """Page and first line."""
        first = self.text.strip().splitlines()[0]
        return f"{self.page}: {first.partition('  #')[0].removesuffix(chr(92)).strip()}"


def blocks(by_line: Sequence[str]) -> list[Block]:
    """Return every block of the pages; those named in *by_line* command by command, since each is for itself."""
    return [one for block in _every() for one in (_lines(block) if block.name in by_line else (block,))]


def _every() -> Iterator[Block]:
    for page in _PAGES:
        for language, text in _FENCE.findall((ROOT / page).read_text(encoding="utf-8")):
            yield Block(page, language, text)


def _lines(block: Block) -> Iterator[Block]:
    for line in block.text.replace("\\\n", " ").splitlines():
        yield Block(block.page, block.language, line + "\n")


@dataclass(frozen=True)
class Desk:
    """A folder in which blocks are run: commands of this checkout on the path, and an environment of its own."""

    folder: Path
    environment: Mapping[str, str]

    @classmethod
    def laid(cls, folder: Path, environment: Mapping[str, str]) -> Desk:
        """Put ``interlock`` and ``python`` where a reader has them after `make demo`."""
        scripts = folder / ".venv" / "bin"
        scripts.mkdir(parents=True)
        for name, words in {
            "python": [sys.executable],
            "interlock": [sys.executable, "-m", "interlock.cli.main"],
        }.items():
            script = scripts / name
            script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            script.chmod(0o755)
        path = f"{scripts}{os.pathsep}{os.environ['PATH']}"
        source = os.pathsep.join((str(ROOT / "services"), str(ROOT)))
        return cls(folder, {**environment, "PATH": path, "PYTHONPATH": source, "HOME": str(folder)})

    def run(
        self, block: Block, given: Mapping[str, str] | None = None, *, timeout_s: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a block to its end. *given* replaces what stands for a reader's own: a port, an id, an object."""
        text = block.text
        for placeholder, value in (given or {}).items():
            assert placeholder in text, f"{block.name} has no {placeholder}"
            text = text.replace(placeholder, value)
        command = (
            [sys.executable, "-c", text] if block.language == "python" else ["bash", "-euo", "pipefail", "-c", text]
        )
        return subprocess.run(
            command, cwd=self.folder, env=dict(self.environment), capture_output=True, text=True, timeout=timeout_s, check=False
        )  # fmt: skip


def session_of(block: Block) -> tuple[str, str]:
    """Return the commands of a console session, and what they are to print."""
    lines = block.text.splitlines()
    commands = "\n".join(line.removeprefix("$ ") for line in lines if line.startswith("$ "))
    return commands, "\n".join(line for line in lines if not line.startswith("$ "))
