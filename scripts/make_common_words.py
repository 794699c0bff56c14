"""Make services/interlock/dpe/data/common_words.txt: English words that are usually written in lower case.

    python scripts/make_common_words.py --data DATA > services/interlock/dpe/data/common_words.txt

DATA is the folder of labelled sets that the models are trained on. Only counts leave it: no sentence is kept.
"""

from __future__ import annotations

import argparse
import collections
import csv
import gzip
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_WORD = re.compile(r"[A-Za-z]+")
_HEADER = """\
# English words that are usually written in lower case, counted in the licensed sets that the models are trained on.
# Made by scripts/make_common_words.py; a word is here when it is written small often, and seldom with a capital
# inside a sentence.
"""
# Words that link sentences stand at their beginning, and so are seldom counted small.
_LINKING = (
    "additionally accordingly admittedly afterwards alternatively arguably besides conversely consequently curiously evidently "
    "finally firstly furthermore generally hence historically importantly incidentally indeed initially interestingly ironically "
    "lastly likewise meanwhile moreover namely nevertheless nonetheless notably notwithstanding overall particularly presumably "
    "regardless relatedly respectively secondly similarly specifically subsequently summarily thereby therefore thirdly thus "
    "typically ultimately undoubtedly unfortunately whereas yes"
)


def texts(data: Path) -> Iterator[str]:
    """Yield every text of the sets whose licences allow training."""
    for folder in ("snli", "mnli", "taxinli", "wiki_nli", "cad_nli", "fever_rte", "fm2", "wice", "bump", "summedits"):
        for path in sorted((data / folder).glob("*.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as file:
                content = file.read()
            if path.name.endswith(".tsv.gz"):
                rows: list[Any] = list(csv.DictReader(io.StringIO(content), delimiter="\t", quoting=csv.QUOTE_NONE))
            else:
                rows = [json.loads(line) for line in content.splitlines() if line.strip()]
            for row in rows:
                yield from strings(row)


def strings(value: Any) -> Iterator[str]:
    """Yield every string of more than four words inside a record."""
    if isinstance(value, str):
        if value.count(" ") > 3:
            yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


def count(data: Path) -> tuple[collections.Counter[str], collections.Counter[str]]:
    """Count words written small, and words with a capital after a small letter and a space."""
    small: collections.Counter[str] = collections.Counter()
    capital: collections.Counter[str] = collections.Counter()
    for text in dict.fromkeys(texts(data)):
        for match in _WORD.finditer(text):
            word, before = match.group(), text[max(0, match.start() - 2) : match.start()]
            if word.islower():
                small[word] += 1
            elif word.istitle() and before[:1].islower() and before[1:] == " ":
                capital[word.lower()] += 1
    return small, capital


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    small, capital = count(parser.parse_args().data)
    chosen = {
        word
        for word, times in small.items()
        if len(word) > 1 and ((times >= 4 and times >= capital[word]) or (times >= 40 and times >= capital[word] / 2))
    }
    print(_HEADER + "\n".join(sorted(chosen | set(_LINKING.split()))))


if __name__ == "__main__":
    main()
