"""What a claim binds otherwise than its sources: the slot, what the source fills it with, and what the claim does."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.dpe.comparison.cues import CONTEXT_STRIPPED, ENTITY_SUBSTITUTED, NEGATION_FLIP

__all__ = ["CONTEXT_STRIPPED", "ENTITY_SUBSTITUTED", "NEGATION_FLIP", "Misbinding"]


@dataclass(frozen=True)
class Misbinding:
    """A slot that a claim fills otherwise.

    ``evidence`` is the sentence of the source, ``fact_id`` its fact, and ``about`` are the words of the claim's frame
    or clause that it is about; empty where a rule looks at the whole sentence.
    """

    type: str
    slot: str
    source_value: str
    claim_value: str
    evidence: str
    fact_id: str
    about: frozenset[str] = frozenset()
