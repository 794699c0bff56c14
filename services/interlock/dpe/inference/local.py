"""The models in this process: onnxruntime on worker threads, so that the event loop never waits for a model.

Each text runs alone on one thread, and as many texts run at once as there are workers. The analyses take turns (``fairness``). The int8 models scale their
activations over the whole batch: in batches of eight, scores moved by up to 0.29 with the other texts in the batch, so
a verdict depended on the rest of the answer and on the cache. Alone, a score is always the same and nothing is padded.
On two cores this is also faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import onnxruntime

from interlock.domain.errors import unavailable
from interlock.dpe.document import Entity
from interlock.dpe.inference.fair_pool import FairPool
from interlock.dpe.inference.models import LABELS, ModelManifest, contents
from interlock.dpe.inference.port import EMBEDDING_WIDTH, Floats, ModelInfo
from interlock.dpe.inference.recent import Recent
from interlock.dpe.inference.tokenizing import (
    INPUTS,
    REMEMBERED_TEXTS,
    Row,
    Tokens,
    label_order,
    names,
    no_result,
    probabilities,
    unusable,
    vector,
)

T = TypeVar("T")


class LocalInference:
    """Embeddings, NLI and names on *threads* workers, with a cache for the vectors of recent texts."""

    def __init__(self, *, nli: ModelManifest, embed: ModelManifest, ner: ModelManifest, threads: int) -> None:
        self._nli, self._nli_tokens = _Model(nli), Tokens(nli)
        self._embed, self._embed_tokens = _Model(embed), Tokens(embed)
        self._ner, self._ner_tokens = _Model(ner), Tokens(ner)
        self._order = label_order(nli)
        self._workers = FairPool(threads, "dpe-model")
        self._cache: Recent[Floats] = Recent(REMEMBERED_TEXTS)
        self._scores: Recent[Floats] = Recent()
        self._names: Recent[tuple[Entity, ...]] = Recent()
        self.max_pair_tokens = self._nli_tokens.max_pair_tokens

    async def check(self) -> None:
        """Return at once: the models are loaded."""

    def close(self) -> None:
        """Stop the workers and drop queued work."""
        self._workers.close()

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return one unit vector for each text. Each distinct text runs once."""
        distinct = dict.fromkeys(texts)
        found = {text: cached for text in distinct if (cached := self._cache.recall(text)) is not None}
        missing = [text for text in distinct if text not in found]
        windows_by_text = await self._spread(self._embed_tokens.windows, missing, key=len)
        rows = [row for windows in windows_by_text for row in windows]
        hidden = iter(await self._spread(self._hidden, rows, key=len))
        for text, windows in zip(missing, windows_by_text, strict=True):
            found[text] = vector([next(hidden) for _ in windows])
            self._cache.keep(found[text], text)
        if not texts:
            return np.zeros((0, EMBEDDING_WIDTH), dtype=np.float32)
        return np.stack([found[text] for text in texts])

    async def nli(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Return P(entailment), P(neutral) and P(contradiction) for each pair. Each distinct pair runs once."""
        distinct = list(dict.fromkeys(pairs))
        found = {pair: known for pair in distinct if (known := self._scores.recall(*pair)) is not None}
        missing = [pair for pair in distinct if pair not in found]
        rows = await self._spread(self._class_scores, missing, key=lambda pair: len(pair[0]) + len(pair[1]))
        for pair, row in zip(missing, rows, strict=True):
            found[pair] = row
            self._scores.keep(row, *pair)
        if not pairs:
            return np.zeros((0, len(LABELS)), dtype=np.float32)
        return np.stack([found[pair] for pair in pairs])

    async def names(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """Return the names in each text. Each distinct text runs once, its windows spread over all workers."""
        distinct = dict.fromkeys(texts)
        found = {text: known for text in distinct if (known := self._names.recall(text)) is not None}
        missing = [text for text in distinct if text not in found]
        windows_by_text = await self._spread(self._ner_tokens.ner_windows, missing, key=len)
        rows = [window.row for windows in windows_by_text for window in windows]
        scores = iter(await self._spread(self._token_scores, rows, key=len))
        for text, windows in zip(missing, windows_by_text, strict=True):
            found[text] = names(text, windows, [next(scores) for _ in windows], self._ner.manifest.labels)
            self._names.keep(found[text], text)
        return [found[text] for text in texts]

    def tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of NLI tokens of each text."""
        return self._nli_tokens.count(texts)

    def models(self) -> tuple[ModelInfo, ...]:
        """Return the three models."""
        return tuple(ModelInfo.of(model.manifest, "embedded") for model in (self._nli, self._embed, self._ner))

    async def _spread(self, work: Callable[[Any], T], items: Sequence[Any], *, key: Callable[[Any], int]) -> list[T]:
        """Run *work* on every item, in turn with other analyses. When the caller gives up, the rest is skipped."""
        return await self._workers.spread(work, items, key=key)

    def _hidden(self, row: Row) -> Floats:
        output = self._embed.run(row)
        if output.ndim != 3 or output.shape[0] != 1:
            raise no_result("embed")
        found: Floats = output[0]
        return found

    def _class_scores(self, pair: tuple[str, str]) -> Floats:
        logits = self._nli.run(self._nli_tokens.pair(pair))
        if logits.shape != (1, len(LABELS)):
            raise no_result("nli")
        return probabilities(logits[0], self._order)

    def _token_scores(self, row: Row) -> Floats:
        scores = self._ner.run(row)
        if scores.ndim != 3 or scores.shape[0] != 1:
            raise no_result("ner")
        found: Floats = scores[0]
        return found


class _Model:
    """One ONNX session, built from verified bytes."""

    def __init__(self, manifest: ModelManifest) -> None:
        self.manifest = manifest
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        model = contents(manifest, manifest.model)
        try:
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise unusable(manifest, type(error).__name__) from error
        self._inputs = [tensor.name for tensor in self._session.get_inputs()]
        if unknown := set(self._inputs) - set(INPUTS):
            raise unusable(manifest, f"the model expects unknown inputs {sorted(unknown)}")

    def run(self, row: Row) -> Any:
        """Return the model's first output for one row. Refused with MODEL_FAILED when the runtime raises."""
        columns = row.columns()
        try:
            return self._session.run(None, {name: columns[name] for name in self._inputs})[0]
        except Exception as error:
            slot = self.manifest.slot
            raise unavailable("MODEL_FAILED", f"slot {slot}: {type(error).__name__}", slot=slot) from error
