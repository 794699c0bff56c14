"""The policy service: it converts protobuf messages to domain values and back. The domain decides.

Its only state is read from files: the registry of agent types and the reviewers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import structlog
from prometheus_client import Counter

from interlock.api.policy.v1 import policy_pb2, policy_pb2_grpc
from interlock.domain import approval
from interlock.domain.breaker import BreakerState
from interlock.domain.budget import Micros
from interlock.domain.errors import invalid
from interlock.domain.policy.decision import PolicyOutcome, Situation, Verdict, decide
from interlock.domain.policy.directives import NOTHING, Policy, Tier, canonical, directives, kebab, policy_hash
from interlock.domain.policy.enforcement import Action, Breach
from interlock.domain.policy.findings import Findings
from interlock.domain.policy.policy_layers import Layers, resolve, unasked
from interlock.domain.policy.policy_order import relaxations
from interlock.domain.policy.policy_text import parse
from interlock.domain.policy.remedies import Progress, RemedyKind
from interlock.domain.risk.risk import RiskLevel
from interlock.policy.agents import AgentRegistry
from interlock.policy.pods import PodIdentities
from interlock.policy.report import member, read_findings
from interlock.policy.reviewers import NO_REVIEWERS, Registered
from interlock.runtime.clock import Clock, iso8601, system_clock
from interlock.runtime.rpc.errors import answers_refusals

log = structlog.get_logger()

DECISIONS = Counter(
    "interlock_policy_decisions",
    "Decisions by action and by the directive or other cause that led to it; none when the response is delivered.",
    ["directive", "action"],
)
COMPLIANCE_WARNINGS = Counter(
    "interlock_policy_compliance_warnings", "Responses with personal data whose caller did not declare no-store."
)

CACHED_POLICIES = 1024
"""Number of parsed texts to keep. Each text has at most 8,192 bytes."""


class PolicyServicer(policy_pb2_grpc.PolicyServiceServicer):
    """Parses, compares, resolves and decides. *default* is the deployment's policy, which tightens every root session."""

    def __init__(
        self,
        default: Policy,
        *,
        agents: AgentRegistry | None = None,
        reviewers: Registered | None = None,
        pods: PodIdentities | None = None,
        clock: Clock = system_clock,
        user_words_ground: bool = True,
    ) -> None:
        self._default, self._agents = default, agents or AgentRegistry(None, required=False)
        self._reviewers = reviewers or Registered(lambda: NO_REVIEWERS, by_rpc=False)
        self._pods = pods or PodIdentities(None)
        self._clock, self._user_words_ground = clock, user_words_ground
        self._parse = lru_cache(maxsize=CACHED_POLICIES)(parse)

    @answers_refusals(policy_pb2.ParseResponse)
    async def Parse(  # noqa: N802 - the proto's
        self, request: policy_pb2.ParseRequest, context: Any
    ) -> policy_pb2.ParseResponse:
        """Read one policy."""
        del context
        policy = self._parse(request.text)
        text = canonical(policy)
        return policy_pb2.ParseResponse(
            directives=[policy_pb2.Directive(name=name, values=values) for name, values in directives(policy)],
            canonical_text=text,
            policy_hash=policy_hash(text),
        )

    @answers_refusals(policy_pb2.CompareResponse)
    async def Compare(  # noqa: N802 - the proto's
        self, request: policy_pb2.CompareRequest, context: Any
    ) -> policy_pb2.CompareResponse:
        """Return the directives in which a child is looser than its parent."""
        del context
        found = relaxations(self._parse(request.parent_text), self._parse(request.child_text))
        return policy_pb2.CompareResponse(
            relaxations=[
                policy_pb2.Relaxation(
                    directive=each.directive, parent_value=each.parent_value, child_value=each.child_value
                )
                for each in found
            ]
        )

    @answers_refusals(policy_pb2.ResolveResponse)
    async def Resolve(  # noqa: N802 - the proto's
        self, request: policy_pb2.ResolveRequest, context: Any
    ) -> policy_pb2.ResolveResponse:
        """Join the layers of a request."""
        del context
        layers = Layers(
            default=self._default,
            base=self._read(request.base_text) if request.HasField("base_text") else None,
            lines=request.policy_texts,
            mode=request.safety_mode,
            oversight=request.oversight_mode,
            report_only_lines=request.report_only_texts,
            accept_risk=request.accept_risk,
            accept_quality=request.accept_quality,
            agent=self._read(request.agent_text),
        )
        effective, report_only = resolve(layers, self._parse)
        text = canonical(effective)
        return policy_pb2.ResolveResponse(
            policy_text=text,
            policy_hash=policy_hash(text),
            report_only_text=canonical(report_only),
            asked_for=effective != unasked(layers),
        )

    @answers_refusals(policy_pb2.IdentifyAgentResponse)
    async def IdentifyAgent(  # noqa: N802 - the proto's
        self, request: policy_pb2.IdentifyAgentRequest, context: Any
    ) -> policy_pb2.IdentifyAgentResponse:
        """Return the agent type of a key."""
        del context
        return self._agents.identify(request.api_key_sha256)

    @answers_refusals(policy_pb2.IdentifyPodResponse)
    async def IdentifyPod(  # noqa: N802 - the proto's
        self, request: policy_pb2.IdentifyPodRequest, context: Any
    ) -> policy_pb2.IdentifyPodResponse:
        """Return the pod that a token is bound to."""
        del context
        found = await self._pods.identify(request.token, request.pod_uid)
        return policy_pb2.IdentifyPodResponse(
            namespace=found.namespace, service_account=found.account, pod_name=found.pod, pod_uid=found.uid
        )

    @answers_refusals(policy_pb2.ListAgentsResponse)
    async def ListAgents(  # noqa: N802 - the proto's
        self, request: policy_pb2.ListAgentsRequest, context: Any
    ) -> policy_pb2.ListAgentsResponse:
        """List the registry in force."""
        del request, context
        return self._agents.list()

    @answers_refusals(policy_pb2.RegisterAgentResponse)
    async def RegisterAgent(  # noqa: N802 - the proto's
        self, request: policy_pb2.RegisterAgentRequest, context: Any
    ) -> policy_pb2.RegisterAgentResponse:
        """Write an agent type into the registry's file."""
        del context
        return policy_pb2.RegisterAgentResponse(replaced=await self._agents.register(request.agent))

    @answers_refusals(policy_pb2.RemoveAgentResponse)
    async def RemoveAgent(  # noqa: N802 - the proto's
        self, request: policy_pb2.RemoveAgentRequest, context: Any
    ) -> policy_pb2.RemoveAgentResponse:
        """Remove an agent type from the registry's file."""
        del context
        return policy_pb2.RemoveAgentResponse(removed=await self._agents.remove(request.agent_type))

    @answers_refusals(policy_pb2.VerifyApprovalResponse)
    async def VerifyApproval(  # noqa: N802 - the proto's
        self, request: policy_pb2.VerifyApprovalRequest, context: Any
    ) -> policy_pb2.VerifyApprovalResponse:
        """Verify a reviewer's approval for the action and scope that it is presented for."""
        del context
        scope = dict(request.scope)
        if request.action == approval.DELEGATE:
            scope = {"session": request.session_id, "agent": request.agent_type}
        now_s = self._clock() // 1_000_000
        found = self._reviewers.now().verified(request.token, request.action, scope, now_s=now_s)
        return policy_pb2.VerifyApprovalResponse(
            approval_id=found.approval_id,
            reviewer_id=found.reviewer,
            expires_at=iso8601(found.expires_at * 1_000_000),
        )

    @answers_refusals(policy_pb2.RegisterReviewerResponse)
    async def RegisterReviewer(  # noqa: N802 - the proto's
        self, request: policy_pb2.RegisterReviewerRequest, context: Any
    ) -> policy_pb2.RegisterReviewerResponse:
        """Register a reviewer in this process's memory."""
        del context
        replaced = self._reviewers.register(request.reviewer)
        log.info("reviewer.registered", name=request.reviewer.reviewer_id, action="replaced" if replaced else "added")
        return policy_pb2.RegisterReviewerResponse(replaced=replaced)

    @answers_refusals(policy_pb2.ListReviewersResponse)
    async def ListReviewers(  # noqa: N802 - the proto's
        self, request: policy_pb2.ListReviewersRequest, context: Any
    ) -> policy_pb2.ListReviewersResponse:
        """List the reviewers and the actions that each may approve."""
        del request, context
        return policy_pb2.ListReviewersResponse(reviewers=self._reviewers.list())

    @answers_refusals(policy_pb2.RemoveReviewerResponse)
    async def RemoveReviewer(  # noqa: N802 - the proto's
        self, request: policy_pb2.RemoveReviewerRequest, context: Any
    ) -> policy_pb2.RemoveReviewerResponse:
        """Remove a reviewer that was registered by RPC."""
        del context
        removed = self._reviewers.remove(request.reviewer_id)
        log.info("reviewer.removed", name=request.reviewer_id, outcome="removed" if removed else "absent")
        return policy_pb2.RemoveReviewerResponse(removed=removed)

    @answers_refusals(policy_pb2.DecideResponse)
    async def Decide(  # noqa: N802 - the proto's
        self, request: policy_pb2.DecideRequest, context: Any
    ) -> policy_pb2.DecideResponse:
        """Decide what happens to a response."""
        del context
        if not request.HasField("report"):
            raise invalid("REPORT_MISSING", "a decision needs the report of the response", field="report")
        verdict = decide(self._situation(request), self._findings(request))
        _note(verdict)
        return policy_pb2.DecideResponse(decision=_decision(verdict))

    def _findings(self, request: policy_pb2.DecideRequest) -> Findings:
        return read_findings(
            request.report, window_number=request.window_number, user_words_ground=self._user_words_ground
        )

    def _situation(self, request: policy_pb2.DecideRequest) -> Situation:
        return Situation(
            policy=self._read(request.policy_text),
            report_only=self._read(request.report_only_text),
            breaker=_breaker(request.breaker),
            budget=Micros(request.session_budget_micros),
            charge=Micros(request.charge_micros),
            accept_risk=_accept_risk(request.accept_risk),
            accept_quality=frozenset(_tier(name) for name in request.accept_quality),
            no_store=request.no_store,
            progress=_progress(request),
            reviewed=self._reviewers.may_any(approval.RELEASE),
            observed=request.observed,
        )

    def _read(self, text: str) -> Policy:
        """Parse a canonical text. An empty text has no directives."""
        return self._parse(text) if text else NOTHING


