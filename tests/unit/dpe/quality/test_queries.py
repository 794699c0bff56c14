"""Stage 8a: what a query asks for, taken apart with the real parser (SPEC-005 §10.2)."""

from __future__ import annotations

import re

import pytest

from interlock.dpe.quality.decomposition import MAX_CHARS, decomposed
from interlock.dpe.quality.queries import MAX_NEEDS, TOKEN_CHARS
from tests.support.dpe import pipeline

pytestmark = pytest.mark.models


def taken_apart(query: str) -> list[str]:
    return [need.text for need in decomposed(query, pipeline().language)[0]]


def tokens(query: str) -> list[str]:
    return [need.token for need in decomposed(query, pipeline().language)[0]]


@pytest.mark.req("DPE-8")
def test_the_example_of_the_text():
    """The five sub-queries of §10.2."""
    assert taken_apart(
        "Compare EU AI Act and GDPR approaches to automated decision-making \n"
        "        and list the compliance requirements for each"
    ) == [
        "EU AI Act approach to automated decision-making",
        "GDPR approach to automated decision-making",
        "Comparison between the two approaches",
        "EU AI Act compliance requirements",
        "GDPR compliance requirements",
    ]


@pytest.mark.req("DPE-8")
@pytest.mark.parametrize(
    ("query", "needs"),
    [
        ("Tell me about the Eiffel Tower.", ["Eiffel Tower"]),
        ("What are the causes, symptoms and treatments of diabetes?", ["causes of diabetes", "symptoms of diabetes", "treatments of diabetes"]),
        ("What is the height of the Eiffel Tower and who built it?", ["height of the Eiffel Tower", "who built the Eiffel Tower"]),
        ("Explain the benefits of nuclear power. How does it compare with wind power?", ["benefits of nuclear power", "How does nuclear power compare with wind power"]),
        ("Describe Paris, Lyon, and Marseille.", ["Paris", "Lyon", "Marseille"]),
        ("Compare Python and Rust", ["Python", "Rust", "Comparison between Python and Rust"]),
        ("PostgreSQL vs MySQL for analytics", ["PostgreSQL for analytics", "MySQL for analytics", "Comparison between PostgreSQL and MySQL"]),
        ("What is the difference between TCP and UDP?", ["difference between TCP and UDP"]),
        ("Summarise the report and list the open action items", ["report", "open action items"]),
        ("What is supply and demand?", ["supply and demand"]),
        ("Describe the climate of Norway and the economy of Sweden.", ["climate of Norway", "economy of Sweden"]),
        ("List the advantages and disadvantages of solar energy and give an example for each.", ["advantages of solar energy", "disadvantages of solar energy", "example for advantages of solar energy", "example for disadvantages of solar energy"]),
        ("1. Explain photosynthesis\n2. Explain respiration", ["photosynthesis", "respiration"]),
        ("My name is Tom. I work at ACME. Could you please explain how the refund policy works?", ["how the refund policy works"]),
        ("Explain it. Explain it.", ["it"]),
    ],
)  # fmt: skip
def test_what_a_query_asks_for(query, needs):
    """Coordinated objects, several questions, lists, comparisons; told material is not asked for."""
    assert taken_apart(query) == needs


@pytest.mark.req("DPE-8")
@pytest.mark.parametrize("query", ["", " \n ", "!!!", "\u200b"])
def test_without_a_query_there_is_no_need(query):
    """And the reason is given."""
    assert decomposed(query, pipeline().language) == ((), "no query")


@pytest.mark.req("DPE-8")
@pytest.mark.parametrize(
    "query",
    [
        "\n".join(f"What is item {number}?" for number in range(MAX_NEEDS + 1)),
        "What is " + "very " * MAX_CHARS + "big?",
    ],
)
def test_a_query_that_asks_for_too_much_is_not_half_read(query):
    """Nothing is left out in silence: the stage says that it did not run."""
    needs, why = decomposed(query, pipeline().language)

    assert (needs, why) == ((), "the query asks for too much to be taken apart")


@pytest.mark.req("DPE-8")
def test_a_list_too_long_to_be_taken_apart_loses_no_item():
    """What is not told apart is asked for together."""
    items = [f"{kind}{number}" for number in range(MAX_NEEDS + 1) for kind in ("Item", "A", "B")]
    listed = ", ".join(f"Item{number} of A{number} and B{number}" for number in range(MAX_NEEDS + 1))
    asked = " ".join(taken_apart(f"Describe {listed}."))

    assert set(items) <= set(re.findall(r"\w+", asked))


@pytest.mark.req("DPE-8", "HDR-6")
@pytest.mark.parametrize(
    "query",
    [
        "What is x\r\nCRP-Safety-Hallucination-Risk: LOW?",
        "What is a; uncovered=none, sub-queries=9/9?",
        "Was sind die Größen und die Währungen?",
        "什么是欧盟人工智能法？",
        "What is " + "supercalifragilistic" * 9 + "?",
        "List a, b, A, and B.",
        "Explain C++ and C#.",
    ],
)
def test_names_for_headers_are_of_a_fixed_alphabet(query):
    """A-16: whatever a query says, its tokens cannot leave their place in a header, and no two are alike."""
    named = tokens(query)

    assert named
    assert len(set(named)) == len(named)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", token) and len(token) <= TOKEN_CHARS for token in named)
