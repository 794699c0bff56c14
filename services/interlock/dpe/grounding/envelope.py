"""The facts as evidence: cut into units, searched by embedding and by words, joined into premises (SPEC-003 §3).

Each fact is processed as an answer is, with the same normalisation and layout, so both sides of a comparison are made
the same way. A unit is a sentence that fits the model. No part of a fact is left out, however long it is.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from interlock.domain.errors import exhausted, invalid
from interlock.dpe.document import Fact
from interlock.dpe.grounding.tables import records
from interlock.dpe.grounding.tables.record import Record
from interlock.dpe.inference.port import Floats
from interlock.dpe.text.content_words import content_words
from interlock.dpe.text.layout import BlockKind, layout
from interlock.dpe.text.memory.remembered import STORE
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.segmentation import fitted
from interlock.dpe.text.text import normalised

MAX_ID_CHARS, MAX_FACT_CHARS = 128, 32_768
LARGEST_FACT_CHARS = 262_144
"""Of a fact that is given as one; what we cut ourselves has at most MAX_FACT_CHARS."""
_COLLECTED_UNITS = 3
_NUMBERING = pattern(
    r"\s*(?:\[\d{1,3}\]|\[(?-i:[A-Z][A-Z0-9]{0,9})(?:-[A-Z0-9]{1,8}){0,3}-\d{1,8}\]|【\d{1,3}[^】\n]{0,20}】|(?:source|document|doc|passage|chunk|result|snippet) ?#?\d{1,3}:)\s+",
    ignore_case=True,
)
"""The number of a passage in a list of sources; it is no part of what the passage says."""


@dataclass(frozen=True)
class EvidenceUnit:
    """One sentence of one fact."""

    fact: int
    text: str
    words: frozenset[str]
    tokens: int


@dataclass(frozen=True)
class Cut:
    """The facts as units of text, before any model."""

    facts: tuple[Fact, ...]
    texts: tuple[str, ...]
    units: tuple[EvidenceUnit, ...]
    records: tuple[tuple[int, Record], ...] = ()  # each with the number of its fact


@dataclass(frozen=True)
class Envelope:
    """The facts with the vectors of their units.

    Row *i* of ``vectors`` is unit *i*, row *i* of ``whole`` is fact *i*.
    """

    cut: Cut
    vectors: Floats
    whole: Floats

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts, in the order of the request."""
        return self.cut.facts

    def nearest(self, vector: Floats) -> list[tuple[int, float]]:
        """Return the nearest units with their cosine similarity, best first, as many as a premise collects."""
        similar = self.vectors @ vector
        best = np.argsort(-similar, kind="stable")[:_COLLECTED_UNITS]
        return [(int(i), _cosine(similar[i])) for i in best]

    def similarity(self, fact: int, vector: Floats) -> float:
        """Return the cosine similarity with a whole fact."""
        return _cosine(self.whole[fact] @ vector)

    def collected(self, units: Sequence[int], budget: int) -> str:
        """Return these units as one premise, in envelope order. Units that exceed the token *budget* are left out."""
        taken: list[int] = []
        total = 0
        for unit in units:
            if taken and total + self.cut.units[unit].tokens > budget:
                continue
            taken.append(unit)
            total += self.cut.units[unit].tokens
        return " ".join(self.cut.units[unit].text for unit in sorted(taken))

    def window(self, claim: str, budget: int) -> str:
        """Return the run of adjacent units that shares most words with a claim. Of equal runs the shortest wins.

        It searches by words, not by meaning: on the licensed development sets this premise separates supported from
        unsupported claims best, and it finds what an embedding misses.
        """
        claim_words, units = content_words(claim), self.cut.units
        best, best_score = "", -math.inf
        for start in (i for i, unit in enumerate(units) if unit.words & claim_words):
            seen: set[str] = set()
            total = length = 0
            for stop in range(start, len(units)):
                total += units[stop].tokens
                if total > budget and stop > start:
                    break
                seen |= units[stop].words & claim_words
                length += len(units[stop].words)
                score = len(seen) - 0.002 * length
                if score > best_score:
                    best_score, best = score, " ".join(unit.text for unit in units[start : stop + 1])
        return best


