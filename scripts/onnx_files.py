"""How a trained encoder becomes the files of a model slot: float32 graph, int8 graph, tokenizer, manifest.

Shared by scripts/export_nli.py, scripts/export_embedding.py and scripts/train_ner.py. Needs torch, onnx, onnxscript and onnxruntime.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
MODEL, FLOAT32, TOKENIZER, MANIFEST = "model.int8.onnx", "model.onnx", "tokenizer.json", "manifest.json"


class One(torch.nn.Module):
    """A model of the transformers library with tensors in and one field of its answer out."""

    def __init__(self, model: Any, field: str) -> None:
        super().__init__()
        self.model, self.field = model, field

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
        """Return the field alone."""
        found = self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        return getattr(found, self.field)


def write_float32(model: Any, path: Path, *, field: str = "logits", output: str = "logits") -> None:
    """Write the graph with any batch and length, without what the exporter says about the machine it ran on.

    Its one output is *field* of what the model answers, under the name *output*.
    """
    ids = torch.full((2, 24), 1037)
    shape = {0: torch.export.Dim("batch", min=1, max=4096), 1: torch.export.Dim("length", min=2, max=512)}
    torch.onnx.export(
        One(model, field), (ids, torch.ones_like(ids), torch.zeros_like(ids)), str(path), dynamo=True, verbose=False,
        external_data=False, opset_version=18, input_names=list(INPUTS), output_names=[output],
        dynamic_shapes=dict.fromkeys(INPUTS, shape),
    )  # fmt: skip
    graph = onnx.load(str(path))
    for node in graph.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    del graph.graph.metadata_props[:]
    del graph.graph.value_info[:]  # stale shapes would stop the quantiser's shape inference
    for value in [*graph.graph.input, *graph.graph.output, *graph.graph.initializer]:
        del value.metadata_props[:]
    onnx.save(graph, str(path))


def write_int8(float32: Path, path: Path) -> None:
    """Quantise the weights, a scale for each channel; activations are scaled as they come."""
    quantize_dynamic(str(float32), str(path), weight_type=QuantType.QInt8, per_channel=True)


def entry(path: Path) -> dict[str, object]:
    """Return size and hash of a file, as the manifest states them."""
    return {"bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def place(made: Path, out: Path, described: dict[str, object], *, model: str = MODEL) -> None:
    """Make *out* a slot of a model and the tokenizer in *made*, with a manifest that interlock.dpe.inference.models reads.

    Each file is written beside its place and renamed, the manifest last: who reads in between sees a hash that differs.
    """
    files = {name: entry(made / name) for name in (model, TOKENIZER)}
    whole = {**described, "model": model, "tokenizer": TOKENIZER, "files": files}
    (made / MANIFEST).write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    out.mkdir(parents=True, exist_ok=True)
    for name in (model, TOKENIZER, MANIFEST):
        beside = out / f".{name}.new"
        shutil.copyfile(made / name, beside)
        beside.replace(out / name)
