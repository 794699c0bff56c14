"""What the guard asks the services: pure builders, one per step."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain import held
from interlock.domain.binding.rank import Rank
from interlock.domain.budget import LARGEST_CHARGE
from interlock.domain.headers.headers import RequestHeaders
from interlock.domain.policy.enforcement import requires_grounding
from interlock.domain.policy.policy_text import parse
from interlock.domain.policy.remedies import MOST_CONTINUATIONS, MOST_REDISPATCHES
from interlock.runtime.proto_json import as_json
from interlock.sidecar.admission.admission import Admitted
from interlock.sidecar.call.call import Call
from interlock.sidecar.call.envelope import context_hash
from interlock.sidecar.call.verdict import reviewable
from interlock.sidecar.context.packing import Packed
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.provider import strategies
from interlock.sidecar.provider.strategies import Produced
from interlock.sidecar.trail import sealed_report

MOST_EVIDENCE_BYTES = 32_768
"""Ids and texts of facts that are kept beside what a window said; the audit service takes no more."""
CONTINUING = frozenset({"", "LINEAR", "BRANCH"})
"""Patterns whose window continues another one; the others are parts of a task, or all of its parts at once."""

_MILDER = frozenset({common_pb2.RISK_LEVEL_LOW, common_pb2.RISK_LEVEL_MEDIUM, common_pb2.RISK_LEVEL_HIGH})
_STATUSES = {policy_pb2.ACTION_DELIVER: "COMPLETED", policy_pb2.ACTION_HOLD: "HELD"}


@dataclass(frozen=True)
class DecidedAnswer:
    """An answer, how it was produced, what was found in it and what happens to it."""

    answer: Completion
    strategy: str
    report: dpe_pb2.Report
    decision: policy_pb2.Decision
    context: Packed
    """What it was made from."""

    @property
    def delivered(self) -> bool:
        """Whether the decision is to deliver it."""
        return self.decision.action == policy_pb2.ACTION_DELIVER

    @property
    def kept(self) -> bool:
        """Whether its text is kept: it is delivered, or may be once a reviewer has approved it."""
        return self.delivered or reviewable(self.decision)


@dataclass(frozen=True)
class Round:
    """One answer with its report and its decision."""

    produced: Produced
    report: dpe_pb2.Report
    decision: policy_pb2.Decision


@dataclass(frozen=True)
class RemedyState:
    """Which remedies a window has had, and whether another can follow."""

    remediable: bool
    redispatches: int
    continuations: int
    stitched: bool

    def leaves(self, action: policy_pb2.Action.ValueType) -> bool:
        """Tell whether *action* is a remedy that is left."""
        return self.remediable and {
            policy_pb2.ACTION_REDISPATCH: self.redispatches < MOST_REDISPATCHES,
            policy_pb2.ACTION_CONTINUE: self.continuations < MOST_CONTINUATIONS,
            policy_pb2.ACTION_STITCH: not self.stitched,
        }.get(action, False)


def to_analyse(
    admitted: Admitted,
    context: Packed,
    outputs: Sequence[dpe_pb2.Output],
    *,
    grounding_mode: str = "",
    place_id: str = "",
    place_for: str | None = None,
    prior: Sequence[dpe_pb2.PriorWindow],
    domain: str,
    flow_remediation: str,
) -> dpe_pb2.AnalyzeRequest:
    """Ask for the analysis of every output."""
    opened, envelope, policy_text = admitted.opened, context.envelope, admitted.policy.policy_text
    return dpe_pb2.AnalyzeRequest(
        session_id=opened.session_id,
        window_id=opened.window_id,
        window_number=opened.window_number,
        query=envelope.query,
        prompt=envelope.prompt,
        facts=envelope.facts,
        outputs=outputs,
        prior=prior,
        loop_depth=opened.loop_depth,
        domain=domain,
        flow_remediation=flow_remediation,
        merged=context.merged,
        sub_queries=envelope.wanted.sub_queries,
        linked_results=context.linked,
        grounding_mode=grounding_mode,
        grounding_required=bool(policy_text) and requires_grounding(parse(policy_text)),
        said=envelope.said,
        tools=envelope.tools,
        earlier_facts=envelope.earlier_facts,
        consumed=context.consumed,
        place_id=place_id,
        place_for=place_for,
    )


def with_links(report: dpe_pb2.Report, context: Packed) -> dpe_pb2.Report:
    """Return *report* with the results that were verified here, in place of its own: the seal covers what it says."""
    if list(report.linked_results) == list(context.linked):
        return report
    linked = dpe_pb2.Report()
    linked.CopyFrom(report)
    del linked.linked_results[:]
    linked.linked_results.extend(context.linked)
    return linked


def to_decide(
    admitted: Admitted,
    asked: RequestHeaders,
    report: dpe_pb2.Report,
    *,
    tried: RemedyState,
    strategy: str,
    remedies: Sequence[str] = (),
) -> policy_pb2.DecideRequest:
    """Ask for the decision about a report. *remedies* are those that the operator switched on."""
    opened = admitted.opened
    return policy_pb2.DecideRequest(
        report=report,
        policy_text=admitted.policy.policy_text,
        report_only_text=admitted.policy.report_only_text,
        breaker=common_pb2.BreakerState.ValueType(admitted.breaker.value),
        session_budget_micros=admitted.budget,
        charge_micros=charge(admitted, report),
        accept_risk=common_pb2.RiskLevel.ValueType(asked.accept_risk.value if asked.accept_risk else 0),
        redispatches=tried.redispatches,
        accept_quality=asked.accept_quality,
        no_store=asked.no_store,
        window_number=opened.window_number,
        remediable=tried.remediable,
        windows_left=max(0, opened.max_windows - opened.window_number),
        no_cache=asked.no_cache,
        continuations=tried.continuations,
        stitched=tried.stitched,
        strategy=strategy,
        continues=bool(asked.continuation_id) and opened.pattern in CONTINUING,
        observed=admitted.observed,
        remedies=remedies,
    )


def charge(admitted: Admitted, report: dpe_pb2.Report) -> int:
    """Return what the response costs, millionths: its risk, of which one that is not known costs as CRITICAL, and a rejected action."""
    cost = admitted.opened.decrements
    of_risk = {
        common_pb2.RISK_LEVEL_LOW: cost.low_micros,
        common_pb2.RISK_LEVEL_MEDIUM: cost.medium_micros,
        common_pb2.RISK_LEVEL_HIGH: cost.high_micros,
    }.get(report.risk_level, cost.critical_micros)
    return min(LARGEST_CHARGE, of_risk + report.actions.charge_micros)


def to_settle(admitted: Admitted, call: Call, decided: DecidedAnswer) -> session_pb2.CommitWindowRequest:
    """Ask for the settlement; HMAC and time come from the seal. Halted and held responses are charged too (reading 3)."""
    opened, report = admitted.opened, decided.report
    status = _STATUSES.get(decided.decision.action, "HALTED")
    return session_pb2.CommitWindowRequest(
        session_id=opened.session_id,
        root_session_id=opened.root_session_id,
        window_id=opened.window_id,
        parent_ids=opened.parent_ids,
        window_number=opened.window_number,
        risk_level=report.risk_level,
        charge_micros=charge(admitted, report),
        ceiling_micros=ceiling_of(opened, call.asked.ceiling),
        response_hash="sha256:" + hashlib.sha256(decided.answer.body).hexdigest(),
        envelope_etag=report.envelope_etag,
        quality_tier=report.quality_tier,
        strategy=strategies.shape_of(call) or decided.strategy,
        token_count=report.envelope_tokens,
        status=status,
        policy_text=admitted.policy.policy_text,
        policy_hash=admitted.policy.policy_hash,
        pattern=opened.pattern,
        ancestor_session_ids=opened.ancestor_session_ids,
        edges=decided.context.edges,
        # Facts of an answer that was not delivered are not known to the session (DAG-6).
        facts_used=decided.context.facts_used if decided.delivered else (),
        # Items of a batch add up: each comes off the session's budget itself, not off one path alone (SPEC-008 §8.3).
        accumulate=call.shape == strategies.BATCH,
        parent_charge_micros=_cost_to_the_parent(admitted, report, status),
        key_version=opened.key_version,
        caller_id=opened.caller_budget.caller_id,
        caller_period=opened.caller_budget.period,
    )


def with_path_budget(report: dpe_pb2.Report, commit: session_pb2.CommitWindowRequest) -> dpe_pb2.Report:
    """Return *report* with the budget along the window's own path: what it started with, less its charge."""
    told = dpe_pb2.Report()
    told.CopyFrom(report)
    told.path_budget_micros = max(0, commit.ceiling_micros - commit.charge_micros)
    return told