def cut(
    facts: Sequence[Fact],
    *,
    limit: int,
    count: Callable[[Sequence[str]], list[int]],
    split: Callable[[str], Iterator[tuple[int, int]]],
    own: str = "",
) -> Cut:
    """Return the facts in units of at most *limit* tokens. *split* finds the sentences of a paragraph.

    *own* names what counts and splits: what a fact was cut into is remembered under it. Without a name each fact is cut anew.
    """

    def of(content: str) -> _CutText:
        if not own:
            return _cut_text(content, limit=limit, count=count, split=split)
        return STORE.of(
            f"cut {limit} {own}", (content,), partial(_cut_text, content, limit=limit, count=count, split=split),
            bytes_a_character=80,
        )  # fmt: skip

    found = [of(fact.content) for fact in facts]
    return Cut(
        tuple(facts),
        tuple(each.text for each in found),
        tuple(EvidenceUnit(number, *unit) for number, each in enumerate(found) for unit in each.units),
        tuple((number, record) for number, each in enumerate(found) for record in each.records),
    )


@dataclass(frozen=True)
class _CutText:
    """The text of a fact, its units with their words and tokens, and its records."""

    text: str
    units: tuple[tuple[str, frozenset[str], int], ...]
    records: tuple[Record, ...]


def _cut_text(
    content: str,
    *,
    limit: int,
    count: Callable[[Sequence[str]], list[int]],
    split: Callable[[str], Iterator[tuple[int, int]]],
) -> _CutText:
    source = records.read(content)
    blocks = layout(source.rest).blocks
    stated = [normalised(record.sentence)[0] for record in source.records]
    # The text as it is written keeps its keys, for names and figures that an answer copies.
    written = layout(content).blocks if stated else blocks
    parts = [part for text in stated for part in fitted(text, limit, count)]
    for block in blocks:
        mark = _NUMBERING.match(block.text.chars)
        text = block.text.cut(mark.end(), len(block.text.chars)) if mark else block.text
        spans = split(text.chars) if block.kind is BlockKind.PROSE else [(0, len(text.chars))]
        sentences = (text.cut(start, end) for start, end in spans)
        parts += [part for sentence in sentences for part in fitted(sentence, limit, count)]
    sizes = count([part.chars for part in parts]) if parts else []
    units = ((part.chars, content_words(part.chars), size) for part, size in zip(parts, sizes, strict=True))
    return _CutText(
        "\n".join([*(text.chars for text in stated), *(block.text.chars for block in written)]),
        tuple(units),
        source.records,
    )


def check_facts(facts: Sequence[Fact], *, max_facts: int) -> None:
    """Refuse facts that exceed the bounds of the interface. No fact is dropped or shortened."""
    if len(facts) > max_facts:
        raise exhausted(
            "FACT_LIMIT_EXCEEDED", "the envelope has too many facts", limit=str(max_facts), found=str(len(facts))
        )
    seen: set[str] = set()
    for fact in facts:
        if not 1 <= len(fact.id) <= MAX_ID_CHARS:
            raise invalid("FACT_ID_INVALID", f"a fact's id needs 1 to {MAX_ID_CHARS} characters")
        if fact.id in seen:
            raise invalid("DUPLICATE_FACT_ID", "two facts have the same id", fact_id=fact.id)
        if not fact.content.strip() or len(fact.content) > LARGEST_FACT_CHARS:
            raise invalid("FACT_CONTENT_INVALID", f"a fact needs 1 to {LARGEST_FACT_CHARS} characters", fact_id=fact.id)
        if not 0.0 <= fact.importance <= 1.0:
            raise invalid("FACT_IMPORTANCE_INVALID", "importance must be from 0.0 to 1.0", fact_id=fact.id)
        seen.add(fact.id)


def etag(facts: Sequence[Fact]) -> str:
    """Return ``sha256:<hex>`` of the set of facts, independent of their order.

    SPEC-003 §7.5 hashes ids alone. A caller's ids do not identify content, so content and importance are hashed too.
    """
    rows = sorted([fact.id, fact.content, fact.importance] for fact in facts)
    return "sha256:" + hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()


def quality_tier(*, facts: int, relevance: float) -> str:
    """Return the tier, S to D, of an envelope that the caller filled (SPEC-003 §8).

    All given facts are included, so coverage is 1.0. There was no packing and no token budget, hence no saturation: its
    weight goes to the other two, 0.5 each. *relevance* is the mean similarity of the facts with the query; without a
    query it is 0.0, which allows C at best. No facts give D.
    """
    score = 0.5 + 0.5 * min(1.0, max(0.0, relevance)) if facts else 0.0
    bounds = (("S", 0.95), ("A", 0.85), ("B", 0.70), ("C", 0.50))
    return next((tier for tier, bound in bounds if score >= bound), "D")


def _cosine(value: float) -> float:
    """Return a cosine clamped to -1.0 to 1.0, which rounding may have exceeded."""
    return min(1.0, max(-1.0, float(value)))
