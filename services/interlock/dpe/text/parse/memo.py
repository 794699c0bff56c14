"""What is read of a word is kept with it: a dozen readers ask the same of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


def of_token(derive: Callable[[Any], T]) -> Callable[[Any], T]:
    """Remember what a function of a word returns, as long as its parse is kept. It depends on the parse alone."""

    @wraps(derive)
    def recalled(token: Any) -> T:
        known: dict[Any, T] = token.memo
        try:
            return known[derive]
        except KeyError:
            found = known[derive] = derive(token)
            return found

    return recalled
