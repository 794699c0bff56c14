"""The statements of the audit log, in the SQL that SQLite and PostgreSQL share.

Placeholders are ``?``; ``log_postgres.py`` translates them. ``instr(text, part)`` is SQLite's; a migration adds it to
PostgreSQL. An event type is written into the text where a partial index of that type is used.
"""

# ruff: noqa: S608 - the columns are constants of this module
from __future__ import annotations

from collections.abc import Sequence

from interlock.domain.merkle.entries import LOG_SESSION

EVENT = "session_id, sequence, window_id, event_type, severity, timestamp, data_json, key_version, hmac"
WINDOW = (
    "w.session_id, w.window_id, w.window_number, w.parent_ids, w.response_hash, w.report_hash, w.risk_level,"
    " w.charge_micros, w.status, w.settle_json, w.trail_id, w.request_hash, w.timestamp, w.key_version, w.hmac,"
    " w.content_hash, w.sealed_report_hash"
)
_WITH_REPORT = f"SELECT {WINDOW}, r.body FROM windows AS w LEFT JOIN reports AS r ON r.window_id = w.window_id"
_WITH_KEY = (
    f"SELECT {WINDOW}, r.body, k.key_version, k.wrapped FROM windows AS w"
    " LEFT JOIN reports AS r ON r.window_id = w.window_id LEFT JOIN content_keys AS k ON k.session_id = w.session_id"
)

