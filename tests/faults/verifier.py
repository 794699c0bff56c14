"""The one verifier: what must hold after every run, whatever was broken in it (reliability.md §3). Pure over the facts.

It shares nothing with the code under test but the language of policies: budgets, graphs and tips are worked out anew here,
from what the audit log holds and what clients were told.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from interlock.domain.policy.policy_order import relaxations
from interlock.domain.policy.policy_text import parse
from tests.faults import caller_rules, decision_rules, kernel_rules, stream_rules
from tests.faults.facts import (
    CHAT,
    DEPLETED_AT,
    END,
    FULL,
    IN_PARTS,
    LOOK,
    RELEASED,
    WRITTEN_ANEW,
    Call,
    Facts,
    Seal,
    Session,
    Window,
    micros_in,
)

REVIEWED_AT = 500_000
HIGH, CRITICAL = 150_000, 350_000
"""What such an answer costs."""
POLICY = "halt-on CRITICAL"
"""The policy that the suite's sessions have."""
HALTED = 451
SOUND = frozenset({"VALID", "UNVERIFIED"})
BELOW_AN_END = frozenset({"ANCESTOR_HALTED", "ANCESTOR_EXHAUSTED", "ANCESTOR_ENDED"})
VERDICTS = frozenset({"SAFETY_HALT", "BUDGET_DEPLETED", "HELD_FOR_REVIEW", *BELOW_AN_END})
"""The only reasons of a 451: an infrastructure that fails is none of them."""

NEEDED = (
    "crp-context-session-id", "crp-context-window", "crp-agent-safety-budget", "crp-provenance-hmac",
    "crp-safety-hallucination-risk", "crp-provenance-chain-integrity", "crp-compliance-audit-trail-id", "crp-set-session",
)  # fmt: skip
"""Headers without which an answer would be a silent pass."""

_STRICTNESS = {"COMPLETED": 0, "HELD": 1, "HALTED": 2}
NOTHING_OPENED = frozenset({"TOKEN_REPLAYED", "WINDOW_IN_FLIGHT", "PATTERN_NEEDS_PARENT", "BUDGET_HELD"})
"""Refusals of an opening: such a call had no lease, and held nothing."""

_REASON = re.compile(r"[A-Z][A-Z0-9_]{2,63}")


@dataclass(frozen=True)
class Violation:
    """An invariant that did not hold, and where."""

    invariant: str
    what: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.what}"


Rule = Callable[[Facts], Iterator[str]]


def verify(facts: Facts) -> list[Violation]:
    """Return every violation; none in a run that may be believed."""
    return [Violation(name, what) for name, rules in RULES.items() for rule in rules for what in rule(facts)]


# I1


def reads_never_rise(facts: Facts) -> Iterator[str]:
    """A look that began after another had ended shows no more; the end shows no more than any look."""
    for session in facts.sessions:
        looks = [call for call in facts.calls if call.budget is not None and call.session_id == session.session_id]
        for earlier, later in _ordered(looks):
            apart = earlier.started < facts.set_back_at < later.ended
            if later.budget > earlier.budget and not apart:  # type: ignore[operator]
                yield f"{session.session_id}: {earlier.budget} in call {earlier.number}, {later.budget} in {later.number}"
        if session.budget is not None:
            lowest = min((call.budget for call in looks if call.budget is not None), default=FULL)
            if session.budget > lowest:
                yield f"{session.session_id}: a look showed {lowest}, the store ends at {session.budget}"


def paths_never_rise(facts: Facts) -> Iterator[str]:
    """A window has at most what its parents left, less its own charge; a root window at most all."""
    for session in facts.sessions:
        known = {window.window_id: window for window in session.windows}
        for window in _settled(session):
            start = min((known[one].path_budget for one in window.parents if one in known), default=FULL)
            if window.path_budget > max(0, start - window.charge):
                yield f"{window.window_id}: {window.path_budget} left of {start} after a charge of {window.charge}"


