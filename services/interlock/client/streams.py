"""An answer that is released in parts: its events put together, and what iterates over its parts (docs/streams.md)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from interlock.client.answer import Answer
from interlock.client.core import State, token_in
from interlock.client.errors import error_of

ASKED = {"CRP-Stream-Final": "event"}
"""Asks for the final values at the end of the stream: with it the answer may leave in parts."""

_STATUS: Mapping[str, int] = {
    "invalid_request_error": 400, "authentication_error": 401, "permission_error": 403, "not_found_error": 404,
    "conflict_error": 409, "safety_halt": 451, "rate_limit_error": 429, "upstream_error": 502, "timeout_error": 504,
}  # fmt: skip
"""Status that a refusal of each type has where nothing was released before it."""


class Assembly:
    """Puts the events of one stream together."""

    def __init__(self, state: State, headers: Mapping[str, str]) -> None:
        self._state, self._headers = state, dict(headers)
        self._rest = b""
        self._data: list[str] = []
        self._frame: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._ended = False

    def feed(self, data: bytes) -> str:
        """Take bytes as they came, and return the text of the first choice that came with them. Raises the error that ends a stream."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return "".join(self._line(line.removesuffix(b"\r").decode()) for line in lines)

    def _line(self, line: str) -> str:
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
            return ""
        if line or not self._data:
            return ""
        data, self._data = "\n".join(self._data), []
        if data == "[DONE]":
            self._ended = True
            return ""
        return self._event(json.loads(data))

    def answer(self) -> Answer:
        """Return the whole. Raises ``Unavailable`` with STREAM_BROKEN where its end never came."""
        self._state.learn(self._headers)
        if not self._ended:
            message = {"message": "the connection ended before the answer did"}
            raise error_of(503, self._headers, {"reason": "STREAM_BROKEN", "error": message})
        choices = [self._choices[index] for index in sorted(self._choices)]
        completion = {**self._frame, "object": "chat.completion", "choices": choices}
        return Answer(completion, self._headers, token_in(self._headers))

    def _event(self, said: Mapping[str, Any]) -> str:
        if "crp" in said:
            self._headers |= {name.lower(): str(value) for name, value in said["crp"].items()}
            return ""
        if "reason" in said:
            self._state.learn(self._headers)
            error = said.get("error")
            kind = str(error.get("type", "")) if isinstance(error, Mapping) else ""
            raise error_of(_STATUS.get(kind, 503), self._headers, said)
        self._frame |= {name: value for name, value in said.items() if name not in {"choices", "object"} and value}
        text = ""
        for part in said.get("choices", ()):
            choice = self._choices.setdefault(part["index"], _begun(part["index"]))
            choice["finish_reason"] = part.get("finish_reason") or choice["finish_reason"]
            _grow(choice["message"], part.get("delta") or {})
            text += (part["delta"].get("content") or "") if part["index"] == 0 else ""
        return text


def _begun(index: int) -> dict[str, Any]:
    return {"index": index, "message": {"role": "assistant", "content": None}, "finish_reason": None}


def _grow(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add a delta to a message: texts go on, tool calls go on by their index."""
    for name in ("content", "reasoning_content", "refusal"):
        if delta.get(name):
            message[name] = (message.get(name) or "") + delta[name]
    for part in delta.get("tool_calls") or ():
        calls = message.setdefault("tool_calls", [])
        while len(calls) <= part["index"]:
            calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        call, function = calls[part["index"]], part.get("function") or {}
        call |= {name: part[name] for name in ("id", "type") if part.get(name)}
        for name in ("name", "arguments"):
            call["function"][name] += function.get(name) or ""


class _Ended:
    """What is known of a stream once it has ended."""

    text = ""
    """What was released so far."""
    _answer: Answer | None = None

    @property
    def answer(self) -> Answer:
        """The whole answer. Raises ``RuntimeError`` before its last part."""
        if self._answer is None:
            raise RuntimeError("the answer is there once all its parts are: iterate to the end first")
        return self._answer


class AnswerStream(_Ended):
    """The parts of an answer, each once it was judged and put on record. Leave the ``with`` block, or iterate to the end.

    ``with session.stream("...") as parts: ...`` and then ``parts.answer``. Iterating raises an ``InterlockError`` where there is
    no answer, or the rest of one may not leave; what came until then is ``text``.
    """

    def __init__(self, parts: Generator[str, None, Answer]) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[str]:
        """Yield the parts."""
        while True:
            try:
                part = next(self._parts)
            except StopIteration as end:
                self._answer = end.value or self._answer
                return
            self.text += part
            yield part

    def close(self) -> None:
        """Take no more parts. The sidecar settles what was generated."""
        self._parts.close()

    def __enter__(self) -> Self:
        """Do nothing: the first part starts the call."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Take no more parts."""
        self.close()


class AsyncAnswerStream(_Ended):
    """The same for asyncio: ``async with session.stream("...") as parts: async for part in parts: ...``."""

    def __init__(self, parts: AsyncGenerator[str | Answer, None]) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the parts."""
        async for part in self._parts:
            if isinstance(part, Answer):
                self._answer = part
            else:
                self.text += part
                yield part

    async def close(self) -> None:
        """Take no more parts. The sidecar settles what was generated."""
        await self._parts.aclose()

    async def __aenter__(self) -> Self:
        """Do nothing: the first part starts the call."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Take no more parts."""
        await self.close()