HEAD = "SELECT sequence, hmac FROM events WHERE session_id = ? ORDER BY sequence DESC LIMIT 1"
EVENTS = f"SELECT {EVENT} FROM events WHERE session_id = ? AND sequence > ? ORDER BY sequence LIMIT ?"
ALL_EVENTS = f"SELECT {EVENT} FROM events WHERE session_id = ? ORDER BY sequence"
EVENTS_BETWEEN = f"SELECT {EVENT} FROM events WHERE session_id = ? AND sequence BETWEEN ? AND ? ORDER BY sequence"
NAMING = "SELECT session_id FROM events WHERE event_type = 'SESSION_CREATED' AND instr(data_json, ?) > 0"
HAS_EVENT = "SELECT 1 FROM events WHERE session_id = ? AND window_id = ? AND event_type = ? AND data_json = ? LIMIT 1"
HAS_EVENT_OF = "SELECT 1 FROM events WHERE session_id = ? AND window_id = ? AND event_type = ? LIMIT 1"
HOLDS = "SELECT 1 FROM events WHERE session_id = ? AND event_type = ? LIMIT 1"
SEAL_BY_ID = f"SELECT {WINDOW}, NULL FROM windows AS w WHERE w.window_id = ?"
# Ids have one shape, so a list holds an id exactly if its text contains it. A child's number is above its parent's.
CONTINUED = "SELECT 1 FROM windows WHERE session_id = ? AND window_number > ? AND instr(parent_ids, ?) > 0 LIMIT 1"
REPORT_BY_WINDOW = f"{_WITH_KEY} WHERE w.window_id = ?"
REPORT_BY_TRAIL = f"{_WITH_KEY} WHERE w.trail_id = ?"
WINDOWS = f"{_WITH_REPORT} WHERE w.session_id = ? ORDER BY w.window_number, w.window_id"
# One statement for each type: an index of some rows is used where the text names the same ones.
_OPENED_LAST = (
    "SELECT session_id, timestamp, data_json FROM events WHERE event_type = '{}' AND instr(data_json, ?) > 0"
    " AND instr(data_json, ?) > 0 AND (timestamp, session_id) < (?, ?) ORDER BY timestamp DESC, session_id DESC LIMIT ?"
)
OPENED_LAST = {name: _OPENED_LAST.format(name) for name in ("KERNEL_OPENED", "DECISION_OPENED")}
_CYCLES = f"SELECT {EVENT} FROM events WHERE session_id = ? AND event_type = 'DECISION_CYCLE' ORDER BY sequence"
LAST_CYCLES = f"{_CYCLES} DESC LIMIT ?"
CYCLES_FROM = f"{_CYCLES} LIMIT ? OFFSET ?"
CHARGED_TO = (
    "SELECT DISTINCT session_id FROM windows WHERE charge_micros > 0 AND timestamp >= ? AND instr(settle_json, ?) > 0"
)
# In the order of their seals. CROSS JOIN makes SQLite begin with the few events.
SEALED_BETWEEN = (
    f"SELECT {WINDOW}, r.body FROM events AS e CROSS JOIN windows AS w LEFT JOIN reports AS r ON r.window_id = w.window_id"
    " WHERE e.session_id = ? AND e.sequence BETWEEN ? AND ? AND e.event_type = 'WINDOW_SEALED'"
    " AND w.window_id = e.window_id AND w.session_id = e.session_id ORDER BY e.sequence"
)
WINDOW_COUNT = "SELECT COUNT(*) FROM windows WHERE session_id = ?"
ROOT = "SELECT window_id FROM windows WHERE session_id = ? ORDER BY window_number, window_id LIMIT 1"
ADD_EVENT = f"INSERT INTO events ({EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
ADD_WINDOW = (
    "INSERT INTO windows (session_id, window_id, window_number, parent_ids, response_hash, report_hash, risk_level,"
    " charge_micros, status, settle_json, trail_id, request_hash, timestamp, key_version, hmac, content_hash,"
    " sealed_report_hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
ADD_REPORT = "INSERT INTO reports (window_id, body) VALUES (?, ?)"

CONTENT_KEY = "SELECT key_version, wrapped FROM content_keys WHERE session_id = ?"
# By id alone: SQLite would read all windows of the session otherwise. The reader leaves out those of other sessions.
CONTENTS = "SELECT window_id, sealed, session_id FROM contents WHERE window_id IN ({})"
ADD_CONTENT_KEY = "INSERT INTO content_keys (session_id, key_version, wrapped) VALUES (?, ?, ?)"
ADD_CONTENT = "INSERT INTO contents (window_id, session_id, sealed) VALUES (?, ?, ?)"
HAS_CONTENT = "SELECT 1 FROM contents WHERE session_id = ? AND window_id = ?"

KEY_VERSIONS = (
    "SELECT key_version FROM events UNION SELECT key_version FROM windows UNION SELECT key_version FROM content_keys"
)

LOG_SIZE = "SELECT COALESCE(MAX(position) + 1, 0) FROM leaves"
ADD_LEAF = "INSERT INTO leaves (position, session_id, sequence, leaf_hash) VALUES (?, ?, ?, ?)"
LEAF_HASHES = "SELECT leaf_hash FROM leaves WHERE position >= ? AND position < ? ORDER BY position"
POSITIONS = "SELECT sequence, position FROM leaves WHERE session_id = ?"
ENTRIES = (
    "SELECT l.position, l.leaf_hash, e.session_id, e.sequence, e.window_id, e.event_type, e.severity, e.timestamp,"
    " e.data_json, e.key_version, e.hmac FROM leaves AS l"
    " LEFT JOIN events AS e ON e.session_id = l.session_id AND e.sequence = l.sequence"
    " WHERE l.position >= ? AND l.position < ? ORDER BY l.position"
)
ADD_NODE = "INSERT INTO merkle_nodes (level, number, hash) VALUES (?, ?, ?)"
NODES = "SELECT hash FROM merkle_nodes WHERE level = ? AND number >= ? AND number < ? ORDER BY number"
UNLOGGED = (
    "SELECT e.session_id, e.sequence, e.window_id, e.event_type, e.severity, e.timestamp, e.data_json, e.key_version,"
    " e.hmac, u.number FROM unlogged AS u JOIN events AS e ON e.session_id = u.session_id AND e.sequence = u.sequence"
    " WHERE u.number > ?"
    " AND NOT EXISTS (SELECT 1 FROM leaves AS l WHERE l.session_id = u.session_id AND l.sequence = u.sequence)"
    " ORDER BY u.number LIMIT ?"
)
ANY_UNLOGGED = "SELECT 1 FROM unlogged WHERE number > ? LIMIT 1"
LEAF_NAMES = "SELECT session_id, sequence FROM leaves WHERE position = ?"
HMAC_AT = "SELECT hmac FROM events WHERE session_id = ? AND sequence = ?"
SESSIONS = (
    "SELECT session_id FROM leaves UNION SELECT session_id FROM events UNION SELECT session_id FROM windows ORDER BY 1"
)
ADD_CHECKPOINT = "INSERT INTO checkpoints (size, note) VALUES (?, ?)"
CHECKPOINT = "SELECT size, note FROM checkpoints ORDER BY number DESC LIMIT 1"
CHECKPOINTS = "SELECT size, note FROM checkpoints ORDER BY number"

ADD_HELD = (
    "INSERT INTO held (window_id, session_id, held_at, expires_at, policy_hash)"
    " SELECT w.window_id, w.session_id, w.timestamp, ?, ? FROM windows AS w WHERE w.window_id = ? AND w.session_id = ?"
)
ADD_HELD_CONTENT = "INSERT INTO held_contents (window_id, session_id, sealed) VALUES (?, ?, ?)"
_HELD = (
    "h.window_id, h.session_id, h.held_at, h.expires_at, h.policy_hash, d.approved, d.reviewer_id, d.approval_id,"
    " d.token, d.decided_at, d.expires_at, o.handed_out_at"
)
HELD_FROM = (
    " FROM held AS h LEFT JOIN decisions AS d ON d.window_id = h.window_id"
    " LEFT JOIN handouts AS o ON o.window_id = h.window_id"
)
HELD = (
    f"SELECT {_HELD}, c.sealed{HELD_FROM} LEFT JOIN held_contents AS c ON c.window_id = h.window_id"
    " WHERE h.window_id = ?"
)
# The same rule as in HeldRow.status.
STATUS = (
    "CASE WHEN o.handed_out_at IS NOT NULL THEN 'RELEASED' WHEN d.approved = 0 THEN 'REJECTED'"
    " WHEN h.expires_at <= ? OR (d.approved = 1 AND d.expires_at <= ?) THEN 'EXPIRED' WHEN d.approved = 1 THEN 'APPROVED'"
    " ELSE 'PENDING' END"
)
HELD_LIST = (
    f"SELECT {_HELD}, NULL{HELD_FROM} WHERE (? = '' OR h.session_id = ?) AND (? = '' OR {STATUS} = ?)"
    " AND (? = '' OR (h.held_at, h.window_id) > (SELECT p.held_at, p.window_id FROM held AS p WHERE p.window_id = ?))"
    " ORDER BY h.held_at, h.window_id LIMIT ?"
)
HELD_PENDING = (  # those that still have their bytes: few, however many there ever were
    f"SELECT count(*){HELD_FROM} JOIN held_contents AS c ON c.window_id = h.window_id WHERE {STATUS} = 'PENDING'"
)
EXPIRED_UNMARKED = (
    f"SELECT {_HELD}, NULL{HELD_FROM} JOIN held_contents AS c ON c.window_id = h.window_id"
    f" WHERE {STATUS} NOT IN ('PENDING', 'APPROVED') ORDER BY h.expires_at, h.window_id LIMIT ?"
)
DECIDED = "SELECT 1 FROM decisions WHERE window_id = ? OR approval_id = ? LIMIT 1"
ADD_DECISION = (
    "INSERT INTO decisions (window_id, approved, reviewer_id, approval_id, token, decided_at, expires_at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)
HANDED_OUT = "SELECT 1 FROM handouts WHERE window_id = ?"
ADD_HANDOUT = "INSERT INTO handouts (window_id, handed_out_at) VALUES (?, ?)"

CURSOR = "SELECT position FROM cursors WHERE sink = ?"
SET_CURSOR = (
    "INSERT INTO cursors (sink, position) VALUES (?, ?) ON CONFLICT (sink) DO UPDATE SET position = excluded.position"
)
ADD_DEAD_LETTER = (
    "INSERT INTO dead_letters (sink, first, last, reason, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (sink, first)"
    " DO UPDATE SET last = excluded.last, reason = excluded.reason, at = excluded.at"
)
DEAD_LETTERS = "SELECT sink, first, last, reason, at FROM dead_letters WHERE sink = ? ORDER BY first"
DROP_DEAD_LETTER = "DELETE FROM dead_letters WHERE sink = ? AND first = ?"

_KEPT = "window_id, session_id, scope, previous_id, sealed, expires_at"
ADD_KEPT = f"INSERT INTO kept ({_KEPT}) VALUES (?, ?, ?, ?, ?, ?)"
KEPT = f"SELECT {_KEPT} FROM kept WHERE window_id = ?"

SET_STUCK = (
    "INSERT INTO stuck (kernel_id, execution, job, stuck_ms, left_json) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (kernel_id, execution) DO UPDATE SET job = excluded.job, left_json = excluded.left_json"
)
DROP_STUCK = "DELETE FROM stuck WHERE kernel_id = ? AND execution = ?"
DROP_ALL_STUCK = "DELETE FROM stuck WHERE kernel_id = ?"
STUCK = (
    "SELECT s.kernel_id, s.execution, s.job, s.stuck_ms, s.left_json,"
    " (SELECT e.data_json FROM events AS e WHERE e.session_id = s.kernel_id ORDER BY e.sequence LIMIT 1)"
    " FROM stuck AS s WHERE (s.stuck_ms, s.kernel_id, s.execution) > (?, ?, ?)"
    " ORDER BY s.stuck_ms, s.kernel_id, s.execution LIMIT ?"
)

# One index look-up per session, whatever its number of events. Sessions only grow in number, so a statement reads a page of
# them and returns for each whether it is due; the caller continues after the last one.
_EACH_SESSION = (
    "WITH RECURSIVE each_session (id) AS (SELECT MIN(session_id) FROM leaves WHERE session_id > ? UNION ALL"
    " SELECT (SELECT MIN(l.session_id) FROM leaves AS l WHERE l.session_id > each_session.id) FROM each_session"
    " WHERE each_session.id IS NOT NULL)"
    " SELECT id, (SELECT e.timestamp FROM events AS e WHERE e.session_id = id ORDER BY e.sequence DESC LIMIT 1) < ?"
    " AND NOT EXISTS (SELECT 1 FROM events AS t WHERE t.session_id = id AND t.event_type = 'TRUNCATED')"
)
_OF_SESSIONS = f" FROM each_session WHERE id IS NOT NULL AND id <> '{LOG_SESSION}' LIMIT ?"
TRUNCATABLE = _EACH_SESSION + _OF_SESSIONS
ERASABLE = (
    f"{_EACH_SESSION} AND NOT EXISTS"
    f" (SELECT 1 FROM events AS t WHERE t.session_id = id AND t.event_type = 'CONTENT_ERASED'){_OF_SESSIONS}"
)

# Every permitted deletion. PostgreSQL runs each as a function of that name.
DROPS = {
    "drop_content": ("DELETE FROM contents WHERE session_id = ? AND window_id = ?",),
    "drop_held": ("DELETE FROM held_contents WHERE window_id = ?",),
    "drop_unlogged": (
        "DELETE FROM unlogged WHERE (session_id, sequence) IN (SELECT l.session_id, l.sequence FROM leaves AS l)",
    ),
    "destroy_key": ("DELETE FROM content_keys WHERE session_id = ?",),
    "drop_contents": ("DELETE FROM contents WHERE session_id = ?",),
    "drop_reports": ("DELETE FROM reports WHERE window_id IN (SELECT window_id FROM windows WHERE session_id = ?)",),
    "drop_all_held": ("DELETE FROM held_contents WHERE session_id = ?",),
    "drop_windows": (
        "DELETE FROM handouts WHERE window_id IN (SELECT window_id FROM held WHERE session_id = ?)",
        "DELETE FROM decisions WHERE window_id IN (SELECT window_id FROM held WHERE session_id = ?)",
        "DELETE FROM held WHERE session_id = ?",
        "DELETE FROM windows WHERE session_id = ?",
    ),
    "drop_events": ("DELETE FROM events WHERE session_id = ? AND sequence <= ?",),
    "drop_kept": ("DELETE FROM kept WHERE window_id = ?",),
    "drop_all_kept": ("DELETE FROM kept WHERE session_id = ?",),
    "drop_expired_kept": ("DELETE FROM kept WHERE expires_at <= ?",),
}


def listed(statement: str, ids: Sequence[str]) -> tuple[str, list[str]]:
    """Return *statement* with places for a list of ids, and the ids: the last one fills up to a power of two.

    So there are few statements, which a database prepares once.
    """
    places = 1 << max(0, len(ids) - 1).bit_length()
    return statement.format(", ".join("?" * places)), [*ids, *[ids[-1]] * (places - len(ids))]
