"""Requests of the session service as domain values. A malformed field is refused by name.

Ids become keys, and texts are stored, signed and shown: every one is held against its own small alphabet.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import TypeVar

from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import FULL, LARGEST_CHARGE, Micros
from interlock.domain.chain.chain_state import ChainState
from interlock.domain.dag.dag import FAN_IN, LINEAR, PATTERNS, STATUSES, STRATEGIES, TIERS, TRANSFERS, Edge, Seal
from interlock.domain.errors import Refused, invalid, unauthenticated
from interlock.domain.ids import ContinuationId, SessionId, WindowId, check
from interlock.domain.risk.risk import RiskLevel
from interlock.domain.session.hold import HoldWindow
from interlock.domain.session.opening import FACTS_KEPT
from interlock.domain.session.session_refusals import refusal
from interlock.domain.session.spending import MOST as MOST_SPENT
from interlock.domain.session.spending import Amount
from interlock.domain.session.state import CommitWindow, FailWindow, PolicyText
from interlock.session.ledger import OpenCommand

TOKEN_LIMIT = 8192
SCOPE_LIMIT = 128
NONCE_LIMIT = 128
POLICY_LIMIT = 16_384
LONGEST_LEASE_MS = 3_600_000
DEFAULT_STRATEGY = "push"
MOST_PARENTS = 1000
MOST_ANCESTORS = 100
MOST_ACKNOWLEDGED = 1000

_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_RISK_LEVELS = frozenset(map(int, RiskLevel))
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|\+00:00)", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{16}")
_REASON = re.compile(r"[A-Z][A-Z0-9_]{0,63}", re.ASCII)
_SEPARATOR = "\u241f"  # parts the fields of a window HMAC (design.md, Window HMAC)


def scope_of(value: str) -> str:
    """Return a caller's key id: 1 to 128 printable characters."""
    if not 0 < len(value) <= SCOPE_LIMIT or not value.isprintable() or _SEPARATOR in value:
        raise invalid("INVALID_SCOPE", f"scope is a key id of 1 to {SCOPE_LIMIT} printable characters")
    return value


def token_of(value: str) -> str:
    """Return a token as received, when it may be one."""
    if not value:
        raise unauthenticated("TOKEN_MISSING", "a session token is needed")
    if len(value) > TOKEN_LIMIT:
        raise unauthenticated("TOKEN_MALFORMED", "not a session token: it is too long")
    return value


def policy_of(text: str, digest: str) -> PolicyText:
    """Return a canonical policy with its hash. Refused with POLICY_HASH_MISMATCH when they do not belong together."""
    if len(text) > POLICY_LIMIT or not text.isprintable() or _SEPARATOR in text:
        raise invalid("INVALID_POLICY_TEXT", f"a policy is one line of at most {POLICY_LIMIT} printable characters")
    expected = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    if digest != expected and (text or digest):
        raise invalid("POLICY_HASH_MISMATCH", "policy_hash is not the SHA-256 of policy_text")
    return PolicyText(text, digest)


def strategy_of(value: str) -> str:
    """Return a dispatch strategy; push without one."""
    return one_of("strategy", value, STRATEGIES) if value else DEFAULT_STRATEGY


def one_of(field: str, value: str, allowed: tuple[str, ...]) -> str:
    """Return *value* when it is one of *allowed*."""
    if value not in allowed:
        raise wrong(field, "one of " + ", ".join(allowed))
    return value


def presented_of(request: session_pb2.OpenWindowRequest, *, max_fan_out: int) -> OpenCommand:
    """Return what an OpenWindow presents. Pointers beyond *max_fan_out* are refused before any of them is looked at."""
    return _opening(request, token=token_of(request.token), scope=scope_of(request.scope), max_fan_out=max_fan_out)


def first_of(request: session_pb2.OpenWindowRequest, *, scope: str, max_fan_out: int) -> OpenCommand:
    """Return how the first window of a new session of *scope* is opened, which needs no token."""
    if request.token or request.scope not in {"", scope}:
        raise wrong("first_window", "without a token and of the session's own scope")
    return _opening(request, token="", scope=scope, max_fan_out=max_fan_out)


def _opening(request: session_pb2.OpenWindowRequest, *, token: str, scope: str, max_fan_out: int) -> OpenCommand:
    pattern, pointers = pattern_of(request.pattern), request.continuation_ids
    if len(pointers) > max_fan_out:
        raise refusal("MAX_FAN_OUT_EXCEEDED", max_fan_out, len(pointers))
    if pattern == FAN_IN and request.continuation_id:
        raise wrong("continuation_id", "empty for a fan-in, whose pointers are continuation_ids")
    if pattern != FAN_IN and (pointers or request.partial):
        raise wrong("continuation_ids", "empty unless the pattern is FAN_IN")
    if len(request.nonce) > NONCE_LIMIT:
        raise invalid("NONCE_MISMATCH", "the policy nonce is not the one of this session")
    return OpenCommand(
        token=token,
        scope=scope,
        continuation_id=_continuation(request.continuation_id),
        nonce=request.nonce,
        lease_ms=within("lease_ms", request.lease_ms, 0, LONGEST_LEASE_MS),
        pattern=pattern,
        continuation_ids=tuple(ContinuationId(check("crp_cont_", pointer)) for pointer in pointers),
        partial=request.partial,
    )


