"""The model provider behind Envoy: the first call of an answer goes on through the Envoy that brought the request.

Envoy carries one request for each that came in. What else an answer takes (a review, a remedy, the items of a batch) goes to
``upstream_base_url`` as with the other fronts, and is refused with UPSTREAM_NOT_CONFIGURED where there is none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx

from interlock.domain.errors import unavailable
from interlock.sidecar.fronts.envoy.exchange import CURRENT, Exchange

BEHIND = "http://envoy/v1"
"""Where the provider is taken to be where only Envoy knows its address: the path is what Envoy's route sees."""

_VIA_UPSTREAM = "via_upstream"
_OUT_OF_TIME = 504
_RESET = "upstream_reset"
_UNSENT = ("connection_failure", "connection_timeout", "overflow", "refused_stream_reset", "overload")
"""What Envoy says of a request that it could not send. After any other reset the provider may have generated an answer."""


class ThroughEnvoy(httpx.AsyncBaseTransport):
    """Sends a call of the provider through Envoy where its request came that way, and by *own* otherwise."""

    def __init__(self, own: httpx.AsyncBaseTransport | None) -> None:
        """*own*: ``None`` where no address of the provider is known."""
        self._own = own

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer; its body comes as it is read."""
        exchange, content = CURRENT.get(), await request.aread()
        if exchange is not None and exchange.carries(request.method, content=bool(content)):
            return await self._carried(exchange, request, content)
        if self._own is None:
            raise unavailable(
                "UPSTREAM_NOT_CONFIGURED", "Envoy carries one call of the provider for each request", retry_after_ms=0,
                hint="set INTERLOCK_UPSTREAM_BASE_URL for the reviews, remedies and items of batches",
            )  # fmt: skip
        return await self._own.handle_async_request(request)

    async def _carried(self, exchange: Exchange, request: httpx.Request, content: bytes) -> httpx.Response:
        headers = {name: value for name, value in request.headers.items() if name not in {"host", "content-length"}}
        path = request.url.raw_path.decode("ascii")
        status, lines, details = await exchange.ask(path, headers, content)
        if details and details != _VIA_UPSTREAM:  # the provider did not say this, Envoy did
            raise _gone(status, details)(details, request=request)
        return httpx.Response(status, headers=lines, stream=_Pieces(exchange), request=request)

    async def aclose(self) -> None:
        """Close the connections of the own transport."""
        if self._own is not None:
            await self._own.aclose()


def _gone(status: int, details: str) -> type[httpx.TransportError]:
    """Return what became of a request that Envoy answered itself."""
    if status == _OUT_OF_TIME:
        return httpx.ReadTimeout
    is_sent = details.startswith(_RESET) and not any(word in details for word in _UNSENT)
    return httpx.RemoteProtocolError if is_sent else httpx.ConnectError


class _Pieces(httpx.AsyncByteStream):
    """The body of an answer that comes through Envoy."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._exchange.pieces():
            yield piece
