"""The reviewers' use cases, for the page and for gRPC: sign in, read what is held, decide (SPEC-012 §6; ecosystem.md 3.11).

They compose audit, policy and session. The decision itself is one write in the audit log; this module checks who makes it.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog
from google.protobuf import json_format
from prometheus_client import Counter

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain import approval, ids
from interlock.domain.errors import Kind, Refused, forbidden, unauthenticated, unavailable
from interlock.domain.held import Held, unpacked
from interlock.domain.policy.group_roles import granted
from interlock.domain.policy.roles import ROLES, Role, Sight, not_covered, require_content
from interlock.oversight.oidc.opening import Oidc
from interlock.oversight.views import OpenedView, Person, View, Views
from interlock.runtime.clock import iso8601
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.values import SIGN_IN_WAYS

log = structlog.get_logger()

SIGN_INS = Counter("interlock_oversight_sign_ins", "Attempts to sign in as a reviewer, by outcome.", ["outcome"])
DECISIONS = Counter(
    "interlock_oversight_decisions", "Reviewers' decisions, by action and outcome.", ["action", "outcome"]
)

_ACTIONS = frozenset({approval.RELEASE, approval.REJECT})


@dataclass(frozen=True)
class HeldView:
    """Everything that a reviewer needs to judge a held response; ``held`` is ``None`` when its bytes are gone."""

    item: audit_pb2.HeldItem
    held: Held | None
    report: dpe_pb2.Report
    sessions: Sequence[session_pb2.Session]
    """The sessions of its tree, the root first; its own alone where the tree cannot be read."""

    @property
    def kept_by(self) -> tuple[str, str]:
        """Why it was kept back, HELD_FOR_REVIEW or SAFETY_HALT, and the directive that did; both empty when its bytes are gone."""
        if self.held is None:
            return "", ""
        decision = policy_pb2.Decision.FromString(self.held.decision)
        enforced = (broken.directive for broken in decision.violations if not broken.report_only)
        return decision.reason, next(enforced, "")


@dataclass(frozen=True)
class Console:
    """The reviewers' use cases over the mesh."""

    peers: Peers
    views: Views
    link_role: Role
    """Role of whoever comes by the operator's link."""
    ways: frozenset[str] = frozenset(SIGN_IN_WAYS)
    """The ways to sign in that are open."""
    oidc: Oidc | None = None
    """Sign-in by OpenID Connect, where it is set up."""
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """What the operator's link signs in with; it is in a file that only the operator may read."""

    async def sign_in(self, reviewer: str, challenge: str, signature: bytes) -> OpenedView:
        """Open a view for a registered reviewer who signed the challenge."""
        try:
            self._require_way("key")
            opened = self.views.sign_in(reviewer, challenge, signature, (await self._people()).get(reviewer))
        except Refused as refused:
            SIGN_INS.labels(refused.reason).inc()
            log.warning("oversight.sign_in_refused", reason=refused.reason)
            raise
        SIGN_INS.labels("opened").inc()
        log.info("oversight.signed_in", name=reviewer)
        return opened

    def open_for(self, viewer: str, secret: str) -> OpenedView:
        """Open a view that decides no held answer, for whoever could read this process's *secret* in its state folder.

        Refused with SIGN_IN_INVALID for another secret.
        """
        self._require_way("link")
        if not hmac.compare_digest(secret.encode("utf-8", "replace"), self.secret.encode()):
            SIGN_INS.labels("SIGN_IN_INVALID").inc()
            raise unauthenticated("SIGN_IN_INVALID", "this link is not of this process: `interlock console` prints one")
        opened = self.views.open_for(viewer, self.link_role)
        SIGN_INS.labels("viewer").inc()
        log.info("oversight.console_opened", name=viewer)
        return opened

    async def open_by_oidc(self, told: Mapping[str, str], browser: str) -> tuple[OpenedView, str]:
        """Open a view that decides no held answer for whom the OpenID provider sent back, and return the path they wanted.

        Refused with OIDC_GROUP_NOT_MAPPED for a person without a role, with SIGN_IN_WAY_OFF, and like ``OidcSignIn.finish``.
        """
        oidc = self.require_oidc()
        try:
            person, to = await oidc.sign_in.finish(told, browser)
            grant = granted(person.groups, oidc.roles())
            if grant is None:
                raise forbidden("OIDC_GROUP_NOT_MAPPED", f"none of your {len(person.groups)} groups has a role here")
        except Refused as refused:
            SIGN_INS.labels(refused.reason).inc()
            log.warning("oversight.sign_in_refused", reason=refused.reason, hint=refused.message, mode="oidc")
            raise
        SIGN_INS.labels("oidc").inc()
        log.info("oversight.signed_in", name=person.name, mode="oidc")
        return self.views.open_for(person.name, grant.role, grant.sight, person.groups), to

    def require_oidc(self) -> Oidc:
        """Return sign-in by OpenID Connect. Refused with SIGN_IN_WAY_OFF."""
        if self.oidc is None:
            raise _way_off()
        return self.oidc

    def _require_way(self, way: str) -> None:
        if way not in self.ways:
            raise _way_off()

    async def viewer(self, bearer: str) -> View:
        """Return the view of a *bearer*, with the role that the person has now.

        Whoever was removed, or whose key was replaced, is signed out; so is whoever has no group with a role any more.
        """
        view = self.views.of(bearer)
        if view.groups is not None:
            return self._by_groups(bearer, view, view.groups)
        if not view.public_key:
            return view
        person = (await self._people()).get(view.reviewer)
        if person is None or person.public_key != view.public_key:
            self.views.sign_out(bearer)
            raise unauthenticated("SIGN_IN_REQUIRED", "this reviewer is not registered with that key any more")
        return replace(view, role=person.role, sight=person.sight)

    def _by_groups(self, bearer: str, view: View, groups: frozenset[str]) -> View:
        grant = granted(groups, self.require_oidc().roles())
        if grant is None:
            self.views.sign_out(bearer)
            raise unauthenticated("SIGN_IN_REQUIRED", "none of this person's groups has a role here any more")
        return replace(view, role=grant.role, sight=grant.sight)

    async def queue(
        self, status: audit_pb2.HeldStatus.ValueType, *, session_id: str = "", after: str = "", limit: int = 50
    ) -> audit_pb2.ListHeldResponse:
        """Return a page of held responses, the oldest first."""
        request = audit_pb2.ListHeldRequest(status=status, session_id=session_id, after=after, limit=limit)
        return await self.peers.audit.list_held(request)

    async def shown(self, window_id: str, view: View) -> HeldView:
        """Return a held response with its report, its question and evidence, and the sessions around it.

        That the person looks at its text is on record before this returns. Refused with ROLE_SEES_NO_CONTENT or SESSION_NOT_COVERED.
        """
        window_id = ids.check("crp_win_", window_id)
        found = await self._looked_at(window_id, view)
        held = _readable(found.held) if found.held else None
        return HeldView(found.item, held, await self._report(window_id), await self._tree(found.item))

    async def held(self, item: audit_pb2.HeldItem, view: View) -> Held | None:
        """Return what is held, under the same rules; ``None`` when its bytes are gone."""
        found = await self._looked_at(item.window_id, view)
        return _readable(found.held) if found.held else None

    async def _looked_at(self, window_id: str, view: View) -> audit_pb2.GetHeldResponse:
        require_content(view.role)
        if view.sight.is_limited:
            await self.require_covered(view, (await self.state(window_id)).session_id)
        return await self.peers.audit.get_held(window_id, viewer=view.reviewer)

    async def state(self, window_id: str) -> audit_pb2.HeldItem:
        """Return what is known of a held response. Its text is not read."""
        return (await self.peers.audit.get_held(ids.check("crp_win_", window_id), state_only=True)).item

    async def tree(self, window_id: str) -> Sequence[session_pb2.Session]:
        """Return the sessions around a held response, the root first. Its text is not read."""
        return await self._tree(await self.state(window_id))

    async def decide(self, view: View, window_id: str, token: str, reason: str) -> audit_pb2.HeldItem:
        """Record a signed decision of the signed-in reviewer.

        Refused with VIEW_READS_ONLY for a viewer and for who came by the link, with SESSION_NOT_COVERED, with REVIEWER_MISMATCH for
        another reviewer's token, with SELF_APPROVAL if the reviewer created a session of the tree, and with the reasons of the policy
        and audit services.
        """
        if view.reads_only:
            raise forbidden(
                "VIEW_READS_ONLY", "this view decides nothing: sign in with the key of a reviewer or an admin"
            )
        said = approval.read(token).approval
        action = said.action if said.action in _ACTIONS else "other"
        try:
            item = await self._decided(view, window_id, token, reason, said)
        except Refused as refused:
            DECISIONS.labels(action, refused.reason).inc()
            log.warning("oversight.refused", window_id=window_id, action=action, reason=refused.reason)
            raise
        DECISIONS.labels(action, "decided").inc()
        self.views.decided(view.reviewer)
        log.info("oversight.decided", window_id=item.window_id, session_id=item.session_id, action=action)
        return item

    async def _decided(
        self, view: View, window_id: str, token: str, reason: str, said: approval.Approval
    ) -> audit_pb2.HeldItem:
        if said.action not in _ACTIONS:
            raise unauthenticated("APPROVAL_MISMATCH", "the approval is for another action", field="action")
        item = await self.state(window_id)
        await self.require_covered(view, item.session_id)
        scope = {
            "session": item.session_id, "window": item.window_id, "response": item.response_hash,
            "policy": item.policy_hash,
        }  # fmt: skip
        verify = policy_pb2.VerifyApprovalRequest(
            token=token, action=said.action, session_id=item.session_id, scope=scope
        )
        verified = await self.peers.policy.verify_approval(verify)
        if verified.reviewer_id != view.reviewer:
            raise forbidden("REVIEWER_MISMATCH", "a reviewer hands in their own decisions, signed in as themselves")
        await self._check_reviewer(view.reviewer, item)
        decision = audit_pb2.DecideHeldRequest(
            window_id=item.window_id, approved=said.action == approval.RELEASE, reviewer_id=verified.reviewer_id,
            approval_id=verified.approval_id, token=token, response_hash=item.response_hash,
            expires_at=verified.expires_at, reason=reason,
        )  # fmt: skip
        return await self.peers.audit.decide_held(decision)

    async def _check_reviewer(self, reviewer: str, item: audit_pb2.HeldItem) -> None:
        """Refuse a reviewer who is a caller of any session of the tree, and any reviewer while the callers are unknown.

        The callers are read from the chains, not from the session store, which may be lost and cannot be verified.
        """
        record = await self.peers.audit.look_at_tree_record(item.root_session_id)
        created = [json.loads(step.data_json) for step in record.steps if step.event_type == "SESSION_CREATED"]
        if not created:
            raise unavailable("CALLERS_UNKNOWN", "the chain does not say who asked for the response", retry_after_ms=0)
        callers = [str(data.get(name) or "") for data in created for name in ("scope", "agent_type")]
        if approval.is_caller(reviewer, callers):
            raise forbidden("SELF_APPROVAL", "no one approves what they asked for themselves", reviewer_id=reviewer)

    async def require_covered(self, view: View, session_id: str) -> None:
        """Refuse what the sight of a role does not cover, with SESSION_NOT_COVERED.

        Key and agent type are read from the chain of the session, as it began; a session without that is covered by no limited sight.
        """
        if not view.sight.is_limited:
            return
        record = await self.peers.audit.look_at_tree_record(session_id)
        created = [one for one in record.steps if one.event_type == "SESSION_CREATED" and one.session_id == session_id]
        data = json.loads(created[0].data_json) if created else {}
        if not view.sight.covers(str(data.get("scope") or ""), str(data.get("agent_type") or "")):
            raise not_covered()

    async def _people(self) -> dict[str, Person]:
        return {one.reviewer_id: _person(one) for one in await self.peers.policy.list_reviewers()}

    async def _report(self, window_id: str) -> dpe_pb2.Report:
        """Return the sealed report; an empty one when it was erased."""
        try:
            found = await self.peers.audit.get_report(window_id=window_id)
        except Refused as refused:
            if refused.kind is not Kind.NOT_FOUND:
                raise
            return dpe_pb2.Report()
        report: dpe_pb2.Report = json_format.Parse(found.report_json, dpe_pb2.Report(), ignore_unknown_fields=True)
        return report

    async def _tree(self, item: audit_pb2.HeldItem) -> Sequence[session_pb2.Session]:
        """Return the sessions for the picture. A tree that cannot be read does not hide the answer."""
        request = session_pb2.GetDagRequest(
            session_id=item.root_session_id, root_session_id=item.root_session_id, tree=True
        )
        try:
            return list(await self.peers.session.dag(request))
        except Refused as refused:
            log.warning("oversight.tree_unread", session_id=item.session_id, reason=refused.reason)
            return ()


def expires_at(view: View) -> str:
    """Return when a view ends, ISO 8601."""
    return iso8601(view.expires_us)


def _person(one: policy_pb2.Reviewer) -> Person:
    """Return a registered person. A role that this version does not know is an error for all: it could be less than any known one."""
    role = one.role or Role.REVIEWER.value  # an older policy service knows no roles: each of its people is a reviewer
    if role not in ROLES:
        raise unavailable(
            "ROLE_UNKNOWN", f"the policy service names a role that is not one of {', '.join(ROLES)}", retry_after_ms=0
        )
    return Person(one.public_key, Role(role), Sight(frozenset(one.sees_keys), frozenset(one.sees_agent_types)))


def _way_off() -> Refused:
    return forbidden("SIGN_IN_WAY_OFF", "this way to sign in is switched off here", hint="the setting sign_in_ways")


def _readable(data: bytes) -> Held:
    try:
        return unpacked(data)
    except ValueError:
        raise unavailable("HELD_UNREADABLE", "what is held cannot be read by this version", retry_after_ms=0) from None
