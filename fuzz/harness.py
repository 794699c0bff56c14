"""Runs targets under atheris, each in a process of its own, and replays what is checked in without it."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fuzz.targets

HERE = Path(__file__).resolve().parent
CORPUS, OUT = HERE / "corpus", HERE / "out"
LONGEST_INPUT = 8192
SLOW_INPUT_S = 10
MEMORY_MB = 2048
_EXECUTED = re.compile(r"number_of_executed_units:\s*(\d+)")
_COVERED = re.compile(r"\bcov: (\d+)")


@dataclass(frozen=True)
class Bound:
    """How long a target is fuzzed, seconds, and with which *seed*."""

    seconds: int
    seed: int = 0
    """Other than 0, a run of the same code is given nearly the same inputs, as many of them as there is time for."""

    @property
    def options(self) -> list[str]:
        """The options of libFuzzer that say so."""
        repeats = ["-reload=0"] if self.seed else []
        return [f"-max_total_time={self.seconds}", f"-seed={self.seed}", *repeats]


@dataclass(frozen=True)
class Outcome:
    """How a target's run ended; ``crashes`` are the files that bring the failure back."""

    target: str
    executions: int
    covered: int
    seconds: float
    ok: bool
    crashes: tuple[Path, ...]
    output: str


def names() -> list[str]:
    """Every target by name."""
    return sorted(found.name for found in pkgutil.iter_modules(fuzz.targets.__path__))


def load(name: str) -> Any:
    """Return a target's module."""
    return importlib.import_module(f"fuzz.targets.{name}")


def corpus(name: str) -> Iterator[Path]:
    """Yield the inputs of a target that are checked in."""
    yield from sorted((CORPUS / name).iterdir())


def write_seeds() -> int:
    """Write every target's own seeds into its corpus, and return how many there are."""
    count = 0
    for name in names():
        folder = CORPUS / name
        folder.mkdir(parents=True, exist_ok=True)
        for seed, data in load(name).seeds().items():
            (folder / seed).write_bytes(data)
            count += 1
    return count


def fuzz_one(name: str, arguments: Sequence[str]) -> None:
    """Fuzz one target in this process; libFuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["interlock"], enable_loader_override=False):
        target = load(name)
    atheris.Setup([name, *arguments], target.TestOneInput)
    atheris.Fuzz()


def run(wanted: Sequence[str], bound: Bound, *, jobs: int) -> list[Outcome]:
    """Fuzz targets side by side, *jobs* at a time."""
    OUT.mkdir(exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda name: _run_one(name, bound), wanted))


def _run_one(name: str, bound: Bound) -> Outcome:
    found = OUT / "corpus" / name
    if bound.seed:
        shutil.rmtree(found, ignore_errors=True)
    found.mkdir(parents=True, exist_ok=True)
    before = set(_crashes(name))
    command = [sys.executable, "-m", "fuzz", "one", name, *_options(name, bound), str(found), str(CORPUS / name)]
    began = time.monotonic()
    hashes = {"PYTHONHASHSEED": "0"} if bound.seed else {}
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, check=False, env={**os.environ, **hashes})
    output = (done.stdout + done.stderr).decode(errors="replace")
    crashes = tuple(path for path in _crashes(name) if path not in before)
    executed, covered = _EXECUTED.search(output), _COVERED.findall(output)
    return Outcome(
        name, int(executed[1]) if executed else 0, int(covered[-1]) if covered else 0, time.monotonic() - began,
        done.returncode == 0 and not crashes, crashes, output,
    )  # fmt: skip


def _options(name: str, bound: Bound) -> list[str]:
    words = OUT / f"{name}.dict"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in load(name).WORDS), encoding="ascii")
    return [
        *bound.options, f"-artifact_prefix={OUT}/{name}-", f"-dict={words}", f"-max_len={LONGEST_INPUT}",
        f"-timeout={SLOW_INPUT_S}", f"-rss_limit_mb={MEMORY_MB}", "-print_final_stats=1",
    ]  # fmt: skip


def _escaped(word: bytes) -> str:
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in word)


def _crashes(name: str) -> list[Path]:
    return sorted(path for kind in ("crash", "timeout", "oom", "leak") for path in OUT.glob(f"{name}-{kind}-*"))
