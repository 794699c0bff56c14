"""Read the pairs that were written for the NLI model, by a language model, block by block: a source, what follows from it in other words, and what does not.

    python scripts/nli_told.py scripts/nli_told        # checks the files and says what they hold

A file holds blocks with an empty line between them. A block begins with ``S:``, the source (`` / `` ends a line of it), and goes on with
one claim a line: ``F:`` follows from the source, ``C kind:`` is contradicted by it, ``N:`` is left open. A line ``T: source | C C F F F N``
gives a twin of the source and the labels that the claims have under it: what a claim says does not tell its label. Twins made by
nli_twins.py change words only where they change the meaning; here faithful claims are reworded as heavily as bent ones, so
that a changed word by itself tells nothing. Standard library only.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from nli_distortions import CONTRADICTED, ENTAILED, NEUTRAL
from nli_texts import sentences, share

Row = dict[str, Any]

CLAIM = re.compile(r"(F|C|N)\s*([a-z -]*):\s*(.+)")
TWIN = re.compile(r"T:\s*(.+?)\s*\|\s*([FCN](?: [FCN])*)")
LABELS = {"F": ENTAILED, "C": CONTRADICTED, "N": NEUTRAL}
# Blocks that nothing is trained on, by their source.
HELD_SHARE = 0.9
BESIDE_SHARE = 0.4
LONGEST_WORDS = 150
# Uses below which a word of claims tells nothing, and by how much the log odds of words that stand together may be too large.
RARE, FOLDS = 3, 5
SCALES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class Block:
    """A source and its claims: label, kind and text of each; another source, and the labels under it."""

    source: str
    claims: tuple[tuple[int, str, str], ...]
    twin: str = ""
    under_twin: tuple[int, ...] = ()

    @property
    def held(self) -> bool:
        """Whether it is kept for measuring."""
        return share(self.source) >= HELD_SHARE


def blocks_of(text: str) -> Iterator[Block]:
    """Yield the blocks of a file; raises ValueError with the line for what is not in the form."""
    source, claims, twin, labels = "", list[tuple[int, str, str]](), "", tuple[int, ...]()
    for number, raw in enumerate([*text.split("\n"), ""], 1):
        line = raw.strip()
        if not line:
            if source and claims:
                if twin and len(labels) != len(claims):
                    raise ValueError(
                        f"the block before line {number} has {len(claims)} claims and {len(labels)} labels"
                    )
                yield Block(source, tuple(claims), twin, labels)
            source, claims, twin, labels = "", [], "", ()
        elif line.startswith("S:"):
            source = _lined(line[2:])
        elif (found := TWIN.fullmatch(line)) and claims:
            twin, labels = _lined(found[1]), tuple(LABELS[each] for each in found[2].split())
        elif (found := CLAIM.fullmatch(line)) and source:
            kind = found[2].strip() or {"F": "faithful", "N": "open"}.get(found[1], "other")
            claims.append((LABELS[found[1]], kind, found[3].strip()))
        else:
            raise ValueError(f"line {number} is neither a source nor a claim of one: {line[:60]!r}")


def _lined(source: str) -> str:
    return re.sub(r"\s+/\s+", "\n", source.strip())


def files_of(folder: Path) -> list[Block]:
    """Return the blocks of a folder's files, by name."""
    return [block for path in sorted(folder.glob("*.txt")) for block in blocks_of(path.read_text(encoding="utf-8"))]


def rows(blocks: Sequence[Block], *, held: bool) -> Iterator[Row]:
    """Yield the rows of the blocks that are held out, or of the others.

    Of those to train on a part stands between other sources, as facts do, and each has a sentence of its source as a claim.
    """
    chosen = [block for block in blocks if block.held == held]
    for at, block in enumerate(chosen):
        other = chosen[(at * 7919 + 13) % len(chosen)].source
        under = [(block.source, label, f"told:{kind}", claim) for label, kind, claim in block.claims]
        claims = [claim for _, _, claim in block.claims]
        under += [(block.twin, y, "told:twin", claim) for y, claim in zip(block.under_twin, claims, strict=False)]
        for source, label, name, claim in under:
            premise = source
            if not held and share(claim) < BESIDE_SHARE and len(f"{premise} {other}".split()) <= LONGEST_WORDS:
                premise = f"{premise}\n{other}" if share(claim) < BESIDE_SHARE / 2 else f"{other}\n{premise}"
            yield {"p": premise, "h": claim, "y": label, "src": name}
        if not held:
            copied = max(sentences(block.source), key=len)
            yield {"p": block.source, "h": copied, "y": ENTAILED, "src": "told:copied"}


def leaning(rows: Sequence[Row]) -> list[float]:
    """Return how far the words of each row's claim alone lean to "follows": a log odds from the claims of other fifths.

    A model that is trained beside it has nothing to gain from what those words tell (a product of experts).
    """
    folds = [int(share(row["h"]) * FOLDS) for row in rows]
    words = [_words(row["h"]) for row in rows]
    counts = [(Counter[str](), Counter[str]()) for _ in range(FOLDS + 1)]
    totals = [[1, 1] for _ in range(FOLDS + 1)]
    for row, own, fold in zip(rows, words, folds, strict=True):
        for at in (fold, FOLDS):  # of its fifth, and of all
            totals[at][row["y"] == ENTAILED] += 1
            counts[at][row["y"] == ENTAILED].update(own)
    found = []
    for own, fold in zip(words, folds, strict=True):
        odds = 0.0
        for word in own:
            no, yes = (counts[FOLDS][label][word] - counts[fold][label][word] for label in (0, 1))
            if no + yes > RARE:
                odds += math.log((yes + 1) / (totals[FOLDS][1] - totals[fold][1] + 1))
                odds -= math.log((no + 1) / (totals[FOLDS][0] - totals[fold][0] + 1))
        found.append(odds)
    signs = [1.0 if row["y"] == ENTAILED else -1.0 for row in rows]
    losses = {k: sum(math.log1p(math.exp(-k * s * x)) for s, x in zip(signs, found, strict=True)) for k in SCALES}
    scale = min(losses, key=losses.__getitem__)
    return [scale * each for each in found]


def _words(text: str) -> set[str]:
    words = re.findall(r"[a-z']+", text.lower())
    return {*words, *(f"{one} {other}" for one, other in pairwise(words))}


def main() -> int:
    """Check the files of a folder and say what they hold."""
    blocks = files_of(Path(sys.argv[1]))
    sources = Counter(block.source for block in blocks)
    counted = Counter((kind, label) for block in blocks for label, kind, _ in block.claims)
    print(
        f"{len(blocks)} blocks, {sum(block.held for block in blocks)} held out, {len(blocks) - len(sources)} sources twice"
    )
    for (kind, label), number in sorted(counted.items()):
        print(f"{kind:20} {label} {number}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
