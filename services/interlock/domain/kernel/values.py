"""Values of variables as the store keeps them, and what effects make of them. ``session/lua/kernel_step.lua`` carries the same rule.

A value is a letter of its type (n number, s text, b flag, l list, u set), then ``!`` for nothing, or ``:`` and the value. Numbers
are integers of millionths. Items of lists and sets are such values too, joined by the unit separator, sets in byte order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from interlock.domain.errors import invalid

MICRO = 1_000_000
MOST = 10**15
"""Largest number, millionths: sums of some stay below 2^53, so that a double holds them."""
LARGEST = 8 * 10**15
"""Largest intermediate result of an expression."""
LONGEST_TEXT, MOST_ITEMS, LONGEST_VALUE = 1_024, 1_000, 16_384
SEPARATOR = "\x1f"
NUMBER, TEXT, FLAG, LIST, SET = "n", "s", "b", "l", "u"
SCALARS = frozenset({NUMBER, TEXT, FLAG})
MODES = ("set", "increment", "decrement", "multiply", "append", "remove", "delete")

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def number(micros: int) -> str:
    """Return a number as it is stored. Refused with KERNEL_NUMBER_TOO_LARGE beyond 10^15 millionths."""
    if isinstance(micros, bool) or not isinstance(micros, int):
        raise invalid("KERNEL_NUMBER_INVALID", "a number is an integer of millionths")
    if abs(micros) > MOST:
        raise invalid("KERNEL_NUMBER_TOO_LARGE", f"a number is from -{MOST} to {MOST} millionths")
    return f"n:{micros}"


def text(value: str) -> str:
    """Return a text as it is stored. Refused with KERNEL_TEXT_INVALID for control characters or more than 1,024 bytes."""
    if _CONTROL.search(value) or len(value.encode()) > LONGEST_TEXT:
        raise invalid("KERNEL_TEXT_INVALID", f"a text has at most {LONGEST_TEXT} bytes and no control characters")
    return f"s:{value}"


def flag(value: bool) -> str:  # noqa: FBT001 - it is the value
    """Return a truth value as it is stored."""
    return "b:1" if value else "b:0"


def joined(kind: str, items: Sequence[str]) -> str:
    """Return a list or a set of stored scalars. Refused with KERNEL_VALUE_TOO_LARGE or KERNEL_SET_DUPLICATE."""
    if kind == SET and len(set(items)) != len(items):
        raise invalid("KERNEL_SET_DUPLICATE", "a set holds each item once")
    value = f"{kind}:" + SEPARATOR.join(ordered(items) if kind == SET else items)
    if too_large(items, value):
        raise invalid("KERNEL_VALUE_TOO_LARGE", f"at most {MOST_ITEMS} items and {LONGEST_VALUE} bytes")
    return value


def nothing(kind: str) -> str:
    """Return the value of a variable of that type that holds nothing."""
    return f"{kind}!"


def absent(value: str) -> bool:
    """Tell whether a variable holds nothing."""
    return value[1] == "!"


def items_of(value: str) -> list[str]:
    """Return the items of a list or a set; none of one that holds nothing."""
    return value[2:].split(SEPARATOR) if value[2:] else []


def ordered(items: Sequence[str]) -> list[str]:
    """Return items in byte order."""
    return sorted(items, key=str.encode)


def too_large(items: Sequence[str], value: str) -> bool:
    """Tell whether a list or set is beyond its bounds."""
    return len(items) > MOST_ITEMS or len(value.encode()) > LONGEST_VALUE


def after(value: str, mode: str, operand: str) -> tuple[str | None, str]:
    """Return the value after an effect, or ``None`` and why: NUMBER_TOO_LARGE or VALUE_TOO_LARGE."""
    kind = value[0]
    if mode == "delete":
        return nothing(kind), ""
    if mode == "set":
        return operand, ""
    if kind == NUMBER:
        return _number_after(value, mode, operand)
    items = items_of(value)
    if mode == "append" and (kind == LIST or operand not in items):
        items.append(operand)
        items = ordered(items) if kind == SET else items
    elif mode == "remove" and operand in items:
        items.remove(operand)
    result = f"{kind}:" + SEPARATOR.join(items)
    return (None, "VALUE_TOO_LARGE") if too_large(items, result) else (result, "")


def _number_after(value: str, mode: str, operand: str) -> tuple[str | None, str]:
    a, b = 0 if absent(value) else int(value[2:]), int(operand[2:])
    if mode == "increment":
        result = a + b
    elif mode == "decrement":
        result = a - b
    else:
        result = product(a, b)
    return (None, "NUMBER_TOO_LARGE") if abs(result) > MOST else (f"n:{result}", "")


def product(a: int, b: int) -> int:
    """Return the product of two numbers of millionths, cut off towards zero."""
    size = abs(a) * abs(b) // MICRO
    return -size if (a < 0) != (b < 0) else size


def fits(kind: str, mode: str, operand: str) -> bool:
    """Tell whether an effect may be had on a variable of that type."""
    if mode == "delete":
        return operand == ""
    if not operand or absent(operand):
        return False
    if mode == "set":
        return operand[0] == kind
    if mode in {"increment", "decrement", "multiply"}:
        return kind == NUMBER and operand[0] == NUMBER
    return kind in {LIST, SET} and operand[0] in SCALARS


def inverse(one: Sequence[str], now_held: str) -> str | None:
    """Return the value that undoes an effect: what was before where nothing came after, else its inverse, else nothing."""
    _, mode, operand, old, new = one
    if now_held == new:
        return old
    if mode in {"increment", "decrement"}:
        return after(now_held, "decrement" if mode == "increment" else "increment", operand)[0]
    if mode in {"append", "remove"} and old == new:
        return now_held
    if mode in {"append", "remove"} and old[0] == SET:
        return after(now_held, "remove" if mode == "append" else "append", operand)[0]
    return None
