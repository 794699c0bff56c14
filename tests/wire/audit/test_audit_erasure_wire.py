"""Erasure and retention: what is gone is gone for good, the chain says so, and nothing else may be missing (AUD-5, A-44)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.audit.erasure.retention import Retention
from interlock.audit.store.log import AuditLog
from interlock.audit.store.log_postgres import PostgresLog
from interlock.audit.store.log_sql import SqliteLog
from interlock.audit.wiring import open_service
from interlock.domain.merkle.entries import LOG_SESSION
from interlock.runtime.settings.model import Settings
from interlock.sidecar.trail import response_headers
from tests.support.audit.audit import (
    MASTER,
    START,
    Attacker,
    Service,
    event,
    hash_of,
    serving,
    session_id,
    verify_message,
    window,
    window_id,
)
from tests.support.audit.old_log import OldLog

pytestmark = pytest.mark.req("AUD-5")

SAID = "The contract ends on 12 March."
APPROVED = {"approval_id": "crp_appr_" + "1" * 32, "reviewer_id": "reviewer@company.com"}
DAY = 86_400_000_000
BOTH = [window_id(1), window_id(2)]


def a_log(path: Path) -> AuditLog:
    """A log on a file that is there."""
    made = SqliteLog(path)
    made.commit([])
    return made


@pytest.fixture(params=["sqlite", "postgres"])
def log(request: pytest.FixtureRequest) -> Iterator[AuditLog]:
    """A log on each database."""
    sqlite = request.param == "sqlite"
    made = (
        a_log(request.getfixturevalue("tmp_path") / "audit.db")
        if sqlite
        else PostgresLog(request.getfixturevalue("postgres_url"))
    )
    made.commit([])
    yield made


@pytest_asyncio.fixture
async def service(log: AuditLog) -> AsyncIterator[Service]:
    """The service, with a session of two windows that said something."""
    async with serving(log) as made:
        await made.seal(2, content=SAID)
        yield made


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A file, for those who open it themselves."""
    return tmp_path / "attacked.db"


async def erase(service: Service, *, session: int = 1, **fields: str) -> audit_pb2.EraseSessionResponse:
    asked = {"session_id": session_id(session), "reason": "ERASURE_REQUEST", **APPROVED, **fields}
    return await service.stub.EraseSession(audit_pb2.EraseSessionRequest(**asked))


async def verify(service: Service, session: int = 1) -> audit_pb2.VerifyResponse:
    return await service.stub.Verify(audit_pb2.VerifyRequest(session_id=session_id(session)))


async def report(service: Service, number: int = 1) -> audit_pb2.GetReportResponse:
    return await service.stub.GetReport(audit_pb2.GetReportRequest(window_id=window_id(number)))


async def contents(service: Service) -> audit_pb2.GetContentsResponse:
    return await service.stub.GetContents(
        audit_pb2.GetContentsRequest(session_id=session_id(), window_ids=[window_id(1), window_id(2)])
    )


# --- what is stored


async def test_a_report_is_stored_encrypted_and_read_back_as_it_was(service, log):
    """The bytes at rest hold none of its text; its hash is that of its canonical JSON all the same."""
    stored = log.report(window_id=window_id(1))
    answer = await report(service)

    assert b"Claim 0" not in stored.body
    assert json.loads(answer.report_json)["claims_total"] == 2
    assert answer.report_hash == stored.window.report_hash != stored.window.sealed_report_hash


async def test_a_report_of_an_older_version_stays_readable(database):
    """Plain bytes, as they were stored then, under the same hash."""
    with OldLog(database) as old:
        old.seal(1)

    async with serving(a_log(database)) as service:
        answer = await report(service)
        second = await service.stub.Append(window(2, service.log.chain(session_id()).windows[0].hmac))

        assert json.loads(answer.report_json)["claims_total"] == 2
        assert second.integrity == common_pb2.CHAIN_INTEGRITY_VALID


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE reports SET body = (SELECT body FROM reports WHERE window_id = :other) WHERE window_id = :one",
        "UPDATE reports SET body = x'7b7d' WHERE window_id = :one",
        "UPDATE reports SET body = substr(body, 1, length(body) - 1) WHERE window_id = :one",
    ],
    ids=["another's", "plain", "cut"],
)
async def test_a_report_that_was_swapped_is_found_without_any_key(database, attack):
    """The seal holds the hash of the stored bytes."""
    async with serving(a_log(database)) as service:
        await service.seal(2)
        with Attacker(database) as attacker:
            attacker.connection.execute(attack, {"one": window_id(1), "other": window_id(2)})

        assert (await report(service)).refusal.reason == "CHAIN_BROKEN"
        assert verify_message(service.log, session_id()) == ("BROKEN", ["REPORT_HASH_MISMATCH"])


