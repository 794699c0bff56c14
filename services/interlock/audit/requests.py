"""Requests to append: checked field by field and turned into values (reliability.md A-16, A-17, A-36, A-40)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from google.protobuf.message import Message

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.settlements import settlement_json
from interlock.audit.store.contents import WindowContent, window_content
from interlock.domain import ids
from interlock.domain.chain import audit_events
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import content_hash
from interlock.domain.chain.chain_state import BY_ADMIN, TERMINATED
from interlock.domain.errors import exhausted, invalid
from interlock.domain.held import KEPT, MAX_HELD_BYTES
from interlock.domain.risk.risk import RiskLevel
from interlock.runtime.proto_json import as_json

MAX_DATA_BYTES = 65_536
MAX_CONTENT_BYTES = 4_194_304
MAX_EVIDENCE_BYTES = 32_768
LONGEST_HOLD_S = 2_592_000
MAX_PARENTS = 1_000
MAX_DEPTH = 64
MAX_EVENTS = 512
MAX_CHARGE_MICROS = 500_000
STATUSES = frozenset({"COMPLETED", "HALTED", "HELD"})
PARENTS_OF = {"LINEAR": (0, 1), "FAN_OUT": (1, 1), "BRANCH": (1, 1), "FAN_IN": (1, MAX_PARENTS)}
"""Least and most parents of a window by its pattern (SPEC-004 §5 to §7); only a linear window can be the root.

