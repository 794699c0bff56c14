"""Attacks on the bytes of a log, the same on SQLite and on PostgreSQL, and what each verifier finds of them."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from psycopg.sql import SQL, Identifier

from interlock.audit.merkle.bundles import LocalSource, export
from interlock.audit.merkle.examination import examine_bundle, examine_log
from interlock.audit.sealing.verify import examine, key_of
from interlock.audit.store.opening import open_reader
from interlock.cli.audit.offline import own_verifier, with_log
from interlock.domain.chain.chain import EventRecord
from interlock.domain.merkle.bundle import Examined
from interlock.domain.merkle.entry import encode_entry
from interlock.domain.merkle.tree import leaf_hash
from interlock.runtime.keys.derivation import load_keyring
from interlock.runtime.settings.model import Settings
from tests.support.audit.audit import session_id, window_id
from tests.support.audit.auditors import SEALED, Audited, audited, settings_of
from tests.support.servers.postgres import Postgres

WINDOWS, SESSIONS, PER_CHECKPOINT, KEPT = 12, 3, 4, 8
"""Twelve windows in three sessions, signed and published after every fourth; a backup was taken after the eighth."""
SIZE = WINDOWS * SEALED
AT = SEALED * SESSIONS + 1
"""Position of the second event of the second window of session 1: its event 5."""
LAST = SIZE - SESSIONS * SEALED
"""Position of the first event of session 1's last window."""

Run = Callable[..., Any]
FORGED = EventRecord(
    session_id(1), WINDOWS // SESSIONS * SEALED + 1, "", "OVERSIGHT_APPROVED", 2, "2026-05-25T10:00:00.000000Z", "{}", 1,
    "sha256:" + "0" * 64,
)  # fmt: skip
_EVENT = "INSERT INTO events (session_id, sequence, window_id, event_type, severity, timestamp, data_json, key_version, hmac) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_LEAF = "INSERT INTO leaves (position, session_id, sequence, leaf_hash) VALUES (?, ?, ?, ?)"
_MINE = "session_id = ? AND sequence = ?"


def _row(event: EventRecord) -> tuple[Any, ...]:
    return (
        event.session_id, event.sequence, event.window_id, event.event_type, event.severity, event.timestamp,
        event.data_json, event.key_version, event.hmac,
    )  # fmt: skip


def _swap(run: Run) -> None:
    run(f"UPDATE events SET sequence = 1000 WHERE {_MINE}", session_id(1), 4)
    run(f"UPDATE events SET sequence = 4 WHERE {_MINE}", session_id(1), 5)
    run(f"UPDATE events SET sequence = 5 WHERE {_MINE}", session_id(1), 1000)


def _insert(run: Run) -> None:
    run(_EVENT, *_row(FORGED))


def _insert_with_leaf(run: Run) -> None:
    run(_EVENT, *_row(FORGED))
    run(_LEAF, SIZE, FORGED.session_id, FORGED.sequence, leaf_hash(encode_entry(FORGED)))


def _duplicate(run: Run) -> None:
    run(
        "INSERT INTO events (session_id, sequence, window_id, event_type, severity, timestamp, data_json, key_version, hmac)"
        " SELECT session_id, ?, window_id, event_type, severity, timestamp, data_json, key_version, hmac FROM events"
        f" WHERE {_MINE}", FORGED.sequence, session_id(1), 5,
    )  # fmt: skip


def _delete(run: Run) -> None:
    run(f"DELETE FROM events WHERE {_MINE}", session_id(1), 5)


