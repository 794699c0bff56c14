"""Signed texts ``b64url(payload) "." b64url(mac)``, without padding: session tokens and delegation grants.

Approvals share the encoding. The MAC is checked over the received bytes; nothing is serialised again for a comparison.
There is one algorithm.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

MAC_LENGTH = 43

_BASE64URL = re.compile(rb"[A-Za-z0-9_-]+")


class MalformedError(ValueError):
    """A text that does not have the required form. The message gives the cause, for people."""


def encoded(data: bytes) -> bytes:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def compute_mac(tag: bytes, payload: bytes, key: bytes) -> bytes:
    """Return the MAC over a tag, which names the kind of text, and the payload as sent."""
    return hmac.digest(key, tag + b"." + payload, hashlib.sha256)


def split(text: str, limit: int) -> tuple[bytes, bytes]:
    """Return the received payload and the decoded MAC. Raises ``MalformedError``, also for a payload over *limit* bytes."""
    if not text.isascii():
        raise MalformedError("it is not ASCII")
    payload, dot, mac = text.encode("ascii").partition(b".")
    if not dot or len(mac) != MAC_LENGTH or not payload or len(payload) > limit:
        raise MalformedError("its length or its number of parts is wrong")
    return payload, decoded(mac)


def decoded(part: bytes) -> bytes:
    """Decode canonical base64url: no padding, no other alphabet, no stray trailing bits. Raises ``MalformedError``."""
    if not _BASE64URL.fullmatch(part):
        raise MalformedError("it is not base64url")
    try:
        data = base64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise MalformedError("it is not base64url") from None
    if encoded(data) != part:
        raise MalformedError("it is not canonical base64url")
    return data


def parse_json(data: bytes, *, parse_float: Callable[[str], Any] = float) -> Any:
    """Return the JSON value in *data*. Raises ``MalformedError``, also for an object with a duplicate key."""
    try:
        return _decoder(parse_float).decode(data.decode("utf-8"))
    except MalformedError:
        raise
    except (ValueError, RecursionError):  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise MalformedError("its payload is not JSON") from None


@lru_cache(maxsize=8)
def _decoder(parse_float: Callable[[str], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_float=parse_float)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MalformedError("a key occurs twice")
    return found
