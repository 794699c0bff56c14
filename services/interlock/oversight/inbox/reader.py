"""Reads what the inbox shows of each held answer. Each excerpt is a look at content, and is on record before it is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Refused
from interlock.domain.held import readable_texts
from interlock.oversight.console import Console
from interlock.oversight.views import View

MOST = 200
"""Answers of one page."""
EXCERPTS = 20
"""Of them, those that expire first are shown with how they begin: each is a look that is written down."""
AT_ONCE = 8
WAITING = frozenset({audit_pb2.HELD_STATUS_PENDING, audit_pb2.HELD_STATUS_APPROVED})


@dataclass(frozen=True)
class InboxItem:
    """A held answer as the inbox has it."""

    item: audit_pb2.HeldItem
    agent: str = ""
    """Its agent type; empty where it has none, or where the session cannot be read."""
    question: str = ""
    answer: str | None = None
    """What the client would get; ``None`` where it is not shown."""
    missing: str = ""
    """Why it is not shown."""


@dataclass(frozen=True)
class Inbox:
    """Reads the inbox over the reviewers' use cases."""

    console: Console

    async def page(self, view: View, status: audit_pb2.HeldStatus.ValueType) -> tuple[Sequence[InboxItem], bool]:
        """Return what is held, that which expires first on top, and whether there is more. One that cannot be read hides no other."""
        found = await self.console.queue(status, limit=MOST)
        turn = asyncio.Semaphore(AT_ONCE)

        async def read(number: int, item: audit_pb2.HeldItem) -> InboxItem:
            if number >= EXCERPTS:
                return InboxItem(item, missing="FURTHER_DOWN")
            async with turn:
                return await self._read(view, item)

        items = sorted(found.items, key=lambda item: item.expires_at)
        return await asyncio.gather(*(read(number, item) for number, item in enumerate(items))), found.more

    async def _read(self, view: View, item: audit_pb2.HeldItem) -> InboxItem:
        agent = await self._agent(item)
        if item.status not in WAITING:
            return InboxItem(item, agent, missing="HELD_NOT_FOUND")
        try:
            held = await self.console.held(item, view)
            texts = readable_texts(held) if held else []
        except Refused as refused:
            return InboxItem(item, agent, missing=refused.reason)
        except (ValueError, KeyError, TypeError):
            return InboxItem(item, agent, missing="HELD_UNREADABLE")
        if held is None:
            return InboxItem(item, agent, missing="HELD_NOT_FOUND")
        return InboxItem(item, agent, held.question, "\n".join(text for _, text in texts))

    async def _agent(self, item: audit_pb2.HeldItem) -> str:
        request = session_pb2.GetSessionRequest(session_id=item.session_id, root_session_id=item.root_session_id)
        try:
            return (await self.console.peers.session.get(request)).agent.agent_type
        except Refused:
            return ""
