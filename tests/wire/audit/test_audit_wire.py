"""The audit service over real gRPC and a real SQLite file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.audit.wiring import open_service
from interlock.domain.chain.chain import content_hash, unchained_window_hmac, window_hmac
from interlock.runtime.keys.derivation import HMAC, load_keyring
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.audit.audit import Attacker, Ticking, event, hash_of, report, session_id, window, window_id

NAN, INF = float("nan"), float("inf")


@dataclass
class Wire:
    """A client of the service, and the file behind it."""

    stub: audit_pb2_grpc.AuditServiceStub
    database: Path
    settings: Settings

    async def seal(self, count: int, **fields) -> list[audit_pb2.AppendResponse]:
        answers: list[audit_pb2.AppendResponse] = []
        for number in range(1, count + 1):
            answers.append(await self.stub.Append(window(number, answers[-1].hmac if answers else "", **fields)))
        return answers

    async def verify(self) -> audit_pb2.VerifyResponse:
        return await self.stub.Verify(audit_pb2.VerifyRequest(session_id=session_id()))

    async def export(self) -> list[audit_pb2.Event]:
        request = audit_pb2.ExportRequest(session_id=session_id())
        return [answer.event async for answer in self.stub.Export(request)]

    async def record(self, *events: audit_pb2.NewEvent, **fields) -> audit_pb2.RecordResponse:
        return await self.stub.Record(
            audit_pb2.RecordRequest(**{"session_id": session_id(), "events": events, **fields})
        )


@pytest_asyncio.fixture
async def wire(tmp_path: Path) -> AsyncIterator[Wire]:
    """The service as ``interlock serve audit`` runs it."""
    settings = Settings(state_dir=tmp_path, master_key=bytes(range(32)).hex(), allow_plaintext=True)
    server = RpcServer([await open_service(settings, clock=Ticking())], settings, port=0)
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Wire(audit_pb2_grpc.AuditServiceStub(channel), tmp_path / "audit.db", settings)
    await server.drain()


def kind_and_reason(answer) -> tuple[int, str]:
    return answer.refusal.kind, answer.refusal.reason


CONFLICT, INVALID = common_pb2.REFUSAL_KIND_CONFLICT, common_pb2.REFUSAL_KIND_INVALID
EXHAUSTED, NOT_FOUND = common_pb2.REFUSAL_KIND_EXHAUSTED, common_pb2.REFUSAL_KIND_NOT_FOUND


# --- Append


@pytest.mark.req("PRV-1", "PRV-2")
async def test_append_answers_with_hmacs_that_can_be_computed_again(wire):
    """From the answer's own values and the session's key, by the published formula."""
    first, second = await wire.seal(2)

    key = load_keyring(wire.settings).derive(1, session_id(), HMAC)
    fields = {
        "session_id": session_id(),
        "window_number": 2,
        "timestamp": second.timestamp,
        "response_hash": hash_of(2),
        "report_hash": second.report_hash,
    }
    assert second.hmac == window_hmac(key, **fields, parent_hmacs=[first.hmac])
    assert second.window_hmac == unchained_window_hmac(key, **fields)
    assert second.trail_id.startswith("crp_trail_")
    assert (first.root_window_id, second.root_window_id) == (window_id(1), window_id(1))


@pytest.mark.req("PRV-2")
async def test_the_first_window_is_unverified_and_later_ones_valid(wire):
    """SPEC-011 §3.3, on every response."""
    answers = await wire.seal(3)

    names = [common_pb2.ChainIntegrity.Name(answer.integrity) for answer in answers]
    assert names == ["CHAIN_INTEGRITY_UNVERIFIED", "CHAIN_INTEGRITY_VALID", "CHAIN_INTEGRITY_VALID"]


@pytest.mark.req("AUD-1")
async def test_a_window_is_recorded_with_its_events_and_its_seal(wire):
    """The window's events in order, then WINDOW_SEALED with all that the window's own HMAC leaves out."""
    [sealed] = await wire.seal(1)

    events = await wire.export()

    assert [(e.sequence, e.event_type, e.window_id) for e in events] == [
        (1, "DISPATCH_COMPLETED", window_id(1)),
        (2, "DPE_COMPLETED", window_id(1)),
        (3, "WINDOW_SEALED", window_id(1)),
    ]
    assert json.loads(events[2].data_json) == {
        "window_number": 1,
        "parent_ids": [],
        "response_hash": hash_of(1),
        "report_hash": sealed.report_hash,
        "sealed_report_hash": json.loads(events[2].data_json)["sealed_report_hash"],
        "risk_level": 3,
        "charge_micros": 150_000,
        "status": "COMPLETED",
        "settle_hash": content_hash(b'{"policy_text":"","token_count":7}'),
        "trail_id": sealed.trail_id,
        "request_hash": json.loads(events[2].data_json)["request_hash"],
        "timestamp": sealed.timestamp,
        "key_version": 1,
        "hmac": sealed.hmac,
    }


@pytest.mark.req("AUD-3")
async def test_append_is_idempotent_by_window(wire):
    """The same request again gives the same answer and writes nothing."""
    first, second = await wire.seal(2)
    before = await wire.verify()

    again = await wire.stub.Append(window(2, first.hmac))

    assert again.duplicate
    again.duplicate = False
    assert again == second
    assert await wire.verify() == before


DIFFERENCES = {
    "charge_micros": 0,
    "status": "HALTED",
    "risk_level": common_pb2.RISK_LEVEL_LOW,
    "response_hash": hash_of(77),
    "settle_json": '{"policy_text":"x"}',
    "report": report(9),
    "events": [event("DPE_COMPLETED")],
    "session_id": session_id(2),
}


@pytest.mark.parametrize("field", DIFFERENCES)
async def test_the_same_window_with_other_content_is_a_conflict(wire, field):
    """A window is sealed once; nothing about it can be sealed again differently."""
    await wire.seal(1)

    answer = await wire.stub.Append(window(1, **{field: DIFFERENCES[field]}))

    assert kind_and_reason(answer) == (CONFLICT, "WINDOW_SEALED_DIFFERENTLY")


async def test_of_two_concurrent_seals_of_one_parent_the_first_wins(wire):
    """However many race, one window follows, and every other is CHAIN_CONFLICT."""
    [root] = await wire.seal(1)

    answers = await asyncio.gather(
        *(wire.stub.Append(window(2, root.hmac, window_id=window_id(100 + n))) for n in range(8))
    )

    reasons = sorted(answer.refusal.reason for answer in answers)
    assert reasons == ["", *["CHAIN_CONFLICT"] * 7]
    assert (await wire.verify()).windows == 2


async def test_a_second_root_is_a_conflict(wire):
    """A session has one root."""
    await wire.seal(1)

    answer = await wire.stub.Append(window(1, window_id=window_id(50)))

    assert kind_and_reason(answer) == (CONFLICT, "CHAIN_CONFLICT")


async def test_a_window_behind_the_tip_is_a_conflict(wire):
    """Its parent is sealed, but is no longer the latest: a replay."""
    first, *_ = await wire.seal(3)

    answer = await wire.stub.Append(window(2, first.hmac, window_id=window_id(50)))

    assert kind_and_reason(answer) == (CONFLICT, "CHAIN_CONFLICT")


@pytest.mark.req("PRV-2")
async def test_a_wrong_parent_hmac_breaks_the_chain(wire):
    """Session state and log disagree about the parent: nothing is sealed, and the session cannot go on."""
    [root] = await wire.seal(1)

    answer = await wire.stub.Append(window(2, hash_of(5)))
    after = await wire.stub.Append(window(2, root.hmac))

    assert kind_and_reason(answer) == (CONFLICT, "CHAIN_BROKEN")
    assert answer.refusal.metadata["fault"] == "PARENT_HMAC_MISMATCH"
    assert kind_and_reason(after) == (CONFLICT, "CHAIN_BROKEN")
    assert after.refusal.metadata["fault"] == "BROKEN_BEFORE"


@pytest.mark.req("PRV-2")
async def test_a_parent_that_the_log_does_not_hold_breaks_the_chain(wire):
    """The session's state names a window that was acknowledged once: the log's end was cut off."""
    *_, third = await wire.seal(3)
    with Attacker(wire.database) as attack:
        attack("DELETE FROM reports WHERE window_id = ?", window_id(3))
        attack("DELETE FROM windows WHERE window_id = ?", window_id(3))
        attack("DELETE FROM events WHERE sequence > 6")
    assert (await wire.verify()).integrity == common_pb2.CHAIN_INTEGRITY_VALID

    answer = await wire.stub.Append(window(4, third.hmac))

    assert kind_and_reason(answer) == (CONFLICT, "CHAIN_BROKEN")
    assert answer.refusal.metadata["fault"] == "MISSING_PARENT"


async def test_a_number_that_does_not_follow_is_refused(wire):
    """A window's number is its parent's plus one."""
    [root] = await wire.seal(1)

    answer = await wire.stub.Append(window(3, root.hmac, parent_ids=[window_id(1)]))

    assert kind_and_reason(answer) == (INVALID, "INVALID_WINDOW_NUMBER")


STREAMED = {
    "begun": event("STREAM_BEGUN", json.dumps({
        "window_number": 1, "parent_ids": [], "parent_hmacs": [], "hold_micros": 350_000, "ceiling_micros": 1_000_000,
        "until_ms": 1, "key_version": 0})),
    "part": event("STREAM_PART", json.dumps({"part": 1, "characters": 2, "running_hash": hash_of(1), "risk_level": "LOW"})),
    "given up": event("STREAM_ENDED", json.dumps({
        "parts": 0, "characters": 0, "running_hash": hash_of(0), "ending": "LOST"})),
}  # fmt: skip


@pytest.mark.req("BUD-11", "AUD-3")
@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (("given up",), ("begun", "part"), "STREAM_GIVEN_UP"),
        (("begun", "part"), ("given up",), "STREAM_HAS_BEGUN"),
    ],
)
async def test_a_stream_begins_or_is_given_up_and_never_both(wire, first, second, reason):
    """Whichever is in the log first: a part that comes late is refused, and a window with a part on record stays open."""
    kept = await wire.record(*(STREAMED[name] for name in first), window_id=window_id(1), once=True)
    again = await wire.record(*(STREAMED[name] for name in first), window_id=window_id(1), once=True)
    late = await wire.record(*(STREAMED[name] for name in second), window_id=window_id(1), once=True)
    other = await wire.record(*(STREAMED[name] for name in second), window_id=window_id(2), once=True)

    assert again.sequence == kept.sequence
    assert kind_and_reason(late) == (CONFLICT, reason)
    assert other.sequence == kept.sequence + len(second)


async def test_a_sealed_window_is_not_given_up(wire):
    """Its charge stands."""
    await wire.seal(1)

    late = await wire.record(STREAMED["given up"], window_id=window_id(1), once=True)

    assert kind_and_reason(late) == (CONFLICT, "STREAM_HAS_BEGUN")


def with_nan(value: float, *, deep: bool = False) -> dpe_pb2.Report:
    found = report()
    if deep:
        found.claims[1].contradiction = value
    else:
        found.composite_score = value
    return found


BAD = {
    "session id": ({"session_id": "crp_sess_'; DROP TABLE events; --"}, "INVALID_ID"),
    "no session id": ({"session_id": ""}, "INVALID_ID"),
    "window id": ({"window_id": session_id()}, "INVALID_ID"),
    "window id with newline": ({"window_id": window_id(1) + "\n"}, "INVALID_ID"),
    "parent id": ({"window_number": 2, "parent_ids": ["x"], "parent_hmacs": [hash_of(1)]}, "INVALID_ID"),
    "number 0": ({"window_number": 0}, "INVALID_WINDOW_NUMBER"),
    "negative number": ({"window_number": -1}, "INVALID_WINDOW_NUMBER"),
    "number without parent": ({"window_number": 2}, "INVALID_WINDOW_NUMBER"),
    "root with parent": ({"parent_ids": [window_id(9)], "parent_hmacs": [hash_of(1)]}, "INVALID_WINDOW_NUMBER"),
    "parent without hmac": ({"window_number": 2, "parent_ids": [window_id(9)]}, "INVALID_PARENTS"),
    "parent twice": (
        {"window_number": 2, "parent_ids": [window_id(9)] * 2, "parent_hmacs": [hash_of(1)] * 2},
        "INVALID_PARENTS",
    ),
    "parent hmac": ({"window_number": 2, "parent_ids": [window_id(9)], "parent_hmacs": ["sha256:x"]}, "INVALID_HASH"),
    "response hash": ({"response_hash": "sha256:" + "A" * 64}, "INVALID_HASH"),
    "no response hash": ({"response_hash": ""}, "INVALID_HASH"),
    "separator in hash": ({"response_hash": hash_of(1)[:-1] + "␟"}, "INVALID_HASH"),
    "no report": ({"report": None}, "REPORT_MISSING"),
    "NaN": ({"report": with_nan(NAN)}, "INVALID_NUMBER"),
    "infinity": ({"report": with_nan(INF)}, "INVALID_NUMBER"),
    "deep NaN": ({"report": with_nan(NAN, deep=True)}, "INVALID_NUMBER"),
    "no risk": ({"risk_level": 0}, "INVALID_RISK_LEVEL"),
    "unknown risk": ({"risk_level": 9}, "INVALID_RISK_LEVEL"),
    "negative charge": ({"charge_micros": -1}, "INVALID_CHARGE"),
    "charge too high": ({"charge_micros": 500_001}, "INVALID_CHARGE"),
    "status": ({"status": "DONE"}, "INVALID_STATUS"),
    "no status": ({"status": ""}, "INVALID_STATUS"),
    "settlement is a list": ({"settle_json": "[]"}, "INVALID_JSON"),
    "settlement is cut": ({"settle_json": '{"a":'}, "INVALID_JSON"),
    "event type": ({"events": [event("dpe")]}, "INVALID_EVENT_TYPE"),
    "event type with newline": ({"events": [event("DPE_X\n")]}, "INVALID_EVENT_TYPE"),
    "the log's own event type": ({"events": [event("WINDOW_SEALED")]}, "RESERVED_EVENT_TYPE"),
    "the log's own incident": ({"events": [event("CHAIN_BROKEN")]}, "RESERVED_EVENT_TYPE"),
    "no severity": ({"events": [event(severity=0)]}, "INVALID_SEVERITY"),
    "unknown severity": ({"events": [event(severity=6)]}, "INVALID_SEVERITY"),
    "time": ({"events": [event(timestamp="yesterday")]}, "INVALID_TIMESTAMP"),
    "time that is none": ({"events": [event(timestamp="2026-13-45T10:00:00Z")]}, "INVALID_TIMESTAMP"),
    "time with an offset": ({"events": [event(timestamp="2026-05-25T10:00:00+02:00")]}, "INVALID_TIMESTAMP"),
    "data is no JSON": ({"events": [event(data="{a:1}")]}, "INVALID_JSON"),
    "data is a number": ({"events": [event(data="1")]}, "INVALID_JSON"),
    "data with a duplicate key": ({"events": [event(data='{"a":1,"a":2}')]}, "INVALID_JSON"),
    "data with a deep duplicate": ({"events": [event(data='{"x":[{"a":1,"a":2}]}')]}, "INVALID_JSON"),
    "data with NaN": ({"events": [event(data='{"a":NaN}')]}, "INVALID_JSON"),
    "data with 1e999": ({"events": [event(data='{"a":1e999}')]}, "INVALID_JSON"),
    "data with a lone surrogate": ({"events": [event(data='{"a":"\\ud800"}')]}, "INVALID_JSON"),
    "data that is deep": ({"events": [event(data='{"a":' + "[" * 64 + "]" * 64 + "}")]}, "INVALID_JSON"),
    "data that is bottomless": ({"events": [event(data="[" * 60_000)]}, "INVALID_JSON"),
}


@pytest.mark.parametrize(("fields", "reason"), BAD.values(), ids=BAD)
async def test_bad_input_is_refused_with_its_reason_and_seals_nothing(wire, fields, reason):
    """Each malformed field by itself (A-16, A-36, A-40)."""
    answer = await wire.stub.Append(window(1, **fields))

    assert kind_and_reason(answer) == (INVALID, reason)
    assert (await wire.verify()).refusal.reason == "SESSION_NOT_FOUND"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"events": [event(data='{"a":"' + "x" * 65_530 + '"}')]}, "JSON_TOO_LARGE"),
        ({"events": [event()] * 513}, "TOO_MANY_EVENTS"),
    ],
)
async def test_too_much_is_refused_never_cut(wire, fields, reason):
    """Bounds are told, not applied in silence."""
    answer = await wire.stub.Append(window(1, **fields))

    assert kind_and_reason(answer) == (EXHAUSTED, reason)


async def test_a_bad_request_does_not_disturb_its_neighbours(wire):
    """Good and bad ones at the same moment: each gets its own answer."""
    sent = [window(1, session=n, charge_micros=-1 if n % 2 else 0) for n in range(1, 21)]

    answers = await asyncio.gather(*(wire.stub.Append(request) for request in sent))

    assert [a.refusal.reason for a in answers] == ["INVALID_CHARGE", ""] * 10


# --- Record


@pytest.mark.req("AUD-1")
async def test_record_appends_and_returns_the_last_sequence(wire):
    """Events without a window, with their own time or the service's."""
    created = event("SESSION_CREATED", '{"b":2,"a":1}', timestamp="2026-05-25T09:00:00Z")

    first = await wire.record(created)
    third = await wire.record(event("SESSION_CONTINUED"), event("SESSION_TERMINATED"), window_id=window_id(1))

    assert (first.sequence, third.sequence) == (1, 3)
    events = await wire.export()
    assert events[0].timestamp == "2026-05-25T09:00:00Z"
    assert events[0].data_json == '{"a":1,"b":2,"safety_policy_hash":"x","scope":"x","session_id":"x"}'
    assert events[1].timestamp.startswith("2026-05-25T10:00:00.")
    assert [e.window_id for e in events] == ["", window_id(1), window_id(1)]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"session_id": "x"}, "INVALID_ID"),
        ({"window_id": "x"}, "INVALID_ID"),
        ({"events": []}, "NO_EVENTS"),
        ({"events": [event("WINDOW_SEALED", '{"charge_micros":0}')]}, "RESERVED_EVENT_TYPE"),
    ],
)
async def test_a_bad_record_is_refused(wire, fields, reason):
    """Nobody but the service itself speaks for the chain."""
    assert kind_and_reason(await wire.record(**{"events": [event()], **fields})) == (INVALID, reason)


