"""Held responses in the audit service alone: holding, deciding, handing out, ending, each by its own clock (OVR-2 to OVR-5)."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.store.log_sql import SqliteLog
from interlock.domain.chain.chain import content_hash
from interlock.domain.held import Held, packed
from tests.support.audit.audit import START, hash_of, serving, session_id, window, window_id
from tests.support.sidecar.oversight import decision, token_for

BODY, POLICY, HOLD_S = b'{"choices":[]}', hash_of(5), 600
CLAIM = hash_of(70)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_us = START

    def __call__(self) -> int:
        self.now_us += 1000
        return self.now_us

    def pass_s(self, seconds: int) -> None:
        self.now_us += seconds * 1_000_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def service(tmp_path, clock):
    """The service over a real SQLite log."""
    log = SqliteLog(tmp_path / "audit.db", clock=clock)
    log.commit([])
    async with serving(log, clock=clock) as running:
        yield running


def holding(session: int = 1, body: bytes = BODY, **fields) -> audit_pb2.AppendRequest:
    held = packed(Held("chat", False, {}, body, b"", "", {}))
    asked = {
        "status": "HELD", "content": "said", "held": held, "hold_s": HOLD_S, "policy_hash": POLICY,
        "response_hash": content_hash(BODY), **fields,
    }  # fmt: skip
    return window(1, session=session, **asked)


async def hold(service, session: int = 1, **fields) -> audit_pb2.HeldItem:
    answer = await service.stub.Append(holding(session, **fields))
    assert not answer.HasField("refusal"), answer.refusal
    return (await service.stub.GetHeld(audit_pb2.GetHeldRequest(window_id=window_id(1, session)))).item


def token(item, clock, **how) -> str:
    return token_for(item, issued_at=clock.now_us // 1_000_000, **{"life_s": 2 * HOLD_S, **how})


def claim(item, approved: str, **changes) -> audit_pb2.ReleaseHeldRequest:
    said = decision(approved)
    asked = {
        "session_id": item.session_id, "window_id": item.window_id, "approval_id": said.approval_id,
        "reviewer_id": said.reviewer_id, "response_hash": item.response_hash, "claim": CLAIM, **changes,
    }  # fmt: skip
    return audit_pb2.ReleaseHeldRequest(**asked)


async def kinds(service, session: int = 1) -> list[str]:
    return [event.event_type for event in service.log.chain(session_id(session)).events][3:]


@pytest.mark.req("OVR-2")
async def test_a_hold_is_sealed_with_its_window_and_only_with_one_that_is_held(service, clock):
    """A repeated request holds once; other bytes under the same window are a conflict; no other status holds."""
    item = await hold(service)
    again = await service.stub.Append(holding())
    other = await service.stub.Append(holding(hold_s=HOLD_S + 1))
    completed = await service.stub.Append(holding(2, status="COMPLETED"))
    found = await service.stub.GetHeld(audit_pb2.GetHeldRequest(window_id=item.window_id))

    assert (again.duplicate, other.refusal.reason) == (True, "WINDOW_SEALED_DIFFERENTLY")
    assert completed.refusal.reason == "INVALID_HOLD"
    assert (item.status, item.policy_hash, item.root_session_id) == (1, POLICY, session_id())
    assert found.held == holding().held


@pytest.mark.req("OVR-5")
async def test_too_late_is_denied_before_any_cleaning_up(service, clock):
    """The hold ends by the service's clock: undecided it cannot be decided, approved it cannot be handed out."""
    late, approved = await hold(service, 1), await hold(service, 2)
    good = token(approved, clock)
    await service.stub.DecideHeld(decision(good))
    clock.pass_s(HOLD_S + 1)
    decided = await service.stub.DecideHeld(decision(token(late, clock)))
    released = await service.stub.ReleaseHeld(claim(approved, good))
    read = await service.stub.GetHeld(audit_pb2.GetHeldRequest(window_id=late.window_id))

    assert decided.refusal.reason == "HOLD_EXPIRED"
    assert released.refusal.reason == "HOLD_EXPIRED"
    assert (read.item.status, read.held) == (audit_pb2.HELD_STATUS_EXPIRED, b"")


