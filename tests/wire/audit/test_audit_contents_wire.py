"""What windows said, kept encrypted beside the chain: over a real log, through the service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.audit.store.log_sql import SqliteLog
from interlock.domain.chain.prefix import link_of
from interlock.runtime.keys.derivation import Keyring
from tests.support.audit.audit import Attacker, Service, serving, session_id, window, window_id
from tests.support.audit.old_log import OldLog

SAID = "Die Müllabfuhr kommt am Dienstag, 7 Uhr. 🗑"


def a_log(database: Path) -> SqliteLog:
    """Return a log on its newest schema."""
    log = SqliteLog(database)
    log.commit([])
    return log


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "audit.db"


@pytest_asyncio.fixture
async def service(database: Path) -> AsyncIterator[Service]:
    """The service over a SQLite log."""
    async with serving(a_log(database)) as running:
        yield running


async def contents(service: Service, *numbers: int, session: int = 1) -> audit_pb2.GetContentsResponse:
    names = [window_id(number, session) for number in numbers]
    return await service.stub.GetContents(
        audit_pb2.GetContentsRequest(session_id=session_id(session), window_ids=names)
    )


async def texts(service: Service, *numbers: int, session: int = 1) -> list[tuple[str, str]]:
    answer = await contents(service, *numbers, session=session)
    assert not answer.HasField("refusal"), answer.refusal
    return [(found.window_id, found.text) for found in answer.contents]


async def drop(service: Service, number: int) -> audit_pb2.DropContentResponse:
    return await service.stub.DropContent(
        audit_pb2.DropContentRequest(session_id=session_id(), window_id=window_id(number))
    )


async def integrity(service: Service) -> str:
    answer = await service.stub.Verify(audit_pb2.VerifyRequest(session_id=session_id()))
    return common_pb2.ChainIntegrity.Name(answer.integrity)


@pytest.mark.req("DPE-6")
async def test_what_windows_said_is_read_back_in_the_order_asked_for(service):
    """Windows that said nothing, and those that nobody knows, are left out."""
    first = await service.stub.Append(window(1, content=SAID))
    second = await service.stub.Append(window(2, first.hmac))
    await service.stub.Append(window(3, second.hmac, content="Third."))

    assert await texts(service, 3, 2, 1, 9) == [(window_id(3), "Third."), (window_id(1), SAID)]
    assert await integrity(service) == "CHAIN_INTEGRITY_VALID"


@pytest.mark.req("OBS-5")
async def test_evidence_is_kept_with_the_text_for_people_alone(service):
    """A look gets it; a call that compares windows does not; without a text it is not kept; too much of it is refused."""
    fact = common_pb2.Fact(id="f1", content="Die Tonne ist grün.")
    first = await service.stub.Append(window(1, content=SAID, evidence=[fact]))
    second = await service.stub.Append(window(2, first.hmac, evidence=[fact]))
    other = await service.stub.Append(window(1, content=SAID, evidence=[common_pb2.Fact(id="f1", content="rot")]))
    large = [common_pb2.Fact(id="f", content="x" * 16_384) for _ in range(2)]
    refused = await service.stub.Append(window(3, second.hmac, content=SAID, evidence=large))
    looked = await service.stub.GetContents(
        audit_pb2.GetContentsRequest(session_id=session_id(), window_ids=[window_id(1), window_id(2)], viewer="ann")
    )

    assert [(one.window_id, one.text, list(one.evidence)) for one in looked.contents] == [(window_id(1), SAID, [fact])]
    assert [list(one.evidence) for one in (await contents(service, 1)).contents] == [[]]
    assert (other.refusal.reason, refused.refusal.reason) == ("WINDOW_SEALED_DIFFERENTLY", "EVIDENCE_TOO_LARGE")
    assert await integrity(service) == "CHAIN_INTEGRITY_VALID"


async def test_a_repeated_append_keeps_the_first_content(service):
    """The same request again is a duplicate; the same window with other words is a conflict."""
    await service.stub.Append(window(1, content=SAID))
    again = await service.stub.Append(window(1, content=SAID))
    other = await service.stub.Append(window(1, content="Something else."))

    assert again.duplicate
    assert other.refusal.reason == "WINDOW_SEALED_DIFFERENTLY"
    assert await texts(service, 1) == [(window_id(1), SAID)]


async def test_a_session_reads_its_own_contents_only(service):
    """Naming another session's window yields nothing."""
    await service.seal(1, content=SAID)
    await service.seal(1, session=2, content="Another's.")

    answer = await service.stub.GetContents(
        audit_pb2.GetContentsRequest(session_id=session_id(2), window_ids=[window_id(1), window_id(1, 2)])
    )

    assert [found.text for found in answer.contents] == ["Another's."]