@pytest.mark.req("PRV-2", "AUD-3")
async def test_concurrent_records_and_seals_of_one_session_are_gapless(wire):
    """The head is compared inside the transaction, so nothing needs to be serialised by callers (I5)."""
    [root] = await wire.seal(1)

    answers = await asyncio.gather(
        *(wire.record(event(data=f'{{"n":{n}}}')) for n in range(40)),
        wire.stub.Append(window(2, root.hmac)),
    )

    assert not any(answer.HasField("refusal") for answer in answers)
    found = await wire.verify()
    assert (found.integrity, found.events) == (common_pb2.CHAIN_INTEGRITY_VALID, 46)


# --- GetWindow, GetReport


async def test_a_seal_can_be_read_to_replay_its_settle(wire):
    """All that CommitWindow needs again."""
    _, second = await wire.seal(2)

    found = await wire.stub.GetWindow(audit_pb2.GetWindowRequest(session_id=session_id(), window_id=window_id(2)))

    assert found == audit_pb2.GetWindowResponse(
        window_number=2,
        parent_ids=[window_id(1)],
        hmac=second.hmac,
        timestamp=second.timestamp,
        response_hash=hash_of(2),
        risk_level=common_pb2.RISK_LEVEL_HIGH,
        charge_micros=150_000,
        status="COMPLETED",
        settle_json='{"policy_text":"","token_count":7}',
        trail_id=second.trail_id,
        settlement=session_pb2.CommitWindowRequest(token_count=7),
    )


