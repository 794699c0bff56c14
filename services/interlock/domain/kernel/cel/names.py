"""What a condition in CEL may speak of, and how the store shows it.

    active                a variable, after the action       held.owner    whether it holds something
    before.active         the same, before it                had.owner     whether it held something
    left.usd  cost.usd    what is left of a budget afterwards, and what the action costs of it
    action                id of the action; empty for a lease, a rollback and a compensation

A *view* is what the store shows of a step to whoever evaluates: the hash of the conditions, then the stored value of everything that
they speak of, in the order in which they are kept. ``session/lua/kernel_decision.lua`` makes the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from interlock.domain.kernel import values
from interlock.domain.kernel.cel.evaluation import Bindings, loaded
from interlock.domain.kernel.expression import Declared

AFTER, BEFORE, LEFT, COST, ACTION = "v", "b", "l", "c", "a"
_JOIN = "\x1e"
"""Stands in no value: texts have no control characters, and lists are joined by another."""

Seen = Sequence[str]
"""One thing of a view: a letter, and the name of its variable or resource."""


def spoken(names: Declared) -> dict[str, tuple[str, Seen]]:
    """Return every name that a condition can have: its type (a letter of ``values``), and what it is of a view.

    A variable that is named like one of the others, ``left.usd`` say, cannot be spoken of.
    """
    found: dict[str, tuple[str, Seen]] = {name: (kind, (AFTER, name)) for name, kind in names.variables.items()}
    for name, kind in names.variables.items():
        found[f"before.{name}"] = (kind, (BEFORE, name))
        found[f"held.{name}"] = (values.FLAG, (AFTER, name))
        found[f"had.{name}"] = (values.FLAG, (BEFORE, name))
    for name in names.resources:
        found[f"left.{name}"] = (values.NUMBER, (LEFT, name))
        found[f"cost.{name}"] = (values.NUMBER, (COST, name))
    return found | {"action": (values.TEXT, (ACTION, ""))}


def bindings(seen: Sequence[Seen], shown: Sequence[str]) -> Bindings:
    """Return what names stand for, from the values of a view."""
    found: dict[str, Any] = {}
    for (letter, name), value in zip(seen, shown, strict=True):
        if letter == AFTER:
            found |= {name: loaded(value), f"held.{name}": not values.absent(value)}
        elif letter == BEFORE:
            found |= {f"before.{name}": loaded(value), f"had.{name}": not values.absent(value)}
        else:
            found[{LEFT: f"left.{name}", COST: f"cost.{name}"}.get(letter, "action")] = loaded(value)
    return found


def shown_of(seen: Sequence[Seen], of: Mapping[str, Callable[[str], str]]) -> list[str]:
    """Return the values of a view; *of* has a reader for each letter."""
    return [of[letter](name) for letter, name in seen]


def view_of(conditions: str, shown: Sequence[str]) -> str:
    """Return the text of a view: which conditions, and the values that they speak of."""
    return _JOIN.join([digest(conditions), *shown])


def parted(view: str) -> tuple[str, list[str]]:
    """Return the hash of the conditions and the values of a view."""
    first, *shown = view.split(_JOIN)
    return first, shown


def digest(text: str) -> str:
    """Return what names a text; it vouches for nothing."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
