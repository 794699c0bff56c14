"""The audit log's file taken away, filled, locked, damaged or attacked: refused while it lasts, and back by itself."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging as stdlib_logging
import shutil
import sqlite3
import stat
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
import structlog

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.audit.store.log_sql import SqliteLog
from interlock.audit.wiring import open_service
from interlock.domain.errors import Kind, Refused
from interlock.runtime import logging
from interlock.runtime.keys.derivation import Keyring
from interlock.runtime.settings.model import Settings
from tests.support.audit.audit import MASTER, Attacker, Service, build, event, serving, session_id, window, window_id

UNAVAILABLE = common_pb2.REFUSAL_KIND_UNAVAILABLE


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Where the log is."""
    return tmp_path / "audit.db"


@pytest_asyncio.fixture
async def service(database: Path) -> AsyncIterator[Service]:
    """The service on a SQLite file, with one event of session 1."""
    async with serving(SqliteLog(database, busy_timeout_s=0.05)) as made:
        assert (await made.record()).sequence == 1
        yield made


async def verify(service: Service) -> audit_pb2.VerifyResponse:
    return await service.stub.Verify(audit_pb2.VerifyRequest(session_id=session_id()))


def in_writer(service: Service, statement: str):
    """Run a statement on the writing connection itself, inside a transaction."""
    return service.appender.submit(lambda writing: writing._connection.execute(statement).fetchone())


# --- what the database itself holds


@pytest.mark.req("AUD-3")
async def test_a_commit_waits_for_the_disk(service):
    """WAL with synchronous FULL: the one setting of SQLite in which a commit survives a power loss."""
    assert await in_writer(service, "PRAGMA synchronous") == (2,)
    assert await in_writer(service, "PRAGMA journal_mode") == ("wal",)
    assert await in_writer(service, "PRAGMA foreign_keys") == (1,)


WRITES = {
    "update": "UPDATE {table} SET {column} = {column}",
    "delete": "DELETE FROM {table}",
    "replace": "INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
    "upsert": "INSERT INTO {table} SELECT * FROM {table} WHERE true ON CONFLICT DO UPDATE SET {column} = {column}",
}
TABLES = {"events": "hmac", "windows": "charge_micros", "reports": "body"}


@pytest.mark.req("AUD-2")
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("table", TABLES)
def test_the_database_refuses_to_change_what_it_holds(database, table, write):
    """Whoever opens the file: UPDATE, DELETE and REPLACE are refused by triggers, not by our good manners."""
    log = SqliteLog(database)
    build(log, 2)
    log.close()
    before = database.read_bytes()
    connection = sqlite3.connect(database)

    with pytest.raises(sqlite3.IntegrityError, match=r"append-only|without gaps"):
        connection.execute(write.format(table=table, column=TABLES[table]))

    connection.close()
    assert database.read_bytes() == before


@pytest.mark.req("AUD-2")
def test_the_database_refuses_an_event_after_a_gap(database):
    """Sequences are gapless in the table too (I5)."""
    log = SqliteLog(database)
    build(log, 1)
    log.close()
    connection = sqlite3.connect(database)

    with pytest.raises(sqlite3.IntegrityError, match="without gaps"):
        connection.execute("INSERT INTO events SELECT session_id, 9, '', 'X_X', 2, '', '{}', 1, '' FROM events LIMIT 1")

    connection.close()


def test_the_file_is_its_owners_alone(database):
    """Reports hold what people asked; the log file beside it takes the same mode."""
    log = SqliteLog(database)
    build(log, 1)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in database.parent.iterdir()}

    log.close()
    assert modes == dict.fromkeys(["audit.db", "audit.db-wal", "audit.db-shm", "audit.db.began"], 0o600)


def test_old_code_runs_on_a_newer_schema(database):
    """A newer version has added a column and a table; nothing is taken back, and writing goes on (style.md)."""
    log = SqliteLog(database)
    tips = build(log, 1)
    log.close()
    with sqlite3.connect(database) as connection:
        before = connection.execute("SELECT version FROM schema_migrations ORDER BY version").fetchall()
        connection.execute("ALTER TABLE events ADD COLUMN leaf_index INTEGER NOT NULL DEFAULT 0")
        connection.execute("INSERT INTO schema_migrations (version, name, applied_at) VALUES (99, 'later.sql', '')")
    connection.close()

    assert build(log, 1, session=2) != tips

    versions = sqlite3.connect(database)
    assert versions.execute("SELECT version FROM schema_migrations ORDER BY version").fetchall() == [*before, (99,)]
    versions.close()
    assert len(log.chain(session_id(2)).events) == 3
    log.close()


