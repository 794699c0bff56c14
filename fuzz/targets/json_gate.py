"""The JSON gate: what it lets through means the same to every parser, and is written anew as it was checked (A-21)."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson

from fuzz.reading import told
from interlock.sidecar.openai import strictjson

DEPTH = 64
WORDS = (
    b'{"a":1,"a":2}', b'{"a":1,"\\u0061":2}', b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-0", b"-0.0", b"1E5", b"\\ud800",
    b"\\ud83d\\ude00", b"\\u0000", b"\xef\xbb\xbf", b"18446744073709551616", b"9007199254740993", b"[[[[", b"]]]]", b"/*", b"//",
    b"\xc0\x80", b"\xed\xa0\x80", b"true", b"false", b"null", b"0x10", b"01", b"+1", b".5", b"5.", b"'",
)  # fmt: skip


def TestOneInput(data: bytes) -> None:
    """Accepted here: accepted by json and orjson with the same meaning; written and read again it is the same."""
    value = told(lambda: [strictjson.loads(data, max_depth=DEPTH)])
    if value is None:
        return
    found = value[0]
    assert same(found, json.loads(data)), data
    assert same(found, orjson.loads(data)), data
    written = strictjson.dumps(found)
    assert same(strictjson.loads(written, max_depth=DEPTH), found), written
    assert same(orjson.loads(written), found), written


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same with their types; 1, 1.0 and True are three."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return bool(one == other)


def seeds() -> dict[str, bytes]:
    """A chat request, and what parsers are known to differ in."""
    return {
        "chat": b'{"model": "m", "messages": [{"role": "user", "content": "Hello \\ud83d\\ude00?"}], "n": 1, "top_p": 0.5}',
        "duplicate": b'{"a": 1, "\\u0061": 2}',
        "surrogate": b'{"a": "\\ud800"}',
        "numbers": b"[1, -0, 1.0, 1e5, 18446744073709551615, -9223372036854775808, 0.1, 5e-324]",
        "big": b"[9007199254740993, 123456789012345678]",
        "deep": b"[" * 70 + b"]" * 70,
        "strings": b'["\\"[[[", "\\\\", "\\u0000", "\xf0\x9f\x98\x80"]',
        "bom": b"\xef\xbb\xbf{}",
        "nan": b"[NaN]",
    }
