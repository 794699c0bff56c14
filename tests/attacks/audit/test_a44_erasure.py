"""A-44: erasure hides no evidence: contents go, the chain stays and says so, and one person alone erases nothing."""

from __future__ import annotations

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.audit.store.log_sql import SqliteLog
from interlock.domain import approval
from interlock.domain.approval import Approval
from interlock.domain.errors import Refused
from tests.support.audit.audit import Attacker, serving, session_id, window_id

SESSION = session_id(1)
BY = {"approval_id": "crp_appr_" + "0a" * 16, "reviewer_id": "alice@example.com"}


def asked(**changed) -> audit_pb2.EraseSessionRequest:
    return audit_pb2.EraseSessionRequest(**{"session_id": SESSION, **BY, **changed})


def opened(path) -> SqliteLog:
    """A log on SQLite that is there, as the service finds it when it starts."""
    log = SqliteLog(path)
    log.commit([lambda writing: writing.touch()])
    return log


async def integrity(service) -> int:
    verdict = await service.stub.Verify(audit_pb2.VerifyRequest(session_id=SESSION))
    return verdict.integrity


@pytest.fixture
async def service(tmp_path):
    """An audit service on SQLite with a session of three windows that keep their contents, and one beside it."""
    async with serving(opened(tmp_path / "audit.db")) as made:
        await made.seal(3)
        await made.seal(2, session=2)
        yield made


@pytest.mark.req("AUD-5")
async def test_a44_after_an_erasure_the_chain_says_what_it_is(service):
    """Neither VALID, which would hide it, nor BROKEN, which would cry wolf; the neighbour is as it was."""
    before = await integrity(service)
    erased = await service.stub.EraseSession(asked())
    again = await service.stub.EraseSession(asked())
    events = [answer.event async for answer in service.stub.Export(audit_pb2.ExportRequest(session_id=SESSION))]
    neighbour = await service.stub.Verify(audit_pb2.VerifyRequest(session_id=session_id(2)))

    assert before == common_pb2.CHAIN_INTEGRITY_VALID
    assert (erased.erased, again.erased) == (True, False)
    assert await integrity(service) == common_pb2.CHAIN_INTEGRITY_TRUNCATED
    assert neighbour.integrity == common_pb2.CHAIN_INTEGRITY_VALID
    assert [event.event_type for event in events].count("CONTENT_ERASED") == 1
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))


@pytest.mark.req("AUD-5")
async def test_a44_what_was_erased_is_gone_and_what_was_decided_is_not(service):
    """The report cannot be read any more; risk, charge and hashes of the window are evidence and stay."""
    await service.stub.EraseSession(asked())
    report = await service.stub.GetReport(audit_pb2.GetReportRequest(window_id=window_id(1)))
    window = await service.stub.GetWindow(audit_pb2.GetWindowRequest(session_id=SESSION, window_id=window_id(1)))

    assert report.HasField("refusal")
    assert not window.HasField("refusal")
    assert window.hmac


@pytest.mark.req("AUD-5", "OVR-3")
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"approval_id": ""}, "APPROVAL_REQUIRED"),
        ({"reviewer_id": ""}, "APPROVAL_REQUIRED"),
        ({"reason": "because"}, "INVALID_REASON"),
        ({"session_id": "crp_sess_*"}, "INVALID_ID"),
    ],
)
async def test_a44_nobody_erases_alone(service, changed, reason):
    """Without the approval of a second person, and for anything but one session and a reason of the list: refused, nothing gone."""
    answer = await service.stub.EraseSession(asked(**changed))

    assert answer.refusal.reason == reason
    assert await integrity(service) == common_pb2.CHAIN_INTEGRITY_VALID


@pytest.mark.req("OVR-3", "AUD-5")
def test_a44_an_approval_erases_the_session_that_it_names():
    """What a reviewer signed for one session, or for another action, erases no other."""
    given = Approval("crp_appr_" + "0a" * 16, "alice", approval.ERASE, {"session": SESSION}, 100, 200)
    approval.require(given, approval.ERASE, {"session": SESSION}, now_s=150)

    for action, scope in (
        (approval.ERASE, {"session": session_id(2)}),
        (approval.DELEGATE, {"session": SESSION, "agent": ""}),
    ):
        with pytest.raises(Refused) as refused:
            approval.require(given, action, scope, now_s=150)
        assert refused.value.reason == "APPROVAL_MISMATCH"


@pytest.mark.req("AUD-2", "AUD-5")
async def test_a44_evidence_taken_without_an_erasure_is_no_erasure(tmp_path):
    """Whoever deletes rows behind the service's back gets no TRUNCATED: the chain is broken, and says where."""
    path = tmp_path / "audit.db"
    async with serving(opened(path)) as service:
        await service.seal(3)
        Attacker(path)("DELETE FROM events WHERE session_id = ? AND sequence = 2", SESSION)
        verdict = await service.stub.Verify(audit_pb2.VerifyRequest(session_id=SESSION))

    assert verdict.integrity == common_pb2.CHAIN_INTEGRITY_BROKEN
