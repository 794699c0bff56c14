"""Permits of one process at a kernel: what nobody was told of is taken back, and what was done is confirmed (KRN-7)."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator

import httpx

from interlock.client.errors import InterlockError, Unavailable
from interlock.client.kernel.calls import KernelCalls

_UNANSWERED = (Unavailable, httpx.TransportError, json.JSONDecodeError)


class Permits:
    """Settles permits. One that was not answered is used by nobody: it is aborted at once, or before the next one is asked for."""

    def __init__(self, calls: KernelCalls, kernel: str) -> None:
        self._calls, self._kernel = calls, kernel
        self._unanswered: list[str] = []

    @contextlib.contextmanager
    def asking(self, key: str) -> Iterator[None]:
        """Ask for a permit in the block. Where that ends without an answer, or is interrupted, nothing stays reserved."""
        self._take_back()
        try:
            yield
        except BaseException as error:
            if isinstance(error, _UNANSWERED) or not isinstance(error, Exception):
                self._unanswered.append(key)
                self._take_back()
            raise

    def confirm(self, key: str) -> None:
        """Settle a permit whose action was done. Where the kernel does not answer, the permit counts as done as it is."""
        with contextlib.suppress(*_UNANSWERED):
            self._calls.post(self._kernel, "confirm", {"permit": key, "key": uuid.uuid4().hex})

    def _take_back(self) -> None:
        """Abort what was not answered; each is asked once, so that a kernel that is silent holds nobody up for long."""
        while self._unanswered:
            key = self._unanswered.pop()
            body = {"permit": key, "key": f"void-{key}", "even_unseen": True}
            try:
                self._calls.post_once(self._kernel, "abort", body)
            except _UNANSWERED:
                self._unanswered.append(key)
                return
            except InterlockError:
                continue  # nothing of it is there to be taken back
