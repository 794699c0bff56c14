"""Embeddings: the request and the answer by allow-list (API-3). They are passed on and on record, and not judged: a vector says nothing.

What comes back are numbers, as many vectors as there were inputs, under the model's name of the request. Bytes in base64 are read as
numbers, so that they are no way for a text.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.domain.errors import Refused, exhausted
from interlock.runtime.settings.model import Settings
from interlock.sidecar.openai import strictjson
from interlock.sidecar.openai.chat import mark
from interlock.sidecar.openai.checks import bad, label, shown, unknown
from interlock.sidecar.openai.faults import malformed
from interlock.sidecar.openai.fields import DroppedFields

MOST_INPUTS = 2048
MOST_TOKENS = 300_000
"""Tokens of one request, where it sends tokens; the vendor's own limit."""
MOST_DIMENSIONS = 65_536

_NAMES = ("model", "input", "dimensions", "encoding_format", "user")


@dataclass(frozen=True)
class Vectors:
    """A checked answer."""

    body: bytes
    tokens: int | None
    dimensions: int
    dropped: tuple[str, ...]


def read(data: bytes, settings: Settings) -> dict[str, Any]:
    """Return the checked request of a body.

    Refused with INVALID_REQUEST, UNKNOWN_PARAMETER, INVALID_PARAMETER or TEXT_TOO_LARGE; ``param`` names the place.
    """
    value = strictjson.loads_object(data, max_depth=settings.max_json_depth)
    given = {name: one for name, one in value.items() if one is not None}
    for name in given:
        if name not in _NAMES:
            raise unknown(shown(name))
    label("model", given.get("model"))
    if "user" in given:
        mark("user", given["user"])
    if not _integer(given.get("dimensions", 1), 1, MOST_DIMENSIONS):
        raise bad("dimensions", f"must be an integer from 1 to {MOST_DIMENSIONS}")
    if given.get("encoding_format", "float") not in ("float", "base64"):
        raise bad("encoding_format", "must be float or base64")
    _check_inputs(given.get("input"), settings)
    return given


def inputs(request: Mapping[str, Any]) -> int:
    """Return how many inputs a checked request has."""
    given = request["input"]
    return 1 if isinstance(given, str) or isinstance(given[0], int) else len(given)


def answer(data: bytes, request: Mapping[str, Any], *, max_depth: int) -> Vectors:
    """Return the answer of a provider, written anew. Refused with UPSTREAM_INVALID_RESPONSE for anything but vectors."""
    try:
        value = strictjson.loads(data, max_depth=max_depth)
    except Refused as refused:
        raise malformed(refused.reason) from None
    listed = value.get("data") if isinstance(value, dict) else None
    if not isinstance(listed, list) or len(listed) != inputs(request):
        raise malformed("EMBEDDINGS")
    dropped = DroppedFields()
    dropped.unread(value, ("object", "data", "model", "usage"))
    rows = [_row(item, dropped, base64_asked=request.get("encoding_format") == "base64") for item in listed]
    if sorted(row["index"] for row, _ in rows) != list(range(len(rows))) or len({size for _, size in rows}) > 1:
        raise malformed("EMBEDDINGS")
    usage = value.get("usage") if isinstance(value.get("usage"), dict) else {}
    dropped.unread(usage, ("prompt_tokens", "total_tokens"))
    counted = {
        name: usage[name] if _integer(usage.get(name), 0, 2**53) else 0 for name in ("prompt_tokens", "total_tokens")
    }
    ordered = sorted((row for row, _ in rows), key=lambda row: int(row["index"]))
    body = {"object": "list", "data": ordered, "model": request["model"], "usage": counted}
    return Vectors(strictjson.dumps(body), counted["total_tokens"] or None, rows[0][1], dropped.names)


def _check_inputs(value: Any, settings: Settings) -> None:
    if isinstance(value, list) and value and not isinstance(value[0], int):
        if len(value) > MOST_INPUTS:
            raise bad("input", f"must hold at most {MOST_INPUTS} inputs")
        every: Sequence[Any] = value
    else:
        every = [value]
    texts = sum(len(one.encode()) for one in every if isinstance(one, str))
    tokens = sum(len(one) for one in every if isinstance(one, list))
    if not all(_is_input(one) for one in every):
        raise bad("input", "must be a text or a list of tokens, or a list of such; none of them empty")
    if texts > settings.max_text_bytes:
        limit = str(settings.max_text_bytes)
        raise exhausted("TEXT_TOO_LARGE", f"input exceeds {limit} bytes", limit=limit)
    if tokens > MOST_TOKENS:
        raise exhausted("TEXT_TOO_LARGE", f"input exceeds {MOST_TOKENS} tokens", limit=str(MOST_TOKENS))


def _is_input(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value)
    return isinstance(value, list) and bool(value) and all(_integer(one, 0, 2**31) for one in value)


def _row(item: Any, dropped: DroppedFields, *, base64_asked: bool) -> tuple[dict[str, Any], int]:
    """Return one vector and its dimensions. A provider may answer in numbers where bytes were asked for."""
    if not isinstance(item, dict) or not _integer(item.get("index", 0), 0, MOST_INPUTS):
        raise malformed("EMBEDDINGS")
    dropped.unread(item, ("object", "index", "embedding"))
    given = item.get("embedding")
    size = _numbers(given) if isinstance(given, list) else _packed(given) if base64_asked else 0
    if not 1 <= size <= MOST_DIMENSIONS:
        raise malformed("EMBEDDING")
    return {"object": "embedding", "index": item.get("index", 0), "embedding": given}, size


def _numbers(given: list[Any]) -> int:
    return len(given) if all(isinstance(one, int | float) and not isinstance(one, bool) for one in given) else 0


def _packed(given: Any) -> int:
    """Return how many numbers of 32 bits a text in base64 holds, 0 where it is none or another spelling of one."""
    try:
        data = base64.b64decode(given, validate=True) if isinstance(given, str) else b""
    except (binascii.Error, ValueError):
        return 0
    count, rest = divmod(len(data), 4)
    if rest or base64.b64encode(data).decode() != given:
        return 0
    return count if all(map(math.isfinite, struct.unpack(f"<{count}f", data))) else 0


def _integer(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
