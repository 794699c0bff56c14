"""The audit log as versions before the Merkle log wrote it: what is left of their code, to read and write with today.

The statements are those of schemas 1 to 3, column by column; nothing here follows when ``interlock.audit`` changes.
"""

from __future__ import annotations

import importlib.resources
import json
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from interlock.audit import requests
from interlock.audit.requests import Note
from interlock.audit.sealing.seal import Sealer
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import WINDOW_SEALED, EventRecord, chained, seal_data
from interlock.runtime.keys.derivation import HMAC, Keyring
from tests.support.audit.audit import KEYRING, Ticking, event, window

_EVENT = "session_id, sequence, window_id, event_type, severity, timestamp, data_json, key_version, hmac"
_WINDOW = (
    "session_id, window_id, window_number, parent_ids, response_hash, report_hash, risk_level, charge_micros, status,"
    " settle_json, trail_id, request_hash, timestamp, key_version, hmac"
)


class OldLog:
    """A writer of that time. On a new file it makes the schema of its own version; a newer one it leaves as it is."""

    def __init__(self, path: Path, *, schema: int = 3, keyring: Keyring = KEYRING) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._schema, self._keyring = schema, keyring
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._sealer = Sealer(keyring, Ticking(), os.urandom)
        if not self._connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
            self._make()

    def __enter__(self) -> OldLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, of: TracebackType | None) -> None:
        self._connection.close()

    def record(self, session: str, *notes: Note, window_id: str = "") -> None:
        """Append events."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._record(session, window_id, notes)
        self._connection.execute("COMMIT")

    def seal(self, number: int, parent: str = "", *, session: int = 1) -> str:
        """Seal a window whose report is stored as it is, and return its HMAC."""
        draft = requests.draft(window(number, parent, session=session))
        made = self._sealer._window(draft)
        sealing = Note(WINDOW_SEALED, 2, canonical_json(seal_data(made)), made.timestamp)
        row = (
            made.session_id, made.window_id, made.window_number, json.dumps(made.parent_ids), made.response_hash,
            made.report_hash, made.risk_level, made.charge_micros, made.status, made.settle_json, made.trail_id,
            made.request_hash, made.timestamp, made.key_version, made.hmac,
        )  # fmt: skip
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute(f"INSERT INTO windows ({_WINDOW}) VALUES ({', '.join('?' * len(row))})", row)
        self._connection.execute(
            "INSERT INTO reports (window_id, body) VALUES (?, ?)", (made.window_id, draft.report_json)
        )
        self._record(made.session_id, made.window_id, (*draft.notes, sealing))
        self._connection.execute("COMMIT")
        return made.hmac

    def _record(self, session: str, window_id: str, notes: Sequence[Note]) -> None:
        head = self._connection.execute(
            "SELECT sequence, hmac FROM events WHERE session_id = ? ORDER BY sequence DESC LIMIT 1", (session,)
        ).fetchone()
        sequence, previous = head or (0, "")
        key = self._keyring.derive(1, session, HMAC)
        events = [
            EventRecord(session, n, window_id, note.event_type, note.severity, note.timestamp or "2026-05-25T10:00:00.000000Z",
                        note.data_json, 1, "")
            for n, note in enumerate(notes, sequence + 1)
        ]  # fmt: skip
        self._connection.executemany(
            f"INSERT INTO events ({_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (e.session_id, e.sequence, e.window_id, e.event_type, e.severity, e.timestamp, e.data_json, 1, e.hmac)
                for e in chained(key, events, previous)
            ],
        )

    def _make(self) -> None:
        self._connection.execute(
            "CREATE TABLE schema_migrations"
            " (version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)"
        )
        folder = importlib.resources.files("interlock.audit") / "sql" / "sqlite"
        for file in sorted(folder.iterdir(), key=lambda file: file.name)[: self._schema]:
            self._connection.executescript(file.read_text(encoding="utf-8"))
            version = int(file.name.split("_", 1)[0])
            self._connection.execute("INSERT INTO schema_migrations VALUES (?, ?, '')", (version, file.name))


def a_note(event_type: str = "DPE_COMPLETED", data: str = "{}") -> Note:
    """Return an event to record."""
    [made] = requests.notes([event(event_type, data)])
    return made
