"""Sentences cut into what each stretch says of rows, and words for two sides of a condition (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.grounding.placing.records.conditions import denials, sides
from interlock.dpe.grounding.placing.records.segments import count_of, segments
from interlock.dpe.grounding.placing.records.words import named, stems_in, tokens

pytestmark = pytest.mark.req("DPE-3")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A1 is open, and B2 has not been opened.", ["A1 is open ,", "B2 has not been opened ."]),
        ("Ann, Bo and Cy are paid.", ["Ann , Bo and Cy are paid ."]),
        ("Ann, led by Bo, is in, but not Cy.", ["Ann , is in ,", "not Cy ."]),
        ("It comes with A1 and B2, not with C3.", ["It comes with A1 and B2", "not with C3 ."]),
        ("Yes, Ann is paid.", ["Ann is paid ."]),
        ("All but Ann are paid.", ["all are paid .", "! Ann"]),
        ("Every plan except Pro has it.", ["Every plan has it .", "! Pro"]),
        ("Apart from Ann, only Bo is paid.", [", only Bo is paid ."]),
        ("The exception is Bo.", ["! Bo ."]),
    ],
)
def test_a_sentence_is_cut_where_it_says_something_else(text: str, expected: list[str]) -> None:
    """Clauses, denials without a verb, asides and exceptions; lists stay whole."""
    shown = [("! " if each.excepts else "") + " ".join(token.text for token in each.tokens) for each in segments(text)]
    assert shown == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two of the three stops have it", [(2, 3)]),
        ("of the five shops, four are open", [(4, 5)]),
        ("none of the 4 rooms", [(0, 4)]),
        ("all three stops", [(3, 3)]),
        ("two of them", []),
        ("one of a kind", []),
    ],
)
def test_so_many_of_so_many(text: str, expected: list[tuple[int, int]]) -> None:
    """A count of a whole, in words or figures."""
    assert [(count, whole) for count, whole, _ in count_of(text.replace(",", "").split())] == expected


def test_sides_and_denials() -> None:
    """Phrases name sides, *on* only where something is switched, and *neither nor* denies once."""
    assert [each.positive for each in sides("it was turned down".split())] == [False]
    assert [each.positive for each in sides("it is up and running".split())] == [True]
    assert sides("a stop on the line".split()) == []
    assert denials(tokens("neither Ann nor Bo")) == 1
    assert denials(tokens("it isn't there")) == 1


def test_words_lead_to_keys() -> None:
    """Forms of a word, synonyms, two words that a key writes as one, and directions apart."""
    assert named(stems_in(tokens("the roof over the stop")), {"shelter"})
    assert named(stems_in(tokens("off-peak trains")), {"offpeak"})
    assert [token.low for token in tokens("e-mail to N2, Nora's bus 26X")] == [
        "email",
        "to",
        "n2",
        ",",
        "nora",
        "bus",
        "26x",
    ]
    assert not named(stems_in(tokens("the eastern gate")), {"west"})
