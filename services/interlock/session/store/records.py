"""How a session is written in its Redis hash: ``lua/common.lua`` lists the fields. The JSON in it is for us alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

import orjson

from interlock.domain.breaker import BreakerState
from interlock.domain.budget import Micros
from interlock.domain.dag.dag import FAN_OUT, NO_SEAL, Edge, Node, Seal
from interlock.domain.dag.lineage import (
    Step,
)
from interlock.domain.ids import ContinuationId, SessionId, WindowId
from interlock.domain.risk.risk import RiskLevel
from interlock.domain.session.caller import CallerAsk
from interlock.domain.session.delegating import Delegated, ParentView
from interlock.domain.session.hold import BudgetHold
from interlock.domain.session.state import (
    Barrier,
    CommitOutcome,
    Committed,
    CommitWindow,
    Effect,
    Lease,
    OpenedWindow,
    OpenWindow,
    Parent,
    PolicyText,
    SessionState,
    Status,
)
from interlock.session.store import caller_records, spending_records
from interlock.session.store.dag_text import (
    LETTERS,
    NONE,
    PATTERN_OF,
    STATUS_LETTERS,
    STATUS_OF,
    dag_text,
    entry_at,
    history_of,
    links_from,
    steps_from,
)
from interlock.session.terms import hash_fields, terms_from_json

_SETTLED = tuple(
    each.name for each in fields(CommitWindow) if each.name not in {"session_id", "root_session_id", "seal", "edges"}
)
"""Fields of a settlement that its script is given by name. Its sessions are in the keys, its seal and edges in the record."""

_settled = attrgetter(*_SETTLED)


def settlement_to_json(ask: CommitWindow) -> str:
    """Return a settlement as ``commit.lua`` reads it: its fields by name, without those that are ``None``.

    Pattern and status are letters; of the seal there is what the script looks at.
    """
    named = {name: value for name, value in zip(_SETTLED, _settled(ask), strict=True) if value is not None}
    seal = ask.seal
    named["pattern"], named["status"] = LETTERS[ask.pattern], STATUS_LETTERS[seal.status]
    named["hmac"], named["quality_tier"] = seal.hmac, seal.quality_tier
    return orjson.dumps(named).decode()


def start_to_json(
    state: SessionState, *, ttl_s: int, grant: Delegated | None = None, caller: CallerAsk | None = None
) -> str:
    """Return the start of a session as ``start.lua`` reads it; *grant* is what a child is started with."""
    terms = state.terms
    return orjson.dumps({
        "session_id": terms.session_id, "loop_depth": terms.loop_depth, "budget": state.budget, "policy": state.policy,
        "ttl_s": ttl_s, "grant": grant, "caller": caller,
    }).decode()  # fmt: skip


def record_to_json(ask: CommitWindow) -> str:
    """Return what a window keeps besides its outcome."""
    record: dict[str, Any] = {"number": ask.window_number, "parents": ask.parent_ids, "seal": ask.seal}
    if ask.edges:
        record["edges"] = ask.edges
    return orjson.dumps(record).decode()


def outcome_from_text(data: bytes, ancestors: Sequence[SessionId]) -> CommitOutcome:
    """Return the outcome of a commit; ``commit.lua`` writes it."""
    index, path, session, before, status, charge, hmac, continuation, number, effects = data.decode().split(" ")
    return CommitOutcome(
        index=int(index),
        path_budget=Micros(int(path)),
        session_budget=Micros(int(session)),
        before=BreakerState(int(before)),
        status=Status(int(status)),
        charge=Micros(int(charge)),
        hmac="" if hmac == NONE else hmac,
        continuation_id=None if continuation == NONE else ContinuationId(continuation),
        number=int(number),
        ancestors=() if effects == NONE else tuple(_effects(effects, ancestors)),
    )


def _effects(text: str, ancestors: Sequence[SessionId]) -> list[Effect]:
    found = [entry.split(":") for entry in text.split(",")]
    return [
        Effect(session, Micros(int(before)), Micros(int(after)), Status(int(status)))
        for session, (before, after, status) in zip(ancestors, found, strict=True)
    ]


def opened_from(reply: Sequence[Any], ask: OpenWindow) -> OpenedWindow:
    """Return the lease in a reply of ``open.lua``."""
    terms_data, text, digest, nodes, dag, facts, path, budget, lapsed, told, left_out, untold, caller, held, limited = (
        reply
    )
    if dag.count(b";") != nodes:
        raise ValueError("the windows of a session are not all there")
    terms = terms_from_json(terms_data)
    found = [outcome_from_text(data, terms.ancestors) for data in told[1::2]]
    return OpenedWindow(
        terms=terms,
        policy=PolicyText(text.decode(), digest.decode()),
        pattern=ask.pattern,
        parents=tuple(
            _parent(window, outcome, entry_at(dag, outcome.index))
            for window, outcome in zip(told[::2], found, strict=True)
        ),
        path_budget=Micros(path),
        session_budget=Micros(budget),
        lapsed=next(iter(_leases(lapsed)), None),
        lapsed_hold=Micros(held),
        limited=bool(limited),
        left_out=tuple(WindowId(each.decode()) for each in left_out),
        facts=_words(facts),
        history=history_of(dag, nodes, [outcome.index - 1 for outcome in found]),
        untold=tuple(WindowId(each) for each in _words(untold)),
        links=links_from(dag, nodes) if ask.linked else None,
        caller=caller_records.view_from(ask.caller.caller_id, caller) if ask.caller else None,
    )


def _parent(window: bytes, outcome: CommitOutcome, entry: str) -> Parent:
    return Parent(
        window_id=WindowId(window.decode()),
        number=outcome.number,
        hmac=outcome.hmac,
        tier=entry[33],
        status=STATUS_OF[entry[34]],
        path_budget=outcome.path_budget,
    )


def _words(data: bytes) -> tuple[str, ...]:
    return tuple(data.decode().split(",")) if data else ()


def committed_from(reply: Sequence[Any], ask: CommitWindow) -> Committed:
    """Return the answer in a reply of ``commit.lua``."""
    duplicate, terms_data, policy_hash, text, dag, caller, left, barrier = reply
    terms = terms_from_json(terms_data)
    outcome = outcome_from_text(text, terms.ancestors)
    return Committed(
        terms=terms,
        policy_hash=policy_hash.decode(),
        outcome=outcome,
        duplicate=bool(duplicate),
        pattern=PATTERN_OF[entry_at(dag, outcome.index)[35]],
        history=history_of(dag, outcome.index, [outcome.index - 1]),
        left=Micros(left),
        barrier=_barrier(*barrier) if barrier else None,
        caller=caller_records.view_from(SessionId(ask.caller_id), caller) if ask.caller_id else None,
    )


def _barrier(why: bytes, session: bytes, budget: int) -> Barrier:
    return Barrier(why.decode(), SessionId(session.decode()), Micros(budget))


VIEWED = ("terms", "policy", "policy_hash", "status", "budget", "kids", "top")
"""Fields of ``view_from``; after them the grant, the approval and the outcome of the pointed-to window."""


def view_from(values: Sequence[Any]) -> ParentView | None:
    """Return what is looked at of a session before it delegates; ``None`` when there is no session."""
    if values[3] is None:
        return None
    data, text, digest, status, budget, kids, top, grant, approval, pointed = values
    terms = terms_from_json(data)
    return ParentView(
        terms=terms,
        policy=PolicyText(text.decode(), digest.decode()),
        status=Status(int(status)),
        budget=Micros(int(budget)),
        delegations=len(_words(kids)),
        grant_used=grant is not None,
        approval_used=approval is not None,
        top=int(top),
        pointed_hmac=outcome_from_text(pointed, terms.ancestors).hmac if pointed else "",
    )


def state_from(fields: Mapping[str, bytes]) -> SessionState:
    """Return the state of a session from all fields of its hash."""
    terms = terms_from_json(fields["terms"])
    steps = steps_from(fields["dag"], int(fields["nodes"]))
    outcomes = tuple(outcome_from_text(fields[f"r:{step.window_id}"], terms.ancestors) for step in steps)
    pairs = zip(steps, outcomes, strict=True)
    return SessionState(
        terms=terms,
        policy=PolicyText(fields["policy"].decode(), fields["policy_hash"].decode()),
        status=Status(int(fields["status"])),
        budget=Micros(int(fields["budget"])),
        nodes=tuple(_node(step, outcome, fields[f"w:{step.window_id}"]) for step, outcome in pairs),
        outcomes=outcomes,
        leases=_leases(fields["lease"]),
        expired=_leases(fields["unsettled"]),
        cap=Micros(int(fields["cap"])),
        children=tuple(SessionId(each) for each in _words(fields["kids"])),
        grants=frozenset((name, SessionId(data.decode())) for name, data in _named(fields, "g:")),
        approvals=frozenset(name for name, _ in _named(fields, "a:")),
        facts=_words(fields["facts"]),
        replaced=frozenset(PolicyText(data.decode(), name) for name, data in _named(fields, "o:")),
        untold=tuple(WindowId(each) for each in _words(fields.get("untold", b""))),
        late=frozenset(WindowId(entry.partition(" ")[0]) for entry in _words(fields.get("late", b""))),
        spent=caller_records.spent_from(fields.get("spent", b"")),
        holds=tuple(_hold(*entry.split(" ")) for entry in _words(fields.get("holds", b""))),
        spending=spending_records.spending_from(fields),
    )


def fields_of(state: SessionState) -> dict[str, str]:
    """Return all fields of a session's hash but its epoch, as the scripts would have written them."""
    ancestors, nodes = state.terms.ancestors, state.nodes
    sealed = [node for node in nodes if not node.failed]
    continued = {parent for node in sealed for parent in node.parent_ids}
    found = {
        **hash_fields(state.terms),
        "policy": state.policy.text,
        "policy_hash": state.policy.hash,
        "status": str(int(state.status)),
        "budget": str(state.budget),
        "cap": str(state.cap),
        "tip": sealed[-1].window_id if sealed else "",
        "top": str(state.tip_number),
        "nodes": str(len(nodes)),
        "open": str(sum(node.continuation_id is not None and node.window_id not in continued for node in sealed)),
        "dag": dag_text(nodes),
        "lease": _leases_text(state.leases),
        "unsettled": _leases_text(state.expired),
        "facts": ",".join(state.facts),
        "kids": ",".join(state.children),
        "untold": ",".join(state.untold),
        "spent": caller_records.spent_to_text(state.spent),
        "holds": holds_text(state.holds),
        **spending_records.spending_fields(state.spending),
        "late": ",".join(
            f"{node.window_id} {_joined(node.parent_ids)}" for node in nodes if node.window_id in state.late
        ),
    }
    for node, outcome in zip(nodes, state.outcomes, strict=True):
        found[f"r:{node.window_id}"] = _outcome_text(outcome, ancestors)
        found[f"w:{node.window_id}"] = _record_text(node)
        if node.continuation_id:
            found[f"c:{node.continuation_id}"] = node.window_id
        letter = ("f" if node.pattern == FAN_OUT else "x") if node.failed else LETTERS[node.pattern]
        for parent in node.parent_ids:
            found[f"k:{parent}"] = found.get(f"k:{parent}", "") + letter
    found |= {f"g:{grant}": child for grant, child in state.grants}
    found |= {f"a:{approval}": "" for approval in state.approvals}
    return found | {f"o:{policy.hash}": policy.text for policy in state.replaced}


