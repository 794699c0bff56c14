"""Checking chains and trees for a caller: every fault is named, and every broken chain is reported."""

from __future__ import annotations

from functools import partial
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.sealing.chains import VerifiedChains
from interlock.audit.sealing.readers import Readers
from interlock.audit.sealing.verify import examine, no_session
from interlock.audit.store.log import AuditLog
from interlock.audit.tree.messages import tree_message, verification_message
from interlock.audit.tree.walk import Tree, TreeReader, walk_tree
from interlock.domain import ids
from interlock.domain.chain.chain import Verification
from interlock.runtime.keys.derivation import Keyring


class ChainVerifier:
    """Verifies the chain of one session, or of every session of a tree."""

    def __init__(self, audit_log: AuditLog, readers: Readers, chains: VerifiedChains, keyring: Keyring) -> None:
        self._log, self._readers, self._chains, self._keyring = audit_log, readers, chains, keyring

    async def verify(self, request: audit_pb2.VerifyRequest) -> audit_pb2.VerifyResponse:
        """Check a session's chain from the stored bytes and name every fault."""
        session_id = ids.check("crp_sess_", request.session_id)
        found = await self._readers.run(partial(self._examine, session_id))
        await self._chains.report_faults(session_id, found)
        return verification_message(found)

    async def verify_tree(self, request: audit_pb2.VerifyTreeRequest) -> audit_pb2.VerifyTreeResponse:
        """Walk the sessions of a tree. Each is a read of its own, so that other callers are served in between."""
        tree = await self._walk(ids.check("crp_sess_", request.session_id))
        for trail in tree.trails:
            await self._chains.report_faults(trail.session_id, trail.found)
        return tree_message(tree)

    async def _walk(self, root_id: str) -> Tree:
        walk = walk_tree(TreeReader(self._log, self._keyring), root_id)
        answer: Any = None
        while True:
            try:
                read, name = walk.send(answer)
            except StopIteration as done:
                tree: Tree = done.value
                return tree
            answer = await self._readers.run(partial(read, name))

    def _examine(self, session_id: str) -> Verification:
        chain = self._log.chain(session_id)
        if not chain.events and not chain.windows:
            raise no_session()
        return examine(chain, session_id, self._keyring)
