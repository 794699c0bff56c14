"""The numbered parts of sources: headings, lists and mentions, and what is not known (ATT-7)."""

from __future__ import annotations

import pytest

from interlock.dpe.document import Fact
from interlock.dpe.grounding.parts import NumberedParts

LEASE = "1. Parties. A lets to B.\n2. Term. Two years.\n   It may be ended.\n3. Rent. 900 euros."
LAW = "§ 1 Scope\nThis covers bikes.\n§ 2 Fees\n1. Adults pay 5.\n2. Children pay 2.\n§ 3 Fines\nA fine is 20."
MANUAL = "# 4 Care\n4.1 Cleaning\nUse water.\n4.2 Storage\nKeep it dry.\n# 5 Help\nCall us."
PAGES = "[Page 11]\nOld fares.\n[Page 12]\nNew fares."
PROSE = "The fee is set by section 4. Section 6 exempts schools."


def said(content: str, kind: str, number: str) -> str | None:
    """Return the text of a part, an empty string where nothing is known, ``None`` where there is no such part."""
    found = NumberedParts.of([Fact("f1", content, 0.5)]).passages(kind, number)
    return None if found is None else " | ".join(" ".join(content[p.start : p.end].split()) for p in found)


@pytest.mark.req("ATT-7")
@pytest.mark.parametrize(
    ("content", "kind", "number", "holds"),
    [
        (LEASE, "clause", "2", "It may be ended."),
        (LEASE, "section", "3", "900 euros"),
        (LEASE, "point", "2(b)", "Two years."),
        (LAW, "section", "2", "Children pay 2."),
        (LAW, "paragraph", "1", "Adults pay 5."),
        (MANUAL, "section", "4.2", "Keep it dry."),
        (MANUAL, "section", "4", "Use water."),
        (PAGES, "page", "12", "New fares."),
        (PROSE, "section", "6", "exempts schools"),
    ],
)
def test_a_part_says_what_stands_in_it(content, kind, number, holds):
    """A part holds to the next of its kind; a sub-part that is not numbered lies in its part."""
    assert holds in (said(content, kind, number) or "")


@pytest.mark.req("ATT-7")
@pytest.mark.parametrize(
    ("content", "kind", "number"),
    [
        (LEASE, "clause", "4"),
        (LAW, "section", "9"),
        (PAGES, "page", "40"),
        (PROSE, "section", "7"),
        (MANUAL, "section", "4.7"),
    ],
)
def test_a_known_numbering_lacks_a_part(content, kind, number):
    """The document numbers its parts, and this is none of them."""
    assert said(content, kind, number) is None


@pytest.mark.req("ATT-7")
@pytest.mark.parametrize(
    ("content", "kind", "number"),
    [
        ("The fee is 5 euros.", "clause", "4"),
        (LEASE, "page", "9"),
        (LEASE, "table", "2"),
        ("3. Third.\n7. Seventh.", "clause", "5"),
    ],
)
def test_an_unknown_numbering_says_nothing(content, kind, number):
    """A page of a text without pages, and a clause of an excerpt, may well be there."""
    assert said(content, kind, number) == ""


@pytest.mark.req("ATT-7")
def test_a_part_runs_on_over_the_sentences_of_a_message():
    """Facts that are sentences of one message share its numbering; another message begins anew."""
    facts = [
        Fact("m1s0", "1. Term.", 0.5),
        Fact("m1s1", "2. Rent.", 0.5),
        Fact("m1s2", "It is 900.", 0.5),
        Fact("m2s0", "Hi.", 0.5),
    ]
    found = NumberedParts.of(facts).passages("clause", "2")
    assert [passage.fact for passage in found or ()] == [1, 2]
