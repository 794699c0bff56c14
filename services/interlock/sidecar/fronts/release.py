"""The release of a held response to the client that waits for it, with a reviewer's approval (SPEC-012 §6.2; OVR-4, I12).

It is no window: nothing is dispatched, nothing charged, the budget stays. Everything that can be refused is refused before
the hand-out, so that what is refused stays held; the hand-out is in the chain before a byte leaves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

import structlog

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.domain import approval, held, ids
from interlock.domain.budget import EXHAUSTED_AT
from interlock.domain.errors import Refused, conflict, forbidden, not_found, unauthenticated, unavailable
from interlock.domain.headers.header_syntax import RESPONSE_SYNTAX
from interlock.domain.headers.headers import RequestHeaders
from interlock.domain.held import Held
from interlock.domain.session.session_refusals import ANCESTOR_ENDED, ANCESTOR_EXHAUSTED
from interlock.domain.session.session_refusals import refusal as session_refusal
from interlock.domain.session.token import claimed, root_of
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings
from interlock.sidecar.settlement.recovery import Recovery, settlement
from interlock.sidecar.trail import response_headers, sealed_report
from interlock.sidecar.trail.response_headers import ResponseHeaders

log = structlog.get_logger()

_CLAIM = b"interlock-release-claim-v1"


@dataclass(frozen=True)
class Release:
    """A held response on its way out, with what both fronts need to answer."""

    held: Held
    item: audit_pb2.HeldItem
    sealed: audit_pb2.AppendResponse
    settled: session_pb2.CommitWindowResponse
    session: session_pb2.Session
    """Its session as it is now: it may have spent more since."""

    @property
    def left_micros(self) -> int:
        """What its session has left, millionths: no more than its settlement told."""
        return min(response_headers.left_of(self.settled), self.session.safety_budget_micros)


@dataclass(frozen=True)
class Releases:
    """Tells what became of held responses, and hands approved ones out, within the scope of their session's caller."""

    settings: Settings
    peers: Peers
    recovery: Recovery
    base_url: str

    async def status(self, token: str, scope: str, window_id: str) -> audit_pb2.HeldItem:
        """Return the state of a held response of the token's session; once approved, with the oversight token."""
        session = await self._session(token, scope, Deadline(self.settings.request_timeout_s))
        return await self._item(session, ids.check("crp_win_", window_id))

    async def release(
        self, caller: Caller, asked: RequestHeaders, reply: ResponseHeaders, *, forms: Collection[str]
    ) -> Release:
        """Return the response that the call's approval releases; *forms* are those that its front can answer in.

        Refused by the first thing that does not hold: another session, window, response, policy or action, a forged or
        expired approval, a reviewer who is not registered or is the caller, a response that is not approved, was rejected,
        has expired, was erased or was handed out, a session that ended or has nothing left.
        """
        deadline = Deadline(self.settings.request_timeout_s)
        if asked.session_token is None:
            raise unauthenticated("SESSION_TOKEN_REQUIRED", "a release needs the CRP-Session-Token of its session")
        session = await self._session(asked.session_token, caller.scope, deadline)
        reply.session_id = session.session_id
        said = _presented(asked, session)
        item, form = await self._held(session, said.scope["window"], deadline)
        approved = await self._verified(asked, item, deadline)
        _check_reviewer(approved.reviewer_id, session)
        if form not in {"", *forms}:
            raise conflict(
                "HELD_FORM_DIFFERS", f"the response is held as {form}: ask for it as it was asked for", form=form
            )
        settled, number = await self._settled(item, deadline)
        now = await self._verified_session(asked.session_token, caller.scope, deadline)
        _require_alive(now)
        claim = audit_pb2.ReleaseHeldRequest(
            session_id=item.session_id, window_id=item.window_id, approval_id=approved.approval_id,
            reviewer_id=approved.reviewer_id, response_hash=item.response_hash,
            claim=_claim(asked, sorted(forms)),
        )  # fmt: skip
        answer = await self.peers.audit.release_held(claim, deadline)
        release = Release(_readable(answer.held), answer.item, answer.sealed, settled, now)
        self._tell(release, reply, number, session.max_windows)
        return release

    async def report(self, window_id: str) -> dpe_pb2.Report:
        """Return the sealed report of a window that was released."""
        found = await self.peers.audit.get_report(window_id=window_id)
        return sealed_report.read(found)

    async def outcome(self, release: Release, reply: ResponseHeaders) -> sidecar_pb2.Outcome:
        """Return the outcome for a gRPC caller: the decision as it stands with the approval, the report as it was."""
        decision = policy_pb2.Decision.FromString(release.held.decision)
        decision.action, decision.reason, decision.halt_reason = policy_pb2.ACTION_DELIVER, "", ""
        decision.oversight_required = decision.releasable = False
        return sidecar_pb2.Outcome(
            decision=decision,
            report=await self.report(release.item.window_id),
            headers=reply.headers,
            session_token=release.settled.token,
            session_id=reply.session_id,
            window_id=reply.window_id,
            safety_budget_micros=release.left_micros,
            breaker=release.session.breaker,
            integrity=release.sealed.integrity,
        )

    async def _session(self, token: str, scope: str, deadline: Deadline) -> session_pb2.Session:
        """Return the session of a token, of one that has expired too: a review takes longer than a token lives.

        The session service says that a token expired only after its signature was found to hold.
        """
        try:
            request = session_pb2.GetSessionRequest(token=token, scope=scope)
            return await self.peers.session.get(request, deadline)
        except Refused as refused:
            if refused.reason != "TOKEN_EXPIRED":
                raise
        said = claimed(token)
        request = session_pb2.GetSessionRequest(session_id=said.session_id, root_session_id=root_of(said), scope=scope)
        return await self.peers.session.get(request, deadline)

    async def _verified_session(self, token: str, scope: str, deadline: Deadline) -> session_pb2.Session:
        """Return the session of a token as it is now, verified against its chain."""

        async def look() -> session_pb2.Session:
            return await self._session(token, scope, deadline)

        return await self.recovery.verified_against_chain(await look(), look, deadline)

    async def _held(self, session: session_pb2.Session, window_id: str, deadline: Deadline) -> tuple[Any, str]:
        """Return a held response's state and its form; the form is empty when there are no bytes to look at."""
        found = await self.peers.audit.get_held(window_id, deadline)
        _require_own(found.item, session)
        return found.item, _readable(found.held).form if found.held else ""

    async def _item(self, session: session_pb2.Session, window_id: str) -> audit_pb2.HeldItem:
        found = await self.peers.audit.get_held(window_id, state_only=True)
        _require_own(found.item, session)
        return found.item

    async def _verified(
        self, asked: RequestHeaders, item: audit_pb2.HeldItem, deadline: Deadline
    ) -> policy_pb2.VerifyApprovalResponse:
        """Have the approval verified against what is held, not against what it says of it."""
        request = policy_pb2.VerifyApprovalRequest(
            token=asked.oversight_token or "",
            action=approval.RELEASE,
            session_id=item.session_id,
            scope=_scope_of(item),
        )
        return await self.peers.policy.verify_approval(request, deadline)

    async def _settled(
        self, item: audit_pb2.HeldItem, deadline: Deadline
    ) -> tuple[session_pb2.CommitWindowResponse, int]:
        """Return the window's settlement as it is on record, and the window's number.

        A settlement is made once per window id: this charges nothing, unless a crash came between the seal and the charge.
        """
        sealed = await self.peers.audit.get_window(item.session_id, item.window_id, deadline)
        commit = settlement(sealed)
        return await self.peers.session.commit_window(commit, deadline), sealed.window_number

    def _tell(self, release: Release, reply: ResponseHeaders, number: int, max_windows: int) -> None:
        """Let *reply* say what the response's own headers said, and the budget of now.

        Those of its seal and settlement come from the records.
        """
        reply.window_id = release.item.window_id
        reply.trail_uri = response_headers.trail_uri(self.base_url, release.sealed.trail_id)
        reply.set(cast("Mapping[str, str | None]", _ours(release.held.headers)))
        reply.set(response_headers.of_seal(release.sealed, reply.window_id, self.base_url))
        reply.set(response_headers.of_settlement(release.settled, number, max_windows))
        reply.set(response_headers.of_budget(release.left_micros))
        log.info("response.released", session_id=reply.session_id, window_id=reply.window_id, outcome="RELEASED")


