"""The body of a request, read within bounds."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from interlock.domain.errors import invalid


async def read_body(request: Request, limit: int, *, timeout_s: float, too_large: Exception) -> bytes:
    """Return the body, counted while it comes in.

    Raises *too_large* above *limit* bytes without reading on. Refused with REQUEST_BODY_TIMEOUT after *timeout_s* seconds.
    """
    data = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            async for chunk in request.stream():
                data += chunk
                if len(data) > limit:
                    raise too_large
    except TimeoutError:
        raise invalid("REQUEST_BODY_TIMEOUT", "the body did not arrive in time") from None
    return bytes(data)
