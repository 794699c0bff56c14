"""Run every bench and print one table: python -m bench [NAME ...] [--out FILE]

Each bench is a module that prints one JSON object as its last line: {"figure": {"value", "target", "better", "unit"}, …}.
Timings are medians of interleaved rounds; ratios are against a floor or a peer measured in the same run.
`python -m bench quality [OPTION ...]` measures the engine's verdicts instead: see bench/quality.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from pathlib import Path

BENCHES = (
    "policy",
    "settle",
    "tree",
    "audit",
    "dpe",
    "dpe_service",
    "everyday",
    "conversations",
    "sensitive",
    "sidecar",
    "overload",
    "console",
    "envoy",
    "path",
    "binding",
    "bus",
    "length",
    "memory",
    "streams",
    "stream_verdicts",
    "parts",
    "faults",
    "mcp",
    "kernel",
    "decision",
    "scale",
)


def run(name: str) -> dict[str, dict[str, object]]:
    done = subprocess.run([sys.executable, "-m", f"bench.{name}"], capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        return {f"{name}: failed": {"value": None, "target": None, "better": "", "unit": f"exit {done.returncode}"}}
    return json.loads(done.stdout.strip().splitlines()[-1])


def row(name: str, figure: dict[str, object]) -> str:
    value, target, better = figure.get("value"), figure.get("target"), figure.get("better")
    text = f"{value:,.3g}" if isinstance(value, float) else str(value)
    if target is None or value is None:
        verdict = ""
    else:
        met = value <= target if better == "lower" else value >= target  # type: ignore[operator]
        verdict = f"target {'<=' if better == 'lower' else '>='} {target:,}  {'met' if met else 'MISSED'}"
    return f"{name:<58} {text:>12} {figure.get('unit', ''):<10} {verdict}"


def main() -> int:
    if sys.argv[1:2] == ["quality"]:  # its own options, and labelled data that is not in the repository
        from bench.quality.__main__ import main as quality

        return quality(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*BENCHES, []], help="benches to run; all without")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    arguments = parser.parse_args()
    figures: dict[str, dict[str, object]] = {}
    for name in arguments.names or BENCHES:
        print(f"# {name}", flush=True)
        for figure, content in run(name).items():
            figures[figure] = content
            print(row(figure, content), flush=True)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps({"machine": platform.machine(), "figures": figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
