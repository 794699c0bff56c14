"""Build the rows that scripts/train_nli.py trains on, and the sets to measure with (docs/models.md).

    python scripts/prepare_nli.py --data DATA --out build/nli [--sample 1500]

DATA is the folder of the sets of nli_data.json, which names each file's hash and each set's licence and tier: another
file, or one that may not be trained on, is refused. Writes train.jsonl, eval/ (all rows of sets that nothing here
trains on) and look/ (300 rows of three of them, for a glance while training). A row is {"p": premise, "h": hypothesis,
"y": label, "src": source}; labels: 0 entailment, 1 neutral, 2 contradiction, 3 "not entailment" of two-class sources.
The same data give the same bytes. Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from licensed_data import Data, NotAllowedError
from nli_distortions import CONTRADICTED, ENTAILED, NEUTRAL, NOT_ENTAILED, Document, Generator
from nli_texts import clean, sentences, share, window

Row = dict[str, Any]
Columns = tuple[str, str, str]

MANIFEST = Path(__file__).resolve().parent / "nli_data.json"
LABELS = {
    **dict.fromkeys(("entailment", "entailed", "SUPPORTS", "SUPPORTED", "Supports", "e"), ENTAILED),
    **dict.fromkeys(("neutral", "NOT_ENOUGH_INFO", "Neutral", "n"), NEUTRAL),
    **dict.fromkeys(("contradiction", "REFUTES", "REFUTED", "Refutes", "c"), CONTRADICTED),
    **dict.fromkeys(("not_entailment", "not-entailed"), NOT_ENTAILED),
}
PREMISES: Columns = ("premise", "hypothesis", "label")
SENTENCES: Columns = ("sentence1", "sentence2", "gold_label")
EDITED: Columns = ("sentence1_edited", "sentence2_edited", "gold_label_edited")
CONJUNCTIONS: Columns = ("Premise", "Hypothesis", "Label")
LOOKS = ("snli_test", "wiki_nli_test", "fever_dev")
LOOK_ROWS = 300
SUMMEDITS = ("news", "sales_email", "qmsumm", "samsum")


def pairs(rows: Iterable[Row], columns: Columns, source: str) -> list[Row]:
    """Return the rows with a known label and both texts."""
    premise, hypothesis, label = columns
    return [
        {"p": clean(row[premise]), "h": clean(row[hypothesis]), "y": LABELS[row[label]], "src": source}
        for row in rows
        if row.get(label) in LABELS and row[premise] and row[hypothesis]
    ]


def summedits(rows: Iterable[Row]) -> list[Row]:
    """Return summaries by sentence; of an inconsistent one, the sentences that were edited."""
    found = []
    for row in rows:
        document, original = sentences(row["doc"]), set(sentences(row["original_summary"]))
        for sentence in sentences(row["summary"]):
            untouched = row["label"] == 0 and sentence in original
            if not untouched and len(sentence.split()) >= 4:
                label = ENTAILED if row["label"] else NOT_ENTAILED
                found.append({"p": window(document, sentence), "h": sentence, "y": label, "src": "summedits"})
    return found


def bump(rows: Iterable[Row]) -> list[Row]:
    """Return the sentences in which a summary and its edited form differ."""
    found = []
    for row in rows:
        document = sentences(row["article"])
        told = sentences(row["reference_summary"].replace(" .", "."))
        edited = sentences(row["edited_summary"].replace(" .", "."))
        wrong = CONTRADICTED if "Intrinsic" in (row["corrected_error_type"] or "") else NOT_ENTAILED
        labelled = [(s, ENTAILED) for s in told if s not in edited] + [(s, wrong) for s in edited if s not in told]
        found += [
            {"p": window(document, sentence), "h": sentence, "y": label, "src": "bump"}
            for sentence, label in labelled
            if len(sentence.split()) >= 4
        ]
    return found


def fm2(rows: Iterable[Row]) -> list[Row]:
    """Return claims with their gold evidence."""
    return [
        {
            "p": " ".join(piece["text"] for piece in row["gold_evidence"]),
            "h": row.get("text") or row.get("claim"),
            "y": LABELS[row["label"]],
            "src": "fm2",
        }
        for row in rows
    ]


def wice(rows: Iterable[Row]) -> list[Row]:
    """Return claims with their supporting sentences, or the window most like them; at most 160 words."""
    labels = {"supported": ENTAILED, "partially_supported": NOT_ENTAILED, "not_supported": NEUTRAL}
    found = []
    for row in rows:
        evidence, support = row["evidence"], row["supporting_sentences"]
        chosen = " ".join(evidence[at] for at in sorted(support[0]) if at < len(evidence)) if support else ""
        chosen = chosen if support and support[0] else window(evidence, row["claim"])
        if premise := " ".join(chosen.split()[:160]):
            found.append({"p": premise, "h": row["claim"], "y": labels[row["label"]], "src": "wice"})
    return found


def begin(rows: Iterable[Row]) -> list[Row]:
    """Return dialogue responses with the knowledge they should rest on; generic ones are left out."""
    labels = {"fully attributable": ENTAILED, "not fully attributable": NOT_ENTAILED}
    return [
        {"p": clean(row["knowledge"]), "h": clean(row["response"]), "y": labels[label], "src": "begin"}
        for row in rows
        if (label := (row["begin_label"] or "").strip().lower()) in labels and row["knowledge"] and row["response"]
    ]


def fib(rows: Iterable[Row]) -> list[Row]:
    """Return both summaries of each article with the window they are about."""
    return [
        {"p": window(document, choice), "h": choice, "y": ENTAILED if at == row["lbl"] else NOT_ENTAILED, "src": "fib"}
        for row in rows
        for document in [sentences(row["input"])]
        for at, choice in enumerate(row["list_choices"])
    ]


def climate(rows: Iterable[Row]) -> list[Row]:
    """Return each claim with each piece of evidence."""
    return [
        {"p": f"{e['article']}: {e['evidence'].strip(chr(34))}", "h": row["claim"], "y": LABELS[e["evidence_label"]],
         "src": "climate_fever"}
        for row in rows for e in row["evidences"] if e["evidence_label"] in LABELS
    ]  # fmt: skip


def distinct(rows: Iterable[Row]) -> list[Row]:
    """Return the rows without repeated pairs, the first of each."""
    return list({(row["p"], row["h"]): row for row in reversed(list(rows))}.values())[::-1]


def documents(data: Data) -> list[Document]:
    """Return the documents of the sets as sentences, in an order that only their text decides."""
    found: list[Document] = []
    for name in SUMMEDITS:
        rows = data.lines(f"summedits/{name}.jsonl.gz", train=True)
        found += [sentences(text) for text in dict.fromkeys(row["doc"] for row in rows)]
    rows = data.lines("bump/task1_half.jsonl.gz", train=True)
    found += [sentences(text) for text in dict.fromkeys(row["article"] for row in rows)]
    for name in ("claim_dev", "non_supported_tokens_train"):
        rows = data.lines(f"wice/{name}.jsonl.gz", train=True)
        found += [[clean(piece) for piece in row["evidence"] if len(piece.split()) >= 6] for row in rows]
    for row in data.lines("fm2/dev.jsonl.gz", train=True):
        found.append([clean(piece["text"]) for piece in row["gold_evidence"] + row.get("retrieved_evidence", [])])
    for row in data.lines("fever_rte/dev.jsonl.gz", train=True):
        found.append(sentences(clean(row["premise"])))
    return sorted(document for document in found if document)


class Mix:
    """The training rows and the sets that nothing is trained on."""

    def __init__(self, data: Data, seed: int) -> None:
        self.data, self.chance = data, random.Random(seed)
        self.train: list[Row] = []
        self.held: dict[str, list[Row]] = {}

    def lines(self, names: Iterable[str], source: str, columns: Columns, *, train: bool = True) -> list[Row]:
        """Return the pairs of files of JSON lines or of tables; raises ValueError for a file that has none."""
        found = []
        for name in names:
            read = self.data.lines if ".jsonl" in name else self.data.table
            part = pairs(read(name, train=train), columns, source)
            if not part:
                raise ValueError(f"{name} has no row with a known label")
            found += part
        return found

    def split(self, rows: list[Row], kept: float, name: str) -> None:
        """Train on the rows whose premise falls below a share, and hold the others as a set."""
        self.train += [row for row in rows if share(row["p"]) < kept]
        self.held[name] = [row for row in rows if share(row["p"]) >= kept]

    def three_classes(self) -> None:
        """Add the sources that tell entailment, neutral and contradiction apart."""
        self.train += self.lines(["snli/dev.jsonl.gz"], "snli", PREMISES)
        self.train += self.lines(
            ["mnli/dev_matched_half.jsonl.gz", "taxinli/mnli_train_part.jsonl.gz"], "mnli", PREMISES
        )
        wiki = [f"wiki_nli/{part}_wiki" for part in ("base", "sim", "translate")]
        self.train += self.lines([f"{name}_train.jsonl.gz" for name in wiki], "wiki_nli", PREMISES)
        self.train += self.lines(["cad_nli/train.tsv.gz", "cad_nli/dev.tsv.gz"], "cad", SENTENCES)
        conjunctions = self.lines(["conjnli/adversarial_train_15k.tsv.gz"], "conjnli", CONJUNCTIONS)
        self.train += self.chance.sample(conjunctions, 12_000)
        self.split(self.lines(["breaking_nli/dataset.jsonl.gz"], "breaking_nli", SENTENCES), 0.6, "breaking_nli")
        for name in self.data.names("scone/train_"):
            rows = self.data.table(name, train=True)
            self.train += pairs(rows, SENTENCES, "scone") + pairs(rows, EDITED, "scone")
        self.split(self.lines(["med/MED.tsv.gz"], "med", SENTENCES), 0.7, "med")
        rows = self.lines(self.data.names("help/"), "help", ("ori_sentence", "new_sentence", "gold_label"))
        self.train += self.chance.sample(rows, 3000)
        self.split(self.lines(["fever_rte/dev.jsonl.gz"], "fever", PREMISES), 0.9, "fever_dev")
        self.train += self.lines(["fever_symmetric/dev.jsonl.gz"], "fever_symmetric", SENTENCES)

    def grounding(self, per_kind: int, seed: int) -> None:
        """Add the sources about claims and their evidence, and what is generated from their documents."""
        data = self.data
        self.train += fm2(data.lines("fm2/dev.jsonl.gz", train=True))
        for name in ("claim_dev", "non_supported_tokens_train"):
            self.train += wice(data.lines(f"wice/{name}.jsonl.gz", train=True))
        for part in ("wow", "tc", "cmu"):
            self.train += begin(data.table(f"begin/dev_{part}.tsv.gz", train=True))
        self.train += bump(data.lines("bump/task1_half.jsonl.gz", train=True))
        for name in SUMMEDITS:
            self.train += summedits(data.lines(f"summedits/{name}.jsonl.gz", train=True))
        rows = distinct(row for name in data.names("fib/") for row in fib(data.lines(name, train=True)))
        self.train += self.chance.sample(rows, min(5000, len(rows)))
        self.train += Generator(documents(data), per_kind=per_kind, seed=seed).run()

    def measures(self) -> None:
        """Add the sets that are only measured on."""
        held = self.held
        held["snli_test"] = self.lines(["snli/test.jsonl.gz"], "snli", PREMISES, train=False)
        wiki = [f"wiki_nli/{part}_wiki_test.jsonl.gz" for part in ("base", "sim", "translate")]
        held["wiki_nli_test"] = self.lines(wiki, "wiki_nli", PREMISES, train=False)
        held["cad_test"] = self.lines(["cad_nli/test.tsv.gz"], "cad", SENTENCES, train=False)
        held["conjnli_dev"] = self.lines(["conjnli/conj_dev.tsv.gz"], "conjnli", CONJUNCTIONS, train=False)
        held["climate_fever"] = climate(self.data.lines("climate_fever/climate-fever.jsonl.gz", train=False))
        columns = ("evidence", "claim", "label")
        held["healthver_dev"] = self.lines(["healthver/dev.csv.gz"], "healthver", columns, train=False)
        held["rte_dev"] = self.lines(["rte/dev.tsv.gz"], "rte", ("sentence1", "sentence2", "label"), train=False)
        held["monli_neg_test"] = self.lines(["monli/nmonli_test.jsonl.gz"], "monli", SENTENCES, train=False)
        for part in ("r1", "r2", "r3"):
            columns = ("context", "statement", "gold_label")
            held[f"anli_{part}_dev"] = self.lines([f"anli/{part}_dev.csv.gz"], "anli", columns, train=False)

    def rows(self) -> list[Row]:
        """Return the training rows: no pair twice, none of the held sets' pairs, shuffled."""
        seen = {(row["p"].lower(), row["h"].lower()) for rows in self.held.values() for row in rows}
        kept = []
        for row in self.train:
            key = (row["p"].lower(), row["h"].lower())
            if row["p"] and row["h"] and key not in seen:
                seen.add(key)
                kept.append(row)
        self.chance.shuffle(kept)
        return kept


