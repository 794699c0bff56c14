"""``python -m fuzz run TARGET|all --seconds 60``: fuzz; ``replay``: run what is checked in; ``seeds``: write the seeds."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fuzz import harness


def main() -> int:
    """Return 0 when nothing was found."""
    if sys.argv[1:2] == ["one"]:  # what follows is libFuzzer's
        harness.fuzz_one(sys.argv[2], sys.argv[3:])
        return 0
    given = _arguments()
    if given.command == "list":
        print("\n".join(harness.names()))
        return 0
    if given.command == "seeds":
        print(f"{harness.write_seeds()} seeds")
        return 0
    wanted = harness.names() if given.target == "all" else [given.target]
    return (
        _replay(wanted, given.files)
        if given.command == "replay"
        else _run(wanted, harness.Bound(given.seconds, given.seed), given.jobs)
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="name the targets")
    commands.add_parser("seeds", help="write the seeds of every target into its corpus")
    run = commands.add_parser("run", help="fuzz under atheris")
    run.add_argument("target", choices=[*harness.names(), "all"])
    run.add_argument("--seconds", type=int, default=60, help="for each target")
    run.add_argument(
        "--seed", type=int, default=0, help="give the same code nearly the same inputs, from what is checked in"
    )
    run.add_argument("--jobs", type=int, default=2, help="targets side by side")
    replay = commands.add_parser("replay", help="run the checked-in inputs, or FILES, once each")
    replay.add_argument("target", choices=[*harness.names(), "all"])
    replay.add_argument("files", nargs="*", type=Path)
    return parser.parse_args()


def _run(wanted: list[str], bound: harness.Bound, jobs: int) -> int:
    outcomes = harness.run(wanted, bound, jobs=jobs)
    print(f"{'target':20} {'executions':>11} {'per second':>11} {'covered':>8}  found")
    for one in outcomes:
        rate = one.executions / max(one.seconds, 1)
        found = ", ".join(path.name for path in one.crashes) or ("-" if one.ok else "the run failed")
        print(f"{one.target:20} {one.executions:11} {rate:11.0f} {one.covered:8}  {found}")
    failed = [one for one in outcomes if not one.ok]
    for one in failed:
        print(f"\n==== {one.target}\n{one.output[-6000:]}", file=sys.stderr)
    return 1 if failed else 0


def _replay(wanted: list[str], files: list[Path]) -> int:
    count = 0
    for name in wanted:
        target = harness.load(name)
        for path in files or harness.corpus(name):
            target.TestOneInput(path.read_bytes())
            count += 1
    print(f"{count} inputs, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
