"""Checkpoints, proofs and entries over gRPC: what is answered is verified here as a stranger would."""

from __future__ import annotations

import json
import shutil

import grpc
import pytest

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.audit.merkle.checkpoint_key import holds
from interlock.audit.store.fence import Lost
from interlock.audit.wiring import open_service
from interlock.domain.merkle.entries import LOG_SESSION
from interlock.domain.merkle.entry import decode_entry
from interlock.domain.merkle.note import open_note, verifier_key
from interlock.domain.merkle.tree import leaf_hash, merkle_root, verify_consistency, verify_inclusion
from interlock.runtime.rpc.server import RpcServer
from tests.support.audit.audit import Attacker, serving, session_id
from tests.support.audit.auditors import Audited, audited, settings_of

pytestmark = pytest.mark.req("AUD-6")

APPROVAL = "crp_appr_" + "7" * 32


async def entries(audit: Audited) -> list[audit_pb2.ListEntriesResponse]:
    return [entry async for entry in audit.stub.ListEntries(audit_pb2.ListEntriesRequest())]


async def test_every_entry_is_proved_to_be_under_the_signed_root(tmp_path):
    """By position and by session and sequence, over a real port: entry, path and signature fit together."""
    settings = settings_of(tmp_path)
    service = await open_service(settings)
    audit = Audited(service)
    for number in range(9):
        await audit.seal(session=1 + number % 2)
    await audit.notary.round()
    server = RpcServer([service], settings.model_copy(update={"allow_plaintext": True}), port=0)
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = audit_pb2_grpc.AuditServiceStub(channel)
        checkpoint = await stub.GetCheckpoint(audit_pb2.GetCheckpointRequest())
        signed = open_note(checkpoint.note, verifier_key(checkpoint.verifier_key), holds).checkpoint
        assert (signed.size, checkpoint.size, checkpoint.log_size) == (27, 27, 27)
        for position in range(27):
            proof = await stub.ProveInclusion(audit_pb2.ProveInclusionRequest(position=position))
            event = decode_entry(proof.entry)
            named = audit_pb2.ProveInclusionRequest(session_id=event.session_id, sequence=event.sequence)
            assert verify_inclusion(leaf_hash(proof.entry), position, 27, proof.hashes, signed.root)
            assert await stub.ProveInclusion(named) == proof
    await server.drain()


async def test_an_earlier_log_is_proved_to_be_a_prefix_of_a_later_one(tmp_path):
    """Every size against every later one; the roots are those of the entries that were streamed."""
    async with audited(settings_of(tmp_path)) as audit:
        for _ in range(4):
            await audit.seal()
        leaves = [leaf_hash(entry.entry) for entry in await entries(audit)]
        for old in range(1, 13):
            for new in range(old, 13):
                proof = await audit.stub.ProveConsistency(audit_pb2.ProveConsistencyRequest(old_size=old, new_size=new))
                old_root, new_root = merkle_root(leaves[:old]), merkle_root(leaves[:new])
                assert (proof.old_root, proof.new_root) == (old_root, new_root)
                assert verify_consistency(old, new, proof.hashes, old_root=old_root, new_root=new_root)


async def test_entries_are_streamed_as_they_are_hashed(tmp_path):
    """A range, in order, each with the leaf hash that is stored."""
    async with audited(settings_of(tmp_path)) as audit:
        await audit.seal()
        await audit.seal(session=2)
        found = [one async for one in audit.stub.ListEntries(audit_pb2.ListEntriesRequest(start=2, end=5))]

    assert [one.position for one in found] == [2, 3, 4]
    assert all(leaf_hash(one.entry) == one.leaf_hash for one in found)


@pytest.mark.parametrize(
    ("rpc", "request_", "reason"),
    [
        ("ProveInclusion", audit_pb2.ProveInclusionRequest(position=3, size=3), "ENTRY_NOT_COVERED"),
        ("ProveInclusion", audit_pb2.ProveInclusionRequest(position=-1, size=3), "ENTRY_NOT_COVERED"),
        ("ProveInclusion", audit_pb2.ProveInclusionRequest(position=0, size=99), "SIZE_NOT_REACHED"),
        ("ProveInclusion", audit_pb2.ProveInclusionRequest(position=0, size=-1), "INVALID_RANGE"),
        ("ProveInclusion", audit_pb2.ProveInclusionRequest(position=0), "NO_CHECKPOINT"),
        ("ProveInclusion", audit_pb2.ProveInclusionRequest(session_id=session_id(), sequence=9), "EVENT_NOT_FOUND"),
        ("ProveInclusion", audit_pb2.ProveInclusionRequest(session_id="x", sequence=9), "INVALID_ID"),
        ("ProveConsistency", audit_pb2.ProveConsistencyRequest(old_size=0, new_size=3), "INVALID_RANGE"),
        ("ProveConsistency", audit_pb2.ProveConsistencyRequest(old_size=3, new_size=2), "INVALID_RANGE"),
        ("ProveConsistency", audit_pb2.ProveConsistencyRequest(old_size=3, new_size=99), "SIZE_NOT_REACHED"),
        ("GetCheckpoint", audit_pb2.GetCheckpointRequest(), "NO_CHECKPOINT"),
        ("AcknowledgeTruncation", audit_pb2.AcknowledgeTruncationRequest(anchored_size=3), "INVALID_APPROVAL"),
        (
            "AcknowledgeTruncation",
            audit_pb2.AcknowledgeTruncationRequest(anchored_size=3, approval_id=APPROVAL, reviewer_id="r@example.com"),
            "NOTHING_MISSING",
        ),
    ],
)
async def test_what_cannot_be_proved_is_refused_by_its_reason(tmp_path, rpc, request_, reason):
    """Nothing beyond the log, nothing before a checkpoint, no acknowledgement of nothing."""
    async with audited(settings_of(tmp_path)) as audit:
        await audit.seal()
        answer = await getattr(audit.stub, rpc)(request_)

    assert answer.refusal.reason == reason


