"""Every single edit, deletion, swap, insertion and duplication in a stored log is found, with its index (A-27).

The log is a real SQLite file of 60 events and 10 windows; the attacker has the file, drops the triggers, holds no key.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock.audit.sealing.verify import examine
from interlock.audit.store.log_sql import SqliteLog, SqliteReader
from interlock.domain.chain.chain import Integrity, Verification
from tests.support.audit.audit import KEYRING, Attacker, Ticking, build, copies, hash_of, session_id, window_id

EVENTS, WINDOWS = 60, 10
OF_SESSION = f"session_id = '{session_id()}'"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log at rest, in one file."""
    path = tmp_path_factory.mktemp("log") / "audit.db"
    log = SqliteLog(path, clock=Ticking())
    build(log, WINDOWS, notes=5)
    log.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    return path


@pytest.fixture
def targets(database: Path, tmp_path: Path) -> Iterator[Path]:
    """Ever new copies of the log."""
    return copies(database, tmp_path)


def verdict(path: Path) -> Verification:
    reader = SqliteReader(path)
    try:
        return examine(reader.chain(session_id()), session_id(), KEYRING)
    finally:
        reader.close()


def first_event(found: Verification) -> int:
    return min((fault.index for fault in found.faults if fault.what == "event"), default=0)


def test_the_untouched_log_is_valid(targets):
    """The baseline: nothing is found where nothing was done, triggers or not."""
    path = next(targets)
    with Attacker(path):
        pass

    found = verdict(path)

    assert (found.integrity, found.events, found.windows) == (Integrity.VALID, EVENTS, WINDOWS)
    assert found.charged_micros == WINDOWS * 150_000


EDITS = {
    "window_id": "window_id = 'crp_win_00000000000000010000000000000063'",
    "no window_id": "window_id = window_id || ' '",
    "event_type": "event_type = event_type || 'X'",
    "severity": "severity = 1 + severity % 5",
    "timestamp": "timestamp = '2020-01-01T00:00:00.000000Z'",
    "data": "data_json = replace(data_json, '1', '2') || ' '",
    "data, same meaning": "data_json = ' ' || data_json",
    "data, other type": "data_json = CAST(data_json AS TEXT) || char(0)",
    "key_version": "key_version = 2",
    "hmac": f"hmac = '{hash_of(1)}'",
    "hmac, one digit": "hmac = substr(hmac, 1, 70) || CASE substr(hmac, 71) WHEN '0' THEN '1' ELSE '0' END",
    "hmac, case": "hmac = upper(hmac)",
    "sequence": "sequence = 1000",
    "session_id": f"session_id = '{session_id(2)}'",
}


@pytest.mark.req("PRV-2", "AUD-2")
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_every_edit_of_an_event_is_found_at_its_sequence(targets, edit):
    """Each column of each event, one at a time."""
    for index in range(1, EVENTS):
        path = next(targets)
        with Attacker(path) as attack:
            attack(f"UPDATE events SET {edit} WHERE {OF_SESSION} AND sequence = ?", index)

        found = verdict(path)

        assert (found.integrity, first_event(found)) == (Integrity.BROKEN, index), index
        path.unlink()


def delete(attack: Attacker, index: int) -> None:
    attack(f"DELETE FROM events WHERE {OF_SESSION} AND sequence = ?", index)


def delete_and_close_up(attack: Attacker, index: int) -> None:
    delete(attack, index)
    for later in range(index + 1, EVENTS + 1):
        attack(f"UPDATE events SET sequence = ? WHERE {OF_SESSION} AND sequence = ?", later - 1, later)


def swap(attack: Attacker, index: int) -> None:
    for old, new in ((index, 999), (index + 1, index), (999, index + 1)):
        attack(f"UPDATE events SET sequence = ? WHERE {OF_SESSION} AND sequence = ?", new, old)


def insert_forged(attack: Attacker, index: int) -> None:
    _make_room(attack, index)
    attack(
        "INSERT INTO events VALUES (?, ?, '', 'DISPATCH_COMPLETED', 2, '2026-05-25T10:00:00Z', '{}', 1, ?)",
        session_id(), index, hash_of(5),
    )  # fmt: skip


def duplicate_in_place(attack: Attacker, index: int) -> None:
    """The event again, right before itself: the first of the two verifies, the second does not."""
    _make_room(attack, index)
    _copy(attack, index + 1, index)