A fan-in that continues without its failed children may have a single one (SPEC-004 §16.3).
"""
OWN_TYPES = audit_events.OWN_TYPES
"""Events that only this service writes: from a caller they would speak for the chain."""

_NOT_FINITE = ('"NaN"', 'Infinity"')
_EVENT_TYPE = re.compile(r"[A-Z][A-Z0-9_]{2,63}", re.ASCII)
_HASH = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z", re.ASCII)


@dataclass(frozen=True)
class Note:
    """An event to append; an empty timestamp means the time of the append."""

    event_type: str
    severity: int
    data_json: str
    timestamp: str


@dataclass(frozen=True)
class Hold:
    """A response to hold: the bytes it would be released as, how long it may be released, and the policy that held it."""

    held: bytes
    seconds: int
    policy_hash: str


@dataclass(frozen=True)
class Draft:
    """A window to seal. ``request_hash`` covers the whole request: the same window id with another hash is a conflict."""

    session_id: str
    window_id: str
    window_number: int
    parent_ids: tuple[str, ...]
    parent_hmacs: tuple[str, ...]
    response_hash: str
    report_json: bytes
    report_hash: str
    notes: tuple[Note, ...]
    risk_level: int
    charge_micros: int
    status: str
    settle_json: str
    content: WindowContent
    pattern: str
    request_hash: str
    hold: Hold | None = None


def draft(request: audit_pb2.AppendRequest) -> Draft:
    """Return the window that *request* describes, or refuse it with INVALID."""
    report_json = _report(request)
    content: dict[str, Any] = {
        "session_id": ids.check("crp_sess_", request.session_id),
        "window_id": ids.check("crp_win_", request.window_id),
        "window_number": request.window_number,
        "parent_ids": tuple(sorted(ids.check("crp_win_", parent) for parent in request.parent_ids)),
        "parent_hmacs": tuple(sorted(_hash("parent_hmacs", parent) for parent in request.parent_hmacs)),
        "response_hash": _hash("response_hash", request.response_hash),
        "report_hash": content_hash(report_json),
        "notes": notes(request.events),
        "risk_level": _risk(request.risk_level),
        "charge_micros": _charge(request.charge_micros),
        "status": _status(request.status),
        "settle_json": _settle_json(request),
    }
    pattern, kept = request.pattern or "LINEAR", _content(request)
    _check_parents(content, pattern)
    # Fields that an older version did not know are hashed only when used: a repeated request keeps its hash.
    later: dict[str, Any] = {} if pattern == "LINEAR" else {"pattern": pattern}
    later |= {"deferred_facts": kept.facts_hash} if kept.facts else {}
    later |= {"evidence": kept.evidence_hash} if kept.evidence else {}
    hold = _hold(request)
    later |= {"hold": [content_hash(hold.held), str(hold.seconds), hold.policy_hash]} if hold else {}
    asked = canonical_json(
        {**content, **later, "content": kept.text, "notes": [vars(note) for note in content["notes"]]}
    )
    return Draft(
        **content, content=kept, pattern=pattern, report_json=report_json, request_hash=content_hash(asked.encode()),
        hold=hold,
    )  # fmt: skip


def _settle_json(request: audit_pb2.AppendRequest) -> str:
    """Return the settlement as it is stored. A sidecar that knows no message sends JSON; one of a later version may need it."""
    if not request.HasField("settlement"):
        return json_object("settle_json", request.settle_json)
    text = settlement_json(request.settlement)
    if text is None and not request.settle_json:
        expected = "settlement must hold no field of a later version; upgrade the audit service first"
        raise invalid("INVALID_FIELD", expected, field="settlement")
    return json_object("settle_json", request.settle_json) if text is None else _short("settle_json", text)


def _hold(request: audit_pb2.AppendRequest) -> Hold | None:
    if not request.held:
        return None
    if request.status not in KEPT or not 1 <= request.hold_s <= LONGEST_HOLD_S:
        raise invalid(
            "INVALID_HOLD",
            f"a window of status HELD or HALTED is held for 1 to {LONGEST_HOLD_S} seconds",
            field="hold_s",
        )
    if len(request.held) > MAX_HELD_BYTES:
        raise exhausted("HELD_TOO_LARGE", f"a held response has at most {MAX_HELD_BYTES} bytes, headers included")
    return Hold(request.held, request.hold_s, _hash("policy_hash", request.policy_hash))


def _check_parents(content: dict[str, Any], pattern: str) -> None:
    if pattern not in PARENTS_OF:
        raise invalid("INVALID_PATTERN", "a window is LINEAR, FAN_OUT, FAN_IN or BRANCH", field="pattern")
    parent_ids, number = content["parent_ids"], content["window_number"]
    if len(parent_ids) != len(content["parent_hmacs"]) or len(set(parent_ids)) != len(parent_ids):
        raise invalid("INVALID_PARENTS", "each parent is named once and has one HMAC")
    if number < 1 or bool(parent_ids) != (number > 1):
        raise invalid("INVALID_WINDOW_NUMBER", "windows are numbered from 1, and only number 1 has no parents")
    least, most = PARENTS_OF[pattern]
    if not least <= len(parent_ids) <= most:
        raise invalid("INVALID_PARENTS", f"a window of pattern {pattern} has {least} to {most} parents")


def notes(events: Iterable[audit_pb2.NewEvent]) -> tuple[Note, ...]:
    """Return the events to append, in order. Refused with TOO_MANY_EVENTS or the reason of a malformed event."""
    found = tuple(_note(event) for event in events)
    if len(found) > MAX_EVENTS:
        raise exhausted("TOO_MANY_EVENTS", f"at most {MAX_EVENTS} events at a time")
    return found


def _note(event: audit_pb2.NewEvent) -> Note:
    if not _EVENT_TYPE.fullmatch(event.event_type):
        raise invalid("INVALID_EVENT_TYPE", "an event type has 3 to 64 capitals, digits and underscores")
    if event.event_type in OWN_TYPES:
        raise invalid("RESERVED_EVENT_TYPE", "only the audit service writes this event", type=event.event_type)
    if not audit_pb2.SEVERITY_DEBUG <= event.severity <= audit_pb2.SEVERITY_CRITICAL:
        raise invalid("INVALID_SEVERITY", "a severity is one of DEBUG, INFO, WARN, ERROR, CRITICAL")
    value, data = _json_object("data_json", event.data_json)
    if event.event_type == TERMINATED and value.get("reason") == BY_ADMIN:
        message = "only the audit service says that an admin stopped a session"
        raise invalid("RESERVED_EVENT_TYPE", message, type=event.event_type)
    audit_events.check(event.event_type, event.severity, value)
    return Note(event.event_type, int(event.severity), data, _timestamp(event.timestamp))


def _timestamp(text: str) -> str:
    if text and not _is_time(text):
        raise invalid("INVALID_TIMESTAMP", "a time is ISO 8601 in UTC, such as 2026-05-25T10:00:00Z")
    return text


def _is_time(text: str) -> bool:
    if not _TIMESTAMP.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def json_object(what: str, text: str) -> str:
    """Return the canonical text of a JSON object; an empty *text* is an empty object.

    Refused with INVALID_JSON for text that two parsers could read differently (reliability.md A-21).
    """
    return _json_object(what, text)[1]


def _json_object(what: str, text: str) -> tuple[dict[str, Any], str]:
    """Return a JSON object and its canonical text."""
    _short(what, text)
    try:
        value, canonical = _read_json(text or "{}")
        canonical.encode()
        sound = isinstance(value, dict) and (_brackets(text) <= MAX_DEPTH or _depth(value) <= MAX_DEPTH)
    except (ValueError, RecursionError):
        sound = False
    if not sound:
        raise invalid(
            "INVALID_JSON",
            f"{what} is a JSON object with unique keys, finite numbers and at most {MAX_DEPTH} levels",
            field=what,
        )
    return value, canonical


def _read_json(text: str) -> tuple[Any, str]:
    """Return a JSON value and its canonical text. Raises ``ValueError`` for repeated keys and for numbers that are not finite."""
    value = _PLAIN.decode(text)
    canonical = canonical_json(value)
    if canonical != text:  # a text that is canonical itself repeats no key
        value = _STRICT.decode(text)
    return value, canonical


def _brackets(text: str) -> int:
    """Return how deep the value of a JSON text is at most."""
    return text.count("{") + text.count("[")


def _short(what: str, text: str) -> str:
    if len(text.encode()) > MAX_DATA_BYTES:
        raise exhausted("JSON_TOO_LARGE", f"{what} has at most {MAX_DATA_BYTES} bytes", field=what)
    return text


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_PLAIN = json.JSONDecoder()
_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
"""Made once: one is needed for each event."""


def _depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    inside = value.values() if isinstance(value, dict) else value
    return 1 + max([_depth(one) for one in inside if isinstance(one, dict | list)], default=0)


def _report(request: audit_pb2.AppendRequest) -> bytes:
    if not request.HasField("report"):
        raise invalid("REPORT_MISSING", "a window is sealed with its report")
    text = canonical_json(as_json(request.report, proto_names=True))
    # Such a number becomes one of these words; so may a text, and then the numbers are looked at one by one.
    if any(word in text for word in _NOT_FINITE) and not all(map(math.isfinite, _floats(request.report))):
        raise invalid("INVALID_NUMBER", "the report holds a number that is not finite", field="report")
    return text.encode()


def _floats(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, Message):
        for _, held in value.ListFields():
            yield from _floats(held)
    elif not isinstance(value, str | bytes | int):
        for held in value.values() if hasattr(value, "values") else value:
            yield from _floats(held)


def _content(request: audit_pb2.AppendRequest) -> WindowContent:
    if not all(math.isfinite(fact.importance) for fact in request.deferred_facts):
        raise invalid("INVALID_NUMBER", "a fact holds a number that is not finite", field="deferred_facts")
    if len(request.content.encode()) + sum(fact.ByteSize() for fact in request.deferred_facts) > MAX_CONTENT_BYTES:
        raise exhausted(
            "CONTENT_TOO_LARGE", f"a window's content has at most {MAX_CONTENT_BYTES} bytes, facts included"
        )
    if sum(len(fact.id.encode()) + len(fact.content.encode()) for fact in request.evidence) > MAX_EVIDENCE_BYTES:
        message = f"the evidence of a window has at most {MAX_EVIDENCE_BYTES} bytes"
        raise exhausted("EVIDENCE_TOO_LARGE", message)
    return window_content(request.content, request.deferred_facts, request.evidence if request.content else ())


def _hash(what: str, text: str) -> str:
    if not _HASH.fullmatch(text):
        raise invalid("INVALID_HASH", f"{what} is sha256: and 64 hex digits", field=what)
    return text


def _risk(level: int) -> int:
    if level not in RiskLevel.__members__.values():
        raise invalid("INVALID_RISK_LEVEL", "a window is sealed with a risk level")
    return int(level)


def _charge(micros: int) -> int:
    if not 0 <= micros <= MAX_CHARGE_MICROS:
        raise invalid("INVALID_CHARGE", f"a charge is 0 to {MAX_CHARGE_MICROS} millionths")
    return int(micros)


def _status(status: str) -> str:
    if status not in STATUSES:
        raise invalid("INVALID_STATUS", "a window is COMPLETED, HALTED or HELD")
    return status
