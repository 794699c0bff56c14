"""The audit log on a real PostgreSQL: append-only by role and by trigger, and what becomes of it when the server fails."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier, Literal
from typer.testing import CliRunner

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.store.database_postgres import connect, migrate
from interlock.audit.store.log import StoreFailed
from interlock.audit.store.log_postgres import PostgresLog
from interlock.audit.store.opening import open_log
from interlock.audit.wiring import open_service
from interlock.cli.audit.commands import app
from interlock.domain.errors import Refused
from interlock.runtime.clock import system_clock
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.values import without_password
from tests.support.audit.audit import MASTER, build, event, serving, session_id, verify_message, window, window_id
from tests.support.audit.records import a_window, adding, an_event
from tests.support.servers.postgres import OWNER, PASSWORD, SERVICE, Postgres

TABLES = (
    "events", "windows", "reports", "content_keys", "contents", "leaves", "unlogged", "merkle_nodes", "checkpoints",
    "held", "held_contents", "decisions", "handouts",
)  # fmt: skip
COLUMN = {"leaves": "leaf_hash", "merkle_nodes": "hash", "checkpoints": "note", "unlogged": "sequence"}
UNAVAILABLE = "AUDIT_STORE_UNAVAILABLE"
LIMIT_S = 1.0


@pytest.fixture
def database(postgres: Postgres) -> str:
    """A database whose tables belong to the owner, prepared for the service's role as an operator does it."""
    name = postgres.database()
    done = CliRunner().invoke(
        app,
        ["migrate", "--owner-url", postgres.url(name, OWNER)],
        env={"INTERLOCK_AUDIT_URL": postgres.url(name, SERVICE)},
    )
    assert done.stdout.endswith(f" migrations applied; {SERVICE} may add and read\n"), done.output
    return name


@pytest.fixture
def log(postgres: Postgres, database: str) -> Iterator[PostgresLog]:
    """The log as the service opens it: as a role that owns nothing. Every table holds a row."""
    made = PostgresLog(postgres.url(database, SERVICE), write_limit_s=LIMIT_S, read_limit_s=LIMIT_S)
    build(made, 1)
    made.commit([fill])
    yield made
    made.close()


def fill(writing) -> None:
    session, window = session_id(2), window_id(1, 2)
    adding(an_event(1, 2), a_window(1, 2))(writing)
    writing.add_content_key(session, 1, b"key")
    writing.add_content(session, window, b"content")
    writing.add_held(window, session, b"held", expires_at="z", policy_hash="p")
    writing.add_decision(
        window, approved=True, reviewer_id="r", approval_id="a", token="t", decided_at="", expires_at="z"
    )
    writing.add_handout(window, "now")
    writing.add_checkpoint(1, "note")


def as_role(postgres: Postgres, database: str, role: str) -> psycopg.Connection:
    connection = psycopg.connect(postgres.url(database, role), autocommit=True)
    connection.execute("SET search_path = interlock_audit")
    return connection


WRITES = {
    "update": lambda table: SQL("UPDATE {} SET {column} = {column}").format(
        Identifier(table),
        column=Identifier(COLUMN.get(table, "window_id" if table != "content_keys" else "session_id")),
    ),
    "delete": lambda table: SQL("DELETE FROM {}").format(Identifier(table)),
    "truncate": lambda table: SQL("TRUNCATE {} CASCADE").format(Identifier(table)),
}


@pytest.mark.req("AUD-2")
@pytest.mark.parametrize("write", WRITES)
def test_the_services_role_may_not_change_what_is_there(postgres, database, log, write):
    """PostgreSQL itself refuses UPDATE, DELETE and TRUNCATE of every table that says what happened."""
    with as_role(postgres, database, SERVICE) as connection:
        for table in TABLES:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(WRITES[write](table))


