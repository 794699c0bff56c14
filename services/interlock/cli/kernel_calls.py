"""Calls of the command line to kernels, with refusals as the command line tells them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import typer

from interlock.client.errors import InterlockError
from interlock.client.kernel.calls import KernelCalls
from interlock.domain.errors import Kind, Refused, unavailable

NAME = typer.Argument(help="Name of the kernel, under the caller's key.")
URL = typer.Option("", "--url", help="The sidecar. Default: OPENAI_BASE_URL, or http://127.0.0.1:7070/v1.")


@contextmanager
def calls_of(url: str) -> Iterator[KernelCalls]:
    """Yield calls to a sidecar."""
    calls = KernelCalls(url, retries=1)
    try:
        yield calls
    except InterlockError as error:
        kind = Kind.INVALID if error.status < 500 else Kind.UNAVAILABLE
        raise Refused(kind, error.reason, str(error).partition(": ")[2], metadata=dict(error.metadata)) from None
    except httpx.TransportError as error:
        hint = "start it with `interlock serve`, or name it with --url"
        raise unavailable(
            "SIDECAR_UNAVAILABLE", f"the sidecar does not answer: {type(error).__name__}", hint=hint
        ) from None
    finally:
        calls.close()
