"""Reading the earlier answers of a window while it is opened: the token of a call that this sidecar answered says which they are.

It is a guess, and what the opened window says decides: where its path is another one, the guess is dropped and the answers of that path
are read. So nothing is judged by what a guess found, unless it is what would have been read.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import AuditPeer

MOST_REMEMBERED = 4096
"""Tokens whose next window can be told; with eight earlier answers each, some five MiB."""


@dataclass(frozen=True)
class Reading:
    """Earlier answers that are being read."""

    session_id: str
    window_ids: tuple[str, ...]
    task: asyncio.Task[Sequence[audit_pb2.Content]]

    def fits(self, session_id: str, window_ids: Sequence[str]) -> bool:
        """Tell whether these are the answers that are wanted."""
        return self.session_id == session_id and self.window_ids == tuple(window_ids)

    def drop(self) -> None:
        """End the reading, if it still goes on; how it failed is nobody's concern then."""
        self.task.cancel()


class ReadAhead:
    """Knows what follows the tokens that were handed out last, and begins to read it. A token is used once."""

    def __init__(self, audit: AuditPeer, latest: int) -> None:
        self._audit, self._latest = audit, latest
        self._next: OrderedDict[bytes, tuple[str, tuple[str, ...]]] = OrderedDict()

    def expect(self, scope: str, token: str, settled: session_pb2.OpenedWindow) -> None:
        """Note which windows the one after *settled* is compared with, for a caller that goes on with *token*."""
        windows = (*settled.lineage, settled.window_id)[-self._latest :]
        self._next[_name(scope, token)] = (settled.session_id, windows)
        if len(self._next) > MOST_REMEMBERED:
            self._next.popitem(last=False)

    def begin(self, scope: str, token: str, deadline: Deadline) -> Reading | None:
        """Begin to read what a call with *token* will be compared with; ``None`` where that is not known here."""
        known = self._next.pop(_name(scope, token), None)
        if known is None:
            return None
        session_id, windows = known
        task = asyncio.create_task(self._read(session_id, windows, deadline))
        task.add_done_callback(_seen)
        return Reading(session_id, windows, task)

    async def _read(self, session_id: str, windows: Sequence[str], deadline: Deadline) -> Sequence[audit_pb2.Content]:
        return await self._audit.get_contents(session_id, windows, deadline)


def _name(scope: str, token: str) -> bytes:
    return hashlib.sha256(f"{scope}\0{token}".encode()).digest()


def _seen(task: asyncio.Task[Sequence[audit_pb2.Content]]) -> None:
    if not task.cancelled():
        task.exception()
