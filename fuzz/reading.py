"""How targets take an input apart. No atheris here: the same bytes must mean the same in a replay."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from interlock.domain.errors import Refused


def text_of(data: bytes) -> str:
    """Return *data* as text; bytes that are not UTF-8 become the replacement character."""
    return data.decode("utf-8", "replace")


def lines_of(data: bytes) -> list[tuple[str, str]]:
    """Return ``name: value`` lines as a server hands headers over: latin-1, parted at the first colon."""
    pairs = (line.partition(":") for line in data.decode("latin-1").split("\n"))
    return [(name, value) for name, colon, value in pairs if colon]


def json_of(data: bytes) -> Any:
    """Return the JSON value in *data* as any client might send it; ``None`` where it is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def split_off(data: bytes, parts: int) -> list[bytes]:
    """Return *data* in *parts* pieces, parted at NUL; what is missing is empty."""
    found = data.split(b"\x00", parts - 1)
    return [*found, *[b""] * (parts - len(found))]


def told(call: Callable[[], Any]) -> Any:
    """Return what *call* returns; ``None`` when it refuses, which must be by a constant reason with printable words."""
    try:
        return call()
    except Refused as refused:
        assert refused.reason.replace("_", "").isalnum(), refused.reason
        assert refused.reason.isupper(), refused.reason
        assert all(isinstance(value, str) for value in refused.metadata.values()), refused.metadata
        return None