# --- erasing


@pytest.mark.req("PRV-2")
async def test_an_erased_session_verifies_as_truncated_and_says_who_and_why(service, log):
    """Never VALID, never BROKEN: contents, reports and key are gone, hashes and charges are not (A-44)."""
    before = await verify(service)
    head = log.chain(session_id()).head[1]

    answer = await erase(service)
    found = await verify(service)

    assert (answer.erased, before.integrity) == (True, common_pb2.CHAIN_INTEGRITY_VALID)
    assert (found.integrity, list(found.faults)) == (common_pb2.CHAIN_INTEGRITY_TRUNCATED, [])
    assert (found.windows, found.charged_micros, found.chain_tip) == (2, before.charged_micros, before.chain_tip)
    [mark] = found.marks
    assert (mark.event_type, json.loads(mark.data_json)) == (
        "CONTENT_ERASED",
        {"reason": "ERASURE_REQUEST", "contents": 2, "reports": 2, "head": head, **APPROVED},
    )
    assert (log.contents(session_id(), ()).key, dict(log.contents(session_id(), BOTH).sealed)) == (None, {})


async def test_what_was_erased_is_refused_by_its_name(service):
    """Reports, contents, and going on with the session; recording what happened still works."""
    sealed = service.log.chain(session_id()).windows[-1]
    await erase(service)

    reasons = [
        (await report(service)).refusal.reason,
        (await contents(service)).refusal.reason,
        (await service.stub.Append(window(3, sealed.hmac))).refusal.reason,
    ]

    assert reasons == ["CONTENT_ERASED"] * 3
    assert (await service.record(event())).sequence
    assert (await verify(service)).integrity == common_pb2.CHAIN_INTEGRITY_TRUNCATED


@pytest.mark.parametrize("how", ["erased", "truncated"])
async def test_what_was_erased_is_in_none_of_the_files_any_more(database, how):
    """Neither the wrapped key nor the encrypted bytes: not in a freed page, and not in the write-ahead log."""
    async with serving(a_log(database)) as service:
        await service.seal(2, content=SAID)
        held = service.log.contents(session_id(), BOTH)
        gone = [held.key[1], *held.sealed.values(), service.log.report(window_id=window_id(1)).body[-64:]]
        files = lambda: b"".join(path.read_bytes() for path in database.parent.iterdir())  # noqa: E731 - read again and again
        before = [secret in files() for secret in gone]

        if how == "erased":
            await erase(service)
        else:
            await retention(service, START + 400 * DAY, events_days=365).once()

        assert before == [True] * 4
        assert [secret in files() for secret in gone] == [False] * 4


async def test_a_seal_that_is_repeated_after_the_erasure_says_so(service):
    """The caller learns of the window as it was sealed, and that the chain is not whole any more: PARTIAL in a header."""
    await erase(service)

    again = await service.stub.Append(window(1, content=SAID))

    assert (again.duplicate, again.integrity) == (True, common_pb2.CHAIN_INTEGRITY_TRUNCATED)
    assert response_headers.of_seal(again, window_id(1), "")["CRP-Provenance-Chain-Integrity"] == "PARTIAL"


async def test_erasing_again_changes_nothing(service, log):
    """One mark, however often it is asked."""
    await erase(service)
    events = len(log.chain(session_id()).events)

    again = await erase(service, reason="LEGAL_ORDER")

    assert (again.erased, again.HasField("refusal")) == (False, False)
    assert len(log.chain(session_id()).events) == events


async def test_other_sessions_are_not_touched(service):
    """One data key per session."""
    await service.seal(1, session=2, content=SAID)
    await erase(service, session=2)

    assert (await verify(service)).integrity == common_pb2.CHAIN_INTEGRITY_VALID
    assert [found.text for found in (await contents(service)).contents] == [SAID, SAID]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"approval_id": ""}, "APPROVAL_REQUIRED"),
        ({"reviewer_id": ""}, "APPROVAL_REQUIRED"),
        ({"approval_id": "a b"}, "INVALID_APPROVAL"),
        ({"reason": "RETENTION"}, "INVALID_REASON"),
        ({"reason": "because"}, "INVALID_REASON"),
        ({"session_id": LOG_SESSION}, "LOG_SESSION"),
        ({"session_id": session_id(9)}, "SESSION_NOT_FOUND"),
        ({"session_id": "x"}, "INVALID_ID"),
    ],
)
async def test_nothing_is_erased_without_an_approval_and_a_reason(service, fields, reason):
    """Retention's reason is not a caller's, and the log's own session is nobody's."""
    answer = await erase(service, **fields)

    assert (answer.refusal.reason, answer.erased) == (reason, False)
    assert (await verify(service)).integrity == common_pb2.CHAIN_INTEGRITY_VALID


