"""The content of a provider's message: a text, or a list of parts as Mistral's models answer (A-26)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.sidecar.openai.faults import malformed

_FAULTS: Mapping[str, str] = {
    name: f"CONTENT_{name.upper()}"
    for name in ("audio", "document_url", "file", "image_url", "input_audio", "reference", "refusal", "tool_reference")
}
"""Parts that are known and not read. The type of any other is a text of the provider's, which is not passed on."""


def content_of(value: Any) -> tuple[str | None, str]:
    """Return the text and the reasoning of a content, where there is a text at all.

    Refused as malformed: with CONTENT for what is no content, with the name of a part that is not read, or with CONTENT_PART.
    """
    if value is None or isinstance(value, str):
        return value, ""
    if not isinstance(value, list):
        raise malformed("CONTENT")
    parts = [_part(item) for item in value]
    text = "".join(said for kind, said in parts if kind == "text")
    return text or None, "".join(said for kind, said in parts if kind == "thinking")


def _part(item: Any) -> tuple[str, str]:
    kind = item.get("type") if isinstance(item, dict) else None
    if kind == "text":
        return "text", _said(item.get("text"))
    if kind == "thinking":
        return "thinking", _thought(item.get("thinking"))
    raise malformed(_FAULTS.get(kind, "CONTENT_PART") if isinstance(kind, str) else "CONTENT_PART")


def _thought(value: Any) -> str:
    """Return what a model thought: a text, or parts of type text."""
    if not isinstance(value, list):
        return _said(value)
    parts = [_part(item) for item in value]
    if any(kind != "text" for kind, _ in parts):
        raise malformed("CONTENT_PART")
    return "".join(said for _, said in parts)


def _said(value: Any) -> str:
    if not isinstance(value, str):
        raise malformed("CONTENT_PART")
    return value