def budget_is_what_the_log_charged(facts: Facts) -> Iterator[str]:
    """The store's budget follows from the audit log: never above, and not below what the whole tree cost."""
    trees = _trees(facts.sessions)
    for session in facts.sessions:
        if session.budget is None:
            continue
        most = _most(session)
        below = trees.children[session.session_id]
        for child in below:
            if child.budget is not None and session.budget > child.budget:
                yield f"{session.session_id} holds {session.budget}, its child {child.session_id} {child.budget}"
        if session.budget > most:
            yield f"{session.session_id} holds {session.budget}; its own charges leave {most}"
        if not below and not session.parent and not session.summing and session.budget != most:
            yield f"{session.session_id} holds {session.budget}; its charges leave exactly {most}"
        if session.budget < (least := trees.least(session)):
            yield f"{session.session_id} holds {session.budget}; all charges together leave {least}"


def linked_sessions_begin_with_what_was_left(facts: Facts) -> Iterator[str]:
    """A session that goes on from a full one begins with no more than the charges of that one leave (ATT-5)."""
    known = {session.session_id: session for session in facts.sessions}
    for session in facts.sessions:
        full = known.get(session.continues)
        if full is not None and session.began > _most(full):
            yield f"{session.session_id} began with {session.began}; {full.session_id} left {_most(full)}"


def sums_are_exact(facts: Facts) -> Iterator[str]:
    """Where costs add up, a root has left what no window of its whole tree was charged: not more, and not less (F-10)."""
    trees = _trees(facts.sessions)
    for root in trees.children[""]:
        tree = list(trees.below(root))
        if not root.summing or any(one.budget is None for one in tree):
            continue
        left = max(0, _start(root) - sum(window.charge for one in tree for window in _settled(one)))
        if root.budget != left:
            yield f"{root.session_id} holds {root.budget}; all windows of its tree leave {left}"


def told_never_rises(facts: Facts) -> Iterator[str]:
    """What an answer and its token tell of a session's budget is no more than any answer told before it was asked for (F-12)."""
    told: dict[str, list[tuple[Call, int]]] = defaultdict(list)
    for call in facts.calls:
        if call.kind == CHAT and call.hmac and call.status in {RELEASED, HALTED}:
            token = claims_of(token_in(call.headers))
            for text in (call.headers.get("crp-agent-safety-budget"), str(token["sb"]) if token else None):
                if (left := micros_in(text)) is not None:
                    told[call.session_id].append((call, left))
    for session, each in told.items():
        for later, left in each:
            before = [known for earlier, known in each if earlier.ended < later.started]
            if before and left > min(before):
                yield f"{session}: call {later.number} was told {left} after {min(before)}"


def told_budgets_are_the_stores(facts: Facts) -> Iterator[str]:
    """What a header and a token say is left is no more than the window's path has, and no less than its session ends with.

    A rebuild knows the order of seals, not that of settlements: where a session below was sealed before and settled after, its
    cost is taken off the path now. What was told may be higher by what sessions below cost, never lower.
    """
    windows = {window.hmac: window for session in facts.sessions for window in _settled(session)}
    trees = _trees(facts.sessions)
    below = {window.hmac: trees.cost_below(session) for session in facts.sessions for window in _settled(session)}
    kept = {window.hmac: session.budget or 0 for session in facts.sessions for window in _settled(session)}
    for call in facts.calls:
        window = windows.get(call.hmac)
        if window is None or call.kind != CHAT or call.status not in {RELEASED, HALTED}:
            continue  # a refusal tells what was known when it was refused
        told = micros_in(call.headers.get("crp-agent-safety-budget"))
        if told is not None and told > window.path_budget + below[call.hmac]:
            yield f"call {call.number} was told {told}; {window.window_id} has {window.path_budget}"
        token = claims_of(token_in(call.headers))
        signed = micros_in(str(token["sb"])) if token and token["ct"] == window.hmac else None
        if signed is not None and not kept[call.hmac] <= signed <= window.path_budget + below[call.hmac]:
            yield f"the token of call {call.number} says {token['sb']}; {window.window_id} has {window.path_budget}"


