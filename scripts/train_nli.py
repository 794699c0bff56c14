"""Train the NLI cross-encoder on the rows of scripts/prepare_nli.py (SPEC-005 §5.3, §6; docs/models.md).

    python scripts/train_nli.py --start DIR_OR_ONNX --base DIR --rows build/nli --out build/nli-model --minutes 100

The learning rate falls linearly to zero with the share of the budget (--minutes or --samples) that is used. The order of
rows, the dropout and the mix are seeded; with --samples a run repeats itself, with --minutes it depends on the machine's
speed. It saves its whole state every --every minutes and goes on from there when started again with the same --out.

Labels: 0 entailment, 1 neutral, 2 contradiction, 3 "not entailment" of two-class sources, which trains the summed
probability of neutral and contradiction.

With --told the pairs that were written for it (nli_told.py) are learnt too, once a pass, and the other rows enter with the share --replay of
their weight. What the words of a written claim alone tell is added to the logits in the loss, so that nothing is gained by learning it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nli_told import files_of, leaning
from nli_told import rows as told_rows
from torch.nn import functional
from transformers import AutoModelForSequenceClassification, AutoTokenizer, logging

LABELS = {0: "entailment", 1: "neutral", 2: "contradiction"}
MAX_TOKENS = 256
BATCH_TOKENS = 3072
WARM_UP_STEPS = 200
# Times that a source enters one pass. Natural three-class pairs are scarce and worth repeating; what a generator made is
# learnt in few passes and would crowd them out.
MIX = {
    "snli": 2.0, "mnli": 2.0, "wiki_nli": 1.2, "cad": 1.0, "conjnli": 0.6, "fever": 1.0, "fever_symmetric": 2.0,
    "summedits": 2.0, "wice": 3.0, "begin": 2.0, "bump": 2.0, "fm2": 2.0, "fib": 1.0, "scone": 0.2, "breaking_nli": 0.2,
    "med": 0.3, "help": 0.3, "synthetic:SAME": 0.4, "synthetic:OTHER": 0.3, "synthetic:MIXED": 0.5,
}  # fmt: skip
OTHER_SYNTHETIC = 0.3
TOLD = {"told:copied": 0.4}

Row = dict[str, Any]


@dataclass
class Progress:
    """How far a run is; saved with the weights."""

    seconds: float = 0.0
    samples: int = 0
    steps: int = 0
    passes: int = 0
    batch: int = 0
    loss: float = 0.0


def rows_of(path: Path) -> list[Row]:
    """Return the rows of a JSON-lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def told(folder: Path, *, held: bool) -> list[Row]:
    """Return the pairs that were written for the model: those to learn from, with what their claims alone tell, or those held out."""
    found = list(told_rows(files_of(folder), held=held))
    return [row | {"lean": lean} for row, lean in zip(found, leaning(found), strict=True)]


