"""The RPCs of the Merkle log: checkpoints, proofs, entries, and the acknowledgement of a loss (AUD-6).

Proofs are made from stored hashes and checked before they are answered: what does not hold is a refusal, never an answer.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.requests import Note
from interlock.audit.store.fence import Acknowledging, Lost
from interlock.audit.store.log import AuditLog, Entry, StoreFailed, Writing
from interlock.domain import ids
from interlock.domain.approval import REVIEWER
from interlock.domain.chain.chain import canonical_json
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
from interlock.runtime.rpc.errors import answers_refusals

if TYPE_CHECKING:
    from interlock.audit.merkle.checkpoints import Notary
    from interlock.audit.sealing.appender import Appender
    from interlock.audit.sealing.seal import Sealer

PAGE = 512
_APPROVAL = re.compile(r"crp_appr_[0-9a-f]{32}", re.ASCII)

T = TypeVar("T")


class ProofHandlers:
    """A part of ``AuditServicer``."""

    _log: AuditLog
    _appender: Appender
    _sealer: Sealer
    notary: Notary | None = None
    """What signs checkpoints; without one there are none to be had, and nothing is fenced."""

    async def read(self, reading: Callable[[], T]) -> T:
        """Run *reading* in a reader thread."""
        raise NotImplementedError

    def require_anchored(self) -> None:
        """Refuse with AUDIT_ANCHOR_LAG what would let an answer out while too much is not published."""
        if self.notary is not None:
            self.notary.require_anchored()

    @answers_refusals(audit_pb2.GetCheckpointResponse)
    async def GetCheckpoint(self, request: Any, context: Any) -> audit_pb2.GetCheckpointResponse:  # noqa: N802 - gRPC's name
        """Answer the checkpoint that was signed last."""
        del request, context
        size, note = await self.read(self._checkpoint)
        return audit_pb2.GetCheckpointResponse(
            note=note,
            size=size,
            log_size=await self.read(self._log.log_size),
            verifier_key=str(self.notary.key.verifier()) if self.notary else "",
        )

    @answers_refusals(audit_pb2.ProveInclusionResponse)
    async def ProveInclusion(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.ProveInclusionRequest, context: Any
    ) -> audit_pb2.ProveInclusionResponse:
        """Prove that an entry is in the log of a size."""
        del context
        return await self.read(partial(self._prove_inclusion, request))

    @answers_refusals(audit_pb2.ProveConsistencyResponse)
    async def ProveConsistency(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.ProveConsistencyRequest, context: Any
    ) -> audit_pb2.ProveConsistencyResponse:
        """Prove that the log of one size begins with that of an earlier one."""
        del context
        return await self.read(partial(self._prove_consistency, request.old_size, request.new_size))

    async def ListEntries(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.ListEntriesRequest, context: Any
    ) -> AsyncIterator[audit_pb2.ListEntriesResponse]:
        """Stream entries as they are hashed, a page at a time."""
        del context
        end = min(request.end or 2**63, await self.read(self._log.log_size))
        if request.start < 0 or request.end < 0:
            raise invalid("INVALID_RANGE", "entries have positions from 0 up")
        for start in range(request.start, end, PAGE):
            for entry in await self.read(partial(self._log.entries, start, min(start + PAGE, end))):
                yield audit_pb2.ListEntriesResponse(
                    position=entry.position, entry=_bytes(entry), leaf_hash=entry.leaf_hash
                )

    @answers_refusals(audit_pb2.AcknowledgeTruncationResponse)
    async def AcknowledgeTruncation(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.AcknowledgeTruncationRequest, context: Any
    ) -> audit_pb2.AcknowledgeTruncationResponse:
        """Write down that a reviewer accepts a loss; from then on the log goes on, as its next generation."""
        del context
        if not _APPROVAL.fullmatch(request.approval_id) or not REVIEWER.fullmatch(request.reviewer_id):
            raise invalid("INVALID_APPROVAL", "a loss is acknowledged with the verified approval of a reviewer")
        lost = self.notary.fence.lost if self.notary else None
        if lost is None:
            raise conflict("NOTHING_MISSING", "the log is not shorter than what was anchored, nor other")
        if request.anchored_size != lost.size:
            raise conflict("OTHER_LOSS", "another loss is to be acknowledged", anchored_size=str(lost.size))
        work = partial(self._acknowledge, lost=lost, approval_id=request.approval_id, reviewer_id=request.reviewer_id)
        size = await self._appender.submit(Acknowledging(work))
        await self._appender.submit(lambda writing: writing.touch())  # the fence sees it, and that writing works again
        return audit_pb2.AcknowledgeTruncationResponse(size=size)

    def _acknowledge(self, writing: Writing, lost: Lost, approval_id: str, reviewer_id: str) -> int:
        if any(approval_id in event.data_json for event in writing.chain(LOG_SESSION).events):
            raise conflict("APPROVAL_USED", "this approval was used already")
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
            raise not_found("NO_CHECKPOINT", "nothing was signed yet; a checkpoint comes with the next entries")
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
        """Return the size that is asked for; that of the latest checkpoint where none is."""
        if size < 0:
            raise invalid("INVALID_RANGE", "a size is from 0 up")
        now = self._log.log_size()
        if size > now:
            raise not_found("SIZE_NOT_REACHED", "the log is not that large", size=str(now))
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
        "LOG_INCONSISTENT", "the stored tree does not hold together; nothing can be proved from it",
        hint="run `interlock audit fsck`", cause="LOG_INCONSISTENT",
    )  # fmt: skip
