"""Checkpoints, proofs and entries of the Merkle log, and the acknowledgement of a loss (AUD-6).

Proofs are made from stored hashes and checked before they are returned: a proof that does not hold is refused.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TypeVar

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.merkle.checkpoints import Notary
from interlock.audit.requests import Note
from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.readers import Readers
from interlock.audit.sealing.seal import Sealer
from interlock.audit.store.fence import Acknowledging, Lost
from interlock.audit.store.log import AuditLog, Entry, StoreFailed, Writing
from interlock.domain import ids
from interlock.domain.approval import REVIEWER
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.marks import TRUNCATED
from interlock.domain.errors import Refused, conflict, invalid, not_found
from interlock.domain.merkle.entries import LOG_SESSION
from interlock.domain.merkle.entry import encode_entry
from interlock.domain.merkle.tree import (
    StoredTree,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    tree_root,
    verify_consistency,
    verify_inclusion,
)

PAGE = 512
_APPROVAL = re.compile(r"crp_appr_[0-9a-f]{32}", re.ASCII)

T = TypeVar("T")


class LogProofs:
    """Proves what the Merkle log holds, and accepts a loss on a reviewer's approval."""

    def __init__(
        self, audit_log: AuditLog, readers: Readers, appender: Appender, sealer: Sealer, notary: Notary | None
    ) -> None:
        """Without a *notary* there is no verifier key and nothing is fenced."""
        self._log, self._readers, self._appender, self._sealer = audit_log, readers, appender, sealer
        self._notary = notary

    async def checkpoint(self) -> audit_pb2.GetCheckpointResponse:
        """Return the checkpoint that was signed last. Refused with NO_CHECKPOINT before the first."""
        size, note = await self._readers.run(self._checkpoint)
        return audit_pb2.GetCheckpointResponse(
            note=note,
            size=size,
            log_size=await self._readers.run(self._log.log_size),
            verifier_key=str(self._notary.key.verifier()) if self._notary else "",
        )

    async def inclusion(self, request: audit_pb2.ProveInclusionRequest) -> audit_pb2.ProveInclusionResponse:
        """Prove that an entry is in the log of a given size."""
        return await self._readers.run(partial(self._prove_inclusion, request))

    async def consistency(self, request: audit_pb2.ProveConsistencyRequest) -> audit_pb2.ProveConsistencyResponse:
        """Prove that the log of one size begins with the log of an earlier one."""
        return await self._readers.run(partial(self._prove_consistency, request.old_size, request.new_size))

    async def entries(self, request: audit_pb2.ListEntriesRequest) -> AsyncIterator[audit_pb2.ListEntriesResponse]:
        """Yield entries as they are hashed, read a page at a time."""
        end = min(request.end or 2**63, await self._readers.run(self._log.log_size))
        if request.start < 0 or request.end < 0:
            raise invalid("INVALID_RANGE", "entries have positions from 0 up")
        for start in range(request.start, end, PAGE):
            for entry in await self._readers.run(partial(self._log.entries, start, min(start + PAGE, end))):
                yield audit_pb2.ListEntriesResponse(
                    position=entry.position, entry=_bytes(entry), leaf_hash=entry.leaf_hash
                )

    async def acknowledge(
        self, request: audit_pb2.AcknowledgeTruncationRequest
    ) -> audit_pb2.AcknowledgeTruncationResponse:
        """Record that a reviewer accepts a loss; the log then continues as its next generation."""
        if not _APPROVAL.fullmatch(request.approval_id) or not REVIEWER.fullmatch(request.reviewer_id):
            raise invalid("INVALID_APPROVAL", "a loss is acknowledged with the verified approval of a reviewer")
        lost = self._notary.fence.lost if self._notary else None
        if lost is None:
            raise conflict("NOTHING_MISSING", "the log is neither shorter than the anchored one nor different from it")
        if request.anchored_size != lost.size:
            raise conflict("OTHER_LOSS", "the loss to acknowledge is another one", anchored_size=str(lost.size))
        work = partial(self._acknowledge, lost=lost, approval_id=request.approval_id, reviewer_id=request.reviewer_id)
        size = await self._appender.submit(Acknowledging(work))
        await self._appender.submit(
            lambda writing: writing.touch()
        )  # passes the fence and shows that writing works again
        return audit_pb2.AcknowledgeTruncationResponse(size=size)

    def _acknowledge(self, writing: Writing, lost: Lost, approval_id: str, reviewer_id: str) -> int:
        if any(approval_id in event.data_json for event in writing.chain(LOG_SESSION).events):
            raise conflict("APPROVAL_USED", "this approval is used already")
        size = writing.log_size()
        data = {
            "generation": lost.generation + 1, "kept": lost.kept, "anchored_size": lost.size,
            "anchored_root": lost.root.hex(), "cause": lost.cause, "size": size, "approval_id": approval_id,
            "reviewer_id": reviewer_id,
        }  # fmt: skip
        note = Note(TRUNCATED, audit_pb2.SEVERITY_CRITICAL, canonical_json(data), "")
        self._sealer.record(writing, LOG_SESSION, "", (note,))
        return size

    def _checkpoint(self) -> tuple[int, str]:
        found = self._log.checkpoint()
        if found is None:
            message = "nothing is signed yet; the next entries bring a checkpoint"
            raise not_found("NO_CHECKPOINT", message, log_size=str(self._log.log_size()))
        return found

    def _prove_inclusion(self, request: audit_pb2.ProveInclusionRequest) -> audit_pb2.ProveInclusionResponse:
        position, size = self._position(request), self._size(request.size)
        if not 0 <= position < size:
            raise not_found("ENTRY_NOT_COVERED", "the log of that size has no such entry", size=str(size))
        found = self._log.entries(position, position + 1)
        node = self._tree().node
        proof, root = self._hashes(partial(inclusion_proof, position, size, node)), self._root(size, node)
        leaf = found[0].leaf_hash if found else b""
        if not verify_inclusion(leaf, position, size, proof, root):
            raise _inconsistent()
        entry = _bytes(found[0])
        if entry and leaf_hash(entry) != leaf:
            raise _inconsistent()
        return audit_pb2.ProveInclusionResponse(position=position, size=size, entry=entry, hashes=proof, root=root)

    def _prove_consistency(self, old_size: int, new_size: int) -> audit_pb2.ProveConsistencyResponse:
        new_size = self._size(new_size)
        if not 0 < old_size <= new_size:
            raise invalid("INVALID_RANGE", "the earlier size is from 1 up to the later one")
        node = self._tree().node
        proof = self._hashes(partial(consistency_proof, old_size, new_size, node))
        old_root, new_root = self._root(old_size, node), self._root(new_size, node)
        if not verify_consistency(old_size, new_size, proof, old_root=old_root, new_root=new_root):
            raise _inconsistent()
        return audit_pb2.ProveConsistencyResponse(new_size=new_size, hashes=proof, old_root=old_root, new_root=new_root)

    def _position(self, request: audit_pb2.ProveInclusionRequest) -> int:
        if not request.session_id:
            return request.position
        positions = self._log.positions(ids.check("crp_sess_", request.session_id))
        if request.sequence not in positions:
            raise not_found("EVENT_NOT_FOUND", "the audit log has no such event of that session")
        return positions[request.sequence]

    def _size(self, size: int) -> int:
        """Return the requested size, or the size of the latest checkpoint for 0."""
        if size < 0:
            raise invalid("INVALID_RANGE", "a size is from 0 up")
        now = self._log.log_size()
        if size > now:
            raise not_found("SIZE_NOT_REACHED", "the log is smaller than that", size=str(now))
        return size or self._checkpoint()[0]

    def _tree(self) -> StoredTree:
        return StoredTree(
            lambda level, start, end: self._log.nodes(level, start, end) if level else self._log.leaf_hashes(start, end)
        )

    def _root(self, size: int, node: Callable[[int, int], bytes]) -> bytes:
        return self._hashes(partial(tree_root, size, node))

    def _hashes(self, made: Callable[[], T]) -> T:
        try:
            return made()
        except LookupError:
            raise _inconsistent() from None


def _bytes(entry: Entry) -> bytes:
    return encode_entry(entry.event) if entry.event is not None else b""


def _inconsistent() -> Refused:
    return StoreFailed(
        "LOG_INCONSISTENT", "the stored tree is inconsistent; nothing can be proved from it",
        hint="run `interlock audit fsck`", cause="LOG_INCONSISTENT",
    )  # fmt: skip
