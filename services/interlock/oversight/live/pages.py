"""The data of the console's pages. A text that someone else wrote goes in as ``said``; identifiers and numbers the template escapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import urlencode

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import FULL, Micros, as_decimal
from interlock.domain.policy.roles import STOP_REASONS, Role
from interlock.oversight.live.finding import CHOICES, Filter
from interlock.oversight.markup import quoted, render, said
from interlock.oversight.pages import Word, claims_of, contradictions_of, findings_of, frame_of, scores_of, word
from interlock.oversight.reader import SessionRow, WindowView
from interlock.oversight.views import View
from interlock.runtime.clock import iso8601

SHORT = 6
"""Digits of an id that tell one from its neighbours; the whole id is beside it, smaller."""

NO_TEXT: Mapping[str, str] = {
    "NOT_KEPT": "What it said is not kept: its windows are not continued, or it never left.",
    "CONTENT_ERASED": "What it said was erased.",
    "CHAIN_BROKEN": "The chain does not verify, so nothing that rests on it is shown.",
    "ROLE_SEES_NO_CONTENT": "A viewer sees figures. What was said is for reviewers and admins.",
    "SESSION_NOT_COVERED": "Your role does not cover the sessions of this key and agent type: only its figures are shown.",
}


def sessions_page(
    view: View,
    rows: Sequence[SessionRow],
    callers: Iterable[tuple[str, session_pb2.CallerBudget]],
    given: Filter,
    further: audit_pb2.ListedSession | None,
) -> str:
    """Return the sessions that began last, of those that are wanted, and the budgets of their callers."""
    following = {**given.as_query(), "before": f"{further.created_at} {further.session_id}"} if further else None
    shown = [_row(row) for row in rows]
    return render(
        "sessions.html", title="Sessions", **_frame(view, "sessions"),
        rows=[one for one in shown if given.admits(one["now"])], callers=[_caller(*one) for one in callers],
        given=given, choices=CHOICES, following=f"?{urlencode(following)}" if following else "", further=further,
    )  # fmt: skip


def session_page(
    view: View,
    session_id: str,
    tree: Sequence[session_pb2.Session],
    verified: audit_pb2.VerifyResponse | None,
) -> str:
    """Return one session in its tree; *verified* where its chain was just checked."""
    own = next((one for one in tree if one.session_id == session_id), tree[0])
    return render(
        "session.html", title=_name(own), **_frame(view, "sessions"), own=_session(own), tree=_nested(tree, session_id),
        windows=[_window(one) for one in own.windows], root=tree[0].session_id,
        stops=view.role is Role.ADMIN and own.status == session_pb2.SESSION_STATUS_ACTIVE, reasons=STOP_REASONS,
        verified=_verified(verified) if verified else None, policy=quoted(own.policy_text, "policy"),
    )  # fmt: skip


def window_page(view: View, shown: WindowView) -> str:
    """Return one window: what it said, with its claims in place, and every finding."""
    report = shown.report
    return render(
        "window.html", title=f"Window {shown.window.window_number}" if shown.window else "Window",
        **_frame(view, "sessions"), window_id=shown.window_id, session_id=shown.session_id,
        name=_name(shown.session) if shown.session else "its session",
        risk=word(common_pb2.RiskLevel, report.risk_level, "RISK_LEVEL_"), meaning=said(report.meaning),
        charge=_charge(shown), scores=scores_of(report), findings=findings_of(report),
        claims=claims_of(report, shown.evidence), contradictions=contradictions_of(report),
        answer=_marked(shown.text, report.claims) if shown.text is not None else None,
        is_hidden=shown.is_hidden, missing=NO_TEXT.get(shown.text_missing, f"What it said cannot be read: {shown.text_missing}."),
        integrity=_integrity(shown),
        stages=[{"number": one.number, "name": one.name, "detail": said(one.detail),
                 "state": word(dpe_pb2.StageStatus, one.status, "STAGE_STATUS_")} for one in sorted(report.stages, key=lambda one: (int(one.number.rstrip("abc") or 0), one.number))],
    )  # fmt: skip


def _frame(view: View, here: str) -> Mapping[str, Any]:
    return {**frame_of(view), "here": here}


def _row(row: SessionRow) -> Mapping[str, Any]:
    listed, session = row.listed, row.session
    return {
        "name": _named(listed.agent_type, listed.session_id), "session_id": listed.session_id,
        "root": listed.root_session_id, "is_child": listed.root_session_id != listed.session_id,
        "scope": listed.scope, "created_at": listed.created_at,
        "outcomes": [word(audit_pb2.SessionOutcome, one, "SESSION_OUTCOME_") for one in listed.outcomes], "now": _session(session) if session else None,
    }  # fmt: skip


def _session(session: session_pb2.Session) -> Mapping[str, Any]:
    return {
        "session_id": session.session_id,
        "name": _name(session),
        "scope": session.scope,
        "created_at": session.created_at,
        "budget": bar_of(session.safety_budget_micros, FULL),
        "charged": as_decimal(Micros(session.charged_micros)),
        "breaker": word(common_pb2.BreakerState, session.breaker, "BREAKER_STATE_"),
        "state": word(session_pb2.SessionStatus, session.status, "SESSION_STATUS_"),
        "risk": _last_risk(session),
        "windows": len(session.windows),
        "most_windows": session.max_windows,
        "depth": session.loop_depth,
        "halted_by": _halted_by(session),
        "continues": session.continues_session_id,
    }


def _halted_by(session: session_pb2.Session) -> str:
    """Return in a sentence why nothing goes on, and the way out; empty while it does."""
    if session.HasField("ancestor_halt"):
        above = session.ancestor_halt.session_id[-SHORT:]
        return f"The session above it, …{above}, lets nothing below it go on ({session.ancestor_halt.reason}): begin a new one there."
    if session.safety_budget_micros <= 0:
        return "Its safety budget is used up. Its work goes on in a new session only."
    if session.breaker == common_pb2.BREAKER_STATE_OPEN:
        return "Its breaker is open: the budget is at 0.10 or below. Its work goes on in a new session only."
    if session.breaker == common_pb2.BREAKER_STATE_HALF_OPEN:
        return "Its breaker is half open: calls are reviewed, and delegating needs an approval."
    return ""


def bar_of(left: int, full: int) -> Mapping[str, Any]:
    """Return a budget as a bar: the share that is left in percent, and the word that colours it (SPEC-012 §5.1)."""
    kind = "open" if left <= 100_000 * full // FULL else "half-open" if left <= 500_000 * full // FULL else "closed"
    return {
        "percent": max(0, min(100, left * 100 // full)) if full else 0, "kind": kind,
        "left": as_decimal(Micros(max(0, left))), "full": as_decimal(Micros(full)),
    }  # fmt: skip


def _caller(scope: str, budget: session_pb2.CallerBudget) -> Mapping[str, Any]:
    return {
        "scope": scope, "budget": bar_of(budget.left_micros, budget.budget_micros),
        "ends_at": iso8601(budget.ends_at * 1_000_000),
    }  # fmt: skip


def _window(window: session_pb2.Window) -> Mapping[str, Any]:
    return {
        "window_id": window.window_id, "number": window.window_number, "at": window.timestamp,
        "risk": word(common_pb2.RiskLevel, window.risk_level, "RISK_LEVEL_"), "status": Word(window.status, window.status.lower()),
        "charge": as_decimal(Micros(window.charge_micros)), "left": as_decimal(Micros(window.safety_budget_micros)),
        "strategy": said(window.strategy), "is_sealed": bool(window.hmac), "tokens": window.token_count,
    }  # fmt: skip


def _last_risk(session: session_pb2.Session) -> Word:
    sealed = [one for one in session.windows if one.hmac]
    return word(common_pb2.RiskLevel, sealed[-1].risk_level, "RISK_LEVEL_") if sealed else Word("–", "none")


def _nested(tree: Sequence[session_pb2.Session], session_id: str) -> list[Mapping[str, Any]]:
    """Return the tree as nested items, each with its children, as deep as it goes."""
    below: dict[str, list[session_pb2.Session]] = {}
    for one in tree[1:]:
        below.setdefault(one.parent_session_id, []).append(one)

    def item(one: session_pb2.Session) -> Mapping[str, Any]:
        children = [item(child) for child in below.get(one.session_id, ())]
        return {**_session(one), "is_here": one.session_id == session_id, "children": children}

    return [item(tree[0])]


def _verified(found: audit_pb2.VerifyResponse) -> Mapping[str, Any]:
    return {
        "integrity": word(common_pb2.ChainIntegrity, found.integrity, "CHAIN_INTEGRITY_"),
        "events": found.events, "windows": found.windows, "charged": as_decimal(Micros(found.charged_micros)),
        "faults": [{"what": one.what, "index": one.index, "reason": one.reason} for one in found.faults[:50]],
    }  # fmt: skip


def _integrity(shown: WindowView) -> Word:
    """Return the state of the chain up to the window; the first one has nothing to chain from (SPEC-004 §8)."""
    if shown.integrity == common_pb2.CHAIN_INTEGRITY_UNVERIFIED and shown.report.window_number == 1:
        return Word("first of its chain", "none")
    return word(common_pb2.ChainIntegrity, shown.integrity, "CHAIN_INTEGRITY_")


def _charge(shown: WindowView) -> str:
    """Return what the window cost, in a sentence."""
    if shown.window is None:
        return ""
    left, charge = as_decimal(Micros(shown.window.safety_budget_micros)), shown.window.charge_micros
    risk = word(common_pb2.RiskLevel, shown.report.risk_level, "RISK_LEVEL_").text
    if not charge:
        return f"It cost nothing: its risk is {risk}. Its path has {left} left."
    return f"It cost {as_decimal(Micros(charge))} of the safety budget, for a risk of {risk} ({shown.report.composite_score:.2f}). Its path has {left} left."


class Marked(NamedTuple):
    """A piece of an answer: its text, the claims that were made of it, and the worst that was found of them."""

    text: Any
    claims: tuple[str, ...]
    kind: str


_KINDS = ("wrong", "unknown", "grounded", "plain")
"""What can be found of a claim, the worst first."""


def _marked(text: str, claims: Iterable[dpe_pb2.Claim]) -> list[Marked]:
    """Return an answer in pieces. Only the claims of its first text are marked: the others' places are in other texts."""
    placed = sorted(
        ((one.start, one.end, one) for one in claims if not one.output_index and 0 <= one.start < one.end <= len(text)),
        key=lambda one: one[:2],
    )
    pieces: list[Marked] = []
    at = 0
    for (start, end), group in groupby(placed, key=lambda one: one[:2]):
        if start < at:
            continue
        made = [one[2] for one in group]
        if start > at:
            pieces.append(Marked(said(text[at:start]), (), "plain"))
        worst = min((_kind(one) for one in made), key=_KINDS.index)
        pieces.append(Marked(said(text[start:end]), tuple(one.claim_id for one in made), worst))
        at = end
    if at < len(text):
        pieces.append(Marked(said(text[at:]), (), "plain"))
    return pieces


def _kind(claim: dpe_pb2.Claim) -> str:
    if claim.fabrications or claim.distortions:
        return "wrong"
    if claim.cannot_tell or claim.attribution == dpe_pb2.ATTRIBUTION_PARAMETRIC:
        return "unknown"
    return "grounded" if claim.attribution == dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED else "plain"


def _name(session: session_pb2.Session) -> str:
    return _named(session.agent.agent_type, session.session_id)


def _named(agent_type: str, session_id: str) -> str:
    return f"{agent_type or 'agent'} …{session_id[-SHORT:]}"
