"""The provider's answer, written anew from what was checked: what is delivered is what was analysed (I11; A-26)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.errors import Kind, Refused
from interlock.sidecar.openai import strictjson

_LABEL = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?", re.ASCII)
_FINISH = re.compile(r"[a-z_]{1,32}", re.ASCII)
_TOOL = re.compile(r"[A-Za-z0-9_.-]{1,128}", re.ASCII)
_CALL_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}", re.ASCII)


@dataclass(frozen=True)
class Completion:
    """A checked completion: the bytes that are delivered and hashed, and every text in them that a model wrote."""

    body: bytes
    completion: Mapping[str, Any]
    outputs: tuple[dpe_pb2.Output, ...]
    tokens_used: int | None

    @property
    def choices(self) -> list[dict[str, Any]]:
        """The checked choices."""
        choices: list[dict[str, Any]] = self.completion["choices"]
        return choices

    @property
    def usage(self) -> Mapping[str, Any]:
        """What the provider counted; empty when it did not."""
        usage: Mapping[str, Any] = self.completion.get("usage", {})
        return usage

    @property
    def said(self) -> str:
        """What the answer says, every choice of it: what later windows of the session are compared with."""
        if not self.completion:
            return "\n\n".join(output.text for output in self.outputs)
        return "\n\n".join(text for choice in self.choices if (text := choice["message"]["content"]))


def read(data: bytes, *, wanted: int, max_depth: int) -> Completion:
    """Return the answer in a provider's response body.

    Refused with UPSTREAM_INVALID_RESPONSE when it is no JSON, not the shape of a completion, or has no choice or more
    than *wanted*: a choice that was not asked for might not be looked at.
    """
    try:
        value = strictjson.loads(data, max_depth=max_depth)
    except Refused as refused:
        raise malformed(refused.reason) from None
    listed = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(listed, list) or not 1 <= len(listed) <= wanted:
        raise malformed("CHOICES")
    choices = [_choice(item) for item in listed]
    if sorted(choice["index"] for choice in choices) != list(range(len(choices))):
        raise malformed("CHOICE_INDEX")
    choices.sort(key=lambda choice: int(choice["index"]))
    return assembled(_frame(value), choices, _usage(value.get("usage")))


def assembled(frame: Mapping[str, Any], choices: Sequence[dict[str, Any]], usage: Mapping[str, Any]) -> Completion:
    """Return the answer of checked parts; its bytes and its outputs come from the same choices."""
    completion = {name: value for name, value in frame.items() if name not in {"choices", "usage"}}
    completion["choices"] = list(choices)
    if usage:
        completion["usage"] = dict(usage)
    outputs = tuple(output for choice in choices for output in _outputs(choice))
    return Completion(strictjson.dumps(completion), completion, outputs, usage.get("total_tokens"))


def identified(answer: Completion, answer_id: str) -> Completion:
    """Return *answer* under an id of ours: the provider's would be text that nobody looked at, and could be anyone's (F-24)."""
    if not answer.completion:
        return answer
    return assembled({**answer.completion, "id": answer_id}, answer.choices, answer.usage)


def plain_text(choice: Mapping[str, Any]) -> str | None:
    """Return the content of a choice that is text and nothing else; ``None`` for tool calls, refusals, no text."""
    message = choice["message"]
    if message.get("tool_calls") or message.get("function_call") or message.get("refusal"):
        return None
    return message["content"] or None


def rewritten(choice: Mapping[str, Any], text: str, finish_reason: str) -> dict[str, Any]:
    """Return a text choice with other content. What belonged to the old one, log-probabilities and reasoning, goes."""
    message = {"role": "assistant", "content": text}
    return {"index": choice["index"], "message": message, "finish_reason": finish_reason}


def added(usages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the usage of several provider calls as one: what a client sees is what its answer cost."""
    total: dict[str, Any] = {}
    for usage in usages:
        for name, count in usage.items():
            total[name] = (
                added([total.get(name, {}), count]) if isinstance(count, Mapping) else total.get(name, 0) + count
            )
    return total


def malformed(fault: str) -> Refused:
    """Return the refusal of a provider's response that cannot be used; *fault* is a constant name."""
    return Refused(
        Kind.BAD_GATEWAY,
        "UPSTREAM_INVALID_RESPONSE",
        "the model provider answered with something that is no chat completion",
        metadata={"fault": fault},
    )


def _frame(value: Mapping[str, Any]) -> dict[str, Any]:
    created = value.get("created")
    frame: dict[str, Any] = {
        "id": _label(value.get("id"), "ID") or "chatcmpl-unnamed",
        "object": "chat.completion",
        "created": int(created) if isinstance(created, int | float) and not isinstance(created, bool) else 0,
        "model": _label(value.get("model"), "MODEL") or "unknown",
    }
    for name in ("system_fingerprint", "service_tier"):
        label = _label(value.get(name), name.upper())
        if label:
            frame[name] = label
    return frame


def _label(value: Any, fault: str) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        raise malformed(fault)
    return value


