"""Posts to a sink: their content, their signature, the meaning of the answer (Standard Webhooks, CloudEvents 1.0; AUD-4).

A post is made from entries of the Merkle log. Its id depends only on the sink and the events, so that a receiver recognises a
repeated delivery. Every event carries its position, which is unique and increasing.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from interlock.audit.export.export import json_text, line_of
from interlock.audit.requests import Note
from interlock.audit.streams.sinks import REPORT, Sink
from interlock.domain.chain import audit_events
from interlock.domain.chain.audit_events import SEVERITIES, STREAM_TYPES
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import EventRecord
from interlock.domain.chain.marks import TRUNCATED
from interlock.domain.errors import Kind, Refused
from interlock.domain.merkle.entries import LOG_SESSION
from interlock.domain.policy.directives import DIRECTIVES
from interlock.runtime import failpoints
from interlock.runtime.clock import Clock
from interlock.runtime.egress.addresses import url_host
from interlock.runtime.egress.fetch import Egress

MOST_BYTES = 1_048_576
"""Size of one post, bytes, unless a single event is larger."""

Positioned = tuple[int, EventRecord]
"""An event with its position in the Merkle log."""

_UNTOLD = STREAM_TYPES | {TRUNCATED}
"""Events whose delivery is not recorded: the records would never end, or a removed session would begin again."""
_TRAIL = re.compile(r"crp_trail_[0-9a-f]{32}", re.ASCII)
_FOR_GOOD = frozenset({400, 411, 413, 414, 415, 422, 431})
"""Statuses that the same message would get again."""
_LATER = frozenset({408, 425, 429})


@dataclass(frozen=True)
class Post:
    """One message, and the events that record it once it is accepted."""

    id: str
    url: str
    content_type: str
    body: bytes
    notes: tuple[tuple[str, Note], ...]
    """Session id and event."""


class Undelivered(Exception):  # noqa: N818 - the outcome of one attempt, not a defect
    """A post was not accepted. ``for_good``: the same message never will be. ``gone``: the receiver wants no more."""

    def __init__(self, reason: str, *, for_good: bool = False, gone: bool = False, after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.reason, self.for_good, self.gone, self.after_s = reason, for_good, gone, after_s


@dataclass(frozen=True)
class Courier:
    """Makes posts and sends them. ``source`` names this deployment in CloudEvents."""

    egress: Egress
    clock: Clock
    source: str

    def posts(self, sink: Sink, events: Sequence[Positioned]) -> list[Post]:
        """Return the messages for *events*, in order. The sink takes all of these events."""
        if not events:
            return []
        if sink.format == REPORT:
            return [post for one in events for post in _reports(sink, one)]
        if sink.format == "comply":
            # Sorting is stable, so that the events of a session stay in order.
            by_session = groupby(sorted(events, key=lambda one: one[1].session_id), key=lambda one: one[1].session_id)
            return [_comply(sink, list(group)) for _, group in by_session]
        return [_cloudevents(sink, events, self.source)]

    async def send(self, sink: Sink, post: Post) -> None:
        """Post once. Raises ``Undelivered`` unless the answer is a 2xx."""
        at = str(self.clock() // 1_000_000)
        headers = {
            "content-type": post.content_type,
            "user-agent": "interlock-audit",
            "webhook-id": post.id,
            "webhook-timestamp": at,
            "webhook-signature": " ".join(signature(key, post.id, at, post.body) for key in sink.secrets),
        }
        if sink.bearer:
            headers["authorization"] = f"Bearer {sink.bearer}"
        try:
            await failpoints.reached("stream.before_send")
            reply = await self.egress.post(post.url, post.body, headers, deadline_s=sink.timeout_s)
            if not 200 <= reply.status < 300:
                raise _undelivered(sink, reply.status, reply.retry_after_s or 0.0)
            await failpoints.reached("stream.after_send")
        except Refused as refused:
            unwanted = sink.format == REPORT and refused.kind is Kind.FORBIDDEN
            raise Undelivered(refused.reason, for_good=unwanted) from None


def _undelivered(sink: Sink, status: int, after_s: float) -> Undelivered:
    """Return the meaning of a failed status. The policy's author chose a report's address: a refusal there is final."""
    refused = 400 <= status < 500 and status not in _LATER
    for_good = status in _FOR_GOOD or (sink.format == REPORT and refused)
    return Undelivered(f"HTTP_{status}", for_good=for_good, gone=status == 410 and not for_good, after_s=after_s)


def signature(key: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    """Return a signature of a message, as Standard Webhooks defines it."""
    signed = b".".join((message_id.encode(), timestamp.encode(), body))
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def _id(sink: Sink, *parts: str) -> str:
    return "msg_" + hashlib.sha256("\n".join((sink.name, *parts)).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _cloudevents(sink: Sink, events: Sequence[Positioned], source: str) -> Post:
    made = [
        {
            "specversion": "1.0",
            "id": f"{position}/{event.hmac}",
            "source": source,
            "type": f"io.crprotocol.audit.v3.{event.event_type}",
            "subject": event.session_id,
            "time": event.timestamp,
            "datacontenttype": "application/json",
            "position": str(position),
            "severity": SEVERITIES[event.severity - 1] if 0 < event.severity <= len(SEVERITIES) else "INFO",
            "data": line_of(event),
        }
        for position, event in events
    ]
    name = _id(sink, *(event.hmac for _, event in events))
    content = "application/cloudevents-batch+json"
    return Post(name, sink.url, content, json_text(made).encode(), tuple(_exported(sink, name, events)))


def _comply(sink: Sink, events: Sequence[Positioned]) -> Post:
    last = events[-1][1]
    body = {
        "events": [line_of(event) for _, event in events],
        "session_id": last.session_id,
        "chain_tip_hmac": last.hmac,
    }
    name = _id(sink, *(event.hmac for _, event in events))
    return Post(name, sink.url, "application/json", json_text(body).encode(), tuple(_exported(sink, name, events)))


def _exported(sink: Sink, name: str, events: Sequence[Positioned]) -> Iterator[tuple[str, Note]]:
    """Yield one COMPLY_EXPORT per session. A delivery of delivery records alone is not recorded: it would never end."""
    by_session: dict[str, list[EventRecord]] = {}
    for _, event in events:
        by_session.setdefault(event.session_id, []).append(event)
    for session_id, mine in by_session.items():
        if session_id == LOG_SESSION or all(event.event_type in _UNTOLD for event in mine):
            continue
        trail = next((found[0] for event in mine if (found := _TRAIL.search(event.data_json))), None)
        data = {
            "comply_event_id": name, "sink": sink.name, "first_sequence": mine[0].sequence,
            "last_sequence": mine[-1].sequence, "events": len(mine), **({"trail_uri": trail} if trail else {}),
        }  # fmt: skip
        yield session_id, _note("COMPLY_EXPORT", data)


def _note(kind: str, data: Mapping[str, Any]) -> Note:
    audit_events.check(kind, 2, data)
    return Note(kind, 2, canonical_json(data), "")


def _reports(sink: Sink, one: Positioned) -> Iterator[Post]:
    """Yield the report of a violation for each address that its policy names and this sink may serve."""
    event = one[1]
    data = _data(event)
    for url, destination in _destinations(sink, data):
        name = _id(sink, event.hmac, url)
        told = {"report_id": name, "destination": destination, "sequence": event.sequence}
        note = (event.session_id, _note("REPORT_DELIVERED", told))
        yield Post(name, url, "application/json", json_text(report_of(event, data)).encode(), (note,))


def _destinations(sink: Sink, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not sink.host:
        if sink.name in _texts(data.get("report_to")):
            yield sink.url, sink.name
        return
    yield from ((url, sink.host) for url in _texts(data.get("report_uri")) if url_host(url) == sink.host)


def addresses(data: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the URLs and the groups that an event is to be reported to."""
    return _texts(data.get("report_uri")), _texts(data.get("report_to"))


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _data(event: EventRecord) -> Mapping[str, Any]:
    try:
        data = json.loads(event.data_json)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


