"""The request and the answer of legacy completions. An allow-list: what is not listed is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.domain.errors import Refused, invalid
from interlock.runtime.settings.model import Settings
from interlock.sidecar.apis.api import HALTED, ApiRequest
from interlock.sidecar.call.live import AnswerPart
from interlock.sidecar.openai import chat, strictjson
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.openai.sse import DONE, FINAL, KEEP_ALIVE, PIECE, event

PASSED = (
    "model", "frequency_penalty", "logit_bias", "max_tokens", "n", "presence_penalty", "seed", "stop", "stream", "stream_options",
    "temperature", "top_p", "user", "interlock",
)  # fmt: skip
"""Parameters that chat completions know by the same name."""
REFUSED: Mapping[str, str] = {
    "best_of": "answers that nobody judged would be thrown away: ask for n",
    "echo": "an answer that repeats the prompt would be judged with it",
    "logprobs": "the alternatives to a token are no part of an answer and cannot be analysed",
    "suffix": "the provider is asked by chat completions, which insert nothing",
}
"""Parameters of the vendor that are refused by name, and why."""
_NOTHING: tuple[Any, ...] = (None, False, "")


def read(data: bytes, settings: Settings) -> ApiRequest:
    """Return the checked request of a body.

    Refused with INVALID_REQUEST, UNKNOWN_PARAMETER, INVALID_PARAMETER or UNSUPPORTED_CONTENT; ``param`` names the place.
    """
    value = strictjson.loads_object(data, max_depth=settings.max_json_depth)
    rest = dict(value)
    for name, why in REFUSED.items():
        given = rest.pop(name, None)
        if given not in _NOTHING and (name, given) != ("best_of", rest.get("n") or 1):
            raise invalid("UNSUPPORTED_CONTENT", f"{name} is not supported: {why}", param=name)
    asked = {"messages": [{"role": "user", "content": _prompt(rest.pop("prompt", None))}]}
    for name in rest.keys() - set(PASSED) - chat.of_the_provider(settings):
        shown = name if name.isidentifier() and len(name) <= 64 and name.isascii() else "?"
        raise invalid("UNKNOWN_PARAMETER", f"unknown parameter: {shown}", param=shown)
    return ApiRequest(chat.read({**rest, **asked}, settings))


def encode(completion: Mapping[str, Any]) -> bytes:
    """Return the text completion of a checked *completion*."""
    choices = [_choice(one, _text(one), str(_finish(one))) for one in completion["choices"]]
    return strictjson.dumps({**_frame(completion), "choices": choices, "usage": completion.get("usage")})


class TextChunks:
    """Writes a text completion in chunks, in parts or at once. Reasoning is no part of the text. One that breaks off has no [DONE]."""

    keep_alive = KEEP_ALIVE

    def __init__(self, head: Mapping[str, Any], *, include_usage: bool) -> None:
        self._frame, self._include_usage, self._left = _frame(head), include_usage, 0

    def part(self, part: AnswerPart) -> bytes:
        """Return a part of the only choice."""
        self._left += len(part.text)
        return self._chunk(_choice({"index": 0}, part.text, None))

    def end(self, completion: Completion, final: Mapping[str, str] | None = None) -> bytes:
        """Return the rest and the end."""
        written = []
        for one in completion.choices:
            text = _text(one)[self._left :]
            pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)] or [""]
            written += [self._chunk(_choice(one, piece, None)) for piece in pieces]
            written.append(self._chunk(_choice(one, "", _finish(one))))
        if self._include_usage:
            written.append(event({**self._frame, "choices": [], "usage": completion.completion.get("usage")}))
        return b"".join(written) + self._final(final) + DONE

    def stop(self, body: dict[str, Any], status: int, final: Mapping[str, str] | None = None) -> bytes:
        """Return the error that ends the text, behind a chunk that says so where it was cut."""
        cut = self._chunk(_choice({"index": 0}, "", "content_filter")) if status == HALTED else b""
        return cut + self._final(final) + event(body)

    def _final(self, final: Mapping[str, str] | None) -> bytes:
        return b"" if final is None else FINAL + event({**self._frame, "choices": [], "crp": dict(final)})

    def _chunk(self, choice: Mapping[str, Any]) -> bytes:
        return event({**self._frame, "choices": [choice]})


def _prompt(value: Any) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        raise _unsupported("one prompt to a request: several go to /crp/v3/batch, each in a window of its own")
    if isinstance(value, list) and value:
        raise _unsupported("a prompt of tokens cannot be analysed: send it as text")
    raise invalid("INVALID_PARAMETER", "prompt must be a string, or a list of one", param="prompt")


def _unsupported(why: str) -> Refused:
    return invalid("UNSUPPORTED_CONTENT", why, param="prompt")


def _frame(completion: Mapping[str, Any]) -> dict[str, Any]:
    answer_id = "cmpl-" + completion["id"].removeprefix("chatcmpl-")
    return {
        "id": answer_id,
        "object": "text_completion",
        "created": completion["created"],
        "model": completion["model"],
    }


def _text(choice: Mapping[str, Any]) -> str:
    message = choice["message"]
    return (message["content"] or "") + (message.get("refusal") or "")


def _finish(choice: Mapping[str, Any]) -> str:
    """Return how the text ended. This API has no calls: one that was made all the same is left out."""
    return choice["finish_reason"] if choice["finish_reason"] in {"length", "content_filter"} else "stop"


def _choice(choice: Mapping[str, Any], text: str, finish: str | None) -> dict[str, Any]:
    return {"index": choice["index"], "text": text, "logprobs": None, "finish_reason": finish}
