"""Measure the mutation score of the modules that decide: budget, token, policy, chain, Merkle log.

mutmut writes the mutants: every function of a module, changed in one place each, behind a switch. The tests are collected once and
run in a fork for each mutant, up to the first that fails; what no test notices is listed with its difference. Module-level
tables and patterns are not mutated.

    python scripts/mutation.py                     every module
    python scripts/mutation.py budget chain        some
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TESTS = {
    "budget": ["unit/domain/test_budget.py", "unit/domain/test_budget_edges.py"],
    "token": ["unit/domain/session/test_token.py", "unit/domain/session/test_token_edges.py"],
    "policy_order": [
        "unit/domain/policy/test_policy_order.py",
        "unit/domain/policy/test_policy_edges.py",
        "property/test_policy_order.py",
    ],
    "policy_text": [
        "unit/domain/policy/test_policy_text.py",
        "unit/domain/policy/test_policy_edges.py",
        "property/test_policy_language.py",
    ],
    "chain": [
        "unit/domain/chain/test_chain.py",
        "unit/domain/chain/test_chain_edges.py",
        "unit/audit/sealing/test_chain_tampering.py",
    ],
    "merkle": ["unit/domain/merkle/test_merkle_edges.py", "property/test_merkle.py"],
}
"""Module of ``interlock.domain`` to the tests that hold it, the quick ones first."""

TARGET = 0.80
SPARE_S, SPARE_RUNS = 5, 3
"""What one mutant may take beyond the unchanged tests: CPU seconds, and as many times theirs. More is an endless loop, and noticed."""

PROFILE = """
from hypothesis import Phase

# The same examples for every mutant, and none made smaller: that one failed is all that is asked.
settings.register_profile("mutation", deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
settings.load_profile("mutation")
"""
"""Put behind the tests' own profile."""

_FUNCTION = "^def {}\\(.*?(?=^(?:def|async def|class|@|mutants_)|\\Z)"
_METHOD = "^    def {}\\(.*?(?=^    (?:def|async def|@)|^\\S|\\Z)"


def main() -> int:
    """Return 0 when every module reaches the target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help=f"of {', '.join(TESTS)}; all of them without any")
    parser.add_argument("--quiet", action="store_true", help="the scores alone")
    parser.add_argument("--quick", action="store_true", help="with the first tests of each module alone")
    given = parser.parse_args()
    scores = {module: _measured(module, quiet=given.quiet, quick=given.quick) for module in given.modules or TESTS}
    print(f"{'module':14} {'mutants':>8} {'noticed':>8} {'score':>7}")
    for module, (noticed, total) in scores.items():
        print(f"{module:14} {total:8} {noticed:8} {noticed / max(total, 1):7.1%}")
    return 0 if all(noticed >= TARGET * total for noticed, total in scores.values()) else 1


def _measured(module: str, *, quiet: bool, quick: bool) -> tuple[int, int]:
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        scratch = Path(folder)
        _lay_out(module, scratch)
        tests = [f"tests/{name}" for name in TESTS[module] if (scratch / "tests" / name).exists()]
        tests = tests[:2] if quick else tests
        command = [sys.executable, str(Path(__file__).resolve()), "--run", module, *tests]
        env = {**os.environ, "PYTHONPATH": f"{scratch}{os.pathsep}{Path(__file__).parent}"}
        done = subprocess.run(command, cwd=scratch, env=env, capture_output=True, text=True, check=False)
        if not (scratch / "found.json").exists():
            raise SystemExit(f"{module}: the run failed\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        found: dict[str, bool] = json.loads((scratch / "found.json").read_text(encoding="utf-8"))
        mutated = (scratch / "interlock" / "domain" / f"{module}.py").read_text(encoding="utf-8")
    if not quiet:
        for name in (name for name, noticed in found.items() if not noticed):
            print(f"--- {module}: {name}\n{_difference(mutated, name)}")
    return sum(found.values()), len(found)


def _lay_out(module: str, scratch: Path) -> None:
    """Copy the tree with the package at its root, the module mutated."""
    ignored = shutil.ignore_patterns("__pycache__", "models", "out", "corpus")
    shutil.copytree(ROOT / "services" / "interlock", scratch / "interlock", ignore=ignored)
    for name in ("tests", "fuzz"):
        shutil.copytree(ROOT / name, scratch / name, ignore=ignored)
    with (scratch / "tests" / "conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(PROFILE)
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8").replace('["services", "."]', '["."]')
    settings += '\n[tool.mutmut]\nsource_paths = ["interlock/"]\n'
    (scratch / "pyproject.toml").write_text(settings, encoding="utf-8")
    subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), "--mutate", f"interlock/domain/{module}.py"],
        cwd=scratch,
        check=True,
    )


def _mutate(path: Path) -> None:
    """Put the mutants of a file into it; the settings of mutmut are those of the folder that we are in."""
    from mutmut.mutation.file_mutation import mutate_file_contents

    mutated = mutate_file_contents(str(path), path.read_text(encoding="utf-8"))
    path.write_text(mutated.code, encoding="utf-8")
    names = [f"{path.stem}.{name}" for name in mutated.mutant_names]
    Path("mutants.json").write_text(json.dumps(names), encoding="utf-8")


class _Runner:
    """A pytest plugin that, instead of running the tests once, runs them for each mutant."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._limit_s = 0.0

    def pytest_runtestloop(self, session: Any) -> bool:
        """Run the tests unchanged, which must pass, then once for each mutant."""
        before = os.times()
        if not self._passes(session, ""):
            raise SystemExit("the tests fail without any change")
        after = os.times()
        took_s = after.children_user + after.children_system - before.children_user - before.children_system
        self._limit_s = SPARE_S + (1 + SPARE_RUNS) * took_s
        found = {}
        for name in self._names:
            found[name] = not self._passes(session, f"interlock.domain.{name}")
            Path("found.json").write_text(json.dumps(found), encoding="utf-8")
        return True

    def _passes(self, session: Any, mutant: str) -> bool:
        child = os.fork()
        if child == 0:
            os._exit(self._run(session, mutant))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def _run(self, session: Any, mutant: str) -> int:
        """Run every test up to the first that fails, in a process of its own: no cache of one mutant is seen by another."""
        from _pytest.runner import runtestprotocol

        os.environ["MUTANT_UNDER_TEST"] = mutant
        signal.setitimer(signal.ITIMER_PROF, self._limit_s)  # 0, for the unchanged tests, is no limit
        for item in session.items:
            if any(report.failed for report in runtestprotocol(item, log=False, nextitem=None)):
                return 1
        return 0


def _run(tests: list[str]) -> int:
    import pytest

    names = json.loads(Path("mutants.json").read_text(encoding="utf-8"))
    return pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests], plugins=[_Runner(names)])


def _difference(mutated: str, name: str) -> str:
    """Return what a mutant changes, found by its name among the functions of the mutated module."""
    short = name.rpartition(".")[2]
    original = re.sub(r"__mutmut_\d+$", "__mutmut_orig", short)

    def lines(function: str) -> list[str]:
        for shape in (_FUNCTION, _METHOD):
            if found := re.search(shape.format(re.escape(function)), mutated, re.MULTILINE | re.DOTALL):
                return found[0].replace(function, "f").splitlines()
        return []

    changed = difflib.unified_diff(lines(original), lines(short), lineterm="", n=0)
    return "\n".join(line for line in changed if line[0] in "+-" and not line.startswith(("+++", "---")))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--mutate"]:
        _mutate(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["--run"]:
        sys.exit(_run(sys.argv[3:]))
    else:
        sys.exit(main())
