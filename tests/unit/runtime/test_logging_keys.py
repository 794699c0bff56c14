"""Every field that our code logs is on the list of harmless ones: anything else would read [redacted]."""

from __future__ import annotations

import ast

import pytest

from interlock.runtime.logging import _UNITS, SAFE_KEYS, TYPE_NAMES
from tests.support.paths import PACKAGE

METHODS = {"debug", "info", "warning", "error", "exception", "critical", "bind"}


def logged_fields() -> list[tuple[str, str]]:
    """Return (place, keyword) of every call on a name ``log``."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if "api" in path.relative_to(PACKAGE).parts[:1]:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and _is_log(node.func):
                place = f"{path.relative_to(PACKAGE)}:{node.lineno}"
                found += [(place, keyword.arg) for keyword in node.keywords if keyword.arg]
    return found


def _is_log(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr in METHODS
        and isinstance(function.value, ast.Name)
        and function.value.id in {"log", "_log", "logger"}
    )


@pytest.mark.req("SVC-5")
def test_every_logged_field_is_harmless():
    """No call logs a field that the list does not name."""
    fields = logged_fields()
    unknown = [(p, k) for p, k in fields if k not in SAFE_KEYS | TYPE_NAMES | {"exc_info"} and not k.endswith(_UNITS)]

    assert fields
    assert unknown == []
