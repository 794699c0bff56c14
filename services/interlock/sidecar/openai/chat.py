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
from interlock.sidecar.openai.checks import bad, integer, items, mapping, number, one_of, only, shown, text, unknown

MAX_MESSAGES = 4096
MAX_TOOLS = 256

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_LABEL = re.compile(r"[\x20-\x7e]{1,256}", re.ASCII)

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
    checks = {**_PARAMETERS, "n": _integers(1, settings.max_choices)}
    body = {name: _checked(checks, name, given) for name, given in rest.items() if given is not None}
    included = bool(options.get("include_usage"))
    return Chat(body, stream=stream, include_usage=included, interlock=interlock, continues=continues)


def steered(chat: Chat, *, grounding_mode: str | None, seed: int | None) -> Mapping[str, Any]:
    """Return the body for the provider with what CRP-LLM-* headers ask for (SPEC-002 §11)."""
    body = dict(chat.body)
    if seed is not None and body.setdefault("seed", seed) != seed:
        raise bad("seed", "differs from CRP-LLM-Reproducibility-Seed")
    instruction = GROUNDING.get(grounding_mode or "open")
    if instruction:
        body["messages"] = [{"role": "system", "content": instruction}, *chat.messages]
    return body


def _checked(checks: Mapping[str, Check], name: str, value: Any) -> Any:
    if name not in checks:
        raise unknown(shown(name))
    return checks[name](name, value)


def _label(param: str, value: Any) -> str:
    if not _LABEL.fullmatch(text(param, value)):
        raise bad(param, "must be 1 to 256 printable ASCII characters")
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
            found[name] = _label(name, value)
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
        raise invalid("UNSUPPORTED_CONTENT", 'only text can be analysed: modalities must be ["text"]', param=param)
    return ["text"]


def _no_alternatives(param: str, value: Any) -> int:
    if integer(param, value, 0, 20):
        message = "the alternatives to a token are no part of an answer and cannot be analysed: top_logprobs must be 0"
        raise invalid("UNSUPPORTED_CONTENT", message, param=param)
    return 0


def _function_name(param: str, value: Any) -> str:
    if not _NAME.fullmatch(text(param, value)):
        raise bad(param, "must be 1 to 64 letters, digits, dots, hyphens or underscores")
    return str(value)


def _tool(param: str, value: Any) -> dict[str, Any]:
    if mapping(param, value).get("type") != "function":
        raise invalid("UNSUPPORTED_CONTENT", "only tools of type function are supported", param=f"{param}.type")
    tool = only(param, value, "type", "function")
    function = only(f"{param}.function", tool.get("function"), "name", "description", "parameters", "strict")
    checked = {"name": _function_name(f"{param}.function.name", function.get("name"))}
    kinds: Mapping[str, Check] = {"description": text, "parameters": mapping, "strict": _flag}
    for name, check in kinds.items():
        if name in function:
            checked[name] = check(f"{param}.function.{name}", function[name])
    return {"type": "function", "function": checked}


def _tools(param: str, value: Any) -> list[dict[str, Any]]:
    return [_tool(f"{param}[{i}]", item) for i, item in enumerate(items(param, value, MAX_TOOLS))]


def _functions(param: str, value: Any) -> list[dict[str, Any]]:
    """Read the declarations of older clients: functions that are not yet tools."""
    return [
        _tool(f"{param}[{i}]", {"type": "function", "function": item})["function"]
        for i, item in enumerate(items(param, value, MAX_TOOLS))
    ]


def _function_call_choice(param: str, value: Any) -> Any:
    if isinstance(value, str):
        return one_of(param, value, "none", "auto")
    return {"name": _function_name(f"{param}.name", only(param, value, "name").get("name"))}


def _tool_choice(param: str, value: Any) -> Any:
    if isinstance(value, str):
        return one_of(param, value, "none", "auto", "required")
    choice = only(param, value, "type", "function")
    if choice.get("type") != "function":
        raise bad(f"{param}.type", "must be function")
    function = only(f"{param}.function", choice.get("function"), "name")
    return {"type": "function", "function": {"name": _function_name(f"{param}.function.name", function.get("name"))}}


