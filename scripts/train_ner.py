"""Train a token classifier for names from the MiniLM base, export it to int8 and measure it (docs/models.md).

    python scripts/train_ner.py --data DATA --base DIR --out build/ner-slot --held build/ner-held [--passes 6]

Data are the sets of scripts/ner_data.json: WNUT-17, WikiGold and the synthetic PII texts of presidio-research, each
with a part held back. Kinds: PERSON, ORG, LOC, MISC (products, works, peoples, events). The words of CoNLL files are
put together again as people write them, since the model reads text, not lists of words. Seeded: two runs on one
machine give the same weights.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from licensed_data import Data
from tokenizers import Tokenizer
from torch.nn import functional
from transformers import AutoModelForTokenClassification, logging

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "services"))  # the training environment has torch, and no interlock

from interlock.dpe.inference.ner import CASES, KINDS, OUTSIDE, Span, token_types  # noqa: E402 - found by the line above

LABELS = (OUTSIDE, *(f"{mark}-{kind}" for kind in KINDS for mark in "BI"))
IGNORED = -100
SAME = {
    "PER": "PERSON", "ORG": "ORG", "LOC": "LOC", "MISC": "MISC",
    "person": "PERSON", "location": "LOC", "corporation": "ORG", "group": "ORG", "product": "MISC",
    "creative-work": "MISC",
    "PERSON": "PERSON", "ORGANIZATION": "ORG", "GPE": "LOC", "NRP": "MISC", "STREET_ADDRESS": "?",
}  # fmt: skip
CLOSING = re.compile(r"^(?:[.,;:!?%)\]}]|'s|'|’s|n't|'re|'ve|'ll|'d|'m)$", re.IGNORECASE)
OPENING = frozenset("([{$#@")
MAX_LENGTH = 128
NAME = "interlock-ner-minilm-l6"
BASE = (
    "all-MiniLM-L6-v2 (Apache-2.0), model.safetensors sha256 "
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
)
BATCH_TOKENS = 2048

Text = tuple[str, list[Span]]


def conll(text: str, column: int) -> Iterator[tuple[int, Text]]:
    """Yield the sentences of a CoNLL file as text with spans, each with the number of its document."""
    document, words, marks = 0, [], []
    for line in [*text.splitlines(), ""]:
        parts = line.split()
        if parts and parts[0] == "-DOCSTART-":
            document += 1
        elif len(parts) > column:
            words.append(parts[0])
            marks.append(parts[column])
        elif words:
            yield document, joined(words, marks)
            words, marks = [], []


def joined(words: list[str], marks: list[str]) -> Text:
    """Return words as one text, and the runs of their marks as spans."""
    text, spans = "", list[Span]()
    for at, (word, mark) in enumerate(zip(words, marks, strict=True)):
        glued = not text or CLOSING.match(word) or words[at - 1] in OPENING
        text += word if glued else f" {word}"
        begin, kind = len(text) - len(word), SAME.get(mark[2:], "")
        goes_on = mark[:1] == "I" and at and marks[at - 1][2:] == mark[2:]
        if kind and goes_on:
            spans[-1] = (spans[-1][0], len(text), kind)
        elif kind:
            spans.append((begin, len(text), kind))
    return text, spans


def kept_back(key: object) -> bool:
    """Whether a document or a template belongs to the fifth that is only measured on."""
    return int(hashlib.sha256(str(key).encode()).hexdigest()[:8], 16) % 5 == 0


def sets_of(data: Data) -> tuple[list[Text], dict[str, list[Text]]]:
    """Return what is trained on, and the sets that are measured on; no document or template is in both."""
    read = conll(data.text("wnut17/wnut17train.conll.gz", train=True), 1)
    train = [text for _, text in read]
    held = {
        "wnut17_dev": [text for _, text in conll(data.text("wnut17/emerging.dev.conll.gz", train=False), 1)],
        "wnut17_test": [text for _, text in conll(data.text("wnut17/emerging.test.annotated.gz", train=False), 1)],
        "wikigold_fifth": [],
        "presidio_fifth": [],
    }
    for document, text in conll(data.text("wikigold/wikigold.conll.txt.gz", train=True), 1):
        (held["wikigold_fifth"] if kept_back(document) else train).append(text)
    for row in json.loads(data.text("presidio_synth/synth_dataset_v2.json.gz", train=True)):
        spans = [(s["start_position"], s["end_position"], SAME[s["entity_type"]])
                 for s in row["spans"] if s["entity_type"] in SAME]  # fmt: skip
        (held["presidio_fifth"] if kept_back(row["template_id"]) else train).append((row["full_text"], sorted(spans)))
    return train, held


def example(tokenizer: Any, text: Text) -> dict[str, list[int]]:
    """Return ids, cases and labels of a text; only the first token of a word has a label."""
    encoded = tokenizer.encode(text[0])
    labels, before = [], None
    for word, (start, _) in zip(encoded.word_ids, encoded.offsets, strict=True):
        labels.append(IGNORED if word is None or word == before else label_at(text[1], start))
        before = word
    types = token_types(text[0], encoded.word_ids, encoded.offsets)
    return {"ids": encoded.ids, "types": types, "labels": labels}


def label_at(spans: list[Span], start: int) -> int:
    """Return the label of the word that begins at *start*; addresses are neither name nor none."""
    for begin, end, kind in spans:
        if begin <= start < end:
            return IGNORED if kind == "?" else LABELS.index(f"{'B' if start == begin else 'I'}-{kind}")
    return 0


def batches(examples: list[dict[str, list[int]]], rnd: random.Random) -> list[list[dict[str, list[int]]]]:
    """Return one pass in batches of like length, in an order that only the seed decides."""
    order = sorted(examples, key=lambda one: (len(one["ids"]) // 8, rnd.random()))
    made: list[list[dict[str, list[int]]]] = [[]]
    for one in order:
        if (len(made[-1]) + 1) * len(one["ids"]) > BATCH_TOKENS or len(made[-1]) == 32:
            made.append([])
        made[-1].append(one)
    rnd.shuffle(made)
    return made


def padded(rows: list[list[int]], empty: int) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [empty] * (width - len(row)) for row in rows])


def fresh_model(base: Path) -> Any:
    """Return the base with a head for the labels, and a token type for each case."""
    model = AutoModelForTokenClassification.from_pretrained(
        base, num_labels=len(LABELS), id2label=dict(enumerate(LABELS)),
        label2id={label: number for number, label in enumerate(LABELS)}, attn_implementation="eager",
    )  # fmt: skip
    old = model.bert.embeddings.token_type_embeddings.weight.data
    new = torch.nn.Embedding(CASES, old.shape[1])
    new.weight.data[:] = old[0] + 0.02 * torch.randn(CASES, old.shape[1])
    model.bert.embeddings.token_type_embeddings = new
    model.config.type_vocab_size = CASES
    return model


def learn(model: Any, examples: list[dict[str, list[int]]], *, passes: int, rate: float, seed: int) -> None:
    """Train with a rate that rises for a tenth and then falls to zero."""
    rnd = random.Random(seed)
    plan = [batch for _ in range(passes) for batch in batches(examples, rnd)]
    model.get_input_embeddings().weight.requires_grad = False
    optimiser = torch.optim.AdamW([w for w in model.parameters() if w.requires_grad], lr=rate, weight_decay=0.01)
    model.train()
    began, running = time.monotonic(), 0.0
    for step, batch in enumerate(plan):
        share = step / len(plan)
        for group in optimiser.param_groups:
            group["lr"] = rate * min(share * 10, 1.0) * (1.0 - share)
        ids = padded([one["ids"] for one in batch], 0)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(
                input_ids=ids, attention_mask=(ids != 0).long(),
                token_type_ids=padded([one["types"] for one in batch], 0),
            ).logits  # fmt: skip
        labels = padded([one["labels"] for one in batch], IGNORED)
        loss = functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        running = loss.item() if not step else 0.98 * running + 0.02 * loss.item()
        if step % 50 == 0:
            print(f"step {step} of {len(plan)}, {time.monotonic() - began:.0f} s, loss {running:.4f}", flush=True)


def main() -> None:
    """Train, export, write the held-back sets for measure_ner.py."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets of ner_data.json")
    parser.add_argument("--base", type=Path, required=True, help="folder of the base encoder and its tokenizer")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--float32", type=Path, help="folder for a slot of the float32 file")
    parser.add_argument("--held", type=Path, required=True, help="folder for the sets that are only measured on")
    parser.add_argument("--passes", type=int, default=6)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    logging.set_verbosity_error()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    data = Data.described_by(HERE / "ner_data.json", options.data)
    train, held = sets_of(data)
    options.held.mkdir(parents=True, exist_ok=True)
    for name, texts in held.items():
        lines = (json.dumps({"text": text, "spans": spans}, ensure_ascii=False) for text, spans in texts)
        (options.held / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer = Tokenizer.from_file(str(options.base / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_LENGTH)
    examples = [example(tokenizer, text) for text in train]
    print(f"{len(examples)} texts; " + "; ".join(data.attribution()), flush=True)
    model = fresh_model(options.base)
    learn(model, examples, passes=options.passes, rate=options.rate, seed=options.seed)
    export(model.eval(), tokenizer, options.out, options.float32)


def export(model: Any, tokenizer: Any, out: Path, float32: Path | None) -> None:
    """Write the slot folder of the model, and one of the float32 file where Triton batches on a GPU."""
    import tempfile

    from onnx_files import FLOAT32, MODEL, TOKENIZER, place, write_float32, write_int8

    described: dict[str, object] = {
        "slot": "ner", "name": NAME, "version": "1.0.0", "licence": "Apache-2.0", "labels": list(LABELS),
        "max_length": MAX_LENGTH, "base": BASE, "card": "MODEL_CARD.md",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        write_float32(model, folder / FLOAT32)
        write_int8(folder / FLOAT32, folder / MODEL)
        tokenizer.no_truncation()
        tokenizer.save(str(folder / TOKENIZER))
        place(folder, out, described)
        if float32:
            place(folder, float32, {**described, "name": f"{NAME}-float32"}, model=FLOAT32)


if __name__ == "__main__":
    main()