# I2


def nothing_after_the_end(facts: Facts) -> Iterator[str]:
    """No answer leaves a budget of 0.10 or less behind, and none is released once that was told."""
    windows = {window.hmac: window for session in facts.sessions for window in _settled(session)}
    ends: dict[str, float] = {}
    for call in facts.calls:
        budget = call.budget_told
        if call.kind in {CHAT, LOOK} and call.session_id and budget is not None and budget <= DEPLETED_AT:
            ends[call.session_id] = min(call.ended, ends.get(call.session_id, call.ended))
    for call in _released(facts):
        if call.approval:
            continue
        window = windows.get(call.hmac)
        if window is not None and window.path_budget <= DEPLETED_AT:
            yield f"call {call.number} was released with {window.path_budget} left"
        if call.started > ends.get(call.session_id, call.started):
            yield f"call {call.number} was released after its session was known to be spent"


# I20


def nothing_below_an_end(facts: Facts) -> Iterator[str]:
    """Once a session was told to be ended or spent, nothing that is asked for afterwards is released below it.

    A reviewer may still release what was held below a session that is merely spent to 0.10 (reading 4).
    """
    parents = {session.session_id: session.parent for session in facts.sessions}
    ends: dict[str, float] = {}
    spent: dict[str, float] = {}
    for call in facts.calls:
        if call.kind == END and call.status == RELEASED and call.session_id:
            ends[call.session_id] = min(call.ended, ends.get(call.session_id, call.ended))
        left = call.budget_told
        if call.kind in {CHAT, LOOK, END} and call.session_id and left is not None and left <= DEPLETED_AT:
            spent[call.session_id] = min(call.ended, spent.get(call.session_id, call.ended))
    for call in _released(facts):
        at = parents.get(call.session_id)
        while at:
            over = (
                ends.get(at, call.started)
                if call.approval
                else min(ends.get(at, call.started), spent.get(at, call.started))
            )
            if over < call.started:
                yield f"call {call.number} was released in {call.session_id} after the end of {at}"
            at = parents.get(at)


# I3


def settled_exactly_once(facts: Facts) -> Iterator[str]:
    """Whatever ended in an answer or a halt is settled once, for what was sealed, and nothing else is settled."""
    for session in facts.sessions:
        seals = Counter(seal.hmac for seal in session.seals)
        by_hmac = {seal.hmac: seal for seal in session.seals}
        settled = Counter(window.hmac for window in _settled(session))
        for hmac, times in (seals + settled).items():
            if seals[hmac] > 1 or settled[hmac] > 1:
                yield f"{session.session_id}: window {hmac[:20]} is there {times} times"
        for window in _settled(session):
            seal = by_hmac.get(window.hmac)
            if seal is None:
                yield f"{window.window_id} was settled and never sealed"
            elif (seal.window_id, seal.charge, seal.response_hash) != (
                window.window_id, window.charge, window.response_hash,
            ):  # fmt: skip
                yield f"{window.window_id} was settled otherwise than it was sealed"
        for seal in unsettled(session, facts):
            yield f"{seal.window_id} was sealed and is not settled, and its session goes on"


def unsettled(session: Session, facts: Facts) -> list[Seal]:
    """Return what was sealed and not settled in a session that some client can continue."""
    if not stream_rules.goes_on(session, facts):
        return []
    settled = {window.hmac for window in _settled(session)}
    return [seal for seal in session.seals if seal.hmac not in settled]


def outcomes_are_settled(facts: Facts) -> Iterator[str]:
    """An answer and a halt that a client was given stand in the session store, once, and no answer is given twice."""
    known = {session.session_id: session for session in facts.sessions}
    given = Counter(call.hmac for call in _released(facts) if not call.approval)
    for hmac, times in given.items():
        if times > 1:
            yield f"the answer of {hmac[:20]} was given {times} times"
    for call in facts.calls:
        sealed = call.kind == CHAT and call.hmac and call.status in {RELEASED, HALTED}
        session = known.get(call.session_id)
        if sealed and session is None:
            yield f"call {call.number} speaks of a session that is not known: {call.session_id}"
        if sealed and session and session.budget is not None:
            found = sum(window.hmac == call.hmac for window in session.windows)
            if found != 1:
                yield f"call {call.number} ({call.status}) has {found} settlements"