async def test_a_window_that_was_never_sealed_is_not_found(wire):
    """Neither an unknown one nor one of another session."""
    await wire.seal(1)

    for session, wanted in ((session_id(), window_id(9)), (session_id(2), window_id(1))):
        answer = await wire.stub.GetWindow(audit_pb2.GetWindowRequest(session_id=session, window_id=wanted))
        assert kind_and_reason(answer) == (NOT_FOUND, "WINDOW_NOT_SEALED")


@pytest.mark.req("PRV-2")
@pytest.mark.parametrize(
    "tampering",
    ["UPDATE windows SET charge_micros = 0 WHERE window_number = 1", "DELETE FROM windows WHERE window_number = 1"],
)
async def test_a_charge_is_not_read_from_a_chain_that_does_not_verify(wire, tampering):
    """A settle is never replayed with an edited charge, nor skipped because a row is gone."""
    await wire.seal(1)
    with Attacker(wire.database) as attack:
        attack(tampering)

    answer = await wire.stub.GetWindow(audit_pb2.GetWindowRequest(session_id=session_id(), window_id=window_id(1)))

    assert kind_and_reason(answer) == (CONFLICT, "CHAIN_BROKEN")


@pytest.mark.req("DPE-20")
async def test_a_report_is_the_stored_bytes_with_their_hash(wire):
    """By either name: canonical JSON whose SHA-256 is the report hash of the seal."""
    [sealed] = await wire.seal(1)

    by_window = await wire.stub.GetReport(audit_pb2.GetReportRequest(window_id=window_id(1)))
    by_trail = await wire.stub.GetReport(audit_pb2.GetReportRequest(trail_id=sealed.trail_id))

    assert by_window == by_trail
    assert (by_window.session_id, by_window.window_id, by_window.hmac) == (session_id(), window_id(1), sealed.hmac)
    assert by_window.report_hash == sealed.report_hash == content_hash(by_window.report_json)
    stored = json.loads(by_window.report_json)
    assert (stored["grounding_pct"], stored["claims"][1]["text"]) == (0.25, "Claim 1 – 50 %")
    assert (
        json.dumps(stored, sort_keys=True, separators=(",", ":"), ensure_ascii=False) == by_window.report_json.decode()
    )


