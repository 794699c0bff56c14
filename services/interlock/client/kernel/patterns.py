"""What the factories look for in texts: patterns of RE2, personal data, types of fields."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_PERSONAL = (
    r"\b\d{3}-\d{2}-\d{4}\b",
    r"\b(?:\d{4}[ -]?){3}\d{4}\b",
    r"\b[\w.%+-]+@[\w.-]+\.[A-Za-z]{2,}\b",
    r"(?:\+?1[ .-]?)?(?:\(\d{3}\)|\b\d{3})[ .-]?\d{3}[ .-]?\d{4}\b",
)


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """Return a pattern that is matched in linear time. Raises ``ValueError`` for one that RE2 does not have."""
    import re2  # where a pattern is used alone: it takes a while to load

    try:
        return re2.compile(pattern)
    except re2.error as error:
        raise ValueError(f"not a pattern of RE2: {error}") from None


def found(pattern: str, text: str) -> bool:
    """Tell whether a pattern matches anywhere in a text."""
    return compiled(pattern).search(text) is not None


def personal(text: str) -> bool:
    """Tell whether a text has what looks like a social security, card or telephone number, or an e-mail address."""
    return any(found(one, text) for one in _PERSONAL)


def times(held: Any) -> list[float]:
    """Return the times in a list, seconds; what is no number, as such or as text, is left out."""
    items = [one for one in held if isinstance(one, int | float | str)] if isinstance(held, list | tuple) else []
    found = []
    for one in items:
        with contextlib.suppress(ValueError):
            found.append(float(one))
    return found


def typed(value: Any, wanted: Mapping[str, type]) -> bool:
    """Tell whether an object, or its JSON text, has fields of these types; fields that are absent are not looked at."""
    if value is None:
        return True
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return False
    return isinstance(value, dict) and all(
        isinstance(value[name], kind) for name, kind in wanted.items() if name in value
    )
