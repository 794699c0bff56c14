"""Every way to attach names a command, and every command is there."""

from __future__ import annotations

import re

import pytest

from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "attach.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"\| `((?:make|pytest) [^`]+)` \|$", PAGE, re.MULTILINE)
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_every_row_has_a_command():
    """A way that nothing shows is not told of."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| from", "| ---"))]

    assert len(rows) == len(COMMANDS) >= 15


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_there(command):
    """A target of the Makefile, or files of tests."""
    program, *what = command.split()
    missing = [one for one in what if not (one in TARGETS if program == "make" else (ROOT / one).is_file())]

    assert not missing
