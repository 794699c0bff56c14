"""The settlement of a window: a message on the wire, canonical JSON in the log, and JSON for those that know no message."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.protobuf.json_format import MessageToJson

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2
from interlock.audit.store.log_sql import SqliteLog
from interlock.audit.tree import record
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import content_hash
from tests.support.audit.audit import Service, event, serving, session_id, window, window_id

SETTLEMENT = session_pb2.CommitWindowRequest(
    session_id=session_id(), root_session_id=session_id(), window_id=window_id(1), window_number=1,
    risk_level=common_pb2.RISK_LEVEL_HIGH, charge_micros=150_000, ceiling_micros=1_000_000,
    quality_tier="A", strategy="push", token_count=7, status="COMPLETED", policy_text="default-src 'sélf';",
    facts_used=["ab" * 8, "0" * 16], chain_budget_micros=0,
    edges=[session_pb2.Edge(source_id=window_id(9), target_id=window_id(1), transferred_tokens=3)],
)  # fmt: skip
JSON = MessageToJson(SETTLEMENT, indent=None)
STORED = canonical_json(json.loads(JSON))
"""What the log has always stored of it."""

LATER = b"\xa2\x06\x05later"  # field 100, which this version does not know


def later(settlement: session_pb2.CommitWindowRequest, *, in_edge: bool) -> session_pb2.CommitWindowRequest:
    """Return a settlement with a field of a later version, in itself or in its edge."""
    found = session_pb2.CommitWindowRequest()
    found.CopyFrom(settlement)
    part = found.edges[0] if in_edge else found
    part.MergeFromString(LATER)
    return found


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """The service over a log in SQLite."""
    log = SqliteLog(tmp_path / "audit.db")
    log.commit([])
    async with serving(log) as running:
        yield running


async def sealed(service: Service) -> audit_pb2.GetWindowResponse:
    return await service.stub.GetWindow(audit_pb2.GetWindowRequest(session_id=session_id(), window_id=window_id(1)))


SENT: dict[str, dict[str, Any]] = {
    "the message": {"settle_json": "", "settlement": SETTLEMENT},
    "the JSON of an older sidecar": {"settle_json": JSON},
    "both": {"settle_json": JSON, "settlement": SETTLEMENT},
}


@pytest.mark.req("BUD-8")
@pytest.mark.parametrize("sent", SENT)
async def test_a_settlement_is_stored_as_the_same_text_and_given_back_both_ways(service, sent):
    """Whoever sent it: the chain hashes the text that it has always hashed, and each reader finds what it reads."""
    await service.stub.Append(window(1, **SENT[sent]))

    found = await sealed(service)
    (seal,) = [one for one in service.log.chain(session_id()).events if one.event_type == "WINDOW_SEALED"]
    verdict = await service.stub.Verify(audit_pb2.VerifyRequest(session_id=session_id()))

    assert (found.settle_json, found.settlement) == (STORED, SETTLEMENT)
    assert json.loads(seal.data_json)["settle_hash"] == content_hash(STORED.encode())
    assert (verdict.windows, list(verdict.faults)) == (1, [])


@pytest.mark.req("BUD-8")
@pytest.mark.parametrize("first", SENT)
@pytest.mark.parametrize("again", SENT)
async def test_a_seal_is_repeated_by_another_version(service, first, again):
    """A retry through a sidecar of another version is the same request."""
    before = await service.stub.Append(window(1, **SENT[first]))
    after = await service.stub.Append(window(1, **SENT[again]))

    assert (before.hmac, before.duplicate, after.duplicate) == (after.hmac, False, True)


@pytest.mark.req("BUD-4")
async def test_the_record_of_a_tree_holds_the_settlement_both_ways(service):
    """What rebuilds a session is read as a message, or as JSON by an older sidecar."""
    created = [event("SESSION_CREATED", json.dumps({"root_session_id": session_id()}))]
    await service.stub.Record(audit_pb2.RecordRequest(session_id=session_id(), events=created))
    await service.stub.Append(window(1, settlement=SETTLEMENT))
    found = await service.stub.GetTreeRecord(audit_pb2.GetTreeRecordRequest(root_session_id=session_id()))
    began, *_, last = found.steps

    assert (last.event_type, last.settle_json, last.settlement) == ("WINDOW_SEALED", STORED, SETTLEMENT)
    assert (began.settle_json, began.HasField("settlement")) == ("", False)


@pytest.mark.req("BUD-4")
async def test_a_large_record_holds_the_settlement_once(service, monkeypatch):
    """As JSON, which every reader knows: a tree that could be rebuilt so far fits into an answer still."""
    await service.stub.Record(
        audit_pb2.RecordRequest(
            session_id=session_id(), events=[event("SESSION_CREATED", json.dumps({"root_session_id": session_id()}))]
        )
    )
    await service.stub.Append(window(1, settlement=SETTLEMENT))
    monkeypatch.setattr(record, "MOST_RECORD_BYTES", 100)
    found = await service.stub.GetTreeRecord(audit_pb2.GetTreeRecordRequest(root_session_id=session_id()))

    assert (found.steps[-1].settle_json, found.steps[-1].HasField("settlement")) == (STORED, False)


@pytest.mark.req("BUD-8")
@pytest.mark.parametrize("in_edge", [False, True])
async def test_a_settlement_of_a_later_version_is_never_stored_in_part(service, in_edge):
    """Refused by name, unless its sender's JSON holds all of it: that is stored, and read back by who knows it."""
    settlement = later(SETTLEMENT, in_edge=in_edge)
    refused = await service.stub.Append(window(1, settle_json="", settlement=settlement))
    whole = json.dumps({**json.loads(JSON), "later": "x"})
    await service.stub.Append(window(1, settle_json=whole, settlement=settlement))
    found = await sealed(service)

    assert (refused.refusal.kind, refused.refusal.reason) == (common_pb2.REFUSAL_KIND_INVALID, "INVALID_FIELD")
    assert json.loads(found.settle_json) == json.loads(whole)
    assert not found.HasField("settlement")


async def test_a_settlement_has_a_largest_size(service):
    """As its JSON always had."""
    settlement = session_pb2.CommitWindowRequest(policy_text="x" * 65_536)
    answer = await service.stub.Append(window(1, settle_json="", settlement=settlement))

    assert answer.refusal.reason == "JSON_TOO_LARGE"


async def test_json_that_is_no_settlement_is_given_back_as_it_is(service):
    """Its sender sealed it so: the reader is told what is there, and refuses it."""
    await service.stub.Append(window(1, settle_json='{"chargeMicros":"much"}'))
    found = await sealed(service)

    assert (found.settle_json, found.HasField("settlement")) == ('{"chargeMicros":"much"}', False)
