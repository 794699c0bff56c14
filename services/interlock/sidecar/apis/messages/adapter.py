"""The adapter of POST /v1/messages; what it needs is imported by the first request (docs/fronts.md)."""

from __future__ import annotations

from typing import Any

from interlock.domain import held
from interlock.domain.errors import unauthenticated
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.settings.model import Settings
from interlock.sidecar.apis.api import ApiRequest, Lines, StreamWriter
from interlock.sidecar.openai.completion import Completion


class Messages:
    """Reads Anthropic's requests and writes its answers."""

    path = "/v1/messages"
    form = held.MESSAGES

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def authorization(self, lines: Lines) -> list[str]:
        """Return the Authorization headers, or the one that x-api-key stands for. Refused with API_KEY_INVALID where both differ."""
        return authorization(lines)

    async def read(self, _caller: Caller, data: bytes) -> ApiRequest:
        """Return the checked request in a body."""
        from interlock.sidecar.apis.messages import request

        return request.read(data, self._settings)

    def answer(self, _request: ApiRequest, completion: Completion) -> bytes:
        """Return the message."""
        from interlock.sidecar.apis.messages import answer

        return answer.encode(completion.completion)

    def writer(self, _request: ApiRequest, head: Completion) -> StreamWriter:
        """Return what writes the message in events."""
        from interlock.sidecar.apis.messages import writer

        return writer.MessageWriter(head.completion)

    async def released(self, _caller: Caller, _request: ApiRequest, _completion: Completion) -> None:
        """Keep nothing: a request carries what was said before."""

    def error(self, body: dict[str, Any], status: int) -> dict[str, Any]:
        """Return the refusal in Anthropic's shape."""
        from interlock.sidecar.apis.messages import errors

        return errors.shaped(body, status)


def authorization(lines: Lines) -> list[str]:
    """Return what stands for the Authorization header: x-api-key is how this API's clients send their key."""
    given = [value for name, value in lines if name == "authorization"]
    keys = [f"Bearer {value}" for name, value in lines if name == "x-api-key"]
    if len(keys) > 1:
        raise unauthenticated("API_KEY_INVALID", "x-api-key was sent more than once")
    if keys and given and given != keys:
        raise unauthenticated("API_KEY_INVALID", "x-api-key and Authorization are different keys; send one of them")
    return given or keys