async def test_records_of_an_old_key_version_stay_readable(database):
    """After a rotation new records carry the new version, and old ones verify with theirs (reliability.md §7 row 13)."""
    async with serving(SqliteLog(database)) as before:
        await before.record()
        [first] = await before.seal(1)
    rotated = Keyring({1: MASTER, 2: bytes(range(32, 64))})

    async with serving(SqliteLog(database), keyring=rotated) as after:
        second = await after.stub.Append(window(2, first.hmac))
        versions = {e.key_version for e in after.log.chain(session_id()).events}

        assert second.integrity == common_pb2.CHAIN_INTEGRITY_VALID
        assert versions == {1, 2}
        assert (await verify(after)).integrity == common_pb2.CHAIN_INTEGRITY_VALID


# --- the disk


@pytest.mark.req("SVC-9", "AUD-3")
async def test_a_full_database_refuses_the_whole_transaction_and_recovers(service):
    """SQLITE_FULL: all requests of that commit are refused with AUDIT_STORE_FULL, none is half kept."""
    pages = (await in_writer(service, "PRAGMA page_count"))[0]
    await in_writer(service, f"PRAGMA max_page_count = {pages + 2}")

    big = event(data='{"x":"' + "x" * 40_000 + '"}')
    begun, go = threading.Event(), threading.Event()

    def hold(_writing: object) -> None:
        begun.set()
        go.wait(20)

    held = asyncio.ensure_future(service.appender.submit(hold))  # so that the three are of one commit
    await asyncio.to_thread(begun.wait, 20)
    writing = [asyncio.ensure_future(service.record(each)) for each in (event(), big, event())]
    while len(service.appender._waiting) < len(writing):
        await asyncio.sleep(0.005)
    go.set()
    await held
    answers = await asyncio.gather(*writing)

    assert {(a.refusal.kind, a.refusal.reason) for a in answers} == {(UNAVAILABLE, "AUDIT_STORE_FULL")}
    assert all(answer.refusal.retry_after_ms for answer in answers)
    assert (await verify(service)).events == 1
    assert (await service.record()).sequence == 2  # the limit went with the connection


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one mebibyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a tmpfs takes root; SQLITE_FULL and RLIMIT_FSIZE are tested without")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.req("SVC-9", "AUD-3")
async def test_a_full_disk_fails_closed_and_comes_back_when_there_is_room(small_disk):
    """ENOSPC for real: refused, named by readiness with a hint, what was acknowledged verifies, then served again."""
    opened = await open_service(settings(small_disk))

    async def record() -> audit_pb2.RecordResponse:
        request = audit_pb2.RecordRequest(session_id=session_id(), events=[event(data='{"x":"' + "x" * 9000 + '"}')])
        return await opened.servicer.Record(request, None)

    acknowledged = 0
    while not (answer := await record()).HasField("refusal"):
        acknowledged = answer.sequence
    assert (answer.refusal.kind, answer.refusal.reason) == (UNAVAILABLE, "AUDIT_STORE_FULL")
    found = await opened.servicer.Verify(audit_pb2.VerifyRequest(session_id=session_id()), None)
    assert (found.events, len(found.faults)) == (acknowledged, 0)

    fill(small_disk)
    for _ in range(40):  # what is left inside the files that exist may still be used, and then it is acknowledged
        acknowledged = (await record()).sequence or acknowledged
    assert (await record()).refusal.reason == "AUDIT_STORE_FULL"
    found = await opened.servicer.Verify(audit_pb2.VerifyRequest(session_id=session_id()), None)
    assert (found.events, len(found.faults)) == (acknowledged, 0)

    subprocess.run(["mount", "-o", "remount,size=8m", small_disk], check=True)
    assert await opened.unready_dependencies() == {}
    assert (await record()).sequence == acknowledged + 1
    await opened.close()


