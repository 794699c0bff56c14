"""The engine for tests: the real models, loaded once, an in-memory twin of the inference port, and tiny ONNX files."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shutil
import struct
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from interlock.dpe.document import Claim, ClaimType, Distortion, Entity, Fact
from interlock.dpe.grounding.attribution import NOTHING, ClaimEvidence
from interlock.dpe.grounding.envelope import Envelope, cut
from interlock.dpe.grounding.placing.calculated import settle
from interlock.dpe.grounding.placing.cells import shared, taken
from interlock.dpe.grounding.placing.fields import moved_fields
from interlock.dpe.grounding.placing.holders import exchanged_holders
from interlock.dpe.grounding.placing.scopes import scopes
from interlock.dpe.inference.language import NamedLanguage
from interlock.dpe.inference.models import BUNDLED
from interlock.dpe.inference.port import EMBEDDING_WIDTH, ModelInfo
from interlock.dpe.pipeline import Pipeline
from interlock.dpe.request import Output, Request
from interlock.dpe.text.views import viewed
from interlock.runtime.settings.model import Settings


@cache
def pipeline() -> Pipeline:
    """The real pipeline on the bundled models, one for the whole run."""
    from interlock.dpe.wiring import open_pipeline

    return open_pipeline(Settings())


def named(*outputs: Output) -> NamedLanguage:
    """The real parser with the names that the real classifier finds in *outputs*; not for tests on an event loop."""
    engine = pipeline()
    texts = [text for view in viewed(outputs) for text in engine.language.texts(view.text)]
    return NamedLanguage(engine.language, dict(zip(texts, asyncio.run(engine.inference.names(texts)), strict=True)))


def request(response: str | Sequence[str], *facts: str, importance: float = 0.5, **fields: object) -> Request:
    """A request with one choice for each response, and facts f1, f2, …"""
    responses = [response] if isinstance(response, str) else response
    return Request(
        outputs=tuple(Output(number, text) for number, text in enumerate(responses)),
        facts=tuple(Fact(f"f{n}", text, importance) for n, text in enumerate(facts, 1)),
        **fields,
    )


def claim(text: str, number: int = 1, *entities: Entity, specificity: float = 0.5) -> Claim:
    """A claim that is its whole sentence."""
    return Claim(f"c{number}", text, number, 0, 0, len(text), ClaimType.FACTUAL, specificity, entities)


def ruled(answer: str, *sources: str, query: str = "") -> tuple[list[Distortion], ClaimEvidence]:
    """What the rules on records find in an answer that is one claim, and its evidence after them. No model runs."""
    facts = tuple(Fact(f"f{n}", text, 0.5) for n, text in enumerate(sources, 1))
    units = cut(facts, limit=200, count=lambda texts: [len(each.split()) for each in texts], split=_whole)
    envelope = Envelope(units, np.zeros((0, 1)), np.zeros((0, 1)))
    told, known = claim(answer), scopes(envelope)
    settled = settle([told], {"c1": NOTHING}, envelope, query=query, own="", sentences={})["c1"]
    others = [*taken(told, known), *shared(told, known), *exchanged_holders(told, known)]
    fields = moved_fields([told], known).get("c1", ())
    return [*settled.moved, *others, *fields], settled


def _whole(text: str) -> Iterator[tuple[int, int]]:
    """A text as its lines and sentences."""
    yield from ((match.start(), match.end()) for match in re.finditer(r"[^\n.]+(?:\.(?=\S)[^\n.]*)*\.?", text))


class WordInference:
    """An in-memory twin of the port: a text is its words; a premise entails the share of them that it has.

    A negation on one side alone is a contradiction.
    """

    max_pair_tokens = 253

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), EMBEDDING_WIDTH), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in _words(text) or {""}:
                rows[row, int(hashlib.sha256(word.encode()).hexdigest(), 16) % EMBEDDING_WIDTH] += 1.0
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    async def nli(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        self.pairs += pairs
        rows = np.zeros((len(pairs), 3), dtype=np.float32)
        for row, (premise, hypothesis) in enumerate(pairs):
            left, right = _words(premise), _words(hypothesis)
            share = len(left & right) / max(1, len(right))
            column = 2 if ("not" in left) != ("not" in right) else 0
            rows[row, column], rows[row, 1] = share, 1.0 - share
        return rows

    async def names(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        return [() for _ in texts]

    def tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def models(self) -> tuple[ModelInfo, ...]:
        return ()

    def close(self) -> None:
        pass


def _words(text: str) -> set[str]:
    return {word.strip(".,:;!?") for word in text.lower().split()} - {""}


def own_model(folder: Path, logits: Sequence[float], labels: Sequence[str], *, shape: Sequence[int] = (1, 3)) -> Path:
    """Write an NLI slot whose model answers *logits* to everything, with a right manifest; return the folder."""
    return _constant_model("nli", folder, logits, labels, shape)


def own_classifier(
    folder: Path, scores: Sequence[float], shape: Sequence[int], labels: Sequence[str] = ("O", "B-PERSON", "I-PERSON")
) -> Path:
    """Write an NER slot whose model answers *scores* to everything, with a right manifest; return the folder."""
    return _constant_model("ner", folder, scores, labels, shape)


def _constant_model(
    slot: str, folder: Path, values: Sequence[float], labels: Sequence[str], shape: Sequence[int]
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(constant_onnx(values, shape))
    shutil.copy(BUNDLED / slot / "tokenizer.json", folder / "tokenizer.json")
    manifest = {
        "slot": slot, "name": "constant", "version": "1", "licence": "none", "labels": list(labels), "max_length": 256,
        "model": "model.onnx", "tokenizer": "tokenizer.json",
        "files": {
            name: {"sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest()}
            for name in ("model.onnx", "tokenizer.json")
        },
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def constant_onnx(values: Sequence[float], shape: Sequence[int]) -> bytes:
    """An ONNX model that takes token ids and always answers *values*, written field by field (onnx.proto)."""
    constant = (
        b"".join(_number(1, size) for size in shape)
        + _number(2, 1)
        + _bytes(8, b"values")
        + _bytes(9, struct.pack(f"<{len(values)}f", *values))
    )
    node = _bytes(1, b"values") + _bytes(2, b"logits") + _bytes(4, b"Identity")
    graph = (
        _bytes(1, node) + _bytes(2, b"constant") + _bytes(5, constant)
        + _bytes(11, _value(b"input_ids", 7, [b"batch", b"length"]))
        + _bytes(12, _value(b"logits", 1, [b"d%d" % n for n in range(len(shape))]))
    )  # fmt: skip
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _bytes(1, b"") + _number(2, 17))


def _value(name: bytes, kind: int, dimensions: Sequence[bytes]) -> bytes:
    shape = b"".join(_bytes(1, _bytes(2, dimension)) for dimension in dimensions)
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, shape)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
