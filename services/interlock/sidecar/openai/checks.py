"""Checks of single values of a request; ``param`` names the place as the caller wrote it."""

from __future__ import annotations

import re
from typing import Any

from interlock.domain.errors import Refused, invalid

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_LABEL = re.compile(r"[\x20-\x7e]{1,256}", re.ASCII)


def bad(param: str, expected: str) -> Refused:
    """Return the refusal of a value."""
    return invalid("INVALID_PARAMETER", f"{param} {expected}", param=param)


def unsupported(param: str, why: str) -> Refused:
    """Return the refusal of content that cannot be analysed or passed on."""
    return invalid("UNSUPPORTED_CONTENT", why, param=param)


def text(param: str, value: Any) -> str:
    """Return a string."""
    if not isinstance(value, str):
        raise bad(param, "must be a string")
    return value


def label(param: str, value: Any) -> str:
    """Return a name of printable ASCII."""
    if not _LABEL.fullmatch(text(param, value)):
        raise bad(param, "must be 1 to 256 printable ASCII characters")
    return str(value)


def flag(param: str, value: Any) -> bool:
    """Return a truth value; absent is false."""
    if value is not None and not isinstance(value, bool):
        raise bad(param, "must be true or false")
    return bool(value)


def integer(param: str, value: Any, least: int, most: int) -> int:
    """Return a whole number between bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise bad(param, f"must be an integer from {least} to {most}")
    return value


def number(param: str, value: Any, least: float, most: float) -> float:
    """Return a number between bounds."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise bad(param, f"must be a number from {least:g} to {most:g}")
    return value


def one_of(param: str, value: Any, *words: str) -> str:
    """Return one of a few words."""
    if text(param, value) not in words:
        raise bad(param, "must be one of " + ", ".join(words))
    return str(value)


def mapping(param: str, value: Any) -> dict[str, Any]:
    """Return an object."""
    if not isinstance(value, dict):
        raise bad(param, "must be an object")
    return value


def items(param: str, value: Any, most: int) -> list[Any]:
    """Return a list of at least one item."""
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise bad(param, f"must be a list of 1 to {most} items")
    return value


def only(param: str, value: Any, *allowed: str) -> dict[str, Any]:
    """Return the object *value* without its nulls. Refused with UNKNOWN_PARAMETER for any other field.

    Clients send messages back as they got them, with a null for every field that their library knows.
    """
    for key, given in mapping(param, value).items():
        if given is not None and key not in allowed:
            raise unknown(f"{param}.{shown(key)}")
    return {key: given for key, given in value.items() if given is not None}


def unknown(param: str, hint: str = "") -> Refused:
    """Return the refusal of a field that is in no list."""
    return invalid("UNKNOWN_PARAMETER", f"unknown parameter: {param}{hint}", param=param)


def shown(name: str) -> str:
    """Return a field's name where it can stand in a message."""
    return name if _NAME.fullmatch(name) else "?"
