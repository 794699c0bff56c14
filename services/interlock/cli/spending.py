"""What model calls of a session cost, as the commands show it (docs/spending.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import Micros, as_decimal


def as_json(spending: session_pb2.Spending) -> Mapping[str, int | None]:
    """Return spending as JSON: of the session and all below it, tokens and millionths of a US dollar."""
    counted = ("tokens", "usd_micros", "reserved_tokens", "reserved_usd_micros", "own_tokens", "own_usd_micros")
    return {
        **{name: getattr(spending, name) for name in counted},
        "limit_tokens": spending.limit_tokens if spending.HasField("limit_tokens") else None,
        "limit_usd_micros": spending.limit_usd_micros if spending.HasField("limit_usd_micros") else None,
    }


def as_text(spending: session_pb2.Spending) -> Iterable[str]:
    """Return the lines that a person reads."""
    tokens = f" of {spending.limit_tokens}" if spending.HasField("limit_tokens") else ""
    usd = f" of {_usd(spending.limit_usd_micros)}" if spending.HasField("limit_usd_micros") else ""
    yield f"spent    {spending.tokens}{tokens} tokens, {_usd(spending.usd_micros)}{usd} USD, with all below it"
    if spending.reserved_tokens or spending.reserved_usd_micros:
        reserved = f"{spending.reserved_tokens} tokens, {_usd(spending.reserved_usd_micros)} USD"
        yield f"reserved {reserved}: calls under way, and calls of which no end is known"


def cost(spending: session_pb2.Spending) -> str:
    """Return what was spent and is reserved, US dollars."""
    return _usd(spending.usd_micros + spending.reserved_usd_micros)


def _usd(micros: int) -> str:
    return as_decimal(Micros(micros))