# I4


def released_answers_are_in_the_log(facts: Facts) -> Iterator[str]:
    """Each answer that was given away is in the audit log, by its HMAC and by the hash of its very bytes."""
    seals = {seal.hmac: seal for session in facts.sessions for seal in session.seals}
    for call in facts.calls:
        if call.kind != CHAT or not call.hmac:
            continue
        seal = seals.get(call.hmac)
        if seal is None:
            yield f"call {call.number} was told the seal {call.hmac[:20]}, which the log does not hold"
        elif call.status == RELEASED and call.entry not in WRITTEN_ANEW and seal.response_hash != call.body_hash:
            yield f"call {call.number} released other bytes than {seal.window_id} sealed"
        elif call.status == RELEASED and seal.status not in ({"HELD", "HALTED"} if call.approval else {"COMPLETED"}):
            yield f"call {call.number} released {seal.window_id}, which was sealed as {seal.status}"
        elif seal.charge not in facts.charges:
            yield f"{seal.window_id} was charged {seal.charge}, which no risk costs"


# I5


def chains_verify(facts: Facts) -> Iterator[str]:
    """Sequence numbers have no gap, every chain verifies from the stored bytes, and every seal has its event."""
    for session in facts.sessions:
        sequences = [event.sequence for event in session.events]
        if sequences != list(range(1, len(sequences) + 1)):
            yield f"{session.session_id}: the sequences are {sequences[:20]}"
        begun = session.events or session.windows or session.seals
        if begun and session.integrity not in SOUND:  # a session that no client was told of may have no record
            yield f"{session.session_id} is {session.integrity}: {session.faults[:3]}"
        noted = [event.window_id for event in session.events if event.event_type == "WINDOW_SEALED"]
        if sorted(noted) != sorted(seal.window_id for seal in session.seals):
            yield f"{session.session_id}: the seals and their events differ"


# I6


def checkpoints_extend(facts: Facts) -> Iterator[str]:
    """Each published checkpoint is a prefix of the next, and of the log at the end."""
    for earlier, later in zip(facts.checkpoints, facts.checkpoints[1:], strict=False):
        if later.size < earlier.size or (later.size == earlier.size and later.root != earlier.root):
            yield f"a checkpoint of {later.size} entries follows one of {earlier.size}"
    for checkpoint in facts.checkpoints:
        if not checkpoint.extended:
            yield f"the log does not extend its checkpoint of {checkpoint.size} entries"


# I7


def children_are_as_tight(facts: Facts) -> Iterator[str]:
    """A sub-agent's policy relaxes nothing of its parent's."""
    known = {session.session_id: session for session in facts.sessions}
    for session in facts.sessions:
        parent = known.get(session.parent)
        if parent is None or session.budget is None or parent.budget is None or not parent.policy:
            continue
        if not session.policy or relaxations(parse(parent.policy), parse(session.policy)):
            yield f"{session.session_id} has {session.policy!r} under {parent.policy!r}"


# I8


def one_winner_per_tip(facts: Facts) -> Iterator[str]:
    """Of all that continue one window in a line, one is settled; one token leads to one answer in a line."""
    for session in facts.sessions:
        lines = Counter(
            (window.parents, window.pattern) for window in _settled(session) if window.pattern in {"LINEAR", ""}
        )
        for (parents, _), times in lines.items():
            if times > 1:
                yield f"{session.session_id}: {times} lines go on from {parents or 'the start'}"
    used: Counter[str] = Counter(
        call.token for call in _released(facts) if call.token and call.pattern == "LINEAR" and not call.approval
    )
    for times in used.values():
        if times > 1:
            yield f"one token led to {times} answers in a line"


