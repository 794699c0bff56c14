"""The pages say what is so: links lead somewhere, and the commands they name exist."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from interlock.cli.main import app
from interlock.runtime.settings.model import Settings
from tests.repo.tree import texts
from tests.support.paths import ROOT

PAGES = {str(path): text for path, text in texts() if path.suffix == ".md"}
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?!https?://|#)([^)#]+)")
SETTING = re.compile(r"\bINTERLOCK_([A-Z0-9_]+)\b")
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)


def commands() -> Iterator[tuple[str, str]]:
    """Yield page and line of every shell line, comments and continuation aside."""
    for page, text in PAGES.items():
        for block in SHELL.findall(text):
            for line in block.replace("\\\n", " ").splitlines():
                if line.strip():
                    yield page, line


def words(line: str) -> list[str]:
    """Return the words of *line* without leading assignments and trailing comment."""
    every = shlex.split(line, comments=True)
    return every[next((i for i, word in enumerate(every) if "=" not in word), len(every)) :]


INTERLOCK = sorted({tuple(w) for _, line in commands() if (w := words(line)) and w[0].endswith("interlock")})
MAKE = sorted({w[1] for _, line in commands() if (w := words(line)) and w[0] == "make" and len(w) > 1})


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_link_to_a_file_leads_somewhere(page):
    """A link inside the repository points to a file that is there."""
    broken = [link for link in LINK.findall(PAGES[page]) if not (ROOT / page).parent.joinpath(link).exists()]

    assert not broken


def command_at(path: list[str]) -> Any:
    """Return the command at *path*; ``None`` when a word of it is none. Nothing is run."""
    command: Any = typer.main.get_command(app)
    for word in path:
        command = command.get_command(None, word) if hasattr(command, "get_command") else command
    return command


@pytest.mark.parametrize("command", INTERLOCK, ids=" ".join)
def test_every_interlock_command_on_a_page_exists(command):
    """The plain words after ``interlock`` lead to a command."""
    path = list(itertools.takewhile(lambda word: re.fullmatch(r"[a-z]+", word), command[1:3]))

    assert path
    assert command_at(path) is not None


def test_the_pages_name_commands_at_all():
    """The two tests beside this one have something to look at."""
    assert len(INTERLOCK) > 5
    assert {"demo", "test", "check", "bench"} <= set(MAKE)


@pytest.mark.parametrize("target", MAKE)
def test_every_make_target_on_a_page_exists(target):
    """What a page tells a person to make is in the Makefile."""
    assert target in TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8"))


def test_every_setting_on_a_page_exists():
    """A setting that was renamed is renamed on the pages."""
    known = {name.upper() for name in Settings.model_fields} | {
        "CONFIG_FILE", "FAILPOINTS", "KERNEL", "DECISION_AT", "DECISION_TICKET",
    }  # fmt: skip
    named = {(page, name) for page, text in PAGES.items() for name in SETTING.findall(text) if name != ""}

    assert not {(page, name) for page, name in named if name not in known}
