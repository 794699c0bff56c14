"""Pieces of the language of invariants (docs/kernel.md), written from a caller's names and values."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from interlock.client.kernel.calls import micros, number

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_WORDS = frozenset(
    {"and", "or", "not", "in", "true", "false", "size", "sum", "has", "had", "before", "uses", "spent", "left"}
)


def variable(key: str) -> str:
    """Return a variable's name as expressions have it; empty where they cannot name it."""
    return key if _NAME.fullmatch(key) and key not in _WORDS else ""


def bound(value: float) -> str:
    """Return a number as expressions have it; empty for one that they cannot hold exactly."""
    if isinstance(value, bool) or not math.isfinite(value) or abs(value) > 10**9:
        return ""
    try:
        return f"{number(micros(value)):.6f}".rstrip("0").rstrip(".")
    except ValueError:
        return ""


def listed(key: str, options: Sequence[Any]) -> str:
    """Return ``key in (…)`` for numbers alone or texts alone; empty for anything else."""
    held = variable(key)
    if all(isinstance(one, str) and not set('"\\') & set(one) and one.isprintable() and one for one in options):
        told = [f'"{one}"' for one in options]
    elif all(isinstance(one, int | float) for one in options):
        told = [bound(one) for one in options]
    else:
        return ""
    text = f"{held} in ({', '.join(told)})"
    return text if held and options and all(told) and len(text) <= 1_000 else ""
