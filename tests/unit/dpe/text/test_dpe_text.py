"""Normalised text keeps the place of every character, and what hides is found (reliability.md A-24)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.dpe.text.text import normalised, plain

ZWJ, ZWNJ, VS16, RLO, SHY = "\u200d", "\u200c", "\ufe0f", "\u202e", "\u00ad"


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize(
    ("raw", "chars"),
    [
        ("Eif\u200bfel", "Eiffel"),
        (f"Eif{SHY}fel", "Eiffel"),
        ("\uff11\uff15%", "15%"),
        ("ﬁne", "fine"),
        (f"{RLO}330\u202c m", "330 m"),
        ("a\u0000b", "ab"),
        ("e\u0301", "é"),
        ("\U000e0041safe", "safe"),
        ("10⁶ and 3½", "10^6 and 3 1⁄2"),
        ("10¹² 2² 3⁴", "10^12 2^2 3^4"),
        ("½ cup, 5 m²", "1⁄2 cup, 5 m2"),
    ],
)
def test_a_text_is_read_as_a_reader_sees_it(raw, chars):
    """NFKC, without zero-width, bidirectional, tag and control characters."""
    assert normalised(raw)[0].chars == chars


@pytest.mark.req("DPE-1")
def test_places_point_into_the_text_as_written():
    """A span of the normalised text marks the characters that it was made from."""
    raw = "The Eif\u200bfel Tower, \uff13\uff13\uff10 m"
    text, _ = normalised(raw)
    start, end = text.span(text.chars.index("Eiffel"), text.chars.index("Eiffel") + 6)

    assert raw[start:end] == "Eif\u200bfel"
    at = text.chars.index("330")
    assert raw[slice(*text.span(at, at + 3))] == "\uff13\uff13\uff10"


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize("raw", ["Eif\u200bfel", f"to{RLO}wer", f"to{SHY}wer", "\U000e0041x", f"a{ZWJ}b", f"a{VS16}b", f"🙂{VS16}{VS16}", "a\u0001b", "\u200fabc"])  # fmt: skip
def test_what_hides_is_counted(raw):
    """Characters that only hide something are counted as suspicious."""
    assert normalised(raw)[1] > 0


@pytest.mark.parametrize(
    "raw",
    [
        f"👨{ZWJ}👩{ZWJ}👧 family",
        f"I ❤{VS16} it",
        f"می{ZWNJ}خواهم",
        "\ufeffHello",
        "\u200fשלום 15%",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "line one\nline two\t!",
        "naïve café — “quoted” … 10²",
    ],
)
def test_honest_use_is_not_counted(raw):
    """Emoji, Persian, right-to-left marks, a flag, a byte order mark and layout are no evasion."""
    assert normalised(raw)[1] == 0


@given(st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_every_character_has_a_place(raw):
    """Whatever the input, places are inside it and in order."""
    text, _ = normalised(raw)

    assert len(text.chars) == len(text.starts) == len(text.ends)
    assert all(0 <= start < end <= len(raw) for start, end in zip(text.starts, text.ends, strict=True))
    assert list(text.starts) == sorted(text.starts)


def test_a_text_without_a_part_keeps_the_places_of_the_rest():
    """Taking markup out moves no offset."""
    text = plain("**bold** x").without([(0, 2), (6, 8)])

    assert (text.chars, text.span(0, 4)) == ("bold x", (2, 6))
