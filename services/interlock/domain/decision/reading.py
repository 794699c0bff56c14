"""Reading what strangers sent, without ever raising, and writing it so that equal things are equal bytes."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache
from typing import Any

UNIT = 1_000_000
"""Confidences and seconds are counted in millionths, so that no comparison depends on rounding."""
DEEPEST, LONGEST_TEXT = 8, 1_000
LARGEST_NUMBER = 10**15

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, ASCII."""
    return _CANONICAL.encode(value)


def digest(value: Any) -> str:
    """Return the SHA-256 of a value's canonical text, 64 hex digits."""
    return digest_of(canonical(value))


def digest_of(text: str) -> str:
    """Return the SHA-256 of a canonical text, 64 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_name(text: object) -> bool:
    """Return whether a text may name something: 1 to 64 letters, digits, dots, hyphens or underscores."""
    return isinstance(text, str) and bool(_NAME.fullmatch(text))


def is_line(text: object, longest: int = LONGEST_TEXT) -> bool:
    """Return whether a text is short enough and can be written down everywhere."""
    return isinstance(text, str) and len(text) <= longest and not _lone_surrogate(text) and "\x00" not in text


def number(text: object) -> float | None:
    """Return the finite number that a text says, as ``repr`` of a float writes it; ``None`` for anything else."""
    if not isinstance(text, str) or len(text) > 40:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) <= LARGEST_NUMBER else None


@lru_cache(maxsize=4096)  # most confidences have two or three decimals
def micros(value: float) -> int:
    """Return millionths of a number, never more than it says: 0.7999999 is below 0.8."""
    return int((Decimal(repr(value)) * UNIT).to_integral_value(rounding=ROUND_FLOOR))


def confidence(text: object) -> int | None:
    """Return a confidence from 0 to 1 in millionths; ``None`` outside that, and for NaN."""
    value = number(text)
    return micros(value) if value is not None and 0 <= value <= 1 else None


def json_object(text: object, largest: int) -> dict[str, Any] | None:
    """Return the JSON object that a text of at most *largest* bytes says.

    ``None`` for anything else: NaN, infinities, names that stand twice, numbers beyond 10^15, deeper than 8 levels.
    """
    if not isinstance(text, str) or len(text) > largest or len(text.encode("utf-8", "replace")) > largest:
        return None
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _is_plain(value, DEEPEST) else None


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _no_constant(_name: str) -> Any:
    raise ValueError


def _is_plain(value: Any, depth: int) -> bool:
    if isinstance(value, str):
        return not _lone_surrogate(value)
    if isinstance(value, dict):
        return depth > 0 and all(is_line(name, 128) and _is_plain(one, depth - 1) for name, one in value.items())
    if isinstance(value, list):
        return depth > 0 and all(_is_plain(one, depth - 1) for one in value)
    if isinstance(value, float):
        return math.isfinite(value) and abs(value) <= LARGEST_NUMBER
    return value is None or isinstance(value, bool) or abs(value) <= LARGEST_NUMBER


def _lone_surrogate(text: str) -> bool:
    return not text.isascii() and _SURROGATE.search(text) is not None