def _cost_to_the_parent(admitted: Admitted, report: dpe_pb2.Report, status: str) -> int:
    """Return one CRITICAL decrement where a sub-agent's answer was halted at CRITICAL, else nothing (reading 5)."""
    opened = admitted.opened
    grave = report.risk_level not in _MILDER and status == "HALTED"
    return opened.decrements.critical_micros if grave and opened.ancestor_session_ids else 0


def ceiling_of(opened: session_pb2.OpenedWindow, asked: int | None) -> int:
    """Return what a window's charge is taken off: its path's budget, or what its caller *asked* for if that is less.

    What a sibling spent, or holds for a while, lowers the session's budget, not this path's (requirements.md, reading 7).
    """
    return min([opened.safety_budget_micros, *([] if asked is None else [asked])])


def to_seal(
    admitted: Admitted,
    decided: DecidedAnswer,
    commit: session_pb2.CommitWindowRequest,
    noted: Sequence[audit_pb2.NewEvent],
    hold: Mapping[str, Any] = MappingProxyType({}),
) -> audit_pb2.AppendRequest:
    """Ask for the seal. It holds the settlement whole, so that a crash after it can be made good.

    The text of the answer is kept only when it is delivered, now or by a reviewer: a later window cannot repeat or contradict
    what no one received. *hold* is what ``to_hold`` returned.
    """
    return audit_pb2.AppendRequest(
        **hold,
        session_id=commit.session_id,
        window_id=commit.window_id,
        window_number=commit.window_number,
        parent_ids=commit.parent_ids,
        parent_hmacs=admitted.opened.parent_hmacs,
        response_hash=commit.response_hash,
        report=decided.report,
        events=noted,
        risk_level=commit.risk_level,
        charge_micros=commit.charge_micros,
        status=commit.status,
        settlement=commit,
        # An audit service that does not know settlement would seal the window without it.
        settle_json=json.dumps(as_json(commit)),
        content=decided.answer.said if decided.kept else "",
        pattern=commit.pattern,
        deferred_facts=decided.context.deferred if decided.kept else (),
        evidence=_kept_evidence(decided) if decided.kept else (),
    )