def tips_are_linearisable(facts: Facts) -> Iterator[str]:
    """The answers of a session have an order that agrees with real time and with the tips that they went on from.

    Each call names the tip it continues, so that the order is given: what remains is that no answer ended before the call
    that made its tip had begun, and that a refusal as a replay had a rival that could have been first.
    """
    made = {call.hmac: call for call in _released(facts) if call.hmac and not call.approval}
    parents = {
        window.hmac: [one.hmac for one in session.windows if one.window_id in window.parents]
        for session in facts.sessions
        for window in _settled(session)
    }
    for call in _released(facts):
        for tip in parents.get(call.hmac, ()):
            if tip in made and made[tip].started > call.ended:
                yield f"call {call.number} ended before call {made[tip].number}, whose window it continues, began"
    continued = {tip for tips in parents.values() for tip in tips}
    for call in facts.calls:
        tip = str(claims_of(call.token).get("ct", "")) if call.reason == "TOKEN_REPLAYED" else ""
        if tip and tip not in continued and not _rivals(call, tip, facts):
            yield f"call {call.number} was refused as a replay of a tip that nothing continues"


def _rivals(call: Call, tip: str, facts: Facts) -> list[Call]:
    """Return the calls that could have continued a tip before *call* was refused."""
    return [
        one for one in facts.calls
        if one.number != call.number and one.started < call.ended and claims_of(one.token).get("ct") == tip
    ]  # fmt: skip


# I9


def graphs_are_sound(facts: Facts) -> Iterator[str]:
    """A session's windows are one acyclic graph with one root, within its limits."""
    limits = facts.limits
    for session in facts.sessions:
        known = {window.window_id: window for window in session.windows}
        roots = [window for window in session.windows if not window.parents and not _failed(window)]
        if len(roots) > 1:
            yield f"{session.session_id} has {len(roots)} roots"
        for window in session.windows:
            strange = [parent for parent in window.parents if parent not in known]
            later = [parent for parent in window.parents if parent in known and known[parent].number >= window.number]
            if strange or later:
                yield f"{window.window_id} continues {strange or later}, which is not before it"
        fans = Counter(
            window.parents for window in session.windows if window.pattern == "FAN_OUT" and not _failed(window)
        )
        widest = max(fans.values(), default=0)
        longest = max((window.number for window in session.windows), default=0)
        sizes = (len(session.windows), widest, longest, session.depth)
        bounds = (limits.max_dag_nodes, limits.max_fan_out, limits.max_windows, limits.max_loop_depth)
        if any(size > bound for size, bound in zip(sizes, bounds, strict=True)):
            yield f"{session.session_id} has nodes, width, length, depth {sizes}; allowed are {bounds}"


# I10


def nothing_passes_silently(facts: Facts) -> Iterator[str]:
    """A call ends in an answer with all its headers or in a refusal with a reason, by its limit; never in a defect."""
    for call in facts.calls:
        given_up = not call.status and not call.front_up  # by a client whose sidecar, or the way to it, was down
        if call.ended - call.started > call.limit_s and not given_up:
            yield f"call {call.number} took {call.ended - call.started:.1f} s of {call.limit_s:.1f} s"
        if call.status == 0 or (call.status == 500 and not call.reason and not call.front_up):
            if call.front_up and not call.left:
                yield f"call {call.number} got no answer: {call.reason}"
        elif call.status == RELEASED:
            missing = [name for name in NEEDED if name not in call.headers]
            if call.kind == CHAT and missing:
                yield f"call {call.number} was released without {missing}"
        elif not _REASON.fullmatch(call.reason) or call.reason == "INTERNAL":
            yield f"call {call.number} ended with {call.status} and the reason {call.reason!r}"
        elif (call.status == HALTED) != (call.reason in VERDICTS):
            yield f"call {call.number} ended with {call.status} for {call.reason}"
    yield from facts.log_entries


# I11


