"""References to numbered parts: cut where they are citations, left where the sentence is about the part (ATT-7)."""

from __future__ import annotations

import pytest

from interlock.dpe.text.marks import marks, unmarked
from interlock.dpe.text.references.parts import references
from interlock.dpe.text.text import plain


def cut(text: str) -> str:
    return unmarked(plain(text), [(each.start, each.end, each.put) for each in references(text)]).chars


@pytest.mark.req("ATT-7")
@pytest.mark.parametrize(
    ("text", "read", "parts"),
    [
        ("Rent is due on the first (clause 3).", "Rent is due on the first.", ["clause 3"]),
        ("Both pay half (clauses 3 and 4).", "Both pay half.", ["clause 3", "clause 4"]),
        ("Both pay half (clauses 2-4).", "Both pay half.", ["clause 2", "clause 3", "clause 4"]),
        ("Both pay half (see clause 3; clause 7).", "Both pay half.", ["clause 3", "clause 7"]),
        ("Ovens are cleaned weekly [section 4.2].", "Ovens are cleaned weekly.", ["section 4.2"]),
        ("Late entries lose (rule 7(b) of the handbook).", "Late entries lose.", ["rule 7(b)"]),
        ("The fee is €5 (page 12, table 3).", "The fee is €5.", ["page 12", "table 3"]),
        ("Loads above 5 t are barred (Appendix B).", "Loads above 5 t are barred.", ["appendix b"]),
        ("You pay late fees (£25, clause 3).", "You pay late fees (£25).", ["clause 3"]),
        ("Hunde sind erlaubt (§ 6 Abs. 2).", "Hunde sind erlaubt.", ["section 6", "paragraph 2"]),
        ("Under clause 5 the landlord repairs it.", "The landlord repairs it.", ["clause 5"]),
        ("According to section 4.2, ovens are cleaned.", "Ovens are cleaned.", ["section 4.2"]),
        ("In step 2, the dough rests.", "The dough rests.", ["step 2"]),
        ("Laut § 3 ist die Miete fällig.", "Ist die Miete fällig.", ["section 3"]),
        ("Según el artículo 5, el plazo es de un mes.", "El plazo es de un mes.", ["article 5"]),
        ("Selon l'article 5, le délai est d'un mes.", "Le délai est d'un mes.", ["article 5"]),
        ("Enligt punkt 3 betalas hyran i förskott.", "Betalas hyran i förskott.", ["point 3"]),
        ("Refunds take a month, as stated in section 4.", "Refunds take a month.", ["section 4"]),
        ("They agree that under clause 3, rent is due.", "They agree that rent is due.", ["clause 3"]),
        ("No. Clause 7 forbids subletting.", "No. The source forbids subletting.", ["clause 7"]),
        ("Sections 4 and 5 forbid it.", "The sources forbid it.", ["section 4", "section 5"]),
        ("- Clause 5: The landlord repairs it.", "- The landlord repairs it.", ["clause 5"]),
        ("**Article 5 – Repairs:** all pay.", "**Repairs:** all pay.", ["article 5"]),
    ],
)
def test_a_citation_of_a_part_is_cut(text, read, parts):
    """The sentence is read without it, and the parts that it names are known."""
    assert cut(text) == read
    assert [f"{kind} {number}" for each in references(text) for kind, number in each.parts] == parts


@pytest.mark.req("ATT-7")
@pytest.mark.parametrize(
    "text",
    [
        "This is subject to clause 7.",
        "The tenant is in breach of clause 4.",
        "The dog rules are in clause 6.",
        "Article 17 GDPR requires erasure.",
        "He was convicted under section 21 of the Housing Act.",
        "Version 3.1 was released (version 3.1).",
        "At that point 30 people left.",
        "The `clause 3` marker is code.",
        "They scored 3 points (3 points).",
        "Step 2 takes five minutes.",
        "Under 5 people came in 3 parts.",
    ],
)
def test_what_a_sentence_is_about_stays(text):
    """A part that the sentence speaks of, a law beside the source, code and plain figures are read as they are."""
    assert cut(text) == text


@pytest.mark.req("ATT-7")
def test_a_reference_is_kept_as_a_mark_of_its_sentence():
    """It leads where it opens the sentence, and follows else; code blocks have none."""
    found = marks("Under clause 5 he pays. She pays (clause 6).\n```\nfail (clause 7)\n```").found
    assert [(mark.written, mark.leads) for mark in found] == [("clause 5", True), ("clause 6", False)]
