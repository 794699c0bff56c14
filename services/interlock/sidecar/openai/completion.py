"""The provider's answer, written anew from what was checked: what is delivered is what was analysed (I11; A-26)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.errors import Refused
from interlock.sidecar.openai import media, strictjson
from interlock.sidecar.openai.calls import function, tool_calls
from interlock.sidecar.openai.content import content_of
from interlock.sidecar.openai.faults import malformed
from interlock.sidecar.openai.fields import DroppedFields
from interlock.sidecar.openai.logprobs import spelled

FINISHES: Mapping[str, str] = {
    **{name: name for name in ("stop", "length", "tool_calls", "content_filter", "function_call")},
    **dict.fromkeys(("eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed"), "stop"),
    **dict.fromkeys(("max_tokens", "model_length"), "length"),
    # An answer that was broken off is incomplete, whatever broke it off.
    **dict.fromkeys(
        ("abort", "aborted", "cancelled", "error", "insufficient_system_resource", "pause_turn", "timeout"), "length"
    ),
    **dict.fromkeys(("tool_use", "tool_call"), "tool_calls"),
    **dict.fromkeys(("safety", "recitation", "refusal", "blocklist", "prohibited_content"), "content_filter"),
}
"""The vendor's words for how an answer ended, by the words of all providers."""

SERVICE_TIERS = frozenset({"auto", "default", "fast", "flex", "priority", "scale"})
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_DETAILS: Mapping[str, tuple[str, ...]] = {
    "prompt_tokens_details": ("audio_tokens", "cache_write_tokens", "cached_tokens", "image_tokens", "text_tokens"),
    "completion_tokens_details": (
        "accepted_prediction_tokens", "audio_tokens", "reasoning_tokens", "rejected_prediction_tokens", "text_tokens",
    ),
}  # fmt: skip
_FRAME = ("id", "object", "created", "model", "choices", "usage", "service_tier")
_CHOICE = ("index", "message", "finish_reason", "logprobs")
_MEDIA = ("images", "audio")
_MESSAGE = ("role", "content", "refusal", "reasoning_content", "tool_calls", "function_call")


@dataclass(frozen=True)
class AnswerAsked:
    """What a request asked for, as far as the answer is read by it."""

    model: str
    """The answer names the model by this name: what a provider calls itself is a text that nobody looked at."""
    choices: int = 1
    logprobs: bool = False
    media: bool = False
    """Whether images and sound of the answer are passed on, which nobody judges."""

    @classmethod
    def of(cls, body: Mapping[str, Any], *, media: bool = False) -> AnswerAsked:
        """Return what a checked request body asks for."""
        return cls(body["model"], int(body.get("n") or 1), bool(body.get("logprobs")), media)


@dataclass(frozen=True)
class Completion:
    """A checked completion: the bytes that are delivered and hashed, and every text in them that a model wrote."""

    body: bytes
    completion: Mapping[str, Any]
    outputs: tuple[dpe_pb2.Output, ...]
    tokens_used: int | None
    dropped: tuple[str, ...] = ()
    """Fields of the provider's answer that are not passed on, by the names of ``fields``."""

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
    def model(self) -> str:
        """The model that says it has answered; empty where none does."""
        return str(self.completion.get("model", ""))

    @property
    def said(self) -> str:
        """What the answer says, every choice of it: what later windows of the session are compared with."""
        if not self.completion:
            return "\n\n".join(output.text for output in self.outputs)
        return "\n\n".join(text for choice in self.choices if (text := choice["message"]["content"]))


