"""Every type of event in the audit trail: severity, fields, and the path that produces it (SPEC-011 §1, AUD-1).

Every appended event is checked against this table. An unknown type, another severity or a missing field is refused, so
that the trail holds documented events only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from interlock.domain.errors import invalid

SEVERITIES = ("DEBUG", "INFO", "WARN", "ERROR", "CRITICAL")
"""From the mildest to the gravest. The position plus one is the number in ``audit.v1.Severity``."""


@dataclass(frozen=True)
class EventType:
    """One type of event. ``fields`` are in each event of the type, ``more`` are in it where they are known."""

    name: str
    severities: tuple[str, ...]
    fields: tuple[str, ...]
    more: tuple[str, ...]
    path: str
    """What produces it, or why nothing can produce it."""
    own: bool = False
    """Whether only the audit service writes it. A caller could otherwise speak for the chain or for a reviewer."""
    produced: bool = True
    """Whether a serving path can produce it."""


def _type(name: str, severity: str, fields: str, more: str, path: str, **how: bool) -> EventType:
    return EventType(name, tuple(severity.split("|")), tuple(fields.split()), tuple(more.split()), path, **how)


_CKF = "Nothing: the knowledge store of the hosted product is out of scope; facts come with each request."

_KERNEL = "sequence previous link at_ms approved version checks changes dropped moments"

_DECISION = "sequence previous link at_us"

_TYPES = (
    # SPEC-011 §1.1
    _type("SESSION_CREATED", "INFO", "session_id scope safety_policy_hash",
          "parent_session_id root_session_id agent_type loop_depth grant_id record",
          "A session begins. `scope` identifies the API key: the beginning of its hash, or its configured name."),
    _type("SESSION_CONTINUED", "INFO", "window_number parent_ids", "continuation_id pattern",
          "A window after the first is sealed."),
    _type("SESSION_BOUND", "INFO|WARN", "rank", "disagreeing unusable begins_conversation continues_session_id",
          "A call without a token is bound to its session, or evidence speaks against the session of a call, or cannot be used"
          " (docs/bindings.md). Ranks alone, never a name."),
    _type("SESSION_TERMINATED", "INFO|WARN", "reason final_safety_budget", "total_windows stopped_by why",
          "A session ends: CLIENT, LAST_WINDOW, SAFETY_BUDGET_DEPLETED, or ADMIN, which the audit service alone writes, with the person"
          " (`stopped_by`) and a word (`why`)."),
    _type("CALLER_BUDGET_PERIOD", "INFO", "period previous_period budget_micros ends_at", "",
          "The first charge of a caller in a period, in the caller's own chain (ATT-2)."),
    _type("CALLER_BUDGET_LOWERED", "WARN|CRITICAL", "period child_session_id window_id charge_micros risk_level", "",
          "A session of a caller was charged, in the caller's own chain (ATT-2)."),
    # §1.2
    _type("DISPATCH_STARTED", "INFO", "strategy provider model choices", "temperature token_budget seed step",
          "A provider call begins, or the check of an answer that the caller brings."),
    _type("DISPATCH_COMPLETED", "INFO", "response_hash latency_ms", "tokens_used dropped_fields",
          "A provider call ended well. `dropped_fields`: what of its answer is not passed on, because nobody judges it."),
    _type("DISPATCH_FAILED", "ERROR", "error_code provider model", "round remedies",
          "A provider call or one of its remedies failed. The provider's own text is not recorded."),
    _type("EMBEDDINGS_PASSED", "INFO", "provider model inputs response_hash", "tokens_used dropped_fields dimensions",
          "Embeddings were passed to a caller that named this session. They are not judged (docs/fronts.md)."),
    _type("UNJUDGED_MEDIA", "WARN", "direction kind count content_hash", "",
          "Images, sound or files of a request went to the provider, or those of its answer to the client: nobody can judge them, and"
          " `unjudged_media` passes them."),
    _type("RE_DISPATCH", "WARN",
          "round reason remedies original_risk original_score strategy temperature seed tokens", "",
          "A window is dispatched again (SPEC-005 §19)."),
    _type("REMEDY_DISCARDED", "INFO", "round remedies worse better", "",
          "What a remedy brought is not released: it is worse than the draft, or not better where it was to be. The draft stands."),
    _type("REVIEW_UNRESOLVED", "WARN", "issues provider_calls", "",
          "A review named issues, and `max_provider_calls` left no call to revise them."),
    _type("STRATEGY_UPGRADE", "WARN", "from_strategy to_strategy", "trigger_risk_level",
          "The breaker, the safety mode or the risk demands a stronger strategy than the requested one."),
    _type("SUMMARISATION", "INFO|WARN", "source_id requested_tokens tokens used",
          "summary_hash fidelity_score fault", "An earlier answer was summarised for this window (SPEC-004 §12.4)."),
    # §1.3
    _type("DPE_COMPLETED", "INFO", "composite_score risk_level claim_count",
          "grounding_pct floors basis grounding_mode misattribution_count",
          "An analysis ended."),
    _type("FABRICATION_DETECTED", "WARN", "fabrication_count claim_ids", "",
          "An analysis found invented entities. The report names them, by claim."),
    _type("DISTORTION_DETECTED", "WARN", "distortion_count types claim_ids", "",
          "An analysis found sources misrepresented."),
    _type("CONTRADICTION_DETECTED", "WARN", "contradiction_count scope claim_pairs", "severity",
          "An analysis found claims that cannot both hold."),
    _type("REPETITION_DETECTED", "WARN", "level overlap_ratio", "semantic_ratio",
          "An analysis found an earlier answer repeated."),
    _type("COMPLETENESS_GAP", "INFO", "completeness_score uncovered_sub_queries", "",
          "An analysis found parts of the question left open. The report has them by number."),
    _type("FLOW_REMEDIATION", "INFO", "remediation_type", "flow_score", "A break in the flow is remedied."),
    _type("STOP_INJECT", "CRITICAL", "pattern_detected tokens_generated_before_stop", "",
          "Nothing: no pattern is looked for while tokens come in. An answer that is cut has STREAM_ENDED.",
          produced=False),
    # §1.4
    _type("SAFETY_HALT", "CRITICAL", "risk_level halt_reason audit_trail_uri", "policy_directive_violated",
          "A response is not released."),
    _type("SAFETY_BUDGET_DEPLETED", "CRITICAL", "remaining_budget", "windows_processed",
          "A session's budget fell to 0.10 or below."),
    _type("SAFETY_BUDGET_CASCADED", "WARN|CRITICAL",
          "child_session_id window_id risk_level before after", "",
          "A sub-agent's settlement lowered the budget of a session above it."),
    _type("BREAKER_TRANSITION", "WARN", "session_id from_state to_state safety_budget", "",
          "The circuit breaker of a session changed its state."),
    _type("OVERSIGHT_TRIGGERED", "WARN", "oversight_mode", "trigger_reason", "A person must review a response."),
    _type("POLICY_VIOLATION", "WARN", "directive report_only violation_details",
          "risk_level hallucination_score grounding_pct fabrication_count audit_trail_uri report_uri report_to",
          "A response broke a directive. The fields after `violation_details` are reported to `report-uri`."),
    _type("WOULD_HAVE", "WARN", "action reason", "directive risk_level audit_trail_uri",
          "A response was delivered to a caller that is only watched, and would have been halted, held, rejected or rewritten."),
    # §1.5
    _type("PII_DETECTED", "WARN", "pii_categories pii_types no_store_set", "", "An analysis found personal data."),
    _type("EU_AI_ACT_CLASSIFIED", "INFO", "risk_class", "system_type", "An analysis classified the system."),
    _type("COMPLY_EXPORT", "INFO", "comply_event_id sink first_sequence last_sequence events", "trail_uri",
          "A batch of this session's events was accepted by a sink.", own=True),
    _type("REPORT_DELIVERED", "INFO", "report_id destination sequence", "",
          "A violation was reported to the policy's `report-uri` or `report-to`.", own=True),
    # §1.6
    _type("FACT_RETRIEVED", "DEBUG", "facts fact_count", "",
          "The facts of a window's envelope: `fact_id` of each, and `relevance_score` where a claim rests on it."),
    _type("FACT_INGESTED", "INFO", "fact_id source_id importance_weight", "", _CKF, produced=False),
    _type("FACT_DELETED", "INFO", "fact_id reason", "", _CKF, produced=False),
    _type("FACT_QUARANTINED", "WARN", "fact_id quarantine_reason", "", _CKF, produced=False),
    _type("CKF_ETAG_CHANGED", "INFO", "old_etag new_etag reason", "", _CKF, produced=False),
    # §1.7
    _type("TOOL_CALL", "INFO", "tool_name", "input_hash output_hash tool_name_hash call_hash",
          "An answer calls a tool (`input_hash`), or a request brings the result of a tool (`output_hash`)."),
    _type("ACTION_REFUSED", "WARN", "tool_name checks charge_micros", "",
          "An answer calls a tool that the caller's kernel would reject; it is not released (KRN-11). `charge_micros` is charged once for"
          " the answer, beside its risk."),
    _type("AGENT_LOOP_ITERATION", "INFO", "phase iteration budget_remaining", "",
          "A reflexive answer enters its next pass: generate, verify or refine."),
    _type("FAN_OUT_CREATED", "INFO", "child_count child_ids", "parent_window_id", "A window of a fan-out is sealed."),
    _type("FAN_IN_MERGED", "INFO", "parent_ids merged_budget", "left_out_ids", "A window that merges others is sealed."),
    _type("COMPLETENESS_CONTINUATION", "INFO", "round uncovered_topics auto_window_id tokens", "",
          "The uncovered topics are requested in the same window."),
    _type("FLOW_STITCH", "INFO", "round stitch_content_hash prior_window_id tokens", "",
          "A bridge was put in front of an answer."),
    _type("DELEGATION_GRANTED", "INFO", "grant_id loop_depth expires_at", "agent_type approval_id reviewer_id",
          "A sub-agent may be started."),
    _type("SUB_AGENT_STARTED", "INFO", "session_id grant_id", "agent_type", "A grant was used."),
    _type("SUB_AGENT_RESULT", "INFO", "sub_agent_session_id sub_agent_window_id sub_agent_hmac sub_agent_chain_tip",
          "agent_type", "A sub-agent's answer is used (SPEC-012 §8.1)."),
    _type("WINDOW_FAILED", "ERROR|WARN|INFO", "reason", "parent_ids window_number pattern parent_hmacs",
          "A window of a fan-out produced no answer and remains as FAILED."),
    # Answers that are released in parts: beyond SPEC-011 §1
    _type("STREAM_BEGUN", "INFO",
          "window_number parent_ids parent_hmacs hold_micros ceiling_micros until_ms key_version", "caller_id caller_period",
          "The first part of an answer is about to be released. What the window may cost at most is held until it is sealed."),
    _type("STREAM_PART", "INFO", "part characters running_hash risk_level", "",
          "A part of an answer was judged with all that came before it and is about to be released. `running_hash`: SHA-256 of all"
          " text released so far."),
    _type("STREAM_ENDED", "INFO|WARN", "parts characters running_hash ending", "",
          "An answer that was released in parts ended: COMPLETE, CUT (the rest may not be released), BROKEN (by the provider),"
          " CALLER_LEFT or LOST (by its sidecar). Beside no seal: it never began, and its window was given up; no part of it leaves later."),
    # Spending on model calls (docs/spending.md): beyond SPEC-011 §1
    _type("SPENDING_RESERVED", "INFO", "tokens usd_micros", "limit_tokens limit_usd_micros",
          "A model call is about to be made under a spending limit. What its window's calls can cost is reserved; the seal of the window"
          " takes its place."),
    _type("SPENDING_CHARGED", "INFO", "tokens usd_micros", "",
          "A window with a reservation, or a call for embeddings, will not be sealed. This is what its model calls cost."),
    # The chain, oversight and erasure: beyond SPEC-011 §1
    _type("WINDOW_SEALED", "INFO", "window_number response_hash report_hash charge_micros status hmac trail_id", "",
          "A window is sealed. The event has the whole record, with texts as hashes.", own=True),
    _type("CHAIN_BROKEN", "CRITICAL", "index faults", "", "A chain did not verify (SPEC-004 §16.4).", own=True),
    _type("CONTENT_DROPPED", "INFO", "", "", "The content of a window that was never released was deleted.", own=True),
    _type("CONTENT_VIEWED", "INFO", "viewer", "", "A person looked at what the window said, in the console or as a reviewer.",
          own=True),
    _type("OVERSIGHT_APPROVED", "WARN",
          "approval_id reviewer_id response_hash policy_hash approval_timestamp approval_expires signature", "reason",
          "A reviewer approved a held response. The event has the reviewer's signature.", own=True),
    _type("OVERSIGHT_REJECTED", "INFO",
          "approval_id reviewer_id response_hash policy_hash approval_timestamp approval_expires signature", "reason",
          "A reviewer rejected a held response; it was deleted.", own=True),
    _type("OVERSIGHT_EXPIRED", "WARN", "held_at expires_at", "approval_id",
          "A held response expired before it was handed out, and was deleted.", own=True),
    _type("RESPONSE_RELEASED", "WARN", "approval_id reviewer_id response_hash claim", "",
          "An approved response was handed out, once. `claim` identifies what the client presented.", own=True),
    _type("RESPONSE_REPEATED", "WARN", "approval_id reviewer_id response_hash claim", "",
          "The same client asked again within a minute of the hand-out and got the same bytes.", own=True),
    _type("CONTENT_ERASED", "INFO|WARN", "reason", "", "A session's data key was destroyed.", own=True),
    _type("TRUNCATED", "INFO|WARN|CRITICAL", "", "",
          "Events before this one were removed by retention, or a loss was acknowledged.", own=True),
    # Kernels (docs/kernel.md): each record makes the state again, so values of variables are in it
    _type("KERNEL_OPENED", "INFO", _KERNEL, "action key costs kernel_id kernel scope root_session_id", "A kernel begins, with all that it enforces.",
          own=True),
    _type("KERNEL_REGISTERED", "INFO", _KERNEL, "action key costs", "Variables or actions were added to a kernel.",
          own=True),
    _type("KERNEL_EXECUTED", "INFO", _KERNEL, "action key costs", "A registered action was checked, charged and committed.",
          own=True),
    _type("KERNEL_PERMITTED", "INFO", _KERNEL, "action key costs", "An action in the world was permitted; its cost is reserved.",
          own=True),
    _type("KERNEL_CONFIRMED", "INFO", _KERNEL, "action key costs", "A permit was settled with what the action cost.",
          own=True),
    _type("KERNEL_ABORTED", "INFO", _KERNEL, "action key costs", "A permit was taken back.",
          own=True),
    _type("KERNEL_ROLLED_BACK", "INFO", _KERNEL, "action key costs", "Committed actions were undone and refunded.",
          own=True),
    _type("KERNEL_LEASED", "INFO", _KERNEL, "action key costs", "A slice of a budget was granted; it counts as spent.",
          own=True),
    _type("KERNEL_RETURNED", "INFO", _KERNEL, "action key costs", "The rest of a lease came back.",
          own=True),
    _type("KERNEL_TICKET_TAKEN", "INFO", _KERNEL, "action key costs", "A place in the line of those who wait for their turn was taken.",
          own=True),
    _type("KERNEL_TICKET_RETURNED", "INFO", _KERNEL, "action key costs", "A place in the line was given back unused.",
          own=True),
    _type("KERNEL_CHILD_OPENED", "INFO", _KERNEL, "action key costs", "A child was added to a kernel, or found in it.",
          own=True),
    _type("KERNEL_SAGA_BEGUN", "INFO", _KERNEL, "action key costs", "A saga was opened: its steps are undone together.",
          own=True),
    _type("KERNEL_SAGA_ENDED", "INFO", _KERNEL, "action key costs", "A saga ended; its steps stay done.",
          own=True),
    _type("KERNEL_SAGA_ROLLED_BACK", "INFO", _KERNEL, "action key costs", "A saga was undone; the rest is left to its compensations.",
          own=True),
    _type("KERNEL_COMPENSATION_CLAIMED", "INFO", _KERNEL, "action key costs", "A compensation was handed out.",
          own=True),
    _type("KERNEL_COMPENSATION_FAILED", "INFO", _KERNEL, "action key costs", "A compensation failed; it is tried again.",
          own=True),
    _type("KERNEL_COMPENSATION_RETRIED", "INFO", _KERNEL, "action key costs decided", "A stuck compensation is tried again.",
          own=True),
    _type("KERNEL_COMPENSATION_LEFT", "INFO", _KERNEL, "action key costs decided", "A person looked at a stuck compensation and left it as it is.",
          own=True),
    _type("KERNEL_COMPENSATED", "INFO", _KERNEL, "action key costs decided", "A compensation is done; its effects are committed.",
          own=True),
    _type("KERNEL_COMPENSATION_STUCK", "WARN", _KERNEL, "action key costs", "A step of a saga needs a person to make up for it.",
          own=True),
    _type("KERNEL_EMERGENCY", "WARN", _KERNEL, "action key costs recorded",
          "An emergency action, which may have stopped the kernel. `recorded` where a sidecar recorded and signed it while the kernel could not be reached.",
          own=True),
    _type("KERNEL_REJECTED", "WARN", _KERNEL, "action key costs decided", "An action was rejected: every check is in it.",
          own=True),
    # Experiments (docs/decision.md): a trace replays, so what agents signalled and proposed is in it
    _type("DECISION_OPENED", "INFO", _DECISION + " name definition", "scope", "An experiment begins, with all that holds in it.",
          own=True),
    _type("DECISION_AGENT", "INFO", _DECISION + " agent", "", "An agent was registered, or its descriptor replaced.",
          own=True),
    _type("DECISION_REINSTATED", "WARN", _DECISION + " name reason", "", "A person made an agent ACTIVE again.",
          own=True),
    _type("DECISION_SIGNAL", "INFO", _DECISION + " name schema", "", "A type of signals was registered, with its schema.",
          own=True),
    _type("DECISION_SETTLED", "INFO", _DECISION + " cycle key outcome kernel", "",
          "What a cycle reserved in the shared kernel was confirmed or aborted there.", own=True),
    _type("DECISION_CYCLE", "INFO",
          _DECISION + " cycle decision_id outcome chosen parts trace_hash rules_hash snapshot_hash rejected", "",
          "A cycle was decided. `trace_hash` is of the trace, which follows in parts.", own=True),
    _type("DECISION_TRACE", "INFO", _DECISION + " cycle part text", "", "A part of the trace of a cycle.",
          own=True),
)  # fmt: skip

TYPES: Mapping[str, EventType] = {one.name: one for one in _TYPES}
OWN_TYPES = frozenset(one.name for one in _TYPES if one.own)
STREAM_BEGUN, STREAM_PART, STREAM_ENDED = "STREAM_BEGUN", "STREAM_PART", "STREAM_ENDED"
RELEASING_TYPES = frozenset({STREAM_BEGUN, STREAM_PART})
"""Events before a part of an answer leaves. None is taken for a window that is sealed: another sidecar closed it."""
SPENDING_TYPES = frozenset({"SPENDING_RESERVED", "SPENDING_CHARGED"})
"""Events about what a window without a seal spends on model calls."""
STREAM_TYPES = frozenset({"COMPLY_EXPORT", "REPORT_DELIVERED"})
"""Events about a delivery. They are sent to no sink, because each delivery would cause another."""


def check(name: str, severity: int, data: Mapping[str, Any]) -> None:
    """Refuse an event that does not match the table: EVENT_TYPE_UNKNOWN, EVENT_SEVERITY_WRONG or EVENT_FIELD_MISSING."""
    known = TYPES.get(name)
    if known is None or not known.produced:
        raise invalid(
            "EVENT_TYPE_UNKNOWN", "no event of this type is written; docs/events.md lists the types", type=name
        )
    if SEVERITIES[severity - 1] not in known.severities:
        raise invalid("EVENT_SEVERITY_WRONG", f"the severity of {name} is {' or '.join(known.severities)}", type=name)
    missing = [field for field in known.fields if field not in data]
    if missing:
        raise invalid("EVENT_FIELD_MISSING", f"{name} needs the field {missing[0]}", type=name, field=missing[0])


def events_page() -> str:
    """Return docs/events.md."""
    head = (
        "# Events of the audit trail\n\n"
        "Every type that Interlock writes (SPEC-011 §1, and what it adds), from `interlock/domain/chain/audit_events.py`. The audit\n"
        "service refuses an unknown type, another severity or a missing field. The data hold ids, hashes, numbers and\n"
        "words of fixed lists: never a prompt, an answer, a claim or a fact. Records of kernels (`KERNEL_`)\n"
        "and of experiments (`DECISION_`) hold what agents put into them, since a state is made again from them. Upgrade the audit and session services before the sidecars.\n\n"
        "| type | severity | fields, *where known* | when |\n| --- | --- | --- | --- |\n"
    )
    return head + "".join(_row(one) for one in _TYPES)


def _row(one: EventType) -> str:
    fields = [f"`{field}`" for field in one.fields] + [f"*`{field}`*" for field in one.more]
    by = " Written by the audit service alone." if one.own else ""
    return f"| `{one.name}` | {_or(one.severities)} | {', '.join(fields)} | {one.path}{by} |\n"


def _or(words: Iterable[str]) -> str:
    return " or ".join(words)
