"""Words against words, from Open English WordNet, as nli_tellings.py puts them into sentences."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from licensed_data import Data

COMMON = Path(__file__).resolve().parents[1] / "services/interlock/dpe/data/common_words.txt"


class Words:
    """Opposites, synonyms and siblings of Open English WordNet that are safe enough to put into a sentence."""

    def __init__(self, data: Data) -> None:
        common = set(COMMON.read_text(encoding="utf-8").split())
        self.opposites: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.same: dict[tuple[str, str], list[str]] = {}
        self.beside: dict[tuple[str, str], list[str]] = {}
        for line in data.plain("wordnet/antonyms.tsv").splitlines()[1:]:
            pos, word, other, rank, other_rank = line.split("\t")
            if rank == "0" and other_rank in "01" and other in common:
                self.opposites[pos, word].append(other)
        groups = [line.split("\t") for line in data.plain("wordnet/synonyms.tsv").splitlines()[1:]]
        told = Counter((pos, word) for pos, words in groups for word in words.split())
        for pos, words in groups:
            single = [word for word in words.split() if told[pos, word] == 1 and word in common and len(word) > 3]
            for word in single:
                self.same[pos, word] = [other for other in single if other != word]
        for line in data.plain("wordnet/siblings.tsv").splitlines()[1:]:
            pos, _, words = line.split("\t")
            kin = [word for word in words.split() if word in common]
            if 3 <= len(kin) <= 30:
                for word in kin:
                    self.beside[pos, word] = [other for other in kin if other != word]