async def test_absent_values_of_a_report_stay_absent(wire):
    """What was not computed is not stored as zero."""
    await wire.seal(1)

    answer = await wire.stub.GetReport(audit_pb2.GetReportRequest(window_id=window_id(1)))

    assert not {"fidelity_score", "flow_score", "eu_ai_act_class"} & json.loads(answer.report_json).keys()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({}, (INVALID, "ONE_NAME_NEEDED")),
        ({"window_id": window_id(1), "trail_id": "crp_trail_" + "0" * 32}, (INVALID, "ONE_NAME_NEEDED")),
        ({"window_id": "' OR 1=1"}, (INVALID, "INVALID_ID")),
        ({"trail_id": window_id(1)}, (INVALID, "INVALID_ID")),
        ({"window_id": window_id(8)}, (NOT_FOUND, "REPORT_NOT_FOUND")),
        ({"trail_id": "crp_trail_" + "0" * 32}, (NOT_FOUND, "REPORT_NOT_FOUND")),
    ],
)
async def test_a_report_that_is_not_there_is_refused(wire, names, expected):
    """By exactly one well-formed name."""
    await wire.seal(1)

    assert kind_and_reason(await wire.stub.GetReport(audit_pb2.GetReportRequest(**names))) == expected


async def test_a_changed_report_is_not_served(wire):
    """The bytes are hashed on the way out."""
    await wire.seal(1)
    with Attacker(wire.database) as attack:
        attack("UPDATE reports SET body = x'7b7d'")

    answer = await wire.stub.GetReport(audit_pb2.GetReportRequest(window_id=window_id(1)))

    assert kind_and_reason(answer) == (CONFLICT, "CHAIN_BROKEN")
    assert not answer.report_json