def _make_room(attack: Attacker, index: int) -> None:
    for later in range(EVENTS, index - 1, -1):
        attack(f"UPDATE events SET sequence = ? WHERE {OF_SESSION} AND sequence = ?", later + 1, later)


def _copy(attack: Attacker, source: int, target: int) -> None:
    attack(
        "INSERT INTO events SELECT session_id, ?, window_id, event_type, severity, timestamp, data_json, key_version,"
        f" hmac FROM events WHERE {OF_SESSION} AND sequence = ?",
        target, source,
    )  # fmt: skip


def duplicate_sequence(attack: Attacker, index: int) -> None:
    """The same sequence twice, which takes a table without its key."""
    attack("CREATE TABLE loose AS SELECT * FROM events")
    attack("DROP TABLE events")
    attack("ALTER TABLE loose RENAME TO events")
    _copy(attack, index, index)


MOVES: dict[str, tuple[Callable[[Attacker, int], None], int]] = {
    "delete": (delete, 0),
    "delete and close up": (delete_and_close_up, 0),
    "swap": (swap, 0),
    "insert": (insert_forged, 0),
    "duplicate": (duplicate_in_place, 1),
    "duplicate sequence": (duplicate_sequence, 0),
}


@pytest.mark.req("PRV-2", "AUD-2")
@pytest.mark.parametrize(("move", "offset"), MOVES.values(), ids=MOVES)
def test_every_move_of_an_event_is_found_at_its_sequence(targets, move, offset):
    """Deletion, swap, insertion and duplication at each place but the last."""
    for index in range(1, EVENTS):
        path = next(targets)
        with Attacker(path) as attack:
            move(attack, index)

        found = verdict(path)

        assert (found.integrity, first_event(found)) == (Integrity.BROKEN, index + offset), index
        path.unlink()


