"""The index of bindings in Redis or Valkey: two hashes for each caller, ``il:{bind:<digest of its scope>}:1`` and ``:2``.

They are in one slot, and changed by one script. Nothing that a caller sent is in them: digests alone, and ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

from interlock.domain.binding.index import IndexBounds, IndexNote
from interlock.session.store.batcher import Batcher, LuaScript, state_corrupt
from interlock.session.store.bindings import note_forgotten


@lru_cache(maxsize=16_384)
def generations_of(scope: str) -> tuple[str, str]:
    """Return the keys of a caller's current and previous generation; its scope itself is in no key."""
    digest = hashlib.sha256(scope.encode()).hexdigest()[:32]
    return f"il:{{bind:{digest}}}:1", f"il:{{bind:{digest}}}:2"


class RedisBindings:
    """The index that all processes share."""

    def __init__(self, batcher: Batcher) -> None:
        self._batcher = batcher
        self._script = LuaScript.load("bindings")

    async def find(self, scope: str, digests: Sequence[bytes], bounds: IndexBounds) -> list[bytes]:
        """Look up digests in one step."""
        return await self._run(scope, bounds, len(digests), *digests)

    async def note(self, scope: str, notes: Sequence[IndexNote], bounds: IndexBounds) -> list[bytes]:
        """Keep entries in one step."""
        fields = (each for note in notes for each in ("T" if note.turn else "N", note.digest, note.record, note.over))
        return await self._run(scope, bounds, 0, *fields)

    async def _run(self, scope: str, bounds: IndexBounds, *arguments: str | int | bytes) -> list[bytes]:
        reply = await self._batcher.run(
            self._script, generations_of(scope), bounds.entries, bounds.lifetime_ms, *arguments
        )
        try:
            _, forgotten, *values = reply
            note_forgotten(scope, int(forgotten))
            return [value or b"" for value in values]
        except (ValueError, TypeError):
            raise state_corrupt() from None
