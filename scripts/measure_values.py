"""Measure the value comparer on edits of real sentences: what it finds, and how many faithful claims it accuses.

    python scripts/measure_values.py --data DATA [--model MODEL] [--rows 400] [--seed 7] [--show TYPE]

DATA is the folder of labelled sets. Sentences of news, minutes, e-mails and encyclopaedias are edited in one place, one
way for each type of SPEC-005 §5.3, or rewritten without changing what they say. MODEL is a folder with an NLI
cross-encoder (model.int8.onnx, tokenizer.json); without it, only what stands without a model is counted.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.dpe.document import Claim, ClaimType, Fact, NliScores
from interlock.dpe.grounding.distortion import find
from interlock.dpe.text.names import COMMON_WORDS

MONTHS = [
    "January", "February", "March", "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
]  # fmt: skip
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|\n+")
_DAY = re.compile(rf"\b\d{{1,2}} (?:of )?(?:{'|'.join(MONTHS)})\b|\b(?:{'|'.join(MONTHS)}) \d{{1,2}}\b")
_FIGURE = re.compile(r"(?<![\w.,/-])\$?\d+(?:,\d{3})*(?:\.\d+)?(?![\w/-])(?!,\d)")
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_NAME = re.compile(r"(?<=[a-z,;] )((?:[A-Z][a-z]+)(?: (?:of |the |de )?[A-Z][a-z]+){0,3})")
_AUXILIARY = re.compile(r"\b(is|are|was|were|has|have|had|can|will|would|should|did|does|do)\b(?! not)(?!n't)")
_HEDGE = re.compile(
    r"\b(may have|might have|could have|may|might|could|allegedly|reportedly|possibly|probably|likely|conditionally"
    r"|partially|partly"
    r"|some|most|sometimes|often|usually|at least)\b"
)
_STRONGER = {
    "may have": "have", "might have": "have",
        "could have":
        "have",
        "may":
        "will",
        "might":
        "will",
        "could":
        "will",
        "some":
        "all",
    "most": "all", "sometimes": "always", "often": "always", "usually": "always",
}  # fmt: skip
_SCALES = {
    "million": "billion", "billion": "million",
        "thousand":
        "million",
        "kilometres":
        "metres",
        "months":
        "years",
        "days":
        "weeks",
    "hours": "days", "years": "months", "weeks": "days",
}  # fmt: skip
_OPPOSITES = (
    "increased decreased, rose fell, higher lower, more fewer, largest smallest, before after, won lost, northern "
    "southern, approved rejected, "
    "accepted refused, above below, early late, opened closed, always never, supported opposed, best worst, positive "
    "negative, joined left"
)
OPPOSITE = {
    one: other
    for pair in _OPPOSITES.split(", ")
    for first, second in (pair.split(),)
    for one, other in ((first, second), (second, first))
}


@dataclass(frozen=True)
class Row:
    """A source, a claim, and what was done to it; SAME means nothing."""

    type: str
    source: str
    claim: str


Edit = Callable[[str, random.Random], str | None]


def replaced(text: str, match: re.Match[str], new: str) -> str:
    return text[: match.start()] + new + text[match.end() :]


def change_number(text: str, chance: random.Random) -> str | None:
    """Change a figure that is no year and no day of a month by a digit, a step or a factor."""
    days = [match.span() for match in _DAY.finditer(text)]
    found = [
        match
        for match in _FIGURE.finditer(text)
        if not _YEAR.fullmatch(match.group().strip("$")) and not any(a <= match.start() < b for a, b in days)
    ]
    if not found:
        return None
    match = chance.choice(found)
    digits = match.group().strip("$").replace(",", "")
    decimals = len(digits.partition(".")[2])
    value = float(digits)
    place = chance.choice([index for index, character in enumerate(digits) if character.isdigit()])
    options = [
        float(digits[:place] + chance.choice("123456789") + digits[place + 1 :]),
        value * 2,
        value * 10,
        value + 3 * 10**-decimals,
    ]
    new = chance.choice([option for option in options if option != value])
    return replaced(text, match, ("$" if match.group().startswith("$") else "") + f"{new:,.{decimals}f}")


def shift_date(text: str, chance: random.Random) -> str | None:
    years = list(_YEAR.finditer(text))
    months = list(re.finditer(rf"\b({'|'.join(MONTHS)})\b(?= \d)", text))
    if years and (not months or chance.random() < 0.7):
        match = chance.choice(years)
        return replaced(text, match, str(int(match.group()) + chance.choice([-10, -5, -2, -1, 1, 2, 3, 5])))
    if not months:
        return None
    match = chance.choice(months)
    return replaced(text, match, chance.choice([month for month in MONTHS if month != match.group()]))


def alter_magnitude(text: str, chance: random.Random) -> str | None:
    found = [match for word in _SCALES for match in re.finditer(rf"\b{word}\b", text)]
    if found:
        match = chance.choice(found)
        return replaced(text, match, _SCALES[match.group()])
    percent = re.search(r"\b(\d+(?:\.\d+)?)(?=%| percent| per cent)", text)
    return replaced(text, percent, f"{float(percent.group(1)) * chance.choice([0.4, 2.5, 3]):.3g}") if percent else None


def negate(text: str, chance: random.Random) -> str | None:
    del chance
    match = re.search(r"\b(?:not|never) ", text)
    if match:
        return replaced(text, match, "")
    match = _AUXILIARY.search(text)
    return text[: match.end()] + " not" + text[match.end() :] if match else None


def turn(text: str, chance: random.Random) -> str | None:
    found = [match for match in re.finditer(r"\b[a-z]+\b", text) if match.group() in OPPOSITE]
    if not found:
        return None
    match = chance.choice(found)
    return replaced(text, match, OPPOSITE[match.group()])


def strip_hedge(text: str, chance: random.Random) -> str | None:
    del chance
    match = _HEDGE.search(text)
    if not match or match.start() < 3 or text[match.end() : match.end() + 8].strip().startswith("of the"):
        return None
    return re.sub(r"\s+", " ", replaced(text, match, _STRONGER.get(match.group(1), "")))


def rewrite(text: str, chance: random.Random) -> str | None:
    """Say the same: other forms of the figures, an aside less, a framing phrase more."""
    kind = chance.random()
    if kind < 0.5:
        new = re.sub(r"\$(\d+(?:\.\d+)?) million\b", r"$\1M", text)
        new = (
            re.sub(r"(\d)%", r"\1 percent", new) if "%" in new else re.sub(r"(\d) (?:percent|per cent)\b", r"\1%", new)
        )
        return re.sub(r"\b(\d{1,3}),(\d{3})\b(?!,)", r"\1\2", new)
    if kind < 0.8:
        new = re.sub(r"\s*\([^()]{1,80}\)", "", text)
        return re.sub(r", (?:which|who|where)[^,]{4,90},", "", new)
    return chance.choice(["According to the source, ", "The text states that ", "In short, "]) + text


def swap_name(pool: dict[int, list[str]]) -> Edit:
    def edit(text: str, chance: random.Random) -> str | None:
        found = [match for match in _NAME.finditer(text) if _is_name(match.group(1))]
        if not found:
            return None
        match = chance.choice(found)
        new = chance.choice(pool[len(match.group(1).split())])
        return None if new in text else replaced(text, match, new)

    return edit


def _is_name(text: str) -> bool:
    return text not in MONTHS and not all(word.lower() in COMMON_WORDS for word in text.split())


def documents(data: Path) -> Iterator[list[str]]:
    """Yield documents as lists of sentences."""
    for path in sorted((data / "summedits").glob("*.gz")):
        for text in sorted({row["doc"] for row in rows_of(path)}):
            yield sentences(text)
    for row in rows_of(data / "bump" / "task1_half.jsonl.gz"):
        yield sentences(row["article"])
    for row in rows_of(data / "wice" / "claim_dev.jsonl.gz"):
        yield [sentence for sentence in row["evidence"] if len(sentence.split()) >= 6]
    for row in rows_of(data / "fm2" / "dev.jsonl.gz"):
        yield [each["text"] for each in row["gold_evidence"]]


def rows_of(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def sentences(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCE.split(text) if part and part.strip()]


def make(data: Path, rows: int, chance: random.Random) -> list[Row]:
    """Edit sentences until there are enough rows of each type; the source keeps its neighbours."""
    texts = [document for document in documents(data) if document]
    pool: dict[int, list[str]] = defaultdict(list)
    for document in texts:
        for match in (match for sentence in document for match in _NAME.finditer(sentence)):
            if _is_name(match.group(1)):
                pool[len(match.group(1).split())].append(match.group(1))
    edits: dict[str, Edit] = {
        "NUMBER_CHANGED": change_number,
            "DATE_SHIFTED": shift_date,
            "MAGNITUDE_ALTERED": alter_magnitude,
            "ENTITY_SUBSTITUTED": swap_name(pool),
        "NEGATION_FLIP": negate, "NEGATION_FLIP by an opposite": turn, "CONTEXT_STRIPPED": strip_hedge, "SAME": rewrite,
    }  # fmt: skip
    places = [(document, index) for document in texts for index in range(len(document))]
    chance.shuffle(places)
    made: list[Row] = []
    counts: Counter[str] = Counter()
    for document, index in places:
        sentence = document[index]
        if not 6 <= len(sentence.split()) <= 40 or not sentence[0].isupper() or sentence[-1] not in ".!":
            continue
        source = " ".join(document[max(0, index - 1) : index + 2])
        for name, edit in edits.items():
            limit = rows * (3 if name == "SAME" else 1)
            claim = edit(sentence, chance) if counts[name] < limit else None
            if claim and claim != sentence and claim.rstrip(".") not in source:
                counts[name] += 1
                made.append(Row(name, source, claim))
    return made


def scorer(folder: Path | None) -> Callable[[Row], NliScores]:
    """Return the model, or a stand-in that sees nothing and so leaves the rules alone."""
    if folder is None:
        return lambda _row: NliScores(1.0, 0.0, 0.0)
    import numpy as np
    import onnxruntime as ort
    from tokenizers import Tokenizer

    session = ort.InferenceSession(str(folder / "model.int8.onnx"))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    parts = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}

    def score(row: Row) -> NliScores:
        encoded = tokenizer.encode(row.source, row.claim)
        feed = {
            each.name: np.array([getattr(encoded, parts[each.name])], dtype=np.int64) for each in session.get_inputs()
        }
        logits = session.run(None, feed)[0][0].astype(float)
        shares = np.exp(logits - logits.max())
        return NliScores(*(float(share) for share in shares / shares.sum()))

    return score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--show", help="print the misses of this type (for SAME: the false alarms)")
    options = parser.parse_args()
    score = scorer(options.model)
    total: Counter[str] = Counter()
    named: dict[str, Counter[str]] = defaultdict(Counter)
    for row in make(options.data, options.rows, random.Random(options.seed)):
        claim = Claim("c1", row.claim, 0, 0, 0, len(row.claim), ClaimType.FACTUAL, 1.0, ())
        found = {each.type for each in find(claim, Fact("f1", row.source, 1.0), score(row))}
        total[row.type] += 1
        named[row.type].update([*found, *(["any"] if found else [])])
        if options.show == row.type and bool(found) == (row.type == "SAME"):
            print(f"{sorted(found)}\n  source: {row.source}\n  claim:  {row.claim}\n")
    for name in sorted(total):
        own = name.split(" ", maxsplit=1)[0]
        shown = (
            f"accused {named[name]['any'] / total[name]:.3f}"
            if name == "SAME"
            else f"found {named[name]['any'] / total[name]:.3f}"
        )
        print(f"{name:32} n={total[name]:5} {shown}  named {named[name][own] / total[name]:.3f}")


if __name__ == "__main__":
    main()
