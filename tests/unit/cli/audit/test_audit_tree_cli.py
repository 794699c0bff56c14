"""``interlock audit verify --tree``: the picture, the document, the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_asyncio
from typer.testing import CliRunner, Result

from interlock.audit.store.log_sql import SqliteLog
from interlock.cli.audit.commands import app
from tests.support.audit.audit import MASTER, Attacker, serving, session_id, window_id
from tests.support.audit.trails import HELPER, LEGAL, ROOT, TAX, grow

Run = Callable[..., Result]


@pytest_asyncio.fixture
async def database(tmp_path: Path) -> Path:
    """A log with a whole tree, at rest."""
    log = SqliteLog(tmp_path / "audit.db")
    log.commit([])
    async with serving(log) as service:
        await grow(service)
    return tmp_path / "audit.db"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Call the command with the settings of this folder."""
    environment = {"INTERLOCK_STATE_DIR": str(tmp_path), "INTERLOCK_MASTER_KEY": MASTER.hex()}
    return lambda *arguments: CliRunner().invoke(app, ["verify", *arguments], env=environment)


@pytest.mark.req("PRV-4")
@pytest.mark.usefixtures("database")
def test_a_sound_tree_is_drawn_with_every_session_below_its_parent(run):
    """Verdict and sums first, then the tree, then that all holds. Exit 0."""
    result = run("--tree", session_id(ROOT))
    lines = result.output.splitlines()
    places = {
        n: next(line for line in lines if session_id(n) in line and "depth" in line).index(session_id(n))
        for n in range(1, 5)
    }

    assert result.exit_code == 0
    assert lines[:2] == [f"VALID  tree of {session_id(ROOT)}", "  4 sessions, 6 links, 1.50 charged"]
    assert places[ROOT] < places[LEGAL] == places[TAX] < places[HELPER]
    assert result.output.count("✓ consumed") == 3
    assert lines[-1] == "every chain and every link holds"


@pytest.mark.req("PRV-4")
def test_a_broken_tree_names_the_first_break(run, database):
    """In the tree at its place, and in words below it. Exit 1."""
    with Attacker(database) as attack:
        attack("UPDATE events SET data_json = '\x1b[2J' WHERE session_id = ? AND sequence = 3", session_id(HELPER))

    result = run(session_id(ROOT), "--tree")

    assert result.exit_code == 1
    assert result.output.startswith("BROKEN")
    assert "event 3: HMAC_MISMATCH" in result.output
    assert f"✗ CHILD_BROKEN consumed {session_id(HELPER)} in {window_id(2, LEGAL)}" in result.output
    assert f"first break: DELEGATED of {session_id(HELPER)} by {session_id(LEGAL)}: CHILD_BROKEN" in result.output
    assert "\x1b" not in result.output


@pytest.mark.req("PRV-4")
def test_a_tree_as_json_is_one_document(run, database):
    """Every session, every link, every fault with what it means."""
    with Attacker(database) as attack:
        attack("DELETE FROM windows WHERE window_id = ?", window_id(1, TAX))

    result = run(session_id(ROOT), "--tree", "-o", "json")
    found = json.loads(result.output)
    wrong = [link for link in found["links"] if link["fault"]]

    assert (result.exit_code, found["integrity"], found["charged_micros"]) == (1, "PARTIAL", 1_500_000)
    assert [session["session_id"] for session in found["sessions"]] == [
        session_id(n) for n in (ROOT, LEGAL, HELPER, TAX)
    ]
    assert [(link["kind"], link["fault"]) for link in wrong] == [
        ("DELEGATED", "CHILD_INCOMPLETE"),
        ("SUB_AGENT_RESULT", "CHILD_INCOMPLETE"),
    ]
    assert wrong[0]["meaning"] == "windows or reports of the child are gone"
    assert found["sessions"][3]["chain"]["faults"] == [
        {"what": "window", "index": 1, "reason": "MISSING_WINDOW", "window_id": window_id(1, TAX)}
    ]


@pytest.mark.usefixtures("database")
def test_a_child_is_no_root(run):
    """Exit 2, and the root is named."""
    result = run(session_id(HELPER), "--tree")

    assert result.exit_code == 2
    assert "NOT_A_ROOT" in result.stderr
    assert session_id(ROOT) in result.stderr


@pytest.mark.parametrize("session", [session_id(70), "crp_sess_x"])
@pytest.mark.usefixtures("database")
def test_a_tree_that_is_not_there_exits_2(run, session):
    """Neither valid nor broken."""
    assert run(session, "--tree").exit_code == 2


def test_a_session_that_nobody_recorded_is_hung_below_the_root(run, database):
    """Its parent's trail was cut off before it was started; it is shown all the same, with what is wrong."""
    with Attacker(database) as attack:
        attack(
            "DELETE FROM reports WHERE window_id IN (SELECT window_id FROM windows WHERE session_id = ?)",
            session_id(LEGAL),
        )
        for table in ("windows", "events"):
            attack(f"DELETE FROM {table} WHERE session_id = ?", session_id(LEGAL))

    result = run(session_id(ROOT), "--tree")

    assert result.exit_code == 1
    assert f"✗ CHILD_MISSING delegated to {session_id(LEGAL)}" in result.output
    assert f"✗ NOT_RECORDED delegated to {session_id(HELPER)}" in result.output
    assert f"{session_id(HELPER)}  (unregistered), depth 2" in result.output


@pytest.mark.req("PRV-4")
def test_a_file_of_an_older_schema_is_walked_as_it_is(run, database):
    """The command changes nothing, so the index of the third schema may not be there."""
    with Attacker(database) as attack:
        attack("DROP INDEX events_session_created")
        attack("DELETE FROM schema_migrations WHERE version > 2")

    assert run(session_id(ROOT), "--tree").exit_code == 0