def _outcome_text(outcome: CommitOutcome, ancestors: Sequence[SessionId]) -> str:
    effects = {
        effect.session_id: f"{effect.before}:{effect.after}:{int(effect.status)}" for effect in outcome.ancestors
    }
    words = (
        outcome.index, outcome.path_budget, outcome.session_budget, int(outcome.before), int(outcome.status),
        outcome.charge, outcome.hmac or NONE, outcome.continuation_id or NONE, outcome.number,
        ",".join(effects[ancestor] for ancestor in ancestors) if effects else NONE,
    )  # fmt: skip
    return " ".join(map(str, words))


def _record_text(node: Node) -> str:
    record: dict[str, Any] = {"number": node.window_number, "parents": node.parent_ids}
    if node.failed:
        return orjson.dumps({**record, "failure": node.failure}).decode()
    record["seal"] = node.seal
    return orjson.dumps({**record, "edges": node.edges} if node.edges else record).decode()


def _leases_text(leases: Sequence[Lease]) -> str:
    return ",".join(
        f"{lease.window_id} {lease.until_ms} {LETTERS[lease.pattern]} {_joined(lease.parent_ids)}" for lease in leases
    )


def holds_text(holds: Sequence[BudgetHold]) -> str:
    """Return holds as stored."""
    return ",".join(f"{hold.window_id} {hold.amount} {hold.period}" for hold in holds)