def nothing_of_ours_reaches_a_provider(facts: Facts) -> Iterator[str]:
    """No CRP header, no session token and no grant is in what a provider was sent."""
    for number, request in enumerate(facts.received):
        named = [name for name, _ in request.headers if name.lower().startswith(("crp-", "x-crp", "x-interlock"))]
        if named:
            yield f"request {number} to the provider has {named}"
        text = request.body + "\n".join(value for _, value in request.headers)
        if any(secret and secret in text for secret in facts.secrets):
            yield f"request {number} to the provider holds a token"


# I12


def approvals_release_once(facts: Facts) -> Iterator[str]:
    """An approval releases one held window, and only one approval releases it, for one client.

    For a minute the same client may be given the same bytes again, so that a broken connection loses no approved answer.
    """
    windows, approvals, claims = defaultdict(set), defaultdict(set), defaultdict(set)
    for call in _released(facts):
        if call.approval:
            windows[call.approval].add(call.hmac)
            claims[call.approval].add(call.token)
            approvals[call.hmac].add(call.approval)
    for found, what in ((windows, "windows"), (claims, "clients")):
        yield from (f"one approval released to {len(each)} {what}" for each in found.values() if len(each) > 1)
    for hmac, each in approvals.items():
        if len(each) > 1:
            yield f"the held answer of {hmac[:20]} was released by {len(each)} approvals"


# I13 and I14


def decisions_follow_from_risk_and_budget(facts: Facts) -> Iterator[str]:
    """What became of an answer follows from its risk, the policy and the budget: from no way in, and no report-only policy.

    It may be stricter than its own path tells, by what other branches and agents of its tree have spent: it is decided on the
    lowest of them, as if that were to bear the charge, and by what streams of its session held meanwhile.
    """
    trees = _trees(facts.sessions)
    for root in trees.children[""]:
        tree = list(trees.below(root))
        lowest = min((one.budget for one in tree if one.budget is not None), default=FULL)
        for session in tree:
            if session.policy != POLICY:
                continue
            own, left = _own_paths(session), {window.hmac: window.path_budget for window in _settled(session)}
            for seal in session.seals:
                if seal.hmac not in left:
                    continue
                mildest = _rule(seal.charge, own[seal.window_id])
                held = CRITICAL * _holding(session, seal, facts)
                strictest = _rule(seal.charge, min(lowest - seal.charge, left[seal.hmac]) - held)
                if not _STRICTNESS[mildest] <= _STRICTNESS.get(seal.status, -1) <= _STRICTNESS[strictest]:
                    yield f"{seal.window_id} of charge {seal.charge} is {seal.status}; its rule says {mildest} to {strictest}"


def _holding(session: Session, seal: Seal, facts: Facts) -> int:
    """Return how many other calls of a session may have held budget for their parts while a window was decided.

    One that ended without an answer may hold it until its lease runs out, and then until an opening has closed it.
    """
    own = [call for call in facts.calls if call.hmac == seal.hmac and not call.approval]
    until = max((call.ended for call in own), default=float("inf"))
    since = min((call.started for call in own), default=_earliest(session, seal, facts))
    others = [
        call for call in facts.calls
        if call.entry in IN_PARTS and call.hmac != seal.hmac and call.reason not in NOTHING_OPENED
        and session.session_id in _sessions_of(call) and call.started < until
    ]  # fmt: skip
    told = sum(bool(call.hmac) and call.ended > since for call in others)
    in_doubt = [call for call in others if not call.hmac]
    left = max(len(in_doubt) - _closed(session, in_doubt, since, facts), len(session.holds))
    return told + min(left, len(in_doubt))


def _earliest(session: Session, seal: Seal, facts: Facts) -> float:
    """Return when a window whose client was told nothing began at the earliest: after the windows that it goes on from."""
    parents = {one.hmac for one in session.seals if one.window_id in seal.parents}
    return max((call.started for call in facts.calls if call.hmac in parents and not call.approval), default=0.0)


