"""A governed call without models, beside the floor under it and a bare echo, in one run.

    python -m bench.path

The floor does what no governed call can leave out, and nothing else: one gRPC call, a CheckRequest read, one Lua call that
opens, one durable commit of twelve rows with their HMACs, one Lua call that settles, a CheckResponse written. The product is
the mesh of ``bench.sidecar`` in one process, and once more with its services in processes of their own. All have the same
Valkey (AOF always), SQLite with synchronous FULL, and one call in flight. Rounds are interleaved; times are medians of their
p50, and CPU is that of the serving processes, of all five where the services are separate.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import redis.asyncio
import uvloop

from bench.length import cpu_ns
from bench.sidecar import CALLS, ECHO, Agent, Children, p50, ready, start_separate
from interlock.api.common.v1 import common_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.runtime.settings.model import Settings
from tests.support.valkey import Valkey

ROUNDS, WARM = 10, 20
ROWS, SESSIONS = 12, 64
FLOOR = "/bench.Floor/Check"
KEY = b"k" * 32

OPEN = """
local budget = redis.call('HGET', KEYS[1], 'budget') or '1000000'
redis.call('HSET', KEYS[1], 'lease', ARGV[1])
redis.call('EXPIRE', KEYS[1], 3600)
return budget
"""
SETTLE = """
local budget = tonumber(redis.call('HGET', KEYS[1], 'budget') or '1000000') - tonumber(ARGV[2])
redis.call('HSET', KEYS[1], 'budget', string.format('%d', budget), 'tip', ARGV[1])
redis.call('HDEL', KEYS[1], 'lease')
return tostring(budget)
"""


class Floor:
    """Answers a CheckRequest with the least that a governed call does."""

    def __init__(self, url: str, database: str) -> None:
        store = redis.asyncio.from_url(url)
        self._open, self._settle = store.register_script(OPEN), store.register_script(SETTLE)
        self._log = sqlite3.connect(database, check_same_thread=False, isolation_level=None)
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL"):
            self._log.execute(statement)
        self._log.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, session TEXT, body BLOB, hmac TEXT)")
        self._writer = ThreadPoolExecutor(1)
        self._calls = 0

    async def check(self, raw: bytes, _context: object) -> bytes:
        self._calls += 1
        asked = sidecar_pb2.CheckRequest.FromString(raw)
        key = f"floor:{{{self._calls % SESSIONS}}}"
        await self._open(keys=[key], args=[str(self._calls)])
        rows = self._rows(key, asked.text)
        await asyncio.get_running_loop().run_in_executor(self._writer, self._write, rows)
        tip = rows[-1][2]
        await self._settle(keys=[key], args=[tip, "0"])
        return sidecar_pb2.CheckResponse(outcome=sidecar_pb2.Outcome(session_token=tip)).SerializeToString()

    def _rows(self, key: str, text: str) -> list[tuple[str, bytes, str]]:
        rows, tip = [], ""
        for sequence in range(ROWS):
            said = {"sequence": sequence, "type": "EVENT", "text": text, "call": self._calls}
            body = json.dumps(said).encode()
            tip = hmac.new(KEY, body + tip.encode(), hashlib.sha256).hexdigest()
            rows.append((key, body, tip))
        return rows

    def _write(self, rows: list[tuple[str, bytes, str]]) -> None:
        self._log.execute("BEGIN")
        self._log.executemany("INSERT INTO events (session, body, hmac) VALUES (?, ?, ?)", rows)
        self._log.execute("COMMIT")


async def serve_floor(database: str) -> None:
    floor = Floor(Settings().redis_url, database)
    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(floor.check)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Floor", {"Check": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    ready(port)
    await server.wait_for_termination()


@dataclass
class Contender:
    """Who is measured: how it is called, and seconds of wall and of CPU per call in each round."""

    call: Callable[[], Awaitable[Any]]
    pids: list[int]
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    async def measure(self) -> None:
        begun = cpu_ns(self.pids)
        self.wall.append(await p50(self.call))
        self.cpu.append((cpu_ns(self.pids) - begun) / CALLS / 1e9)


async def measure(places: dict[str, tuple[int, list[int]]]) -> dict[str, Contender]:
    """Return the contenders, measured. *places*: port and process ids of each by its name."""

    def channel(name: str) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(f"127.0.0.1:{places[name][0]}")

    echo, floor = channel("echo").unary_unary(ECHO), channel("floor").unary_unary(FLOOR)
    fact = common_pb2.Fact(id="f", content="Revenue rose by 4 %.", importance=0.5)
    asked = sidecar_pb2.CheckRequest(text=fact.content, facts=[fact], query="Revenue?").SerializeToString()
    calls = {
        "echo": lambda: echo(bytes(200)),
        "floor": lambda: floor(asked),
        "product": Agent(places["product"][0]).call,
        "separate": Agent(places["separate"][0]).call,
    }
    found = {name: Contender(call, places[name][1]) for name, call in calls.items()}
    for one in found.values():
        for _ in range(WARM):
            await one.call()
    for _ in range(ROUNDS):
        for one in found.values():
            await one.measure()
    return found


def start(children: Children) -> dict[str, tuple[int, list[int]]]:
    database = str(children.folder / "floor.sqlite")
    commands = {
        "echo": ["bench.sidecar", "echo"], "floor": ["bench.path", "floor", database], "product": ["bench.sidecar", "mesh"],
    }  # fmt: skip
    places = {}
    for name, command in commands.items():
        port = int(str(children.start(command, name)["port"]))
        places[name] = (port, [children.processes[-1].pid])
    separate = start_separate(children)
    places["separate"] = (separate, [child.pid for child in children.processes[len(commands) :]])
    return places


def figures(found: dict[str, Contender]) -> dict[str, dict[str, object]]:
    wall = {name: statistics.median(one.wall) for name, one in found.items()}
    cpu = {name: statistics.median(one.cpu) for name, one in found.items()}
    rows: dict[str, tuple[float, float | None, str]] = {
        "path: product over floor, p50": (wall["product"] / wall["floor"], 2.0, "ratio"),
        "path: product over floor, CPU": (cpu["product"] / cpu["floor"], 2.5, "ratio"),
        "path: separate services over floor, p50": (wall["separate"] / wall["floor"], 4.0, "ratio"),
        "path: product over echo, p50": (wall["product"] / wall["echo"], None, "ratio"),
        "path: floor over echo, p50": (wall["floor"] / wall["echo"], None, "ratio"),
        **{f"path: {name}, p50": (wall[name] * 1e3, None, "ms") for name in found},
        **{f"path: {name}, CPU": (cpu[name] * 1e3, None, "ms") for name in found},
    }
    return {
        name: {"value": value, "target": target, "better": "lower", "unit": unit}
        for name, (value, target, unit) in rows.items()
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "valkey").mkdir()
        with Valkey(folder / "valkey") as valkey:
            children = Children(folder, valkey.url)
            try:
                found = asyncio.run(measure(start(children)))
            except Exception:
                print((folder / "product.log").read_text()[-3000:], file=sys.stderr)
                raise
            finally:
                children.stop()
    print(json.dumps(figures(found)))


if __name__ == "__main__":
    uvloop.run(serve_floor(sys.argv[2])) if len(sys.argv) > 1 else main()