async def test_a_dropped_content_is_left_out_and_the_chain_says_so(service):
    """It happens once; the seal stays valid, since it holds the hash of the encrypted bytes alone."""
    await service.seal(2, content=SAID)

    answers = [await drop(service, 1), await drop(service, 1), await drop(service, 7)]

    assert [answer.dropped for answer in answers] == [True, False, False]
    assert await texts(service, 1) == []
    types = [event.event_type for event in service.log.chain(session_id()).events]
    assert types.count("CONTENT_DROPPED") == 1
    assert await integrity(service) == "CHAIN_INTEGRITY_VALID"


async def test_a_content_that_vanished_otherwise_is_a_refusal(service):
    """An answer is not compared with less than there was."""
    await service.seal(1, content=SAID)
    service.log.commit([lambda writing: writing.drop_content(session_id(), window_id(1))])

    assert (await contents(service, 1)).refusal.reason == "CONTENT_MISSING"


async def test_a_caller_cannot_claim_that_a_content_was_dropped(service):
    """CONTENT_DROPPED is written by the service alone."""
    answer = await service.record(audit_pb2.NewEvent(event_type="CONTENT_DROPPED", severity=2))

    assert answer.refusal.reason == "RESERVED_EVENT_TYPE"


async def test_too_much_content_is_refused_by_name(service):
    """Nothing of the window is sealed then."""
    answer = await service.stub.Append(window(1, content="x" * 4_194_305))

    assert answer.refusal.reason == "CONTENT_TOO_LARGE"
    assert service.log.chain(session_id()).windows == ()


async def test_the_file_holds_no_word_of_it(database):
    """Neither the database nor its log."""
    async with serving(a_log(database)) as service:
        await service.seal(1, content=SAID)
        stored = b"".join(path.read_bytes() for path in database.parent.iterdir())

    assert b"abfuhr" not in stored
    assert window_id(1).encode() in stored


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE contents SET sealed = (SELECT sealed FROM contents ORDER BY window_id DESC LIMIT 1)", "UNREADABLE"),
        ("UPDATE contents SET sealed = x'00'", "UNREADABLE"),
        ("DELETE FROM content_keys", "MISSING"),
        ("DELETE FROM contents", "MISSING"),
        ("UPDATE content_keys SET wrapped = x'00'", "UNREADABLE"),
        ("UPDATE content_keys SET key_version = 7", "UNREADABLE"),
    ],
)
async def test_an_attacker_with_the_file_is_noticed(database, statement, reason):
    """Contents that were swapped, edited or taken away are never read as if nothing had happened (PRV-2)."""
    async with serving(a_log(database)) as service:
        await service.seal(2, content=SAID)
        with Attacker(database) as attack:
            attack(statement)

        assert (await contents(service, 1)).refusal.reason == f"CONTENT_{reason}"


async def test_an_attacker_cannot_hide_that_there_was_a_content(database):
    """The hash is part of the seal, so wiping it breaks the chain."""
    async with serving(a_log(database)) as service:
        await service.seal(1, content=SAID)
        with Attacker(database) as attack:
            attack("UPDATE windows SET content_hash = ''")

        assert (await contents(service, 1)).refusal.reason == "CHAIN_BROKEN"


async def test_another_master_key_opens_nothing(database):
    """Wrapped keys open under the key that wrapped them; the chain does not verify either."""
    async with serving(a_log(database)) as service:
        await service.seal(1, content=SAID)
    async with serving(a_log(database), keyring=Keyring({1: bytes(32 * [9])})) as service:
        held = service.log.contents(session_id(), [window_id(1)])
        [window_] = service.log.chain(session_id()).windows
        links = {window_id(1): link_of(window_)}
        with pytest.raises(Exception, match="decrypted"):
            list(service.sealer.vault.open(session_id(), links, links, held, dropped=(), released=()))


async def test_a_log_of_the_first_schema_goes_on(database, tmp_path):
    """The migration adds; windows sealed before it verify and count as having said nothing."""
    with OldLog(database, schema=1) as old:
        old.seal(1)

    async with serving(a_log(database)) as service:
        [tip] = service.log.chain(session_id()).windows
        await service.stub.Append(window(2, tip.hmac, content=SAID))

        assert await texts(service, 1, 2) == [(window_id(2), SAID)]
        assert await integrity(service) == "CHAIN_INTEGRITY_VALID"
