"""Very many settlements by processes that are killed: python -m tests.faults settles --count 1000000

What one is: a ``RedisStore.commit`` of the session service, its Lua script on a real Valkey with AOF, sent by a process of its
own over one multiplexed connection. A tenth of them are sent twice. The processes are killed with SIGKILL at random moments and
started again on the block of sessions at hand, so that everything of it that was settled already is asked for again under the
same ids. At the end of a block each of its sessions must hold exactly what its windows leave: one charge each, no more, no less.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.domain.budget import Micros
from interlock.domain.errors import Kind, Refused
from interlock.domain.session.state import Committed, CommitWindow
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore, key_of
from tests.support.paths import ROOT
from tests.support.session.sessions import new_state, session_id, settle, window_id
from tests.support.valkey import Valkey

SESSIONS = 100
"""Sessions of a block."""

WINDOWS = 20
"""Settlements of a session."""

WORKERS = 2


@dataclass(frozen=True)
class Bulk:
    """What the bulk has shown."""

    settles: int
    repeated: int
    kills: int
    wrong: int
    seconds: float
    seed: int


def charge_of(session: int, window: int) -> int:
    """Return what a window costs: the checker can compute it too, and a budget covers twenty of them."""
    return (session * 31 + window * 17) % 9 * 5_000


def left_of(session: int) -> int:
    """Return what a session has left when each of its windows was charged once."""
    return 1_000_000 - sum(charge_of(session, window) for window in range(1, WINDOWS + 1))


async def line(store: RedisStore, session: int, rng: random.Random) -> int:
    """Settle a session's windows one after the other, some twice; return how many were sent again."""
    repeated, parents = 0, ()
    try:
        await store.start(new_state(session, max_windows=WINDOWS + 1))
    except Refused as refused:
        if refused.reason != "SESSION_EXISTS":
            raise
    for number in range(1, WINDOWS + 1):
        ask: CommitWindow = settle(
            session * 100 + number, session=session, window_number=number, parent_ids=parents,
            charge=Micros(charge_of(session, number)), ceiling=Micros(1_000_000),
        )  # fmt: skip
        first = await settled(store, ask)
        if rng.random() < 0.1:
            repeated += 1
            again = await settled(store, ask)
            assert again.duplicate and again.outcome == first.outcome, "a repeated settlement got another answer"
        parents = (window_id(session * 100 + number),)
    return repeated


async def settled(store: RedisStore, ask: CommitWindow) -> Committed:
    """Settle, again and again while the store cannot answer."""
    while True:
        try:
            return await store.commit(ask)
        except Refused as refused:
            if refused.kind is not Kind.UNAVAILABLE:
                raise
            await asyncio.sleep(0.05)


async def child(url: str) -> None:
    """Settle the blocks that standard input names, one after the other, and say so after each."""
    store, rng = RedisStore(Batcher(parse(url)), token_lifetime_s=3600), random.Random()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while block := (await reader.readline()).strip():
        first = int(block) * SESSIONS
        repeated = await asyncio.gather(*(line(store, first + n, rng) for n in range(1, SESSIONS + 1)))
        print(json.dumps({"block": int(block), "repeated": sum(repeated)}), flush=True)
    await store.close()


class Worker:
    """One process that settles; it is killed and started again on the same block until that is done."""

    def __init__(self, url: str, rng: random.Random) -> None:
        self._url, self._rng, self.kills, self.repeated = url, rng, 0, 0
        self._process: Any = None

    async def block(self, number: int) -> None:
        """Have a block settled, whatever it takes."""
        while True:
            process = await self._running()
            process.stdin.write(f"{number}\n".encode())
            answer = asyncio.create_task(process.stdout.readline())
            patience = self._rng.uniform(0.05, 1.0) if self._rng.random() < 0.35 else None
            done, _ = await asyncio.wait({answer}, timeout=patience)
            if not done:
                process.send_signal(signal.SIGKILL)
                self.kills += 1
            said = await answer
            if not done:
                await (
                    process.wait()
                )  # also where the answer came just before the signal: the next block needs a new process
            if said.endswith(b"\n"):
                self.repeated += json.loads(said)["repeated"]
                return
            assert not done, "a settling process ended by itself"

    async def _running(self) -> Any:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.faults.settles", self._url, cwd=ROOT,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
        return self._process

    async def end(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.stdin.close()
            await self._process.wait()


async def bulk(count: int, seed: int) -> Bulk:
    """Settle *count* windows or a few more, and hold every session against what it must have left."""
    began, wrong = time.monotonic(), 0
    blocks = iter(range(-(-count // (SESSIONS * WINDOWS))))
    with tempfile.TemporaryDirectory() as folder, Valkey(Path(folder), "--appendfsync", "everysec") as server:
        workers = [Worker(server.url, random.Random(f"{seed} {n}")) for n in range(WORKERS)]
        done = 0

        async def work(worker: Worker) -> None:
            nonlocal done, wrong
            for number in blocks:
                await worker.block(number)
                wrong += await asyncio.to_thread(check, server, number)
                done += SESSIONS * WINDOWS

        await asyncio.gather(*map(work, workers))
        await asyncio.gather(*(worker.end() for worker in workers))
    kills, repeated = sum(one.kills for one in workers), sum(one.repeated for one in workers)
    return Bulk(done, repeated, kills, wrong, round(time.monotonic() - began, 1), seed)


def check(server: Valkey, block: int) -> int:
    """Return how many sessions of a block hold anything else than they must; then let go of them."""
    sessions = [block * SESSIONS + n for n in range(1, SESSIONS + 1)]
    with server.client() as client:
        pipe = client.pipeline()
        for session in sessions:
            pipe.hmget(key_of(session_id(session), session_id(session)), "budget", "nodes")
        held = pipe.execute()
        client.unlink(*(key_of(session_id(session), session_id(session)) for session in sessions))
    must = [[str(left_of(session)).encode(), str(WINDOWS).encode()] for session in sessions]
    return sum(one != other for one, other in zip(held, must, strict=True))


if __name__ == "__main__":
    asyncio.run(child(sys.argv[1]))
