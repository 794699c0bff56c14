"""What a reviewer does with compensations that are stuck: list them, read one, decide.

Who may decide is checked here; whether there is something to decide, and that it is decided once, is the kernel's own rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from interlock.api.audit.v1 import audit_pb2
from interlock.api.kernel.v1 import kernel_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain import approval, ids
from interlock.domain.errors import Refused, forbidden, unauthenticated, unavailable
from interlock.domain.kernel.state import refusal
from interlock.domain.kernel.stuck import require_reason
from interlock.domain.policy.roles import not_covered, require_content
from interlock.oversight.console import DECISIONS
from interlock.oversight.views import View, Views
from interlock.runtime.rpc.kernels.kernels import Kernels
from interlock.runtime.rpc.peers import Peers

log = structlog.get_logger()

_RECORD = re.compile(r"0|[1-9]\d{0,17}", re.ASCII)
_DECISIONS: Mapping[str, session_pb2.PersonsDecision.ValueType] = {
    "done": session_pb2.PERSONS_DECISION_DONE,
    "retry": session_pb2.PERSONS_DECISION_RETRY,
    "leave": session_pb2.PERSONS_DECISION_LEAVE,
}


@dataclass(frozen=True)
class Owner:
    """Whose a kernel is, as its first record says. Empty strings where it does not."""

    kernel: str = ""
    scope: str = ""
    root: str = ""


@dataclass(frozen=True)
class StuckView:
    """Everything that a reviewer needs to judge a compensation."""

    owner: Owner
    compensation: kernel_pb2.Compensation
    described: kernel_pb2.DescribeResponse

    def action(self, action_id: str) -> kernel_pb2.Action | None:
        """Return a registered action of the kernel."""
        return next((one for one in self.described.definition.actions if one.id == action_id), None)


@dataclass(frozen=True)
class StuckCases:
    """The use cases."""

    peers: Peers
    kernels: Kernels
    views: Views

    async def page(
        self, view: View, after: audit_pb2.StuckCompensation | None, limit: int
    ) -> audit_pb2.ListStuckResponse:
        """Return a page of what waits, the oldest first. A limited sight sees less of it: what its keys and agent types own."""
        require_content(view.role)
        found = await self.peers.audit.list_stuck(audit_pb2.ListStuckRequest(after=after, limit=limit))
        if not view.sight.is_limited:
            return found
        items = [one for one in found.items if await self._is_covered(view, await self._owner(one.kernel_id))]
        return audit_pb2.ListStuckResponse(items=items, more=found.more)

    async def shown(self, view: View, kernel_id: str, step: str) -> StuckView:
        """Return one as it stands now.

        Refused with ROLE_SEES_NO_CONTENT, with SESSION_NOT_COVERED, and with KERNEL_COMPENSATION_UNKNOWN where it was made up for.
        """
        require_content(view.role)
        ids.check("crp_sess_", kernel_id)
        if view.sight.is_limited and not await self._is_covered(view, await self._owner(kernel_id)):
            raise not_covered()
        described = await self.kernels.read(kernel_id)
        found = next((one for one in described.compensations if one.execution == step), None)
        if found is None:
            raise refusal("KERNEL_COMPENSATION_UNKNOWN")
        return StuckView(await self._owner(kernel_id), found, described)

    async def decide(self, view: View, kernel_id: str, step: str, token: str, reason: str) -> kernel_pb2.Verdict:
        """Record a signed decision of the signed-in reviewer, and return the kernel's verdict; it is sealed.

        Refused with VIEW_READS_ONLY for a viewer, with REVIEWER_MISMATCH for another reviewer's token, with SELF_APPROVAL for the
        kernel's own caller, and with the reasons of the policy service and of the kernel.
        """
        if view.reads_only:
            raise forbidden("VIEW_READS_ONLY", "a viewer decides nothing: sign in with a reviewer's key")
        require_content(view.role)
        try:
            verdict = await self._decided(view, ids.check("crp_sess_", kernel_id), step, token, reason)
        except Refused as refused:
            DECISIONS.labels(approval.COMPENSATE, refused.reason).inc()
            log.warning("oversight.stuck_refused", kernel_id=kernel_id, reason=refused.reason)
            raise
        outcome = "decided" if verdict.approved else "rejected"
        DECISIONS.labels(approval.COMPENSATE, outcome).inc()
        self.views.decided(view.reviewer)
        log.info("oversight.stuck_decided", kernel_id=kernel_id, name=view.reviewer, outcome=outcome)
        return verdict

    async def _decided(self, view: View, kernel_id: str, step: str, token: str, reason: str) -> kernel_pb2.Verdict:
        said = approval.read(token).approval
        if said.action != approval.COMPENSATE:
            raise unauthenticated("APPROVAL_MISMATCH", "the approval is for another action", field="action")
        record, outcome = said.scope["record"], said.scope["outcome"]
        require_reason(outcome, reason)
        if not _RECORD.fullmatch(record):
            raise unauthenticated("APPROVAL_MISMATCH", "the approval names no record", field="record")
        scope = {"kernel": kernel_id, "step": step, "record": record, "outcome": outcome}
        verify = policy_pb2.VerifyApprovalRequest(token=token, action=said.action, session_id=kernel_id, scope=scope)
        verified = await self.peers.policy.verify_approval(verify)
        if verified.reviewer_id != view.reviewer:
            raise forbidden("REVIEWER_MISMATCH", "a reviewer hands in their own decisions, signed in as themselves")
        owner = await self._owner(kernel_id)
        if not await self._is_covered(view, owner):
            raise not_covered()
        await self._check_reviewer(view.reviewer, owner)
        decision = session_pb2.DecideCompensationRequest(
            kernel_id=kernel_id, execution=step, fence=int(record), decision=_DECISIONS[outcome], reason=reason,
            reviewer_id=verified.reviewer_id, approval_id=verified.approval_id, token=token,
        )  # fmt: skip
        return await self.kernels.decide(decision)

    async def _check_reviewer(self, reviewer: str, owner: Owner) -> None:
        """Refuse a reviewer who is a caller of the kernel, and any reviewer while its callers are unknown."""
        if not owner.scope:
            message = "the first record of the kernel does not say whose it is: its caller settles this one"
            raise unavailable("CALLERS_UNKNOWN", message, retry_after_ms=0)
        began = await self._began(owner)
        callers = [owner.scope, *(str(data.get(name) or "") for _, data in began for name in ("scope", "agent_type"))]
        if approval.is_caller(reviewer, callers):
            message = "no one decides what their own agents left undone"
            raise forbidden("SELF_APPROVAL", message, reviewer_id=reviewer)

    async def _is_covered(self, view: View, owner: Owner) -> bool:
        """Tell whether the sight of a role covers a kernel: by its key, or by the root of its tree. Who is below there is no owner."""
        if view.sight.covers(owner.scope, ""):
            return True
        roots = [data for session_id, data in await self._began(owner) if session_id == owner.root]
        return any(view.sight.covers(str(data.get("scope") or ""), str(data.get("agent_type") or "")) for data in roots)

    async def _began(self, owner: Owner) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the sessions of a kernel's tree, and how each began; none where it belongs to no tree."""
        if not owner.root:
            return []
        record = await self.peers.audit.look_at_tree_record(owner.root)
        return [
            (one.session_id, json.loads(one.data_json)) for one in record.steps if one.event_type == "SESSION_CREATED"
        ]

    async def _owner(self, kernel_id: str) -> Owner:
        """Return whose a kernel is, from its chain and not from the store."""
        found = await self.kernels.opened(kernel_id)
        data = json.loads(found.records[0].data_json) if found.records else {}
        return Owner(*(str(data.get(name) or "") for name in ("kernel", "scope", "root_session_id")))