@pytest.mark.req("AUD-2")
@pytest.mark.parametrize("write", WRITES)
def test_triggers_refuse_the_owner_too(postgres, database, log, write):
    """Whoever owns the tables: rows that stand are refused by triggers, not by our good manners."""
    may_go = {"held_contents", "unlogged"} if write == "delete" else {"unlogged"} if write == "update" else set()
    with as_role(postgres, database, OWNER) as connection:
        for table in TABLES:
            if table in {"merkle_nodes", "unlogged"} and write != "truncate":
                continue  # nothing in them yet; the next test writes one
            if table in may_go:
                continue
            with pytest.raises(psycopg.IntegrityError, match="append-only"):
                connection.execute(WRITES[write](table))


@pytest.mark.req("AUD-2")
def test_a_stored_subtree_stays(postgres, database, log):
    """The hashes of 256 leaves too."""
    log.commit([adding(*(an_event(n, 3) for n in range(1, 257)))])
    assert log.nodes(8, 0, 1)

    with as_role(postgres, database, OWNER) as connection:
        for write in ("update", "delete"):
            with pytest.raises(psycopg.IntegrityError, match="append-only"):
                connection.execute(WRITES[write]("merkle_nodes"))


@pytest.mark.req("AUD-5", "AUD-2")
@pytest.mark.parametrize("call", ["destroy_key", "drop_reports", "drop_contents", "drop_windows"])
def test_the_functions_delete_nothing_without_the_event(postgres, database, log, call):
    """What the role may call asks the chain first; even the owner's own DELETE does."""
    with as_role(postgres, database, SERVICE) as connection, pytest.raises(psycopg.IntegrityError, match="append-only"):
        connection.execute(SQL("SELECT {}(%s)").format(Identifier(call)), (session_id(2),))


@pytest.mark.req("AUD-2")
def test_an_event_out_of_sequence_is_refused_by_the_table(postgres, database, log):
    """Neither a gap nor a second one, and the same for positions (I5)."""
    rows = (
        ("INSERT INTO events SELECT session_id, 99, '', 'X_X', 2, '', '{}', 1, '' FROM events LIMIT 1", "without gaps"),
        ("INSERT INTO events SELECT session_id, 1, '', 'X_X', 2, '', '{}', 1, '' FROM events LIMIT 1", "without gaps"),
        ("INSERT INTO leaves SELECT 99, session_id, 99, leaf_hash FROM leaves LIMIT 1", "without gaps"),
    )
    with as_role(postgres, database, SERVICE) as connection:
        for statement, why in rows:
            with pytest.raises(psycopg.IntegrityError, match=why):
                connection.execute(statement)


@pytest.mark.req("AUD-6")
def test_an_event_written_past_the_service_gets_no_position(postgres, database, log):
    """The service adds an event after its leaf; the database refuses any other INSERT of one, of the service's own role too."""
    size = log.log_size()
    with as_role(postgres, database, SERVICE) as connection:
        with pytest.raises(psycopg.IntegrityError, match="with its leaf"):
            connection.execute(f"INSERT INTO events VALUES ('{session_id(7)}', 1, '', 'X_X', 2, '', '{{}}', 1, 'h')")

    log.commit([])

    assert (log.log_size(), log.positions(session_id(7))) == (size, {})


@pytest.mark.req("AUD-5", "PRV-2")
async def test_the_service_seals_verifies_and_erases_as_that_role(postgres, database):
    """Everything that it does needs no more than what is granted."""
    async with serving(PostgresLog(postgres.url(database, SERVICE))) as service:
        await service.seal(2, content="Said.")
        dropped = await service.stub.DropContent(
            audit_pb2.DropContentRequest(session_id=session_id(), window_id=window_id(1))
        )
        request = audit_pb2.EraseSessionRequest(session_id=session_id(), approval_id="a", reviewer_id="r")
        erased = await service.stub.EraseSession(request)

        assert (dropped.dropped, erased.erased) == (True, True)
        assert verify_message(service.log, session_id()) == ("TRUNCATED", [])


