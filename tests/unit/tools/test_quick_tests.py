"""The choice of quick tests: what a change reaches is run, and nothing of what it reaches is forgotten."""

from __future__ import annotations

import sys
from functools import cache

import pytest

from tests.support.paths import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import quick_tests
from import_graph import direct


@cache
def repository():
    """Read the repository once, when the first test asks: a process that only collects the tests has no need of it."""
    return quick_tests.repository()


@cache
def edges():
    return quick_tests.needs(repository())


@cache
def direct_edges():
    return direct(repository())


def chosen(*changed: str) -> set[str]:
    return set(quick_tests.choose(set(changed), repository(), edges())[0])


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("services/interlock/dpe/values/units.py", "tests/unit/dpe/values/test_numbers.py"),
        ("services/interlock/dpe/data/units.txt", "tests/unit/dpe/test_summary.py"),
        ("services/interlock/dpe/values/gone.py", "tests/repo/test_docs.py"),
        ("services/interlock/cli/policy/commands.py", "tests/unit/cli/test_policy_cli.py"),
        ("tests/support/policy/policies.py", "tests/property/test_policy_order.py"),
        ("tests/conftest.py", "tests/unit/domain/test_budget.py"),
        ("scripts/gen_docs.py", "tests/unit/tools/test_gen_docs.py"),
        ("tests/unit/domain/test_budget.py", "tests/unit/domain/test_budget.py"),
        ("docs/limits.md", "tests/repo/test_docs.py"),
    ],
)
def test_the_tests_of_a_change_are_chosen(changed, test):
    """Through imports, packages, fixtures, data, names in a text; the repository's own promises always."""
    assert test in chosen(changed)


def test_a_change_leaves_the_others_out():
    """One house's reader of dates is nothing to the policies."""
    found = chosen("services/interlock/dpe/values/dates.py")

    assert "tests/unit/dpe/values/test_dates.py" in found
    assert not [file for file in found if "policy" in file]


def test_without_a_change_everything_quick_is_chosen():
    """Everything but what needs a server or is on the list of slow files, and both are told."""
    files, left_out = quick_tests.choose(set(), repository(), edges())
    told = {line.partition(" ")[0] for line in left_out}
    every = set(quick_tests.tests_in(quick_tests.QUICK, repository()).values())

    assert set(files) | told == every
    assert quick_tests.SLOW.keys() < told
    assert "tests/property/test_session_lua.py" in told - quick_tests.SLOW.keys()


def test_a_slow_test_runs_where_few_do():
    """Someone who changes the policy language sees its laws at once."""
    assert "tests/property/test_policy_language.py" in chosen("tests/support/policy/policy_grammar.py")


@pytest.mark.parametrize("house", sorted(quick_tests.areas()))
def test_every_house_has_tests(house):
    """`make test AREA=house` finds something, and only what is there."""
    found = quick_tests.area(house, repository(), direct_edges())

    assert found
    assert all((ROOT / one).exists() for one in found)


def test_a_house_has_its_laws_and_attacks():
    """Not its own folders alone: what imports it elsewhere too, and no more than that."""
    found = quick_tests.area("session", repository(), direct_edges())

    assert {"tests/wire/session", "tests/property/test_session_lua.py", "tests/contract/test_session_store.py"} <= {
        *found
    }
    assert "tests/contract/test_audit_log.py" not in found
