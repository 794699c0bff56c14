"""The fan-in without models: passages, seams, and how findings are reported (SPEC-012 §9)."""

from __future__ import annotations

import numpy as np
import pytest

from interlock.dpe.comparison.disagreement import KINDS
from interlock.dpe.inference.language import Language
from interlock.dpe.inference.port import EMBEDDING_WIDTH, ModelInfo
from interlock.dpe.quality.coherence import CrossWindow
from interlock.dpe.quality.cross_agent import TYPES, Between, CrossAgent, FanIn, passages, stitched
from interlock.dpe.quality.profile import EmbeddedProfile, TextProfile
from interlock.dpe.quality.register import Register
from tests.support.texts.reports import sample

ONE = "The first part has a good many words in it, as parts of a real report do, and then ends."
TWO = "The second part goes on about the same matter at some length, and it ends as well at last."
REGISTER = Register(10.0, 5.0, 0.0, frozenset())


@pytest.fixture
def language():
    """A splitter at full stops; nothing is parsed."""

    def split(text: str):
        ends = [n + 1 for n, char in enumerate(text) if char == "."]
        return iter(zip([0, *ends], ends, strict=False))

    made = Language(None, split, ModelInfo("parser", "none", "", "embedded"))
    yield made
    made.close()


def heard(
    direction: int, *, register: Register = REGISTER, topic: str = "part", sentence: str = "It is."
) -> EmbeddedProfile:
    """A passage whose opening and closing point one way."""
    row = np.zeros((1, EMBEDDING_WIDTH), dtype=np.float32)
    row[0, direction] = 1.0
    profile = TextProfile((sentence,), (), (), frozenset(), register, ((topic, topic),))
    return EmbeddedProfile(profile, row, row[:0], row, row, row)


@pytest.mark.req("DPE-19")
def test_paragraphs_are_passages(language):
    """Blank lines part them; a heading goes with what it stands over, and a short end with what it follows."""
    assert passages(f"{ONE}\n\n{TWO}", language) == (ONE, TWO)
    assert passages(f"# Part\n\n{ONE}\n \n{TWO}\n\nThe end.", language) == (f"# Part\n\n{ONE}", f"{TWO}\n\nThe end.")


@pytest.mark.req("DPE-19")
def test_what_has_no_paragraphs_is_taken_in_runs(language):
    """To paste without a blank line hides no seam."""
    text = " ".join([ONE] * 3 + [TWO] * 3)

    assert [part.count(".") for part in passages(text, language)] == [3, 3]


@pytest.mark.req("DPE-19")
def test_what_is_too_short_has_no_flow(language):
    """One passage has no seam, and no passage neither: the value is absent, not good."""
    assert len(passages(ONE, language)) == 1
    assert passages("", language) == ()
    assert stitched([heard(0)], 3) is None
    assert stitched([], 3) is None


@pytest.mark.req("DPE-19")
def test_the_weakest_places_count_as_many_as_there_are_seams():
    """Three reports have two seams: what flows inside each of them makes up for neither."""
    same = [heard(0)] * 4
    strange = heard(1, register=Register(30.0, 8.0, 1.0, frozenset({"I"})), topic="other")

    assert stitched(same, 3) == pytest.approx(0.35 + 0.25 + 0.20)
    assert stitched([*same, strange, *same], 3) == 0.0
    assert stitched([*same, strange], 2) == 0.0
    assert stitched([*same, strange], 3) == pytest.approx((0.0 + 0.80) / 2)


def between(kind: str, severity: str) -> Between:
    found = CrossWindow("c1", "", "Revenue grew 15 %.", 0.9, severity, "numbers", kind, window_id="a")
    return Between("a", "Revenue grew 15 %.", "b", "Revenue declined 3 %.", found)


@pytest.mark.req("DPE-19")
def test_every_kind_of_disagreement_has_a_name_in_the_report():
    """One of those that the interface names."""
    assert set(TYPES) == set(KINDS)
    assert set(TYPES.values()) <= {"DIRECT", "NUMERICAL", "TEMPORAL", "SCOPE", "ATTRIBUTION"}


@pytest.mark.req("DPE-19")
def test_contradictions_between_answers_count_as_cross_window_ones():
    """They stand in the list, the count and the scope of the report, beside what is said of them as a fan-in."""
    plain = sample()
    found = sample(crossed=CrossAgent(2, (between("numeric", "CRITICAL"),), (), None, None))
    added = found.contradictions[-1]

    assert found.contradiction_count == plain.contradiction_count + 1
    assert (added.scope, added.severity, added.window_id, added.claim_id, added.other_text) == (
        "cross-window", "CRITICAL", "a", "b:c1", "Revenue grew 15 %.",
    )  # fmt: skip
    [crossed] = found.cross_agent.contradictions
    assert (crossed.source_a, crossed.source_b, crossed.type, crossed.severity) == ("a", "b", "NUMERICAL", "CRITICAL")
    assert (crossed.claim_a, crossed.claim_b) == ("Revenue grew 15 %.", "Revenue declined 3 %.")


@pytest.mark.req("DPE-19")
def test_what_a_fan_in_cannot_say_is_absent():
    """No sub-query, no completeness; too short, no flow."""
    found = sample(crossed=CrossAgent(2, (), (), None, None)).cross_agent

    assert found.merged == 2
    assert not found.HasField("completeness")
    assert not found.HasField("flow")


@pytest.mark.req("DPE-19")
def test_a_minor_inconsistency_contradicts_no_claim():
    """It is reported and no more; each side of a grave one counts once."""
    merged = FanIn((), (between("minor", "LOW"), between("numeric", "CRITICAL"), between("logical", "HIGH")))

    assert merged.contradicted() == 2
    assert FanIn((), (between("minor", "LOW"),)).contradicted() == 0
