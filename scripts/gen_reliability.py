"""Write docs/reliability.md from docs/reliability.json, which the fault suite writes.

python scripts/gen_reliability.py            write
python scripts/gen_reliability.py --check    exit 1 when the committed page differs
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docs" / "reliability.json"
TARGET = ROOT / "docs" / "reliability.md"

HEAD = """# What happens when things break

`scripts/gen_reliability.py` generates this page from `docs/reliability.json`, which the fault suite writes. Do not edit it.

The suite runs the mesh as it is deployed: every service is a separate process, over a real Valkey, SQLite or PostgreSQL, a real
tritonserver if the fault is in the models, and a model provider that misbehaves. Every connection between two parts can be slowed,
reset, left half open, or cut in one direction only. Clients work through trees of sessions with fan-outs, races for one token,
delegations, replays and hang-ups, book in a kernel, run an experiment whose agents die, and record a history. Meanwhile a fault is
injected and later removed, and all doubtful calls are settled. Then one verifier (`tests/faults/verifier.py`) checks the client
history, the session store, the audit log, the tokens and the requests to the provider against the invariants below. It recomputes
budgets, graphs and tips from the sealed records.

```sh
make fault                                              # the fixed list, the matrix, 100 randomised runs, 50,000 settlements
python -m tests.faults matrix --only PostgreSQL         # some cells
python -m tests.faults random --seed 1 --runs 1000      # by seed; a seed plays its run again
python -m tests.faults settles --count 1000000          # settlements by processes that are killed
```

| id | invariant |
| --- | --- |
| I1 | A session's remaining budget never rises, and it is what the audit log charged; so is its caller's. |
| I2 | Nothing is released once the budget is 0.10 or less. |
| I3 | Every answer and every halt has exactly one settlement; what was sealed is settled, once. |
| I4 | Every released answer is in the audit log, by the hash of its bytes. |
| I5 | Chains have no gap and verify from stored bytes. |
| I6 | Checkpoints extend one another. |
| I7 | A sub-agent's policy is as tight as its parent's. |
| I8 | Of all windows that continue from one tip in a line, one wins. |
| I9 | A session's windows are one acyclic graph within its limits. |
| I10 | A call ends, in time, in an answer with all its headers or in a refusal with a reason; a 451 is always a verdict. |
| I11 | No header of ours, no token and no grant reaches a model provider. |
| I12 | An approval releases one held answer, once. |
| I13 | A policy that only reports changes no outcome. |
| I14 | The outcome of an answer does not depend on the transport: HTTP, a stream, gRPC, or the spelling of a header. |
| I15 | No call ends in a session that another key began, whatever it names. |
| I18 | A kernel's chain, its store, what its clients were told and what was done agree; no budget is passed, no key does anything twice. An emergency action that was answered is in the chain once, sealed or recorded; behind an answered stop its sidecar permits nothing. |
| I21 | An experiment always goes on. Each decision that was told is sealed and replays to equal bytes; what was accepted was authorised and within the guards, and is reserved once, or given back. |

Promises: **FC** fails closed (refused with a stable reason, in time), **ND** nothing acknowledged is lost, **BM** the budget is
monotone, **AR n** recovers automatically within n seconds, **DG** degraded and safe. "Back" is the time from the end of the fault
to the first answer that was requested after it. It includes the start of a killed process. It was measured on a machine with two
cores that did other work too. The suite does not cover an Envoy in front, several machines, or a power loss below the file system.

## How often a chain is verified

No answer is released on a chain that does not verify. What an audit process has verified it does not verify anew with every call; the
cost of a call would grow with the conversation.

| when | what is verified |
| --- | --- |
| a session is new to the process: its first call here, a start, a failover, more sessions than are kept, ten minutes without a call | the whole chain, with its reports |
| another database file or server, another start of the server, another set of master keys, a log that lost its end | the whole chain |
| every window that is sealed, and every other look at the chain | the event that was verified last, all events and windows since, the number of windows. What the process sealed itself, durably, counts as verified |
| every window that is sealed | besides, the next part of what was verified: its bytes must be the ones that were verified. A chain of up to eight windows is read again whole. This is done before the provider is asked where an earlier answer is read for the window, and before the seal otherwise. In the first case the last event and the number of windows are compared once more inside the transaction that seals |
| the text of an earlier answer is read | its bytes, by the hash in its verified seal |
| `interlock audit verify`, `fsck`, a verification of a tree, a rebuild of a session, a decision on a held answer, erasure | the whole chain |