@pytest.mark.req("PRV-2", "AUD-2")
def test_a_cut_tail_of_events_is_found_by_the_windows(targets):
    """However many events are cut off the end, the first window whose seal is gone is named."""
    for keep in range(EVENTS):
        path = next(targets)
        with Attacker(path) as attack:
            attack(f"DELETE FROM events WHERE {OF_SESSION} AND sequence > ?", keep)

        found = verdict(path)

        missing = [fault.index for fault in found.faults if fault.reason == "MISSING_SEAL"]
        assert missing == list(range(keep // 6 + 1, WINDOWS + 1)), keep
        path.unlink()


WINDOW_EDITS = {
    "window_number": "window_number = 77",
    "window_id": "window_id = 'crp_win_00000000000000010000000000000063'",
    "parent_ids": f"parent_ids = '{json.dumps([window_id(55)])}'",
    "parent_ids, no JSON": "parent_ids = 'x'",
    "response_hash": f"response_hash = '{hash_of(98)}'",
    "report_hash": f"report_hash = '{hash_of(98)}'",
    "risk_level": "risk_level = 1",
    "charge lowered": "charge_micros = 0",
    "charge raised": "charge_micros = 500000",
    "status": "status = 'HALTED'",
    "settle_json": "settle_json = '{}'",
    "trail_id": "trail_id = 'crp_trail_00000000000000000000000000000000'",
    "request_hash": f"request_hash = '{hash_of(98)}'",
    "timestamp": "timestamp = '2020-01-01T00:00:00.000000Z'",
    "key_version": "key_version = 2",
    "hmac": f"hmac = '{hash_of(98)}'",
    "session_id": f"session_id = '{session_id(2)}'",
}


@pytest.mark.req("PRV-2", "AUD-2")
@pytest.mark.parametrize("edit", WINDOW_EDITS.values(), ids=WINDOW_EDITS)
def test_every_edit_of_a_window_is_found_and_refills_nothing(targets, edit):
    """Each column of each window, one at a time; the sum of the charges never falls."""
    for number in range(1, WINDOWS + 1):
        path = next(targets)
        with Attacker(path) as attack:
            attack("PRAGMA defer_foreign_keys = ON")
            attack(f"UPDATE windows SET {edit} WHERE window_id = ?", window_id(number))

        found = verdict(path)

        assert {number, 77} & {fault.index for fault in found.faults if fault.what == "window"}, number
        assert found.integrity in {Integrity.BROKEN, Integrity.PARTIAL}
        assert found.charged_micros >= WINDOWS * 150_000
        path.unlink()


@pytest.mark.req("PRV-2")
def test_every_deleted_window_is_found_and_keeps_its_charge(targets):
    """A deleted row is named by the event that sealed it: PARTIAL, and still charged."""
    for number in range(1, WINDOWS + 1):
        path = next(targets)
        with Attacker(path) as attack:
            attack("DELETE FROM windows WHERE window_id = ?", window_id(number))

        found = verdict(path)

        assert [(f.index, f.reason) for f in found.faults] == [(number, "MISSING_WINDOW")]
        assert (found.integrity, found.charged_micros) == (Integrity.PARTIAL, WINDOWS * 150_000)
        path.unlink()


@pytest.mark.req("PRV-2", "DPE-20")
@pytest.mark.parametrize(
    ("change", "reason", "integrity"),
    [
        (
            "UPDATE reports SET body = CAST(body || ' ' AS BLOB) WHERE window_id = ?",
            "REPORT_HASH_MISMATCH",
            Integrity.BROKEN,
        ),
        ("UPDATE reports SET body = x'' WHERE window_id = ?", "REPORT_HASH_MISMATCH", Integrity.BROKEN),
        ("DELETE FROM reports WHERE window_id = ?", "MISSING_REPORT", Integrity.PARTIAL),
    ],
)
def test_every_changed_report_is_found(targets, change, reason, integrity):
    """The stored bytes are hashed again, not believed."""
    for number in range(1, WINDOWS + 1):
        path = next(targets)
        with Attacker(path) as attack:
            attack(change, window_id(number))

        found = verdict(path)

        assert [(f.index, f.reason) for f in found.faults] == [(number, reason)]
        assert found.integrity is integrity
        path.unlink()


def test_swapped_reports_are_found(tmp_path):
    """Two reports of one session exchanged, each whole in itself: both windows are named."""
    path = tmp_path / "audit.db"
    log = SqliteLog(path)
    build(log, 3, claims=1)
    log.close()
    with Attacker(path) as attack:
        bodies = dict(attack.connection.execute("SELECT window_id, body FROM reports").fetchall())
        for number, other in ((1, 2), (2, 1)):
            attack("UPDATE reports SET body = ? WHERE window_id = ?", bodies[window_id(other)], window_id(number))

    assert [(f.index, f.reason) for f in verdict(path).faults] == [
        (1, "REPORT_HASH_MISMATCH"),
        (2, "REPORT_HASH_MISMATCH"),
    ]


@pytest.mark.req("PRV-2", "AUD-2")
def test_a_report_of_another_type_is_changed_not_missing(targets):
    """Text where bytes were sealed is BROKEN, not PARTIAL."""
    path = next(targets)
    with Attacker(path) as attack:
        attack("CREATE TABLE loose AS SELECT * FROM reports")
        attack("DROP TABLE reports")
        attack("ALTER TABLE loose RENAME TO reports")
        attack("UPDATE reports SET body = CAST(body AS TEXT) WHERE window_id = ?", window_id(4))

    found = verdict(path)

    assert ([(f.index, f.reason) for f in found.faults], found.integrity) == (
        [(4, "REPORT_HASH_MISMATCH")],
        Integrity.BROKEN,
    )


def test_bytes_that_are_no_text_are_a_fault_not_a_crash(targets):
    """An attacker may store what no text can be; it does not verify, and the check goes on."""
    path = next(targets)
    with Attacker(path) as attack:
        attack("UPDATE events SET data_json = CAST(x'ff00fe' AS TEXT) WHERE sequence = 7")
        attack("UPDATE events SET event_type = CAST(x'ff' AS TEXT) WHERE sequence = 9")
        attack("UPDATE windows SET hmac = CAST(x'ff' AS TEXT) WHERE window_number = 10")

    found = verdict(path)

    assert {7, 9} <= {fault.index for fault in found.faults if fault.what == "event"}
    assert found.integrity is Integrity.BROKEN


def test_values_of_another_type_are_a_fault_not_a_crash(targets):
    """Tables made anew without types can hold anything."""
    path = next(targets)
    with Attacker(path) as attack:
        attack("CREATE TABLE loose AS SELECT * FROM events")
        attack("DROP TABLE events")
        attack("ALTER TABLE loose RENAME TO events")
        attack("UPDATE events SET window_id = NULL, severity = 'x', data_json = x'00' WHERE sequence = 5")
        attack("UPDATE events SET key_version = 1.5 WHERE sequence = 8")

    found = verdict(path)

    assert {5, 8} <= {fault.index for fault in found.faults if fault.what == "event"}
