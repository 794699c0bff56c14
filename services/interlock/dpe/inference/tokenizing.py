"""Pre- and post-processing that all runtimes share: texts to token rows, model outputs to scores and names.

A runtime only computes tensors. Everything else is here, so equal outputs give equal reports on every runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Encoding, Tokenizer

from interlock.domain.errors import Refused, exhausted, unavailable
from interlock.dpe.document import Entity
from interlock.dpe.inference.models import LABELS, ModelManifest, contents
from interlock.dpe.inference.ner import OVERLAP, Offset, TokenWindow, names_in, token_types
from interlock.dpe.inference.port import EMBEDDING_WIDTH, Floats
from interlock.dpe.inference.recent import Recent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
else:
    Integers = Any

REMEMBERED_TEXTS = 8192
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
LARGEST_LOGIT = 1e4
"""A larger class score is no judgement: cross-encoders stay below 20."""


@dataclass(frozen=True)
class Row:
    """One token sequence for a model. Its attention mask is all ones."""

    ids: Integers
    types: Integers

    def __len__(self) -> int:
        return len(self.ids)

    def columns(self) -> dict[str, Integers]:
        """Return the model's inputs by name, each as a batch of one."""
        mask = np.ones(len(self.ids), dtype=np.int64)
        return {name: value[None] for name, value in zip(INPUTS, (self.ids, mask, self.types), strict=True)}


@dataclass(frozen=True)
class TokenizedWindow:
    """One window of a text for the token classifier: its row, and for each token its word index and its span."""

    row: Row
    words: Sequence[int | None]
    offsets: Sequence[Offset]


class Tokens:
    """The tokenizer of one slot, built from verified bytes."""

    def __init__(self, manifest: ModelManifest) -> None:
        self.slot, self.max_length = manifest.slot, manifest.max_length
        self._counts: Recent[int] = Recent(REMEMBERED_TEXTS)
        raw = contents(manifest, manifest.tokenizer)
        try:
            self._tokenizer = Tokenizer.from_buffer(raw)
        except Exception as error:
            raise unusable(manifest, type(error).__name__) from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        if manifest.slot == "embed":
            self._tokenizer.enable_truncation(manifest.max_length)
        if manifest.slot == "ner":
            self._tokenizer.enable_truncation(manifest.max_length, stride=OVERLAP)

    @property
    def max_pair_tokens(self) -> int:
        """Token budget of a premise and a hypothesis together."""
        return self.max_length - int(self._tokenizer.num_special_tokens_to_add(is_pair=True))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens."""
        found = {text: self._counts.recall(text) for text in texts}
        missing = [text for text, known in found.items() if known is None]
        for text, one in zip(missing, self._tokenizer.encode_batch(missing, add_special_tokens=False), strict=True):
            found[text] = len(one.ids)
            self._counts.keep(len(one.ids), text)
        return [found[text] or 0 for text in texts]

    def pair(self, pair: tuple[str, str]) -> Row:
        """Return the row of a premise and a hypothesis. Refused with CLAIM_TOO_LONG when it does not fit."""
        encoded = self._tokenizer.encode(*pair)
        if len(encoded.ids) > self.max_length:
            raise exhausted(
                "CLAIM_TOO_LONG",
                "a claim and its evidence do not fit the model",
                limit=str(self.max_length),
                found=str(len(encoded.ids)),
            )
        return _row(encoded)

    def windows(self, text: str) -> list[Row]:
        """Return the rows of a text. A text longer than the model's input is split into windows, never truncated."""
        encoded = self._tokenizer.encode(text, add_special_tokens=True)
        return [_row(window) for window in (encoded, *encoded.overflowing)]

    def ner_windows(self, text: str) -> list[TokenizedWindow]:
        """Return the overlapping windows of a text for the token classifier, typed by the case of each word."""
        encoded = self._tokenizer.encode(text, add_special_tokens=True)
        return [_ner_window(text, window) for window in (encoded, *encoded.overflowing)]


def label_order(manifest: ModelManifest) -> list[int]:
    """Return the model's output column of entailment, neutral and contradiction."""
    return [manifest.labels.index(label) for label in LABELS]


def probabilities(logits: Any, order: Sequence[int]) -> Floats:
    """Return one row of logits as probabilities in the order of ``LABELS``. Refused with MODEL_OUTPUT_INVALID."""
    row = np.asarray(logits, dtype=np.float64)
    if row.shape != (len(LABELS),) or not (np.abs(row) <= LARGEST_LOGIT).all():  # also false for NaN
        raise no_result("nli")
    weights = np.exp(row - row.max())
    scores: Floats = (weights / weights.sum())[list(order)].astype(np.float32)
    return scores


def vector(windows: Sequence[Any]) -> Floats:
    """Return the mean over all tokens of a text's windows as a unit vector. Refused with MODEL_OUTPUT_INVALID."""
    total = np.zeros(EMBEDDING_WIDTH, dtype=np.float64)
    for hidden in windows:
        if hidden.ndim != 2 or not len(hidden) or hidden.shape[1] != EMBEDDING_WIDTH:
            raise no_result("embed")
        total += hidden.mean(axis=0, dtype=np.float64) * len(hidden)
    length = float(np.linalg.norm(total))
    if not np.isfinite(length) or length == 0.0:
        raise no_result("embed")
    unit: Floats = (total / length).astype(np.float32)
    return unit


def names(
    text: str, windows: Sequence[TokenizedWindow], outputs: Sequence[Any], labels: Sequence[str]
) -> tuple[Entity, ...]:
    """Return the names that the scores of a text's windows encode. Refused with MODEL_OUTPUT_INVALID."""
    token_windows = []
    for window, scores in zip(windows, outputs, strict=True):
        fits = scores.shape == (len(window.row), len(labels))
        if not fits or not (np.abs(scores) <= LARGEST_LOGIT).all():  # also false for NaN
            raise no_result("ner")
        token_windows.append(TokenWindow(window.words, window.offsets, scores.tolist()))
    return tuple(Entity(text[start:end], kind, start, end) for start, end, kind in names_in(token_windows, labels))


def no_result(slot: str) -> Refused:
    """Return the refusal for a model output that is not a result. It never becomes a score."""
    return unavailable("MODEL_OUTPUT_INVALID", f"slot {slot} returned an invalid result", slot=slot)


def unusable(manifest: ModelManifest, why: str) -> Refused:
    """Return the refusal for pinned files that cannot be used."""
    return unavailable("MODEL_UNUSABLE", f"slot {manifest.slot}: {why}", retry_after_ms=0, slot=manifest.slot)


def _row(encoded: Encoding) -> Row:
    return Row(np.asarray(encoded.ids, dtype=np.int64), np.asarray(encoded.type_ids, dtype=np.int64))


def _ner_window(text: str, encoded: Encoding) -> TokenizedWindow:
    words, offsets = encoded.word_ids, encoded.offsets
    types = np.asarray(token_types(text, words, offsets), dtype=np.int64)
    return TokenizedWindow(Row(np.asarray(encoded.ids, dtype=np.int64), types), words, offsets)
