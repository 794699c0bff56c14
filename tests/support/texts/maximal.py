"""The largest answer that a provider could send, with a word of its own in every string of it (I17; F-24).

The fields come from the types of the installed ``openai`` package, so that a newer one is walked with its own, and from what other
providers add. Each word stands in one place only: a word that comes back tells where it was.
"""

from __future__ import annotations

import re
import types
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from openai.types import model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response
from pydantic import BaseModel

WORD = re.compile(r"zq[0-9a-f]{4}x")
VENDORS = (
    "reasoning", "reasoning_details", "thinking_blocks", "citations", "search_results", "images", "provider_specific_fields",
    "provider", "x_groq", "prompt_filter_results", "content_filter_results", "stop_reason", "matched_stop", "native_finish_reason",
    "extra_content", "prompt_logprobs", "kv_transfer_params", "context", "error", "usage_metadata", "interlock", "choices_more",
)  # fmt: skip
"""Fields that other providers add somewhere: OpenRouter, Perplexity, Groq, Azure, vLLM, SGLang, LiteLLM, Gemini."""

SAID = {"role": "assistant", "type": "function", "object": "chat.completion"}
"""Fields that must have this value for the answer to be one."""


@dataclass
class Words:
    """Gives each place a word, and tells the places of words."""

    places: dict[str, str] = field(default_factory=dict)

    def at(self, place: str) -> str:
        word = f"zq{len(self.places):04x}x"
        self.places[word] = place
        return word

    def found(self, *texts: str) -> set[str]:
        """The places whose words stand in *texts*."""
        return {self.places[word] for text in texts for word in WORD.findall(text) if word in self.places}


def answer(words: Words, *, custom: bool = False, calls: bool = True) -> dict[str, Any]:
    """A completion with every field that a type names, and unknown ones at every level. *custom*: with a call of a custom tool."""
    value: dict[str, Any] = _object(ChatCompletion, words, "answer", custom=custom)
    value["choices"][0] |= {"index": 0, "finish_reason": "stop"}
    message = value["choices"][0]["message"]
    message["reasoning_content"] = words.at("answer.choices[].message.reasoning_content")
    if not calls:
        del message["tool_calls"], message["function_call"]
    content = words.at("answer.choices[].message.content")
    # A stream cuts the word in its middle, and a plan is made of the list.
    message["content"] = "1. Say this.\n2. Say that.\n" + "fine " * 96 + f"{content}."
    value["choices"][0]["logprobs"]["content"] = _spelled(message["content"], words)
    value["service_tier"] = words.at("answer.service_tier")
    return value


def response(words: Words) -> dict[str, Any]:
    """An answer of a provider's Responses API with every field and every kind of item that a type names."""
    value = _object(Response, words, "response", custom=False)
    for item in value["output"]:
        if item["type"] == "function_call":
            item["name"] = "look_up"
        if item["type"] == "message":
            text = item["content"][0]
            text["text"] = f"It is {words.at('response.output[].content[].text')}."
            text["logprobs"] = _spelled(text["text"], words)
    return {**value, "status": "completed", "error": None, "service_tier": words.at("response.service_tier")}


def chunks(words: Words) -> list[dict[str, Any]]:
    """Three events of a stream, each with every field that a type names."""
    return [_object(ChatCompletionChunk, words, f"event {number}", custom=False) for number in range(3)]


def models(words: Words) -> dict[str, Any]:
    """A list of models, with unknown fields; the names are names."""
    one = {**_object(model.Model, words, "model", custom=False), "id": "test-model"}
    return {"object": words.at("models.object"), "data": [one], **_unknown(words, "models", ("object", "data"))}


def around_vectors(words: Words) -> dict[str, Any]:
    """Words around vectors: in the fields of the answer, and in unknown ones."""
    known = {"object": words.at("vectors.object"), "model": words.at("vectors.model")}
    usage = {"prompt_tokens": words.at("vectors.usage.prompt_tokens"), words.at("a name in vectors.usage"): 1}
    return {**_unknown(words, "vectors", ("object", "model")), **known, "usage": usage}


def message(words: Words) -> dict[str, Any]:
    """A message of Anthropic's with every block and field that a type names, and unknown ones at every level."""
    from anthropic.types import Message

    value: dict[str, Any] = _object(Message, words, "message", custom=False)
    value |= {"type": "message", "role": "assistant", "stop_reason": "end_turn"}
    text = next(one for one in value["content"] if one["type"] == "text")
    text["text"] = "1. Say this.\n2. Say that.\n" + "fine " * 96 + f"{words.at('message.content[].text')}."
    return value


