"""JSON that can be read in one way only (reliability.md A-21).

Duplicate keys, NaN, deep nesting, lone surrogates and bytes that are not UTF-8 are refused, because a provider's parser
might read them differently from ours.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from typing import Any, NoReturn

from interlock.domain.errors import Refused, invalid

_STEPS = tuple((byte in b"[{") - (byte in b"]}") for byte in range(256))
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STRING = re.compile(rb'"[^"]*"')
_SMALLEST, _LARGEST, _MOST_DIGITS = -(2**63), 2**64 - 1, 20


def loads(data: bytes, *, max_depth: int) -> Any:
    """Return the value of *data*. Refused with INVALID_UTF8, JSON_TOO_DEEP, DUPLICATE_KEY or INVALID_JSON."""
    if data.count(b"[") + data.count(b"{") > max_depth and _depth(data) > max_depth:
        raise invalid("JSON_TOO_DEEP", f"the JSON is nested deeper than {max_depth} levels", limit=str(max_depth))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise invalid("INVALID_UTF8", "the body is not UTF-8", position=str(error.start)) from None
    try:
        value = _STRICT.decode(text)
    except json.JSONDecodeError as error:
        raise invalid("INVALID_JSON", f"the body is not JSON: {error.msg}", position=str(error.pos)) from None
    if b"\\ud" in data or b"\\uD" in data:
        _no_lone_surrogate(value)
    return value


def loads_object(data: bytes, *, max_depth: int) -> dict[str, Any]:
    """Return the object that a body is. Refused with INVALID_REQUEST for any other value, and as ``loads``."""
    value = loads(data, max_depth=max_depth)
    if not isinstance(value, dict):
        raise invalid("INVALID_REQUEST", "the body must be a JSON object")
    return value


def dumps(value: Any) -> bytes:
    """Return *value* as compact UTF-8."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _depth(data: bytes) -> int:
    """Return the deepest nesting by brackets alone, so that no parser recurses first.

    Escapes go before strings, strings before brackets. What is no JSON may count wrong; it is refused either way.
    """
    bare = _STRING.sub(b"", data.replace(rb"\\", b"").replace(rb"\"", b"")).translate(None, _NOT_BRACKETS)
    return max(itertools.accumulate(map(_STEPS.__getitem__, bare)), default=0)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise invalid("DUPLICATE_KEY", "an object of the body has a key twice")
    return found


def _no_constant(_name: str) -> NoReturn:
    raise _not_a_number()


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _not_a_number()
    return value


def _integer(text: str) -> int:
    """Return an integer of 64 bits; what is wider is a float to one parser and an integer to another."""
    value = int(text) if len(text) <= _MOST_DIGITS else _SMALLEST - 1
    if not _SMALLEST <= value <= _LARGEST:
        raise _not_a_number()
    return value


def _not_a_number() -> Refused:
    return invalid("INVALID_JSON", "the body holds NaN, Infinity or a number out of range")


def _no_lone_surrogate(value: Any) -> None:
    try:
        dumps(value)
    except UnicodeEncodeError:
        raise invalid("INVALID_UTF8", "the body holds half of a surrogate pair") from None


_STRICT = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_integer
)
