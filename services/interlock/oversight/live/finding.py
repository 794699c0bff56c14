"""What the list of sessions is searched by: the parameters of its address, read strictly, and the request that they make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.domain.errors import invalid

CHOICES: Mapping[str, tuple[str, ...]] = {
    "outcome": ("running", "ended", "halted", "held", "released"),
    "risk": ("low", "medium", "high", "critical"),
    "breaker": ("closed", "half open", "open"),
}
"""Parameter → its words."""
PARAMETERS = ("scope", "agent", "since", "until", *CHOICES)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?Z?", re.ASCII)


@dataclass(frozen=True)
class Filter:
    """What is wanted. Empty values narrow nothing."""

    scope: str
    agent: str
    since: str
    """Such as 2026-05-25T10:00, in UTC: as a browser's field for a time has it."""
    until: str
    outcome: str
    risk: str
    breaker: str
    """It is not in the audit log: it narrows each page by itself."""

    def as_query(self) -> dict[str, str]:
        """Return the parameters that make it again."""
        return {name: value for name in PARAMETERS if (value := getattr(self, name))}

    def request(self, before: audit_pb2.ListedSession | None, limit: int) -> audit_pb2.ListSessionsRequest:
        """Return the request for a page."""
        return audit_pb2.ListSessionsRequest(
            scope=self.scope, agent_type=self.agent, limit=limit, before=before,
            since=f"{self.since}Z" if self.since else "", until=f"{self.until}Z" if self.until else "",
            outcome=audit_pb2.SessionOutcome.Value(f"SESSION_OUTCOME_{(self.outcome or 'unspecified').upper()}"),
            last_risk=common_pb2.RiskLevel.Value(f"RISK_LEVEL_{(self.risk or 'unspecified').upper()}"),
        )  # fmt: skip

    def admits(self, now: Mapping[str, Any] | None) -> bool:
        """Tell whether a session of a page is shown, as the store has it *now*."""
        return not self.breaker or (now is not None and now["breaker"].text.lower() == self.breaker)


def filter_of(given: Mapping[str, str]) -> Filter:
    """Return what the parameters ask for. Refused with INVALID_PARAMETER."""
    words = {name: _word(name, given.get(name, "")) for name in CHOICES}
    since, until = _time("since", given.get("since", "")), _time("until", given.get("until", ""), end_of_day=True)
    if since and until and since >= until:
        raise invalid("INVALID_PARAMETER", "since lies before until: between them there is no time", param="since")
    return Filter(given.get("scope", "").strip(), given.get("agent", "").strip(), since, until, **words)


def _word(name: str, given: str) -> str:
    word = given.strip().lower()
    if word and word not in CHOICES[name]:
        raise invalid("INVALID_PARAMETER", f"{name} is one of {', '.join(CHOICES[name])}", param=name)
    return word


def _time(name: str, given: str, *, end_of_day: bool = False) -> str:
    """Return a time as a browser's field has it; a day alone is its beginning, or its end where that is wanted."""
    text = given.strip()
    if not text:
        return ""
    is_day = _DAY.fullmatch(text) is not None
    try:
        read = datetime.fromisoformat(text.removesuffix("Z") if is_day or _TIME.fullmatch(text) else "")
        read += timedelta(days=1 if is_day and end_of_day else 0)
    except (ValueError, OverflowError):
        message = f"{name} is a time in UTC such as 2026-05-25T10:00, or a day such as 2026-05-25"
        raise invalid("INVALID_PARAMETER", message, param=name) from None
    return read.replace(tzinfo=UTC).isoformat(timespec="seconds").removesuffix("+00:00")