_LEVELS = ("LOW", "MEDIUM", "HIGH", "CRITICAL")
_KIND = re.compile(r"[A-Z][A-Z_]{2,63}", re.ASCII)
_DIRECTIVE = re.compile(rf"(?:{'|'.join(DIRECTIVES)})(?: [A-Za-z0-9.'-]{{1,16}}){{0,4}}", re.ASCII)
_URI = re.compile(r"https?://[A-Za-z0-9._~:/?#\[\]!$&'()*+=%-]{1,512}", re.ASCII)


def report_of(event: EventRecord, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a violation report: only ids, scores and words of the policy's grammar (SPEC-006 §3.16; A-19)."""
    details = data.get("violation_details")
    kind = details.get("type") if isinstance(details, dict) else None
    return {
        "crp_version": "3.0.0",
        "session_id": event.session_id,
        "window_id": event.window_id,
        "timestamp": event.timestamp,
        "violation_type": _matching(_KIND, kind),
        "directive_violated": _matching(_DIRECTIVE, data.get("directive")),
        "report_only": data.get("report_only") is True,
        "risk_level": data.get("risk_level") if data.get("risk_level") in _LEVELS else None,
        "hallucination_score": _number(data.get("hallucination_score")),
        "grounding_pct": _number(data.get("grounding_pct")),
        "fabrication_count": _number(data.get("fabrication_count")),
        "audit_trail_uri": _matching(_URI, data.get("audit_trail_uri")),
    }


def _matching(pattern: re.Pattern[str], value: Any) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None


def _number(value: Any) -> float | int | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