def fill(folder: Path) -> None:
    """Take all the room there is."""
    with (folder / "filler").open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass


async def test_a_locked_database_is_refused_and_comes_back(service, database):
    """Another process holds the write lock for longer than we wait."""
    other = sqlite3.connect(database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    refused = await service.record()
    found = await verify(service)
    other.execute("ROLLBACK")
    other.close()

    assert (refused.refusal.kind, refused.refusal.reason) == (UNAVAILABLE, "AUDIT_STORE_UNAVAILABLE")
    assert found.events == 1  # readers do not wait for writers
    assert (await service.record()).sequence == 2


async def test_a_deleted_file_is_noticed_and_never_made_anew(service, database):
    """What is written to a file without a name is lost, so nothing is acknowledged; an empty successor would hide it."""
    kept = database.with_name("kept.db")
    await in_writer(service, "PRAGMA user_version")
    database.rename(kept)

    assert (await service.record()).refusal.reason == "AUDIT_STORE_UNAVAILABLE"
    assert (await service.record()).refusal.reason == "AUDIT_STORE_UNAVAILABLE"
    assert (await verify(service)).refusal.reason == "AUDIT_STORE_UNAVAILABLE"
    assert not database.exists()


async def test_a_file_that_comes_back_is_used_again(service, database, tmp_path):
    """Restored by the operator while the service runs: it goes on without a restart."""
    await service.record()
    service.log.close()  # a checkpoint, as a backup tool would make one
    shutil.copy(database, tmp_path / "backup.db")
    database.unlink()
    assert (await service.record()).refusal.reason == "AUDIT_STORE_UNAVAILABLE"

    shutil.copy(tmp_path / "backup.db", database)

    assert (await service.record()).sequence == 3
    assert (await verify(service)).integrity == common_pb2.CHAIN_INTEGRITY_UNVERIFIED


async def test_a_file_that_is_no_database_is_told_apart(database):
    """Damage is not absence: the hint says to keep the file."""
    database.write_bytes(b"this is not a database, whatever its name says" * 100)
    async with serving(SqliteLog(database)) as service:
        refused = await service.record()
        failure = service.appender.failure

    assert refused.refusal.reason == "AUDIT_STORE_CORRUPT"
    assert "evidence" in failure.hint
    assert "audit.db" not in str(refused)


# --- the writer


class Gate:
    """Holds the writer inside a transaction until it is opened."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self, _writing) -> str:
        self.entered.set()
        self.opened.wait(20)
        return "through"


async def held(service: Service) -> tuple[Gate, asyncio.Task]:
    gate = Gate()
    task = asyncio.create_task(service.appender.submit(gate))
    await asyncio.to_thread(gate.entered.wait, 20)
    return gate, task


async def test_a_full_queue_refuses_and_drops_nothing():
    """What was accepted is written; what was not is refused at once."""
    async with serving(queue_limit=3) as service:
        gate, task = await held(service)
        waiting = [asyncio.create_task(service.record()) for _ in range(5)]
        refused, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        reasons = {t.result().refusal.reason for t in refused}
        gate.opened.set()
        answers = await asyncio.gather(*waiting)

        assert await task == "through"
        assert reasons == {"AUDIT_QUEUE_FULL"}
        assert sorted(a.sequence for a in answers) == [0, 0, 1, 2, 3]
        assert len(service.log.chain(session_id()).events) == 3


async def test_a_queue_that_is_full_of_bytes_refuses():
    """Few large requests fill it too."""
    async with serving() as service:
        gate, task = await held(service)
        with pytest.raises(Refused) as refused:
            await service.appender.submit(lambda _writing: None, size=2**40)
        gate.opened.set()
        await task

    assert (refused.value.kind, refused.value.reason) == (Kind.EXHAUSTED, "AUDIT_QUEUE_FULL")


async def test_the_event_loop_goes_on_while_the_disk_hangs(service):
    """A writer that waits holds up neither reading nor anything else in the process."""
    gate, task = await held(service)
    waiting = asyncio.create_task(service.record())

    found = await verify(service)

    assert (found.events, waiting.done(), task.done()) == (1, False, False)
    gate.opened.set()
    assert (await waiting).sequence == 2
    await task


async def test_what_waits_together_is_committed_together(database):
    """Group commit: 64 requests that arrive during one commit share the next, up to the bound."""

    class Counting(SqliteLog):
        def __init__(self, path: Path) -> None:
            super().__init__(path)
            self.sizes: list[int] = []

        def commit(self, works):
            self.sizes.append(len(works))
            return super().commit(works)

    log = Counting(database)
    async with serving(log, batch_limit=48) as service:
        gate, task = await held(service)
        waiting = [asyncio.create_task(service.record()) for _ in range(64)]
        await asyncio.sleep(0)
        gate.opened.set()
        answers = await asyncio.gather(*waiting)
        await task

    assert log.sizes == [1, 48, 16]
    assert [a.sequence for a in answers] == list(range(1, 65))


async def test_a_caller_that_has_gone_is_not_served():
    """A request given up while it waited is not written for nobody."""
    async with serving() as service:
        gate, task = await held(service)
        gone = asyncio.create_task(service.record())
        stays = asyncio.create_task(service.record())
        await asyncio.sleep(0)
        gone.cancel()
        gate.opened.set()
        await task

        assert (await stays).sequence == 1
        assert len(service.log.chain(session_id()).events) == 1


async def test_a_defect_fails_its_request_and_not_the_writer():
    """A bug in one request is that request's error; the next one is served."""
    async with serving() as service:
        with pytest.raises(ZeroDivisionError):
            await service.appender.submit(lambda _writing: 1 / 0)

        assert (await service.record()).sequence == 1


async def test_closing_writes_what_waits_and_accepts_nothing_more():
    """A graceful end loses no accepted request."""
    async with serving() as service:
        gate, task = await held(service)
        waiting = [asyncio.create_task(service.record()) for _ in range(3)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(service.appender.close())
        await asyncio.sleep(0)
        late = await service.record()
        gate.opened.set()
        await closing

        assert await task == "through"
        assert [(await w).sequence for w in waiting] == [1, 2, 3]
        assert late.refusal.reason == "AUDIT_CLOSING"


async def test_too_many_readers_are_refused(service):
    """Reading is bounded like writing."""
    service.servicer.readers.running = 1024

    assert (await verify(service)).refusal.reason == "AUDIT_QUEUE_FULL"
    service.servicer.readers.running = 0


# --- opening from the settings


def settings(folder: Path, **changes) -> Settings:
    return Settings(**{"state_dir": folder, "master_key": MASTER.hex(), **changes})


@pytest.mark.req("SVC-9")
async def test_the_service_starts_without_its_folder_and_recovers(tmp_path):
    """Not ready with a hint that names the place; every call refused; ready by itself when the folder is there."""
    opened = await open_service(settings(tmp_path, audit_url=f"sqlite:///{tmp_path}/later/audit.db"))
    request = audit_pb2.RecordRequest(session_id=session_id(), events=[event()])

    refused = await opened.servicer.Record(request, None)
    missing = await opened.unready_dependencies()
    (tmp_path / "later").mkdir()
    after = [await opened.unready_dependencies() for _ in range(2)]
    served = await opened.servicer.Record(request, None)
    await opened.close()

    assert refused.refusal.reason == "AUDIT_STORE_UNAVAILABLE"
    assert f"{tmp_path}/later/audit.db" in missing["audit_store"]
    assert after[-1] == {}
    assert served.sequence == 1


@pytest.mark.req("SVC-9")
async def test_a_folder_that_comes_later_is_found_without_anyone_asking_for_readiness(tmp_path):
    """The refused call itself tries to open the log again, so the next one is served."""
    opened = await open_service(settings(tmp_path, audit_url=f"sqlite:///{tmp_path}/later/audit.db"))
    (tmp_path / "later").mkdir()

    first = await opened.servicer.Append(window(1), None)
    second = await opened.servicer.Append(window(1), None)
    await opened.close()

    assert first.refusal.reason == "AUDIT_STORE_UNAVAILABLE"
    assert second.hmac


@pytest.mark.req("SVC-9")
async def test_readiness_names_a_file_that_was_taken_away(tmp_path):
    """Before anyone has tried to write."""
    opened = await open_service(settings(tmp_path))
    assert await opened.unready_dependencies() == {}

    (tmp_path / "audit.db").rename(tmp_path / "elsewhere.db")

    assert "audit.db" in (await opened.unready_dependencies())["audit_store"]
    await opened.close()


@pytest.mark.parametrize("url", ["sqlite:///", "sqlite:///:memory:", "sqlite:///a.db?mode=memory"])
async def test_an_audit_url_that_keeps_nothing_is_refused(tmp_path, url):
    """A log in memory would acknowledge what it loses."""
    with pytest.raises(Refused) as refused:
        await open_service(settings(tmp_path, audit_url=url))

    assert refused.value.reason == "AUDIT_URL_INVALID"


async def test_a_weak_master_key_refuses_to_start(tmp_path):
    """No waiting mends it."""
    with pytest.raises(Refused) as refused:
        await open_service(settings(tmp_path, master_key="00" * 32))

    assert refused.value.reason == "MASTER_KEY_WEAK"


async def test_a_service_opened_again_goes_on_with_its_chains(tmp_path):
    """Same settings, same keys, same chain."""
    for expected in (1, 2, 3):
        opened = await open_service(settings(tmp_path))
        answer = await opened.servicer.Record(audit_pb2.RecordRequest(session_id=session_id(), events=[event()]), None)
        assert answer.sequence == expected
        await opened.close()


@pytest.mark.finding("F-29")
@pytest.mark.parametrize(
    "gone", [lambda path: path.write_bytes(b""), lambda path: path.unlink()], ids=["emptied", "deleted"]
)
async def test_a_log_that_held_records_never_starts_as_new(tmp_path, gone):
    """Its chains would be gone without a word, so nothing is sealed until an operator restores it or gives it up."""
    request = audit_pb2.RecordRequest(session_id=session_id(), events=[event()])
    opened = await open_service(settings(tmp_path))
    assert (await opened.servicer.Record(request, None)).sequence == 1
    await opened.close()
    gone(tmp_path / "audit.db")

    again = await open_service(settings(tmp_path))
    refusal = (await again.servicer.Record(request, None)).refusal
    hint = (await again.unready_dependencies())["audit_store"]
    await again.close()
    (tmp_path / "audit.db.began").unlink()
    given_up = await open_service(settings(tmp_path))

    assert (refusal.kind, refusal.reason) == (UNAVAILABLE, "AUDIT_LOG_EMPTIED")
    assert "audit.db.began" in hint
    assert (await given_up.servicer.Record(request, None)).sequence == 1
    await given_up.close()


async def test_an_empty_file_that_never_held_a_log_begins_one(tmp_path):
    """Such as one that was mounted, or that a crash left before the first record."""
    (tmp_path / "audit.db").touch(mode=0o600)
    opened = await open_service(settings(tmp_path))

    answer = await opened.servicer.Record(audit_pb2.RecordRequest(session_id=session_id(), events=[event()]), None)
    await opened.close()

    assert answer.sequence == 1


@pytest.mark.finding("F-29")
async def test_the_line_of_a_broken_chain_says_what_is_wrong(service, database):
    """The fault is a constant of ours, not somebody's text."""
    root, stream = stdlib_logging.getLogger(), io.StringIO()
    handlers, level = root.handlers[:], root.level
    logging.configure("info", stream=stream, cache=False)
    await service.seal(1)
    with Attacker(database) as attack:
        attack("UPDATE windows SET charge_micros = 0")

    await service.stub.GetWindow(audit_pb2.GetWindowRequest(session_id=session_id(), window_id=window_id(1)))
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)
    line = next(one for one in stream.getvalue().splitlines() if "audit.chain.broken" in one)

    assert json.loads(line)["fault"] not in {"", "[redacted]"}
    assert "[redacted]" not in line


async def test_an_incident_that_cannot_be_written_is_still_refused(service, database):
    """The chain is broken and the disk is gone: the answer stays CHAIN_BROKEN."""
    await service.seal(1)
    with Attacker(database) as attack:
        attack("UPDATE windows SET charge_micros = 0")
    other = sqlite3.connect(database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    answer = await service.stub.GetWindow(audit_pb2.GetWindowRequest(session_id=session_id(), window_id=window_id(1)))
    other.execute("ROLLBACK")
    other.close()

    assert answer.refusal.reason == "CHAIN_BROKEN"
