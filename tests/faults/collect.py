"""What the parts hold at the end of a run, past every line: the session store, the audit log, the provider's memory."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import grpc
import redis

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind, Refused
from interlock.domain.merkle.note import checkpoint_in
from tests.faults.facts import Caller, Checkpoint, Event, Facts, Limits, Seal, Session, Window
from tests.faults.parts.cluster import Cluster
from tests.faults.workload import STUCK, History, key_of

SEALED = "WINDOW_SEALED"
ASK_S = 20
MOST_ENTRIES, CHECKPOINTS = 20_000, 6
"""How much of the log a run hashes again, and up to how many checkpoints."""


async def collect(cluster: Cluster, history: History, *, since: int = 0, **more: Any) -> Facts:
    """Return the facts of a run whose provider had had *since* requests before."""
    settings = cluster.shape.with_()
    limits = Limits(settings["max_windows"], settings["max_dag_nodes"], settings["max_fan_out"], 5)
    roots = {agent.root for agent in history.agents if agent.root}.union(*(agent.bound for agent in history.agents))
    session, audit = cluster.session_stub(), cluster.audit_stub()
    trees = await asyncio.gather(*(tree(session, audit, root, history) for root in sorted(roots)))
    checkpoints = await _checkpoints(cluster, audit)
    sessions = tuple(one for each in trees for one in each)
    heard_of = {call.session_id for call in history.calls if call.heard} - {one.session_id for one in sessions} - {""}
    unfinished = tuple([await _session(audit, one, None) for one in sorted(heard_of)])
    callers = [await _caller(session, audit, key, agents, sessions) for key, agents in _by_key(history).items()]
    held = await asyncio.to_thread(_holds, cluster)
    kernels = [await one.facts() for one in history.kernels if one.begun]
    experiments = [await one.facts() for one in history.experiments]
    sessions = tuple(replace(one, holds=frozenset(held.get(one.session_id, ()))) for one in sessions)
    callers = [_without_holds(one, held.get(one.caller_id, {})) for one in callers if one]
    return Facts(
        calls=tuple(history.calls), sessions=sessions, unfinished=unfinished, callers=tuple(callers), limits=limits, checkpoints=checkpoints,
        kernels=tuple(one for one in kernels if one), experiments=tuple(one for one in experiments if one), received=tuple(cluster.provider.seen(since)), log_entries=tuple(cluster.defects()),
        secrets=frozenset(history.secrets),
        stuck=_stuck(history, sessions), set_back_at=cluster.set_back_at, **more,
    )  # fmt: skip


def _holds(cluster: Cluster) -> dict[str, dict[str, int]]:
    """Return what is held for windows, by the session or the caller that holds it; past every service."""
    port = cluster.store.named() if cluster.shape.store == "sentinel" else cluster.store.port
    found: dict[str, dict[str, int]] = {}
    with redis.Redis(port=port, decode_responses=True) as client:
        for key in client.scan_iter("il:*:s:*", 1000):
            held = [one.split(" ") for one in (client.hget(key, "holds") or "").split(",") if one]
            found[key.rpartition(":")[2]] = {window: int(amount) for window, amount, _period in held}
        for key in client.scan_iter("il:*:caller", 1000):
            held = [(re.fullmatch(r"\d+:hold:(\w+)", name), value) for name, value in client.hgetall(key).items()]
            found[re.findall(r"\{(\w+)\}", key)[0]] = {name[1]: int(value) for name, value in held if name}
    return found


def _without_holds(caller: Caller, holds: dict[str, int]) -> Caller:
    """Return what a caller has spent: what is left of its budget is told less what is held."""
    return replace(caller, spent=caller.spent - sum(holds.values()), holds=frozenset(holds))


def _by_key(history: History) -> dict[str, set[str]]:
    """Return the roots that the agents of each key began, by the key."""
    found: dict[str, set[str]] = {}
    for agent in history.agents:
        if agent.parent is None:
            found.setdefault(key_of(agent.name), set()).update({agent.session_id, *agent.bound} - {""})
    return found


def scope_of(key: str) -> str:
    """Return the scope of the caller with that API key."""
    return f"key_{hashlib.sha256(key.encode()).hexdigest()[:24]}"


async def _caller(session: Any, audit: Any, key: str, roots: set[str], sessions: Sequence[Session]) -> Caller | None:
    """Return what is known of a caller; ``None`` for one whose budget is not in the store: nothing refers to it any more."""
    scope = scope_of(key)
    answer = await session.GetCaller(session_pb2.GetCallerRequest(scope=scope), timeout=ASK_S)
    if not answer.HasField("budget"):
        return None
    asked = audit_pb2.GetCallerRecordRequest(caller_id=answer.budget.caller_id, since="1970-01-01T00:00:00.000000Z")
    record = await audit.GetCallerRecord(asked, timeout=ASK_S)
    below = set(roots)
    for one in sessions:  # each after its parent
        below |= {one.session_id} if one.parent in below else set()
    settled = sum(window.charge for one in sessions if one.session_id in below for window in one.windows if window.hmac)
    logged = sum(charge.charged_micros for charge in record.charges if charge.period == answer.budget.period)
    spent = answer.budget.budget_micros - answer.budget.left_micros
    return Caller(scope, spent, logged, settled, caller_id=answer.budget.caller_id)


async def look_at_checkpoint(cluster: Cluster) -> None:
    """Keep the latest checkpoint, where it is another than the one before."""
    try:
        found = await cluster.audit_stub().GetCheckpoint(audit_pb2.GetCheckpointRequest(), timeout=ASK_S)
    except (grpc.aio.AioRpcError, Refused):
        return
    if found.note:
        said = checkpoint_in(found.note)
        if (said.size, said.root) not in cluster.checkpoints:
            cluster.checkpoints.append((said.size, said.root))


async def _checkpoints(cluster: Cluster, audit: Any) -> tuple[Checkpoint, ...]:
    """Return the latest checkpoints that were seen, each with whether the leaves that are there now make its root."""
    await look_at_checkpoint(cluster)
    seen = [one for one in cluster.checkpoints if one[0] <= MOST_ENTRIES][-CHECKPOINTS:]
    if not seen:
        return ()
    asked = audit_pb2.ListEntriesRequest(start=0, end=max(size for size, _ in seen))
    leaves = [bytes(answer.leaf_hash) async for answer in audit.ListEntries(asked, timeout=ASK_S)]
    return tuple(
        Checkpoint(size, root.hex(), len(leaves) >= size and merkle_root(leaves[:size]) == root) for size, root in seen
    )


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """Return the root of RFC 9162 §2.1.1, in its own words: the largest power of two below the size splits the leaves."""
    if len(leaves) <= 1:
        return leaves[0] if leaves else hashlib.sha256(b"").digest()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\x01" + merkle_root(leaves[:split]) + merkle_root(leaves[split:])).digest()


def _stuck(history: History, sessions: Iterable[Session]) -> frozenset[str]:
    """Return the sessions that no client can continue: none was told of them, or their tokens are not valid now."""
    going = {
        agent.session_id for agent in history.agents if agent.session_id and agent.token and agent.ended not in STUCK
    }
    return frozenset(one.session_id for one in sessions if one.session_id not in going)


async def tree(session: Any, audit: Any, root: str, history: History) -> list[Session]:
    """Return all sessions of a tree, those whose clients were never told of them too.

    One that the store lost, since it was set back to before it began, is in its parent's chain: what it cost may be in the path of a
    window that was opened before.
    """
    request = session_pb2.GetDagRequest(session_id=root, root_session_id=root, tree=True)
    held = await session.GetDag(request, timeout=ASK_S)
    known = {one.session_id: one for one in held.sessions}
    told = {agent.session_id for agent in history.agents if agent.root == root and agent.session_id}
    found: dict[str, Session] = {}
    waiting = sorted(known.keys() | told, reverse=True)
    while waiting:
        session_id = waiting.pop()
        held = known.get(session_id) or await _alone(session, session_id, root)
        found[session_id] = one = await _session(audit, session_id, held)
        started = {str(event.data["session_id"]) for event in one.events if event.event_type == "SUB_AGENT_STARTED"}
        waiting += sorted(started - found.keys() - set(waiting))
    return list(found.values())


async def _alone(session: Any, session_id: str, root: str) -> session_pb2.Session | None:
    request = session_pb2.GetSessionRequest(session_id=session_id, root_session_id=root)
    answer = await session.GetSession(request, timeout=ASK_S)
    return None if answer.HasField("refusal") else answer.session


async def _session(audit: Any, session_id: str, held: session_pb2.Session | None) -> Session:
    events = await _events(audit, session_id)
    created = next((one.data for one in events if one.event_type == "SESSION_CREATED"), {})
    verdict = await audit.Verify(audit_pb2.VerifyRequest(session_id=session_id), timeout=ASK_S)
    faults = [f"{fault.what} {fault.index} {fault.reason}" for fault in verdict.faults]
    return Session(
        session_id=session_id,
        parent=held.parent_session_id if held else str(created.get("parent_session_id", "")),
        depth=held.loop_depth if held else int(str(created.get("loop_depth", 0))),
        budget=held.safety_budget_micros if held else None,
        active=bool(held) and held.status == session_pb2.SESSION_STATUS_ACTIVE,
        policy=held.policy_text if held else "",
        windows=tuple(_window(one) for one in held.windows) if held else (),
        seals=tuple(_seals(events)),
        events=tuple(events),
        integrity=common_pb2.ChainIntegrity.Name(verdict.integrity).removeprefix("CHAIN_INTEGRITY_"),
        faults=tuple(faults),
        continues=next(
            (str(one.data["continues_session_id"]) for one in events if "continues_session_id" in one.data), ""
        ),
        began=int(json.loads(str(created["record"]))["budget"]) if "record" in created else Session.began,
        summing=bool(held) and held.accumulate_sum,
    )


async def _events(audit: Any, session_id: str) -> list[Event]:
    try:
        return [
            Event(
                answer.event.sequence, answer.event.event_type, answer.event.window_id, answer.event.hmac,
                json.loads(answer.event.data_json),
            )
            async for answer in audit.Export(audit_pb2.ExportRequest(session_id=session_id), timeout=ASK_S)
        ]  # fmt: skip
    except Refused as refused:  # of a mesh in this process
        if refused.kind is Kind.NOT_FOUND:
            return []
        raise
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.NOT_FOUND:
            return []
        raise


def _window(held: session_pb2.Window) -> Window:
    return Window(
        held.window_id, held.window_number, tuple(held.parent_ids), held.pattern, held.charge_micros,
        held.safety_budget_micros, held.hmac, held.response_hash, held.status,
    )  # fmt: skip


def _seals(events: Iterable[Event]) -> list[Seal]:
    return [
        Seal(
            event.window_id, int(str(event.data["window_number"])), tuple(map(str, event.data["parent_ids"])),  # type: ignore[call-overload]
            int(str(event.data["charge_micros"])), str(event.data["hmac"]), str(event.data["response_hash"]),
            str(event.data["status"]),
        )
        for event in events
        if event.event_type == SEALED
    ]  # fmt: skip
