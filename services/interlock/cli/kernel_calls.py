"""Calls of the command line to kernels, with refusals as the command line tells them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import typer

from interlock.client.errors import InterlockError
from interlock.client.kernel.calls import KernelCalls
from interlock.domain.errors import Kind, Refused, unavailable
from interlock.runtime.settings.access import is_loopback
from interlock.runtime.settings.loading import load

NAME = typer.Argument(help="Name of the kernel, under the caller's key.")
URL = typer.Option(
    "", "--url", help="The sidecar. Default: OPENAI_BASE_URL, or the one here on INTERLOCK_SIDECAR_HTTP_PORT (7070)."
)


def sidecar_url(given: str) -> str:
    """Return where the sidecar is: as *given*, by OPENAI_BASE_URL, or on this machine as its settings say. Empty: the default."""
    if given or os.environ.get("OPENAI_BASE_URL"):
        return given
    settings = load()
    if not settings.sidecar_http_port:  # any free port: only its process knows
        return ""
    scheme = "https" if settings.front_cert_file else "http"
    host = settings.host if is_loopback(settings.host) else "127.0.0.1"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.sidecar_http_port}/v1"


@contextmanager
def calls_of(url: str) -> Iterator[KernelCalls]:
    """Yield calls to a sidecar."""
    calls = KernelCalls(sidecar_url(url), retries=1)
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


@contextmanager
def repeatable(key: str) -> Iterator[None]:
    """Tell the key of a call that was not answered: it may have been done, and under its key it is done once."""
    try:
        yield
    except Refused as refused:
        if refused.kind is not Kind.UNAVAILABLE:
            raise
        hint = "; ".join(filter(None, [refused.metadata.get("hint", ""), f"then repeat it with --key {key}"]))
        told = {**refused.metadata, "key": key, "hint": hint}
        raise Refused(refused.kind, refused.reason, refused.message, metadata=told) from None
