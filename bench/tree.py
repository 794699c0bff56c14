"""Trees of agents in the session store: exactness under load, the cost of depth and length, memory, and a Cluster.

    python -m bench.tree [--settles N]

The store is a real Valkey (AOF every second) behind our own client. *Exact*: four processes settle windows of one tree at
once, where costs add up; afterwards the root has to have paid every one of them, to the millionth. *Depth*: settles of
sessions five levels below their root, beside settles of roots, in turns. *Length*: opening and settling the 50th window of a
session, beside the second. *Live sessions*: memory of 10,000 sessions with two windows each, and what a call takes beside
them. *Cluster*: the same settles over three nodes, and how they share them (AOF always).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvloop

from interlock.domain.budget import FULL, Micros
from interlock.domain.dag.dag import Limits
from interlock.domain.ids import SessionId
from interlock.domain.session.state import Committed, Delegated, SessionState
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore
from tests.support.servers.valkey_cluster import cluster
from tests.support.session.sessions import (
    continuation_id,
    first_ask,
    new_state,
    next_ask,
    seal,
    session_id,
    settle,
    window_id,
)
from tests.support.valkey import Valkey

PROCESSES = 4
WINDOWS = 50
CHARGE = Micros(4)
OUTSTANDING = 64
ROUNDS = 5
LIVE = 10_000
FIRST = {"long": 900_000_000, "new": 910_000_000}

Figures = dict[str, dict[str, object]]


def figure(value: float | None, target: float | None, better: str, unit: str) -> dict[str, object]:
    return {"value": value, "target": target, "better": better, "unit": unit}


def open_store(url: str) -> RedisStore:
    return RedisStore(Batcher(parse(url), timeout_s=30), token_lifetime_s=3600)


def state_of(number: int, root: int, above: Sequence[int], *, total: bool) -> SessionState:
    """Return a session *above* its parents, from the parent up."""
    made = new_state(number, max_windows=1000, max_dag_nodes=1000)
    terms = replace(
        made.terms, root_session_id=session_id(root), ancestors=tuple(map(session_id, above)), loop_depth=len(above),
        deepest=100, max_delegations=100_000, accumulate=total, limits=Limits(1000, 1000, 1000),
    )  # fmt: skip
    return replace(made, terms=terms)


async def create(store: RedisStore, state: SessionState, parent: SessionState | None) -> None:
    if parent is None:
        await store.start(state)
        return
    grant = f"{int(state.terms.session_id[-16:], 16):032x}"
    await store.start_child(state, Delegated(parent.terms, grant, "", parent.policy.hash))


async def windows(store: RedisStore, state: SessionState, count: int, first: int, charge: Micros) -> None:
    """Open and settle *count* windows in a row; ids begin at *first*."""
    last: Committed | None = None
    for n in range(first, first + count):
        last = await one_window(store, state, n, last, charge)


async def one_window(
    store: RedisStore, state: SessionState, n: int, last: Committed | None, charge: Micros
) -> Committed:
    terms = state.terms
    mine: dict[str, Any] = {"session_id": terms.session_id, "root_session_id": terms.root_session_id}
    ask = next_ask(n, last, **mine) if last else first_ask(n, **mine)
    opened = await store.open(ask)
    return await store.commit(settle(n, opened, charge=charge, **mine))


async def at_once(calls: Sequence[Callable[[], Awaitable[Any]]], width: int = OUTSTANDING) -> float:
    """Return the seconds that *calls* take, *width* at a time."""
    waiting = iter(calls)

    async def worker() -> None:
        for call in waiting:
            await call()

    began = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(min(width, len(calls)))))
    return time.perf_counter() - began


# Exact: four processes, one tree.


def worker(url: str, number: int, children: int, total: bool) -> None:
    """Settle the windows of this process's part of the tree: children of the root and children of theirs."""

    async def run() -> None:
        store = open_store(url)
        root = state_of(1, 1, (), total=total)
        states, parent = [], root
        for n in range(children):
            mine = 2 + number * children + n
            if n % 3 == 0:
                parent = root
            above = (int(parent.terms.session_id[-32:], 16), *(int(a[-32:], 16) for a in parent.terms.ancestors))
            state = state_of(mine, 1, above, total=total)
            await create(store, state, parent)
            states.append(state)
            parent = state
        first = 1 + number * children * WINDOWS
        await at_once([
            (lambda state=state, n=n: windows(store, state, WINDOWS, first + n * WINDOWS, CHARGE))
            for n, state in enumerate(states)
        ])  # fmt: skip
        await store.close()

    uvloop.run(run())


