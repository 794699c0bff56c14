"""What would have been done to an answer that is only watched: its words, its header, its event and its metric (docs/profiles.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prometheus_client import Counter

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.sidecar.trail.events import WARN, event
from interlock.sidecar.trail.response_headers import word

WOULD_HAVE = Counter(
    "interlock_would_have",
    "Answers delivered to callers that know nothing of CRP although they would have been halted, held, rejected or rewritten, "
    "by that action and its reason.",
    ["action", "reason"],
)

HALT, HOLD, REJECT, REWRITE = "halt", "hold", "reject", "rewrite"
_ACTIONS = {
    policy_pb2.ACTION_HOLD: HOLD,
    policy_pb2.ACTION_REJECT_QUALITY: REJECT,
    policy_pb2.ACTION_REDISPATCH: REWRITE,
    policy_pb2.ACTION_CONTINUE: REWRITE,
    policy_pb2.ACTION_STITCH: REWRITE,
}


@dataclass(frozen=True)
class WouldHave:
    """One thing that would have been done."""

    action: str
    """halt, hold, reject or rewrite."""
    reason: str
    """A word of a fixed list: the crp_halt_reason, the remedy, or the state of the breaker."""
    directive: str = ""
    """Directive that asks for it, as written; empty where none does."""


DEPLETED = WouldHave(HALT, "SAFETY_BUDGET_DEPLETED")
DEFICIENT = WouldHave(REJECT, "PERSISTENT_DEFICIENCY")


def of_decision(decision: policy_pb2.Decision) -> list[WouldHave]:
    """Return what policy would have done; nothing where it would have delivered, or where the answer is not only watched."""
    if not decision.HasField("would"):
        return []
    would = decision.would
    remedy = word(policy_pb2.Remedy, would.remedies[0]) if would.remedies else word(policy_pb2.Action, would.action)
    # What this version does not know would not have been delivered (ACTION_UNSPECIFIED is a halt).
    return [WouldHave(_ACTIONS.get(would.action, HALT), would.reason or remedy or "UNKNOWN", would.directive)]


def header(found: Sequence[WouldHave]) -> dict[str, str | None]:
    """Return the header that tells it; none where nothing would have been done."""
    return {"CRP-Safety-Would": ", ".join(f"{one.action}; reason={one.reason}" for one in found) or None}


def events(found: Sequence[WouldHave], report: dpe_pb2.Report, report_uri: str) -> Iterator[audit_pb2.NewEvent]:
    """Yield the events that tell it in the window's trail."""
    for one in found:
        yield event(
            "WOULD_HAVE", WARN, action=one.action, reason=one.reason, directive=one.directive or None,
            risk_level=word(common_pb2.RiskLevel, report.risk_level), audit_trail_uri=report_uri,
        )  # fmt: skip


def count(found: Sequence[WouldHave]) -> None:
    """Count what would have been done to an answer that was delivered."""
    for one in found:
        WOULD_HAVE.labels(one.action, one.reason).inc()
