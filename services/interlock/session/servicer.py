"""The gRPC face of the session service: it reads requests, asks the ledger and writes answers."""

# ruff: noqa: N802, ARG002 - the proto names the methods, and gRPC hands each of them a context
from __future__ import annotations

from typing import Any

from interlock.api.session.v1 import session_pb2, session_pb2_grpc
from interlock.runtime.errors import answers_refusals
from interlock.session import answers, requests
from interlock.session.ledger import Ledger


class SessionServicer(session_pb2_grpc.SessionServiceServicer):
    """Answers ``interlock.api.session.v1.SessionService``. A refusal is a value in the answer."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    @answers_refusals(session_pb2.StartSessionResponse)
    async def StartSession(
        self, request: session_pb2.StartSessionRequest, context: Any
    ) -> session_pb2.StartSessionResponse:
        """Create a session with a full budget and a policy that is already resolved."""
        state, token = await self._ledger.start(
            scope=requests.scope_of(request.scope),
            policy=requests.policy_of(request.policy_text, request.policy_hash),
            strategy=requests.strategy_of(request.strategy),
        )
        return session_pb2.StartSessionResponse(session=answers.session_message(state), token=token)

    @answers_refusals(session_pb2.OpenWindowResponse)
    async def OpenWindow(self, request: session_pb2.OpenWindowRequest, context: Any) -> session_pb2.OpenWindowResponse:
        """Verify a token and take the lease of the next window."""
        window, opened = await self._ledger.open(requests.presented_of(request))
        message = answers.opened_message(window, opened, self._ledger.rules.decrements)
        return session_pb2.OpenWindowResponse(window=message)

    @answers_refusals(session_pb2.CommitWindowResponse)
    async def CommitWindow(
        self, request: session_pb2.CommitWindowRequest, context: Any
    ) -> session_pb2.CommitWindowResponse:
        """Charge a sealed window and advance the session, once per window id."""
        ask = requests.commit_of(request, self._ledger.next_continuation())
        committed, token = await self._ledger.commit(ask)
        return answers.committed_message(committed, token, max_age_s=self._ledger.rules.token_lifetime_s)

    @answers_refusals(session_pb2.AbandonWindowResponse)
    async def AbandonWindow(
        self, request: session_pb2.AbandonWindowRequest, context: Any
    ) -> session_pb2.AbandonWindowResponse:
        """Give the lease of a window back that was never sealed."""
        root, session = requests.session_of(request.root_session_id), requests.session_of(request.session_id)
        released = await self._ledger.abandon(root, session, requests.window_of(request.window_id))
        return session_pb2.AbandonWindowResponse(released=released)

    @answers_refusals(session_pb2.GetSessionResponse)
    async def GetSession(self, request: session_pb2.GetSessionRequest, context: Any) -> session_pb2.GetSessionResponse:
        """Read a session by token or id."""
        state = await self._ledger.read(
            session=requests.session_of(request.session_id) if request.session_id else None,
            token=requests.token_of(request.token) if request.token else "",
            scope=requests.scope_of(request.scope) if request.scope else "",
        )
        return session_pb2.GetSessionResponse(session=answers.session_message(state))

    @answers_refusals(session_pb2.TerminateSessionResponse)
    async def TerminateSession(
        self, request: session_pb2.TerminateSessionRequest, context: Any
    ) -> session_pb2.TerminateSessionResponse:
        """End a session for good."""
        state, changed = await self._ledger.terminate(
            token=requests.token_of(request.token), scope=requests.scope_of(request.scope)
        )
        return session_pb2.TerminateSessionResponse(session=answers.session_message(state), changed=changed)
