"""What the audit trail says of money that is spent on model calls of windows without a seal (docs/adr/0037).

A reservation is on record before the provider is asked, so that a store that loses it gets it back from the chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.session.spending import Amount, SpendingLimits
from interlock.sidecar.trail.events import INFO, event

RESERVED, CHARGED = "SPENDING_RESERVED", "SPENDING_CHARGED"


def reserved(amount: Amount, limits: SpendingLimits) -> audit_pb2.NewEvent:
    """So much is reserved for all calls of a window, under limits that its policy sets."""
    return event(
        RESERVED,
        INFO,
        tokens=amount.tokens,
        usd_micros=amount.usd,
        limit_tokens=limits.tokens,
        limit_usd_micros=limits.usd,
    )


def charged(amount: Amount) -> audit_pb2.NewEvent:
    """So much did the calls of a window cost that will not be sealed."""
    return event(CHARGED, INFO, tokens=amount.tokens, usd_micros=amount.usd)


def spent(step: audit_pb2.TreeStep, data: Mapping[str, Any], root: str) -> session_pb2.SpendWindowRequest:
    """Return what the session service is told of such an event, to reserve or charge it again."""
    return session_pb2.SpendWindowRequest(
        session_id=step.session_id, root_session_id=root, window_id=step.window_id, tokens=data["tokens"],
        usd_micros=data["usd_micros"], limit_tokens=data.get("limit_tokens"),
        limit_usd_micros=data.get("limit_usd_micros"), final=step.event_type == CHARGED,
    )  # fmt: skip