def pattern_of(value: str) -> str:
    """Return a pattern of the DAG; LINEAR without one."""
    return one_of("pattern", value, PATTERNS) if value else LINEAR


def commit_of(request: session_pb2.CommitWindowRequest, continuation_id: ContinuationId) -> CommitWindow:
    """Return what a CommitWindow settles; *continuation_id* is what it may issue."""
    policy = policy_of(request.policy_text, request.policy_hash)
    parents = tuple(sorted(window_of(parent) for parent in request.parent_ids))
    return CommitWindow(
        session_id=session_of(request.session_id),
        root_session_id=session_of(request.root_session_id),
        window_id=window_of(request.window_id),
        parent_ids=_each_once("parent_ids", parents, MOST_PARENTS),
        window_number=within("window_number", request.window_number, 1, 2**31 - 1),
        charge=Micros(within("charge_micros", request.charge_micros, 0, LARGEST_CHARGE)),
        ceiling=Micros(within("ceiling_micros", request.ceiling_micros, 0, FULL)),
        continuation_id=continuation_id,
        seal=_seal(request),
        # No text keeps the session's policy: a settle may tighten it, never take it away.
        policy=policy if policy.text else None,
        pattern=pattern_of(request.pattern),
        ancestors=ancestors_of(request.ancestor_session_ids),
        edges=_edges(request, parents),
        facts=tuple(_fact(fact) for fact in _at_most("facts_used", request.facts_used, FACTS_KEPT)),
        accumulate=request.accumulate,
        parent_charge=Micros(within("parent_charge_micros", request.parent_charge_micros, 0, LARGEST_CHARGE)),
        chain=_chain(request),
        above=_above(request),
        caller_id=session_of(request.caller_id) if request.caller_id else "",
        caller_period=within("caller_period", request.caller_period, 1 if request.caller_id else 0, 2**31 - 1),
        spent=Amount(
            within("spent_tokens", request.spent_tokens, 0, MOST_SPENT),
            within("spent_usd_micros", request.spent_usd_micros, 0, MOST_SPENT),
        ),
    )


def ancestors_of(ids: Sequence[str]) -> tuple[SessionId, ...]:
    """Return ancestor sessions, from the parent up to the root."""
    return _each_once("ancestor_session_ids", tuple(session_of(each) for each in ids), MOST_ANCESTORS)


def _chain(request: session_pb2.CommitWindowRequest) -> ChainState:
    """Return the state of the session's audit chain. Without it nothing is compared."""
    budget = request.chain_budget_micros if request.HasField("chain_budget_micros") else FULL
    return ChainState(
        Micros(within("chain_budget_micros", budget, 0, FULL)),
        within("chain_windows", request.chain_windows, 0, 2**31 - 1),
    )


def _above(request: session_pb2.CommitWindowRequest) -> tuple[ChainState, ...]:
    """Return the states of the ancestors' audit chains, one for each; without them nothing is compared."""
    chains = request.ancestor_chains
    if chains and len(chains) != len(request.ancestor_session_ids):
        raise wrong("ancestor_chains", "one for each ancestor, or none")
    return tuple(
        ChainState(
            Micros(within("budget_micros", one.budget_micros, 0, FULL)),
            within("windows", one.windows, 0, 2**31 - 1),
            ended=one.ended,
        )
        for one in chains
    )


def _edges(request: session_pb2.CommitWindowRequest, parents: Sequence[WindowId]) -> tuple[Edge, ...]:
    """Return what was transferred, at most once from each parent, in the order of the parents."""
    edges = tuple(_edge(edge, request.window_id) for edge in _at_most("edges", request.edges, len(parents)))
    if _each_once("edges", tuple(edge.source_id for edge in edges), MOST_PARENTS) and not {
        edge.source_id for edge in edges
    }.issubset(parents):
        raise wrong("edges", "from parents of the window")
    return tuple(sorted(edges, key=lambda edge: edge.source_id))


