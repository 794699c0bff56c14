"""Find every metric that the services define, by reading the source (for gen_docs.py)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

KINDS = {"Counter": "counter", "Gauge": "gauge", "Histogram": "histogram"}


@dataclass(frozen=True)
class Metric:
    """One metric as a scrape shows it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str
    room: str
    """The part of the package that defines it, such as ``sidecar``."""


def find(package: Path) -> list[Metric]:
    """Return the metrics of *package*, by name."""
    found = (metric for path in sorted(package.rglob("*.py")) for metric in _of_file(path, package))
    return sorted(found, key=lambda metric: metric.name)


def _of_file(path: Path, package: Path) -> Iterator[Metric]:
    text = path.read_text(encoding="utf-8")
    if "from prometheus_client import" not in text:
        return
    module = ast.parse(text)
    lists = {
        target.id: statement.value
        for statement in module.body if isinstance(statement, ast.Assign)
        for target in statement.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    for statement in module.body:
        made = getattr(statement, "value", None)
        if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id in KINDS:
            yield _metric(made, KINDS[made.func.id], lists, path.relative_to(package).parts[0])


def _metric(made: ast.Call, kind: str, lists: Mapping[str, ast.expr], room: str) -> Metric:
    name, meaning = (ast.literal_eval(argument) for argument in made.args[:2])
    labels = tuple(_words(made.args[2], lists)) if len(made.args) > 2 else ()
    full = name if kind != "counter" or name.endswith("_total") else f"{name}_total"
    return Metric(full, kind, labels, meaning, room)


def _words(node: ast.expr, lists: Mapping[str, ast.expr]) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield from _words(lists[node.id], lists)
    elif isinstance(node, ast.Starred):
        yield from _words(node.value, lists)
    elif isinstance(node, ast.List | ast.Tuple):
        for element in node.elts:
            yield from _words(element, lists)
    else:
        yield ast.literal_eval(node)
