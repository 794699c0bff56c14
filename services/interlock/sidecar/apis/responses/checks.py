"""The shape of what a Responses request holds: objects with known fields, lists, words. Values are checked as a chat request's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from interlock.domain.errors import Refused, invalid

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


def fault(param: str, expected: str) -> Refused:
    """Return the refusal of a value."""
    return invalid("INVALID_PARAMETER", f"{param} {expected}", param=param)


def unsupported(param: str, why: str) -> Refused:
    """Return the refusal of what the vendor has and this front does not."""
    return invalid("UNSUPPORTED_CONTENT", f"{param} is not supported: {why}", param=param)


def unknown(param: str) -> Refused:
    """Return the refusal of a field that the vendor does not have."""
    return invalid("UNKNOWN_PARAMETER", f"unknown parameter: {param}", param=param)


def only(param: str, value: Any, allowed: Iterable[str]) -> dict[str, Any]:
    """Return the object *value* without its nulls. Refused with UNKNOWN_PARAMETER for any other field."""
    for name, given in required_object(param, value).items():
        if given is not None and name not in allowed:
            raise unknown(f"{param}.{shown(name)}")
    return {name: given for name, given in value.items() if given is not None}


def required_object(param: str, value: Any) -> dict[str, Any]:
    """Return an object."""
    if not isinstance(value, dict):
        raise fault(param, "must be an object")
    return value


def listed(param: str, value: Any, most: int) -> list[Any]:
    """Return a list of at most so many items."""
    if not isinstance(value, list) or len(value) > most:
        raise fault(param, f"must be a list of at most {most} items")
    return value


def word(param: str, value: Any, allowed: Iterable[str]) -> str:
    """Return one of the *allowed* words."""
    words = tuple(allowed)
    if not isinstance(value, str) or value not in words:
        raise fault(param, "must be one of " + ", ".join(words))
    return value


def text(param: str, value: Any) -> str:
    """Return a string."""
    if not isinstance(value, str):
        raise fault(param, "must be a string")
    return value


def flag(param: str, value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise fault(param, "must be true or false")
    return value


def shown(name: str) -> str:
    """Return the name of a field as far as it can be shown."""
    return name if _NAME.fullmatch(name) else "?"


def kind_of(value: Mapping[str, Any]) -> str:
    """Return the type of an object as far as it can be shown."""
    kind = value.get("type")
    return shown(kind) if isinstance(kind, str) else "?"