def _closed(session: Session, in_doubt: list[Call], before: float, facts: Facts) -> int:
    """Return how many of these calls hold nothing any more, for certain, at a time.

    A lease is over once its call has ended and as long again as an answer may take. Each opening after that closes one of those that
    hold budget before it goes on. A store that was set back may hold again what was closed before.
    """
    openings = sorted(
        (call.started, call.ended) for call in facts.calls
        if facts.set_back_at < call.started and call.ended <= before and not call.approval
        and (call.hmac or call.reason == "WINDOW_ALREADY_SETTLED") and session.session_id in _sessions_of(call)
    )  # fmt: skip
    closed, at = 0, 0.0
    for over in sorted(call.ended + call.limit_s for call in in_doubt):
        ends = next((ended for started, ended in openings if started >= max(over, at)), None)
        if ends is None:
            break
        closed, at = closed + 1, ends
    return closed


def _sessions_of(call: Call) -> set[str]:
    return {call.session_id, _session_in(call.token)}


def _session_in(token: str) -> str:
    return str(claims_of(token).get("sid", ""))


def _rule(charge: int, left: int) -> str:
    """Return what becomes of an answer under ``POLICY``, by its charge and what is left after it (SPEC-012 §2.3)."""
    if charge >= CRITICAL or left <= DEPLETED_AT:
        return "HALTED"
    return "HELD" if left <= REVIEWED_AT and charge >= HIGH else "COMPLETED"


def told_as_sealed(facts: Facts) -> Iterator[str]:
    """By every way in, a client is told what was sealed: an answer, a review or a halt.

    Where others of the session or its tree spent the last of it between the seal and the settlement, it is told that.
    """
    seals = {seal.hmac: seal for session in facts.sessions for seal in session.seals}
    spent = {one.session_id for one in facts.sessions if one.budget is not None and one.budget <= DEPLETED_AT}
    over = {one.session_id for one in facts.sessions if one.budget is not None and not one.active}
    for call in facts.calls:
        seal = seals.get(call.hmac) if call.kind == CHAT and call.status in {RELEASED, HALTED} else None
        if seal is None:
            continue
        if call.reason == "BUDGET_DEPLETED" and call.session_id in spent:
            continue
        if call.reason in BELOW_AN_END and str(call.shown.get("ancestor_session_id", "")) in over:
            continue
        told = "COMPLETED" if call.status == RELEASED else "HELD" if call.reason == "HELD_FOR_REVIEW" else "HALTED"
        if told != ("COMPLETED" if call.approval else seal.status):
            yield f"call {call.number} by {call.entry} was told {told}; {seal.window_id} was sealed as {seal.status}"


# Nothing lost


def everything_is_back(facts: Facts) -> Iterator[str]:
    """Each session that has an answer in the log is in the session store, where the run promises that."""
    if not facts.stores_kept:
        return
    for session in facts.sessions:
        if session.budget is None and session.session_id not in facts.stuck:
            yield f"{session.session_id} is not in the session store"


RULES: Mapping[str, Sequence[Rule]] = {
    "I1": (
        reads_never_rise,
        paths_never_rise,
        budget_is_what_the_log_charged,
        linked_sessions_begin_with_what_was_left,
        told_budgets_are_the_stores,
        told_never_rises,
        sums_are_exact,
        caller_rules.callers_are_charged_exactly,
        everything_is_back,
    ),
    "I2": (nothing_after_the_end, stream_rules.nothing_is_heard_after_the_end),
    "I20": (nothing_below_an_end,),
    "I3": (
        settled_exactly_once,
        outcomes_are_settled,
        stream_rules.streams_are_closed,
        stream_rules.holds_are_given_back,
    ),
    "I4": (
        released_answers_are_in_the_log,
        stream_rules.heard_is_on_record,
        stream_rules.streams_are_told_in_order,
    ),
    "I5": (chains_verify,),
    "I6": (checkpoints_extend,),
    "I7": (children_are_as_tight,),
    "I8": (one_winner_per_tip, tips_are_linearisable),
    "I9": (graphs_are_sound,),
    "I10": (nothing_passes_silently,),
    "I15": (caller_rules.bound_calls_stay_with_their_key,),
    "I11": (nothing_of_ours_reaches_a_provider,),
    "I12": (approvals_release_once,),
    "I13": (decisions_follow_from_risk_and_budget,),
    "I14": (told_as_sealed, decisions_follow_from_risk_and_budget),
    "I18": kernel_rules.RULES,
    "I21": decision_rules.RULES,
}