# --- Verify


@pytest.mark.req("PRV-2")
async def test_verify_names_every_fault_in_order(wire):
    """Two tampered records, two faults, and the sums."""
    await wire.seal(3)
    with Attacker(wire.database) as attack:
        attack("UPDATE events SET data_json = '{}' WHERE sequence IN (2, 5)")

    found = await wire.verify()

    assert found.integrity == common_pb2.CHAIN_INTEGRITY_BROKEN
    assert [(f.what, f.index, f.reason) for f in found.faults] == [
        ("event", 2, "HMAC_MISMATCH"),
        ("event", 5, "HMAC_MISMATCH"),
    ]
    assert (found.events, found.windows, found.charged_micros) == (9, 3, 450_000)


@pytest.mark.req("PRV-2")
async def test_a_broken_session_is_refused_and_the_incident_recorded_once(wire):
    """SPEC-004 §16.4: 409, a CRITICAL event, and no way on, while other sessions are served."""
    first, *_ = await wire.seal(2)
    await wire.seal(1, session=2)
    with Attacker(wire.database) as attack:
        attack("UPDATE events SET severity = 1 WHERE sequence = 1 AND session_id = ?", session_id())

    answers = [await wire.stub.Append(window(3, first.hmac)) for _ in range(3)]
    await wire.verify()

    assert {kind_and_reason(answer) for answer in answers} == {(CONFLICT, "CHAIN_BROKEN")}
    assert dict(answers[0].refusal.metadata) == {"what": "event", "index": "1", "fault": "HMAC_MISMATCH"}
    incidents = [e for e in await wire.export() if e.event_type == "CHAIN_BROKEN"]
    assert [(e.severity, json.loads(e.data_json)) for e in incidents] == [
        (audit_pb2.SEVERITY_CRITICAL, {"what": "event", "index": 1, "fault": "HMAC_MISMATCH", "faults": 1})
    ]
    other = await wire.stub.Append(window(1, session=3))
    assert not other.HasField("refusal")