@pytest.mark.req("AUD-6", "AUD-2")
async def test_the_whole_service_runs_on_postgresql_and_goes_on_after_a_restart(postgres, database, tmp_path):
    """Seals, checkpoints and proofs from the settings alone; the next process has the same chain, tree and keys."""
    settings = Settings(audit_url=postgres.url(database, SERVICE), state_dir=tmp_path, checkpoint_s=0.05)
    tip, sizes = "", []
    for number in (1, 2):
        opened = await open_service(settings)
        sealed = await opened.servicer.Append(window(number, tip), None)
        tip = sealed.hmac
        while (
            checkpoint := await opened.servicer.GetCheckpoint(audit_pb2.GetCheckpointRequest(), None)
        ).size < 3 * number:
            await asyncio.sleep(0.02)
        asked = audit_pb2.ProveInclusionRequest(session_id=session_id(), sequence=1)
        proof = await opened.servicer.ProveInclusion(asked, None)
        found = await opened.servicer.Verify(audit_pb2.VerifyRequest(session_id=session_id()), None)
        sizes.append((found.windows, list(found.faults), proof.position, proof.size == checkpoint.size))
        assert await opened.unready_dependencies() == {}
        await opened.close()

    assert sizes == [(1, [], 0, True), (2, [], 0, True)]


# --- preparing the database


def test_migrating_again_changes_nothing(postgres, database):
    """Grants are given anew, nothing is applied twice."""
    again = CliRunner().invoke(
        app, ["migrate", "--owner-url", postgres.url(database, OWNER), "--role", SERVICE, "-o", "json"]
    )

    assert (again.exit_code, again.stdout) == (0, f'{{"applied": 0, "role": "{SERVICE}"}}\n')


async def test_a_database_that_nobody_prepared_is_not_ready_and_says_what_to_do(postgres):
    """A role that may not make the schema is told the command; nothing is acknowledged meanwhile."""
    name = postgres.database()
    with postgres.admin(name) as admin:
        admin.execute(SQL("REVOKE CREATE ON DATABASE {} FROM PUBLIC").format(Identifier(name)))
    settings = Settings(audit_url=postgres.url(name, SERVICE), master_key=MASTER.hex())
    opened = await open_service(settings)

    refused = await opened.servicer.Record(audit_pb2.RecordRequest(session_id=session_id(), events=[event()]), None)
    missing = await opened.unready_dependencies()
    with connect(postgres.url(name, OWNER), limit_s=5) as owner:
        migrate(owner, system_clock)
    CliRunner().invoke(app, ["migrate", "--owner-url", postgres.url(name, OWNER), "--role", SERVICE])
    await opened.unready_dependencies()
    served = await opened.servicer.Record(audit_pb2.RecordRequest(session_id=session_id(), events=[event()]), None)
    await opened.close()

    assert refused.refusal.reason == UNAVAILABLE
    assert "interlock audit migrate --owner-url" in missing["audit_store"]
    assert PASSWORD not in missing["audit_store"]
    assert served.sequence == 1


def test_a_newer_schema_is_served(postgres, database, log):
    """A later version added a column and a table; old code goes on, and takes nothing back."""
    with as_role(postgres, database, OWNER) as owner:
        owner.execute("ALTER TABLE events ADD COLUMN later text NOT NULL DEFAULT ''")
        owner.execute("INSERT INTO schema_migrations VALUES (99, 'later.sql', '')")
    log.close()

    build(log, 2, session=3)

    assert verify_message(log, session_id(3)) == ("VALID", [])


@pytest.mark.parametrize(
    "url",
    ["postgresql://u:s3cret@h/d", "postgres://h/d?user=u&password=s3cret", "postgresql://u:s3cret@h/d?sslmode=require"],
)
def test_a_password_is_never_shown(url):
    """Neither in a hint nor in a finding."""
    assert "s3cret" not in without_password(url)


def test_an_unknown_scheme_is_refused():
    """A typing error does not make a file of that name."""
    with pytest.raises(ValueError, match="postgresql"):
        Settings(audit_url="postgresq://h/d")


# --- a server that would lose what it acknowledges


