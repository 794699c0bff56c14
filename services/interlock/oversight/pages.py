"""The data of the reviewers' pages: sign-in, queue, one held response (ecosystem.md 3.11; reliability.md A-31).

Each function turns messages of the mesh into the values of one template. Identifiers and numbers go in as they are, and the
template escapes them. A text that someone else wrote goes in as ``said`` or ``quoted``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import Micros, as_decimal
from interlock.domain.held import APPROVAL_REASONS, REJECTION_REASONS, Held, readable_texts
from interlock.oversight.console import HeldView
from interlock.oversight.markup import quoted, render, said
from interlock.oversight.views import View
from interlock.runtime.pictures import picture

MOST_CLAIMS = 512
TOO_FAST = 5
"""Decisions within a minute that are more than a person can have read."""

_UNITS = (("d", 86_400, 172_800), ("h", 3_600, 3_600), ("min", 60, 60))
"""Unit, its seconds, and from how many on it is told: days from two on."""

KEYS = (
    ("j / k", "next / previous in the queue"), ("Enter", "open"), ("a", "go to the approval, also from the queue"), ("r", "go to the rejection, also from the queue"),
    ("t", "back to the text"), ("u", "back to the queue"), ("?", "these keys"),
)  # fmt: skip
_FORMS = (
    {"action": "release", "label": "Approve: release the answer", "reasons": APPROVAL_REASONS},
    {"action": "reject", "label": "Reject: delete the answer", "reasons": REJECTION_REASONS},
)


STRANGER: Mapping[str, Any] = {"reviewer": "", "csrf": "", "role": "", "here": "", "sees_content": False}


class Word(NamedTuple):
    """A word of ours and its kind, which colours it."""

    text: str
    kind: str


def sign_in_page(fault: str, *, ways: Collection[str], provider: str, to: str) -> str:
    """Return the page for a reader who is not signed in, with the *ways* in; *provider* is the host of the OpenID provider, if any."""
    return render("sign_in.html", title="Sign in", **STRANGER, fault=fault, ways=ways, provider=said(provider), to=to)


def frame_of(view: View) -> Mapping[str, Any]:
    """Return what every page says of the person who is signed in."""
    return {
        "reviewer": view.reviewer, "csrf": view.csrf, "reads_only": view.reads_only, "role": view.role.value,
        "sees_content": view.role.sees_content,
    }  # fmt: skip


def time_left(expires_at: str, now_us: int) -> str:
    """Return how long something waits yet, in its largest unit: ``23 h left``."""
    left_s = (datetime.fromisoformat(expires_at).timestamp() * 1_000_000 - now_us) / 1_000_000
    if left_s <= 0:
        return "expired"
    unit, size = next(((unit, size) for unit, size, least in _UNITS if left_s >= least), ("s", 1))
    return f"{int(left_s // size)} {unit} left"


def held_page(view: View, shown: HeldView, pace: tuple[int, int]) -> str:
    """Return one held response with everything that speaks for and against it, and the forms that decide.

    *pace* is how many responses the reviewer decided in the last minute and in the last hour.
    """
    item, report = shown.item, shown.report
    decides = shown.held is not None and item.status == audit_pb2.HELD_STATUS_PENDING and not view.reads_only
    return render(
        "held.html", title=f"Window {item.window_id}", **frame_of(view), here="reviews", keyboard=KEYS,
        item=item_of(item), kept_by=_kept_by(shown), decided=_decided(item), scores=scores_of(report), answer=_answer(shown.held),
        decision=_decision(item, pace) if decides else None, claims=claims_of(report, shown.held.evidence if shown.held else {}), findings=findings_of(report),
        contradictions=contradictions_of(report), tree=_tree(shown.sessions),
    )  # fmt: skip


def item_of(item: audit_pb2.HeldItem) -> Mapping[str, Any]:
    """Return what every page says of a held response."""
    return {
        "window_id": item.window_id,
        "session_id": item.session_id,
        "response_hash": item.response_hash,
        "policy_hash": item.policy_hash,
        "risk": word(common_pb2.RiskLevel, item.risk_level, "RISK_LEVEL_"),
        "state": word(audit_pb2.HeldStatus, item.status, "HELD_STATUS_"),
        "expires_at": item.expires_at,
        "held_at": item.held_at,
    }


def _kept_by(shown: HeldView) -> str:
    """Return what kept the answer back: a hold, or a halt that an approval overrides."""
    reason, directive = shown.kept_by
    return " by ".join(
        part for part in ({"SAFETY_HALT": "halted", "": ""}.get(reason, "held"), said(directive)) if part
    )


def _decided(item: audit_pb2.HeldItem) -> Mapping[str, Any] | None:
    if not item.reviewer_id:
        return None
    return {"reviewer": said(item.reviewer_id), "at": item.decided_at, "reason": said(item.reason or "-")}


def scores_of(report: dpe_pb2.Report) -> Mapping[str, str]:
    """Return the scores of a report, in words where one was not measured."""
    return {
        "composite": f"{report.composite_score:.3f}",
        "grounding": f"{report.grounding_pct:.3f}" if report.HasField("grounding_pct") else "not measured",
        "quality": f"{report.quality_score:.3f}" if report.HasField("quality_score") else "not measured",
    }


def _answer(held: Held | None) -> Mapping[str, Any] | None:
    if held is None:
        return None
    texts = [{"label": label, "quoted": quoted(text, label)} for label, text in readable_texts(held)]
    return {"texts": texts, "question": quoted(held.question, "question")}


def _decision(item: audit_pb2.HeldItem, pace: tuple[int, int]) -> Mapping[str, Any]:
    signed = {
        "data-window": item.window_id,
        "data-session": item.session_id,
        "data-response": item.response_hash,
        "data-policy": item.policy_hash,
        "data-expires": item.expires_at,
    }
    last_minute, last_hour = pace
    return {
        "attributes": {name: value for name, value in signed.items() if value},
        "last_minute": last_minute,
        "last_hour": last_hour,
        "too_fast": last_minute >= TOO_FAST,
        "forms": _FORMS,
    }


def claims_of(report: dpe_pb2.Report, evidence: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Return the claims of a report, each with its *evidence* (fact id → text) where that is known."""
    return [
        {
            "id": claim.claim_id,
            "text": said(claim.text),
            "attribution": word(dpe_pb2.Attribution, claim.attribution, "ATTRIBUTION_"),
            "entailment": f"{claim.entailment:.2f} for, {claim.contradiction:.2f} against",
            "fact": _fact(claim.fact_id, evidence.get(claim.fact_id, "")) if claim.fact_id else None,
            "faults": _faults(claim),
        }
        for claim in report.claims[:MOST_CLAIMS]
    ]


