"""Decoding of text inside text: readable messages in a machine encoding (reliability.md A-24).

The encodings are HTML entities, escapes, percent-encoding, base64, base32, hex, binary, and messages in invisible
characters: tags, variation selectors, zero-width bits. A run is decoded only if the result is readable; a hash, a key
or an image stays as it is.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote_to_bytes

from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.text import Text

Edit = tuple[int, int, str]
_LEAST_READABLE = 4
_NESTED = 3
_READABLE_SHARE = 0.85
_TAG_BASE = 0xE0000
_FIRST_SELECTORS, _MORE_SELECTORS = 0xFE00, 0xE0100

_ENTITY = pattern(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_ESCAPES = pattern(r"(?:\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\x[0-9a-fA-F]{2}|\\u\{[0-9a-fA-F]{1,6}\})+")
_ESCAPE = pattern(r"\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\x[0-9a-fA-F]{2}|\\u\{[0-9a-fA-F]{1,6}\}")
_PERCENT = pattern(r"[A-Za-z0-9._~-]*(?:%[0-9a-fA-F]{2}[A-Za-z0-9._~-]*){4,}")
_BASE64 = pattern(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_BASE64_LINES = pattern(r"[A-Za-z0-9+/_-]{40,}(?:\r?\n[A-Za-z0-9+/_-]{4,})+={0,2}")
_BASE32 = pattern(r"[A-Z2-7]{16,}={0,6}")
_HEX = pattern(r"(?:0x)?[0-9a-fA-F]{2}(?:[ :,-]?(?:0x)?[0-9a-fA-F]{2}){7,}")
_BINARY = pattern(r"[01]{8}(?:[ ,]?[01]{8}){3,}")
_INNER = (_ESCAPES, _HEX, _BINARY)  # an encoding inside an encoding: no person wrote it, and the next round decodes it
_TAGS = pattern(r"[\x{E0020}-\x{E007E}]{4,}")
_SELECTORS = pattern(r"[\x{FE00}-\x{FE0F}\x{E0100}-\x{E01EF}]{4,}")
_BITS = pattern(r"[\x{200B}\x{200C}\x{200D}\x{2060}]{16,}")
_FENCE = pattern(r"(?m)^[ \t]{0,3}(?:`{3,}|~{3,})[ \t]*([^\s`]+[ \t]+[^`\n]*)$")
_TAG = pattern(r"</?[A-Za-z][^<>]*\s[^<>]*>")
_WORDS = pattern(r"\p{L}{2,}[^\p{L}]+\p{L}{2,}[^\p{L}]+\p{L}{2,}")


def unseen(text: Text) -> Text:
    """Return the text with the messages that its invisible characters encode, each on a line of its own."""
    edits = [*_decoded(text.chars, _TAGS, _decode_tags), *_decoded(text.chars, _SELECTORS, _decode_selectors)]
    edits += _decoded(text.chars, _BITS, _decode_bits)
    flags = {at for at, _, _ in edits if text.chars[at - 1 : at] == "\U0001f3f4"}
    return text.replaced([edit for edit in _apart(edits) if edit[0] not in flags])


def decoded(text: Text) -> Text:
    """Return the text with its encoded parts decoded, up to three levels deep."""
    for _ in range(_NESTED):
        before = text.chars
        for edits in (_entities, _escapes, _percents, _runs, _markup):
            if found := list(edits(text.chars)):
                text = text.replaced(found)
        if text.chars == before:
            break
    return text


def _is_readable(text: str) -> bool:
    """Whether a person could have written a text: mostly letters and spaces, nothing unprintable."""
    if len(text) < _LEAST_READABLE or not all(c.isprintable() or c in "\n\t\r" for c in text):
        return False
    plain = sum(c.isalnum() or c.isspace() or c in ".,;:!?'\"()-%$" for c in text)
    letters = sum(c.isalpha() or c.isspace() for c in text)
    return plain >= _READABLE_SHARE * len(text) and 2 * letters >= len(text)


def _entities(chars: str) -> Iterator[Edit]:
    if "&" in chars:
        for match in _ENTITY.finditer(chars):
            plain = html.unescape(match.group())
            if plain != match.group() and plain:
                yield (*match.span(), plain)


def _escapes(chars: str) -> Iterator[Edit]:
    """Yield decoded character escapes. Quotes, backslashes and controls stay, so that JSON stays valid."""
    if "\\" in chars:
        for match in _ESCAPES.finditer(chars):
            points = [int(one.group().strip("\\uUx{}"), 16) for one in _ESCAPE.finditer(match.group())]
            if all(32 <= point <= 0x10FFFF and point not in (34, 92, 127) for point in points):
                units = "".join(f"\\u{p:04x}" if p < 0x10000 else json.dumps(chr(p))[1:-1] for p in points)
                plain = json.loads(f'"{units}"').encode("utf-8", "ignore").decode()
                if plain:
                    yield (*match.span(), plain)


def _percents(chars: str) -> Iterator[Edit]:
    """Yield decoded percent-encoding, except in addresses, where it is customary."""
    if "%" in chars:
        for match in _PERCENT.finditer(chars):
            lead = chars[max(0, match.start() - 100) : match.start()].rpartition(" ")[2]
            if "/" not in lead and "?" not in lead and (plain := _text(unquote_to_bytes(match.group()))):
                yield (*match.span(), plain)


def _runs(chars: str) -> Iterator[Edit]:
    """Yield decoded runs of readable text. Of overlapping runs the first is kept."""
    found: list[Edit] = []
    for expression, decode in _CODES:
        found += _decoded(chars, expression, decode)
    yield from _apart(found)


def _markup(chars: str) -> Iterator[Edit]:
    """Yield text that markup removal would drop: attributes of a tag, and text after a fence."""
    found: list[Edit] = []
    if "<" in chars:
        found += [
            (m.start(), m.end(), f"\n{m.group()[1:-1]}\n") for m in _TAG.finditer(chars) if _WORDS.search(m.group())
        ]
    if "```" in chars or "~~~" in chars:
        found += [
            (m.start(1), m.end(1), f"\n{m.group(1)}") for m in _FENCE.finditer(chars) if _WORDS.search(m.group(1))
        ]
    yield from _apart(found)


def _decoded(chars: str, expression: Any, decode: Callable[[str], str]) -> list[Edit]:
    found: list[Edit] = []
    for match in expression.finditer(chars):
        plain = decode(match.group())
        if plain:
            found.append((match.start(), match.end(), plain))
    return found


def _apart(edits: list[Edit]) -> list[Edit]:
    """Return the edits in order, without those that overlap an earlier one."""
    kept: list[Edit] = []
    for edit in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
        if not kept or edit[0] >= kept[-1][1]:
            kept.append(edit)
    return kept


def _text(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return text if _is_readable(text) or any(code.fullmatch(text) for code in _INNER) else ""


def _decode_base64(run: str) -> str:
    if run.isalpha() and (run.islower() or run.istitle()):
        return ""  # a long word
    body = "".join(run.split()).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return _text(base64.b64decode(body + "=" * (-len(body) % 4)))
    except (binascii.Error, ValueError):
        return ""


def _decode_base32(run: str) -> str:
    body = run.rstrip("=")
    try:
        return _text(base64.b32decode(body + "=" * (-len(body) % 8)))
    except (binascii.Error, ValueError):
        return ""


def _decode_hex(run: str) -> str:
    digits = "".join(c for c in run.replace("0x", "") if c.isalnum())
    return _text(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _decode_binary(run: str) -> str:
    digits = "".join(c for c in run if c in "01")
    return _text(bytes(int(digits[at : at + 8], 2) for at in range(0, len(digits) - 7, 8)))


def _decode_tags(run: str) -> str:
    return f"\n{''.join(chr(ord(c) - _TAG_BASE) for c in run)}\n"


def _decode_selectors(run: str) -> str:
    values = (ord(c) - _FIRST_SELECTORS if ord(c) < _MORE_SELECTORS else ord(c) - _MORE_SELECTORS + 16 for c in run)
    plain = _text(bytes(values))
    return f"\n{plain}\n" if plain else ""


def _decode_bits(run: str) -> str:
    bits = "".join("0" if c == "\u200b" else "1" for c in run)
    plain = _decode_binary(bits)
    return f"\n{plain}\n" if plain else ""


_CODES = (
    (_BINARY, _decode_binary),
    (_HEX, _decode_hex),
    (_BASE32, _decode_base32),
    (_BASE64_LINES, _decode_base64),
    (_BASE64, _decode_base64),
)
