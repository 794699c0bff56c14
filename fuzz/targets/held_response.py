"""Held responses as they are kept: what is read was packed so, to the byte; nothing else is released (OVR-2)."""

from __future__ import annotations

from interlock.domain import held

WORDS = (
    b'"body":"', b'"decision":"', b'"form":"chat"', b'"headers":{', b'"include_usage":false', b'"v":1', b"true", b"1.0", b"null",
    b"[]", b"{}", b"e30=", b"\\ud800",
)  # fmt: skip


def TestOneInput(data: bytes) -> None:
    """Everything is a ``ValueError`` or exactly what ``packed`` writes."""
    try:
        found = held.unpacked(data)
    except ValueError:
        return
    assert held.packed(found) == data
    assert type(found.include_usage) is bool


def seeds() -> dict[str, bytes]:
    """A held chat, and the same with parts left out or of another type."""
    whole = held.packed(
        held.Held(
            form=held.CHAT,
            include_usage=False,
            headers={"CRP-Agent-Safety-Budget": "0.95"},
            body=b'{"choices":[]}',
            decision=b"\x08\x01",
            question="Why?",
            evidence={"f1": "Because."},
        )
    )
    return {
        "whole": whole,
        "without_form_number": whole.replace(b',"v":1', b""),
        "form_is_a_list": whole.replace(b'"chat"', b"[]"),
        "usage_is_a_number": whole.replace(b"false", b"0"),
        "true_is_one": whole.replace(b'"v":1', b'"v":true'),
        "spaced": whole.replace(b",", b", "),
    }