@pytest.mark.req("AUD-3", "SVC-9")
@pytest.mark.parametrize("setting", ["fsync", "synchronous_commit"])
def test_a_server_that_keeps_nothing_is_refused(postgres, database, setting):
    """fsync or synchronous_commit off: a commit there is no promise, so nothing is written at all."""
    with postgres.admin() as admin:
        admin.execute(SQL("ALTER SYSTEM SET {} = off").format(Identifier(setting)))
        admin.execute("SELECT pg_reload_conf()")
        while admin.execute(SQL("SELECT current_setting({})").format(Literal(setting))).fetchone() != ("off",):
            pass
    log = PostgresLog(postgres.url(database, SERVICE))
    try:
        with pytest.raises(StoreFailed) as failed:
            log.commit([adding(an_event(1))])
    finally:
        with postgres.admin() as admin:
            admin.execute(SQL("ALTER SYSTEM RESET {}").format(Identifier(setting)))
            admin.execute("SELECT pg_reload_conf()")
            while admin.execute(SQL("SELECT current_setting({})").format(Literal(setting))).fetchone() != ("on",):
                pass

    assert (failed.value.reason, failed.value.hint) == (
        UNAVAILABLE,
        f"the server has {setting} = off; the audit log is refused on it",
    )
    log.commit([adding(an_event(1))])
    assert log.log_size() == 1
    log.close()


# --- a server that fails


@pytest.mark.req("SVC-9", "AUD-3")
def test_a_server_that_hangs_fails_closed_in_time_and_comes_back(postgres, database, log):
    """It holds its connections and answers nothing: reading and writing are refused, and go on by themselves after."""
    log.ping()
    with postgres.paused():
        for doing in (lambda: log.commit([adding(an_event(2, 2))]), log.ping):
            with pytest.raises(StoreFailed) as failed:
                doing()
            assert failed.value.reason == UNAVAILABLE

    [outcome] = log.commit([adding(an_event(2, 2))])
    assert outcome.error is None
    assert [event.sequence for event in log.chain(session_id(2)).events] == [1, 2]


