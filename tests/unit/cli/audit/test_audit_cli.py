"""``interlock audit verify`` and ``export``, on the file of the settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from interlock.audit.store.log_sql import SqliteLog
from interlock.cli.audit.commands import app
from tests.support.audit.audit import MASTER, Attacker, build, session_id

Run = Callable[..., Result]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A log with three windows in session 1 and one in session 2, at rest."""
    path = tmp_path / "audit.db"
    log = SqliteLog(path)
    build(log, 3)
    build(log, 1, session=2)
    log.close()
    return path


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Call the command with the settings of this folder; keyword arguments are further variables."""

    def call(*arguments: str, **variables: str) -> Result:
        environment = {"INTERLOCK_STATE_DIR": str(tmp_path), "INTERLOCK_MASTER_KEY": MASTER.hex(), **variables}
        return CliRunner().invoke(app, list(arguments), env=environment)

    return call


@pytest.mark.req("PRV-2")
@pytest.mark.usefixtures("database")
def test_verify_of_a_sound_session_says_valid(run):
    """Exit 0, with counts and the sum of the charges."""
    result = run("verify", session_id())

    assert result.exit_code == 0
    assert result.output.startswith(f"VALID  {session_id()}\n  3 windows, 9 events, 0.450000 charged\n")


@pytest.mark.usefixtures("database")
def test_verify_of_one_window_is_unverified_and_no_failure(run):
    """There is nothing to chain from yet."""
    result = run("verify", session_id(2), "-o", "json")

    assert (result.exit_code, json.loads(result.output)["integrity"]) == (0, "UNVERIFIED")
    assert "Nothing is wrong: every record verifies." in run("verify", session_id(2)).output


def test_verify_as_json_is_one_document(run, database):
    """For automation: every field, faults too."""
    with Attacker(database) as attack:
        attack("UPDATE events SET data_json = '{}' WHERE session_id = ? AND sequence = 4", session_id())

    result = run("verify", session_id(), "-o", "json")
    found = json.loads(result.output)

    assert result.exit_code == 1
    assert found.pop("chain_tip").startswith("sha256:")
    assert found == {
        "session_id": session_id(),
        "integrity": "BROKEN",
        "events": 9,
        "windows": 3,
        "charged_micros": 450_000,
        "marks": [],
        "faults": [{"what": "event", "index": 4, "reason": "HMAC_MISMATCH"}],
    }


def test_verify_of_a_session_with_a_missing_window_exits_1(run, database):
    """PARTIAL is no success."""
    with Attacker(database) as attack:
        attack("DELETE FROM windows WHERE window_number = 2")

    result = run("verify", session_id())

    assert result.exit_code == 1
    assert result.output.startswith("PARTIAL")
    assert "window 2: MISSING_WINDOW" in result.output


@pytest.mark.usefixtures("database")
def test_verify_with_another_key_asks_whether_it_is_the_right_one(run):
    """The commonest cause of a chain that fails from end to end."""
    result = run("verify", session_id(), INTERLOCK_MASTER_KEY=hashlib.sha256(b"another").hexdigest())

    assert result.exit_code == 1
    assert "is this the master key" in result.output


@pytest.mark.parametrize("command", ["verify", "export"])
@pytest.mark.parametrize(
    ("session", "reason"),
    [(session_id(9), "SESSION_NOT_FOUND"), ("crp_sess_x", "INVALID_ID"), ("'; --", "INVALID_ID")],
)
@pytest.mark.usefixtures("database")
def test_a_session_that_is_not_there_exits_2(run, command, session, reason):
    """One line, no traceback."""
    result = run(command, session)

    assert result.exit_code == 2
    assert f"error: {reason}: " in result.stderr


def test_no_database_exits_2_with_a_hint(run, tmp_path):
    """And makes none."""
    result = run("verify", session_id(), "-o", "json")

    assert result.exit_code == 2
    assert json.loads(result.output)["error"]["reason"] == "AUDIT_LOG_NOT_FOUND"
    assert list(tmp_path.iterdir()) == []


def test_no_master_key_exits_2_and_makes_none(run, database):
    """A fresh key could have sealed nothing."""
    result = run("verify", session_id(), INTERLOCK_MASTER_KEY="")

    assert result.exit_code == 2
    assert not (database.parent / "master.key").exists()


def test_a_damaged_database_exits_2(run, database):
    """It cannot be told, which is neither VALID nor BROKEN."""
    database.write_bytes(b"x" * 8192)

    result = run("verify", session_id())

    assert result.exit_code == 2
    assert "AUDIT_STORE_CORRUPT" in result.stderr
    assert "keep" in result.stderr


@pytest.mark.req("AUD-4")
@pytest.mark.usefixtures("database")
def test_export_is_ndjson_with_the_fields_of_the_specification(run):
    """SPEC-011 §4.1, with severity and sequence."""
    result = run("export", session_id())

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert [line["sequence"] for line in lines] == list(range(1, 10))
    assert list(lines[0]) == [
        "event_type", "timestamp", "session_id", "window_id", "severity", "sequence", "data", "hmac",
    ]  # fmt: skip
    assert lines[0]["severity"] == "INFO"
    assert lines[0]["data"] == {"latency_ms": "x", "n": 0, "response_hash": "x", "window": 1}
    assert [line["event_type"] for line in lines].count("WINDOW_SEALED") == 3


@pytest.mark.req("AUD-4")
@pytest.mark.usefixtures("database")
def test_export_to_a_file_writes_the_same(run, tmp_path):
    """Byte for byte what standard output would have got, and nothing else is said."""
    result = run("export", session_id(), "--output", str(tmp_path / "trail.ndjson"))

    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "trail.ndjson").read_text() == run("export", session_id()).stdout


@pytest.mark.usefixtures("database")
def test_export_to_a_file_that_cannot_be_written_exits_2(run, tmp_path):
    """Named, without a traceback."""
    result = run("export", session_id(), "--output", str(tmp_path / "no" / "trail.ndjson"))

    assert result.exit_code == 2
    assert "FILE_NOT_WRITTEN" in result.stderr


def test_export_leaves_nothing_out_of_a_tampered_log(run, database):
    """Data that is no JSON any more comes as text, control characters escaped."""
    with Attacker(database) as attack:
        attack("UPDATE events SET data_json = '\x1b[2J' || char(10) || 'gone', severity = 5 WHERE sequence = 2")
        attack("UPDATE events SET event_type = CAST(x'ff' AS TEXT) WHERE sequence = 3")

    result = run("export", session_id())
    lines = result.stdout.splitlines()

    assert (result.exit_code, len(lines)) == (0, 9)
    assert "\x1b" not in result.stdout
    assert json.loads(lines[1])["data"] == "\x1b[2J\ngone"
    assert json.loads(lines[2])["event_type"] == "\udcff"


@pytest.mark.usefixtures("database")
def test_a_session_key_is_never_printed(run):
    """Neither the master key nor the session's (SPEC-011 §6)."""
    from interlock.runtime.keys.derivation import HMAC, Keyring

    key = Keyring({1: MASTER}).derive(1, session_id(), HMAC)
    assert key is not None
    said = run("verify", session_id(), "-o", "json").output + run("export", session_id()).output

    assert key.hex() not in said
    assert MASTER.hex() not in said


def test_verify_works_beside_a_running_writer(run, database):
    """What is committed and not yet in the main file is seen, while another connection writes."""
    log = SqliteLog(database)
    log.commit([lambda writing: writing.touch()])
    build(log, 2, session=3)

    beside = run("verify", session_id(3), "-o", "json")
    log.close()
    alone = run("verify", session_id(3), "-o", "json")

    assert beside.exit_code == 0
    assert json.loads(beside.output) == json.loads(alone.output)