def with_seal(
    commit: session_pb2.CommitWindowRequest, sealed: audit_pb2.AppendResponse
) -> session_pb2.CommitWindowRequest:
    """Return the settlement with its seal, and with what the chain says of the session."""
    commit.hmac, commit.timestamp = sealed.hmac, sealed.timestamp
    if sealed.HasField("standing"):  # absent from an older audit service
        commit.chain_budget_micros = sealed.standing.session_budget_micros
        commit.chain_windows = sealed.standing.sealed_windows
    return commit


def add_chains_above(commit: session_pb2.CommitWindowRequest, standings: Sequence[audit_pb2.Standing]) -> None:
    """Add to a settlement what the chains of its ancestors say of them. The seal does not cover it."""
    commit.ancestor_chains.extend(
        session_pb2.AncestorChain(budget_micros=one.session_budget_micros, windows=one.sealed_windows, ended=one.ended)
        for one in standings
    )


def with_names(
    commit: session_pb2.CommitWindowRequest, admitted: Admitted, call: Call, decided: DecidedAnswer
) -> session_pb2.CommitWindowRequest:
    """Return the sealed settlement with what the session and this window are to be found by. The seal does not cover it."""
    answer = decided.answer if decided.delivered else None
    cookie_set = admitted.bound.rank is not Rank.TOKEN
    commit.bound_names.extend(call.binding.learnt(commit.session_id, answer, cookie_set=cookie_set))
    turn = call.binding.turn(answer) if answer is not None else None
    if turn is not None:
        commit.turn.CopyFrom(turn)
    return commit


def with_identity(admitted: Admitted, decided: DecidedAnswer) -> DecidedAnswer:
    """Return a decided answer whose report says which window and which answer it is about (SPEC-005 §15.2)."""
    opened = admitted.opened
    report = sealed_report.identified(
        decided.report, session_id=opened.session_id, window_id=opened.window_id, number=opened.window_number,
        answer=decided.answer.body, context_hash=context_hash(decided.context.envelope),
    )  # fmt: skip
    return replace(decided, report=report)


def to_hold(admitted: Admitted, call: Call, decided: DecidedAnswer, *, seconds: int) -> Mapping[str, Any]:
    """Return the fields of a seal whose answer is kept: what it would be released as, for how long, under which policy."""
    if not reviewable(decided.decision):
        return {}
    kept = held.Held(
        form=call.form,
        include_usage=call.include_usage,
        headers=dict(call.reply.headers),
        body=decided.answer.body,
        decision=decided.decision.SerializeToString(deterministic=True),
        question=decided.context.envelope.query,
        evidence=_evidence(decided),
    )
    return {"held": held.packed(kept), "hold_s": seconds, "policy_hash": admitted.policy.policy_hash}


def kept_bytes(hold: Mapping[str, Any], decided: DecidedAnswer) -> int:
    """Return what the audit log stores of an answer that is kept, bytes."""
    facts = sum(fact.ByteSize() for fact in decided.context.deferred)
    return len(hold.get("held", b"")) + len(decided.answer.said.encode()) + facts


def without_release(decided: DecidedAnswer) -> DecidedAnswer:
    """Return a halted answer that cannot be kept for a reviewer: nothing is promised of it."""
    decision = policy_pb2.Decision()
    decision.CopyFrom(decided.decision)
    decision.releasable = decision.oversight_required = False
    return replace(decided, decision=decision)


def _kept_evidence(decided: DecidedAnswer) -> Iterator[common_pb2.Fact]:
    """Yield the facts that are kept beside what a window said, those that fit whole; a reader is told of the others by their ids."""
    left = MOST_EVIDENCE_BYTES
    for name, text in _evidence(decided).items():
        size = len(name.encode()) + len(text.encode())
        if size <= left:
            left -= size
            yield common_pb2.Fact(id=name, content=text)


def _evidence(decided: DecidedAnswer) -> dict[str, str]:
    """Return the facts that the report names, for the reviewer to read."""
    report = decided.report
    named = {claim.fact_id for claim in report.claims} | {omission.fact_id for omission in report.omissions}
    return {fact.id: fact.content for fact in decided.context.envelope.facts if fact.id in named}
