"""Two baselines that need no judge: the share of words found in the source, and the cosine of embeddings."""

from __future__ import annotations

import re
from typing import Any

from bench.quality.rows import Row, sentences

WINDOW_WORDS = 110
_WORD = re.compile(r"[a-z0-9]+(?:[.,'-][a-z0-9]+)*")
_SMALL = frozenset(
    [
        "the",
        "a",
        "an",
        "of",
        "to",
        "in",
        "on",
        "at",
        "and",
        "or",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "by",
        "for",
        "with",
        "as",
        "that",
        "this",
        "it",
        "its",
        "his",
        "her",
        "their",
        "he",
        "she",
        "they",
        "from",
        "has",
        "have",
        "had",
    ]
)


def content(text: str) -> list[str]:
    """Return the words that say something, in lower case."""
    return [word for word in _WORD.findall(text.lower()) if word not in _SMALL]


def overlap(source: str, text: str) -> float:
    """Return the share of a text's words that are in the source."""
    known, said = set(content(source)), content(text)
    return sum(word in known for word in said) / max(1, len(said))


def window(source: str, text: str, most: int = WINDOW_WORDS) -> str:
    """Return the run of sentences, at most *most* words, that shares most words with the text."""
    if len(source.split()) <= most:
        return source
    parts, want = sentences(source), set(content(text))
    sizes, shared = [len(part.split()) for part in parts], [set(content(part)) & want for part in parts]
    best, best_score = " ".join(source.split()[:most]), -1.0
    for first in range(len(parts)):
        seen: set[str] = set()
        words = 0
        for last in range(first, len(parts)):
            words += sizes[last]
            if words > most:
                break
            seen |= shared[last]
            if (score := len(seen) - 0.002 * words) > best_score:
                best, best_score = " ".join(parts[first : last + 1]), score
    return best


class Shortened:
    """Cuts a row so that premise and hypothesis fit the NLI model: the best window, then fewer words of it."""

    def __init__(self, inference: Any) -> None:
        self.inference = inference

    def __call__(self, row: Row) -> tuple[str, str]:
        premise, text = window(row.source, row.text), " ".join(row.text.split()[:WINDOW_WORDS])
        while (over := sum(self.inference.tokens([premise, text])) - self.inference.max_pair_tokens) > 0:
            words = premise.split()
            if len(words) < 2:
                text = " ".join(text.split()[: -max(1, over // 2)])
            else:
                premise = " ".join(words[: -max(1, over // 2)])
        return premise, text


def weakest_overlap(row: Row) -> float:
    """Return the overlap of the weakest sentence of an answer with its best window."""
    return min((overlap(window(row.source, part), part) for part in sentences(row.text)), default=0.0)


async def weakest_similarity(row: Row, inference: Any) -> float:
    """Return the cosine of the weakest sentence of an answer with its nearest sentence of the source."""
    said, known = sentences(row.text), sentences(row.source)
    if not said or not known:
        return 0.0
    similar = await inference.embed(said) @ (await inference.embed(known)).T
    return float(similar.max(axis=1).min())