def releasing(asked: RequestHeaders) -> bool:
    """Tell whether a call presents an approval of anything but a delegation: it is no call to be governed then."""
    if asked.oversight_token is None:
        return False
    try:
        return approval.read(asked.oversight_token).approval.action != approval.DELEGATE
    except Refused:
        return False


def held_json(item: audit_pb2.HeldItem) -> dict[str, Any]:
    """Return the state of a held response as its client gets it; what is not known yet is null."""
    names = ("reviewer_id", "approval_id", "decided_at", "reason")
    return {
        "session_id": item.session_id,
        "window_id": item.window_id,
        "status": response_headers.word(audit_pb2.HeldStatus, item.status),
        "held_at": item.held_at,
        "expires_at": item.expires_at,
        "risk_level": response_headers.word(common_pb2.RiskLevel, item.risk_level),
        "response_hash": item.response_hash,
        "policy_hash": item.policy_hash,
        **{name: getattr(item, name) or None for name in names},
        "oversight_token": item.token or None,
    }


def _scope_of(item: audit_pb2.HeldItem) -> dict[str, str]:
    """Return what a decision about a held response is pinned to."""
    return {
        "session": item.session_id, "window": item.window_id, "response": item.response_hash, "policy": item.policy_hash,
    }  # fmt: skip


