"""How what model calls cost is written in a session's hash: ``lua/common.lua`` lists the fields."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from interlock.domain.ids import SessionId, WindowId
from interlock.domain.session.spending import Amount, Reservation, Spending, SpendingLimits, SpendWindow
from interlock.session.terms import limits_text

_EACH = "p:"


def to_json(ask: SpendWindow) -> str:
    """Return a reservation or a charge as ``spend.lua`` reads it. A limit that is none is left out."""
    limits = {"tokens": ask.limits.tokens, "usd": ask.limits.usd}
    return orjson.dumps({
        "window_id": ask.window_id, "ancestors": ask.ancestors, "amount": ask.amount, "final": ask.final,
        "limits": {name: value for name, value in limits.items() if value is not None},
    }).decode()  # fmt: skip


def left_from(tokens: int, usd: int) -> SpendingLimits:
    """Return what ``spend.lua`` says is left."""
    return SpendingLimits(None if tokens < 0 else tokens, None if usd < 0 else usd)


def spending_fields(spending: Spending) -> dict[str, str]:
    """Return the fields of a session's hash that tell its spending."""
    return {
        "limits": limits_text(spending.limits),
        "paid": _text(spending.total),
        "asked": ",".join(f"{one.window_id} {_text(one.amount)}" for one in spending.reserved),
        **{_EACH + session: _text(amount) for session, amount in spending.charged},
    }


def spending_from(fields: Mapping[str, bytes]) -> Spending:
    """Return the spending of a session from all fields of its hash; an older layout has none of them."""
    asked = fields.get("asked", b"").decode().split(",")
    told = [(name.removeprefix(_EACH), value) for name, value in fields.items() if name.startswith(_EACH)]
    return Spending(
        limits=_limits(fields.get("limits", b"").decode()),
        charged=tuple(sorted((SessionId(name), _amount(*value.decode().split(" "))) for name, value in told)),
        reserved=tuple(_reservation(*entry.split(" ")) for entry in asked if entry),
    )


def _limits(text: str) -> SpendingLimits:
    if not text:
        return SpendingLimits()
    tokens, usd = (None if each == "-" else int(each) for each in text.split(" "))
    return SpendingLimits(tokens, usd)


def _reservation(window: str, tokens: str, usd: str) -> Reservation:
    return Reservation(WindowId(window), _amount(tokens, usd))


def _amount(tokens: str, usd: str) -> Amount:
    return Amount(int(tokens), int(usd))


def _text(amount: Amount) -> str:
    return f"{amount.tokens} {amount.usd}"
