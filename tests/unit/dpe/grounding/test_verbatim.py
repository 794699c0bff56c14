"""Verbatim claims: a copy follows without a model, and what drops a limit is no copy (SPEC-005 §4)."""

from __future__ import annotations

import pytest

from interlock.dpe.grounding.envelope import EvidenceUnit
from interlock.dpe.grounding.verbatim import Copies

UNITS = (
    "Each applicant must submit two references, unless the office waives this.",
    "Maria Keller was born in Bern.",
    "She became a judge in June 2015.",
    "The pool is open daily, and the sauna is open on weekends.",
    "The ministry said the bridge is safe for lorries.",
    "The pump is not sold, and the filter is sold separately.",
    "Temperatures fell to -5 °C at night.",
    "Members may bring guests; the bar closes at 23:00 sharp.",
)


def copied(text: str, sentence: str = "") -> int | None:
    units = [EvidenceUnit(0, unit, frozenset(), len(unit.split())) for unit in UNITS]
    return Copies.of(units).of_claim(text, sentence or text)


@pytest.mark.req("DPE-2")
@pytest.mark.parametrize(
    ("claim", "unit"),
    [
        ("Each applicant must submit two references, unless the office waives this.", 0),
        ("each applicant must submit two references unless the office waives this", 0),
        ('**"Maria Keller was born in Bern"**', 1),
        ("Yes, Maria Keller was born in Bern.", 1),
        ("Maria Keller became a judge in June 2015.", 2),
        ("The pool is open daily", 3),
        ("the sauna is open on weekends", 3),
        ("Temperatures fell to -5 °C at night", 6),
    ],
)
def test_a_copy_is_found(claim, unit):
    """Case, marks, an answering word, and the subject in the place of its pronoun are no difference."""
    assert copied(claim) == unit


@pytest.mark.req("DPE-2")
@pytest.mark.parametrize(
    "claim",
    [
        "Each applicant must submit two references.",
        "Each applicant must submit three references, unless the office waives this.",
        "The bridge is safe for lorries.",
        "The filter is sold separately.",
        "Temperatures fell to 5 °C at night.",
        "Anna Keller became a judge in June 2015.",
        "The bar closes at 23:00 sharp.",
        "The sauna is open daily.",
        "The pool is open",
    ],
)
def test_what_differs_or_drops_a_limit_is_no_copy(claim):
    """A condition, a report, a negation or a hedge beside it, another word, sign or subject: the model decides."""
    assert copied(claim) is None


@pytest.mark.req("DPE-2")
def test_a_claim_cut_from_a_copied_sentence_is_copied():
    """The cut may have given it words of its neighbour."""
    assert copied("Maria Keller is from Bern", "Maria Keller was born in Bern.") == 1
