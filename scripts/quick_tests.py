"""Choose tests: those of what changed (`make test-quick`), or those of one house (`make test AREA=dpe`).

python scripts/quick_tests.py                 run the quick tests of what changed; without changes, all quick tests
python scripts/quick_tests.py --list          print their files instead
python scripts/quick_tests.py --area dpe      print the files and folders of the tests of one house
python scripts/quick_tests.py -- -x -k name   hand the rest on to pytest

Quick are tests/unit, tests/property and tests/repo without tests that load a model or need a server. A change is a file that
differs from the nearest commit of main, committed or not. Its tests are those that import it, directly or through others.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from import_graph import ROOT, Edges, Module, direct, modules, reached

QUICK = ("tests/unit", "tests/property", "tests/repo")
ALWAYS = "tests/repo"
OF_A_HOUSE = ("tests/unit", "tests/wire")
TOUCHING_A_HOUSE = ("tests/property", "tests/contract", "tests/attacks", "tests/adversarial", "tests/conformance")

SERVERS = frozenset({"valkey", "redis_url", "postgres", "postgres_url"})
"""Fixtures of tests/conftest.py that start a server."""

SLOW = {
    "tests/property/test_chain_laws.py": 3,
    "tests/property/test_policy_language.py": 8,
    "tests/property/test_policy_layers.py": 5,
    "tests/property/test_policy_order.py": 9,
    "tests/property/test_remedies.py": 3,
    "tests/unit/audit/sealing/test_chain_tampering.py": 10,
    "tests/unit/dpe/grounding/test_fabrication.py": 7,
    "tests/unit/runtime/pictures/test_dag_picture.py": 5,
}
"""Test file → seconds of CPU. They are left out where many files are chosen, and run where few are."""
FEW = 80

Known = Mapping[str, Module]


def repository() -> dict[str, Module]:
    """Return every module of ours: the product, its tests, and what the tests look at."""
    found = modules(ROOT / "services" / "interlock", root=ROOT / "services")
    for folder in ("tests", "bench", "fuzz", "scripts"):
        found |= modules(ROOT / folder, root=ROOT)
    return found


def needs(known: Known) -> Edges:
    """Return module → all names that may change it: imports, packages above them, fixtures, modules named in a text.

    A name need not be a module any more: the tests of a file that is gone are those that still import it.
    """
    scripts = {name.rpartition(".")[2]: name for name in known if name.startswith("scripts.")}
    edges: dict[str, set[str]] = {}
    for name, module in known.items():
        found = {one for pair in module.imported for one in pair}
        found |= {scripts[one] for one in found if one in scripts}
        found |= {one for one in module.texts if one in known}
        edges[name] = {above for one in found for above in _with_packages(one)} - {name}
        if name.startswith("tests."):
            edges[name] |= {f"{above}.conftest" for above in _with_packages(name)} & known.keys()
    return edges


def _with_packages(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def touched(changed: Iterable[str], known: Known) -> set[str]:
    """Return the modules that changed files stand for; data stands for the modules of the nearest folder of code above it."""
    by_folder = defaultdict(set)
    for name, module in known.items():
        by_folder[module.path.parent].add(name)
    found = set()
    for file in changed:
        path = ROOT / file
        if path.suffix == ".py":
            parts = Path(file).relative_to("services" if file.startswith("services/") else ".").with_suffix("").parts
            found.add(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
        elif file.startswith(("services/", "tests/", "bench/", "fuzz/")):
            found |= next((by_folder[above] for above in path.parents if by_folder.get(above)), set())
    return found


def dependents(names: Iterable[str], edges: Edges) -> set[str]:
    """Return *names* and every module that needs one of them, directly or through others."""
    turned: dict[str, set[str]] = defaultdict(set)
    for name, targets in edges.items():
        for target in targets:
            turned[target].add(name)
    return reached(names, turned)


def tests_in(folders: Iterable[str], known: Known) -> dict[str, str]:
    """Return module → file of every test module inside *folders*."""
    starts = tuple(f"{folder}/" for folder in folders)
    files = {name: module.path.relative_to(ROOT).as_posix() for name, module in known.items()}
    return {
        name: file for name, file in files.items() if file.startswith(starts) and Path(file).name.startswith("test_")
    }


def needs_server(module: Module) -> bool:
    """Tell whether a function of *module* takes a fixture that starts a server."""
    if not any(name in module.source for name in SERVERS):
        return False
    functions = [
        node for node in ast.walk(ast.parse(module.source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return any(argument.arg in SERVERS for one in functions for argument in one.args.args)


def choose(changed: set[str], known: Known, edges: Edges) -> tuple[list[str], list[str]]:
    """Return the quick test files for *changed*, all for none, and what of them is left out, with the reason."""
    every = tests_in(QUICK, known)
    meant = dependents(touched(changed, known), edges) if changed else known.keys()
    chosen = {file: known[name] for name, file in every.items() if name in meant or file.startswith(ALWAYS)}
    left_out = {file: "needs a server" for file, module in chosen.items() if needs_server(module)}
    if len(chosen) > FEW:
        left_out |= {file: f"takes {SLOW[file]} s" for file in chosen if file in SLOW and file not in changed}
    return sorted(chosen.keys() - left_out.keys()), [f"{file} ({why})" for file, why in sorted(left_out.items())]


def area(house: str, known: Known, edges: Edges) -> list[str]:
    """Return the folders of the tests of *house*, and the files of laws, ports and attacks that import it by *edges*.

    What they import of the tests' own support counts as theirs; what the product imports does not.
    """
    folders = [folder for start in OF_A_HOUSE if (ROOT / (folder := f"{start}/{house}")).is_dir()]
    own = f"interlock.{house}."
    within = {name: targets for name, targets in edges.items() if name.startswith("tests.")}
    files = tests_in(TOUCHING_A_HOUSE, known)
    return folders + sorted(
        file for name, file in files.items() if any(one.startswith(own) for one in reached([name], within))
    )


def areas() -> set[str]:
    """Return the names that `make test AREA=` takes."""
    houses = {path.name for path in (ROOT / "services" / "interlock").iterdir() if (path / "__init__.py").is_file()}
    return (houses - {"api"}) | {path.parent.name for path in (ROOT / "tests" / "unit").glob("*/__init__.py")}


def changes() -> tuple[str, set[str]]:
    """Return the commit that is compared with, and the files that differ from it; without git, none."""
    refs = [ref for ref in ("main", "origin/main") if _git("rev-parse", "--verify", "--quiet", ref)]
    base = _git("merge-base", "HEAD", *refs).strip() if refs else "HEAD"
    differ = _git("diff", "--name-only", "--no-renames", "-z", base)
    fresh = _git("ls-files", "--others", "--exclude-standard", "-z")
    return base[:7], {name for name in (differ + fresh).split("\0") if name}


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout


def run(files: list[str], jobs: int, rest: list[str]) -> int:
    """Run pytest on *files* and return its exit code."""
    started = time.monotonic()
    command = ["-q", "-m", "not long and not models", "-n", str(jobs), "--dist", "loadfile", *rest, *files]
    code = subprocess.run([sys.executable, "-m", "pytest", *command], cwd=ROOT, check=False).returncode
    print(f"{time.monotonic() - started:.0f} s")
    return code


def main() -> int:
    """Read the arguments and run or print what they ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the files, run nothing")
    parser.add_argument("--area", choices=sorted(areas()), help="print the tests of one house, run nothing")
    parser.add_argument("--jobs", type=int, default=2, help="processes of pytest")
    parser.add_argument("rest", nargs="*", help="arguments of pytest, after --")
    asked = parser.parse_args()
    known = repository()
    if asked.area:
        print(*area(asked.area, known, direct(known)))
        return 0
    base, changed = changes()
    files, left_out = choose(changed, known, needs(known))
    if asked.list:
        print(*files, sep="\n")
        return 0
    what = (
        f"{len(changed)} files differ from {base}"
        if changed
        else f"nothing differs from {base or 'main'}: all quick tests"
    )
    print(f"{what}; {len(files)} test files. Left to `make test`: tests that load models", *left_out, sep="\n  ")
    return run(files, asked.jobs, asked.rest)


if __name__ == "__main__":
    sys.exit(main())