def _response_format(param: str, value: Any) -> dict[str, Any]:
    wanted = only(param, value, "type", "json_schema")
    kind = one_of(f"{param}.type", wanted.get("type"), "text", "json_object", "json_schema")
    if kind != "json_schema":
        return {"type": kind}
    return {"type": kind, "json_schema": mapping(f"{param}.json_schema", wanted.get("json_schema"))}


def _parts(param: str, value: list[Any]) -> list[dict[str, str]]:
    parts = []
    for i, item in enumerate(value):
        place = f"{param}[{i}]"
        kind = mapping(place, item).get("type")
        if kind not in ("text", "refusal"):  # no set: what a client sent may have no hash
            raise invalid("UNSUPPORTED_CONTENT", "only text content can be analysed", param=place)
        only(place, item, "type", kind)
        parts.append({"type": kind, kind: text(f"{place}.{kind}", item.get(kind))})
    return parts


def _content(param: str, value: Any) -> Any:
    if isinstance(value, list) and value:
        return _parts(param, value)
    return text(param, value)


def _tool_calls(param: str, value: Any) -> list[dict[str, Any]]:
    calls = []
    for i, item in enumerate(items(param, value, MAX_TOOLS)):
        place = f"{param}[{i}]"
        if mapping(place, item).get("type", "function") != "function":
            raise invalid("UNSUPPORTED_CONTENT", "only tool calls of type function are supported", param=place)
        call = only(place, item, "id", "type", "function")
        function = only(f"{place}.function", call.get("function"), "name", "arguments")
        checked = {
            "name": _function_name(f"{place}.function.name", function.get("name")),
            "arguments": text(f"{place}.function.arguments", function.get("arguments")),
        }
        calls.append({"id": _label(f"{place}.id", call.get("id")), "type": "function", "function": checked})
    return calls


def _function_call(param: str, value: Any) -> dict[str, Any]:
    call = only(param, value, "name", "arguments")
    return {
        "name": _function_name(f"{param}.name", call.get("name")),
        "arguments": text(f"{param}.arguments", call.get("arguments")),
    }


_ROLES: Mapping[str, tuple[str, ...]] = {
    "system": ("content", "name"),
    "developer": ("content", "name"),
    "user": ("content", "name"),
    "assistant": ("content", "name", "refusal", "tool_calls", "reasoning_content", "function_call"),
    "tool": ("content", "tool_call_id"),
    "function": ("content", "name"),
}
_FIELDS: Mapping[str, Check] = {
    "content": _content,
    "name": _function_name,
    "refusal": text,
    "reasoning_content": text,
    "tool_calls": _tool_calls,
    "function_call": _function_call,
    "tool_call_id": _label,
}


def _message(param: str, value: Any) -> dict[str, Any]:
    role = one_of(f"{param}.role", mapping(param, value).get("role"), *_ROLES)
    fields = only(param, {key: given for key, given in value.items() if key != "role"}, *_ROLES[role])
    if "content" not in fields and not (
        role == "assistant" and fields.keys() & {"tool_calls", "refusal", "function_call"}
    ):
        raise bad(f"{param}.content", "is required")
    if role == "tool" and "tool_call_id" not in fields:
        raise bad(f"{param}.tool_call_id", "is required")
    return {"role": role, **{name: _FIELDS[name](f"{param}.{name}", given) for name, given in fields.items()}}


def _messages(param: str, value: Any) -> list[dict[str, Any]]:
    return [_message(f"{param}[{i}]", item) for i, item in enumerate(items(param, value, MAX_MESSAGES))]


_TOKENS = _integers(1, 10_000_000)
_PARAMETERS: Mapping[str, Check] = {
    "model": _label,
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
    "user": _label,
    "safety_identifier": _label,
    "prompt_cache_key": _label,
    "seed": _integers(-(2**63), 2**63 - 1),
    "tools": _tools,
    "tool_choice": _tool_choice,
    "functions": _functions,
    "function_call": _function_call_choice,
    "parallel_tool_calls": _flag,
    "response_format": _response_format,
    "reasoning_effort": _one_of("none", "minimal", "low", "medium", "high", "xhigh"),
    "verbosity": _one_of("low", "medium", "high"),
    "metadata": metadata,
    "modalities": _modalities,
    "service_tier": _one_of("auto", "default", "flex", "priority", "scale"),
    "store": _flag,
}
NAMES = frozenset(_PARAMETERS)
"""Every parameter that is accepted."""
