"""JSON-RPC messages of MCP, as far as the proxy has to know them: who asks what under which id. All else is carried as it is.

What is passed on is written anew from what was read, so that both sides read the same: a key that stands twice in a message, say,
cannot mean one thing here and another thing there. Some readers take ``Method`` for ``method``: such keys are refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from interlock.domain.errors import Refused, exhausted, invalid

Message = dict[str, Any]
MessageId = tuple[str, str | int]
"""An id with its type: 1 and "1" are two."""

CALL, LIST, CANCELLED = "tools/call", "tools/list", "notifications/cancelled"
PARSE_ERROR, INVALID_REQUEST, SERVER_ERROR = -32700, -32600, -32000
NO_CALL = "The tool was not called, and nothing was done."
DEEPEST = 128
"""Levels of objects and lists in a message. Far below what the parser takes, so that what was read can be written too."""

_DECIDED = frozenset({CALL, LIST})
_MEMBERS = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
_OF_CALL = frozenset({"name", "arguments"})
PERHAPS_DONE = "Whether the tool did its work is not known; it is charged as if it had. Look before you call it again."


def parsed(data: bytes | str, *, most: int) -> Message:
    """Return one message. Refused with MCP_MESSAGE_INVALID or MCP_MESSAGE_TOO_LARGE."""
    if len(data) > most:
        raise too_large(most)
    try:
        message = json.loads(data, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        raise invalid("MCP_MESSAGE_INVALID", "a message is one JSON object") from None
    if _is_deep(message):
        raise invalid("MCP_MESSAGE_INVALID", f"a message is nested {DEEPEST} levels deep at most")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise invalid("MCP_MESSAGE_INVALID", "a message is one object of JSON-RPC 2.0; batches are not taken")
    if "method" in message and not isinstance(message["method"], str):
        raise invalid("MCP_MESSAGE_INVALID", "a method is a text")
    if message.get("method") not in _DECIDED and str(message.get("method")).strip().casefold() in _DECIDED:
        raise invalid(
            "MCP_MESSAGE_INVALID", "the name of a method is written in small letters, without spaces around it"
        )
    if misspelt(message, _MEMBERS) or ("method" in message and ("result" in message or "error" in message)):
        raise invalid(
            "MCP_MESSAGE_INVALID", "a message is a request or a response, and its keys are written in small letters"
        )
    if "method" in message and "id" in message:
        id_of(message)
    return message


def misspelt(found: Mapping[str, Any], names: Collection[str]) -> str | None:
    """Return a key that some readers take for one of *names* although it is written in other letters."""
    known = {name.casefold() for name in names}
    return next((key for key in found if key not in names and key.casefold() in known), None)


def too_large(most: int) -> Refused:
    """Return the refusal of a message above the limit."""
    return exhausted("MCP_MESSAGE_TOO_LARGE", f"a message has at most {most} bytes")


def written(message: Mapping[str, Any]) -> bytes:
    """Return a message on one line of ASCII."""
    return json.dumps(message, separators=(",", ":")).encode("ascii")


def id_of(message: Mapping[str, Any]) -> MessageId:
    """Return the id of a request or response. Refused with MCP_MESSAGE_INVALID for one that is neither text nor integer."""
    found = message.get("id")
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise invalid("MCP_MESSAGE_INVALID", "an id is a text or an integer")
    return type(found).__name__, found


def is_request(message: Mapping[str, Any]) -> bool:
    """Tell whether a message wants an answer."""
    return "method" in message and "id" in message


def call_of(message: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return tool and arguments of a call. Refused with MCP_CALL_INVALID."""
    params = message.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    arguments = params.get("arguments") if isinstance(params, dict) else None
    spelt = isinstance(params, dict) and misspelt(params, _OF_CALL) is None
    known = spelt and isinstance(name, str) and is_text(name)
    if not known or not isinstance(arguments if arguments is not None else {}, dict):
        raise invalid("MCP_CALL_INVALID", "a call has the name of a tool, and its arguments as an object")
    return str(name), arguments or {}


def is_text(value: str) -> bool:
    """Tell whether a text can be written as UTF-8: half of a pair of surrogates cannot, and readers make different things of it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_done(message: Mapping[str, Any]) -> bool:
    """Tell whether a response says that the tool did its work: no error, and nothing that is still asked for."""
    result = message.get("result")
    return (
        isinstance(result, dict)
        and result.get("isError") is not True
        and result.get("resultType", "complete") == "complete"
    )


def tool_error(request_id: Any, tool: str, refused: Refused, after: str) -> Message:
    """Return a refusal as the result of a call, in words for a model; *after* says whether anything was done."""
    text = f"{refused.reason}: {tool[:200] or 'this call'} was refused. {refused.message.rstrip('.')}. {after}"
    result = {
        "resultType": "complete", "content": [{"type": "text", "text": text}], "isError": True,
        "_meta": {"interlock/reason": refused.reason},
    }  # fmt: skip
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def failure(request_id: Any, refused: Refused, code: int = INVALID_REQUEST) -> Message:
    """Return a refusal as a JSON-RPC error; its data has the reason."""
    error = {"code": code, "message": refused.message, "data": {"reason": refused.reason}}
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def cancelled(request_id: Any, why: str) -> Message:
    """Return the notification that nobody waits for a request any more."""
    return {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": request_id, "reason": why}}


def _is_deep(message: Any) -> bool:
    """Tell whether a value is nested deeper than a message may be, without recursion."""
    level = [message] if isinstance(message, dict | list) else []
    for _ in range(DEEPEST):
        level = [inner for one in level for inner in _items(one) if isinstance(inner, dict | list)]
    return bool(level)


def _items(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError("a number is above what JSON's readers hold")
    return number


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