def exact(server: Valkey, settles: int) -> Figures:
    children = settles // PROCESSES // WINDOWS
    count = children * PROCESSES * WINDOWS
    server.flush()
    uvloop.run(_root(server.url, total=True))
    began = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=worker, args=(server.url, n, children, True)) for n in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    took = time.perf_counter() - began
    if any(process.exitcode for process in processes):
        raise SystemExit("a process of the exactness run failed")
    left = uvloop.run(_budget(server.url, session_id(1)))
    off = left - (FULL - count * CHARGE)
    print(f"exact: {count:,} settles by {PROCESSES} processes in {took:.0f} s, root at {left}", file=sys.stderr)
    return {
        f"tree: settles of {PROCESSES} processes on one tree": figure(count, 100_000, "higher", "settles"),
        "tree: root budget off the exact sum": figure(abs(off), 0, "lower", "micros"),
    }


async def _root(url: str, *, total: bool) -> None:
    store = open_store(url)
    await create(store, state_of(1, 1, (), total=total), None)
    await store.close()


async def _budget(url: str, session: SessionId) -> int:
    store = open_store(url)
    state = await store.read(session_id(1), session)
    await store.close()
    assert state
    return int(state.budget)


# Depth.


async def depth(url: str) -> Figures:
    store = open_store(url)
    ratios = []
    for number in range(ROUNDS):
        base = 10_000_000 * (number + 1)
        flat = [state_of(base + n, base + n, (), total=False) for n in range(1000)]
        for state in flat:
            await create(store, state, None)
        chain = [state_of(base + 5_000_000, base + 5_000_000, (), total=False)]
        await create(store, chain[0], None)
        for level in range(1, 5):
            above = [int(one.terms.session_id[-32:], 16) for one in reversed(chain)]
            chain.append(state_of(base + 5_000_000 + level, base + 5_000_000, above, total=False))
            await create(store, chain[-1], chain[-2])
        above = [int(one.terms.session_id[-32:], 16) for one in reversed(chain)]
        deep = [state_of(base + 6_000_000 + n, base + 5_000_000, above, total=False) for n in range(1000)]
        for state in deep:
            await create(store, state, chain[-1])
        times = [
            await at_once([_settling(store, state, n) for n, state in enumerate(states)]) for states in (flat, deep)
        ]
        ratios.append(times[1] / times[0])
    await store.close()
    print(f"depth: ratios {[round(each, 2) for each in ratios]}", file=sys.stderr)
    return {"tree: settle at depth 5 over depth 0": figure(round(statistics.median(ratios), 2), 1.6, "lower", "ratio")}


def _settling(store: RedisStore, state: SessionState, n: int) -> Callable[[], Awaitable[Any]]:
    terms = state.terms
    ask = settle(
        n + 1, charge=Micros(n % 7), session_id=terms.session_id, root_session_id=terms.root_session_id,
        ancestors=terms.ancestors, window_id=window_id(n + 1), continuation_id=continuation_id(n + 1), seal=seal(n + 1),
    )  # fmt: skip
    return lambda: store.commit(ask)


# Length.


async def length(url: str) -> Figures:
    """Long sessions and new ones take a step in turns, so that both meet the same load of the machine."""
    store = open_store(url)
    groups = {
        kind: [state_of(first + n, first + n, (), total=False) for n in range(150)] for kind, first in FIRST.items()
    }
    last: dict[str, Committed] = {}

    async def step(state: SessionState, window: int) -> None:
        name = state.terms.session_id
        last[name] = await one_window(store, state, window, last.get(name), Micros(0))

    async def steps(kind: str, window: int) -> float:
        return await at_once([lambda state=state: step(state, window) for state in groups[kind]], 16)

    for state in (one for group in groups.values() for one in group):
        await create(store, state, None)
    for window in range(1, WINDOWS - 2):
        await steps("long", window)
    await steps("new", 1)
    ratios = []
    for n in range(3):
        early = await steps("new", 2 + n)
        ratios.append(await steps("long", WINDOWS - 2 + n) / early)
    await store.close()
    print(f"length: ratios {[round(each, 2) for each in ratios]}", file=sys.stderr)
    return {"tree: window 50 over window 2": figure(round(statistics.median(ratios), 2), 1.2, "lower", "ratio")}


