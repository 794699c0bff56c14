"""Two phrases that trade places in a copied sentence (SPEC-005 §5.3)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.pairings.exchanged import exchanged


def bare(text: str) -> ReadSentence:
    """A sentence that the parser made nothing of."""
    one = ReadSentence(SimpleNamespace(text=text))
    one.known.update(frames=(), limits=(), content=frozenset())
    return one.placed("f1")


def exchange(source: str, claim: str) -> tuple[str, str] | None:
    found = exchanged(bare(claim), Evidence((bare(source),)))
    return (found.source_value, found.claim_value) if found else None


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("source", "claim", "found"),
    [
        ("Valve 3 opens before valve 7 closes.", "Valve 7 opens before valve 3 closes.", ("3", "7")),
        ("The spare pump feeds the main tank.", "The main tank feeds the spare pump.", ("spare pump", "main tank")),
        ("The bus to Graz leaves from gate A.", "The bus to Graz leaves from gate A.", None),
        ("Ada, Ben and Cy lead.", "Cy, Ben and Ada lead.", None),
        ("Quito is the capital.", "The capital is Quito.", None),
        ("Ada resembles Ben.", "Ben resembles Ada.", None),
        ("Ada is a colleague of Ben.", "Ben is a colleague of Ada.", None),
        ("The pump feeds the tank.", "The pump drains the tank.", None),
    ],
)
def test_phrases_that_trade_places_are_found_without_a_parse(source, claim, found):
    """Lists, equations and what both sides do alike may be turned round."""
    assert exchange(source, claim) == found
