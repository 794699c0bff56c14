"""The adapter of POST /v1/completions; what it needs is imported by the first request (docs/fronts.md)."""

from __future__ import annotations

from typing import Any

from interlock.domain import held
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.settings.model import Settings
from interlock.sidecar.apis.api import ApiRequest, Lines, StreamWriter
from interlock.sidecar.openai.completion import Completion


class Completions:
    """Reads legacy requests and writes their answers; the provider is asked for a chat completion."""

    path = "/v1/completions"
    form = held.COMPLETIONS

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def authorization(self, lines: Lines) -> list[str]:
        """Return the Authorization headers."""
        return [value for name, value in lines if name == "authorization"]

    async def read(self, _caller: Caller, data: bytes) -> ApiRequest:
        """Return the checked request in a body."""
        from interlock.sidecar.apis.completions import legacy

        return legacy.read(data, self._settings)

    def answer(self, _request: ApiRequest, completion: Completion) -> bytes:
        """Return the text completion."""
        from interlock.sidecar.apis.completions import legacy

        return legacy.encode(completion.completion)

    def writer(self, request: ApiRequest, head: Completion) -> StreamWriter:
        """Return what writes the text completion in chunks."""
        from interlock.sidecar.apis.completions import legacy

        return legacy.TextChunks(head.completion, include_usage=request.chat.include_usage)

    async def released(self, _caller: Caller, _request: ApiRequest, _completion: Completion) -> None:
        """Keep nothing: a prompt has no memory."""

    def error(self, body: dict[str, Any], _status: int) -> dict[str, Any]:
        """Return the refusal as it is."""
        return body
