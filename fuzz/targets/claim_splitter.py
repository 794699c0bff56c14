"""Answers of a model, taken apart: every piece points into the text as sent, however it is disguised (A-24, A-25)."""

from __future__ import annotations

from fuzz.reading import text_of
from interlock.dpe.request import Output
from interlock.dpe.text.layout import layout
from interlock.dpe.text.segmentation import fitted, pieces
from interlock.dpe.text.text import Text
from interlock.dpe.text.views import viewed

WORDS = (
    b"```", b"| a | b |\n|---|---|\n", b"# ", b"- ", b"1. ", b"> ", b"&lt;", b"&#65;", b"%41", b"\\u0041", b"SGVsbG8gd29ybGQ=",
    b"48656c6c6f20776f726c64", b"\xe2\x80\x8b", b"\xe2\x80\xae", b"\xf3\xa0\x81\x81", b"\xef\xb8\x8f", b"\xcc\x81", b"\xc2\xad",
    b"\xe3\x80\x82", b"\xd0\xb0", b"**", b"](http://a)", b"<b>", b"\r\n", b"\xf0\x9f\x91\xa9\xe2\x80\x8d", b'{"a": "', b'"}',
)  # fmt: skip
LONGEST = 2_000
CLAIM_TOKENS = 32
"""A token is a letter here: what is counted is the caller's to say."""


def TestOneInput(data: bytes) -> None:
    """No reading of a text fails; every piece of it points into the text, and no claim is longer than its limit."""
    text = text_of(data)[:LONGEST]
    for reading in viewed([Output(0, text)]):
        _points_into(reading.text, text)
        assert reading.hidden >= 0
    for piece in pieces(layout(text).blocks):
        _points_into(piece.text, text)
        parts = fitted(piece.text, CLAIM_TOKENS, lambda each: [len(_letters(one)) for one in each])
        assert all(len(_letters(part.chars)) <= CLAIM_TOKENS for part in parts)
        assert _letters("".join(part.chars for part in parts)) == _letters(piece.text.chars)


def _points_into(reading: Text, text: str) -> None:
    assert len(reading.chars) == len(reading.starts) == len(reading.ends)
    assert all(0 <= start <= end <= len(text) for start, end in zip(reading.starts, reading.ends, strict=True))


def _letters(chars: str) -> str:
    return "".join(chars.split())


def seeds() -> dict[str, bytes]:
    """Prose, lists, tables, code, JSON, and sentences in disguise."""
    texts = {
        "prose": "The tower is 330 m tall. It was built in 1889, and it is open.\n\nDr. Smith agrees.",
        "markup": "# Title\n\n- one: **two**\n- [three](http://a.example)\n\n> quoted <b>bold</b>\n1. last",
        "table": "| a | b |\n|---|---|\n| 1 | The tower is tall. |\n",
        "code": "```python\nx = 1\n```\nThen it ran.",
        "json": '{"claim": "The tower is tall.", "n": [1, {"deep": "yes"}]}',
        "encoded": "VGhlIHRvd2VyIGlzIHRhbGwu and 54686520746f776572 and &#84;he %54ower \\u0054all",
        "hidden": "T\u200bh\u200be to\u00adwer \u202etall si\u202c \U000e0041\U000e0042 \u0430bove",
        "cjk": "塔は高い。とても高い。" * 20,
        "endless": "a" * 1500,
    }
    return {name: text.encode() for name, text in texts.items()}
