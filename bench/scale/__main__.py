"""What many governed calls need: python -m bench.scale [--inputs FILE] [--models FILE] [--keep FILE]

Measures what a call takes of each part (``bench.scale.measure``), or reads it from FILE, and prints the table of ``bench.scale.model``; docs/scale.md says
what it rests on. ``--keep`` writes what was measured. ``--models`` reads the share of the models alone, where they are not installed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.scale import model


def per_call(inputs: Mapping[str, Any]) -> dict[str, float]:
    """Return what the model takes: of the wide shape, whose parts are several, and of the models."""
    return {**inputs["wide"], **inputs["models"]}


def figures(inputs: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    small, wide = inputs["small"], inputs["wide"]
    kinds = [name for name in small if name.endswith("_cpu_ms")]
    told = {f"scale: {name.removesuffix('_cpu_ms')}, CPU of a call": (wide[name], "ms") for name in sorted(kinds)}
    told |= {
        f"scale: {name.removesuffix('_cpu_ms')}, several processes over one": (wide[name] / small[name], "ratio")
        for name in sorted(kinds)
    }
    told["scale: models, CPU of an answer"] = (inputs["models"]["dpe_cpu_ms"], "ms")
    told["scale: calls per second that one audit log takes"] = (model.log_limit(per_call(inputs)), "1/s")
    told["scale: the least of three primaries over their mean"] = (wide["least_primary_over_mean"], "ratio")
    return {name: {"value": value, "target": None, "better": "", "unit": unit} for name, (value, unit) in told.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=Path, help="what was measured earlier")
    parser.add_argument("--models", type=Path, help="what was measured earlier, of which only the models are taken")
    parser.add_argument("--keep", type=Path, help="write what is measured here")
    arguments = parser.parse_args()
    if arguments.inputs:
        inputs = json.loads(arguments.inputs.read_text())
    else:
        from bench.scale.measure import inputs as measured

        inputs = measured(json.loads(arguments.models.read_text())["models"] if arguments.models else None)
    if arguments.keep:
        arguments.keep.write_text(json.dumps(inputs, indent=1) + "\n")
    print(model.table(per_call(inputs)))
    print(json.dumps(figures(inputs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