def _hold(window: str, amount: str, period: str) -> BudgetHold:
    return BudgetHold(WindowId(window), Micros(int(amount)), int(period))


def _joined(ids: Sequence[WindowId]) -> str:
    return "+".join(ids) or NONE


def _named(fields: Mapping[str, bytes], prefix: str) -> list[tuple[str, bytes]]:
    return [(field.removeprefix(prefix), data) for field, data in fields.items() if field.startswith(prefix)]


def _leases(data: bytes) -> tuple[Lease, ...]:
    return tuple(_lease(*entry.split(" ")) for entry in _words(data))


def _lease(window: str, until: str, pattern: str, parents: str) -> Lease:
    ids = () if parents == NONE else tuple(WindowId(each) for each in parents.split("+"))
    return Lease(WindowId(window), int(until), PATTERN_OF[pattern], ids)


def _node(step: Step, outcome: CommitOutcome, record: bytes) -> Node:
    found: dict[str, Any] = orjson.loads(record)
    seal = found.get("seal")
    return Node(
        window_id=step.window_id,
        window_number=found["number"],
        parent_ids=tuple(WindowId(parent) for parent in found["parents"]),
        continuation_id=outcome.continuation_id,
        pattern=step.pattern,
        safety_budget=outcome.path_budget,
        charge=outcome.charge,
        seal=Seal(**{**seal, "risk_level": RiskLevel(seal["risk_level"])}) if seal else NO_SEAL,
        edges=tuple(Edge(**edge) for edge in found.get("edges", ())),
        failure=found.get("failure", ""),
    )