class _Tree:
    """Sessions by their parents."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        self.children: dict[str, list[Session]] = defaultdict(list)
        for session in sessions:
            self.children[session.parent].append(session)

    def below(self, session: Session) -> Iterator[Session]:
        """Yield a session and all below it."""
        yield session
        for child in self.children[session.session_id]:
            yield from self.below(child)

    def cost_below(self, session: Session) -> int:
        """Return what the windows of all sessions below a session were charged."""
        return sum(seal.charge for one in self.below(session) if one is not session for seal in one.seals)

    def least(self, session: Session) -> int:
        """Return what is left when all costs of the tree add up; a halted CRITICAL of a child costs its parent as well.

        In a tree a window may be settled after a child that had started from what it left: then its cost counts twice.
        """
        root = session
        above = {child.session_id: one for one in _flat(self.children) for child in self.children[one.session_id]}
        while root.session_id in above:
            root = above[root.session_id]
        all_of_it = list(self.below(root))
        own = sum(seal.charge for one in all_of_it for seal in one.seals)
        grave = sum(
            seal.charge for one in all_of_it if one.session_id != root.session_id
            for seal in one.seals if seal.status == "HALTED"
        )  # fmt: skip
        return max(0, _start(root) - own * min(2, len(all_of_it)) - grave)


def _flat(children: Mapping[str, Sequence[Session]]) -> Iterator[Session]:
    for each in list(children.values()):
        yield from each


def _trees(sessions: Sequence[Session]) -> _Tree:
    return _Tree(sessions)


def _most(session: Session) -> int:
    """Return the lowest path of what was sealed and settled."""
    return min(_own_paths(session).values(), default=_start(session))


def _start(session: Session) -> int:
    """Return what the first window of a session starts from: what a full session left, where it goes on from one."""
    return session.began if session.continues else FULL


def _own_paths(session: Session) -> dict[str, int]:
    """Return what each settled window leaves, worked out from the seals of its own session alone."""
    settled = {window.hmac for window in session.windows}
    paths: dict[str, int] = {}
    for seal in sorted(session.seals, key=lambda one: one.number):
        if seal.hmac in settled:
            paths[seal.window_id] = _path(seal, paths, _start(session))
    return paths


def _path(seal: Seal, paths: Mapping[str, int], began: int) -> int:
    start = min((paths[parent] for parent in seal.parents if parent in paths), default=began)
    return max(0, start - seal.charge)


def _ordered(calls: Sequence[Call]) -> Iterator[tuple[Call, Call]]:
    """Yield pairs of which the first had ended before the second began."""
    for later in calls:
        before = [earlier for earlier in calls if earlier.ended < later.started]
        if before:
            yield min(before, key=lambda one: one.budget or 0), later


def _released(facts: Facts) -> Iterable[Call]:
    return [call for call in facts.calls if call.kind == CHAT and call.status == RELEASED]


def _failed(window: Window) -> bool:
    return window.status == "FAILED" or not window.hmac


def _settled(session: Session) -> list[Window]:
    return [window for window in session.windows if not _failed(window)]


def token_in(headers: Mapping[str, str]) -> str:
    """Return the token in CRP-Set-Session."""
    return headers.get("crp-set-session", "").split(";")[0].removeprefix("token=")


def claims_of(token: str) -> dict[str, object]:
    """Return what a token says, unchecked, its budget as written; nothing for something else."""
    part = token.partition(".")[0]
    try:
        return dict(json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)), parse_float=str))
    except ValueError:
        return {}