async def test_a_tree_that_does_not_hold_together_proves_nothing(tmp_path):
    """A stored hash was changed: the proof is refused, and not answered wrong."""
    async with audited(settings_of(tmp_path)) as audit:
        await audit.seal()
        await audit.notary.round()
        with Attacker(tmp_path / "state" / "audit.db") as attack:
            attack("UPDATE events SET data_json = '{}' WHERE sequence = 2")
        answer = await audit.stub.ProveInclusion(audit_pb2.ProveInclusionRequest(position=1))

    assert answer.refusal.reason == "LOG_INCONSISTENT"


async def test_a_log_without_a_notary_has_no_checkpoint(tmp_path):
    """A servicer without a notary proves what a size is named for, and signs nothing."""
    async with serving() as service:
        await service.seal(2)
        checkpoint = await service.stub.GetCheckpoint(audit_pb2.GetCheckpointRequest())
        proof = await service.stub.ProveInclusion(audit_pb2.ProveInclusionRequest(position=1, size=6))

    assert checkpoint.refusal.reason == "NO_CHECKPOINT"
    assert verify_inclusion(leaf_hash(proof.entry), 1, 6, proof.hashes, proof.root)


async def test_a_loss_is_acknowledged_once_and_the_log_goes_on_behind_it(tmp_path):
    """A signed TRUNCATED entry names what was lost and who accepted it; the anchor goes on as the next generation."""
    settings = settings_of(tmp_path)
    database = tmp_path / "state" / "audit.db"
    async with audited(settings) as audit:
        await audit.seal()
    shutil.copy(database, tmp_path / "backup.db")
    async with audited(settings) as audit:
        await audit.seal(session=2)
    for file in database.parent.glob("audit.db*"):
        file.unlink()
    shutil.copy(tmp_path / "backup.db", database)

    async with audited(settings) as audit:
        asked = audit_pb2.AcknowledgeTruncationRequest(
            approval_id=APPROVAL, reviewer_id="r@example.com", anchored_size=5
        )
        assert (await audit.stub.AcknowledgeTruncation(asked)).refusal.reason == "OTHER_LOSS"
        asked.anchored_size = 6
        assert (await audit.stub.AcknowledgeTruncation(asked)).size == 3
        assert not (await audit.seal(session=3)).HasField("refusal")
        assert (await audit.stub.AcknowledgeTruncation(asked)).refusal.reason == "NOTHING_MISSING"
        event = decode_entry((await entries(audit))[3].entry)
        assert (event.session_id, event.event_type) == (LOG_SESSION, "TRUNCATED")
        data = json.loads(event.data_json)
        assert (data["generation"], data["kept"], data["anchored_size"]) == (2, 3, 6)
        assert (data["reviewer_id"], data["approval_id"]) == ("r@example.com", APPROVAL)
        await audit.notary.round()
        checkpoint = await audit.stub.GetCheckpoint(audit_pb2.GetCheckpointRequest())
        assert await audit.service.unready_dependencies() == {}
    assert checkpoint.note.startswith("interlock.local/audit/2\n7\n")
    assert (tmp_path / "anchor" / "2" / "checkpoint").read_text() == checkpoint.note
    async with audited(settings) as audit:  # and is remembered
        assert not (await audit.seal(session=4)).HasField("refusal")


async def test_a_comparison_that_ends_after_the_acknowledgement_changes_nothing(tmp_path):
    """The anchor was read before, and says what was accepted meanwhile: the log goes on."""
    settings = settings_of(tmp_path)
    async with audited(settings) as audit:
        await audit.seal()
        before = Lost("CHAIN_TRUNCATED", 6, 3, generation=1)
        audit.notary.fence.lose(before)
        assert (await audit.seal()).refusal.reason == "CHAIN_TRUNCATED"
        asked = audit_pb2.AcknowledgeTruncationRequest(
            approval_id=APPROVAL, reviewer_id="r@example.com", anchored_size=6
        )
        assert (await audit.stub.AcknowledgeTruncation(asked)).size == 3
        audit.notary.fence.lose(before)
        assert not (await audit.seal()).HasField("refusal")
