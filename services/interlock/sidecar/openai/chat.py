"""The OpenAI chat request: the fields that are accepted, their types and bounds, and the body that is forwarded (SVC-2; A-21, A-26).

This is an allow-list: a field that is not listed is refused by name. The forwarded body is built anew from the checked values.
A test compares the list with the request types of the ``openai`` package, so that it cannot drift unseen (docs/adr/0016).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from interlock.domain.errors import invalid
from interlock.runtime.settings.model import Settings
from interlock.sidecar.openai import media, tools
from interlock.sidecar.openai.checks import (
    bad,
    integer,
    items,
    label,
    mapping,
    number,
    one_of,
    only,
    shown,
    text,
    unknown,
)

MAX_MESSAGES = 4096
MOST_OF_A_MARK = 512
"""Characters of what names a user or a cache entry."""

_SPEAKER = re.compile(r"[^\s<|\\/>]{1,64}")
REFUSED: Mapping[str, str] = {
    "audio": "sound cannot be analysed; unjudged_media=pass passes it, marked and audited",
    "moderation": "policies decide here, not the provider's",
    "web_search_options": "nobody judges what a search at the provider brings: declare the search as a function tool",
}
"""Parameters of the vendor that are refused by name, and why."""
_LEFT_OUT = frozenset({"prompt_cache_options", "prompt_cache_retention"})
"""Parameters that only concern the provider's cache: they are accepted and not passed on."""
_EMPTY_IS_NONE: Mapping[str, Any] = {
    "tools": [], "functions": [], "stop": [], "user": "", "safety_identifier": "", "prompt_cache_key": "",
}  # fmt: skip
"""Parameters that clients send empty where they have nothing to say."""

GROUNDING: Mapping[str, str] = {
    "context-strict": "Answer only using the provided context. Do not use external knowledge.",
    "context-preferred": "Prefer the provided context. Indicate when using general knowledge.",
}
"""Instructions of SPEC-002 §11.2, added when the request asks for one; ``open`` adds none."""

Check = Callable[[str, Any], Any]


@dataclass(frozen=True)
class Chat:
    """A checked request."""

    body: Mapping[str, Any]
    """The body for the provider: never streamed, without the interlock object."""
    stream: bool
    include_usage: bool
    interlock: Mapping[str, Any]
    """The ``interlock`` object of the request, not yet checked; empty when there is none."""
    continues: Mapping[str, Any] = field(default_factory=dict)
    """The earlier answer or conversation that the request names, and what else names its session, by field; it is not passed on."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The checked messages."""
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages

    @property
    def choices(self) -> int:
        """How many choices were asked for."""
        return int(self.body.get("n") or 1)


def read(value: Any, settings: Settings) -> Chat:
    """Return the checked request of a JSON *value*.

    Refused with INVALID_REQUEST, UNKNOWN_PARAMETER, INVALID_PARAMETER or UNSUPPORTED_CONTENT; ``param`` names the place.
    """
    if not isinstance(value, dict):
        raise invalid("INVALID_REQUEST", "the body must be a JSON object")
    rest = dict(value)
    interlock = mapping("interlock", rest.pop("interlock", None) or {})
    stream = bool(_flag("stream", rest.pop("stream", None)))
    options = _stream_options(rest.pop("stream_options", None), stream=stream)
    continues = _continues(rest)
    for required in ("model", "messages"):
        if rest.get(required) is None:
            raise bad(required, "is required")
    checks = {**_of_the_provider(settings), **_PARAMETERS, "n": _integers(1, settings.max_choices)}
    if settings.unjudged_media == "pass":
        checks |= {"messages": partial(_messages, media_pass=True), "modalities": _any_modalities, "audio": media.voice}
    body = {name: _checked(checks, name, given) for name, given in rest.items() if _says(name, given)}
    if stream and "audio" in body.get("modalities", ()):
        raise bad("stream", "must be false where sound is asked for: its transcript is judged whole")
    included = bool(options.get("include_usage"))
    return Chat(body, stream=stream, include_usage=included, interlock=interlock, continues=continues)


def of_the_provider(settings: Settings) -> frozenset[str]:
    """Return the parameters beyond OpenAI's that the provider gets as they are; only where it is asked by chat completions."""
    named = settings.provider_parameters if settings.upstream_api == "chat" else ""
    return frozenset(filter(None, named.split(","))) - REFUSED.keys()


def _of_the_provider(settings: Settings) -> dict[str, Check]:
    return {name: lambda _param, value: value for name in of_the_provider(settings)}


def steered(chat: Chat, *, grounding_mode: str | None, seed: int | None) -> Mapping[str, Any]:
    """Return the body for the provider with what CRP-LLM-* headers ask for (SPEC-002 §11)."""
    body = dict(chat.body)
    if seed is not None and body.setdefault("seed", seed) != seed:
        raise bad("seed", "differs from CRP-LLM-Reproducibility-Seed")
    instruction = GROUNDING.get(grounding_mode or "open")
    if instruction:
        body["messages"] = [{"role": "system", "content": instruction}, *chat.messages]
    return body


