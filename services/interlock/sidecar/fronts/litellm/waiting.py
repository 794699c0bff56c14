"""Requests that LiteLLM has passed on and whose answers have not come yet, in this process alone.

LiteLLM says nothing of a call whose provider failed, so every request is forgotten after a while. An answer whose request is not here is
refused: without it nobody can say what the answer rests on, or whose it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from interlock.domain.errors import conflict, exhausted, not_found
from interlock.sidecar.fronts.litellm.contract import Lines
from interlock.sidecar.openai.chat import Chat

WAITING_S = 900.0
"""How long an answer may take; LiteLLM's own limit is 600 seconds unless it is set."""
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of requests that may wait in all."""

Key = tuple[str, str]
"""Whose call it is, and its id: a client may choose an id, and must not reach another's call by it."""


@dataclass(frozen=True)
class Passed:
    """A request that was passed on."""

    chat: Chat
    lines: Lines
    size: int
    """Bytes that it came in."""


class Waiting:
    """The requests that wait."""

    def __init__(self, clock: Callable[[], float], *, most_bytes: int = MOST_BYTES) -> None:
        """*clock* tells seconds and never goes back."""
        self._clock, self._most_bytes = clock, most_bytes
        self._kept: dict[Key, tuple[float, Passed]] = {}
        self._size = 0

    def keep(self, key: Key, passed: Passed) -> None:
        """Keep a request until its answer comes.

        Refused with LITELLM_CALL_ID_TAKEN while another request of the caller waits under the same id, or with OVERLOADED.
        """
        self._forget()
        known = self._kept.get(key)
        if known is not None and known[1] != passed:
            message = "another request with this call id waits for its answer: leave x-litellm-call-id away"
            raise conflict("LITELLM_CALL_ID_TAKEN", message)
        self._drop(key)
        if self._size + passed.size > self._most_bytes:
            raise exhausted("OVERLOADED", "too many requests wait for their answers; try again")
        self._kept[key] = (self._clock() + WAITING_S, passed)
        self._size += passed.size

    def take(self, key: Key) -> Passed:
        """Return the request of an answer, once. Refused with LITELLM_REQUEST_UNKNOWN."""
        self._forget()
        known = self._kept.get(key)
        if known is None:
            message = "this sidecar knows no request of that answer, or its answer was judged already"
            raise not_found(
                "LITELLM_REQUEST_UNKNOWN", message, hint="mode: [pre_call, post_call], and one sidecar for both"
            )
        self._drop(key)
        return known[1]

    def _forget(self) -> None:
        """Forget what has waited too long: the oldest come first."""
        now = self._clock()
        while self._kept:
            key, (until, _) = next(iter(self._kept.items()))
            if until > now:
                return
            self._drop(key)

    def _drop(self, key: Key) -> None:
        known = self._kept.pop(key, None)
        self._size -= known[1].size if known else 0
