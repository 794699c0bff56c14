"""httpx transports that govern all requests: for the openai client and the frameworks that build on it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping

import httpx

from interlock.client.core import State


class GovernedTransport(httpx.BaseTransport):
    """Gives each request the session's headers and keeps the token of each response. One call at a time."""

    def __init__(self, state: State, inner: httpx.BaseTransport, lock: threading.Lock) -> None:
        self._state, self._inner, self._lock = state, inner, lock

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send *request* as the session's next call."""
        with self._lock:
            _govern(request, self._state)
            response = self._inner.handle_request(request)
            self._state.learn(lowered(response.headers))
            return response

    def close(self) -> None:
        """Close nothing: the session owns the connections."""


class AsyncGovernedTransport(httpx.AsyncBaseTransport):
    """The same for asyncio."""

    def __init__(self, state: State, inner: httpx.AsyncBaseTransport, lock: asyncio.Lock) -> None:
        self._state, self._inner, self._lock = state, inner, lock

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send *request* as the session's next call."""
        async with self._lock:
            _govern(request, self._state)
            response = await self._inner.handle_async_request(request)
            self._state.learn(lowered(response.headers))
            return response

    async def aclose(self) -> None:
        """Close nothing: the session owns the connections."""


def _govern(request: httpx.Request, state: State) -> None:
    for name, value in state.headers().items():
        request.headers[name] = value


def lowered(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with lower-case names."""
    return {name.lower(): value for name, value in headers.items()}
