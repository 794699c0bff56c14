"""Requests and answers about spending on model calls, as domain values and back."""

from __future__ import annotations

from interlock.api.session.v1 import session_pb2
from interlock.domain.ids import SessionId
from interlock.domain.session.spending import MOST, NOTHING, Amount, Spending, SpendingLimits, SpendWindow
from interlock.session.messages.requests import ancestors_of, session_of, window_of, within


def spend_of(request: session_pb2.SpendWindowRequest) -> SpendWindow:
    """Return what a SpendWindow reserves or charges."""
    return SpendWindow(
        session_id=session_of(request.session_id),
        root_session_id=session_of(request.root_session_id),
        window_id=window_of(request.window_id),
        amount=amount_of(request),
        ancestors=ancestors_of(request.ancestor_session_ids),
        limits=SpendingLimits(
            within("limit_tokens", request.limit_tokens, 0, MOST) if request.HasField("limit_tokens") else None,
            within("limit_usd_micros", request.limit_usd_micros, 0, MOST)
            if request.HasField("limit_usd_micros")
            else None,
        ),
        final=request.final,
    )


def amount_of(request: session_pb2.SpendWindowRequest) -> Amount:
    """Return the amount of a request."""
    return Amount(within("tokens", request.tokens, 0, MOST), within("usd_micros", request.usd_micros, 0, MOST))


def spent_message(ask: SpendWindow, left: SpendingLimits) -> session_pb2.SpendWindowResponse:
    """Return what is left; what has no limit stays absent."""
    return session_pb2.SpendWindowResponse(window_id=ask.window_id, left_tokens=left.tokens, left_usd_micros=left.usd)


def spending_message(spending: Spending, own: SessionId) -> session_pb2.Spending:
    """Return what the session *own* and all below it have spent."""
    total, outstanding, mine = spending.total, spending.outstanding, dict(spending.charged).get(own, NOTHING)
    return session_pb2.Spending(
        tokens=total.tokens, usd_micros=total.usd, reserved_tokens=outstanding.tokens,
        reserved_usd_micros=outstanding.usd, limit_tokens=spending.limits.tokens,
        limit_usd_micros=spending.limits.usd, own_tokens=mine.tokens, own_usd_micros=mine.usd,
    )  # fmt: skip
