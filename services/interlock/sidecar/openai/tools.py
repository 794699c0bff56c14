"""The functions of a chat request: how they are declared, chosen and called, field by field (SVC-2). An allow-list, as all of it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from interlock.domain.errors import invalid
from interlock.sidecar.openai.checks import bad, flag, items, label, mapping, one_of, only, text

MAX_TOOLS = 256
ALLOWED = "allowed_tools"
"""Kind of the choice of some of the declared functions."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)

Check = Callable[[str, Any], Any]


def function_name(param: str, value: Any) -> str:
    """Return the name of a function."""
    if not _NAME.fullmatch(text(param, value)):
        raise bad(param, "must be 1 to 64 letters, digits, dots, hyphens or underscores")
    return str(value)


def _tool(param: str, value: Any) -> dict[str, Any]:
    if mapping(param, value).get("type") != "function":
        raise invalid("UNSUPPORTED_CONTENT", "only tools of type function are supported", param=f"{param}.type")
    tool = only(param, value, "type", "function")
    function = only(f"{param}.function", tool.get("function"), "name", "description", "parameters", "strict")
    checked = {"name": function_name(f"{param}.function.name", function.get("name"))}
    kinds: Mapping[str, Check] = {"description": text, "parameters": mapping, "strict": flag}
    for name, check in kinds.items():
        if name in function:
            checked[name] = check(f"{param}.function.{name}", function[name])
    return {"type": "function", "function": checked}


def tools(param: str, value: Any) -> list[dict[str, Any]]:
    """Read the tools that a request declares."""
    return [_tool(f"{param}[{i}]", item) for i, item in enumerate(items(param, value, MAX_TOOLS))]


def functions(param: str, value: Any) -> list[dict[str, Any]]:
    """Read the declarations of older clients: functions that are not yet tools."""
    return [
        _tool(f"{param}[{i}]", {"type": "function", "function": item})["function"]
        for i, item in enumerate(items(param, value, MAX_TOOLS))
    ]


def function_call_choice(param: str, value: Any) -> Any:
    """Read the choice of older clients."""
    if isinstance(value, str):
        return one_of(param, value, "none", "auto")
    return {"name": function_name(f"{param}.name", only(param, value, "name").get("name"))}


def tool_choice(param: str, value: Any) -> Any:
    """Read which tools may or must be called: a word, one function, or some of the declared ones."""
    if isinstance(value, str):
        return one_of(param, value, "none", "auto", "required")
    if mapping(param, value).get("type") == ALLOWED:
        return _allowed(param, value)
    choice = only(param, value, "type", "function")
    if choice.get("type") != "function":
        raise bad(f"{param}.type", "must be function or allowed_tools")
    function = only(f"{param}.function", choice.get("function"), "name")
    return {"type": "function", "function": {"name": function_name(f"{param}.function.name", function.get("name"))}}


def _allowed(param: str, value: Any) -> dict[str, Any]:
    """Read the choice of some of the declared functions; clients may declare them again, and only their names count."""
    place = f"{param}.{ALLOWED}"
    given = only(place, only(param, value, "type", ALLOWED).get(ALLOWED), "mode", "tools")
    mode = one_of(f"{place}.mode", given.get("mode"), "auto", "required")
    names = [one["function"]["name"] for one in tools(f"{place}.tools", given.get("tools"))]
    named = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": ALLOWED, ALLOWED: {"mode": mode, "tools": named}}


def tool_calls(param: str, value: Any) -> list[dict[str, Any]]:
    """Read the calls of an earlier answer."""
    calls = []
    for i, item in enumerate(items(param, value, MAX_TOOLS)):
        place = f"{param}[{i}]"
        if mapping(place, item).get("type", "function") != "function":
            raise invalid("UNSUPPORTED_CONTENT", "only tool calls of type function are supported", param=place)
        call = only(place, item, "id", "type", "function", "index")  # the place in a stream, which clients send back
        function = only(f"{place}.function", call.get("function"), "name", "arguments")
        checked = {
            "name": function_name(f"{place}.function.name", function.get("name")),
            "arguments": text(f"{place}.function.arguments", function.get("arguments")),
        }
        calls.append({"id": label(f"{place}.id", call.get("id")), "type": "function", "function": checked})
    return calls


def function_call(param: str, value: Any) -> dict[str, Any]:
    """Read the call of an earlier answer of an older model."""
    call = only(param, value, "name", "arguments")
    return {
        "name": function_name(f"{param}.name", call.get("name")),
        "arguments": text(f"{param}.arguments", call.get("arguments")),
    }
