"""An explicit-state checker: visits every state that a model can reach, and names the steps to the first that breaks a property."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State")
Successors = Callable[[State], Iterable[tuple[str, State]]]


class Broken(Exception):  # noqa: N818 - what happened
    """A property does not hold."""


@dataclass(frozen=True)
class Checked:
    """What a search found. *broken* is empty, or the property with *trace*, the shortest way of steps to where it breaks."""

    states: int
    transitions: int
    broken: str
    trace: tuple[str, ...]


class Checker(Generic[State]):
    """A search in breadth, so that the first fault that is found has the shortest trace."""

    def __init__(
        self, successors: Successors[State], check: Callable[[State], None], same: Callable[[State], Hashable]
    ) -> None:
        """*same* gives equal values for states that behave alike from there on. *check* raises ``Broken``."""
        self._successors, self._check, self._same = successors, check, same
        self._came: dict[bytes, tuple[bytes, str]] = {}

    def run(self, start: State) -> Checked:
        """Visit every state; stop at the first that breaks a property."""
        first = self._key(start)
        self._came = {first: (b"", "")}
        waiting, transitions = deque([(first, start)]), 0
        while waiting:
            key, state = waiting.popleft()
            try:
                for name, after in self._successors(state):
                    transitions += 1
                    reached = self._key(after)
                    if reached not in self._came:
                        self._came[reached] = (key, name)
                        key_of_broken = reached
                        self._check(after)
                        waiting.append((reached, after))
                    key_of_broken = key
            except Broken as broken:
                return Checked(len(self._came), transitions, str(broken), self._trace(key_of_broken))
        return Checked(len(self._came), transitions, "", ())

    def _key(self, state: State) -> bytes:
        return hashlib.blake2b(repr(self._same(state)).encode(), digest_size=16).digest()

    def _trace(self, key: bytes) -> tuple[str, ...]:
        names: list[str] = []
        while key:
            key, name = self._came[key]
            names.append(name)
        return tuple(reversed(names[:-1]))