@pytest.mark.req("PRV-2")
@pytest.mark.parametrize("edit", ["sequence = 9223372036854775807", "hmac = CAST(x'ff' AS TEXT)"])
async def test_a_head_that_nothing_can_follow_is_refused_all_the_same(wire, edit):
    """The incident cannot be appended to it; the answer is CHAIN_BROKEN and no other."""
    *_, second = await wire.seal(2)
    with Attacker(wire.database) as attack:
        attack(f"UPDATE events SET {edit} WHERE sequence = 6")

    assert kind_and_reason(await wire.stub.Append(window(3, second.hmac))) == (CONFLICT, "CHAIN_BROKEN")


@pytest.mark.req("PRV-2")
async def test_a_session_with_a_recorded_break_stays_ended(wire):
    """Putting the bytes back does not bring it back."""
    _, second = await wire.seal(2)
    for severity in (1, 2):
        with Attacker(wire.database) as attack:
            attack("UPDATE events SET severity = ? WHERE sequence = 1", severity)
        last = await wire.stub.Append(window(3, second.hmac))

    assert last.refusal.metadata["fault"] == "BROKEN_BEFORE"


@pytest.mark.req("AUD-1")
async def test_a_broken_session_still_takes_records(wire):
    """What goes on is written down; it mends nothing."""
    await wire.seal(2)
    with Attacker(wire.database) as attack:
        attack("UPDATE events SET severity = 1 WHERE sequence = 1")

    answer = await wire.record(event("SESSION_TERMINATED"))

    assert answer.sequence == 7
    assert (await wire.verify()).integrity == common_pb2.CHAIN_INTEGRITY_BROKEN


