"""Promises about our own text: sizes, docstrings, TODOs, nothing of one machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repo.tree import python, texts
from tests.support.paths import ROOT

MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_TEST = 750  # tables of cases are long and still read from top to bottom
MOST_LINES_OF_A_FUNCTION = 60
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
# A note for later names its issue; (#n) is how our own texts speak of the rule.
TODO = re.compile(r"\bTODO\b(?!\(#(?:\d+|n)\))|\bFIXME\b|\bXXX\b")
# /opt/interlock is where the image has it.
MACHINE = re.compile(
    r"/(?:home|Users|root|opt(?!/interlock)|work|mnt)/[a-z]|\\Users\\|file:///[a-z]|extra-index-url|find-links"
)
MOCKS = re.compile(r"unittest\.mock|from unittest import mock|monkeypatch\.setattr\(\s*[\"']?interlock")
HERE = Path(__file__).resolve()


def found(pattern: re.Pattern[str]) -> list[str]:
    """Return every line of ours, outside this file, in which *pattern* is."""
    lines = ((path, line) for path, text in texts() if ROOT / path != HERE for line in text.splitlines())
    return [f"{path}: {line.strip()}" for path, line in lines if pattern.search(line)]


def functions(text: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function in *text*."""
    return (node for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTION))


def test_no_python_file_is_longer_than_its_bound():
    """A file that grew past 400 lines, a test past 750, is two files."""
    bounds = {path: MOST_LINES_OF_A_TEST if path.parts[0] == "tests" else MOST_LINES_OF_A_FILE for path, _ in python()}
    long = {str(path): lines for path, text in python() if (lines := text.count("\n")) > bounds[path]}

    assert not long


def test_no_function_is_longer_than_60_lines():
    """A function can be read without scrolling."""
    long = [
        f"{path}:{one.lineno} {one.name}"
        for path, text in python()
        for one in functions(text)
        if (one.end_lineno or one.lineno) - one.lineno + 1 > MOST_LINES_OF_A_FUNCTION
    ]

    assert not long


def test_every_test_says_in_a_sentence_what_it_shows():
    """A test without a docstring cannot be read by someone who does not know the code."""
    silent = [
        f"{path}:{one.lineno} {one.name}"
        for path, text in python()
        if path.name.startswith("test_")
        for one in functions(text)
        if one.name.startswith("test_") and not ast.get_docstring(one)
    ]

    assert not silent


def test_every_todo_names_its_issue():
    """Work left for later is in the tracker, not only in a comment."""
    assert not found(TODO)


def test_nothing_names_the_machine_it_was_written_on():
    """No home directory, private registry or local package index is in any file."""
    assert not found(MACHINE)


def test_no_test_replaces_our_own_code():
    """Tests use real parts: no unittest.mock anywhere, no patching of interlock modules."""
    assert not found(MOCKS)


@pytest.mark.parametrize(
    ("line", "caught"),
    [("# TODO: later", True), ("# TODO(#12): later", False), ("XXX", True), ("todos = []", False)],
)
def test_the_todo_pattern_tells_named_from_loose(line, caught):
    """The pattern above finds what it is for and leaves the rest alone."""
    assert bool(TODO.search(line)) is caught


@pytest.mark.parametrize(
    ("line", "caught"),
    [
        ("open('/home/someone/x')", True),
        ("/opt/other", True),
        ("/opt/interlock/bin", False),
        ("pip --find-links x", True),
        ("/v1/models", False),
        ("/proc/x", False),
    ],
)
def test_the_machine_pattern_tells_ours_from_one_machine(line, caught):
    """The pattern above finds what it is for and leaves the rest alone."""
    assert bool(MACHINE.search(line)) is caught