def _check_reviewer(reviewer: str, session: session_pb2.Session) -> None:
    """Refuse a reviewer who is the session's own caller. Who made the other sessions of its tree, oversight looks at too."""
    if approval.is_caller(reviewer, (session.scope, session.agent.agent_type)):
        raise forbidden("SELF_APPROVAL", "no one approves what they asked for themselves", reviewer_id=reviewer)


def _presented(asked: RequestHeaders, session: session_pb2.Session) -> approval.Approval:
    said = approval.read(asked.oversight_token or "").approval
    if said.action != approval.RELEASE:
        raise unauthenticated("APPROVAL_MISMATCH", "the approval is for another action", field="action")
    if said.scope["session"] != session.session_id:
        raise unauthenticated("APPROVAL_MISMATCH", "the approval is for another session", field="session")
    ids.check("crp_win_", said.scope["window"])
    return said


def _require_own(item: audit_pb2.HeldItem, session: session_pb2.Session) -> None:
    if item.session_id != session.session_id:
        raise not_found("HELD_NOT_FOUND", "there is no held response of that window")


def _require_alive(session: session_pb2.Session) -> None:
    """Refuse a session that its client ended or that has nothing left, and one below such a session (I20); one that is merely
    depleted, or below one that is, can release (reading 4).
    """
    above = session.ancestor_halt
    if above.reason in {ANCESTOR_ENDED, ANCESTOR_EXHAUSTED}:
        raise session_refusal(above.reason, above.session_id, above.safety_budget_micros)
    if session.safety_budget_micros <= EXHAUSTED_AT:
        raise session_refusal("BUDGET_DEPLETED", session.safety_budget_micros)
    last = max((window.window_number for window in session.windows), default=0)
    if session.status == session_pb2.SESSION_STATUS_TERMINATED and last < session.max_windows:
        raise session_refusal("SESSION_TERMINATED")


def _claim(asked: RequestHeaders, forms: Collection[str]) -> str:
    """Return what stands for exactly this request: who asks again with all of it is who asked before."""
    parts = [
        _CLAIM,
        (asked.session_token or "").encode(),
        (asked.oversight_token or "").encode(),
        "|".join(forms).encode(),
    ]
    return "sha256:" + hashlib.sha256(b"\x1f".join(parts)).hexdigest()


def _readable(data: bytes) -> Held:
    try:
        return held.unpacked(data)
    except ValueError:
        raise unavailable("HELD_UNREADABLE", "what is held cannot be read by this version", retry_after_ms=0) from None


def _ours(kept: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that this version knows the grammar of; the others cannot be vouched for."""
    return {name: value for name, value in kept.items() if name in RESPONSE_SYNTAX}
