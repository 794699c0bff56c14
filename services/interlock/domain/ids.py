"""Ids that the server mints: a prefix and 128 random bits (design.md, Ids; SPEC-004 §17.1)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NewType

from interlock.domain.errors import invalid

SessionId = NewType("SessionId", str)
WindowId = NewType("WindowId", str)
ContinuationId = NewType("ContinuationId", str)
TrailId = NewType("TrailId", str)

ENTROPY_BYTES = 16

_PREFIXES = ("crp_sess_", "crp_win_", "crp_cont_", "crp_trail_")
_SHAPE = re.compile(r"(crp_(?:sess|win|cont|trail)_)[0-9a-f]{32}", re.ASCII)
# 408, 409, 425, 429, 500, 502, 503, 504 and 529.
_RETRIED = re.compile(r"4(?=0[89]|2[59])|5(?=0[0234]|29)", re.ASCII)


def mint(prefix: str, entropy: bytes) -> str:
    """Return an id made of *prefix* and 16 random bytes from the caller.

    No id contains a status code after which clients ask again. Agents' frameworks look for "429" in the text of an error, ids and
    all: one halt in fifty would make such an agent wait for minutes and ask for the same answer three times.
    """
    if prefix not in _PREFIXES or len(entropy) != ENTROPY_BYTES:
        raise ValueError(f"an id needs one of {_PREFIXES} and {ENTROPY_BYTES} bytes")
    return prefix + _RETRIED.sub("a", entropy.hex())


def is_own(prefix: str, value: str) -> bool:
    """Tell whether *value* is an id of this kind that could have been minted here; SPEC-002 §4.7 allows other forms."""
    found = _SHAPE.fullmatch(value)
    return found is not None and found[1] == prefix


@lru_cache(maxsize=4096)  # a call meets the ids of its session and window in every message
def check(prefix: str, value: str) -> str:
    """Return *value* if it is an id of this kind. Refused with INVALID_ID otherwise.

    Ids become keys and SQL parameters, so nothing else may pass (reliability.md A-36).
    """
    if not is_own(prefix, value):
        raise invalid("INVALID_ID", f"not an id of the form {prefix}<32 hex digits>", prefix=prefix)
    return value