async def test_verify_of_an_unknown_session_is_not_found(wire):
    """There is nothing to say about it."""
    assert kind_and_reason(await wire.verify()) == (NOT_FOUND, "SESSION_NOT_FOUND")


async def test_odd_bytes_in_the_file_are_faults_not_errors(wire):
    """What no message could hold still gets an answer."""
    await wire.seal(2)
    with Attacker(wire.database) as attack:
        attack("UPDATE events SET data_json = CAST(x'ff' AS TEXT) WHERE sequence = 1")
        attack("UPDATE windows SET hmac = CAST(x'ff' AS TEXT) WHERE window_number = 2")
        attack("UPDATE windows SET window_number = 9223372036854775807 WHERE window_number = 1")

    found = await wire.verify()
    events = await wire.export()

    assert found.integrity == common_pb2.CHAIN_INTEGRITY_BROKEN
    assert (events[0].data_json, len(events)) == ("?", 7)


# --- Export


@pytest.mark.req("AUD-4")
async def test_export_streams_all_events_over_many_pages(wire):
    """In order, none left out."""
    for start in range(0, 600, 300):
        await wire.record(*(event(data=f'{{"n":{n}}}') for n in range(start, start + 300)))

    events = await wire.export()

    assert [e.sequence for e in events] == list(range(1, 601))
    assert [json.loads(e.data_json)["n"] for e in events] == list(range(600))


async def test_export_of_an_unknown_session_fails_with_a_status(wire):
    """A stream has no place for a refusal, so it is a status with ErrorInfo (SVC-3)."""
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await wire.export()

    assert failed.value.code() == grpc.StatusCode.NOT_FOUND
    info = error_details_pb2.ErrorInfo()
    assert rpc_status.from_call(failed.value).details[0].Unpack(info)
    assert info.reason == "SESSION_NOT_FOUND"


@pytest.mark.req("AUD-4")
async def test_the_key_never_leaves(wire):
    """Neither the session's HMAC key nor the master key is in anything the service says or stores (SPEC-011 §6)."""
    answers = await wire.seal(2)
    said = b"".join(m.SerializeToString() for m in [*answers, await wire.verify(), *await wire.export()])
    stored = b"".join(path.read_bytes() for path in wire.database.parent.iterdir() if "audit.db" in path.name)

    master = bytes(range(32))
    key = load_keyring(wire.settings).derive(1, session_id(), HMAC)
    for secret in (master, key):
        for form in (secret, secret.hex().encode(), secret.hex().upper().encode()):
            assert form not in said
            assert form not in stored
