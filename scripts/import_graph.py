"""Who imports whom, read from the source without importing anything. `quick_tests.py` and tests/repo/test_layers.py use it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

Edges = Mapping[str, AbstractSet[str]]
"""Module name → names of the modules that it imports itself."""


@dataclass(frozen=True)
class Module:
    """One Python file; *name* is dotted, as importers write it."""

    name: str
    path: Path
    is_package: bool

    @property
    def source(self) -> str:
        """The text of the file."""
        return self.path.read_text(encoding="utf-8")

    @property
    def imported(self) -> AbstractSet[tuple[str, str]]:
        """(package, name) of every import, those under TYPE_CHECKING and inside functions too.

        ``from a import b`` is ("a", "a.b"), which may be a module or a name inside ``a``; ``import a.b`` is ("a.b", "a.b").
        """
        return self._scanned[0]

    @property
    def texts(self) -> AbstractSet[str]:
        """Every constant string: names of modules that are imported late are among them."""
        return self._scanned[1]

    @cached_property
    def _scanned(self) -> tuple[frozenset[tuple[str, str]], frozenset[str]]:
        """Read both in one walk. The tree is not kept: those of all files are a million nodes for the garbage collector."""
        pairs: list[tuple[str, str]] = []
        texts: list[str] = []
        for node in ast.walk(ast.parse(self.source)):
            if isinstance(node, ast.Import):
                pairs += [(alias.name, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = self._base(node)
                pairs += [(base, f"{base}.{alias.name}") for alias in node.names]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
        return frozenset(pairs), frozenset(texts)

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        package = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*package, *([node.module] if node.module else [])])


def modules(folder: Path, *, root: Path) -> dict[str, Module]:
    """Return the modules below *folder* by name; names begin below *root*."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found[name] = Module(name, path, is_package)
    return found


def direct(known: Mapping[str, Module]) -> dict[str, set[str]]:
    """Return who imports whom among *known*; packages above what is imported do not count."""
    pairs = {name: module.imported for name, module in known.items()}
    return {
        name: {target for package, full in found if (target := full if full in known else package) in known}
        for name, found in pairs.items()
    }


def reached(starts: Iterable[str], edges: Edges) -> set[str]:
    """Return *starts* and all that they lead to."""
    found = set(starts)
    waiting = list(found)
    while waiting:
        fresh = edges.get(waiting.pop(), set()) - found
        found |= fresh
        waiting.extend(fresh)
    return found