async def test_a_broken_chain_is_evidence_and_is_not_erased(database):
    """Erasure is no way to make a fault go away (A-44)."""
    async with serving(a_log(database)) as service:
        await service.seal(2)
        with Attacker(database) as attacker:
            attacker("UPDATE windows SET charge_micros = 1 WHERE window_number = 1")

        answer = await erase(service)

        assert answer.refusal.reason == "CHAIN_BROKEN"
        assert service.log.report(window_id=window_id(2)).body


@pytest.mark.parametrize(
    ("attack", "faults"),
    [
        ("UPDATE windows SET charge_micros = 1 WHERE window_number = 1", ["SEAL_MISMATCH"]),
        ("DELETE FROM events WHERE sequence = 2", ["SEQUENCE_GAP"]),
        ("UPDATE events SET data_json = '{}' WHERE event_type = 'CONTENT_ERASED'", ["HMAC_MISMATCH"]),
    ],
)
async def test_a_fault_in_an_erased_session_is_broken(database, attack, faults):
    """A mark excuses what it names and nothing else."""
    async with serving(a_log(database)) as service:
        await service.seal(2)
        await erase(service)
        with Attacker(database) as attacker:
            attacker(attack)

        assert verify_message(service.log, session_id()) == ("BROKEN", faults)


@pytest.mark.parametrize("forged", [False, True], ids=["no mark", "forged mark"])
async def test_reports_that_are_missing_without_a_signed_mark_stay_a_fault(database, forged):
    """Deleting is not erasing, and neither is a mark that nobody with the key wrote."""
    async with serving(a_log(database)) as service:
        await service.seal(2)
        with Attacker(database) as attacker:
            attacker("DELETE FROM reports")
            if forged:
                attacker(
                    "INSERT INTO events SELECT session_id, max(sequence) + 1, '', 'CONTENT_ERASED', 4, timestamp, '{}',"
                    " key_version, ? FROM events",
                    hash_of(7),
                )

        verdict, faults = verify_message(service.log, session_id())
        refused = await report(service)

        assert verdict == ("BROKEN" if forged else "PARTIAL")
        assert faults == (["HMAC_MISMATCH"] if forged else []) + ["MISSING_REPORT"] * (0 if forged else 2)
        assert refused.refusal.reason == "CHAIN_BROKEN"


# --- retention


class At:
    """A clock that stands still."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def retention(
    service: Service, now: int, contents_days: int | None = None, events_days: int | None = None
) -> Retention:
    settings = Settings(
        master_key=MASTER.hex(), retention_contents_days=contents_days, retention_events_days=events_days
    )
    return Retention(settings, service.log, service.appender, service.sealer, At(now))


async def test_contents_are_erased_when_their_time_is_over(service, log):
    """Not a day before, and once."""
    early = await retention(service, START + 29 * DAY, contents_days=30).once()
    due = retention(service, START + 31 * DAY, contents_days=30)

    assert (early, await due.once(), await due.once()) == ((0, 0), (1, 0), (0, 0))
    found = await verify(service)
    assert found.integrity == common_pb2.CHAIN_INTEGRITY_TRUNCATED
    assert json.loads(found.marks[0].data_json)["reason"] == "RETENTION"
    assert (await report(service)).refusal.reason == "CONTENT_ERASED"


async def test_events_are_removed_when_their_time_is_over_and_their_leaves_stay(service, log):
    """A signed mark names the session's last sequence, head, charges and positions; the hole is never silent."""
    await service.record(event(), session=2)
    before, chain = await verify(service), log.chain(session_id())
    last, head = chain.head
    positions, hashes = log.positions(session_id()), log.leaf_hashes(0, 99)

    assert await retention(service, START + 366 * DAY, events_days=365).once() == (0, 2)
    found = await verify(service)

    assert (found.integrity, list(found.faults)) == (common_pb2.CHAIN_INTEGRITY_TRUNCATED, [])
    assert (found.events, found.windows) == (1, 0)
    assert (found.charged_micros, found.chain_tip) == (before.charged_micros, before.chain_tip)
    [mark] = found.marks
    assert (mark.sequence, json.loads(mark.data_json)) == (
        last + 1,
        {
            "reason": "RETENTION", "last_sequence": last, "head": head, "windows": 2,
            "charged_micros": before.charged_micros, "chain_tip": before.chain_tip,
            "positions": [[positions[1], positions[last] + 1]],
        },
    )  # fmt: skip
    assert log.leaf_hashes(0, 99)[: len(hashes)] == hashes
    assert [entry.event is None for entry in log.entries(0, len(hashes))] == [True] * len(hashes)