def _breaker(number: int) -> BreakerState:
    state = member(BreakerState, number)
    if state is None:
        raise invalid("BREAKER_UNKNOWN", "a decision needs the state of the breaker", field="breaker")
    return state


def _progress(request: policy_pb2.DecideRequest) -> Progress:
    for name in ("redispatches", "continuations", "windows_left"):
        if getattr(request, name) < 0:
            raise invalid("COUNT_OUT_OF_RANGE", f"{name} must not be negative", field=name)
    return Progress(
        remediable=request.remediable,
        redispatches=request.redispatches,
        continuations=request.continuations,
        stitched=request.stitched,
        windows_left=request.windows_left,
        no_cache=request.no_cache,
        continues=request.continues,
        enabled=frozenset(_kind(name) for name in request.remedies),
    )


def _kind(name: str) -> RemedyKind:
    kind = member(RemedyKind, name)
    if kind is None:
        raise invalid("REMEDY_UNKNOWN", "remedies contains a value that is no remedy", field="remedies")
    return kind


def _accept_risk(number: int) -> RiskLevel | None:
    level = member(RiskLevel, number)
    if number and level is None:
        raise invalid("ACCEPT_RISK_UNKNOWN", "accept_risk is not a risk level", field="accept_risk")
    return level


def _tier(name: str) -> Tier:
    tier = member(Tier, name.upper())
    if tier is None:
        raise invalid(
            "ACCEPT_QUALITY_UNKNOWN",
            "accept_quality contains a value that is not a quality tier",
            field="accept_quality",
        )
    return tier


