"""Audit events for a SIEM: OCSF 1.1.0, class API Activity (SPEC-011 §4.2; AUD-4).

Data without an OCSF field goes into ``unmapped``: an event can be read back from its line, and its HMAC checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from importlib.metadata import version
from typing import Any

from interlock.audit.export.export import data_of, json_text, severity_name
from interlock.domain.chain.chain import EventRecord

SCHEMA = "1.1.0"
CLASS_UID, CATEGORY_UID = 6003, 6
CREATE, READ, UPDATE, DELETE, OTHER = 1, 2, 3, 4, 99

ACTIVITIES: Mapping[str, int] = {
    **dict.fromkeys(
        ("SESSION_CREATED", "DISPATCH_STARTED", "WINDOW_SEALED", "FAN_OUT_CREATED", "DELEGATION_GRANTED",
         "SUB_AGENT_STARTED"),
        CREATE,
    ),
    **dict.fromkeys(("FACT_RETRIEVED", "RESPONSE_RELEASED", "COMPLY_EXPORT", "REPORT_DELIVERED"), READ),
    **dict.fromkeys(
        ("SESSION_CONTINUED", "RE_DISPATCH", "STRATEGY_UPGRADE", "BREAKER_TRANSITION", "SAFETY_BUDGET_CASCADED",
         "FLOW_REMEDIATION", "COMPLETENESS_CONTINUATION", "FLOW_STITCH", "FAN_IN_MERGED", "AGENT_LOOP_ITERATION",
         "REMEDY_DISCARDED"),
        UPDATE,
    ),
    **dict.fromkeys(("SESSION_TERMINATED", "CONTENT_DROPPED", "CONTENT_ERASED", "TRUNCATED"), DELETE),
}  # fmt: skip
"""OCSF activity by event type. Every other type has the activity Other and its own name."""

_SERVICE = {"name": "CRP Gateway", "uid": "interlock", "version": version("interlock")}
_NAMES = {CREATE: "Create", READ: "Read", UPDATE: "Update", DELETE: "Delete"}
_SEVERITIES = {1: 1, 2: 1, 3: 3, 4: 4, 5: 5}
_CAPTIONS = {0: "Unknown", 1: "Informational", 3: "Medium", 4: "High", 5: "Critical"}
_FAILURES = frozenset({
    "DISPATCH_FAILED", "WINDOW_FAILED", "SAFETY_HALT", "POLICY_VIOLATION", "CHAIN_BROKEN", "OVERSIGHT_REJECTED",
    "OVERSIGHT_EXPIRED",
})  # fmt: skip


def lines(events: Iterable[EventRecord]) -> Iterator[str]:
    """Yield an OCSF event for each event of one session. Scope and endpoint are included once an event has named them."""
    scope = endpoint = ""
    for event in events:
        found = data_of(event.data_json)
        data: Mapping[str, Any] = found if isinstance(found, dict) else {}
        if event.event_type == "SESSION_CREATED" and isinstance(data.get("scope"), str):
            scope = data["scope"]
        if event.event_type == "DISPATCH_STARTED":
            endpoint = _endpoint(data)
        yield json_text(ocsf_of(event, found, scope=scope, endpoint=endpoint))


def _endpoint(data: Mapping[str, Any]) -> str:
    return "/".join(part for key in ("provider", "model") if isinstance(part := data.get(key), str) and part)


def ocsf_of(event: EventRecord, data: Any, *, scope: str, endpoint: str) -> dict[str, Any]:
    """Return one event in OCSF; unknown fields are left out."""
    activity = ACTIVITIES.get(event.event_type, OTHER)
    severity, failed = _SEVERITIES.get(event.severity, 0), event.event_type in _FAILURES
    return {
        "activity_id": activity,
        "activity_name": _NAMES.get(activity, event.event_type),
        "actor": {"session": {"uid": event.session_id}, **({"user": {"uid": scope}} if scope else {})},
        "api": {"operation": event.event_type, "service": _SERVICE, "version": "3.0.0"},
        "category_name": "Application Activity",
        "category_uid": CATEGORY_UID,
        "class_name": "API Activity",
        "class_uid": CLASS_UID,
        **({"dst_endpoint": {"uid": endpoint}} if endpoint else {}),
        "metadata": _metadata(event),
        "severity": _CAPTIONS[severity],
        "severity_id": severity,
        "src_endpoint": {"uid": event.session_id},
        "status": "Failure" if failed else "Success",
        "status_id": 2 if failed else 1,
        "time": _milliseconds(event.timestamp),
        "type_name": f"API Activity: {_NAMES.get(activity, 'Other')}",
        "type_uid": CLASS_UID * 100 + activity,
        "unmapped": _unmapped(event, data),
    }


def _metadata(event: EventRecord) -> dict[str, Any]:
    return {
        "version": SCHEMA,
        "product": {
            "name": "CRP Gateway",
            "vendor_name": "AutoCyber AI",
            "feature": {"name": "Interlock", "version": version("interlock")},
        },
        "uid": event.hmac,
        "event_code": event.event_type,
        "sequence": event.sequence,
        "original_time": event.timestamp,
        **({"correlation_uid": event.window_id} if event.window_id else {}),
    }


def _unmapped(event: EventRecord, data: Any) -> dict[str, Any]:
    risk = data.get("risk_level") if isinstance(data, dict) else None
    return {
        "crp_event_type": event.event_type,
        "crp_hmac": event.hmac,
        "crp_sequence": event.sequence,
        "crp_severity": severity_name(event.severity),
        "crp_window_id": event.window_id,
        **({"crp_risk_level": risk} if isinstance(risk, str) else {}),
        "crp_data": data,
    }


def _milliseconds(timestamp: str) -> int:
    """Return milliseconds since the epoch; 0 for an unreadable time, which stays in ``original_time``."""
    try:
        return int(datetime.fromisoformat(timestamp).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0
