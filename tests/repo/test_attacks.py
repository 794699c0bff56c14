"""Every attack that we know of has a test named after it, and a line in docs/security.md that says what stands against it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.paths import ROOT

ATTACKS = ROOT / "tests" / "attacks"
ROWS = [f"A-{number:02}" for number in (*range(1, 49), 52, 60)]

_TEST = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)
_FILE = re.compile(r"test_a(\d\d)_\w+\.py")
_ROW = re.compile(r"^\| (A-\d\d) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_NAMED = re.compile(r"`([^`]+)`")


def named_after(row: str) -> list[str]:
    """Names of the test functions of a row, in whatever file of tests/attacks."""
    prefix = f"test_{row.lower().replace('-', '')}_"
    found = [name for path in ATTACKS.rglob("test_*.py") for name in _TEST.findall(path.read_text(encoding="utf-8"))]
    return [name for name in found if name.startswith(prefix)]


def documented() -> dict[str, tuple[str, str, str]]:
    """Row → attack, defence and tests, as the page has them."""
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    return {row[0]: (row[1], row[2], row[3]) for row in _ROW.findall(page)}


@pytest.mark.parametrize("row", ROWS)
def test_every_attack_has_a_test_named_after_it(row):
    """A row without a test is a promise that nobody holds."""
    assert named_after(row)


@pytest.mark.parametrize("path", sorted(ATTACKS.rglob("test_*.py")), ids=lambda path: path.name)
def test_a_file_of_attacks_holds_the_tests_of_its_row(path: Path):
    """The name of each test begins with the row in the name of its file."""
    number = _FILE.fullmatch(path.name)

    assert number
    assert {name[:9] for name in _TEST.findall(path.read_text(encoding="utf-8"))} == {f"test_a{number[1]}_"}


def test_the_page_has_every_row_and_no_other():
    """A row that was added to the tests or to the page alone is found."""
    assert sorted(documented()) == ROWS


@pytest.mark.parametrize("row", ROWS)
def test_what_the_page_says_of_a_row_is_there(row):
    """Each module that defends exists, and the file of its tests is the file of its tests."""
    _, defence, tests = documented()[row]
    modules = [name for name in _NAMED.findall(defence) if "/" in name]
    files = _NAMED.findall(tests)

    assert modules
    assert files
    for module in modules:
        assert (ROOT / "services" / "interlock" / module).exists() or (ROOT / module).exists(), module
    for name in files:
        assert list(ROOT.glob(name)), name
    assert any(Path(name).name.startswith(f"test_{row.lower().replace('-', '')}_") for name in files)
