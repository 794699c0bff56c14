"""The oversight service over gRPC: maps messages to the console's use cases and back."""

from __future__ import annotations

from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.api.oversight.v1 import oversight_pb2, oversight_pb2_grpc
from interlock.domain import ids
from interlock.domain.errors import unauthenticated
from interlock.domain.held import readable_texts
from interlock.oversight.compensations import StuckCases
from interlock.oversight.console import Console, expires_at
from interlock.oversight.views import View
from interlock.oversight.visible import visible
from interlock.runtime.clock import iso8601
from interlock.runtime.rpc.errors import answers_refusals

_SCHEME = "bearer "


class OversightServicer(oversight_pb2_grpc.OversightServiceServicer):
    """Answers ``interlock.api.oversight.v1.OversightService``. A refusal is a value in the answer."""

    def __init__(self, console: Console, stuck: StuckCases) -> None:
        self._console, self._stuck = console, stuck

    @answers_refusals(oversight_pb2.ChallengeResponse)
    async def Challenge(  # noqa: N802 - gRPC's name
        self, request: oversight_pb2.ChallengeRequest, context: Any
    ) -> oversight_pb2.ChallengeResponse:
        """Return a challenge to sign."""
        del context
        text, expires_us = self._console.views.challenge(request.reviewer_id)
        return oversight_pb2.ChallengeResponse(challenge=text, expires_at=iso8601(expires_us))

    @answers_refusals(oversight_pb2.SignInResponse)
    async def SignIn(self, request: oversight_pb2.SignInRequest, context: Any) -> oversight_pb2.SignInResponse:  # noqa: N802 - gRPC's name
        """Open a view for a signed challenge."""
        del context
        opened = await self._console.sign_in(request.reviewer_id, request.challenge, request.signature)
        return oversight_pb2.SignInResponse(bearer=opened.bearer, expires_at=expires_at(opened.view))

    @answers_refusals(oversight_pb2.ListHeldResponse)
    async def ListHeld(self, request: oversight_pb2.ListHeldRequest, context: Any) -> oversight_pb2.ListHeldResponse:  # noqa: N802 - gRPC's name
        """List a page of the queue."""
        await self._viewer(context)
        session_id = request.session_id and ids.check("crp_sess_", request.session_id)
        page = await self._console.queue(
            request.status, session_id=session_id, after=request.after, limit=request.limit
        )
        return oversight_pb2.ListHeldResponse(items=map(_readers, page.items), more=page.more)

    @answers_refusals(oversight_pb2.GetHeldResponse)
    async def GetHeld(self, request: oversight_pb2.GetHeldRequest, context: Any) -> oversight_pb2.GetHeldResponse:  # noqa: N802 - gRPC's name
        """Show a held response with everything that a reviewer needs."""
        view = await self._viewer(context)
        if request.state_only:
            return oversight_pb2.GetHeldResponse(item=_readers(await self._console.state(request.window_id)))
        shown = await self._console.shown(request.window_id, view)
        texts = readable_texts(shown.held) if shown.held else []
        text = "\n\n".join(text if len(texts) == 1 else f"[{what}]\n{text}" for what, text in texts)
        evidence = shown.held.evidence if shown.held else {}
        kept_reason, kept_directive = shown.kept_by
        return oversight_pb2.GetHeldResponse(
            item=_readers(shown.item), text=visible(text), report=shown.report, sessions=shown.sessions,
            question=visible(shown.held.question) if shown.held else "",
            evidence={name: visible(fact) for name, fact in evidence.items()},
            kept_reason=kept_reason, kept_directive=kept_directive,
        )  # fmt: skip

    @answers_refusals(oversight_pb2.DecideResponse)
    async def Decide(self, request: oversight_pb2.DecideRequest, context: Any) -> oversight_pb2.DecideResponse:  # noqa: N802 - gRPC's name
        """Submit a signed decision."""
        view = await self._viewer(context)
        item = await self._console.decide(view, request.window_id, request.token, request.reason)
        return oversight_pb2.DecideResponse(item=_readers(item))

    @answers_refusals(oversight_pb2.ListStuckResponse)
    async def ListStuck(self, request: oversight_pb2.ListStuckRequest, context: Any) -> oversight_pb2.ListStuckResponse:  # noqa: N802 - gRPC's name
        """List compensations that wait for a person."""
        view = await self._viewer(context)
        page = await self._stuck.page(view, request.after if request.HasField("after") else None, request.limit)
        return oversight_pb2.ListStuckResponse(items=page.items, more=page.more)

    @answers_refusals(oversight_pb2.GetStuckResponse)
    async def GetStuck(self, request: oversight_pb2.GetStuckRequest, context: Any) -> oversight_pb2.GetStuckResponse:  # noqa: N802 - gRPC's name
        """Show one with its kernel."""
        view = await self._viewer(context)
        shown = await self._stuck.shown(view, request.kernel_id, request.execution)
        return oversight_pb2.GetStuckResponse(
            kernel=shown.owner.kernel,
            scope=shown.owner.scope,
            compensation=shown.compensation,
            described=shown.described,
        )

    @answers_refusals(oversight_pb2.DecideStuckResponse)
    async def DecideStuck(  # noqa: N802 - gRPC's name
        self, request: oversight_pb2.DecideStuckRequest, context: Any
    ) -> oversight_pb2.DecideStuckResponse:
        """Submit a signed decision about one."""
        view = await self._viewer(context)
        verdict = await self._stuck.decide(view, request.kernel_id, request.execution, request.token, request.reason)
        return oversight_pb2.DecideStuckResponse(verdict=verdict)

    async def _viewer(self, context: Any) -> View:
        given = [value for name, value in context.invocation_metadata() or () if name == "authorization"]
        if len(given) != 1 or not isinstance(given[0], str) or not given[0].lower().startswith(_SCHEME):
            raise unauthenticated("SIGN_IN_REQUIRED", "this needs the metadata authorization: Bearer and a view")
        return await self._console.viewer(given[0][len(_SCHEME) :])


def _readers(item: audit_pb2.HeldItem) -> audit_pb2.HeldItem:
    """Return a held response's state without the approval's token, which belongs to the client."""
    read = audit_pb2.HeldItem()
    read.CopyFrom(item)
    read.ClearField("token")
    return read