@pytest.mark.req("OVR-5")
async def test_an_end_is_written_down_once_and_the_bytes_are_deleted(service, clock):
    """OVERSIGHT_EXPIRED and what nobody was told; the chain goes on verifying."""
    item = await hold(service)
    before = await service.servicer.holds.end_overdue()
    clock.pass_s(HOLD_S + 1)
    ended = [await service.servicer.holds.end_overdue(), await service.servicer.holds.end_overdue()]
    found = await service.stub.Verify(audit_pb2.VerifyRequest(session_id=session_id()))

    assert (before, ended) == (0, [1, 0])
    assert await kinds(service) == ["OVERSIGHT_EXPIRED", "CONTENT_DROPPED"]
    assert service.log.held(item.window_id).sealed == b""
    assert not found.faults


@pytest.mark.req("OVR-5")
async def test_one_hold_that_cannot_be_read_keeps_no_other_from_its_end(service, clock, tmp_path):
    """A trail that somebody bent is logged; the holds behind it are denied and deleted all the same."""
    bent, sound = await hold(service, 1), await hold(service, 2)
    said = "UPDATE events SET event_type = 'OVERSIGHT_EXPIRED', data_json = '{' WHERE sequence = 1 AND window_id = "
    tampered(tmp_path / "audit.db", "events_no_update", f"{said}'{bent.window_id}'")
    clock.pass_s(HOLD_S + 1)

    assert await service.servicer.holds.end_overdue() == 1
    assert service.log.held(sound.window_id).sealed == b""


@pytest.mark.req("OVR-4")
async def test_the_same_claim_is_served_for_a_minute_and_no_longer(service, clock):
    """Then the bytes are deleted too; another claim is never served."""
    item = await hold(service)
    good = token(item, clock)
    await service.stub.DecideHeld(decision(good))
    first = await service.stub.ReleaseHeld(claim(item, good))
    clock.pass_s(30)
    again = await service.stub.ReleaseHeld(claim(item, good))
    other = await service.stub.ReleaseHeld(claim(item, good, claim=hash_of(71)))
    kept = await service.servicer.holds.end_overdue()
    clock.pass_s(31)
    late = await service.stub.ReleaseHeld(claim(item, good))
    dropped = await service.servicer.holds.end_overdue()

    assert (first.held, again.held) == (holding().held, holding().held)
    assert (other.refusal.reason, late.refusal.reason) == ("HELD_ALREADY_RELEASED", "HELD_ALREADY_RELEASED")
    assert (kept, dropped, service.log.held(item.window_id).sealed) == (0, 1, b"")
    assert await kinds(service) == ["OVERSIGHT_APPROVED", "RESPONSE_RELEASED", "RESPONSE_REPEATED"]


@pytest.mark.req("OVR-4")
async def test_a_handout_that_somebody_deletes_stays_on_record(service, clock, tmp_path):
    """Whoever can write to the tables hands nothing out a second time by that: the chain says that it left."""
    item = await hold(service)
    good = token(item, clock)
    await service.stub.DecideHeld(decision(good))
    first = await service.stub.ReleaseHeld(claim(item, good))
    tampered(tmp_path / "audit.db", "handouts_no_delete", "DELETE FROM handouts")
    again = await service.stub.ReleaseHeld(claim(item, good, claim=hash_of(71)))

    assert first.held
    assert (again.held, again.refusal.reason) == (b"", "HELD_ALREADY_RELEASED")


@pytest.mark.req("OVR-3")
async def test_an_approval_that_somebody_prolongs_ends_when_its_reviewer_said(service, clock, tmp_path):
    """The chain has the reviewer's expiry; the row alone says nothing."""
    item = await hold(service)
    good = token(item, clock, life_s=60)
    await service.stub.DecideHeld(decision(good))
    tampered(tmp_path / "audit.db", "decisions_no_update", "UPDATE decisions SET expires_at = '2999-01-01T00:00:00Z'")
    clock.pass_s(61)
    late = await service.stub.ReleaseHeld(claim(item, good))

    assert (late.held, late.refusal.reason) == (b"", "HOLD_EXPIRED")


def tampered(database: Path, trigger: str, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(statement)


@pytest.mark.req("OVR-3")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"response_hash": hash_of(9)}, "RESPONSE_HASH_MISMATCH"),
        ({"approval_id": f"crp_appr_{9:032x}"}, "APPROVAL_MISMATCH"),
        ({"reviewer_id": "somebody@company.com"}, "APPROVAL_MISMATCH"),
        ({"session_id": session_id(9)}, "HELD_NOT_FOUND"),
        ({"claim": ""}, "INVALID_HASH"),
    ],
)
async def test_a_claim_of_something_else_is_served_nothing(service, clock, changes, reason):
    """And the response stays held for the claim that is right."""
    item = await hold(service)
    good = token(item, clock)
    early = await service.stub.ReleaseHeld(claim(item, good))
    await service.stub.DecideHeld(decision(good))
    wrong = await service.stub.ReleaseHeld(claim(item, good, **changes))
    right = await service.stub.ReleaseHeld(claim(item, good))

    assert (early.refusal.reason, wrong.refusal.reason) == ("HELD_NOT_APPROVED", reason)
    assert (wrong.held, right.held) == (b"", holding().held)