def _note(verdict: Verdict) -> None:
    # An observed response counts as what happened to it: delivered. The sidecar counts what would have.
    DECISIONS.labels(verdict.outcome.cause, verdict.outcome.action.name).inc()
    if verdict.unprotected_pii:
        COMPLIANCE_WARNINGS.inc()
        log.warning("policy.pii_without_no_store", action=verdict.outcome.action.name)


def _decision(verdict: Verdict) -> policy_pb2.Decision:
    return policy_pb2.Decision(
        action=policy_pb2.Action.ValueType(int(verdict.outcome.action)),
        halt_reason=verdict.outcome.halt_reason,
        reason=verdict.outcome.reason,
        violations=[
            *(_violation(breach, report_only=False) for breach in verdict.broken),
            *(_violation(breach, report_only=True) for breach in verdict.reported),
        ],
        oversight_mode=kebab(verdict.oversight),
        oversight_required=verdict.outcome.oversight_required,
        releasable=verdict.outcome.oversight_required and verdict.outcome.action is Action.HALT,
        warned=verdict.warned,
        redispatch_strategy=verdict.outcome.strategy,
        remedies=_remedies(verdict.outcome),
        would=None if verdict.would is None else _would(verdict.would, verdict.reported),
        called_for=[policy_pb2.Axis.ValueType(int(axis)) for axis in sorted(verdict.outcome.axes)],
    )


def _would(outcome: PolicyOutcome, broken: Sequence[Breach]) -> policy_pb2.WouldHave:
    caused = (breach.directive for breach in broken if breach.name == outcome.cause)
    return policy_pb2.WouldHave(
        action=policy_pb2.Action.ValueType(int(outcome.action)),
        reason=outcome.halt_reason,
        directive=next(caused, ""),
        remedies=_remedies(outcome),
    )


def _remedies(outcome: PolicyOutcome) -> list[policy_pb2.Remedy.ValueType]:
    return [policy_pb2.Remedy.ValueType(int(remedy)) for remedy in outcome.remedies]


def _violation(breach: Breach, *, report_only: bool) -> policy_pb2.Violation:
    return policy_pb2.Violation(
        directive=breach.directive,
        type=breach.type,
        found=breach.found,
        report_only=report_only,
        signal_missing=breach.missing,
    )
