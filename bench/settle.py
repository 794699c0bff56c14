"""Settles per second through our client, beside redis-benchmark and a raw socket that send the same commands.

    python -m bench.settle

Everyone has one connection with 64 commands outstanding on the same real Valkey (AOF every second) and commits windows of
sessions that are new to each round; redis-benchmark draws its sessions at random, so up to a tenth of its calls are
repeats, which cost the server less. Ours is the whole port, from a ``CommitWindow`` to a ``Committed``. The redis-py pool
has 64 connections. Rounds are interleaved; a ratio is the median of the ratios of its rounds. Before a rate counts, the
store is asked whether the windows are really charged.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

import hiredis
import redis.asyncio
import uvloop

from interlock.domain.ids import SessionId
from interlock.session.store.batcher import Batcher, LuaScript
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore, key_of
from tests.support.session.sessions import new_state, session_id, settle
from tests.support.valkey import Valkey

ROUNDS = 5
SETTLES = 4000
OUTSTANDING = 64
TARGET = 0.3
ROOT = session_id(0)
# redis-benchmark puts twelve decimal digits in the place of this word.
RANDOM, DIGITS = "__rand_int__", 12
DRAWN_FROM = 5 * SETTLES
START, COMMIT = LuaScript.load("start"), LuaScript.load("commit")
CHARGE = settle(1).charge
EPOCH: list[str] = []
"""What the server is told that it is, behind the keys of every script: filled in when it runs."""


def session(number: str) -> SessionId:
    return SessionId("crp_sess_" + number.rjust(32, "0"))


def key(number: str) -> str:
    return key_of(ROOT, session("0" * DIGITS)).removesuffix("0" * DIGITS) + number.rjust(DIGITS, "0")


class _Recorded(Exception):
    """The store wanted to send this."""


class _Recorder:
    """Stands where the connection would, and keeps what the store sends."""

    async def run(self, script: LuaScript, keys: Sequence[str], *arguments: str | int) -> Any:
        raise _Recorded(("EVALSHA", script.sha, len(keys), *keys, *arguments))


def recorded(call: Callable[[RedisStore], Coroutine[Any, Any, Any]]) -> tuple[Any, ...]:
    """Return the command that *call* makes of a store."""
    store = RedisStore(cast("Batcher", _Recorder()), token_lifetime_s=3600)
    try:
        asyncio.run(call(store))
    except _Recorded as sent:
        return cast("tuple[Any, ...]", sent.args[0])
    raise SystemExit("the store sent nothing")


STARTED = recorded(lambda store: store.start(new_state()))
COMMITTED = recorded(lambda store: store.commit(settle(1)))


def start_command(number: int) -> bytes:
    return hiredis.pack_command((*STARTED[:3], key(str(number)), *EPOCH, *STARTED[4:]))


def commit_command(number: str) -> tuple[Any, ...]:
    """Return what ``RedisStore.commit`` sends."""
    return (*COMMITTED[:3], key(number), *EPOCH, *COMMITTED[4:])


class Raw:
    """A blocking socket that keeps 64 prepared commands outstanding: what the server can do for one connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._reader = hiredis.Reader()

    def send(self, commands: Iterable[bytes]) -> list[Any]:
        waiting, answers = iter(commands), []
        outstanding = self._write(waiting, OUTSTANDING)
        while outstanding:
            self._reader.feed(self._socket.recv(65536))
            got = 0
            while (answer := self._reader.gets()) is not False:
                if isinstance(answer, Exception):
                    raise answer
                answers.append(answer)
                got += 1
            outstanding += self._write(waiting, got) - got
        return answers

    def _write(self, commands: Iterable[bytes], most: int) -> int:
        batch = list(islice(commands, most))
        if batch:
            self._socket.sendall(b"".join(batch))
        return len(batch)


def raw_socket(_server: Valkey, raw: Raw) -> float:
    commands = [hiredis.pack_command(commit_command(str(n))) for n in range(SETTLES)]
    began = time.perf_counter()
    raw.send(commands)
    return SETTLES / (time.perf_counter() - began)


def redis_benchmark(server: Valkey, _raw: Raw) -> float:
    arguments = [str(each) for each in commit_command(RANDOM)]
    done = subprocess.run(
        ["redis-benchmark", "-p", str(server.port), "-c", "1", "-P", str(OUTSTANDING), "-n", str(SETTLES),
         "-r", str(DRAWN_FROM), "--csv", *arguments],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout.strip().splitlines()[-1].rsplit('","', 7)[1])


