"""What is read of a token is kept with its parse: a dozen readers ask the same of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


def of_token(derive: Callable[[Any], T]) -> Callable[[Any], T]:
    """Remember what a function of a spaCy token returns, as long as its parse is kept. It depends on the parse alone."""
    name = f"{derive.__module__}.{derive.__qualname__}"

    @wraps(derive)
    def recalled(token: Any) -> T:
        known: dict[int, T] = token.doc.user_data.setdefault(name, {})
        place = token.i
        if place not in known:
            known[place] = derive(token)
        return known[place]

    return recalled
