"""The gRPC front of kernels: the caller's key is the scope, and a session token of the metadata names the tree."""

# ruff: noqa: N802 - gRPC's names
from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from interlock.api.kernel.v1 import kernel_pb2, kernel_pb2_grpc
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import unauthenticated
from interlock.runtime.keys.api_keys import ApiKeys
from interlock.runtime.rpc.kernels.kernels import Kernels

TOKEN = "crp-session-token"  # noqa: S105 - a header's name


class KernelServicer(kernel_pb2_grpc.KernelServiceServicer):
    """Answers for ``interlock.api.kernel.v1.KernelService``. Every refusal is a status with ErrorInfo."""

    def __init__(self, keys: ApiKeys, kernels: Kernels) -> None:
        self._keys, self._kernels = keys, kernels

    async def Open(self, request: kernel_pb2.OpenRequest, context: Any) -> kernel_pb2.OpenResponse:
        """Create a kernel, or join the one of that name."""
        return (await self._ask("open", request, context)).opened

    async def OpenChild(self, request: kernel_pb2.OpenChildRequest, context: Any) -> kernel_pb2.OpenChildResponse:
        """Add a child, or find it."""
        return kernel_pb2.OpenChildResponse(verdict=(await self._ask("open_child", request, context)).verdict)

    async def Describe(self, request: kernel_pb2.DescribeRequest, context: Any) -> kernel_pb2.DescribeResponse:
        """Read a kernel."""
        return (await self._ask("describe", request, context)).described

    async def Evaluate(self, request: kernel_pb2.EvaluateRequest, context: Any) -> kernel_pb2.EvaluateResponse:
        """Dry run."""
        return (await self._ask("evaluate", request, context)).evaluated

    async def Execute(self, request: kernel_pb2.ExecuteRequest, context: Any) -> kernel_pb2.ExecuteResponse:
        """Check, charge and commit an action."""
        return kernel_pb2.ExecuteResponse(verdict=(await self._ask("execute", request, context)).verdict)

    async def Permit(self, request: kernel_pb2.PermitRequest, context: Any) -> kernel_pb2.PermitResponse:
        """Reserve an action in the world."""
        return kernel_pb2.PermitResponse(verdict=(await self._ask("permit", request, context)).verdict)

    async def Confirm(self, request: kernel_pb2.ConfirmRequest, context: Any) -> kernel_pb2.ConfirmResponse:
        """Settle a permit."""
        return kernel_pb2.ConfirmResponse(verdict=(await self._ask("confirm", request, context)).verdict)

    async def Abort(self, request: kernel_pb2.AbortRequest, context: Any) -> kernel_pb2.AbortResponse:
        """Take a permit back."""
        return kernel_pb2.AbortResponse(verdict=(await self._ask("abort", request, context)).verdict)

    async def Rollback(self, request: kernel_pb2.RollbackRequest, context: Any) -> kernel_pb2.RollbackResponse:
        """Undo actions."""
        return kernel_pb2.RollbackResponse(verdict=(await self._ask("rollback", request, context)).verdict)

    async def BeginSaga(self, request: kernel_pb2.BeginSagaRequest, context: Any) -> kernel_pb2.BeginSagaResponse:
        """Open a saga."""
        return (await self._ask("begin_saga", request, context)).begun

    async def EndSaga(self, request: kernel_pb2.EndSagaRequest, context: Any) -> kernel_pb2.EndSagaResponse:
        """End a saga."""
        return kernel_pb2.EndSagaResponse(verdict=(await self._ask("end_saga", request, context)).verdict)

    async def ClaimCompensation(
        self, request: kernel_pb2.ClaimCompensationRequest, context: Any
    ) -> kernel_pb2.ClaimCompensationResponse:
        """Hand out a compensation."""
        return (await self._ask("claim", request, context)).claimed

    async def SettleCompensation(
        self, request: kernel_pb2.SettleCompensationRequest, context: Any
    ) -> kernel_pb2.SettleCompensationResponse:
        """Note how a compensation ended."""
        return kernel_pb2.SettleCompensationResponse(verdict=(await self._ask("settle", request, context)).verdict)

    async def TakeTicket(self, request: kernel_pb2.TakeTicketRequest, context: Any) -> kernel_pb2.TakeTicketResponse:
        """Take a place in the line."""
        return (await self._ask("ticket", request, context)).ticketed

    async def ReturnTicket(
        self, request: kernel_pb2.ReturnTicketRequest, context: Any
    ) -> kernel_pb2.ReturnTicketResponse:
        """Leave the line."""
        return kernel_pb2.ReturnTicketResponse(verdict=(await self._ask("return_ticket", request, context)).verdict)

    async def Lease(self, request: kernel_pb2.LeaseRequest, context: Any) -> kernel_pb2.LeaseResponse:
        """Take a slice of a budget."""
        return (await self._ask("lease", request, context)).leased

    async def Return(self, request: kernel_pb2.ReturnRequest, context: Any) -> kernel_pb2.ReturnResponse:
        """Give the rest of a slice back."""
        return kernel_pb2.ReturnResponse(verdict=(await self._ask("give_back", request, context)).verdict)

    async def Emergency(self, request: kernel_pb2.EmergencyRequest, context: Any) -> kernel_pb2.EmergencyResponse:
        """Record an emergency action."""
        return kernel_pb2.EmergencyResponse(verdict=(await self._ask("emergency", request, context)).verdict)

    async def Watch(self, request: kernel_pb2.WatchRequest, context: Any) -> AsyncIterator[kernel_pb2.WatchResponse]:
        """Stream the trace."""
        scope, token = self._caller(context)
        async for one in self._kernels.watch(scope, token, request.kernel, request.after):
            yield one

    async def _ask(self, what: str, request: Any, context: Any) -> session_pb2.StepKernelResponse:
        scope, token = self._caller(context)
        return await self._kernels.ask(scope, token, what, request)

    def _caller(self, context: Any) -> tuple[str, str]:
        sent = [(name, value) for name, value in context.invocation_metadata() or () if isinstance(value, str)]
        caller = self._keys.caller([value for name, value in sent if name == "authorization"])
        tokens = [value for name, value in sent if name == TOKEN]
        if len(tokens) > 1:
            raise unauthenticated("SESSION_TOKEN_INVALID", "the session token was sent more than once")
        return caller.scope, tokens[0] if tokens else ""
