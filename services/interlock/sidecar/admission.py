"""Admitting a call: who it belongs to, under which policy, with what budget (design.md, One dispatch, 1)."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from google.protobuf import json_format

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.breaker import BreakerState, state_of
from interlock.domain.budget import OPEN_AT, Micros, as_decimal
from interlock.domain.errors import Kind, Refused, conflict, halted, invalid, unauthenticated
from interlock.domain.headers import Asked
from interlock.runtime.client import ask
from interlock.runtime.config import Settings
from interlock.runtime.mesh import Mesh
from interlock.sidecar import events, propagation
from interlock.sidecar.propagation import Known
from interlock.sidecar.waiting import Deadline, insist

log = structlog.get_logger()


@dataclass(frozen=True)
class Admitted:
    """The lease of a window, and everything that its decision rests on."""

    opened: session_pb2.OpenedWindow
    policy: policy_pb2.ResolveResponse
    budget: Micros
    """The lowest that anyone vouches for: the ledger, the token, or a ceiling that the caller set itself (§12.4)."""

    @property
    def breaker(self) -> BreakerState:
        """Breaker before this window, never milder than the ledger's."""
        return max(state_of(self.budget), BreakerState(self.opened.breaker or BreakerState.OPEN))


class Admission:
    """Opens windows, and sessions where there is none yet."""

    def __init__(self, settings: Settings, mesh: Mesh, base_url: str) -> None:
        self._mesh, self._timeout_s, self._base_url = mesh, settings.rpc_timeout_s, base_url
        # No lease outlives the call that took it by more than one step.
        self._lease_ms = int((settings.request_timeout_s + settings.rpc_timeout_s) * 1000)

    async def admit(self, scope: str, asked: Asked, known: Known, deadline: Deadline) -> Admitted:
        """Return the lease of the call's window; a call without a token starts a session."""
        _check_session_fields(asked)
        if asked.session_token is None:
            started, policy = await self.start(scope, asked, known, deadline)
            opened = await self._open(scope, asked, started.token, known, deadline)
        else:
            opened = await self._open(scope, asked, asked.session_token, known, deadline)
            policy = await self._resumed(asked, opened, known, deadline)
        admitted = Admitted(opened, policy, _effective(opened, asked))
        if admitted.budget <= OPEN_AT:
            await self.give_back(opened)
            known.learn({"CRP-Safety-Retry-After": "0"})
            raise halted(
                "BUDGET_DEPLETED",
                "the ceiling in CRP-Agent-Safety-Budget leaves nothing to spend",
                halt_reason="SAFETY_BUDGET_DEPLETED",
            )
        return admitted

    async def start(
        self, scope: str, asked: Asked, known: Known, deadline: Deadline
    ) -> tuple[session_pb2.StartSessionResponse, policy_pb2.ResolveResponse]:
        """Start a session under the policy of the request, and write that down first of all."""
        policy = await self._resolve(asked, None, deadline, known)
        request = session_pb2.StartSessionRequest(
            scope=scope, policy_text=policy.policy_text, policy_hash=policy.policy_hash
        )
        timeout = deadline.within(self._timeout_s)
        started = await ask("session", self._mesh.session.StartSession(request, timeout=timeout))
        session = started.session
        created = events.session_created(session.session_id, scope, policy.policy_hash)
        await self.record(session.session_id, "", [created], deadline)
        known.session_id = session.session_id
        known.learn(propagation.of_session(session, started.token))
        return started, policy

    async def record(
        self, session_id: str, window_id: str, noted: list[audit_pb2.NewEvent], deadline: Deadline
    ) -> None:
        """Append events that belong to no seal; they are durable when this returns."""
        request = audit_pb2.RecordRequest(session_id=session_id, window_id=window_id, events=noted)
        await insist(lambda: ask("audit", self._mesh.audit.Record(request, timeout=deadline.within(self._timeout_s))))

    async def give_back(self, opened: session_pb2.OpenedWindow) -> None:
        """Return a lease whose window was never sealed. If that fails, the lease runs out by itself."""
        request = session_pb2.AbandonWindowRequest(
            session_id=opened.session_id, root_session_id=opened.root_session_id, window_id=opened.window_id
        )
        try:
            await ask("session", self._mesh.session.AbandonWindow(request, timeout=self._timeout_s))
        except Refused as refused:
            log.warning(
                "window.lease_kept", session_id=opened.session_id, window_id=opened.window_id, reason=refused.reason
            )

    async def forget(self, session_id: str, window_id: str) -> None:
        """Delete what a window said that was kept back after it was sealed: no later window can repeat it."""
        try:
            await self._drop_content(session_id, window_id, Deadline(self._timeout_s))
        except Refused as refused:
            log.warning("audit.content_kept", session_id=session_id, window_id=window_id, reason=refused.reason)

    async def _drop_content(self, session_id: str, window_id: str, deadline: Deadline) -> None:
        request = audit_pb2.DropContentRequest(session_id=session_id, window_id=window_id)
        await insist(
            lambda: ask("audit", self._mesh.audit.DropContent(request, timeout=deadline.within(self._timeout_s)))
        )

    async def _open(
        self, scope: str, asked: Asked, token: str, known: Known, deadline: Deadline
    ) -> session_pb2.OpenedWindow:
        request = session_pb2.OpenWindowRequest(
            token=token,
            scope=scope,
            continuation_id=asked.continuation_id or "",
            nonce=asked.nonce or "",
            lease_ms=self._lease_ms,
        )
        timeout = deadline.within(self._timeout_s)
        try:
            opened = (await ask("session", self._mesh.session.OpenWindow(request, timeout=timeout))).window
        except Refused as refused:
            await self._explain(refused, scope, token, known)
            raise
        known.session_id, known.window_id = opened.session_id, opened.window_id
        known.learn(propagation.of_opened(opened))
        return opened

    async def _explain(self, refused: Refused, scope: str, token: str, known: Known) -> None:
        """Add what a caller needs to go on: that a new session helps, and, after a halt, what became of this one."""
        if refused.kind is Kind.UNAUTHENTICATED:
            # SPEC-004 §16.2: retry at once, with a new session.
            known.learn({"CRP-Safety-Retry-After": "0"})
        if refused.kind is not Kind.HALTED:
            return
        known.learn({"CRP-Safety-Retry-After": "new-session-required"})
        request = session_pb2.GetSessionRequest(token=token, scope=scope)
        try:
            session = (await ask("session", self._mesh.session.GetSession(request, timeout=self._timeout_s))).session
            known.session_id = session.session_id
            known.learn(
                {
                    "CRP-Context-Session-Id": session.session_id,
                    "CRP-Agent-Safety-Budget": as_decimal(Micros(session.safety_budget_micros)),
                }
            )
            if session.windows:
                await self._explain_by(session.windows[-1], known)
        except Refused as without:
            # The halt stands without its details.
            log.warning("halt.unexplained", session_id=known.session_id, reason=without.reason)

    async def _explain_by(self, last: session_pb2.Window, known: Known) -> None:
        """Point to the record of the window that spent the budget: a 451 names a risk and a trail (SPEC-002 §13.1)."""
        request = audit_pb2.GetWindowRequest(session_id=last.session_id, window_id=last.window_id)
        sealed = await ask("audit", self._mesh.audit.GetWindow(request, timeout=self._timeout_s))
        known.window_id, known.trail_uri = last.window_id, propagation.trail_uri(self._base_url, sealed.trail_id)
        known.learn(
            {
                "CRP-Safety-Hallucination-Risk": propagation.word(common_pb2.RiskLevel, last.risk_level),
                "CRP-Compliance-Audit-Trail-Id": sealed.trail_id,
                "CRP-Compliance-Audit-Trail-URI": known.trail_uri,
            }
        )

    async def _resumed(
        self, asked: Asked, opened: session_pb2.OpenedWindow, known: Known, deadline: Deadline
    ) -> policy_pb2.ResolveResponse:
        """Bring the session up to date and tighten its policy; the lease goes back when either is refused."""
        try:
            await self._replay_unsettled(opened, known, deadline)
            return await self._resolve(asked, opened.policy_text, deadline, known)
        except BaseException:
            await self.give_back(opened)
            raise

    async def _replay_unsettled(self, opened: session_pb2.OpenedWindow, known: Known, deadline: Deadline) -> None:
        """Settle a window whose lease ran out after its seal; its charge stands, whatever became of its caller.

        Refused with WINDOW_ALREADY_SETTLED and a fresh token when there was one: the token presented is behind it.
        """
        if not opened.unsettled_window_id:
            return
        request = audit_pb2.GetWindowRequest(session_id=opened.session_id, window_id=opened.unsettled_window_id)
        try:
            timeout = deadline.within(self._timeout_s)
            sealed = await ask("audit", self._mesh.audit.GetWindow(request, timeout=timeout))
        except Refused as refused:
            if refused.kind is Kind.NOT_FOUND:
                return
            raise
        # First what it said: nobody was told. Were it last, a failure here would leave it to be compared with.
        await self._drop_content(opened.session_id, opened.unsettled_window_id, deadline)
        commit = json_format.Parse(sealed.settle_json, session_pb2.CommitWindowRequest())
        commit.hmac, commit.timestamp = sealed.hmac, sealed.timestamp
        settled = await insist(
            lambda: ask("session", self._mesh.session.CommitWindow(commit, timeout=deadline.within(self._timeout_s)))
        )
        noted = events.of_transitions(settled, window_number=commit.window_number)
        if noted:
            await self.record(opened.session_id, commit.window_id, noted, deadline)
        known.window_id = commit.window_id
        known.learn(propagation.of_settlement(settled, commit.window_number, opened.max_windows))
        log.info("window.settled_late", session_id=opened.session_id, window_id=commit.window_id)
        raise conflict(
            "WINDOW_ALREADY_SETTLED",
            "the previous window was settled, but its answer was not delivered; go on with the token in CRP-Set-Session",
            window_id=commit.window_id,
        )

    async def _resolve(
        self, asked: Asked, base: str | None, deadline: Deadline, known: Known
    ) -> policy_pb2.ResolveResponse:
        request = policy_pb2.ResolveRequest(
            base_text=base,
            policy_texts=_lines(asked, base),
            safety_mode=asked.safety_mode or "",
            oversight_mode=asked.oversight_mode or "",
            accept_risk=asked.accept_risk.name if asked.accept_risk else "",
            report_only_texts=asked.report_only,
            accept_quality=asked.accept_quality,
        )
        timeout = deadline.within(self._timeout_s)
        policy = await ask("policy", self._mesh.policy.Resolve(request, timeout=timeout))
        known.learn({"CRP-Safety-Policy-Applied": policy.policy_text or None})
        return policy


def _check_session_fields(asked: Asked) -> None:
    if asked.session_token is not None:
        return
    if asked.continuation_id is not None:
        raise unauthenticated("SESSION_TOKEN_REQUIRED", "a continuation needs the token of its session")
    if asked.nonce is not None:
        raise invalid("NONCE_MISMATCH", "a nonce is bound to a session; there is none without its token")


def _lines(asked: Asked, base: str | None) -> list[str]:
    """Return the policy lines of a request. A report address joins them; alone, it must not stand for a new policy."""
    if asked.report_uri is None:
        return list(asked.policies)
    explicit = list(asked.policies) or ([base] if base else [])
    return [*explicit, f"report-uri {asked.report_uri}"]


def _effective(opened: session_pb2.OpenedWindow, asked: Asked) -> Micros:
    vouched = [opened.safety_budget_micros, opened.session_budget_micros]
    return Micros(min([*vouched, *([] if asked.ceiling is None else [asked.ceiling])]))