def read(data: bytes, asked: AnswerAsked, *, max_depth: int) -> Completion:
    """Return the answer in a provider's response body.

    Refused with UPSTREAM_INVALID_RESPONSE when it is no JSON, not the shape of a completion, or has no choice or more
    than were *asked* for: a choice that was not asked for might not be looked at.
    """
    try:
        value = strictjson.loads(data, max_depth=max_depth)
    except Refused as refused:
        raise malformed(refused.reason) from None
    listed = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(listed, list) or not 1 <= len(listed) <= asked.choices:
        raise malformed("CHOICES")
    dropped = DroppedFields()
    choices = [_choice(item, dropped, asked) for item in listed]
    if sorted(choice["index"] for choice in choices) != list(range(len(choices))):
        raise malformed("CHOICE_INDEX")
    choices.sort(key=lambda choice: int(choice["index"]))
    frame, usage = _frame(value, asked.model, dropped), _usage(value.get("usage"), dropped)
    return assembled(frame, choices, usage, dropped=dropped.names)


def assembled(
    frame: Mapping[str, Any],
    choices: Sequence[dict[str, Any]],
    usage: Mapping[str, Any],
    *,
    dropped: tuple[str, ...] = (),
) -> Completion:
    """Return the answer of checked parts; its bytes and its outputs come from the same choices."""
    completion = {name: value for name, value in frame.items() if name not in {"choices", "usage"}}
    completion["choices"] = list(choices)
    if usage:
        completion["usage"] = dict(usage)
    outputs = tuple(output for choice in choices for output in _outputs(choice))
    return Completion(strictjson.dumps(completion), completion, outputs, usage.get("total_tokens"), dropped)


def begun(model: str, text: str, reasoning: str = "", *, finish: str = "stop") -> Completion:
    """Return what there is so far of an answer that is *text*, with its *reasoning*, as an answer."""
    message = {"role": "assistant", "content": text, **({"reasoning_content": reasoning} if reasoning else {})}
    frame = {"id": "", "object": "chat.completion", "created": 0, "model": model}
    return assembled(frame, [{"index": 0, "message": message, "finish_reason": finish}], {})


def identified(answer: Completion, answer_id: str, created: int) -> Completion:
    """Return *answer* under an id and a time of ours, the time in seconds since the epoch.

    The provider's id would be text that nobody looked at, and could be anyone's (F-24).
    """
    if not answer.completion:
        return answer
    ours = {**answer.completion, "id": answer_id, "created": created}
    return assembled(ours, answer.choices, answer.usage, dropped=answer.dropped)


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


def _frame(value: Mapping[str, Any], model: str, dropped: DroppedFields) -> dict[str, Any]:
    """Return what stands around the choices. An id and a time it gets when it is ``identified``."""
    dropped.unread(value, _FRAME)
    frame: dict[str, Any] = {"id": "chatcmpl-unnamed", "object": "chat.completion", "created": 0, "model": model}
    tier = value.get("service_tier")
    if isinstance(tier, str) and tier in SERVICE_TIERS:
        frame["service_tier"] = tier
    elif tier:
        dropped.note("service_tier")
    return frame


def _choice(item: Any, dropped: DroppedFields, asked: AnswerAsked) -> dict[str, Any]:
    if not isinstance(item, dict) or not isinstance(item.get("message"), dict):
        raise malformed("MESSAGE")
    dropped.unread(item, _CHOICE)
    index = item.get("index", 0)
    if not isinstance(index, int) or isinstance(index, bool):
        raise malformed("CHOICE_INDEX")
    message = _message(item["message"], index, dropped, with_media=asked.media)
    finish = _finish(item.get("finish_reason"), message, dropped)
    choice: dict[str, Any] = {"index": index, "message": message, "finish_reason": finish}
    if found := spelled(item.get("logprobs"), message, dropped, wanted=asked.logprobs):
        choice["logprobs"] = found
    return choice


def _finish(value: Any, message: Mapping[str, Any], dropped: DroppedFields) -> str:
    """Return how the answer ended, in a word of the vendor's; an unknown word says nothing that could be passed on."""
    known = FINISHES.get(value.lower()) if isinstance(value, str) else None
    if known is None and value:
        dropped.note("finish_reason")
    return known or ("tool_calls" if "tool_calls" in message else "stop")