def _says(name: str, value: Any) -> bool:
    """Tell whether a parameter says anything to the provider."""
    return (
        value is not None and name not in _LEFT_OUT and not (name in _EMPTY_IS_NONE and value == _EMPTY_IS_NONE[name])
    )


def _checked(checks: Mapping[str, Check], name: str, value: Any) -> Any:
    if name in REFUSED and name not in checks:
        raise invalid("UNSUPPORTED_CONTENT", f"{name} is not supported: {REFUSED[name]}", param=name)
    if name not in checks:
        raise unknown(shown(name), "; provider_parameters names what a provider knows beyond OpenAI's API")
    return checks[name](name, value)


def mark(param: str, value: Any) -> str:
    """Return what names a user or a cache entry, in any script. Refused with INVALID_PARAMETER."""
    if not text(param, value).isprintable() or not 1 <= len(value) <= MOST_OF_A_MARK:
        raise bad(param, f"must be 1 to {MOST_OF_A_MARK} printable characters")
    return str(value)


def _speaker(param: str, value: Any) -> str:
    """Return the name of who speaks, in any script."""
    if not _SPEAKER.fullmatch(text(param, value)) or not value.isprintable():
        raise bad(param, "must be 1 to 64 printable characters without a space, <, |, \\, / or >")
    return str(value)


def _flag(param: str, value: Any) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise bad(param, "must be true or false")
    return value


def _integers(least: int, most: int) -> Check:
    return partial(integer, least=least, most=most)


def _numbers(least: float, most: float) -> Check:
    return partial(number, least=least, most=most)


def _one_of(*words: str) -> Check:
    return lambda param, value: one_of(param, value, *words)


def _stream_options(value: Any, *, stream: bool) -> dict[str, Any]:
    if value is None:
        return {}
    if not stream:
        raise bad("stream_options", "is only allowed when stream is true")
    options = only("stream_options", value, "include_usage", "include_obfuscation")
    return {name: _flag(f"stream_options.{name}", given) for name, given in options.items()}


def _continues(rest: dict[str, Any]) -> dict[str, str]:
    """Take out of *rest* what names an earlier answer: those ids were issued here, and the provider knows none of them."""
    found: dict[str, str] = {}
    for name in ("previous_response_id", "conversation"):
        value = rest.pop(name, None)
        if isinstance(value, dict):
            value = only(name, value, "id").get("id")
        if value is not None:
            found[name] = label(name, value)
    if len(found) > 1:
        raise bad("conversation", "must not be given together with previous_response_id")
    return found


def _stop(param: str, value: Any) -> Any:
    if isinstance(value, str):
        return value
    return [text(f"{param}[{i}]", item) for i, item in enumerate(items(param, value, 4))]


def _logit_bias(param: str, value: Any) -> dict[str, float]:
    bias = mapping(param, value)
    if len(bias) > 1024 or not all(re.fullmatch(r"[0-9]{1,9}", key, re.ASCII) for key in bias):
        raise bad(param, "must map at most 1024 token ids to numbers")
    return {key: number(f"{param}.{key}", given, -100, 100) for key, given in bias.items()}


def metadata(param: str, value: Any) -> dict[str, str]:
    """Return the pairs that a client attaches to a request. Refused with INVALID_PARAMETER."""
    pairs = mapping(param, value)
    if len(pairs) > 16 or not all(isinstance(v, str) and len(k) <= 64 and len(v) <= 512 for k, v in pairs.items()):
        raise bad(param, "must hold at most 16 pairs of strings")
    return pairs


def _modalities(param: str, value: Any) -> list[str]:
    if value != ["text"]:
        why = 'only text can be analysed: modalities must be ["text"]; unjudged_media=pass passes others, marked and audited'
        raise invalid("UNSUPPORTED_CONTENT", why, param=param)
    return ["text"]


def _any_modalities(param: str, value: Any) -> list[str]:
    """Return the forms of an answer, text among them: it is what is judged."""
    wanted = [one_of(f"{param}[{i}]", one, "text", "audio", "image") for i, one in enumerate(items(param, value, 3))]
    if "text" not in wanted:
        raise bad(param, "must have text among them")
    return wanted


def _no_alternatives(param: str, value: Any) -> int:
    if integer(param, value, 0, 20):
        message = "the alternatives to a token are no part of an answer and cannot be analysed: top_logprobs must be 0"
        raise invalid("UNSUPPORTED_CONTENT", message, param=param)
    return 0


def _prediction(param: str, value: Any) -> dict[str, Any]:
    """Read the text that the answer is expected to repeat: it only makes the provider faster, and the answer is judged."""
    given = only(param, value, "type", "content")
    one_of(f"{param}.type", given.get("type"), "content")
    return {"type": "content", "content": _content(f"{param}.content", given.get("content"))}


