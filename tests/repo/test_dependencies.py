"""Every dependency has a job, an owner, a bound and a licence, written down in docs/dependencies.md."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import packages_distributions

import pytest

from tests.repo.tree import python
from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def declared() -> dict[str, str]:
    """Return name → bound of every dependency in pyproject.toml; our own extras are none."""
    every = [*PROJECT["dependencies"], *(one for extra in PROJECT["optional-dependencies"].values() for one in extra)]
    pairs = (re.fullmatch(r"([A-Za-z0-9_.-]+(?:\[[a-z,]+\])?)(.*)", one) for one in every)
    return {pair[1]: pair[2] for pair in pairs if pair and not pair[1].startswith("interlock")}


def documented() -> dict[str, tuple[str, ...]]:
    """Return name → (bound, job, owner, licence) of every row of the page."""
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    return {row[0]: tuple(cell.strip() for cell in row[1:]) for row in ROW.findall(page)}


def test_the_page_names_exactly_what_is_declared():
    """A dependency that nobody explained, and a row about one that is gone, are both found."""
    assert documented().keys() == declared().keys()


def test_the_page_gives_the_bounds_that_are_declared():
    """Every bound on the page is the one that pip sees."""
    assert {name: row[0] for name, row in documented().items()} == declared()


@pytest.mark.parametrize("name", sorted(declared()))
def test_every_dependency_has_a_lower_and_an_upper_bound(name):
    """An install next year gets versions that we have seen, or is refused."""
    bound = declared()[name]

    assert bound.startswith("==") or ("<" in bound and ">=" in bound)


@pytest.mark.parametrize("name", sorted(documented()))
def test_every_owner_is_a_folder_or_file_that_uses_it(name):
    """An owner on the page exists in the tree."""
    for owner in re.findall(r"`([^`]+)`", documented()[name][2]):
        assert (ROOT / owner).exists() or (ROOT / "services" / "interlock" / owner).exists()


# uvicorn loads httptools by name, and the model's own package loads spaCy.
BY_NAME = {"httptools", "spacy"}


def plain(name: str) -> str:
    """Return *name* as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def run_time() -> set[str]:
    """Return the names of what an installed Interlock may need."""
    extras = PROJECT["optional-dependencies"]
    every = [*PROJECT["dependencies"], *extras["dpe"], *extras["embedded"], *extras["otlp"]]
    return {re.match(r"[A-Za-z0-9_.-]+", one)[0] for one in every}


@pytest.mark.parametrize("name", sorted(run_time() - BY_NAME))
def test_every_run_time_dependency_is_imported(name):
    """A dependency that no module imports has no job."""
    modules = [m for m, owners in packages_distributions().items() if plain(name) in map(plain, owners)]
    word = rf"(?:{'|'.join(map(re.escape, modules))})\b"
    pattern = re.compile(rf"^\s*(?:import|from) {word}|import_module\(\"{word}", re.MULTILINE)

    assert modules
    assert any(pattern.search(text) for path, text in python() if path.parts[0] == "services")
