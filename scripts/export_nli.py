"""Export a model of scripts/train_nli.py as a slot folder: int8 ONNX, tokenizer and manifest (docs/models.md).

    python scripts/export_nli.py --model build/nli-model --out build/nli-slot --version 1.1.0 [--rows build/nli/look]

Writes beside the target and renames, the manifest last, so that a reader never loads half a model: its hash differs
until all is there. With --rows it prints how often the int8 file gives the float32 file's label and how far their
probabilities lie apart. --float32 makes a second slot, of the float32 file: Triton's GPU profile batches, which int8 files
do not bear.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np
import torch
from evaluate_nli import Judge, figures, sampled
from onnx_files import FLOAT32, MODEL, TOKENIZER, place, write_float32, write_int8
from transformers import AutoModelForSequenceClassification, logging

NAME = "interlock-nli-minilm-l6"
MAX_LENGTH = 256
BASE = (
    "all-MiniLM-L6-v2 (Apache-2.0), model.safetensors sha256 "
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
)


def made(source: Path, folder: Path, *, version: str) -> dict[str, object]:
    """Write both graphs and the tokenizer of *source* into *folder* and return what the manifest says of them."""
    model = AutoModelForSequenceClassification.from_pretrained(source, attn_implementation="eager").eval()
    write_float32(model, folder / FLOAT32)
    write_int8(folder / FLOAT32, folder / MODEL)
    tokenizer(source / TOKENIZER, folder / TOKENIZER)
    labels = [str(model.config.id2label[number]) for number in sorted(model.config.id2label)]
    weights = hashlib.sha256((source / "model.safetensors").read_bytes()).hexdigest()
    return {
        "slot": "nli", "name": NAME, "version": version, "licence": "Apache-2.0", "labels": labels,
        "max_length": MAX_LENGTH, "base": BASE, "weights": f"float32 model.safetensors sha256 {weights}",
        "card": "MODEL_CARD.md",
    }  # fmt: skip


def tokenizer(source: Path, target: Path) -> None:
    """Copy the tokenizer without truncation and padding: the caller decides, so that nothing is cut unseen."""
    described = json.loads(source.read_text(encoding="utf-8"))
    described["truncation"] = described["padding"] = None
    target.write_text(json.dumps(described, ensure_ascii=False, indent=2), encoding="utf-8")


def agreement(folder: Path, rows: Path, sample: int) -> dict[str, dict[str, float]]:
    """Return what int8 costs on each set: labels that agree, drift of probabilities, accuracy of both."""
    small, exact = (Judge(folder / name, folder / TOKENIZER) for name in (MODEL, FLOAT32))
    found = {}
    for path in sorted(rows.glob("*.jsonl")):
        part = sampled(path, sample)
        one, other = small.all(part), exact.all(part)
        drift = np.abs(one - other).max(axis=1)
        found[path.stem] = {
            "n": float(len(part)),
            "same_label": round(float((one.argmax(axis=1) == other.argmax(axis=1)).mean()), 4),
            "drift_mean": round(float(drift.mean()), 4),
            "drift_p99": round(float(np.quantile(drift, 0.99)), 4),
            **{f"int8_{name}": value for name, value in figures(part, one).items() if name != "n"},
            **{f"float32_{name}": value for name, value in figures(part, other).items() if name != "n"},
        }
    return found


def main() -> None:
    """Export, compare when asked, put into place."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder that train_nli.py wrote")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--rows", type=Path, help="folder of sets to compare int8 with float32 on")
    parser.add_argument("--sample", type=int, default=300, help="rows of each set in the comparison")
    parser.add_argument("--float32", type=Path, help="folder for a slot of the float32 file")
    options = parser.parse_args()
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        described = made(options.model, folder, version=options.version)
        if options.rows:
            print(json.dumps(agreement(folder, options.rows, options.sample), indent=1), flush=True)
        place(folder, options.out, described)
        if options.float32:
            name = f"{NAME}-float32"
            place(folder, options.float32, {**described, "name": name}, model=FLOAT32)
    print((options.out / "manifest.json").read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
