"""Ids that the server mints: a prefix and 128 random bits (design.md, Ids; SPEC-004 §17.1)."""

from __future__ import annotations

import re
from typing import NewType

from interlock.domain.errors import invalid

SessionId = NewType("SessionId", str)
WindowId = NewType("WindowId", str)
ContinuationId = NewType("ContinuationId", str)
TrailId = NewType("TrailId", str)

ENTROPY_BYTES = 16

_PREFIXES = ("crp_sess_", "crp_win_", "crp_cont_", "crp_trail_")
_SHAPE = re.compile(r"(crp_(?:sess|win|cont|trail)_)[0-9a-f]{32}", re.ASCII)


def mint(prefix: str, entropy: bytes) -> str:
    """Return an id made of *prefix* and 16 random bytes from the caller."""
    if prefix not in _PREFIXES or len(entropy) != ENTROPY_BYTES:
        raise ValueError(f"an id needs one of {_PREFIXES} and {ENTROPY_BYTES} bytes")
    return prefix + entropy.hex()


def check(prefix: str, value: str) -> str:
    """Return *value* if it is an id of this kind. Refused with INVALID_ID otherwise.

    Ids become keys and SQL parameters, so nothing else may pass (reliability.md A-36).
    """
    found = _SHAPE.fullmatch(value)
    if not found or found[1] != prefix:
        raise invalid("INVALID_ID", f"not an id of the form {prefix}<32 hex digits>", prefix=prefix)
    return value
