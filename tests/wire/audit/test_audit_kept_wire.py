"""Answers kept for what goes on from them: encrypted, for one caller alone, for a time, gone with their session (docs/adr/0033)."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.erasure.retention import Retention
from interlock.audit.store.log_sql import SqliteLog
from interlock.runtime.settings.model import Settings
from tests.support.audit.audit import START, Service, serving, session_id, window_id

pytestmark = pytest.mark.req("API-1")

SAID = b"Die M\xc3\xbcllabfuhr kommt am Dienstag, 7 Uhr."
DAY = 86_400_000_000


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "audit.db"


@pytest_asyncio.fixture
async def service(database: Path) -> AsyncIterator[Service]:
    """The service over a log with three sealed windows."""
    log = SqliteLog(database)
    log.commit([])
    async with serving(log) as running:
        await running.seal(3)
        yield running


async def keep(service: Service, number: int, *, scope: str = "alice", after: int = 0, kept: bytes = SAID):
    previous = window_id(after) if after else ""
    return await service.stub.KeepAnswer(
        audit_pb2.KeepAnswerRequest(window_id=window_id(number), scope=scope, previous_id=previous, kept=kept)
    )


async def found(service: Service, number: int, *, scope: str = "alice", alone: bool = False):
    request = audit_pb2.GetKeptAnswersRequest(window_id=window_id(number), scope=scope, alone=alone)
    return await service.stub.GetKeptAnswers(request)


async def drop(service: Service, number: int, *, scope: str = "alice"):
    return await service.stub.DropKeptAnswer(audit_pb2.DropKeptAnswerRequest(window_id=window_id(number), scope=scope))


def reason(answer) -> str:
    return answer.refusal.reason if answer.HasField("refusal") else ""


async def test_an_answer_is_found_after_everything_that_it_goes_on_from(service):
    """The oldest first; alone where that is asked for."""
    for number in (1, 2, 3):
        assert (await keep(service, number, after=number - 1, kept=b"%d" % number)).expires_at

    assert [one.kept for one in (await found(service, 3)).answers] == [b"1", b"2", b"3"]
    assert [one.window_id for one in (await found(service, 3, alone=True)).answers] == [window_id(3)]


async def test_another_caller_finds_nothing(service):
    """Not the answer, nor one of its own that claims to go on from it; it can neither delete nor overwrite it."""
    await keep(service, 1)
    await keep(service, 2, scope="mallory", after=1)

    unknown = await found(service, 9, scope="mallory")
    assert reason(unknown) == "KEPT_ANSWER_NOT_FOUND"
    assert [await found(service, number, scope="mallory") for number in (1, 2)] == [unknown, unknown]
    assert reason(await drop(service, 1, scope="mallory")) == "KEPT_ANSWER_NOT_FOUND"
    assert reason(await keep(service, 1, scope="mallory", kept=b"Other.")) == "KEPT_ANSWER_NOT_FOUND"
    assert [one.kept for one in (await found(service, 1)).answers] == [SAID]


async def test_a_repeated_request_changes_nothing(service):
    """The first one stands."""
    first = await keep(service, 1)

    assert await keep(service, 1, kept=b"Other.") == first
    assert [one.kept for one in (await found(service, 1)).answers] == [SAID]


async def test_only_the_answer_of_a_sealed_window_is_kept(service):
    """Nothing is kept that was not judged."""
    assert reason(await keep(service, 9)) == "WINDOW_NOT_SEALED"
    assert reason(await keep(service, 1, kept=b"")) == "CONTENT_TOO_LARGE"
    assert reason(await keep(service, 1, scope="a|b")) == "INVALID_FIELD"


async def test_a_deleted_answer_is_gone_and_nothing_goes_on_from_it(service):
    """What is left of the row is gone, too: what its window says in the chain stays."""
    await keep(service, 1)
    await keep(service, 2, after=1)

    assert (await drop(service, 1)).dropped
    assert reason(await drop(service, 1)) == "KEPT_ANSWER_NOT_FOUND"
    assert reason(await found(service, 2)) == "KEPT_ANSWER_NOT_FOUND"


async def test_it_is_encrypted_and_goes_with_its_session(service, database):
    """No file has its words; the erasure of the session deletes the row, and nothing is kept of that session afterwards."""
    await keep(service, 1)
    files = b"".join(path.read_bytes() for path in database.parent.iterdir())
    erase = audit_pb2.EraseSessionRequest(
        session_id=session_id(), reason="ERASURE_REQUEST", approval_id="crp_appr_1", reviewer_id="r@x"
    )
    erased = await service.stub.EraseSession(erase)

    assert SAID not in files
    assert not erased.HasField("refusal"), erased.refusal
    assert reason(await found(service, 1)) == "KEPT_ANSWER_NOT_FOUND"
    assert service.log.kept(window_id(1)) is None
    assert reason(await keep(service, 1)) == "CONTENT_ERASED"


@pytest.mark.parametrize("change", ["scope", "previous_id", "session_id"])
async def test_a_row_that_was_moved_does_not_open(service, database, change):
    """Who can write the database cannot give an answer to another caller, or put it behind another one."""
    await keep(service, 1)
    await keep(service, 2)
    value = {"scope": "mallory", "previous_id": window_id(1), "session_id": session_id(2)}[change]
    await service.seal(1, session=2)
    with sqlite3.connect(database) as attacker:
        attacker.execute("DROP TRIGGER kept_no_update")
        attacker.execute(f"UPDATE kept SET {change} = ? WHERE window_id = ?", (value, window_id(2)))

    told = reason(await found(service, 2, scope="mallory" if change == "scope" else "alice"))
    assert told in {"CONTENT_UNREADABLE", "KEPT_ANSWER_NOT_FOUND"}
    assert change == "session_id" or told == "CONTENT_UNREADABLE"


async def test_it_goes_when_its_time_is_over(service):
    """It is found for thirty days, whether or not the task has come by; then its row is deleted."""
    await keep(service, 1)
    task = lambda now: Retention(Settings(), service.log, service.appender, service.sealer, lambda: now)  # noqa: E731

    await task(START + 29 * DAY).once()
    kept = service.log.kept(window_id(1))
    await task(START + 31 * DAY).once()

    assert kept is not None
    assert service.log.kept(window_id(1)) is None