@pytest.mark.req("OVR-3")
async def test_an_approval_decides_once_in_the_whole_log(service, clock):
    """The id of a used approval decides nothing else, whatever is signed under it."""
    first, second = await hold(service, 1), await hold(service, 2)
    await service.stub.DecideHeld(decision(token(first, clock, number=1)))
    answer = await service.stub.DecideHeld(decision(token(second, clock, number=1)))

    assert answer.refusal.reason == "HELD_ALREADY_DECIDED"
    assert await kinds(service, 2) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"response_hash": hash_of(9)}, "RESPONSE_HASH_MISMATCH"),
        ({"approval_id": f"crp_appr_{9:032x}"}, "APPROVAL_MISMATCH"),
        ({"reviewer_id": "somebody@company.com"}, "APPROVAL_MISMATCH"),
        ({"approved": False}, "APPROVAL_MISMATCH"),
        ({"token": "approved:sha256:x.y"}, "APPROVAL_INVALID"),
        ({"reason": "because"}, "INVALID_REASON"),
        ({"window_id": window_id(9)}, "HELD_NOT_FOUND"),
        ({"window_id": "../etc"}, "INVALID_ID"),
    ],
)
async def test_a_decision_that_is_not_what_its_token_says_is_none(service, clock, changes, reason):
    """The log checks what it is told against the signed text, whoever tells it."""
    item = await hold(service)
    answer = await service.stub.DecideHeld(decision(token(item, clock), **changes))

    assert answer.refusal.reason == reason
    assert await kinds(service) == []


async def test_a_session_that_was_erased_holds_nothing_any_more(service, clock):
    """Neither for a decision nor for a release; the reason says so."""
    item = await hold(service)
    good = token(item, clock)
    erased = audit_pb2.EraseSessionRequest(
        session_id=item.session_id, approval_id=f"crp_appr_{3:032x}", reviewer_id="privacy@company.com",
        reason="ERASURE_REQUEST",
    )  # fmt: skip
    await service.stub.EraseSession(erased)
    answer = await service.stub.DecideHeld(decision(good))
    read = await service.stub.GetHeld(audit_pb2.GetHeldRequest(window_id=item.window_id))

    assert answer.refusal.reason == "CONTENT_ERASED"
    assert (read.held, read.item.status) == (b"", audit_pb2.HELD_STATUS_EXPIRED)


async def test_the_queue_is_paged_and_filtered(service, clock):
    """The oldest first; by state and by session; a page tells whether there is more."""
    items = [await hold(service, number) for number in (1, 2, 3)]
    await service.stub.DecideHeld(decision(token(items[1], clock)))
    pending = audit_pb2.HELD_STATUS_PENDING
    first = await service.stub.ListHeld(audit_pb2.ListHeldRequest(status=pending, limit=1))
    rest = await service.stub.ListHeld(audit_pb2.ListHeldRequest(status=pending, after=first.items[0].window_id))
    mine = await service.stub.ListHeld(audit_pb2.ListHeldRequest(session_id=session_id(2)))
    wrong = await service.stub.ListHeld(audit_pb2.ListHeldRequest(limit=201))

    assert ([one.window_id for one in first.items], first.more) == ([items[0].window_id], True)
    assert ([one.window_id for one in rest.items], rest.more) == ([items[2].window_id], False)
    assert [(one.window_id, one.status) for one in mine.items] == [(items[1].window_id, 2)]
    assert mine.items[0].token
    assert wrong.refusal.reason == "INVALID_LIMIT"


async def test_other_bytes_than_those_of_the_seal_are_not_handed_out(service, clock):
    """Whatever was held beside the seal must be the response whose hash the seal has."""
    item = await hold(service, body=b'{"choices":[1]}')
    good = token(item, clock)
    await service.stub.DecideHeld(decision(good))
    answer = await service.stub.ReleaseHeld(claim(item, good))

    assert answer.refusal.reason == "HELD_UNREADABLE"
    assert await kinds(service) == ["OVERSIGHT_APPROVED"]
