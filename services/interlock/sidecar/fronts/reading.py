"""Reading an HTTP request: who calls, what its headers ask for, its body; and noticing that the client hung up (A-20, A-21)."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from interlock.domain.errors import invalid
from interlock.domain.headers import headers
from interlock.runtime.http.body import read_body
from interlock.runtime.keys.api_keys import Caller
from interlock.sidecar.apis.api import Lines
from interlock.sidecar.fronts.front import Front, too_large

A = TypeVar("A")

MAX_HEADER_BYTES = 32_768
BODY_TIMEOUT_S = 30.0

_JSON = re.compile(r'application/json(?:\s*;\s*charset="?utf-8"?)?\s*', re.IGNORECASE)


class CallerGone(Exception):  # noqa: N818 - not an error: there is no one to answer
    """The client closed the connection."""


def _authorization(lines: Lines) -> list[str]:
    return [value for name, value in lines if name == "authorization"]


def read_headers(
    front: Front,
    request: Request,
    *,
    delegating: bool = False,
    authorization: Callable[[Lines], list[str]] = _authorization,
) -> tuple[Caller, headers.RequestHeaders]:
    """Return who calls, by what the API has for *authorization*, and what the CRP headers ask for, from the raw header lines."""
    raw = request.headers.raw
    if sum(len(name) + len(value) for name, value in raw) > MAX_HEADER_BYTES:
        raise invalid("HEADER_TOO_LARGE", f"the headers exceed {MAX_HEADER_BYTES} bytes in all")
    lines = header_lines(request)
    return front.keys.caller(authorization(lines)), headers.read(lines, delegating=delegating)


def header_lines(request: Request) -> list[tuple[str, str]]:
    """Return the header lines as they came, names in lower case."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw]


async def body_of(request: Request, limit: int) -> bytes:
    """Return the body, counted while it comes in. Refused as 413, 415 or 408 without reading on."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise invalid("UNSUPPORTED_ENCODING", "the body must not be compressed")
    types = request.headers.getlist("content-type")
    if len(types) != 1 or not _JSON.fullmatch(types[0]):
        raise invalid("UNSUPPORTED_MEDIA_TYPE", "the body must be application/json in UTF-8")
    return await read_body(request, limit, timeout_s=BODY_TIMEOUT_S, too_large=too_large(limit))


async def while_connected(request: Request, work: Coroutine[Any, Any, A]) -> A:
    """Return what *work* gives; when the client hangs up first, tell *work* by cancelling it."""
    task, gone = asyncio.create_task(work), asyncio.create_task(_hung_up(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return await task
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        raise CallerGone
    finally:
        gone.cancel()
        task.cancel()


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
