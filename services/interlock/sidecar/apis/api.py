"""What an adapter of an API is (API-1 to API-3): reading its requests, writing its answers, streams and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from interlock.domain.held import STREAMED
from interlock.runtime.keys.api_keys import Caller
from interlock.sidecar.call.live import AnswerPart
from interlock.sidecar.openai.chat import Chat
from interlock.sidecar.openai.completion import Completion

HALTED = 451
"""Status of an answer that may not leave (SPEC-002 §13)."""

Lines = Sequence[tuple[str, str]]
"""Header lines as they came, names in lower case."""


@dataclass(frozen=True)
class ApiRequest:
    """A checked request of an API."""

    chat: Chat
    """The chat request that is governed for it."""
    echoed: Mapping[str, Any] = field(default_factory=dict)
    """What its answer says again of the request, such as the instructions of a Responses request."""


class StreamWriter(Protocol):
    """Writes one answer as the server-sent events of an API, in parts or at once. What has left is not said again."""

    keep_alive: bytes
    """What tells a client that a silent stream lives."""

    def part(self, part: AnswerPart) -> bytes:
        """Return the next part of the answer: its reasoning before its text, each behind what has left."""
        ...

    def end(self, completion: Completion, final: Mapping[str, str] | None = None) -> bytes:
        """Return the rest of a released *completion*, and its end. *final*: CRP values that are told before the end."""
        ...

    def stop(self, body: dict[str, Any], status: int, final: Mapping[str, str] | None = None) -> bytes:
        """Return the end of an answer of which the rest may not leave (451), or that breaks off: no client may take it for whole.

        *body* is the refusal's, with ``error``, ``reason``, ``metadata`` and the fields of a halt.
        """
        ...


class Api(Protocol):
    """One API. The names of its forms are stored with held answers, so they never change."""

    path: str
    """The path that it is asked at, by POST."""
    form: str
    """In which form its answers leave and are held (``domain.held``)."""

    def authorization(self, lines: Lines) -> list[str]:
        """Return the values of the Authorization header, or what stands for them in this API."""
        ...

    async def read(self, caller: Caller, data: bytes) -> ApiRequest:
        """Return the checked request in a body. Refused with a stable reason; ``param`` names the place."""
        ...

    def answer(self, request: ApiRequest, completion: Completion) -> bytes:
        """Return the JSON body for a released *completion*; its id is ours."""
        ...

    def writer(self, request: ApiRequest, head: Completion) -> StreamWriter:
        """Return what writes one streamed answer; *head* has its id, its time and its model."""
        ...

    async def released(self, caller: Caller, request: ApiRequest, completion: Completion) -> None:
        """Keep what a later request may name, before the answer leaves."""
        ...

    def error(self, body: dict[str, Any], status: int) -> dict[str, Any]:
        """Return a refusal in the shape of this API; *body* has ``error``, ``reason``, ``metadata`` and the fields of a halt."""
        ...


@runtime_checkable
class KeepingApi(Api, Protocol):
    """An API whose answers can be asked for again by their id, below its path."""

    async def retrieve(self, caller: Caller, answer_id: str) -> bytes:
        """Return the JSON body of a kept answer. Refused as not found, also where it is another caller's."""
        ...

    async def input_items(self, caller: Caller, answer_id: str) -> bytes:
        """Return the JSON body of what a kept answer answered."""
        ...

    async def delete(self, caller: Caller, answer_id: str) -> bytes:
        """Delete a kept answer and return the JSON body that says so."""
        ...


def form_of(api: Api, request: ApiRequest) -> str:
    """Return the form in which the answer to *request* leaves."""
    return api.form + STREAMED if request.chat.stream else api.form