def _edge(edge: session_pb2.Edge, window: str) -> Edge:
    if edge.target_id not in {"", window}:
        raise wrong("edges", "to the window itself")
    return Edge(
        source_id=window_of(edge.source_id),
        transfer_type=TRANSFERS[within("transfer_type", edge.transfer_type, 0, len(TRANSFERS) - 1)],
        transferred_tokens=within("transferred_tokens", edge.transferred_tokens, 0, 2**31 - 1),
        summary_hash=hash_of("summary_hash", edge.summary_hash) if edge.summary_hash else "",
    )


def _fact(value: str) -> str:
    if not _DIGEST.fullmatch(value):
        raise wrong("facts_used", "digests of 16 hex digits")
    return value


T = TypeVar("T")


def _at_most(field: str, values: Sequence[T], most: int) -> Sequence[T]:
    if len(values) > most:
        raise wrong(field, f"at most {most}")
    return values


def _each_once(field: str, values: tuple[T, ...], most: int) -> tuple[T, ...]:
    if len(set(_at_most(field, values, most))) < len(values):
        raise wrong(field, "each once")
    return values


def fail_of(request: session_pb2.FailWindowRequest) -> FailWindow:
    """Return what a FailWindow gives up."""
    if not _REASON.fullmatch(request.reason):
        raise wrong("reason", "a constant reason of 1 to 64 capitals, digits and underscores")
    parents = tuple(sorted(window_of(parent) for parent in request.parent_ids))
    return FailWindow(
        session_id=session_of(request.session_id),
        root_session_id=session_of(request.root_session_id),
        window_id=window_of(request.window_id),
        reason=request.reason,
        pattern=pattern_of(request.pattern),
        parent_ids=_each_once("parent_ids", parents, MOST_PARENTS),
    )


def hold_of(request: session_pb2.HoldWindowRequest) -> HoldWindow:
    """Return what a HoldWindow sets aside."""
    return HoldWindow(
        session_id=session_of(request.session_id),
        root_session_id=session_of(request.root_session_id),
        window_id=window_of(request.window_id),
        amount=Micros(within("hold_micros", request.hold_micros, 1, LARGEST_CHARGE)),
        ceiling=Micros(within("ceiling_micros", request.ceiling_micros, 0, FULL)),
        caller_id=session_of(request.caller_id) if request.caller_id else "",
        caller_period=within("caller_period", request.caller_period, 1 if request.caller_id else 0, 2**31 - 1),
    )


def renewal_of(request: session_pb2.RenewWindowRequest) -> tuple[WindowId, int]:
    """Return the window of a RenewWindow, and for how many milliseconds from now it keeps its lease."""
    return window_of(request.window_id), within("lease_ms", request.lease_ms, 1, LONGEST_LEASE_MS)


def acknowledged_of(request: session_pb2.AcknowledgeMovesRequest) -> tuple[WindowId, ...]:
    """Return the windows that an AcknowledgeMoves names."""
    if not request.window_ids:
        raise wrong("window_ids", "one window or more")
    return tuple(window_of(window) for window in _at_most("window_ids", request.window_ids, MOST_ACKNOWLEDGED))


def session_of(value: str) -> SessionId:
    """Return a session id."""
    return SessionId(check("crp_sess_", value))


def window_of(value: str) -> WindowId:
    """Return a window id."""
    return WindowId(check("crp_win_", value))


def _continuation(value: str) -> ContinuationId | None:
    return ContinuationId(check("crp_cont_", value)) if value else None


def _seal(request: session_pb2.CommitWindowRequest) -> Seal:
    if request.risk_level not in _RISK_LEVELS:
        raise wrong("risk_level", "LOW, MEDIUM, HIGH or CRITICAL")
    if not _TIME.fullmatch(request.timestamp):
        raise wrong("timestamp", "an ISO 8601 time in UTC")
    return Seal(
        risk_level=RiskLevel(request.risk_level),
        hmac=hash_of("hmac", request.hmac),
        timestamp=request.timestamp,
        response_hash=hash_of("response_hash", request.response_hash),
        envelope_etag=hash_of("envelope_etag", request.envelope_etag) if request.envelope_etag else "",
        quality_tier=one_of("quality_tier", request.quality_tier, TIERS),
        strategy=strategy_of(request.strategy),
        token_count=within("token_count", request.token_count, 0, 2**31 - 1),
        status=one_of("status", request.status, STATUSES),
    )


def hash_of(field: str, value: str) -> str:
    """Return a SHA-256 as it is written everywhere."""
    if not _HASH.fullmatch(value):
        raise wrong(field, "sha256: and 64 hex digits")
    return value


def within(field: str, value: int, least: int, most: int) -> int:
    """Return *value* when it lies between the two."""
    if not least <= value <= most:
        raise wrong(field, f"from {least} to {most}")
    return value


def wrong(field: str, expected: str) -> Refused:
    """Return the refusal for a field that is not as expected."""
    return invalid("INVALID_FIELD", f"{field} must be {expected}", field=field)
