"""Chat completions: what is governed is what was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.domain import held
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.settings.model import Settings
from interlock.sidecar.apis.api import HALTED, ApiRequest, Lines, StreamWriter
from interlock.sidecar.call.live import AnswerPart
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

    def writer(self, request: ApiRequest, head: Completion) -> StreamWriter:
        """Return what writes the completion in chunks."""
        return Chunks(sse.ChunkWriter(head.completion, include_usage=request.chat.include_usage))

    async def released(self, _caller: Caller, _request: ApiRequest, _completion: Completion) -> None:
        """Keep nothing: a chat request carries what was said before."""

    def error(self, body: dict[str, Any], _status: int) -> dict[str, Any]:
        """Return the refusal as it is."""
        return body


class Chunks:
    """A completion in chunks. One that breaks off has no [DONE]."""

    keep_alive = sse.KEEP_ALIVE

    def __init__(self, chunks: sse.ChunkWriter) -> None:
        self._chunks = chunks

    def part(self, part: AnswerPart) -> bytes:
        """Return a part."""
        return self._chunks.part(part.reasoning, part.text)

    def end(self, completion: Completion, final: Mapping[str, str] | None = None) -> bytes:
        """Return the rest and the end."""
        return self._chunks.end(completion.completion) + self._final(final) + sse.DONE

    def stop(self, body: dict[str, Any], status: int, final: Mapping[str, str] | None = None) -> bytes:
        """Return the error that ends the answer, behind a chunk that says so where it was cut."""
        cut = self._chunks.cut() if status == HALTED else b""
        return cut + self._final(final) + sse.event(body)

    def _final(self, final: Mapping[str, str] | None) -> bytes:
        return b"" if final is None else self._chunks.final(final)
