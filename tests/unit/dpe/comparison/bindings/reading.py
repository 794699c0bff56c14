"""What the comparer finds in an answer, read with the real parser."""

from __future__ import annotations

from functools import lru_cache

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.reading import in_order
from interlock.dpe.comparison.pairings.compare import compare
from tests.support.dpe import pipeline


@lru_cache(maxsize=512)
def passages(text: str, fact_id: str = "") -> tuple[ReadSentence, ...]:
    doc = pipeline().language.nlp(text)
    return tuple(each.placed(fact_id) for each in in_order(map(ReadSentence, doc.sents)))


def found(facts: tuple[str, ...], answer: str) -> list[Misbinding]:
    evidence = Evidence(tuple(p for n, fact in enumerate(facts) for p in passages(fact, f"f{n}")))
    told = passages(answer)
    mentioned = frozenset(word for each in told for word in each.content)
    return [finding for each in told for finding in compare(each, evidence, mentioned)]
