"""Topics: the five most frequent clusters of noun phrases of a text (SPEC-005 §11.3, signal 9b).

Deterministic: a phrase is the lemmas of a noun chunk, phrases with the same head form a cluster, and clusters rank by
frequency, then by first mention. Two clusters of different texts are the same topic when their heads are equal or their
phrases are close in meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from interlock.dpe.inference.port import Floats

TOP = 5
SAME_FROM = 0.70
_SAYS_NOTHING = frozenset({"DET", "PRON", "PUNCT", "SPACE", "NUM", "ADP", "PART", "CCONJ", "SYM", "ADV"})
MAX_PHRASE_CHARS = 120

Phrase = tuple[str, str]
"""The lemma of the head, and the whole phrase as lemmas."""


def noun_phrases(tokens: Any) -> tuple[Phrase, ...]:
    """Return the noun phrases of a parsed sentence."""
    found = []
    for chunk in tokens.noun_chunks:
        lemmas = [t.lemma_.lower() for t in chunk if t.pos_ not in _SAYS_NOTHING and any(c.isalpha() for c in t.text)]
        if lemmas and chunk.root.pos_ not in _SAYS_NOTHING:
            found.append((lemmas[-1][:MAX_PHRASE_CHARS], " ".join(lemmas)[:MAX_PHRASE_CHARS]))
    return tuple(found)


def main_topics(phrases: Sequence[Phrase]) -> tuple[Phrase, ...]:
    """Return the five most frequent clusters, each with its most frequent phrase."""
    clusters: dict[str, Counter[str]] = {}
    for head, phrase in phrases:
        clusters.setdefault(head, Counter())[phrase] += 1
    ranked = sorted(clusters.items(), key=lambda item: -item[1].total())  # stable: ties keep the order of mention
    return tuple((head, named.most_common(1)[0][0]) for head, named in ranked[:TOP])


def continuity(
    current: Sequence[Phrase], prior: Sequence[Phrase], current_vectors: Floats, prior_vectors: Floats
) -> float:
    """Return the Jaccard similarity of two topic lists. Each topic matches at most once, nearest pairs first."""
    if not current or not prior:
        return 0.0
    similar = current_vectors @ prior_vectors.T
    pairs = sorted(
        (-1.0 if one[0] == other[0] else -float(similar[a, b]), a, b)
        for a, one in enumerate(current)
        for b, other in enumerate(prior)
        if one[0] == other[0] or similar[a, b] >= SAME_FROM
    )
    left: set[int] = set()
    right: set[int] = set()
    for _, a, b in pairs:
        if a not in left and b not in right:
            left.add(a)
            right.add(b)
    return len(left) / (len(current) + len(prior) - len(left))
