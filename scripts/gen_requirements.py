"""Write which tests verify which requirement and keep which finding closed, read from the markers of the tests.

The requirements (``req``) are docs/requirements.md, the findings (``finding``) a table in docs/security.md.

python scripts/gen_requirements.py            write
python scripts/gen_requirements.py --check    exit 1 when a committed page differs or a marker names nothing that is known
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KNOWN = ROOT / "tests" / "repo"
REQUIREMENTS, SECURITY = ROOT / "docs" / "requirements.md", ROOT / "docs" / "security.md"
HEAD = """# Requirements and their tests

`scripts/gen_requirements.py` generates this page from the `req` markers of the tests. Do not edit it. A requirement without a
test is not claimed.

| id | requirement | tests |
| --- | --- | --- |
"""
START, END = "<!-- findings, by scripts/gen_requirements.py -->\n", "<!-- end of the findings -->\n"


@dataclass(frozen=True)
class Marks:
    """One kind of marker, and what its ids mean."""

    marker: str
    ids: Path
    missing: str
    """What a row without a test says."""

    def titles(self) -> dict[str, str]:
        """Return every id with its title, in order."""
        lines = self.ids.read_text(encoding="utf-8").splitlines()
        return {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in lines}

    def shown(self) -> dict[str, list[str]]:
        """Return id → the test files that are marked with it."""
        table: dict[str, list[str]] = defaultdict(list)
        for path in sorted((ROOT / "tests").rglob("test_*.py")):
            for one in self._of(ast.parse(path.read_text(encoding="utf-8"))):
                table[one].append(str(path.relative_to(ROOT / "tests")))
        return table

    def _of(self, module: ast.Module) -> set[str]:
        calls = (node for node in ast.walk(module) if isinstance(node, ast.Call))
        named = (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == self.marker)
        marks = (call for call in named if ast.unparse(call.func) == f"pytest.mark.{self.marker}")
        return {str(arg.value) for mark in marks for arg in mark.args if isinstance(arg, ast.Constant)}

    def rows(self) -> str:
        """Return one row of a table for each id: id, title, tests."""
        table, rows = self.shown(), []
        for one, title in self.titles().items():
            files = ", ".join(f"`{name}`" for name in table.get(one, ())) or self.missing
            rows.append(f"| {one} | {title} | {files} |\n")
        return "".join(rows)


REQ = Marks("req", KNOWN / "requirement_ids.txt", "not yet")
FINDING = Marks("finding", KNOWN / "finding_ids.txt", "open")


def pages() -> dict[Path, str]:
    """Return what the pages should hold."""
    before, _, rest = SECURITY.read_text(encoding="utf-8").partition(START)
    table = "| finding | what was wrong | tests that keep it closed |\n| --- | --- | --- |\n" + FINDING.rows()
    return {REQUIREMENTS: HEAD + REQ.rows(), SECURITY: before + START + table + END + rest.partition(END)[2]}


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    unknown = sorted(one for marks in (REQ, FINDING) for one in marks.shown().keys() - marks.titles().keys())
    if unknown:
        print(f"markers name nothing that is known: {', '.join(unknown)}")
        return 1
    stale = {path: text for path, text in pages().items() if path.read_text(encoding="utf-8") != text}
    for path, text in stale.items():
        if check:
            print(f"stale: docs/{path.name}; run scripts/gen_requirements.py")
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