def _choice(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict) or not isinstance(item.get("message"), dict):
        raise malformed("MESSAGE")
    index, finish = item.get("index", 0), item.get("finish_reason") or "stop"
    if not isinstance(index, int) or isinstance(index, bool):
        raise malformed("CHOICE_INDEX")
    if not isinstance(finish, str) or not _FINISH.fullmatch(finish):
        raise malformed("FINISH_REASON")
    choice: dict[str, Any] = {"index": index, "message": _message(item["message"]), "finish_reason": finish}
    logprobs = _logprobs(item.get("logprobs"))
    if logprobs:
        choice["logprobs"] = logprobs
    return choice


def _message(value: Mapping[str, Any]) -> dict[str, Any]:
    if value.get("role", "assistant") != "assistant":
        raise malformed("ROLE")
    message: dict[str, Any] = {"role": "assistant", "content": _text(value.get("content"), "CONTENT")}
    for name in ("refusal", "reasoning_content"):
        text = _text(value.get(name), name.upper())
        if text is not None:
            message[name] = text
    calls = value.get("tool_calls")
    if calls:
        if not isinstance(calls, list):
            raise malformed("TOOL_CALLS")
        message["tool_calls"] = [_tool_call(call) for call in calls]
    if value.get("function_call") is not None:  # how older models call a function
        message["function_call"] = _function(value["function_call"])
    return message


def _text(value: Any, fault: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise malformed(fault)
    return value


def _tool_call(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or value.get("type", "function") != "function":
        raise malformed("TOOL_CALL")
    return {"id": _call_id(value.get("id")), "type": "function", "function": _function(value.get("function"))}


def _function(value: Any) -> dict[str, Any]:
    name, arguments = (value.get("name"), value.get("arguments")) if isinstance(value, dict) else (None, None)
    if not isinstance(name, str) or not _TOOL.fullmatch(name) or not isinstance(arguments, str):
        raise malformed("TOOL_CALL")
    return {"name": name, "arguments": arguments}


def _call_id(value: Any) -> str:
    """Return the id of a call; one that is no plain name is replaced, for nobody judges what it says."""
    if value is None or value == "":
        return "call_unnamed"
    if not isinstance(value, str):
        raise malformed("TOOL_CALL_ID")
    if _CALL_ID.fullmatch(value):
        return value
    return "call_" + hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _logprobs(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise malformed("LOGPROBS")
    found = {
        name: [_logprob(item, alternatives=True) for item in value[name]]
        for name in ("content", "refusal")
        if isinstance(value.get(name), list)
    }
    return found or None


def _logprob(item: Any, *, alternatives: bool) -> dict[str, Any]:
    token = item.get("token") if isinstance(item, dict) else None
    if not isinstance(token, str) or len(token) > 256 or not isinstance(item.get("logprob"), int | float):
        raise malformed("LOGPROBS")
    entry: dict[str, Any] = {"token": token, "logprob": item["logprob"], "bytes": list(token.encode())}
    if alternatives:
        listed = item.get("top_logprobs") or []
        if not isinstance(listed, list) or len(listed) > 20:
            raise malformed("LOGPROBS")
        entry["top_logprobs"] = [_logprob(other, alternatives=False) for other in listed]
    return entry


def _usage(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {}
    usage: dict[str, Any] = {}
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        if isinstance(value.get(name), int) and not isinstance(value[name], bool):
            usage[name] = value[name]
    for name in ("prompt_tokens_details", "completion_tokens_details"):
        if isinstance(value.get(name), dict):
            usage[name] = {
                key: count
                for key, count in value[name].items()
                if _FINISH.fullmatch(key) and isinstance(count, int) and not isinstance(count, bool)
            }
    return usage


def _outputs(choice: Mapping[str, Any]) -> list[dpe_pb2.Output]:
    """Return every text and every call of a choice; one that says nothing gives one empty output, so that it is judged too.

    A call without arguments is a call.
    """
    message, logprobs = choice["message"], choice.get("logprobs", {})
    index = choice["index"]
    texts = [
        ("content", message["content"]),
        ("refusal", message.get("refusal")),
        ("content", message.get("reasoning_content")),
        *_told_by_tokens(message, logprobs),
    ]
    calls = [call["function"] for call in message.get("tool_calls", ())]
    calls += [message["function_call"]] if "function_call" in message else []
    outputs = [dpe_pb2.Output(choice_index=index, text=text, kind=kind) for kind, text in texts if text]
    outputs += [
        dpe_pb2.Output(choice_index=index, text=call["arguments"], kind="tool_call", tool_name=call["name"])
        for call in calls
    ]
    return outputs or [dpe_pb2.Output(choice_index=index, text="", kind="content")]


def _told_by_tokens(message: Mapping[str, Any], logprobs: Mapping[str, Sequence[Any]]) -> list[tuple[str, str]]:
    """Return texts that the log-probabilities spell and the message does not."""
    spelled = {name: "".join(entry["token"] for entry in entries) for name, entries in logprobs.items()}
    return [(name, text) for name, text in spelled.items() if text != message.get(name)]