@pytest.mark.req("SVC-9", "AUD-3")
@pytest.mark.parametrize("lost_at", ["commit", "before"])
def test_a_commit_whose_answer_is_lost_is_told_to_be_in_doubt(log, monkeypatch, lost_at):
    """The server commits and nobody hears of it: the refusal says that it may be kept. A connection lost before keeps nothing."""
    execute = psycopg.Connection.execute

    def cut_off(connection, query, *more, **options):
        if query == "COMMIT":
            if lost_at == "commit":
                connection.pgconn.send_query(b"COMMIT")
                connection.pgconn.flush()
            connection.close()
        return execute(connection, query, *more, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", cut_off)
    with pytest.raises(StoreFailed) as failed:
        log.commit([adding(an_event(2, 2))])
    monkeypatch.undo()
    log.commit([adding(an_event(1, 3))])  # writers take turns: behind what the server still had to do
    kept = 2 in [event.sequence for event in log.chain(session_id(2)).events]

    assert failed.value.reason == UNAVAILABLE
    assert failed.value.metadata["kept"] == "unknown"
    assert kept is (lost_at == "commit")


@pytest.mark.req("SVC-9")
def test_what_the_server_refuses_before_the_commit_is_not_in_doubt(postgres, database, log):
    """A connection that ends with a transaction that was not committed: nothing is kept, and the refusal leaves no doubt."""

    def cut(writing) -> None:
        adding(an_event(2, 2))(writing)
        log._writer.close()

    with pytest.raises(StoreFailed) as failed:
        log.commit([cut])

    assert "kept" not in failed.value.metadata
    assert [event.sequence for event in log.chain(session_id(2)).events] == [1]


@pytest.mark.long
@pytest.mark.req("SVC-9", "AUD-3")
def test_a_server_that_was_killed_is_used_again_with_all_that_it_acknowledged(tmp_path):
    """kill -9 of the whole server: refused while it lasts; the open connections are found dead and made anew."""
    with Postgres() as server:
        log = PostgresLog(server.url(server.database(), OWNER), write_limit_s=2, read_limit_s=2)
        tips = build(log, 2)
        server.kill()
        with pytest.raises(StoreFailed):
            log.commit([adding(an_event(1, 2))])
        with pytest.raises(StoreFailed):
            log.ping()
        server.start()

        [outcome] = log.commit([adding(an_event(1, 2))])

        assert outcome.error is None
        assert [window.hmac for window in log.chain(session_id()).windows] == tips
        assert verify_message(log, session_id()) == ("VALID", [])
        log.close()


@pytest.mark.req("AUD-6")
def test_two_processes_on_one_database_make_one_dense_log(postgres, database):
    """Writers take turns; no position is given twice or left out, and each session is a chain."""
    logs = [PostgresLog(postgres.url(database, SERVICE)) for _ in range(2)]

    def write(log: PostgresLog, first: int) -> None:
        for turn in range(25):
            log.commit([adding(an_event(turn + 1, session)) for session in range(first, first + 4)])

    threads = [threading.Thread(target=write, args=(log, 10 * n)) for n, log in enumerate(logs, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    entries = logs[0].entries(0, 999)
    assert [entry.position for entry in entries] == list(range(200))
    assert len({(entry.event.session_id, entry.event.sequence) for entry in entries}) == 200
    for log in logs:
        log.close()


def test_a_background_task_is_run_by_one_of_several_processes(postgres, database):
    """And by another as soon as the first has gone; tasks are apart."""
    one, other = (PostgresLog(postgres.url(database, SERVICE)) for _ in range(2))

    assert (one.leads("retention"), other.leads("retention"), one.leads("retention")) == (True, False, True)
    assert other.leads("anchor")
    one.close()
    while not other.leads("retention"):
        pass
    other.close()


def test_a_writer_that_waits_too_long_for_its_turn_is_refused(postgres, database, log):
    """Another process hangs inside its transaction: the lock is waited for as long as a transaction may take."""
    with as_role(postgres, database, SERVICE) as other:
        other.execute("BEGIN")
        other.execute("SELECT pg_advisory_xact_lock(%s)", (0x494C_4155_0002,))
        with pytest.raises(StoreFailed) as failed:
            log.commit([adding(an_event(2, 2))])

    assert failed.value.reason == UNAVAILABLE
    [outcome] = log.commit([adding(an_event(2, 2))])
    assert outcome.error is None


def test_settings_name_the_database(postgres, database):
    """audit_url alone decides which log is opened."""
    opened = open_log(Settings(audit_url=postgres.url(database, SERVICE)))

    assert isinstance(opened, PostgresLog)
    assert opened.commit([adding(an_event(1))])[0].error is None
    opened.close()


def test_another_database_is_no_file():
    """A path is not a URL."""
    with pytest.raises(Refused, match="AUDIT_URL_INVALID"):
        open_log(Settings(audit_url="sqlite:///"))


# --- a disk that is full


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 24 mebibytes that the server may use."""
    folder = Path(tempfile.mkdtemp(prefix="interlock-disk-"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        shutil.rmtree(folder)
        pytest.skip("mounting a tmpfs takes root")
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)
    folder.rmdir()


@pytest.mark.long
@pytest.mark.req("SVC-9", "AUD-3")
def test_a_full_disk_is_told_apart_reads_go_on_and_writing_comes_back(small_disk):
    """ENOSPC below a real server: AUDIT_STORE_FULL, what was acknowledged verifies, and room is used without a restart."""
    with Postgres() as server:
        with server.admin() as admin:
            admin.execute(SQL("CREATE TABLESPACE small LOCATION {}").format(Literal(str(small_disk))))
        log = PostgresLog(server.url(server.database(tablespace="small"), OWNER))
        build(log, 2)
        acknowledged, failed = 0, None
        while failed is None:
            big = adding(
                *(an_event(acknowledged + n, 2, data_json=f'"{os.urandom(20_000).hex()}"') for n in range(1, 21))
            )
            try:
                [outcome] = log.commit([big])
            except StoreFailed as error:
                failed = error
            else:
                assert outcome.error is None
                acknowledged += 20

        assert (failed.reason, failed.metadata["cause"]) == ("AUDIT_STORE_FULL", "53100")
        assert PASSWORD not in failed.hint
        assert len(log.chain(session_id(2)).events) == acknowledged
        assert verify_message(log, session_id()) == ("VALID", [])

        subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
        [outcome] = log.commit([big])
        assert (outcome.error, len(log.chain(session_id(2)).events)) == (None, acknowledged + 20)
        log.close()
