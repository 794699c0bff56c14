"""What the calls to every service share: deadline, retry, and answers that hold what they must."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from interlock.domain.errors import KEPT_UNKNOWN, Refused
from interlock.runtime.rpc.answers import UNUSABLE, checked
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.deadline import Deadline, retry_idempotent

A = TypeVar("A", bound=Any)

Method = Callable[..., Awaitable[A]]
"""A method of a stub: called with a request and ``timeout``, seconds."""


IN_DOUBT = frozenset({"AUDIT_UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "FAILPOINT"}) | UNUSABLE
"""Failures after which a write may be done all the same: no answer said whether it is."""


def in_doubt(refused: Refused) -> bool:
    """Tell whether what was *refused* may be done all the same."""
    return refused.reason in IN_DOUBT or KEPT_UNKNOWN.items() <= refused.metadata.items()


class WriteFailedError(Exception):
    """A write was not acknowledged. *in_doubt*: it may be done all the same."""

    def __init__(self, refused: Refused, *, in_doubt: bool) -> None:
        super().__init__(refused.reason)
        self.refused, self.in_doubt = refused, in_doubt


class ServicePeer:
    """Calls of one service, at most *timeout_s* seconds each."""

    name: str

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s

    async def _call(self, method: Method[A], request: Any, deadline: Deadline | None) -> A:
        """Return the answer. Without a deadline the call has the service's limit to itself."""
        timeout_s = self.timeout_s if deadline is None else deadline.within(self.timeout_s)
        return checked(request, await call_service(self.name, self._send(method, request, timeout_s)))

    async def _call_until_done(self, method: Method[A], request: Any, deadline: Deadline | None) -> A:
        """Return the answer to an idempotent request, asked again while the service cannot answer."""
        return await retry_idempotent(lambda: self._call(method, request, deadline))

    async def _written(self, method: Method[A], request: Any, deadline: Deadline | None) -> A:
        """Return the answer to an idempotent write. Raises ``WriteFailedError``: one of several tries may have been done."""
        doubts: list[bool] = []

        async def attempt() -> A:
            try:
                return await self._call(method, request, deadline)
            except Refused as refused:
                doubts.append(in_doubt(refused))
                raise

        try:
            return await retry_idempotent(attempt)
        except Refused as refused:
            raise WriteFailedError(refused, in_doubt=any(doubts)) from None

    async def _send(self, method: Method[A], request: Any, timeout_s: float) -> A:
        """Return the answer as it came; a refusal in it is a value."""
        return await method(request, timeout=timeout_s)