def _message(value: Mapping[str, Any], index: int, dropped: DroppedFields, *, with_media: bool) -> dict[str, Any]:
    if value.get("role", "assistant") != "assistant":
        raise malformed("ROLE")
    dropped.unread(value, (*_MESSAGE, *_MEDIA) if with_media else _MESSAGE)
    content, thought = content_of(value.get("content"))
    message: dict[str, Any] = {"role": "assistant", "content": content}
    for name in ("refusal", "reasoning_content"):
        text = _text(value.get(name), name.upper())
        if text is not None:
            message[name] = text
    if thought:
        message["reasoning_content"] = message.get("reasoning_content", "") + thought
    if value.get("tool_calls"):
        message["tool_calls"] = tool_calls(value["tool_calls"], index, dropped)
    if value.get("function_call") is not None:  # how older models call a function
        message["function_call"] = function(value["function_call"], dropped)
    return message | (_media(value, dropped) if with_media else {})


def _media(value: Mapping[str, Any], dropped: DroppedFields) -> dict[str, Any]:
    """Return the images and the sound of a message, as bytes; what is none is noted."""
    kept: dict[str, Any] = {}
    listed = value.get("images") or []
    images = [media.image_of_answer(each) for each in listed] if isinstance(listed, list) else [None]
    if None in images:
        dropped.note("images")
    if found := [each for each in images if each is not None]:
        kept["images"] = found
    if value.get("audio"):
        spoken = media.audio_of_answer(value["audio"])
        kept |= {"audio": spoken} if spoken else {}
        if spoken is None:
            dropped.note("audio")
    return kept


def _text(value: Any, fault: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise malformed(fault)
    return value


def _usage(value: Any, dropped: DroppedFields) -> dict[str, Any]:
    """Return the counts that the vendor's type names; the three that it demands are there when any of them is."""
    if not isinstance(value, dict):
        if value:
            dropped.note("usage")
        return {}
    counts = _counted(value, _COUNTS)
    if counts:
        parts = counts.get("prompt_tokens", 0), counts.get("completion_tokens", 0)
        counts = dict(zip(_COUNTS, (*parts, counts.get("total_tokens", sum(parts))), strict=True))
    listed = {name: names for name, names in _DETAILS.items() if counts and isinstance(value.get(name), dict)}
    kept = {**counts, **{name: _counted(value[name], names) for name, names in listed.items()}}
    if any(given is not None and _lost(given, kept.get(name)) for name, given in value.items()):
        dropped.note("usage")
    return kept


def _counted(value: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value[name] for name in names if type(value.get(name)) is int and value[name] >= 0}


def _lost(given: Any, kept: Any) -> bool:
    """Tell whether anything of a value of the usage is not passed on."""
    if isinstance(given, dict):
        return {key: one for key, one in given.items() if one is not None} != (kept or {})
    return bool(given != kept)


def _outputs(choice: Mapping[str, Any]) -> list[dpe_pb2.Output]:
    """Return every text and every call of a choice; one that says nothing gives one empty output, so that it is judged too.

    A call without arguments is a call.
    """
    message = choice["message"]
    index = choice["index"]
    texts = [
        ("content", message["content"]),
        ("refusal", message.get("refusal")),
        ("content", message.get("reasoning_content")),
        ("content", message.get("audio", {}).get("transcript")),
    ]
    calls = [call["function"] for call in message.get("tool_calls", ())]
    calls += [message["function_call"]] if "function_call" in message else []
    outputs = [dpe_pb2.Output(choice_index=index, text=text, kind=kind) for kind, text in texts if text]
    outputs += [
        dpe_pb2.Output(choice_index=index, text=call["arguments"], kind="tool_call", tool_name=call["name"])
        for call in calls
    ]
    return outputs or [dpe_pb2.Output(choice_index=index, text="", kind="content")]
