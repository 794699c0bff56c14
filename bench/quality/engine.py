"""The engine as a user runs it, on one NLI model, and what is asked of it here."""

from __future__ import annotations

import asyncio
import dataclasses
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.quality.baselines import Shortened
from bench.quality.metrics import Array
from bench.quality.rows import AskedRow, Row
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.errors import Refused
from interlock.dpe.document import Fact
from interlock.dpe.request import Output, Request
from interlock.dpe.wiring import open_pipeline
from interlock.runtime.settings.model import Settings

SLICE = 32
AT_ONCE = 3
PREVIOUS_COMMIT = "d45f978"
PREVIOUS_FILES = ("manifest.json", "model.int8.onnx", "tokenizer.json")
PREVIOUS_FOLDER = "services/interlock/dpe/models/nli"


@dataclass(frozen=True)
class Judged:
    """What a report says about one answer, without its texts."""

    composite: float
    low: bool
    grounded: float
    types: tuple[str, ...]
    fabrications: int
    contradictions: int
    floors: tuple[str, ...]
    level: int = 0
    cannot_tell: bool = False
    slots: tuple[str, ...] = ()
    """Slots that a claim fills otherwise than its source, such as agent or order."""
    misattributions: int = 0

    @property
    def accused(self) -> bool:
        """Whether anything is named: a distortion, a fabrication, a contradiction."""
        return bool(self.types or self.fabrications or self.contradictions)

    @property
    def noticed(self) -> bool:
        """Whether something is named or a claim is not grounded."""
        return self.accused or self.grounded < 1.0


class OtherJudge:
    """An inference whose NLI is another model's; embeddings, which are the same, are the first one's and remembered."""

    def __init__(self, first: Any, judge: Any) -> None:
        self.first, self.judge = first, judge
        self.max_pair_tokens = judge.max_pair_tokens
        self.nli, self.tokens, self.models = judge.nli, judge.tokens, judge.models

    def __getattr__(self, name: str) -> Any:
        return getattr(self.first, name)


class Engine:
    """The pipeline on the NLI model of the settings, or of a folder in place of that of another engine."""

    def __init__(self, nli: Path | None = None, beside: Engine | None = None) -> None:
        self.pipeline: Any = open_pipeline(Settings(nli_model_dir=nli) if nli else Settings())
        self.refused: dict[str, int] = {}
        if beside is not None:
            other = OtherJudge(beside.pipeline.inference, self.pipeline.inference)
            self.pipeline = dataclasses.replace(self.pipeline, inference=other)

    def close(self) -> None:
        """Let go of the models."""
        if isinstance(self.pipeline.inference, OtherJudge):
            self.pipeline.inference.judge.close()
            self.pipeline.language.close()
        else:
            self.pipeline.close()

    def models(self) -> list[dict[str, str]]:
        """Return slot, name and hash of each model."""
        found = [*self.pipeline.inference.models(), self.pipeline.language.model]
        return [{"slot": one.slot, "name": one.name, "hash": one.hash, "runtime": one.runtime} for one in found]

    async def nli(self, pairs: Sequence[tuple[str, str]]) -> Array:
        """Return entailment, neutral and contradiction for each pair."""
        parts = [await self.pipeline.inference.nli(pairs[at : at + SLICE]) for at in range(0, len(pairs), SLICE)]
        return np.concatenate(parts).astype(np.float64)

    async def similarity(self, one: Sequence[str], other: Sequence[str]) -> Array:
        """Return the cosine of each text with the one beside it."""
        left, right = await self.pipeline.inference.embed(one), await self.pipeline.inference.embed(other)
        return np.asarray((left * right).sum(axis=1), dtype=np.float64)

    def shortened(self, rows: Iterable[Row]) -> list[tuple[str, str]]:
        """Return premise and hypothesis of each row, cut so that they fit the model."""
        return [Shortened(self.pipeline.inference)(row) for row in rows]

    async def report(self, row: Row, query: str = "") -> dpe_pb2.Report:
        """Return the report on a text with its source as the one fact."""
        sources = row.sources if isinstance(row, AskedRow) else (row.source,) if row.source else ()
        asked = row.query if isinstance(row, AskedRow) else query
        facts = tuple(Fact(f"f{number}", source, 0.5) for number, source in enumerate(sources, 1))
        report: dpe_pb2.Report = await self.pipeline.analyse(
            Request(outputs=(Output(0, row.text),), facts=facts, query=asked)
        )
        return report

    async def judge(self, rows: Sequence[Row]) -> list[Judged | None]:
        """Return what the reports say, a few at once; ``None`` where the engine refused, which is counted."""
        return list(await asyncio.gather(*map(self._judge, rows)))

    async def _judge(self, row: Row) -> Judged | None:
        try:
            return judged(await self.report(row))
        except Refused as refused:
            self.refused[refused.reason] = self.refused.get(refused.reason, 0) + 1
            return None


def judged(report: dpe_pb2.Report) -> Judged:
    """Return the parts of a report that are measured."""
    return Judged(
        composite=report.composite_score,
        low=report.risk_level == 1,
        grounded=report.grounding_pct if report.HasField("grounding_pct") else 0.0,
        types=tuple(report.distortion_types),
        fabrications=report.fabrication_count,
        contradictions=report.contradiction_count,
        floors=tuple(report.floors),
        level=int(report.risk_level),
        cannot_tell=report.cannot_tell_count > 0,
        slots=tuple(sorted({bent.slot for claim in report.claims for bent in claim.distortions if bent.slot})),
        misattributions=len(report.misattributions),
    )


def previous_model(given: Path | None, folder: Path) -> Path | None:
    """Return the folder of the previous model: the given one, or the one of an earlier commit taken out of git.

    ``None`` when there is neither, as in a copy without its history.
    """
    if given is not None:
        return given if (given / "manifest.json").is_file() else None
    folder.mkdir(parents=True, exist_ok=True)
    for name in PREVIOUS_FILES:
        shown = subprocess.run(
            ["git", "show", f"{PREVIOUS_COMMIT}:{PREVIOUS_FOLDER}/{name}"],
            cwd=Path(__file__).parent,
            capture_output=True,
            check=False,
        )
        if shown.returncode:
            return None
        (folder / name).write_bytes(shown.stdout)
    return folder
