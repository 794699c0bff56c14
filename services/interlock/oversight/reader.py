"""What the console reads from the mesh: sessions, trees, windows, callers, the state of a chain."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from google.protobuf import json_format

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain import ids
from interlock.domain.errors import Kind, Refused
from interlock.domain.policy.roles import require_content
from interlock.oversight.figures import figures_of
from interlock.oversight.views import View
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import Peers

HIDDEN = frozenset({"ROLE_SEES_NO_CONTENT", "SESSION_NOT_COVERED"})
"""Why content is not shown to a person who may see its figures."""

AT_ONCE = 16
"""Sessions of one page that are read at the same time."""


@dataclass(frozen=True)
class SessionRow:
    """A session of the list: how it began, and what it is now; ``None`` once the store has forgotten it."""

    listed: audit_pb2.ListedSession
    session: session_pb2.Session | None


@dataclass(frozen=True)
class WindowView:
    """A sealed window: its report, its place in its session, and what it said."""

    report: dpe_pb2.Report
    session_id: str
    window_id: str
    session: session_pb2.Session | None
    window: session_pb2.Window | None
    text: str | None
    """``None``: the text is not kept, was erased or was never handed out."""
    text_missing: str
    """Why there is no text; empty where there is one."""
    evidence: Mapping[str, str]
    """Texts of facts that its claims name, by id; those that were kept with its text."""
    integrity: int
    """State of the chain up to the window, a ``common.v1.ChainIntegrity``."""

    @property
    def is_hidden(self) -> bool:
        """Whether the content is not for this person: the report has figures alone."""
        return self.text_missing in HIDDEN


class LiveReader:
    """Reads what the pages show."""

    def __init__(self, peers: Peers, timeout_s: float) -> None:
        self._peers, self._timeout_s = peers, timeout_s

    async def sessions(
        self, request: audit_pb2.ListSessionsRequest
    ) -> tuple[list[SessionRow], audit_pb2.ListedSession | None]:
        """Return a page of the sessions that are wanted, the latest first, and where to go on, if there may be more."""
        found = await self._peers.audit.list_sessions(request)
        turn = asyncio.Semaphore(AT_ONCE)

        async def row(one: audit_pb2.ListedSession) -> SessionRow:
            async with turn:
                return SessionRow(one, await self._session(one.session_id, one.root_session_id))

        rows = list(await asyncio.gather(*map(row, found.sessions)))
        return rows, found.next if found.HasField("next") else None

    async def callers(self, scopes: Iterable[str]) -> list[tuple[str, session_pb2.CallerBudget]]:
        """Return the callers that have a budget of their own, each with it."""
        names = sorted(set(scopes))
        found = await asyncio.gather(*map(self._peers.session.get_caller, names))
        return [(name, budget) for name, budget in zip(names, found, strict=True) if budget is not None]

    async def tree(self, session_id: str, root: str) -> Sequence[session_pb2.Session]:
        """Return all sessions of the tree that a session belongs to, the root first."""
        session_id = ids.check("crp_sess_", session_id)
        root = ids.check("crp_sess_", root) if root else ""
        if not root:
            found = await self._peers.session.get(session_pb2.GetSessionRequest(session_id=session_id))
            root = found.root_session_id or session_id
        request = session_pb2.GetDagRequest(session_id=root, root_session_id=root, tree=True)
        return list(await self._peers.session.dag(request))

    async def window(self, window_id: str, view: View, covered: Callable[[View, str], Awaitable[None]]) -> WindowView:
        """Return a window. That the person looks at its text is on record before this returns.

        Whoever may not see its content, as a viewer or because *covered* refuses its session, gets its figures.
        """
        found = await self._peers.audit.get_report(window_id=ids.check("crp_win_", window_id))
        report: dpe_pb2.Report = json_format.Parse(found.report_json, dpe_pb2.Report(), ignore_unknown_fields=True)
        session = await self._session(found.session_id, "")
        window = next((one for one in session.windows if one.window_id == window_id), None) if session else None
        content, missing = None, await _hidden(view, found.session_id, covered)
        if missing:
            report = figures_of(report)
        else:
            content, missing = await self._content(found.session_id, window_id, view.reviewer)
        text, evidence = (content.text, {one.id: one.content for one in content.evidence}) if content else (None, {})
        return WindowView(
            report, found.session_id, window_id, session, window, text, missing, evidence, found.integrity
        )

    async def verify(self, session_id: str) -> audit_pb2.VerifyResponse:
        """Check a session's chain from the stored bytes."""
        return await self._peers.audit.verify(ids.check("crp_sess_", session_id))

    async def log_size(self) -> int:
        """Return how many entries the log has: it grows with everything that happens."""
        return await self._peers.audit.log_size()

    async def _session(self, session_id: str, root: str) -> session_pb2.Session | None:
        try:
            request = session_pb2.GetSessionRequest(session_id=session_id, root_session_id=root)
            return await self._peers.session.get(request)
        except Refused as refused:
            if refused.kind is Kind.NOT_FOUND:
                return None
            raise

    async def _content(self, session_id: str, window_id: str, viewer: str) -> tuple[audit_pb2.Content | None, str]:
        """Return what a window said; a chain that does not verify hides the text, not the page."""
        try:
            contents = await self._peers.audit.get_contents(
                session_id, [window_id], Deadline(self._timeout_s), viewer=viewer
            )
        except Refused as refused:
            return None, refused.reason
        return (contents[0], "") if contents else (None, "NOT_KEPT")


async def _hidden(view: View, session_id: str, covered: Callable[[View, str], Awaitable[None]]) -> str:
    """Return why the content of a session is not for this person; empty where it is."""
    try:
        require_content(view.role)
        await covered(view, session_id)
    except Refused as refused:
        if refused.kind is not Kind.FORBIDDEN:
            raise
        return refused.reason
    return ""
