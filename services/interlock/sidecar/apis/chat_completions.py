"""Chat completions: what is governed is what was asked."""

from __future__ import annotations

from typing import Any

from interlock.domain import held
from interlock.runtime.settings.model import Settings
from interlock.sidecar.apis.api import ApiRequest, Lines
from interlock.sidecar.call.identity import Caller
from interlock.sidecar.openai import chat, sse, strictjson
from interlock.sidecar.openai.completion import Completion


class ChatCompletions:
    """The adapter of POST /v1/chat/completions."""

    path = "/v1/chat/completions"
    form = held.CHAT

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def authorization(self, lines: Lines) -> list[str]:
        """Return the Authorization headers."""
        return [value for name, value in lines if name == "authorization"]

    async def read(self, _caller: Caller, data: bytes) -> ApiRequest:
        """Return the checked request in a body."""
        value = strictjson.loads(data, max_depth=self._settings.max_json_depth)
        return ApiRequest(chat.read(value, self._settings))

    def answer(self, _request: ApiRequest, completion: Completion) -> bytes:
        """Return the completion as it is."""
        return completion.body

    def stream(self, request: ApiRequest, completion: Completion) -> bytes:
        """Return the completion in chunks."""
        return sse.encode(completion.completion, include_usage=request.chat.include_usage)

    async def released(self, _caller: Caller, _request: ApiRequest, _completion: Completion) -> None:
        """Keep nothing: a chat request carries what was said before."""

    def error(self, body: dict[str, Any], _status: int) -> dict[str, Any]:
        """Return the refusal as it is."""
        return body