def write(path: Path, rows: list[Row]) -> str:
    """Write rows as JSON lines and return the file's SHA-256."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path.write_bytes(raw)
    return hashlib.sha256(raw).hexdigest()


def main() -> int:
    """Write the rows and say what they are made of."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--manifest", type=Path, default=MANIFEST)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--per-kind", type=int, default=3500, help="generated pairs of each kind of distortion")
    parser.add_argument("--sample", type=int, default=0, help="training rows to keep; 0 keeps all")
    options = parser.parse_args()
    mix = Mix(Data.described_by(options.manifest, options.data), options.seed)
    try:
        mix.three_classes()
        mix.grounding(options.per_kind, options.seed)
        mix.measures()
    except (NotAllowedError, OSError) as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    rows = mix.rows()[: options.sample or None]
    print(f"{len(rows)} rows, sha256:{write(options.out / 'train.jsonl', rows)}")
    print(dict(Counter(row["src"] for row in rows).most_common()))
    for name, held in mix.held.items():
        write(options.out / "eval" / f"{name}.jsonl", held)
    for name in LOOKS:
        held = mix.held[name]
        part = random.Random(1).sample(held, min(LOOK_ROWS, len(held)))
        write(options.out / "look" / f"{name}.jsonl", part)
    print("\n".join(mix.data.attribution()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