So whoever changes an old entry of a session in use, in the database and behind the service's back, ends that session: after at most
`audit_reread_windows` of its windows (32), with the next window while the session has at most eight, at once where the entry is the text
of an answer that is read, and at once in every other process. The answer is `409 CHAIN_BROKEN`, and no call goes on from there. A session
that nobody continues is looked at when it is, or by `verify`. The Merkle log over all sessions and its anchor do not depend on this.

A process keeps 32,768 windows of verified chains (about 35 MiB); the sessions not used for longest make room.
`interlock_audit_chain_verifications` counts how often a chain was verified whole and how often continued.

"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |\n" for line in lines) + "\n"


def verdict(row: Mapping[str, Any]) -> str:
    """Return ``yes`` if every invariant held, otherwise the violations."""
    return "yes" if row["held"] else "**no**: " + "; ".join(row["wrong"])


def matrix(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the matrix: cell, promise, observation."""
    held = sum(row["held"] for row in rows)
    parts = list(dict.fromkeys(row["component"] for row in rows))
    rows = sorted(rows, key=lambda row: parts.index(row["component"]))
    text = f"## The fault matrix\n\n{len(rows)} cells, {held} of which hold every invariant and their promise.\n\n"
    cells = [
        (row["component"], row["fault"], row["promised"], f"during the fault: {row['seen']}", verdict(row)) for row in rows
    ]  # fmt: skip
    return text + table(("component", "fault", "promise", "observed", "all invariants hold"), cells)


def fixed(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the fixed list."""
    text = "## The fixed list\n\nA kill -9 at every durable step, and every bug that the suite has found, each under its name.\n\n"
    cells = [(row["fault"], row["promised"], row["seen"], verdict(row)) for row in rows]
    return text + table(("scenario", "description", "observed", "all invariants hold"), cells)


def randomised(found: Mapping[str, Any]) -> str:
    """Return the result of the randomised runs."""
    first, last = found["seeds"]
    sums = [f"{found[name]:,} {name}" for name in ("calls", "settles") if name in found]
    text = (
        f"## Randomised runs\n\n{found['runs']:,} runs of the seeds {first} to {last}: {found['light']:,} on a mesh in one process "
        f"over a real Valkey, {found['runs'] - found['light']:,} on a mesh of processes. "
        + ", ".join([*sums, f"{len(found['failed'])} runs that do not hold"])
        + ".\n\n"
    )
    if found["failed"]:
        cells = [(row["seed"], row["fault"], "; ".join(row["wrong"])) for row in found["failed"]]
        text += table(("seed", "faults", "violation"), cells)
    if found.get("first"):
        text += "These runs failed at first, because of defects in the product or in the suite. They hold now:\n\n"
        text += table(("seed", "faults"), [(row["seed"], row["fault"]) for row in found["first"]])
    return text


def settles(found: Mapping[str, Any]) -> str:
    """Return the result of the bulk settlements."""
    return (
        f"## Settlements by processes that are killed\n\n{found['settles']:,} settlements ran through the session service's store and its "
        f"Lua script on a real Valkey. {found['repeated']:,} of them were sent twice. The processes were killed with SIGKILL "
        f"{found['kills']:,} times, and each then repeated its whole block. {found['wrong']} sessions hold anything other than one "
        f"charge per window ({found['seconds']:,} s, seed {found['seed']}).\n\n"
    )


def defences(names: Mapping[str, str]) -> str:
    """Return the defences whose absence the suite detects."""
    text = "## A disabled defence is detected\n\n`tests/faults/suite/test_defences.py` disables each of these and expects a violation.\n\n"
    return text + table(("disabled defence", "violated invariant"), names.items())


def figures(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the figures of bench/faults.py."""
    rows = [
        (name, one["value"], f"{'at most' if one['better'] == 'lower' else 'at least'} {one['target']}", one["unit"])
        for name, one in found.items()
    ]
    return (
        "## Figures\n\nMeasured by `python -m bench.faults` and `python -m bench.audit` on two cores that did nothing but send the load.\n\n"
        + table(("figure", "value", "target", "unit"), rows)
    )


PARTS = {
    "matrix": matrix, "fixed": fixed, "random": randomised, "settles": settles, "defences": defences, "figures": figures,
}  # fmt: skip


def page() -> str:
    """Return the text of the page."""
    known = json.loads(SOURCE.read_text(encoding="utf-8"))
    text = HEAD + "".join(write(known[name]) for name, write in PARTS.items() if name in known)
    return text.rstrip("\n") + "\n"


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    text = page()
    if not parser.parse_args().check:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    fresh = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
    if not fresh:
        print("docs/reliability.md is stale: run python scripts/gen_reliability.py", file=sys.stderr)
    return 0 if fresh else 1


if __name__ == "__main__":
    sys.exit(main())
