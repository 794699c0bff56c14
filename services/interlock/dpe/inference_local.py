"""The models in this process: onnxruntime on worker threads, so that the event loop never waits for arithmetic.

Each text runs alone, on one thread, and as many run at once as there are workers. The int8 models scale their
activations by the whole batch they are in: in slices of eight, scores moved by up to 0.29 with the neighbours that a
text happened to have, so that a verdict depended on the rest of the answer and on what was cached. Alone, a score is
always the same, nothing is padded, and on two cores it is faster too.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import onnxruntime
from tokenizers import Encoding, Tokenizer

from interlock.domain.errors import Refused, exhausted, unavailable
from interlock.dpe.inference import EMBEDDING_WIDTH, Floats, ModelInfo
from interlock.dpe.models import LABELS, Manifest, contents

REMEMBERED_TEXTS = 8192
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")

T = TypeVar("T")


class LocalInference:
    """Embeddings and NLI on *threads* workers; results of recent texts are kept."""

    def __init__(self, *, nli: Manifest, embed: Manifest, threads: int) -> None:
        self._nli = _Model(nli)
        self._embed = _Model(embed)
        self._order = [nli.labels.index(label) for label in LABELS]
        self._threads = threads
        self._workers = ThreadPoolExecutor(threads, thread_name_prefix="dpe-model")
        self._known: OrderedDict[str, Floats] = OrderedDict()
        self._known_lock = threading.Lock()
        self.max_pair_tokens = nli.max_length - self._nli.specials(pair=True)

    def close(self) -> None:
        """Stop the workers; what is queued is dropped."""
        self._workers.shutdown(wait=True, cancel_futures=True)

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return one row of length 1.0 for each text; each distinct text runs once."""
        distinct = dict.fromkeys(texts)
        found = {text: vector for text in distinct if (vector := self._recall(text)) is not None}
        todo = [text for text in distinct if text not in found]
        for text, vector in zip(todo, await self._spread(self._vector, todo, key=len), strict=True):
            self._remember(text, vector)
            found[text] = vector
        if not texts:
            return np.zeros((0, EMBEDDING_WIDTH), dtype=np.float32)
        return np.stack([found[text] for text in texts])

    async def nli(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Return entailment, neutral and contradiction for each pair; each distinct pair runs once."""
        distinct = list(dict.fromkeys(pairs))
        rows = await self._spread(self._judge, distinct, key=lambda pair: len(pair[0]) + len(pair[1]))
        found = dict(zip(distinct, rows, strict=True))
        if not pairs:
            return np.zeros((0, len(LABELS)), dtype=np.float32)
        return np.stack([found[pair] for pair in pairs])

    def tokens(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens of the NLI model each text has."""
        encoded = self._nli.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [len(one.ids) for one in encoded]

    def models(self) -> tuple[ModelInfo, ...]:
        """Return both models."""
        return tuple(
            ModelInfo(m.slot, f"{m.name} {m.version}", m.hash, "embedded")
            for m in (self._nli.manifest, self._embed.manifest)
        )

    async def _spread(self, work: Callable[[Any], T], items: Sequence[Any], *, key: Callable[[Any], int]) -> list[T]:
        """Run *work* on every item over all workers; a caller that gives up stops the rest."""
        stop = threading.Event()
        order = sorted(range(len(items)), key=lambda i: key(items[i]))
        stripes = [order[n :: self._threads] for n in range(self._threads)]

        def run(stripe: list[int]) -> list[tuple[int, T]]:
            return [(i, work(items[i])) for i in stripe if not stop.is_set()]

        jobs: list[Future[list[tuple[int, T]]]] = [self._workers.submit(run, stripe) for stripe in stripes if stripe]
        try:
            parts = await asyncio.gather(*map(asyncio.wrap_future, jobs))
        finally:
            stop.set()
        done = dict(pair for part in parts for pair in part)
        return [done[i] for i in range(len(items))]

    def _vector(self, text: str) -> Floats:
        """Return the mean over all tokens; a text longer than the model is read in windows, never cut."""
        model = self._embed
        encoded = model.tokenizer.encode(text, add_special_tokens=True)
        windows = [encoded, *encoded.overflowing]
        total = np.zeros(EMBEDDING_WIDTH, dtype=np.float64)
        for window in windows:
            hidden = model.run(window)
            if hidden.ndim != 3 or hidden.shape[0] != 1 or hidden.shape[2] != EMBEDDING_WIDTH:
                raise _invalid("embed")
            total += hidden[0].mean(axis=0, dtype=np.float64) * len(window.ids)
        length = float(np.linalg.norm(total))
        if not np.isfinite(length) or length == 0.0:
            raise _invalid("embed")
        vector: Floats = (total / length).astype(np.float32)
        return vector

    def _judge(self, pair: tuple[str, str]) -> Floats:
        model = self._nli
        encoded = model.tokenizer.encode(*pair)
        if len(encoded.ids) > model.manifest.max_length:
            raise exhausted(
                "CLAIM_TOO_LONG",
                "a claim and its evidence do not fit the model",
                limit=str(model.manifest.max_length),
                found=str(len(encoded.ids)),
            )
        logits = model.run(encoded)
        if logits.shape != (1, len(LABELS)) or not np.isfinite(logits).all():
            raise _invalid("nli")
        row = logits[0].astype(np.float64)
        weights = np.exp(row - row.max())
        scores: Floats = (weights / weights.sum())[self._order].astype(np.float32)
        return scores

    def _recall(self, text: str) -> Floats | None:
        with self._known_lock:
            vector = self._known.get(text)
            if vector is not None:
                self._known.move_to_end(text)
            return vector

    def _remember(self, text: str, vector: Floats) -> None:
        with self._known_lock:
            self._known[text] = vector
            while len(self._known) > REMEMBERED_TEXTS:
                self._known.popitem(last=False)


class _Model:
    """One ONNX session with its tokenizer, made from verified bytes."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        tokenizer = contents(manifest, manifest.tokenizer)
        try:
            self.tokenizer = Tokenizer.from_buffer(tokenizer)
        except Exception as error:
            raise _unusable(manifest, type(error).__name__) from error
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        if manifest.slot == "embed":
            self.tokenizer.enable_truncation(manifest.max_length)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        model = contents(manifest, manifest.model)
        try:
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise _unusable(manifest, type(error).__name__) from error
        self._inputs = [given.name for given in self._session.get_inputs()]
        if unknown := set(self._inputs) - set(_INPUTS):
            raise _unusable(manifest, f"it wants inputs {sorted(unknown)}")

    def specials(self, *, pair: bool) -> int:
        """Return how many tokens the tokenizer adds around a text or a pair."""
        return int(self.tokenizer.num_special_tokens_to_add(pair))

    def run(self, encoded: Encoding) -> Any:
        """Return the model's first output for one encoded text; what the runtime raises is MODEL_FAILED."""
        columns = dict(zip(_INPUTS, (encoded.ids, encoded.attention_mask, encoded.type_ids), strict=True))
        feed = {name: np.asarray([columns[name]], dtype=np.int64) for name in self._inputs}
        try:
            return self._session.run(None, feed)[0]
        except Exception as error:
            slot = self.manifest.slot
            raise unavailable("MODEL_FAILED", f"slot {slot}: {type(error).__name__}", slot=slot) from error


def _invalid(slot: str) -> Refused:
    return unavailable("MODEL_OUTPUT_INVALID", f"slot {slot} answered with something that is not a result", slot=slot)


def _unusable(manifest: Manifest, why: str) -> Refused:
    return unavailable("MODEL_UNUSABLE", f"slot {manifest.slot}: {why}", retry_after_ms=0, slot=manifest.slot)