def _cut(run: Run, *, size: int = LAST) -> None:
    lost = "SELECT window_id FROM windows WHERE window_number = ?"
    run(f"DELETE FROM reports WHERE window_id IN ({lost})", WINDOWS // SESSIONS)
    run("DELETE FROM windows WHERE window_number = ?", WINDOWS // SESSIONS)
    run("DELETE FROM events WHERE sequence > ?", (WINDOWS // SESSIONS - 1) * SEALED)
    run("DELETE FROM leaves WHERE position >= ?", size)


def _cut_and_hidden(run: Run) -> None:
    _cut(run)
    _hide(run)


def _hide(run: Run) -> None:
    run("DELETE FROM checkpoints WHERE size > ?", LAST)


def _window_deleted(run: Run) -> None:
    run("DELETE FROM reports WHERE window_id = ?", window_id(WINDOWS // SESSIONS, 1))
    run("DELETE FROM windows WHERE window_id = ?", window_id(WINDOWS // SESSIONS, 1))


ATTACKS: Mapping[str, Callable[[Run], Any] | None] = {
    "event edited": lambda run: run(f"UPDATE events SET data_json = '{{}}' WHERE {_MINE}", session_id(1), 5),
    "event and its leaf edited": lambda run: (
        run(f"UPDATE events SET data_json = '{{}}' WHERE {_MINE}", session_id(1), 5),
        run("UPDATE leaves SET leaf_hash = ? WHERE position = ?", bytes(32), AT),
    ),
    "two events swapped": _swap,
    "event inserted": _insert,
    "event inserted with its leaf": _insert_with_leaf,
    "event duplicated": _duplicate,
    "event deleted": _delete,
    "window row edited": lambda run: run("UPDATE windows SET charge_micros = 0 WHERE window_id = ?", window_id(2, 1)),
    "last window row deleted": _window_deleted,
    "tail cut": _cut,
    "tail cut, checkpoint hidden": _cut_and_hidden,
    "checkpoint hidden": _hide,
    "state folder set back": None,
}


@dataclass(frozen=True)
class Log:
    """A log at rest, whole and as it was at the backup; ``copy`` returns settings of a copy to tamper with, and who does it."""

    settings: Settings
    copy: Callable[[Path, bool], tuple[Settings, Run]]


async def build(settings: Settings, backup: Callable[[], None]) -> None:
    """Run a real service over the log; call *backup* after the eighth window."""
    async with audited(settings) as audit:
        await _windows(audit, 0, KEPT)
    backup()
    async with audited(settings) as audit:
        audit._tips = _tips(settings)
        await _windows(audit, KEPT, WINDOWS)


async def _windows(audit: Audited, first: int, end: int) -> None:
    for number in range(first, end):
        await audit.seal(session=1 + number % SESSIONS)
        if number % PER_CHECKPOINT == PER_CHECKPOINT - 1:
            await audit.notary.round()


def _tips(settings: Settings) -> dict[int, list[str]]:
    with closing(open_reader(settings)) as log:
        chains = {number: log.chain(session_id(number)).windows for number in range(1, SESSIONS + 1)}
    return {number: ["", *(window.hmac for window in windows)] for number, windows in chains.items()}


def sqlite_log(folder: Path) -> Log:
    """Return a log on SQLite."""
    settings, backup = settings_of(folder), folder / "backup"
    asyncio.run(build(settings, lambda: _copied(settings.state_dir, backup)))

    def copy(out: Path, back: bool) -> tuple[Settings, Run]:
        state = out / "state"
        _copied(backup if back else settings.state_dir, state)
        return settings.model_copy(update={"state_dir": state}), partial(_sqlite, state / "audit.db")

    return Log(settings, copy)


def _copied(state: Path, to: Path) -> None:
    shutil.copytree(state, to, ignore=shutil.ignore_patterns("run"))


def _sqlite(database: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(database)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement, values)
        connection.commit()


def postgres_log(folder: Path, server: Postgres) -> Log:
    """Return a log on PostgreSQL; the attacker is the server's superuser."""
    name = server.database()
    settings = settings_of(folder, audit_url=server.url(name, "postgres"))
    kept: list[str] = []
    asyncio.run(build(settings, lambda: kept.append(_cloned(server, name))))

    def copy(out: Path, back: bool) -> tuple[Settings, Run]:
        state = out / "state"
        _copied(settings.state_dir, state)
        made = _cloned(server, kept[0] if back else name)
        url = server.url(made, "postgres")
        return settings.model_copy(update={"state_dir": state, "audit_url": url}), partial(_postgres, server, made)

    return Log(settings, copy)


def _cloned(server: Postgres, name: str) -> str:
    made = f"{name}_{len(name)}_{next(_NUMBERS)}"
    with server.admin() as admin:
        admin.execute(SQL("CREATE DATABASE {} TEMPLATE {}").format(Identifier(made), Identifier(name)))
    return made


_NUMBERS = iter(range(1_000_000))


def _postgres(server: Postgres, name: str, statement: str, *values: Any) -> None:
    with server.admin(name) as connection:
        connection.execute("SET search_path = interlock_audit")
        connection.execute("SET session_replication_role = replica")
        connection.execute(statement.replace("?", "%s").encode(), values)


VERIFIERS = ("verify", "fsck", "fsck, no master key", "offline")
NOT_FOUND = "—"


def findings(settings: Settings, folder: Path, *, anchored: bool) -> dict[str, str]:
    """Return what each verifier finds first, and where."""
    settings = settings if anchored else settings.model_copy(update={"audit_anchor": None})
    keyring = load_keyring(settings)
    asyncio.run(_bundle(settings, folder / "bundle"))
    key = own_verifier(settings)
    with closing(open_reader(settings)) as log:
        mine = with_log(examine(log.chain(session_id(1)), session_id(1), keyring), log, session_id(1), settings)
        whole = examine_log(log, key, settings.audit_anchor, key_of=partial(key_of, keyring))
        keyless = examine_log(log, key, settings.audit_anchor)
    offline = examine_bundle(folder / "bundle", key, settings.audit_anchor)
    first = mine.faults[0] if mine.faults else None
    return {
        "verify": f"{first.what} {first.index} {first.reason}" if first else NOT_FOUND,
        "fsck": _first(whole), "fsck, no master key": _first(keyless), "offline": _first(offline),
    }  # fmt: skip


async def _bundle(settings: Settings, out: Path) -> None:
    with closing(open_reader(settings)) as log:
        await export(LocalSource(log, str(own_verifier(settings))), out, reports=False)


def _first(found: Examined) -> str:
    one = found.findings[0] if found.findings else None
    return f"{one.what} {one.index} {one.reason}" if one else NOT_FOUND