def _fact(fact_id: str, text: str) -> Mapping[str, Any]:
    return {"id": said(fact_id), "quoted": quoted(text, f"fact {fact_id}") if text else None}


def _faults(claim: dpe_pb2.Claim) -> list[Mapping[str, Any]]:
    """Return what is wrong with a claim; ``source`` is ``None`` where no source says anything about it."""
    fabricated = Word("fabricated", "critical")
    faults: list[Mapping[str, Any]] = [
        {"word": fabricated, "source": None, "claim": said(one)} for one in claim.fabrications
    ]
    return faults + [
        {"word": Word(one.type, "high"), "source": said(one.source_value), "claim": said(one.claim_value)}
        for one in claim.distortions
    ]


def findings_of(report: dpe_pb2.Report) -> Mapping[str, Any]:
    """Return what was found, counted."""
    return {
        "fabrications": report.fabrication_count,
        "distortions": report.distortion_count,
        "contradictions": report.contradiction_count,
        "omitted": len(report.omissions),
        "personal": sorted({said(one.type) for one in report.pii}),
        "raised_by": [said(one) for one in [*report.amplifiers_applied, *report.floors]],
    }


def contradictions_of(report: dpe_pb2.Report) -> list[Mapping[str, Any]]:
    """Return the contradictions of a report."""
    return [
        {"claim_id": one.claim_id, "severity": one.severity, "against": said(one.other_text or one.other_claim_id)}
        for one in report.contradictions
    ]


def _tree(sessions: Sequence[session_pb2.Session]) -> Mapping[str, Any] | None:
    if not sessions:
        return None
    return {"sessions": [_session(one) for one in sessions], "picture": said(picture.text(sessions))}


def _session(session: session_pb2.Session) -> Mapping[str, Any]:
    return {
        "session_id": session.session_id,
        "agent": said(session.agent.agent_type or "not registered"),
        "depth": session.loop_depth,
        "budget": as_decimal(Micros(session.safety_budget_micros)),
        "breaker": word(common_pb2.BreakerState, session.breaker, "BREAKER_STATE_"),
        "state": word(session_pb2.SessionStatus, session.status, "SESSION_STATUS_"),
        "windows": len(session.windows),
    }


def word(kind: Any, number: int, prefix: str) -> Word:
    """Return the name of an enum's value; a value that this version does not know is shown as its number."""
    name = str(kind.Name(number)).removeprefix(prefix) if number in kind.values() else str(number)
    return Word(name.replace("_", " "), name.replace("_", "-"))