def _response_format(param: str, value: Any) -> dict[str, Any]:
    wanted = only(param, value, "type", "json_schema")
    kind = one_of(f"{param}.type", wanted.get("type"), "text", "json_object", "json_schema")
    if kind != "json_schema":
        return {"type": kind}
    return {"type": kind, "json_schema": mapping(f"{param}.json_schema", wanted.get("json_schema"))}


_OF_THE_CACHE = ("cache_control", "prompt_cache_breakpoint")
"""Fields of a part that only concern the provider's cache: they are accepted and not passed on."""


def _parts(param: str, value: list[Any], *, media_pass: bool = False) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for i, item in enumerate(value):
        place = f"{param}[{i}]"
        kind = mapping(place, item).get("type")
        if media_pass and isinstance(kind, str) and kind in media.PARTS:
            parts.append(media.part(place, item, _OF_THE_CACHE))
            continue
        if kind not in ("text", "refusal"):  # no set: what a client sent may have no hash
            raise media.unreadable(place)
        only(place, item, "type", kind, *_OF_THE_CACHE)
        parts.append({"type": kind, kind: text(f"{place}.{kind}", item.get(kind))})
    return parts


def _content(param: str, value: Any, *, media_pass: bool = False) -> Any:
    if isinstance(value, list) and value:
        return _parts(param, value, media_pass=media_pass)
    return text(param, value)


_ROLES: Mapping[str, tuple[str, ...]] = {
    "system": ("content", "name"),
    "developer": ("content", "name"),
    "user": ("content", "name"),
    "assistant": ("content", "name", "refusal", "tool_calls", "reasoning_content", "function_call", "annotations"),
    "tool": ("content", "tool_call_id", "name"),
    "function": ("content", "name"),
}
_FIELDS: Mapping[str, Check] = {
    "content": _content,
    "name": _speaker,
    "refusal": text,
    "reasoning_content": text,
    "tool_calls": tools.tool_calls,
    "function_call": tools.function_call,
    "tool_call_id": label,
}
_OF_A_FUNCTION: Mapping[str, Check] = {**_FIELDS, "name": tools.function_name}


def _message(param: str, value: Any, *, media_pass: bool) -> dict[str, Any]:
    role = one_of(f"{param}.role", mapping(param, value).get("role"), *_ROLES)
    fields = only(param, {key: given for key, given in value.items() if key != "role"}, *_ROLES[role])
    if fields.get("tool_calls") == []:
        del fields["tool_calls"]
    if "content" not in fields and not (
        role == "assistant" and fields.keys() & {"tool_calls", "refusal", "function_call"}
    ):
        raise bad(f"{param}.content", "is required")
    if role == "tool" and "tool_call_id" not in fields:
        raise bad(f"{param}.tool_call_id", "is required")
    if not isinstance(fields.pop("annotations", []), list):  # of an earlier answer: its text is what was said
        raise bad(f"{param}.annotations", "must be a list")
    checks = _OF_A_FUNCTION if role in {"tool", "function"} else _FIELDS
    if role == "user":
        checks = {**checks, "content": partial(_content, media_pass=media_pass)}
    return {"role": role, **{name: checks[name](f"{param}.{name}", given) for name, given in fields.items()}}


def _messages(param: str, value: Any, *, media_pass: bool = False) -> list[dict[str, Any]]:
    listed = items(param, value, MAX_MESSAGES)
    return [_message(f"{param}[{i}]", item, media_pass=media_pass) for i, item in enumerate(listed)]


_TOKENS = _integers(1, 10_000_000)
_PARAMETERS: Mapping[str, Check] = {
    "model": label,
    "messages": _messages,
    "temperature": _numbers(0, 2),
    "top_p": _numbers(0, 1),
    "stop": _stop,
    "max_tokens": _TOKENS,
    "max_completion_tokens": _TOKENS,
    "presence_penalty": _numbers(-2, 2),
    "frequency_penalty": _numbers(-2, 2),
    "logit_bias": _logit_bias,
    "logprobs": _flag,
    "top_logprobs": _no_alternatives,
    "user": mark,
    "safety_identifier": mark,
    "prompt_cache_key": mark,
    "prediction": _prediction,
    "seed": _integers(-(2**63), 2**63 - 1),
    "tools": tools.tools,
    "tool_choice": tools.tool_choice,
    "functions": tools.functions,
    "function_call": tools.function_call_choice,
    "parallel_tool_calls": _flag,
    "response_format": _response_format,
    "reasoning_effort": _one_of("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    "verbosity": _one_of("low", "medium", "high"),
    "metadata": metadata,
    "modalities": _modalities,
    "service_tier": _one_of("auto", "default", "fast", "flex", "priority", "scale"),
    "store": _flag,
}
NAMES = frozenset(_PARAMETERS) | _LEFT_OUT
"""Every parameter that is accepted."""
