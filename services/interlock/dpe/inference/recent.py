"""What the models said of recent texts: an answer that is judged part by part brings its beginning again with each part.

A score depends on its own text alone, so what is remembered is what the model would say again. Keys are digests under a key of this
process, so that long texts take no room and no one can make two of them alike.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

REMEMBERED = 4096
"""Texts or pairs whose results are remembered, the latest used ones."""


class Recent(Generic[T]):
    """An LRU cache by digest."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most, self._key = most, os.urandom(16)
        self._found: OrderedDict[bytes, T] = OrderedDict()
        self._lock = threading.Lock()

    def recall(self, *texts: str) -> T | None:
        """Return what was kept for these texts, in this order."""
        key = self._digest(texts)
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
            return found

    def keep(self, value: T, *texts: str) -> None:
        """Remember a result. The least recently used one is dropped."""
        with self._lock:
            self._found[self._digest(texts)] = value
            while len(self._found) > self._most:
                self._found.popitem(last=False)

    def _digest(self, texts: Sequence[str]) -> bytes:
        digest = hashlib.blake2b(key=self._key, digest_size=20)
        for text in texts:
            data = text.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.digest()