def one_pass(rows: list[Row], seed: int, replay: float = 1.0) -> list[list[Row]]:
    """Return the batches of one pass, each of one padded length, in an order that only the seed decides."""
    rnd = random.Random(seed)
    buckets: dict[int, list[Row]] = {}
    for row in rows:
        written = row["src"].startswith("told:")
        share = TOLD.get(row["src"], 1.0) if written else replay * MIX.get(row["src"], OTHER_SYNTHETIC)
        for _ in range(int(share) + (rnd.random() < share % 1)):
            buckets.setdefault(-(-row["n"] // 16) * 16, []).append(row)
    batches = []
    for length in sorted(buckets):
        part = buckets[length]
        rnd.shuffle(part)
        size = max(8, min(64, BATCH_TOKENS // length))
        batches += [part[i : i + size] for i in range(0, len(part) - size + 1, size)]
    rnd.shuffle(batches)
    return batches


def encoded(tokenizer: Any, rows: list[Row]) -> Any:
    """Return the rows' pairs as padded tensors; few distinct lengths, since CPU kernels are compiled for each."""
    return tokenizer(
        [row["p"] for row in rows],
        [row["h"] for row in rows],
        truncation="longest_first",
        max_length=MAX_TOKENS,
        padding=True,
        pad_to_multiple_of=16,
        return_tensors="pt",
    )


def digest_of(rows: list[Row]) -> str:
    """Return the SHA-256 of the rows, in hexadecimal."""
    return hashlib.sha256("\n".join(json.dumps(row, sort_keys=True) for row in rows).encode()).hexdigest()


def count_tokens(tokenizer: Any, rows: list[Row]) -> None:
    """Set each row's length in tokens."""
    for at in range(0, len(rows), 2000):
        part = rows[at : at + 2000]
        ids = tokenizer(
            [row["p"] for row in part],
            [row["h"] for row in part],
            truncation="longest_first",
            max_length=MAX_TOKENS,
        )["input_ids"]
        for row, tokens in zip(part, ids, strict=True):
            row["n"] = len(tokens)


def loss_of(logits: torch.Tensor, labels: torch.Tensor, lean: torch.Tensor) -> torch.Tensor:
    """Return the mean negative log-likelihood; label 3 takes neutral and contradiction together."""
    log_p = functional.log_softmax(logits.float() + functional.pad(lean[:, None], (0, 2)), -1)
    three = -log_p.gather(1, labels.clamp(max=2)[:, None])[:, 0]
    two = -torch.logsumexp(log_p[:, 1:], 1)
    return torch.where(labels == 3, two, three).mean()


@torch.no_grad()
def accuracy(model: Any, tokenizer: Any, rows: list[Row]) -> float:
    """Return the share of rows whose label the model gives."""
    model.eval()
    right = 0
    ordered = sorted(rows, key=lambda row: int(row["n"]))
    for at in range(0, len(ordered), 32):
        part = ordered[at : at + 32]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(**encoded(tokenizer, part)).logits.float()
        for p, row in zip(logits.softmax(-1).tolist(), part, strict=True):
            two_class = row["y"] == 3 or row.get("two")
            right += (p[0] >= 0.5) == (row["y"] == 0) if two_class else p.index(max(p)) == row["y"]
    model.train()
    return right / len(rows)


def from_onnx(model: Any, path: Path) -> None:
    """Load the weights of a shipped int8 file into the model: each is its integer times its scale.

    The word embeddings stay those of the base, which training freezes. Raises ValueError for a file of another shape.
    """
    import onnx
    from onnx import numpy_helper

    stored = {i.name: numpy_helper.to_array(i) for i in onnx.load(str(path)).graph.initializer}

    def weight(name: str) -> torch.Tensor:
        whole = stored[f"{name}_quantized"].astype(np.float32) - stored[f"{name}_zero_point"].astype(np.float32)
        return torch.tensor(whole * stored[f"{name}_scale"])

    state = model.state_dict()
    loaded = {name: torch.tensor(stored[f"model.{name}"]) for name in state if f"model.{name}" in stored}
    for name in ("bert.pooler.dense.weight", "classifier.weight"):
        loaded[name] = weight(f"model.{name}").T.contiguous()
    for name in ("token_type_embeddings", "position_embeddings"):
        loaded[f"bert.embeddings.{name}.weight"] = weight(f"model.bert.embeddings.{name}.weight")
    unnamed = [name.removesuffix("_quantized") for name in stored if name.startswith("val_") and "_quantized" in name]
    parts = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
    parts += ("intermediate.dense", "output.dense")
    for at, name in enumerate(sorted(unnamed, key=lambda name: int(name[4:]))):
        loaded[f"bert.encoder.layer.{at // 6}.{parts[at % 6]}.weight"] = weight(name).T.contiguous()
    missing = set(state) - set(loaded) - {"bert.embeddings.word_embeddings.weight"}
    if missing or any(state[name].shape != value.shape for name, value in loaded.items()):
        raise ValueError(f"{path} is not an int8 export of this architecture: {sorted(missing)[:3]}")
    model.load_state_dict({**state, **loaded})


def optimiser_of(model: Any, rate: float) -> torch.optim.Optimizer:
    """Return AdamW over everything but the word embeddings, half of all weights, which few rows would only spoil."""
    model.get_input_embeddings().weight.requires_grad_(requires_grad=False)
    named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    plain = ("bias", "LayerNorm.weight")
    return torch.optim.AdamW(
        [
            {"params": [weight for name, weight in named if not name.endswith(plain)], "weight_decay": 0.01},
            {"params": [weight for name, weight in named if name.endswith(plain)], "weight_decay": 0.0},
        ],
        lr=rate,
        fused=True,
    )


class Run:
    """One training run: its model, its optimiser and how far it is."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.state = args.out / "state.pt"
        self.tokenizer = AutoTokenizer.from_pretrained(args.base)
        source = args.start if args.start and args.start.is_dir() else args.base
        self.model = AutoModelForSequenceClassification.from_pretrained(
            source,
            num_labels=3,
            id2label=LABELS,
            label2id={name: number for number, name in LABELS.items()},
            attn_implementation="eager",  # the fused one takes half of a step on a CPU, most of it going back
        )
        if args.start and args.start.is_file():
            from_onnx(self.model, args.start)
        self.optimiser = optimiser_of(self.model, args.rate)
        self.progress = Progress()
        if self.state.exists():
            saved = torch.load(self.state, weights_only=True)
            self.model.load_state_dict(saved["model"])
            self.optimiser.load_state_dict(saved["optimiser"])
            self.progress = Progress(**saved["progress"])
            torch.set_rng_state(saved["rng"])

    @property
    def used(self) -> float:
        """Share of the budget that is used."""
        if self.args.samples is not None:
            return self.progress.samples / self.args.samples if self.args.samples else 1.0
        return self.progress.seconds / (self.args.minutes * 60)

    def batches(self, rows: list[Row]) -> Iterator[list[Row]]:
        """Yield batches from where the run stands until the budget is used."""
        progress = self.progress
        while True:
            batches = one_pass(rows, self.args.seed + progress.passes, self.args.replay)
            while progress.batch < len(batches):
                if self.used >= 1.0:
                    return
                progress.batch += 1
                yield batches[progress.batch - 1]
            progress.passes, progress.batch = progress.passes + 1, 0

    def step(self, rows: list[Row]) -> None:
        """Learn from one batch."""
        began, progress = time.monotonic(), self.progress
        warm = min(1.0, (progress.steps + 1) / WARM_UP_STEPS)
        for group in self.optimiser.param_groups:
            group["lr"] = self.args.rate * warm * max(0.0, 1.0 - self.used)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = self.model(**encoded(self.tokenizer, rows)).logits
        lean = torch.tensor([row.get("lean", 0.0) for row in rows])
        loss = loss_of(logits, torch.tensor([row["y"] for row in rows]), lean)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        self.optimiser.zero_grad()
        progress.loss = loss.item() if not progress.steps else 0.99 * progress.loss + 0.01 * loss.item()
        progress.steps += 1
        progress.samples += len(rows)
        progress.seconds += time.monotonic() - began

    def save(self) -> None:
        """Save the model in the library's form and the whole state, by a rename: a kill leaves the one before."""
        self.model.save_pretrained(self.args.out)
        self.tokenizer.save_pretrained(self.args.out)
        fresh = self.state.with_suffix(".new")
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimiser": self.optimiser.state_dict(),
                "progress": asdict(self.progress),
                "rng": torch.get_rng_state(),
            },
            fresh,
        )
        fresh.replace(self.state)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train the NLI cross-encoder.")
    parser.add_argument("--base", type=Path, required=True, help="folder of the base encoder and its tokenizer")
    parser.add_argument("--start", type=Path, help="weights to start from: a folder, or an int8 ONNX file that we ship")
    parser.add_argument("--rows", type=Path, required=True, help="folder that prepare_nli.py wrote")
    parser.add_argument("--told", type=Path, help="folder of the pairs that were written for it")
    parser.add_argument(
        "--replay", type=float, default=1.0, help="share of their weight that the other rows enter a pass with"
    )
    parser.add_argument("--out", type=Path, required=True)
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=float)
    budget.add_argument("--samples", type=int, help="rows to learn from; 0 writes the weights that it would start from")
    parser.add_argument("--rate", type=float, default=6e-5)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--every", type=float, default=10.0, help="minutes of training between checkpoints")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    logging.set_verbosity_error()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    run = Run(args)
    train = args.rows / "train.jsonl"
    rows = rows_of(train)
    looks = {path.stem: random.Random(1).sample(part := rows_of(path), min(500, len(part)))
             for path in sorted((args.rows / "look").glob("*.jsonl"))}  # fmt: skip
    if args.told:
        rows += told(args.told, held=False)
        looks["told"] = random.Random(1).sample(part := told(args.told, held=True), min(500, len(part)))
    digest = digest_of(rows)
    for part in (rows, *looks.values()):
        count_tokens(run.tokenizer, part)
    print(f"{len(rows)} rows, sha256:{digest}, from step {run.progress.steps}", flush=True)
    saved = run.progress.seconds
    for batch in run.batches(rows):
        run.step(batch)
        done = run.progress
        if done.steps % 100 == 0:
            rate = done.samples / done.seconds
            print(f"step {done.steps} samples {done.samples} pass {done.passes} {done.seconds / 60:.1f} min "
                  f"{rate:.0f}/s loss {done.loss:.4f}", flush=True)  # fmt: skip
        if done.seconds - saved >= args.every * 60:
            saved = done.seconds
            run.save()
            print(
                {name: round(accuracy(run.model, run.tokenizer, part), 4) for name, part in looks.items()}, flush=True
            )
    run.save()
    scores = {name: round(accuracy(run.model, run.tokenizer, part), 4) for name, part in looks.items()}
    print(json.dumps({"progress": asdict(run.progress), "rows": digest, "accuracy": scores}), flush=True)


if __name__ == "__main__":
    main()
