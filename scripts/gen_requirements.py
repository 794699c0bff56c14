"""Write docs/requirements.md: which tests verify which requirement, read from the ``req`` markers.

python scripts/gen_requirements.py            write
python scripts/gen_requirements.py --check    exit 1 when the committed page differs or a marker names no requirement
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IDS = ROOT / "tests" / "repo" / "requirement_ids.txt"
TARGET = ROOT / "docs" / "requirements.md"
HEAD = """# Requirements and their tests

`scripts/gen_requirements.py` generates this page from the `req` markers of the tests. Do not edit it. A requirement without a
test is not claimed.

| id | requirement | tests |
| --- | --- | --- |
"""


def titles() -> dict[str, str]:
    """Return every requirement id with its title, in order."""
    lines = IDS.read_text(encoding="utf-8").splitlines()
    return {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in lines}


def _ids(module: ast.Module) -> set[str]:
    """Return the ids of every ``pytest.mark.req(...)`` in *module*."""
    calls = (node for node in ast.walk(module) if isinstance(node, ast.Call))
    marks = (call for call in calls if ast.unparse(call.func) == "pytest.mark.req")
    return {str(arg.value) for mark in marks for arg in mark.args if isinstance(arg, ast.Constant)}


def shown() -> dict[str, list[str]]:
    """Return requirement id → the test files that verify it."""
    table: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for one in _ids(ast.parse(path.read_text(encoding="utf-8"))):
            table[one].append(str(path.relative_to(ROOT / "tests")))
    return table


def page() -> str:
    """Return the text of the page."""
    table, rows = shown(), []
    for one, title in titles().items():
        files = ", ".join(f"`{name}`" for name in table.get(one, ())) or "not yet"
        rows.append(f"| {one} | {title} | {files} |\n")
    return HEAD + "".join(rows)


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    unknown = sorted(shown().keys() - titles().keys())
    if unknown:
        print(f"markers name no requirement: {', '.join(unknown)}")
        return 1
    if check:
        fresh = TARGET.exists() and TARGET.read_text(encoding="utf-8") == page()
        print("requirements page is fresh" if fresh else "stale: docs/requirements.md; run scripts/gen_requirements.py")
        return 0 if fresh else 1
    TARGET.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
