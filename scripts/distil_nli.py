"""Train a teacher on the rows, let it read all pairs, and train the small model on what it says (docs/models.md).

    python scripts/distil_nli.py --teacher build/mpnet --start build/start --rows build/nli --twins build/twins \
        --told scripts/nli_told --out build/distilled --teacher-seconds 150 --student-seconds 150,110 --control-seconds 45

The teacher is an encoder of 110 M weights, fine-tuned on the rows of prepare_nli.py, the twins of nli_twins.py and the
pairs that were written for it (nli_told.py). The student, of the size that ships, learns its probabilities (two thirds of the loss) and
the labels (one third) on the same pairs and on pairs that nobody labelled; where the teacher is known to be weak, the labels
alone. A second student does so without the twins. A control has the same start and steps of the same kind on the old rows
with their labels alone: what it does not reach, the teacher and the new pairs have brought. A tenth of MultiNLI and a part of
the twins and of the written pairs, by premise, are held out of everything. Needs a GPU; seeded, but a budget in seconds depends
on the machine.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nli_distortions import NOT_ENTAILED
from nli_texts import content, share
from nli_told import files_of, leaning
from nli_told import rows as told_rows
from tokenizers import Tokenizer
from torch.nn import functional
from train_nli import LABELS, MAX_TOKENS, Row, rows_of
from transformers import AutoModelForSequenceClassification, logging

HELD_SHARE, HELD_TWINS = 0.85, 0.96
UNLABELLED = -1
NATURAL = {
    "snli": 2.0, "mnli": 2.5, "wiki_nli": 1.2, "cad": 1.2, "conjnli": 0.6, "fever": 1.2, "fever_symmetric": 2.0,
    "summedits": 3.0, "wice": 3.0, "begin": 3.0, "bump": 3.0, "fm2": 3.0, "fib": 1.0, "scone": 0.2, "breaking_nli": 0.2,
    "med": 0.3, "help": 0.3, "synthetic:SAME": 0.5, "synthetic:OTHER": 0.3, "synthetic:MIXED": 0.5, "unlabelled": 0.7,
}  # fmt: skip
SYNTHETIC, TWIN, TOLD = 0.4, 0.5, 2.5
# Words exchanged by a list are wrong in context too often, and teach that a changed word is a changed meaning (ADR 45).
LEXICAL_TWIN = 0.15
LEXICAL = ("twin:opposite", "twin:sibling", "twin:direction", "twin:compared")
# What the teacher is weak at: these labels are by construction, and stand alone.
BY_LABEL = ("med", "help", "scone", "breaking_nli")


def weight_of(source: str) -> float:
    """How often a row of a source enters one pass."""
    if source.startswith("told:"):
        return 0.5 if source == "told:copied" else TOLD
    if source.startswith("twin:"):
        return LEXICAL_TWIN if source.startswith(LEXICAL) else TWIN
    return NATURAL.get(source, SYNTHETIC)


def paired_anew(rows: list[Row], chance: random.Random, most: int) -> list[Row]:
    """Return claims beside the passages of other rows of their source that share words with them; nobody labelled them."""
    by_word: dict[tuple[str, str], list[int]] = defaultdict(list)
    natural = [row for row in rows if not row["src"].startswith(("twin:", "synthetic:", "told:"))]
    for at, row in enumerate(natural):
        for word in sorted(content(row["p"])):
            if len(word) > 4:
                by_word[row["src"], word].append(at)
    found: list[Row] = []
    order = list(range(len(natural)))
    chance.shuffle(order)
    for at in order:
        row = natural[at]
        near: Counter[int] = Counter()
        for word in sorted(content(row["h"])):
            kin = by_word.get((row["src"], word), ())
            if 2 <= len(kin) <= 400:
                near.update(chance.sample(kin, min(20, len(kin))))
        other = next((natural[k] for k, _ in near.most_common(4) if natural[k]["p"] != row["p"]), None)
        if other is not None:
            found.append({"p": other["p"], "h": row["h"], "y": UNLABELLED, "src": "unlabelled"})
        if len(found) >= most:
            break
    return found


class Pairs:
    """Tokenised pairs on the device: one flat array, gathered batch by batch."""

    def __init__(self, rows: list[Row], tokenizer: Path, device: str, *, second_type: bool) -> None:
        reader = Tokenizer.from_file(str(tokenizer))
        reader.no_padding()
        reader.enable_truncation(MAX_TOKENS, strategy="longest_first")
        read = reader.encode_batch([(row["p"], row["h"]) for row in rows])
        self.lengths = np.array([len(one.ids) for one in read])
        starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])
        as_tensor = lambda found, kind: torch.as_tensor(found, dtype=kind, device=device)  # noqa: E731
        self.ids = as_tensor(np.concatenate([one.ids for one in read]), torch.int32)
        types = np.concatenate([one.type_ids for one in read])
        self.types = as_tensor(types, torch.int8) if second_type else None
        self.starts, self.sizes = as_tensor(starts, torch.int64), as_tensor(self.lengths, torch.int64)
        self.labels = as_tensor([row["y"] for row in rows], torch.int64)
        # The least share of the label in the loss.
        trusted = [1.0 if row["src"] in BY_LABEL else 0.5 if row["src"].startswith("told:") else 1 / 3 for row in rows]
        self.trusted = as_tensor(trusted, torch.float32)
        written = [at for at, row in enumerate(rows) if row["src"].startswith("told:")]
        self.leaning = torch.zeros(len(rows), device=device)
        self.leaning[written] = as_tensor(leaning([rows[at] for at in written]), torch.float32)
        self.device = device

    def inputs(self, chosen: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return a padded batch."""
        sizes = self.sizes[chosen]
        longest = int(-(-int(sizes.max()) // 8) * 8)
        place = torch.arange(longest, device=self.device)[None]
        mask = place < sizes[:, None]
        at = (self.starts[chosen][:, None] + place).clamp(max=len(self.ids) - 1)
        given = {"input_ids": torch.where(mask, self.ids[at].long(), 0), "attention_mask": mask.long()}
        if self.types is not None:
            given["token_type_ids"] = torch.where(mask, self.types[at].long(), 0)
        else:
            given["input_ids"] = torch.where(mask, given["input_ids"], 1)
        return given

    def batches(self, chosen: np.ndarray[Any, Any], tokens: int, chance: np.random.Generator) -> Iterator[torch.Tensor]:
        """Yield batches of like lengths, at most *tokens* with the padding, in random order."""
        noisy = self.lengths[chosen] + chance.random(len(chosen)) * 8
        ordered = chosen[np.argsort(noisy)]
        cuts, start, longest = [], 0, 0
        for at, row in enumerate(ordered):
            longest = max(longest, int(self.lengths[row]))
            if (at + 1 - start) * longest > tokens and at > start:
                cuts.append(ordered[start:at])
                start, longest = at, int(self.lengths[row])
        cuts.append(ordered[start:])
        for number in chance.permutation(len(cuts)):
            yield torch.as_tensor(cuts[number], dtype=torch.int64, device=self.device)


def label_loss(log_p: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return each row's negative log-likelihood; label 3 takes neutral and contradiction together, no label costs nothing."""
    three = -log_p.gather(1, labels.clamp(min=0, max=2)[:, None])[:, 0]
    two = -torch.logsumexp(log_p[:, 1:], 1)
    loss = torch.where(labels == NOT_ENTAILED, two, three)
    return torch.where(labels == UNLABELLED, torch.zeros_like(loss), loss)


def one_pass(rows: list[Row], allowed: np.ndarray[Any, Any], chance: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return the rows of one pass, as often as their source is to enter it."""
    weights = np.array([weight_of(row["src"]) for row in rows]) * allowed
    return np.repeat(np.arange(len(rows)), np.floor(weights + chance.random(len(rows))).astype(int))


def fit(model: Any, pairs: Pairs, rows: list[Row], allowed: np.ndarray[Any, Any], *, seconds: float, rate: float,
        tokens: int, seed: int, taught: torch.Tensor | None = None, frozen: bool = False) -> dict[str, float]:  # fmt: skip
    """Train a model within a budget of seconds; *taught* holds the teacher's probabilities of every row."""
    chance = np.random.default_rng(seed)
    torch.manual_seed(seed)
    if frozen:
        model.get_input_embeddings().weight.requires_grad_(requires_grad=False)
    named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    plain = ("bias", "LayerNorm.weight")
    optimiser = torch.optim.AdamW(
        [
            {"params": [w for n, w in named if not n.endswith(plain)], "weight_decay": 0.01},
            {"params": [w for n, w in named if n.endswith(plain)], "weight_decay": 0.0},
        ],
        lr=rate,
        fused=True,
    )
    model.train()
    began, samples, steps, passes = time.monotonic(), 0, 0, 0
    running = 0.0
    while True:
        for batch in pairs.batches(one_pass(rows, allowed, chance), tokens, chance):
            used = (time.monotonic() - began) / seconds
            if used >= 1.0:
                model.eval()
                done = {"samples": samples, "steps": steps, "passes": passes, "loss": float(running)}
                print("trained", json.dumps(done), flush=True)
                return done
            warm = min(1.0, (steps + 1) / 150)
            for group in optimiser.param_groups:
                group["lr"] = rate * warm * (1.0 - used)
            with torch.autocast(pairs.device, dtype=torch.bfloat16):
                logits = model(**pairs.inputs(batch)).logits
            log_p = functional.log_softmax(logits.float(), -1)
            # What the words of the claim alone tell is given, so that nothing is gained by learning it.
            given = functional.pad(pairs.leaning[batch][:, None], (0, 2))
            loss = label_loss(functional.log_softmax(logits.float() + given, -1), pairs.labels[batch])
            if taught is not None:
                told = taught[batch]
                soft = -(told * log_p).sum(-1)
                agreed = told.gather(1, pairs.labels[batch].clamp(0, 2)[:, None])[:, 0]
                agreed = torch.where(pairs.labels[batch] == NOT_ENTAILED, 1 - told[:, 0], agreed)
                trusted = pairs.trusted[batch]
                by_label = (agreed > 0.1) | (trusted >= 0.5)
                share_of_label = torch.where(by_label & (pairs.labels[batch] >= 0), trusted, 0.0)
                loss = share_of_label * loss + (1 - share_of_label) * soft
            loss = loss.mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_([w for _, w in named], 1.0)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            if steps % 20 == 0:
                running = loss.item() if not steps else 0.8 * running + 0.2 * loss.item()
            if steps % 400 == 0:
                print(f"step {steps} samples {samples} pass {passes} used {used:.2f} loss {running:.4f}", flush=True)
            steps += 1
            samples += len(batch)
        passes += 1


@torch.no_grad()
def told_by(model: Any, pairs: Pairs, tokens: int) -> torch.Tensor:
    """Return a model's probabilities of every pair."""
    model.eval()
    found = torch.zeros(len(pairs.lengths), 3, device=pairs.device)
    for batch in pairs.batches(np.arange(len(pairs.lengths)), tokens, np.random.default_rng(0)):
        with torch.autocast(pairs.device, dtype=torch.bfloat16):
            found[batch] = model(**pairs.inputs(batch)).logits.float().softmax(-1)
    return found


def figures(rows: list[Row], told: np.ndarray[Any, Any]) -> dict[str, float]:
    """Return the accuracy of one set: three classes, or entailed or not where that is all that is labelled."""
    true = np.array([row["y"] for row in rows])
    two = (true == NOT_ENTAILED).any() or set(true) <= {0, NOT_ENTAILED}
    right = ((told[:, 0] >= 0.5) == (true == 0)) if two else told.argmax(1) == true
    found = {"n": len(rows), "accuracy": float(right.mean())}
    ones, zeros = told[true == 0, 0], told[true != 0, 0]
    if len(ones) and len(zeros):
        ranks = np.searchsorted(np.sort(zeros), ones, "left") + np.searchsorted(np.sort(zeros), ones, "right")
        found["auroc"] = float(ranks.mean() / 2 / len(zeros))
    return {name: round(value, 4) for name, value in found.items()}


def report(name: str, model: Any, sets: dict[str, tuple[list[Row], Pairs]], tokens: int) -> dict[str, Any]:
    """Print and return the figures of a model on the sets that nothing was trained on."""
    found = {}
    for title, (rows, pairs) in sets.items():
        told = told_by(model, pairs, tokens).cpu().numpy()
        found[title] = figures(rows, told)
        if title in ("twins_held", "told_held"):
            for kind in sorted({row["src"] for row in rows}):
                part = [at for at, row in enumerate(rows) if row["src"] == kind]
                entailed = np.array([rows[at]["y"] == 0 for at in part])
                right = (told[part, 0] >= 0.5) == entailed
                if len(part) >= 20:
                    found[kind] = {
                        "n": len(part),
                        "faithful": round(float(right[entailed].mean()), 3) if entailed.any() else None,
                        "bent": round(float(right[~entailed].mean()), 3) if (~entailed).any() else None,
                    }
    print(name, json.dumps(found), flush=True)
    return found


def opened(folder: Path, device: str) -> Any:
    """Return a three-class model from a folder of the library's form."""
    return AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=3, id2label=LABELS, label2id={name: number for number, name in LABELS.items()}
    ).to(device)


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", type=Path, required=True, help="folder of the teacher's base and its tokenizer")
    parser.add_argument("--start", type=Path, required=True, help="folder of the student's weights and its tokenizer")
    parser.add_argument("--rows", type=Path, required=True, help="folder that prepare_nli.py wrote")
    parser.add_argument("--twins", type=Path, required=True, help="folder that nli_twins.py wrote")
    parser.add_argument("--told", type=Path, required=True, help="folder of the pairs that were written for it")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--teacher-seconds", type=float, default=185)
    parser.add_argument("--student-seconds", default="150,110", help="of the student, and of the one without twins")
    parser.add_argument("--control-seconds", type=float, default=45)
    parser.add_argument("--unlabelled", type=int, default=90_000)
    parser.add_argument("--most", type=int, default=0, help="rows to keep, to try the script; 0 keeps all")
    parser.add_argument("--tokens", type=int, default=49_152, help="tokens of a batch")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--device", default="cuda")
    return parser.parse_args()


def split(options: argparse.Namespace, chance: random.Random) -> tuple[list[Row], dict[str, list[Row]]]:
    """Return the rows to train on and the sets that are held out, by premise."""
    blocks = files_of(options.told)
    rows = rows_of(options.rows / "train.jsonl") + rows_of(options.twins / "twins.jsonl")
    rows += told_rows(blocks, held=False)
    held = {path.stem: rows_of(path) for path in sorted((options.rows / "eval").glob("*.jsonl"))}
    held["mnli_held"] = [row for row in rows if row["src"] == "mnli" and share(row["p"]) >= HELD_SHARE]
    held["twins_held"] = [row for row in rows if row["src"].startswith("twin:") and share(row["p"]) >= HELD_TWINS]
    held["told_held"] = list(told_rows(blocks, held=True))
    premises = {row["p"] for name in ("mnli_held", "twins_held", "told_held") for row in held[name]}
    rows = [row for row in rows if row["p"] not in premises]
    chance.shuffle(rows)
    if options.most:
        rows, held = rows[: options.most], {name: part[:12] for name, part in held.items()}
    return rows, {name: part for name, part in held.items() if part}


class Session:
    """The rows, the budgets and what was measured."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.began = options, time.monotonic()
        chance = random.Random(options.seed)
        self.rows, self.held = split(options, chance)
        labelled = len(self.rows)
        self.rows += paired_anew(self.rows, chance, options.unlabelled)
        self.labelled = np.array([row["y"] != UNLABELLED for row in self.rows], dtype=float)
        self.untwinned = np.array([not row["src"].startswith("twin:") for row in self.rows], dtype=float)
        self.old = self.labelled * self.untwinned * np.array([not row["src"].startswith("told:") for row in self.rows])
        self.results: dict[str, Any] = {}
        self.say(f"{labelled} labelled rows, {len(self.rows) - labelled} not labelled")

    def say(self, what: str) -> None:
        """Tell what is done, and when."""
        print(f"{time.monotonic() - self.began:6.1f} s {what}", flush=True)

    def read(self, folder: Path, *, second_type: bool) -> tuple[Pairs, dict[str, tuple[list[Row], Pairs]]]:
        """Return the rows and the held sets as a model's tokenizer reads them."""
        tokenizer, device = folder / "tokenizer.json", self.options.device
        sets = {n: (part, Pairs(part, tokenizer, device, second_type=second_type)) for n, part in self.held.items()}
        return Pairs(self.rows, tokenizer, device, second_type=second_type), sets

    def teach(self) -> torch.Tensor:
        """Train the teacher and return what it says of every pair."""
        options = self.options
        reading, sets = self.read(options.teacher, second_type=False)
        teacher = opened(options.teacher, options.device)
        self.results["teacher training"] = fit(
            teacher, reading, self.rows, self.labelled, seconds=options.teacher_seconds, rate=5e-5,
            tokens=options.tokens // 2, seed=options.seed,
        )  # fmt: skip
        self.results["teacher"] = report("teacher", teacher, sets, options.tokens)
        taught = told_by(teacher, reading, options.tokens)
        np.save(options.out / "taught.npy", taught.half().cpu().numpy())
        self.say("teacher has read all pairs")
        return taught

    def learn(self, taught: torch.Tensor) -> None:
        """Train and save the students, then the control that is to show what teacher and new pairs brought."""
        options = self.options
        reading, sets = self.read(options.start, second_type=True)
        same = {"rate": 3e-4, "tokens": options.tokens, "seed": options.seed, "frozen": True}
        self.results["before"] = report("before", opened(options.start, options.device), sets, options.tokens)
        mixes = {"student": np.ones(len(self.rows)), "untwinned": self.untwinned}
        for (name, mix), seconds in zip(mixes.items(), options.student_seconds.split(","), strict=False):
            student = opened(options.start, options.device)
            done = fit(student, reading, self.rows, mix, seconds=float(seconds), taught=taught, **same)
            self.results[name] = {"training": done, **report(name, student, sets, options.tokens)}
            student.save_pretrained(options.out / name)
            shutil.copy(options.start / "tokenizer.json", options.out / name)
            self.say(f"{name} trained")
        if options.control_seconds:
            control = opened(options.start, options.device)
            fit(control, reading, self.rows, self.old, seconds=options.control_seconds, **same)
            self.results["control"] = report("control", control, sets, options.tokens)


def main() -> None:
    """Teach, learn, and write what was measured."""
    options = arguments()
    logging.set_verbosity_error()
    torch.backends.cuda.matmul.allow_tf32 = True
    options.out.mkdir(parents=True, exist_ok=True)
    session = Session(options)
    session.learn(session.teach())
    (options.out / "results.json").write_text(json.dumps(session.results, indent=1), encoding="utf-8")
    session.say("done")


if __name__ == "__main__":
    main()