# Live sessions.


async def live(full: Valkey, empty: Valkey) -> Figures:
    """The same calls go to a server with all those sessions and to one with none, in turns."""
    stores = {server: open_store(server.url) for server in (full, empty)}
    sessions = [state_of(n, n, (), total=False) for n in range(1, LIVE + 1)]

    async def begin(state: SessionState, n: int) -> None:
        await create(stores[full], state, None)
        await windows(stores[full], state, 2, 10 * n, Micros(0))

    with full.client() as client:
        before = client.info("memory")["used_memory"]
        await at_once([lambda state=state, n=n: begin(state, n) for n, state in enumerate(sessions, 1)])
        taken = client.info("memory")["used_memory"] - before
        while client.info("persistence")["aof_rewrite_in_progress"]:
            await asyncio.sleep(0.1)
    os.sync()  # what the filling left to write is no cost of the calls
    times: dict[Valkey, list[float]] = {full: [], empty: []}
    order = list(stores.items())
    for n in range(600):
        for server, store in order if n % 2 else order[::-1]:
            times[server].append(await _per_call(store, 500_000_000 + n))
    for store in stores.values():
        await store.close()
    ratio = statistics.median(times[full]) / statistics.median(times[empty])
    return {
        "tree: memory per live session with two windows": figure(taken // LIVE, 4096, "lower", "bytes"),
        "tree: a call beside 10,000 sessions over beside none": figure(round(ratio, 2), 1.1, "lower", "ratio"),
    }


async def _per_call(store: RedisStore, number: int) -> float:
    """Return the seconds of opening and settling the first window of a new session."""
    state = state_of(number, number, (), total=False)
    await create(store, state, None)
    began = time.perf_counter()
    await windows(store, state, 1, 1, Micros(0))
    return time.perf_counter() - began


# Cluster.


def spread(one: Valkey, three: Sequence[Valkey]) -> Figures:
    """The same settles of roots of their own on one node and on three, in turns; each node tells what it did."""
    rates: dict[str, list[float]] = {one.url: [], three[0].url: []}
    before = [_scripts(node) for node in three]
    for number in range(ROUNDS):
        for url, found in rates.items():
            found.append(uvloop.run(_rate(url, 2_000_000_000 + 10_000 * number)))
    shares = [after - earlier for after, earlier in zip(map(_scripts, three), before, strict=True)]
    print(f"cluster: scripts by node {shares}", file=sys.stderr)
    ratio = statistics.median(b / a for a, b in zip(*rates.values(), strict=True))
    return {
        "tree: settles per second, three nodes over one": figure(round(ratio, 2), 1.5, "higher", "ratio"),
        "tree: least loaded node's share of a fair third": figure(
            round(3 * min(shares) / sum(shares), 2), 0.9, "higher", "ratio"
        ),
    }


async def _rate(url: str, base: int) -> float:
    store = open_store(url)
    states = [state_of(base + n, base + n, (), total=False) for n in range(3000)]
    await at_once([lambda state=state: create(store, state, None) for state in states])
    took = await at_once([_settling(store, state, n) for n, state in enumerate(states)])
    await store.close()
    return len(states) / took


def _scripts(node: Valkey) -> int:
    with node.client() as client:
        return int(client.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settles", type=int, default=100_000, help="settles of the exactness run")
    options = parser.parse_args()
    found: Figures = {}
    with ExitStack() as ends:
        folders = [Path(ends.enter_context(tempfile.TemporaryDirectory())) for _ in range(3)]
        one, full, empty = (ends.enter_context(Valkey(folder, "--appendfsync", "everysec")) for folder in folders)
        found |= exact(one, options.settles)
        found |= uvloop.run(depth(one.url))
        found |= uvloop.run(length(one.url))
        found |= uvloop.run(live(full, empty))
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory()))
        (folder / "one").mkdir()
        one = ends.enter_context(Valkey(folder / "one"))
        found |= spread(one, ends.enter_context(cluster(folder)))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
