"""How two orders compare, of events or of cause and effect: the same way round, turned, or neither."""

from __future__ import annotations

from interlock.dpe.comparison.bindings.relations.order import Order

_MOSTLY = 0.5


def share(one: frozenset[str], other: frozenset[str]) -> float:
    """Return which part of the smaller of two bags the other has."""
    return len(one & other) / min(len(one), len(other))


def agrees(own: Order, stated: Order) -> bool:
    """Whether two tellings put the same first and the same second."""
    return share(own.first, stated.first) >= _MOSTLY and share(own.second, stated.second) >= _MOSTLY


def is_turned(own: Order, stated: Order) -> bool:
    """Whether one telling puts first what the other puts second."""
    crossed = share(own.first, stated.second) >= _MOSTLY and share(own.second, stated.first) >= _MOSTLY
    straight = len(own.first & stated.first) + len(own.second & stated.second)
    return crossed and straight < (len(own.first & stated.second) + len(own.second & stated.first)) / 2