async def at_once(call: Callable[[int], Any]) -> float:
    """Return calls per second of 64 callers who each ask again when they are answered."""
    numbers = iter(range(SETTLES))

    async def caller() -> None:
        for number in numbers:
            await call(number)

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(OUTSTANDING)))
    return SETTLES / (time.perf_counter() - began)


def ours(server: Valkey, _raw: Raw) -> float:
    asks = [settle(1, session_id=session(str(n)), root_session_id=ROOT) for n in range(SETTLES)]

    async def run() -> float:
        store = RedisStore(Batcher(parse(server.url)), token_lifetime_s=3600)
        rate = await at_once(lambda number: store.commit(asks[number]))
        await store.close()
        return rate

    return uvloop.run(run())


def redis_py_pool(server: Valkey, _raw: Raw) -> float:
    commands = [commit_command(str(n)) for n in range(SETTLES)]

    async def run() -> float:
        async with redis.asyncio.Redis(port=server.port, max_connections=OUTSTANDING) as client:
            return await at_once(lambda number: client.execute_command(*commands[number]))

    return uvloop.run(run())


def charged(raw: Raw, drawn: int) -> int:
    """Return how many of the sessions paid for exactly one window."""
    budgets = raw.send(hiredis.pack_command(("HMGET", key(str(n)), "budget", "nodes")) for n in range(drawn))
    paid = [str(1_000_000 - CHARGE).encode(), b"1"]
    return sum(each == paid for each in budgets)


def measure(server: Valkey, raw: Raw, contender: Callable[[Valkey, Raw], float]) -> float:
    server.flush()
    drawn = DRAWN_FROM if contender is redis_benchmark else SETTLES
    raw.send(start_command(n) for n in range(drawn))
    rate = contender(server, raw)
    paid = charged(raw, drawn)
    if paid < (SETTLES if drawn == SETTLES else 0.85 * SETTLES):
        raise SystemExit(f"{contender.__name__}: only {paid} of {SETTLES} windows were charged")
    return rate


async def epoch_of(url: str) -> str:
    batcher = Batcher(parse(url))
    epoch = (await batcher.server()).epoch
    await batcher.close()
    return epoch


def main() -> None:
    has_peer = shutil.which("redis-benchmark") is not None
    contenders = [ours, raw_socket, redis_py_pool, *([redis_benchmark] if has_peer else [])]
    rates: dict[str, list[float]] = {each.__name__: [] for each in contenders}
    with tempfile.TemporaryDirectory() as folder, Valkey(Path(folder), "--appendfsync", "everysec") as server:
        raw = Raw(server.port)
        EPOCH[:] = [asyncio.run(epoch_of(server.url))]
        for script in (START, COMMIT):
            raw.send([hiredis.pack_command(("SCRIPT", "LOAD", script.text))])
        for _ in range(ROUNDS):
            for each in contenders:
                rates[each.__name__].append(measure(server, raw, each))
    for name, values in rates.items():
        print(
            f"{name:<16} {statistics.median(values):>10,.0f} settles/s   rounds {[round(each) for each in values]}",
            file=sys.stderr,
        )
    print(json.dumps(figures(rates)))


def figures(rates: dict[str, list[float]]) -> dict[str, dict[str, object]]:
    def ratio(peer: str, target: float | None) -> dict[str, object]:
        value = statistics.median(mine / theirs for mine, theirs in zip(rates["ours"], rates[peer], strict=True))
        return {"value": round(value, 3), "target": target, "better": "higher", "unit": "ratio"}

    floor = "redis_benchmark" if "redis_benchmark" in rates else "raw_socket"
    others = [name for name in ("raw_socket", "redis_py_pool") if name != floor]
    found: dict[str, dict[str, object]] = {
        f"settle: our client over {spelled(floor)}": ratio(floor, TARGET),
        **{f"settle: our client over {spelled(name)}": ratio(name, None) for name in others},
        "settle: settles through our client": {
            "value": round(statistics.median(rates["ours"])), "target": None, "better": "higher", "unit": "per second",
        },
    }  # fmt: skip
    return found


def spelled(name: str) -> str:
    return {"redis_benchmark": "redis-benchmark", "raw_socket": "a raw socket", "redis_py_pool": "redis-py's pool"}[
        name
    ]


if __name__ == "__main__":
    main()
