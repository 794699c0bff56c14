"""What is derived from a text is remembered for a while: the parts of an answer, and the turns of a session, bring their sources again.

Only what depends on its texts alone is remembered, so that it is what would be derived again. Keys are digests under a key of this
process. There is one store, bounded in bytes and in the time for which nothing asks for an entry: what texts said does not stay in
memory longer than that.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar, cast

T = TypeVar("T")

MOST_BYTES = 128 * 2**20
UNUSED_S = 600.0
LONG = 600
"""Code points from which a text is long: what is read of shorter ones costs little, or has a cache of its own."""
_OVERHEAD = 400
"""Bytes of an entry besides its value."""


@dataclass
class Remembered:
    """An LRU store by digest, bounded in bytes, whose entries go once nothing has asked for them for *unused_s* seconds."""

    most_bytes: int = MOST_BYTES
    unused_s: float = UNUSED_S
    clock: Callable[[], float] = time.monotonic
    _entries: OrderedDict[bytes, tuple[float, int, Any]] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _key: bytes = field(default_factory=lambda: os.urandom(16))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, what: str, texts: Sequence[str], derive: Callable[[], T], *, bytes_a_character: int) -> T:
        """Return what *derive* returns for these texts; *what* names what is derived from them."""
        if not self.most_bytes:
            return derive()
        key = self._digest(what, texts)
        if (known := self._recall(key)) is not None:
            return cast("T", known[0])
        derived = derive()
        self._keep(key, derived, _OVERHEAD + bytes_a_character * sum(map(len, texts)))
        return derived

    def of_each(
        self, what: str, texts: Sequence[str], derive: Callable[[list[str]], Sequence[T]], *, bytes_a_character: int
    ) -> dict[str, T]:
        """Return what *derive* returns for each distinct text; it gets those that are not known, together."""
        keys = {text: self._digest(what, (text,)) for text in texts}
        known = {text: self._recall(key) for text, key in keys.items()}
        missing = [text for text, found in known.items() if found is None]
        new = dict(zip(missing, derive(missing), strict=True)) if missing else {}
        for text, derived in new.items():
            self._keep(keys[text], derived, _OVERHEAD + bytes_a_character * len(text))
        return {text: cast("T", found[0]) if found is not None else new[text] for text, found in known.items()}

    def resize(self, most_bytes: int) -> None:
        """Keep at most so many bytes from now on; 0 remembers nothing."""
        with self._lock:
            self.most_bytes = most_bytes
            self._shrink()

    def forget_unused(self) -> None:
        """Drop what nothing has asked for lately."""
        with self._lock:
            self._forget_unused()

    @property
    def held_bytes(self) -> int:
        """The bytes that its entries are counted at."""
        return self._bytes

    def _recall(self, key: bytes) -> tuple[Any] | None:
        with self._lock:
            self._forget_unused()
            known = self._entries.pop(key, None)
            if known is None:
                return None
            self._entries[key] = (self.clock(), *known[1:])
            return (known[2],)

    def _keep(self, key: bytes, derived: object, size: int) -> None:
        if size > self.most_bytes:
            return
        with self._lock:
            if (old := self._entries.pop(key, None)) is not None:
                self._bytes -= old[1]
            self._entries[key] = (self.clock(), size, derived)
            self._bytes += size
            self._shrink()

    def _shrink(self) -> None:
        while self._entries and self._bytes > self.most_bytes:
            self._drop_oldest()

    def _forget_unused(self) -> None:
        now = self.clock()
        while self._entries and now - next(iter(self._entries.values()))[0] >= self.unused_s:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._bytes -= self._entries.popitem(last=False)[1][1]
        if not self._entries:
            self._bytes = 0  # an interrupt between two steps leaves no debt

    def _digest(self, what: str, texts: Sequence[str]) -> bytes:
        digest = hashlib.blake2b(key=self._key, digest_size=20)
        for text in (what, *texts):
            data = text.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.digest()


STORE = Remembered()
"""What this process remembers."""


def remembered(*, bytes_a_character: int, from_length: int = 0) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Remember what a function returns for a text of *from_length* characters or more; shorter ones are derived each time."""

    def of_function(derive: Callable[[str], T]) -> Callable[[str], T]:
        what = f"{derive.__module__}.{derive.__qualname__}"

        @wraps(derive)
        def recalled(text: str) -> T:
            if len(text) < from_length:
                return derive(text)
            return STORE.of(what, (text,), lambda: derive(text), bytes_a_character=bytes_a_character)

        return recalled

    return of_function
