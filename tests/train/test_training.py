"""Training, resuming, exporting: the path from labelled rows to a slot that the service loads (docs/models.md).

`make train-smoke` makes the environment with torch and names it; without it these tests are skipped.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from interlock.dpe.inference.models import BUNDLED, check, manifest
from tests.support.paths import ROOT

ROWS = ROOT / "tests" / "data" / "nli"
PYTHON = os.environ.get("INTERLOCK_TRAIN_PYTHON", "")
BASE = os.environ.get("INTERLOCK_TRAIN_BASE", "")
SAMPLES = 320

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (PYTHON and BASE), reason="make train-smoke names an environment with torch"),
]


def command(out: Path, every: float = 10.0, samples: int = SAMPLES) -> list[str]:
    """Return the command of a short run; one thread, so that two runs do the same arithmetic."""
    start = BUNDLED / "nli" / "model.int8.onnx"
    return [
        PYTHON, str(ROOT / "scripts" / "train_nli.py"), "--base", BASE, "--start", str(start), "--rows", str(ROWS),
        "--out", str(out), "--samples", str(samples), "--threads", "1", "--every", str(every),
    ]  # fmt: skip


def trained(out: Path, *options: str, samples: int = SAMPLES) -> dict[str, Any]:
    """Run to the end, from where an earlier run with the same folder stopped, and return what the run reports."""
    done = subprocess.run([*command(out, samples=samples), *options], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    return {"began": int(lines[0].rpartition("from step ")[2]), **json.loads(lines[-1])}


def result(report: dict[str, Any]) -> dict[str, Any]:
    """Return what a report says, without where the run began and how long it took."""
    progress = {name: value for name, value in report["progress"].items() if name != "seconds"}
    return {**report, "progress": progress, "began": None}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A run that nothing disturbed."""
    out = tmp_path_factory.mktemp("train") / "whole"
    return out, trained(out)


def test_a_run_uses_its_budget_and_learns(whole):
    """The samples are used up, and the loss is that of a model which had learnt before."""
    progress = whole[1]["progress"]

    assert whole[1]["began"] == 0
    assert progress["samples"] >= SAMPLES
    assert progress["steps"] > 4
    assert 0.0 < progress["loss"] < 1.1, "three classes by chance are ln 3"


def test_a_killed_run_goes_on_and_ends_as_one_that_was_not(whole, tmp_path):
    """Killed with SIGKILL after a checkpoint and started again, a run ends with the same counts, loss and accuracy.

    This holds the seed too: two runs from the same rows are the same run.
    """
    out = tmp_path / "killed"
    with subprocess.Popen(
        command(out, every=0.02), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as run:
        end = time.monotonic() + 240
        while not (out / "state.pt").exists() and run.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        run.send_signal(signal.SIGKILL)
        said, _ = run.communicate()
    assert (out / "state.pt").exists()
    assert '"progress"' not in said, "it must not have ended by itself"

    resumed = trained(out)
    assert resumed["began"] > 0, "from the checkpoint, not from the start"
    assert result(resumed) == result(whole[1])


def test_written_pairs_are_learnt_too_and_others_are_held_out(whole, tmp_path):
    """With their folder the run has other rows, and looks at those that are held out."""
    told = trained(tmp_path / "told", "--told", str(ROOT / "scripts" / "nli_told"), "--replay", "0.1", samples=64)

    assert told["rows"] != whole[1]["rows"]
    assert told["accuracy"].keys() - whole[1]["accuracy"].keys() == {"told"}
    assert 0.2 < told["accuracy"]["told"] < 0.9


@pytest.mark.models
async def test_the_exported_model_is_a_slot_that_the_service_loads(whole, tmp_path):
    """Exported to int8, it passes the check of its manifest and tells a repetition from a denial."""
    from interlock.dpe.inference.local import LocalInference

    slot = tmp_path / "slot"
    script = ROOT / "scripts" / "export_nli.py"
    done = subprocess.run(
        [PYTHON, str(script), "--model", str(whole[0]), "--out", str(slot), "--version", "0.0.1",
         "--rows", str(ROWS / "look"), "--sample", "60"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr[-2000:]
    agreement = json.loads(done.stdout[: done.stdout.index("\n}\n") + 2])["sample"]
    assert agreement["same_label"] >= 0.85

    found = manifest("nli", slot)
    check(found)
    inference = LocalInference(nli=found, embed=manifest("embed"), ner=manifest("ner"), threads=1)
    try:
        said = "The bridge was closed to traffic in 1998."
        rows = await inference.nli([(said, said), (said, "The bridge was not closed to traffic in 1998.")])
    finally:
        inference.close()
    assert rows.sum(axis=1) == pytest.approx([1.0, 1.0], abs=1e-5)
    assert rows[0].argmax() == 0
    assert rows[1].argmax() == 2


def test_a_student_learns_from_a_teacher_and_its_weights_can_be_exported(tmp_path: Path) -> None:
    """The small model goes on from the shipped weights, written as a folder, and takes what a teacher says of labelled rows, of twins and
    of pairs that nobody labelled.
    """
    start = tmp_path / "start"
    assert trained(start, samples=0)["progress"]["samples"] == 0
    (tmp_path / "twins").mkdir()
    twins = [
        {
            "p": f"Mill {n} sold flour to Bakery {n}.",
            "h": f"{a} {n} sold flour to {b} {n}.",
            "y": y,
            "src": "twin:roles",
        }
        for n in range(20)
        for a, b, y in (("Mill", "Bakery", 0), ("Bakery", "Mill", 2))
    ]
    (tmp_path / "twins" / "twins.jsonl").write_text("".join(json.dumps(row) + "\n" for row in twins), encoding="utf-8")
    command = [
        PYTHON, str(ROOT / "scripts" / "distil_nli.py"), "--teacher", BASE, "--start", str(start), "--rows", str(ROWS),
        "--twins", str(tmp_path / "twins"), "--told", str(ROOT / "scripts" / "nli_told"), "--out", str(tmp_path / "out"), "--device", "cpu", "--most", "120",
        "--unlabelled", "20", "--tokens", "1024", "--teacher-seconds", "4", "--student-seconds", "4,3", "--control-seconds", "0",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr[-2000:]
    results = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert results["teacher training"]["steps"] > 0
    assert all(results[name]["training"]["samples"] > 0 for name in ("student", "untwinned"))
    export = [
        PYTHON, str(ROOT / "scripts" / "export_nli.py"), "--model", str(tmp_path / "out" / "student"),
        "--out", str(tmp_path / "slot"), "--version", "0.0.1",
    ]  # fmt: skip
    exported = subprocess.run(export, capture_output=True, text=True, check=False)
    assert not exported.returncode, exported.stderr[-2000:]
    check(manifest("nli", tmp_path / "slot"))
