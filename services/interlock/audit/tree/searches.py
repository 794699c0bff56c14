"""Which sessions there are, and what would have been done: for people, from the log's events (OBS-5). Nothing is verified here."""

from __future__ import annotations

import json
import re
from datetime import datetime
from functools import partial
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.audit.sealing.readers import Readers
from interlock.audit.store.log import AuditLog
from interlock.audit.store.search import LAST, FoundSession, SessionSearch, WouldHaveRow
from interlock.domain import ids
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.errors import invalid
from interlock.runtime.clock import Clock, iso8601

LISTED, MOST_LISTED = 50, 1000
"""Sessions of one answer: where the request does not say, and at most."""
LOOKED = 20_000
"""Sessions that one answer looks at."""
MOST_WOULD_HAVES, MOST_COUNTED = 200, 50_000
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|\+00:00)", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9_]{1,64}", re.ASCII)
_PREFIX = "SESSION_OUTCOME_"


class Searches:
    """Answers them."""

    def __init__(self, audit_log: AuditLog, readers: Readers, clock: Clock) -> None:
        self._log, self._readers, self._clock = audit_log, readers, clock

    async def sessions(self, request: audit_pb2.ListSessionsRequest) -> audit_pb2.ListSessionsResponse:
        """Return the sessions that began last, of those that are wanted. Refused with INVALID_FIELD or INVALID_ID."""
        limit = _limit(request.limit, MOST_LISTED)
        if request.outcome not in audit_pb2.SessionOutcome.values():
            raise invalid("INVALID_FIELD", "outcome is none that this version knows", field="outcome")
        if request.last_risk not in common_pb2.RiskLevel.values():
            raise invalid("INVALID_FIELD", "last_risk is none that this version knows", field="last_risk")
        name = audit_pb2.SessionOutcome.Name(request.outcome).removeprefix(_PREFIX)
        search = SessionSearch(
            now=iso8601(self._clock()), mentioning=tuple(_mentioned(request)), since=_instant(request.since, "since"),
            until=_instant(request.until, "until"), outcome=name if request.outcome else "", last_risk=request.last_risk,
        )  # fmt: skip
        before = LAST
        if request.HasField("before"):
            before = _time(request.before.created_at, "before"), ids.check("crp_sess_", request.before.session_id)
        found, further = await self._readers.run(partial(self._log.find_sessions, search, limit, before, LOOKED))
        on = audit_pb2.ListedSession(created_at=further[0], session_id=further[1]) if further else None
        return audit_pb2.ListSessionsResponse(sessions=map(_listed, found), next=on)

    async def would_haves(self, request: audit_pb2.ListWouldHavesRequest) -> audit_pb2.ListWouldHavesResponse:
        """Return what would have been done, the latest first, and how often each. Refused with INVALID_FIELD or INVALID_ID."""
        limit, since = _limit(request.limit, MOST_WOULD_HAVES), _instant(request.since, "since")
        if request.reason and not _WORD.fullmatch(request.reason):
            raise invalid("INVALID_FIELD", "reason is a word of letters, digits and _", field="reason")
        before, last = (*LAST, 0), request.before
        if request.HasField("before"):
            before = _time(last.at, "before"), ids.check("crp_sess_", last.session_id), last.sequence
        naming = f'"reason":{canonical_json(request.reason)}' if request.reason else ""
        found = await self._readers.run(partial(self._log.would_haves, naming, since, limit + 1, before))
        counts, first = await self._readers.run(partial(self._log.counted_would_haves, since, MOST_COUNTED))
        return audit_pb2.ListWouldHavesResponse(
            items=map(_would_have, found[:limit]), more=len(found) > limit, counted_since=first,
            counts=[
                audit_pb2.WouldHaveCount(action=action, reason=reason, count=count)
                for (action, reason), count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
            ],
        )  # fmt: skip


def _limit(asked: int, most: int) -> int:
    limit = asked or LISTED
    if not 1 <= limit <= most:
        raise invalid("INVALID_FIELD", f"limit must be from 1 to {most}", field="limit")
    return limit


def _mentioned(request: audit_pb2.ListSessionsRequest) -> list[str]:
    """Return what the data of the wanted events hold, as text. A quote inside of a value is escaped there, so no value can look so."""
    given = {"scope": request.scope, "agent_type": request.agent_type}
    return [f'"{name}":{canonical_json(value)}' for name, value in given.items() if value]


def _time(text: str, field: str) -> str:
    if not _TIME.fullmatch(text):
        raise invalid("INVALID_FIELD", f"{field} must be an ISO 8601 time in UTC", field=field)
    return text


def _instant(text: str, field: str) -> str:
    """Return a time as events have it, with six decimals, so that they can be compared as texts."""
    if not text:
        return ""
    try:
        read = datetime.fromisoformat(_time(text, field))
    except ValueError:
        raise invalid("INVALID_FIELD", f"{field} is no day of the calendar or no time of a day", field=field) from None
    return iso8601(int(read.replace(microsecond=0).timestamp()) * 1_000_000 + read.microsecond)


def _listed(found: FoundSession) -> audit_pb2.ListedSession:
    data: dict[str, Any] = json.loads(found.data_json)
    return audit_pb2.ListedSession(
        session_id=found.session_id, root_session_id=str(data.get("root_session_id") or found.session_id),
        scope=str(data.get("scope", "")), agent_type=str(data.get("agent_type", "")), created_at=found.created_at,
        outcomes=[audit_pb2.SessionOutcome.Value(_PREFIX + one) for one in found.outcomes],
    )  # fmt: skip


def _would_have(row: WouldHaveRow) -> audit_pb2.ListedWouldHave:
    data: dict[str, Any] = json.loads(row.data_json)
    told = {name: str(data.get(name) or "") for name in ("action", "reason", "directive", "risk_level")}
    return audit_pb2.ListedWouldHave(
        session_id=row.session_id, sequence=row.sequence, window_id=row.window_id, at=row.at, **told
    )
