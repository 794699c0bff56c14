"""The reviewers' pages as HTML: sign-in, queue, one held response (ecosystem.md 3.11; reliability.md A-31)."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import Micros, as_decimal
from interlock.domain.held import APPROVAL_REASONS, REJECTION_REASONS, readable_texts
from interlock.oversight.console import HeldView
from interlock.oversight.markup import attributes, document, facts, quoted, said, table, word
from interlock.oversight.views import View
from interlock.runtime.pictures import picture

MOST_CLAIMS = 512
TOO_FAST = 5
"""Decisions within a minute that are more than a person can have read."""

_UNMEASURED = "not measured"

_KEYS = (
    ("j / k", "next / previous in the queue"), ("Enter", "open"), ("a", "go to the approval"), ("r", "go to the rejection"),
    ("t", "back to the text"), ("u", "back to the queue"), ("?", "these keys"),
)  # fmt: skip


def sign_in_page(fault: str = "") -> str:
    """Return the page of somebody who is not signed in."""
    told = f'<p class="fault" role="alert">{escape(fault)}</p>' if fault else ""
    body = (
        f"{told}<section aria-labelledby=by-key><h2 id=by-key>With your key file</h2>"
        "<p>The file that <code>interlock oversight keygen</code> wrote. It is read by this page alone: the key never leaves "
        "the browser, which keeps it, not extractable, until you sign out.</p>"
        '<form id="key-form"><label for="key-file">Key file</label><input id="key-file" type="file" required>'
        "<button>Sign in</button></form><noscript><p>Without scripts you can read, with a token from the command line; "
        "decide with <code>interlock oversight approve</code> there.</p></noscript></section>"
        "<section aria-labelledby=by-token><h2 id=by-token>To read only, with a token</h2>"
        "<p><code>interlock oversight sign-in --key FILE</code> prints one.</p>"
        '<form method="post" action="/sign-in"><label for="bearer">Token</label>'
        '<input id="bearer" name="bearer" type="password" autocomplete="off" spellcheck="false" required>'
        "<button>Sign in to read</button></form></section>"
    )
    return document("Sign in", body)


def queue_page(view: View, page: audit_pb2.ListHeldResponse, status: str) -> str:
    """Return the queue, what expires first on top."""
    items = sorted(page.items, key=lambda item: item.expires_at)
    rows = [
        [
            f'<a class="item" href="/held/{escape(item.window_id)}">{escape(item.window_id)}</a>',
            _risk(item.risk_level),
            _status(item),
            _time(item.expires_at),
            _time(item.held_at),
            f"<code>{escape(item.session_id)}</code>",
        ]
        for item in items
    ]
    heads = ("Window", "Risk", "State", "Expires", "Held", "Session")
    listed = table(f"{len(rows)} held responses", heads, rows) if rows else "<p>Nothing is held.</p>"
    more = '<p class="fault">There are more: decide these first, or use <code>interlock oversight list</code>.</p>'
    links = " ".join(
        f'<a href="/?status={name}"{attributes({"aria-current": "page" if name == status else ""})}>{name}</a>'
        for name in ("pending", "approved", "rejected", "expired", "released")
    )
    body = f'<nav aria-label="State">{links}</nav>{listed}{more if page.more else ""}{_keys()}'
    return document("Held responses", body, who=view.reviewer, csrf=view.csrf)


def held_page(view: View, shown: HeldView, pace: tuple[int, int]) -> str:
    """Return one held response with everything that speaks for and against it, and the forms that decide.

    *pace* is how many the reviewer decided in the last minute and in the last hour.
    """
    item = shown.item
    body = "".join(
        (
            _summary(item, shown.report),
            _answer(shown),
            _decide(item, pace) if shown.held and item.status == audit_pb2.HELD_STATUS_PENDING else "",
            _claims(shown),
            _findings(shown.report),
            _session(shown),
            _keys(),
        )
    )
    return document(f"Window {item.window_id}", body, who=view.reviewer, csrf=view.csrf)


def _summary(item: audit_pb2.HeldItem, report: dpe_pb2.Report) -> str:
    scores = [
        ("Risk", _risk(item.risk_level)),
        ("Composite score", f"{report.composite_score:.3f}"),
        ("State", _status(item)),
        ("Expires", _time(item.expires_at)),
        ("Held", _time(item.held_at)),
        ("Grounding", f"{report.grounding_pct:.3f}" if report.HasField("grounding_pct") else _UNMEASURED),
        ("Quality", f"{report.quality_score:.3f}" if report.HasField("quality_score") else _UNMEASURED),
    ]
    ids = [(name, f"<code>{escape(value)}</code>") for name, value in (
        ("Session", item.session_id), ("Response hash", item.response_hash), ("Policy hash", item.policy_hash),
    )]  # fmt: skip
    decided = [
        ("Decided by", said(item.reviewer_id)),
        ("At", _time(item.decided_at)),
        ("Reason", said(item.reason or "-")),
    ]
    return f'<section aria-label="Summary">{facts([*scores, *ids, *(decided if item.reviewer_id else [])])}</section>'


def _answer(shown: HeldView) -> str:
    if shown.held is None:
        return "<section><h2>The answer</h2><p>It is deleted: rejected, expired, erased or handed out.</p></section>"
    texts = "".join(f"<h3>{escape(what)}</h3>{quoted(text, what)}" for what, text in readable_texts(shown.held))
    question = f"<h3>Question</h3>{quoted(shown.held.question, 'question')}"
    return (
        '<section id="text" tabindex="-1" aria-labelledby="text-head"><h2 id="text-head">The answer that is held</h2>'
        f"{texts or '<p>It holds no text.</p>'}{question}</section>"
    )


def _pace(pace: tuple[int, int]) -> str:
    minute, hour = pace
    told = f"<p>You have decided about {hour} responses in the last hour.</p>" if hour else ""
    if minute < TOO_FAST:
        return told
    return f'{told}<p class="fault" role="alert">{minute} of them in the last minute: nobody reads that fast.</p>'


def _decide(item: audit_pb2.HeldItem, pace: tuple[int, int]) -> str:
    data = attributes(
        {
            "data-window": item.window_id,
            "data-session": item.session_id,
            "data-response": item.response_hash,
            "data-policy": item.policy_hash,
            "data-expires": item.expires_at,
        }
    )
    forms = _form("release", "Approve: release the answer", APPROVAL_REASONS)
    forms += _form("reject", "Reject: delete the answer", REJECTION_REASONS)
    return (
        f'<section id="decide" aria-labelledby="decide-head"{data}><h2 id="decide-head">Decide</h2>'
        '<p id="checked" role="status">The answer\'s hash is checked in this browser before anything can be signed.</p>'
        f'{_pace(pace)}<div class="forms">{forms}</div><noscript><p>Without scripts nothing can be signed here. On the command line: '
        f"<code>interlock oversight approve {escape(item.window_id)} --key FILE</code></p></noscript></section>"
    )


def _form(action: str, label: str, reasons: tuple[str, ...]) -> str:
    options = "".join(f'<option value="{one}">{one.replace("_", " ").lower()}</option>' for one in reasons)
    return (
        f'<form class="decision {action}" data-action="{action}"><label for="{action}-reason">Reason</label>'
        f'<select id="{action}-reason" name="reason" required><option value="">choose one</option>{options}</select>'
        f'<button id="{action}-button" disabled>{label}</button></form>'
    )


def _claims(shown: HeldView) -> str:
    evidence = shown.held.evidence if shown.held else {}
    rows = [
        [
            escape(claim.claim_id),
            f"<bdi>{said(claim.text)}</bdi>",
            _attribution(claim.attribution),
            f"{claim.entailment:.2f} for, {claim.contradiction:.2f} against",
            _evidence(claim, evidence),
        ]
        for claim in shown.report.claims[:MOST_CLAIMS]
    ]
    if not rows:
        return "<section><h2>Claims</h2><p>None was found.</p></section>"
    heads = ("Claim", "What it says", "Rests on", "Entailment", "Evidence and faults")
    return f"<section><h2>Claims</h2>{table(f'{len(rows)} claims', heads, rows)}</section>"


def _evidence(claim: dpe_pb2.Claim, evidence: dict[str, str] | Any) -> str:
    parts = []
    if claim.fact_id:
        text = evidence.get(claim.fact_id)
        shown = quoted(text, f"fact {claim.fact_id}") if text else '<p class="none">its text is not here</p>'
        parts.append(f"<p>{said(claim.fact_id)}</p>{shown}")
    parts += [f"{word('fabricated', 'critical')} <bdi>{said(one)}</bdi>" for one in claim.fabrications]
    parts += [
        f"{word(one.type, 'high')} source <bdi>{said(one.source_value)}</bdi>, claim <bdi>{said(one.claim_value)}</bdi>"
        for one in claim.distortions
    ]
    return "<br>".join(parts) or "none"


def _findings(report: dpe_pb2.Report) -> str:
    counts = [
        ("Fabrications", str(report.fabrication_count)),
        ("Distortions", str(report.distortion_count)),
        ("Contradictions", str(report.contradiction_count)),
        ("Omitted facts", str(len(report.omissions))),
        ("Personal data", ", ".join(sorted({said(one.type) for one in report.pii})) or "none found"),
        ("Raised by", ", ".join(said(one) for one in [*report.amplifiers_applied, *report.floors]) or "nothing"),
    ]
    rows = [
        [escape(one.claim_id), escape(one.severity), f"<bdi>{said(one.other_text or one.other_claim_id)}</bdi>"]
        for one in report.contradictions
    ]
    told = table("Contradictions", ("Claim", "Severity", "Against"), rows) if rows else ""
    return f"<section><h2>Findings</h2>{facts(counts)}{told}</section>"


def _session(shown: HeldView) -> str:
    if not shown.sessions:
        return "<section><h2>Session</h2><p>It cannot be read now.</p></section>"
    window_id = escape(shown.item.window_id)
    heads = ("Session", "Agent", "Depth", "Budget", "Breaker", "State", "Windows")
    text = said(picture.text(shown.sessions))
    return (
        f"<section><h2>Session and budget</h2>{table('Sessions of the tree', heads, _rows(shown))}"
        f'<img class="dag" src="/held/{window_id}/dag.svg" alt="The windows of the tree; the same in words below">'
        f'<details><summary>The windows in words</summary><pre tabindex="0">{text}</pre></details></section>'
    )


def _rows(shown: HeldView) -> Iterator[list[str]]:
    for one in shown.sessions:
        mine = " (this one)" if one.session_id == shown.item.session_id else ""
        yield [
            f"<code>{escape(one.session_id)}</code>{mine}",
            said(one.agent.agent_type or "not registered"),
            str(one.loop_depth),
            as_decimal(Micros(one.safety_budget_micros)),
            word(*_named(common_pb2.BreakerState, one.breaker, "BREAKER_STATE_")),
            word(*_named(session_pb2.SessionStatus, one.status, "SESSION_STATUS_")),
            str(len(one.windows)),
        ]


def _keys() -> str:
    listed = facts((f"<kbd>{escape(key)}</kbd>", escape(what)) for key, what in _KEYS)
    return f'<details id="keys"><summary>Keys</summary>{listed}</details>'


def _risk(level: int) -> str:
    return word(*_named(common_pb2.RiskLevel, level, "RISK_LEVEL_"))


def _status(item: audit_pb2.HeldItem) -> str:
    return word(*_named(audit_pb2.HeldStatus, item.status, "HELD_STATUS_"))


def _attribution(number: int) -> str:
    return word(*_named(dpe_pb2.Attribution, number, "ATTRIBUTION_"))


def _named(kind: Any, number: int, prefix: str) -> tuple[str, str]:
    name = str(kind.Name(number)).removeprefix(prefix) if number in kind.values() else str(number)
    return name.replace("_", " "), name.replace("_", "-")


def _time(text: str) -> str:
    return f'<time datetime="{escape(text)}">{escape(text[:19].replace("T", " "))} UTC</time>' if text else "-"
