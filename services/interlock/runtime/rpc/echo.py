"""The echo: every answer says which call it answers, and is refused where it does not (I10, A-52, docs/adr/0023).

A request ends in the field ``ECHO_FIELD``, which no message declares: a nonce of its call, and the SHA-256 of method, nonce and
request. The answer ends in the same field: the SHA-256 of that digest, of the answer's place in its stream and of the answer. So an
answer that is empty, cut, altered, of an earlier call, or of another caller's call is none. A peer that knows no echo skips the field.

It is no proof of identity, which mutual TLS gives: it holds where a cache, a proxy or a defect answers in a service's place.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError

from interlock.domain.errors import Refused, invalid, unavailable

ECHO_FIELD = 1000
"""Number of the field, in the requests and the answers of every service; no message may declare it."""

WITHOUT_ECHO = "ANSWER_WITHOUT_ECHO"
ANOTHER_CALL = "ANSWER_TO_ANOTHER_CALL"
UNDECODABLE_ANSWER = "ANSWER_UNDECODABLE"
UNDECODABLE_REQUEST = "REQUEST_UNDECODABLE"
ALTERED_REQUEST = "REQUEST_ALTERED"

_TAG = bytes(
    [(ECHO_FIELD << 3 | 2) & 0x7F | 0x80, (ECHO_FIELD << 3 | 2) >> 7]
)  # a varint: wire type 2, length-delimited
_NONCE_BYTES, _DIGEST_BYTES = 16, 32
_PROCESS, _CALLS = os.urandom(8), itertools.count()
"""Halves of a nonce: which process asks, and its how manieth call this is. It need not be secret, only never the same twice."""
_ASKED = _TAG + bytes([_NONCE_BYTES + _DIGEST_BYTES])
_ANSWERED = _TAG + bytes([1 + _DIGEST_BYTES])
_MORE, _LAST = b"\x00", b"\x01"

Decode = Callable[[bytes], Any]
"""Parses a message; ``DecodeError`` for bytes that are none."""


def encoded(message: Any) -> bytes:
    """Return the canonical bytes of *message*: maps are sorted, so that a peer in between may read and write it again."""
    body: bytes = message.SerializeToString(deterministic=True)
    return body


class EchoedCall:
    """The caller's side of one call."""

    __slots__ = ("_asked", "_path", "_place", "echoed", "sent")

    def __init__(self, path: str, request: Any) -> None:
        body, nonce = encoded(request), _PROCESS + next(_CALLS).to_bytes(8, "big")
        self._path, self._place = path, 0
        self.echoed = False
        """Whether an answer had an echo: then the others need one in any case."""
        self._asked = _asked(path, nonce, body)
        self.sent = b"".join((body, _ASKED, nonce, self._asked))

    def answer(self, raw: bytes, decode: Decode, *, accept_without: bool = False) -> tuple[Any, bool]:
        """Return the next answer, and whether it is the last word of its call.

        Refused with ANSWER_WITHOUT_ECHO, unless *accept_without*, ANSWER_TO_ANOTHER_CALL or ANSWER_UNDECODABLE.
        """
        body, echo = _split(raw, _ANSWERED)
        if not echo and (self.echoed or not accept_without):
            raise _not_this(WITHOUT_ECHO, self._path, "does not say what it answers")
        message = _decoded(body, decode, self._path)
        if echo:
            self._check(echo[:1], echo[1:], body, message)
        return message, echo[:1] == _LAST

    def _check(self, flag: bytes, digest: bytes, body: bytes, message: Any) -> None:
        place, self.echoed = self._place, True
        # A proxy that reads and writes messages may order their fields in its own way: then the canonical bytes are the same.
        if digest != _answered(self._asked, place, flag, body) and digest != _answered(
            self._asked, place, flag, encoded(message)
        ):
            raise _not_this(ANOTHER_CALL, self._path, "answers another call, or was altered")
        self._place += 1


class EchoedRequest:
    """The service's side of one call. A caller that asks for no echo gets none."""

    __slots__ = ("_asked", "_place", "request")

    def __init__(self, path: str, raw: bytes, decode: Decode) -> None:
        """Read the request. Refused with REQUEST_UNDECODABLE or, where it is not what the caller sent, REQUEST_ALTERED."""
        body, echo = _split(raw, _ASKED)
        try:
            self.request = decode(body)
        except DecodeError:
            raise invalid(UNDECODABLE_REQUEST, "the request is no message of this method") from None
        self._asked, self._place = echo[_NONCE_BYTES:], 0
        if not echo:
            return
        nonce = echo[:_NONCE_BYTES]
        if self._asked != _asked(path, nonce, body) and self._asked != _asked(path, nonce, encoded(self.request)):
            raise unavailable(ALTERED_REQUEST, "the request is not the one that its caller sent")

    @property
    def echoes(self) -> bool:
        """Whether the caller asked for an echo."""
        return bool(self._asked)

    def answer(self, message: Any, *, last: bool = True) -> bytes:
        """Return the bytes of an answer, or of the next message of a stream."""
        return self._closed(encoded(message), _LAST if last else _MORE)

    def end(self) -> bytes:
        """Return the message after the last one of a stream: without it a stream was cut."""
        return self._closed(b"", _LAST)

    def _closed(self, body: bytes, flag: bytes) -> bytes:
        if not self._asked:
            return body
        digest = _answered(self._asked, self._place, flag, body)
        self._place += 1
        return b"".join((body, _ANSWERED, flag, digest))


def _split(raw: bytes, head: bytes) -> tuple[bytes, bytes]:
    """Return a message and the echo after it; empty where there is none. *head* is the echo's tag and length."""
    start = len(raw) - head[-1]
    if start < len(head) or raw[start - len(head) : start] != head:
        return raw, b""
    return raw[: start - len(head)], raw[start:]


def _asked(path: str, nonce: bytes, body: bytes) -> bytes:
    return _sha256(b"ask\x00" + path.encode() + b"\x00" + nonce, body)


def _answered(asked: bytes, place: int, flag: bytes, body: bytes) -> bytes:
    return _sha256(b"answer\x00" + asked + place.to_bytes(8, "big") + flag, body)


def _sha256(head: bytes, body: bytes) -> bytes:
    digest = hashlib.sha256(head)
    digest.update(body)
    return digest.digest()


def _decoded(body: bytes, decode: Decode, path: str) -> Any:
    try:
        return decode(body)
    except DecodeError:
        raise _not_this(UNDECODABLE_ANSWER, path, "cannot be read") from None


def _not_this(reason: str, path: str, why: str) -> Refused:
    return unavailable(reason, f"an answer inside the mesh {why}", rpc=path.rsplit(".", 1)[-1])
