"""The calls in a provider's answer: names as they are, because they are judged; ids minted here, because they are not (I17; ATT-5)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from interlock.sidecar.openai.faults import malformed
from interlock.sidecar.openai.fields import DroppedFields

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}", re.ASCII)
_SHORT = re.compile(r"[A-Za-z0-9]{9}", re.ASCII)
_NUMBERED = re.compile(r"functions\.(?P<name>.+):[0-9]{1,4}", re.ASCII | re.DOTALL)


def tool_calls(value: Any, choice_index: int, dropped: DroppedFields) -> list[dict[str, Any]]:
    """Return the calls of one choice.

    Refused as malformed with the fault TOOL_CALLS, TOOL_CALL, TOOL_CALL_ID, or CUSTOM_TOOL_CALL: a request cannot declare a custom
    tool, so that no answer may call one.
    """
    if not isinstance(value, list):
        raise malformed("TOOL_CALLS")
    functions = [_function_of(item, dropped) for item in value]
    ids = _minted([item.get("id") for item in value], [one["name"] for one in functions], choice_index)
    return [{"id": name, "type": "function", "function": one} for name, one in zip(ids, functions, strict=True)]


def function(value: Any, dropped: DroppedFields) -> dict[str, Any]:
    """Return the function that a call names, with its arguments as written; also how older models call one."""
    name, arguments = (value.get("name"), value.get("arguments")) if isinstance(value, dict) else (None, None)
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(arguments, str):
        raise malformed("TOOL_CALL")
    dropped.unread(value, ("name", "arguments"))
    return {"name": name, "arguments": arguments}


def _function_of(item: Any, dropped: DroppedFields) -> dict[str, Any]:
    kind = item.get("type", "function") if isinstance(item, dict) else None
    if kind != "function":
        raise malformed("CUSTOM_TOOL_CALL" if kind == "custom" else "TOOL_CALL")
    dropped.unread(item, ("id", "type", "index", "function"))
    return function(item.get("function"), dropped)


def _minted(given: Sequence[Any], names: Sequence[str], choice_index: int) -> list[str]:
    """Return an id for each call: one for one, so that a result finds its call, and no two calls have the same."""
    minted: list[str] = []
    for number, (one, name) in enumerate(zip(given, names, strict=True)):
        if one is not None and not isinstance(one, str):
            raise malformed("TOOL_CALL_ID")
        made = _id_for(one, name) if one else ""
        again = not made or made in minted
        minted.append(_id_for(f"{choice_index}:{number}:{name}:{one or ''}", name) if again else made)
    return minted


def _id_for(given: str, name: str) -> str:
    """Return our id for a provider's: it says nothing, and the same one is always named the same.

    Some models want their own form back: nine letters and digits, or the function's name with a number.
    """
    numbered = _NUMBERED.fullmatch(given)
    if numbered and numbered["name"] == name:
        return given
    digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()
    return digest[:9] if _SHORT.fullmatch(given) else f"call_{digest[:24]}"