def error(words: Words, status: int) -> dict[str, Any]:
    """An error object with words in each field, and more fields than there are."""
    place = f"error {status}"
    names = ("message", "type", "code", "param", "inner", "metadata")
    return {**_unknown(words, place), "error": {name: words.at(f"{place}.{name}") for name in names}}


def headers(words: Words, status: int) -> dict[str, str]:
    """Headers of a provider that end in what a client reads."""
    names = (
        "x-request-id", "openai-organization", "openai-processing-ms", "openai-version", "x-ratelimit-limit-requests",
        "x-ratelimit-reset-tokens", "retry-after", "retry-after-ms", "x-should-retry", "set-cookie", "server", "www-authenticate",
        "crp-safety-hallucination-risk", "crp-set-session", "location", "warning",
    )  # fmt: skip
    return {name: words.at(f"header {status}.{name}") for name in names}


def placed(words: Words) -> Iterator[tuple[str, dict[str, Any]]]:
    """The maximal answer again with a word in one field that must be one of a few: refused, or the word is dropped."""

    def one(place: str, *path: Any) -> tuple[str, dict[str, Any]]:
        value = answer(words)
        at: Any = value
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = words.at(place)
        return place, value

    choice = ("choices", 0)
    yield one("finish_reason", *choice, "finish_reason")
    yield one("role", *choice, "message", "role")
    yield one("object", "object")
    yield one("type of a call", *choice, "message", "tool_calls", 0, "type")
    yield one("index", *choice, "index")
    yield one("created", "created")
    yield one("usage", "usage")
    yield one("total_tokens", "usage", "total_tokens")
    yield one("a logprob", *choice, "logprobs", "content", 0, "logprob")
    yield one("arguments", *choice, "message", "function_call", "arguments")


def _spelled(text: str, words: Words) -> list[dict[str, Any]]:
    """Tokens that spell *text*, each with alternatives and more fields."""
    place = "answer.choices[].logprobs.content[]"
    parts = re.findall(r"\S+\s*", text)
    return [
        {
            "token": part, "logprob": -0.5, "bytes": list(part.encode()),
            "top_logprobs": [{"token": word, "logprob": -1.5, "bytes": list(word.encode())}],
            **({"extra": words.at(f"{place}.extra")} if not number else {}),
        }
        for number, part in enumerate(parts)
        for word in [words.at(f"{place}.top_logprobs[].token") if number < 3 else "x"]
    ]  # fmt: skip


def _object(kind: type[BaseModel], words: Words, place: str, *, custom: bool) -> dict[str, Any]:
    said = () if kind.__module__.startswith("anthropic") else SAID
    given = {
        name: said[name]
        if name in said and not _is_word(one.annotation)
        else _value(one.annotation, words, f"{place}.{name}", custom=custom)
        for name, one in kind.model_fields.items()
    }
    return {**_unknown(words, place, given), **given}


def _is_word(kind: Any) -> bool:
    return get_origin(kind) is Literal and len(get_args(kind)) == 1


def _unknown(words: Words, place: str, given: Collection[str] = ()) -> dict[str, Any]:
    """Fields that no type names, with words as values, as items and as names."""
    more = {name: words.at(f"{place}.{name}") for name in VENDORS if name not in given}
    word = words.at(f"a name in {place}")
    return {**more, word: 1, "nested": {"deep": [{words.at(f"a deep name in {place}"): words.at(f"{place}.nested")}]}}


def _value(kind: Any, words: Words, place: str, *, custom: bool) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _value(args[0], words, place, custom=custom)
    if origin in (Union, types.UnionType):
        return _value(_first(args), words, place, custom=custom)
    if origin is Literal:
        return args[0]
    if origin is list:
        return [_value(one, words, f"{place}[]", custom=custom) for one in _members(args[0], custom=custom)]
    if origin is dict:
        return {words.at(f"a name in {place}"): words.at(f"{place}{{}}")}
    if getattr(kind, "__name__", "") == "object" or kind is Any:
        return words.at(place)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _object(kind, words, place, custom=custom)
    numbers = {int: 7, float: -0.25, bool: True}
    return numbers[kind] if kind in numbers else words.at(place)


def _members(kind: Any, *, custom: bool) -> tuple[Any, ...]:
    """What a list holds: one of each kind, but calls of custom tools where they are wanted."""
    inner = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if get_origin(inner) not in (Union, types.UnionType):
        return (kind,)
    return tuple(one for one in get_args(inner) if custom or "Custom" not in getattr(one, "__name__", ""))


def _first(kinds: tuple[Any, ...]) -> Any:
    return next(one for one in kinds if one is not type(None))
