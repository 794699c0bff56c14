"""What decisions of a kernel cost, beside what others take for the like: python -m bench.kernel

    python -m bench.kernel [--actions N]

- Leased decisions over the peer's ``evaluate_and_execute_atomic`` (the extra `peer`): one process, one after the other.
- Exact decisions over the moving window of `limits` (the extra `bench`) on the same Valkey: 64 in flight. `limits` keeps no record and has
  no server; so the store's own share of ours is beside it, and a bare gRPC echo.
- ``Execute`` one at a time over a bare gRPC echo and over the path's floor (``bench.path``), all in one process on a Valkey with AOF always.
- Sixteen processes on one kernel: throughput, and the lowest share over the mean.

Rounds are interleaved; a ratio is the median of the ratios of its rounds. Nothing counts unless every action was approved and charged.
A row whose peer is not installed is left out, and said. ``--actions N`` runs N actions under kill -9 instead (``bench.kernel.actions``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from pathlib import Path

from bench.kernel import exact, execute, hot, leases
from bench.kernel.exact import Executing
from bench.path import Contender
from bench.sidecar import Children
from tests.support.valkey import Valkey

ROUNDS = 5
Rows = dict[str, tuple[float | None, float | None, str, str]]


def absent(figure: str, package: str, extra: str) -> Rows:
    """A row for what cannot be compared here."""
    return {figure: (None, None, "", f"{package} is missing: pip install 'interlock[{extra}]'")}


def leased(url: str) -> Rows:
    """Ours and the peer's, in turns."""
    ours, peer = leases.Leasing(url), leases.Peer() if leases.has_peer() else None
    rates = [(ours.rate(), peer.rate() if peer else 0.0) for _ in range(ROUNDS)]
    rows: Rows = {"kernel: leased decisions per second": (statistics.median(a for a, _ in rates), None, "", "1/s")}
    compared = "kernel: leased over the peer's atomic call"
    if peer is None:
        return rows | absent(compared, leases.PEER, "peer")
    return {**rows, compared: (statistics.median(a / b for a, b in rates), 4.0, "higher", "ratio")}


async def exactly(target: str, echo: str, url: str) -> Rows:
    """The product, its store's share, an echo, and `limits`, in turns."""
    whole, store, echoing = Executing(target), exact.Deciding(url), exact.Echoing(echo)
    limiting = exact.Limiting(url) if exact.has_limits() else None
    await whole.open()
    await store.open()
    rates = [
        (await whole.rate(), await store.rate(), await echoing.rate(), await limiting.rate() if limiting else 0.0)
        for _ in range(ROUNDS)
    ]
    rows: Rows = {
        "kernel: exact decisions per second, sealed": (statistics.median(one[0] for one in rates), None, "", "1/s"),
        "kernel: exact, sealed, over a bare gRPC echo": (
            statistics.median(a / e for a, _, e, _ in rates),
            None,
            "",
            "ratio",
        ),
    }
    compared = "kernel: exact, sealed, over limits' moving window"
    if limiting is None:
        return rows | absent(compared, "limits", "bench")
    return {
        **rows, compared: (statistics.median(a / c for a, _, _, c in rates), 3.0, "higher", "ratio"),
        "kernel: exact, the store alone, over the same": (statistics.median(b / c for _, b, _, c in rates), None, "", "ratio"),
        "kernel: a bare gRPC echo over the same": (statistics.median(e / c for *_, e, c in rates), None, "", "ratio"),
    }  # fmt: skip


def executed(found: dict[str, Contender]) -> Rows:
    def over(one: str, other: str) -> float:
        return statistics.median(a / b for a, b in zip(found[one].wall, found[other].wall, strict=True))

    wall = {name: statistics.median(one.wall) for name, one in found.items()}
    return {
        "kernel: Execute without the seal over an echo, p50": (over("unsealed", "echo"), 1.6, "lower", "ratio"),
        "kernel: the same without a Valkey, over an echo": (over("memory", "echo"), None, "", "ratio"),
        "kernel: Execute over the path's floor, p50": (over("sealed", "floor"), 1.5, "lower", "ratio"),
        **{f"kernel: {name}, p50": (value * 1e3, None, "", "ms") for name, value in wall.items()},
    }


def on_one(places: dict[str, tuple[int, list[int]]]) -> Rows:
    """Sixteen processes on the one kernel."""
    target = f"127.0.0.1:{places['sealed'][0]}"

    async def opened() -> str:
        executing = Executing(target)
        await executing.open()
        return executing.kernel

    rate, share, refused = hot.hot(target, asyncio.run(opened()))
    return {
        "kernel: 16 processes on one kernel, actions per second": (rate, None, "", "1/s"),
        "kernel: the slowest of them over their mean": (share, 0.5, "higher", "ratio"),
        "kernel: calls of theirs that were refused": (float(refused), 0.0, "lower", ""),
    }


def start(children: Children) -> tuple[dict[str, tuple[int, list[int]]], str]:
    """Start the servers; return the gRPC port and process of each, and the URL of the sealed one."""
    places = {}
    commands = {
        "echo": ["bench.sidecar", "echo"],
        "floor": ["bench.path", "floor", str(children.folder / "floor.sqlite")],
    }
    for name, command in commands.items():
        port = int(str(children.start(command, name)["port"]))
        places[name] = (port, [children.processes[-1].pid])
    url = ""
    for name, kind in (("unsealed", "unsealed"), ("memory", "unsealed"), ("sealed", "sealed")):
        more = {"INTERLOCK_REDIS_URL": "memory://"} if name == "memory" else {}
        told = children.start(["bench.kernel.meshes", kind], name, INTERLOCK_SIDECAR_HTTP_PORT="0", **more)
        places[name] = (int(str(told["grpc"])), [children.processes[-1].pid])
        url = f"http://127.0.0.1:{told['http']}"
    return places, url


def measured(children: Children, valkey_url: str) -> Rows:
    places, url = start(children)
    rows = executed(asyncio.run(execute.execute(places)))
    rows |= leased(url)
    sealed, echo = (f"127.0.0.1:{places[name][0]}" for name in ("sealed", "echo"))
    rows |= asyncio.run(exactly(sealed, echo, valkey_url))
    return rows | on_one(places)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--actions", type=int, default=0, help="run so many actions under kill -9 instead")
    arguments = parser.parse_args()
    if arguments.actions:
        from bench.kernel.actions import run

        return run(arguments.actions)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "valkey").mkdir()
        with Valkey(folder / "valkey") as valkey:
            children = Children(folder, valkey.url)
            try:
                rows = measured(children, valkey.url)
            except BaseException:
                for log in folder.glob("*.log"):
                    print(log.name, log.read_text()[-2000:], file=sys.stderr)
                raise
            finally:
                children.stop()
    names = ("value", "target", "better", "unit")
    print(json.dumps({figure: dict(zip(names, row, strict=True)) for figure, row in rows.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