async def test_truncating_again_changes_nothing(service, log):
    """The mark is not removed by the next round."""
    task = retention(service, START + 4000 * DAY, events_days=365, contents_days=30)
    await task.once()
    events = log.chain(session_id()).events

    assert await task.once() == (0, 0)
    assert log.chain(session_id()).events == events


async def test_a_session_that_was_erased_first_is_truncated_later(service):
    """Contents after a month, events after a year."""
    assert await retention(service, START + 40 * DAY, contents_days=30, events_days=365).once() == (1, 0)
    assert await retention(service, START + 400 * DAY, contents_days=30, events_days=365).once() == (0, 1)

    found = await verify(service)

    assert (found.integrity, [mark.event_type for mark in found.marks]) == (
        common_pb2.CHAIN_INTEGRITY_TRUNCATED,
        ["TRUNCATED"],
    )


async def test_a_truncated_session_goes_on_verifying_with_what_comes_later(service, log):
    """Its next event is chained to the mark; a window is not sealed on what is gone."""
    await retention(service, START + 400 * DAY, events_days=365).once()

    assert (await service.record(event())).sequence == log.chain(session_id()).head[0]
    assert verify_message(log, session_id()) == ("TRUNCATED", [])
    assert (await service.stub.Append(window(1))).refusal.reason == "CONTENT_ERASED"


async def test_a_broken_session_is_kept_and_holds_up_nobody(database):
    """What does not verify is evidence; the others are removed in time."""
    async with serving(a_log(database)) as service:
        for session in (1, 2, 3):
            await service.seal(1, session=session)
        with Attacker(database) as attacker:
            attacker("UPDATE windows SET charge_micros = 1 WHERE session_id = ?", session_id(2))

        assert await retention(service, START + 400 * DAY, events_days=365).once() == (0, 2)
        assert verify_message(service.log, session_id(2)) == ("BROKEN", ["SEAL_MISMATCH"])


@pytest.mark.parametrize(
    ("attack", "faults"),
    [
        ("UPDATE events SET data_json = replace(data_json, 'windows\":2', 'windows\":1')", ["HMAC_MISMATCH"]),
        ("UPDATE events SET sequence = sequence + 1", ["SEQUENCE_GAP"]),
        ("UPDATE events SET hmac = ?", ["HMAC_MISMATCH"]),
    ],
)
async def test_a_mark_that_was_changed_is_broken(database, attack, faults):
    """The mark of a truncated session is all that is left of it, and it is signed."""
    async with serving(a_log(database)) as service:
        await service.seal(2)
        await retention(service, START + 400 * DAY, events_days=365).once()
        with Attacker(database) as attacker:
            attacker(attack, *([hash_of(3)] if "?" in attack else []))

        assert verify_message(service.log, session_id()) == ("BROKEN", faults)


async def test_the_events_of_a_session_cut_off_without_a_mark_are_broken(database):
    """From the front as retention does it, but with nobody's signature."""
    async with serving(a_log(database)) as service:
        await service.seal(2)
        with Attacker(database) as attacker:
            attacker("DELETE FROM events WHERE sequence <= 3")
            attacker("DELETE FROM reports WHERE window_id = ?", window_id(1))
            attacker("DELETE FROM windows WHERE window_number = 1")

        verdict, faults = verify_message(service.log, session_id())

        assert verdict == "BROKEN"
        assert "SEQUENCE_GAP" in faults


async def test_retention_is_off_by_default_and_runs_by_itself_when_set(database):
    """The service of the settings removes what is past its time without being asked."""
    async with serving(a_log(database)) as service:
        await service.seal(2)
    given = {"state_dir": database.parent, "master_key": MASTER.hex(), "audit_url": f"sqlite:///{database}"}
    opened = await open_service(Settings(**given))
    kept = await opened.servicer.Verify(audit_pb2.VerifyRequest(session_id=session_id()), None)
    await opened.close()

    opened = await open_service(Settings(**given, retention_events_days=1))
    look = partial(opened.servicer.Verify, audit_pb2.VerifyRequest(session_id=session_id()), None)
    while (found := await look()).integrity == common_pb2.CHAIN_INTEGRITY_VALID:
        pass
    await opened.close()

    assert kept.integrity == common_pb2.CHAIN_INTEGRITY_VALID
    assert found.integrity == common_pb2.CHAIN_INTEGRITY_TRUNCATED
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM windows").fetchone() == (0,)
    connection.close()
