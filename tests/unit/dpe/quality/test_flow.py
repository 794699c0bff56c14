"""Stage 9: the four flow signals and their score (SPEC-005 §11)."""

from __future__ import annotations

import numpy as np
import pytest

from interlock.dpe.quality.flow import FlowSignals, closing, flow, has_transition, opening, weights
from interlock.dpe.quality.register import Register, Voice, consistency, text_register
from interlock.dpe.quality.topics import continuity, main_topics

PRIOR = Register(sentence_length=20.0, word_length=5.0, passive_ratio=0.30, persons=frozenset({"you"}))


def like(**changes: object) -> float:
    values = {"sentence_length": 20.0, "word_length": 5.0, "passive_ratio": 0.30, "persons": frozenset({"you"})}
    return consistency(Register(**{**values, **changes}), PRIOR)


@pytest.mark.req("DPE-9")
@pytest.mark.parametrize(
    ("signals", "score"),
    [
        ((1.0, 1.0, 1.0, 1.0), 1.0),
        ((1.0, 0.0, 0.0, 0.0), 0.35),
        ((0.0, 1.0, 0.0, 0.0), 0.25),
        ((0.0, 0.0, 1.0, 0.0), 0.20),
        ((0.0, 0.0, 0.0, 1.0), 0.20),
        ((-0.5, 0.0, 0.0, 0.0), 0.0),
    ],
)
def test_the_weights_are_those_of_the_text(signals, score):
    """0.35, 0.25, 0.20, 0.20 (§11.4); a negative cosine is no coherence."""
    assert flow(FlowSignals(*signals)).score == pytest.approx(score)
    assert sum(weights().values()) == pytest.approx(1.0)


@pytest.mark.req("DPE-9")
def test_opening_and_closing_are_two_sentences():
    """The first two of this answer, the last two of the one before (9a)."""
    assert opening(["A.", "B.", "C."]) == "A. B."
    assert closing(["A.", "B.", "C."]) == "B. C."
    assert closing(["A."]) == "A."


@pytest.mark.req("DPE-9")
@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ({}, 1.0),
        ({"sentence_length": 24.0}, 1.0), ({"sentence_length": 24.1}, 0.75),
        ({"sentence_length": 16.0}, 1.0), ({"sentence_length": 15.9}, 0.75),
        ({"word_length": 5.75}, 1.0), ({"word_length": 5.76}, 0.75), ({"word_length": 4.2}, 0.75),
        ({"passive_ratio": 0.40}, 1.0), ({"passive_ratio": 0.41}, 0.75), ({"passive_ratio": 0.19}, 0.75),
        ({"persons": frozenset()}, 0.75), ({"persons": frozenset({"you", "we"})}, 0.75),
        ({"sentence_length": 5.0, "word_length": 9.0, "passive_ratio": 1.0, "persons": frozenset({"I"})}, 0.0),
    ],
)  # fmt: skip
def test_register_tolerances(changes, share):
    """20 %, 15 %, 10 points, and the same persons (9c), at and around each bound."""
    assert like(**changes) == share


@pytest.mark.req("DPE-9")
def test_a_register_is_over_all_sentences():
    """Means over the text, and nothing of a text without words."""
    voices = [Voice(4, 16, True, frozenset({"we"})), Voice(6, 44, False, frozenset()), Voice(0, 0, False, frozenset())]

    assert text_register(voices) == Register(5.0, 6.0, 0.5, frozenset({"we"}))
    assert text_register([Voice(0, 0, False, frozenset())]) is None


@pytest.mark.req("DPE-9")
@pytest.mark.parametrize(
    "sentence",
    [
        "Furthermore, providers must keep logs.", "Building on this classification framework, the Act defines duties.",
        "As noted previously, there are four levels.", "The next aspect is oversight.", "“However, it differs.",
        "- Moreover, it costs more.", "IN ADDITION, FEES APPLY.",
    ],
)  # fmt: skip
def test_continuation_markers(sentence):
    """Those of §11.3, and their like, in any of the first three sentences (9d)."""
    assert has_transition([sentence])
    assert has_transition(["One.", "Two.", sentence])
    assert not has_transition(["One.", "Two.", "Three.", sentence])


@pytest.mark.req("DPE-9")
@pytest.mark.parametrize(
    "sentence",
    [
        "The EU AI Act introduces a risk-based approach.",
        "In conclusion, the EU AI Act is broad.",
        "Alsoran is a horse.",
        "",
    ],
)
def test_what_continues_nothing(sentence):
    """A new beginning, a closing phrase, and words that only start like a marker."""
    assert not has_transition([sentence])


@pytest.mark.req("DPE-9")
def test_topics_are_the_five_most_named_clusters():
    """By how often their head is named, then by who came first."""
    named = [("system", "ai system"), ("act", "act"), ("system", "high-risk system"), ("system", "ai system"), ("log", "log"), ("duty", "duty"), ("fine", "fine"), ("year", "year")]  # fmt: skip

    assert main_topics(named) == (
        ("system", "ai system"),
        ("act", "act"),
        ("log", "log"),
        ("duty", "duty"),
        ("fine", "fine"),
    )


@pytest.mark.req("DPE-9")
def test_topic_continuity_is_a_jaccard_similarity():
    """Two shared of four topics, one by its head and one by meaning; a topic is matched once."""
    current = (("system", "ai system"), ("duty", "duty"), ("log", "log"))
    prior = (("system", "risky system"), ("obligation", "obligation"), ("year", "year"))
    vectors, others = np.eye(3), np.array([[0.0, 0.0, 0.0], [0.0, 0.8, 0.0], [0.0, 0.71, 0.0]])

    assert continuity(current, prior, vectors, others) == pytest.approx(2 / 4)
    assert continuity((), prior, np.zeros((0, 3)), others) == 0.0
