"""Laws of the quality stages: what holds for every text and every number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.domain.policy.directives import Tier
from interlock.domain.policy.quality import QualityWeights, capped, quality_score
from interlock.dpe.quality import completeness, flow
from interlock.dpe.quality.queries import Need
from interlock.dpe.quality.register import Register, consistency
from interlock.dpe.quality.repetition import OVERLAP_BANDS, SEMANTIC_BANDS, band, grams, overlap

RATIOS = st.floats(0.0, 1.0)
WORDS = st.lists(st.sampled_from("a b c d e".split()), max_size=30).map(" ".join)


@pytest.mark.req("DPE-15")
@given(*[RATIOS] * 4, RATIOS, st.sampled_from(["repetition", "completeness", "flow", "coherence"]))
def test_a_worse_input_never_raises_the_score(repetition, complete, flowing, coherent, worse, name):
    """Each input counts in one direction, and the score stays between 0.0 and 1.0."""
    inputs = {"repetition": repetition, "completeness": complete, "flow": flowing, "coherence": coherent}
    before = quality_score(**inputs, weights=QualityWeights())
    pick = max if name == "repetition" else min
    after = quality_score(**{**inputs, name: pick(inputs[name], worse)}, weights=QualityWeights())

    assert 0.0 <= after <= before + 1e-12 <= 1.0 + 1e-9


@pytest.mark.req("DPE-15")
@given(RATIOS, st.sampled_from(list(Tier)))
def test_a_cap_never_raises_a_tier(score, tier):
    """Tiers are in falling order, so a lowered one comes later."""
    order = list(Tier)

    assert order.index(capped(tier, score)) >= order.index(tier)


@pytest.mark.req("DPE-7")
@given(RATIOS, RATIOS, st.sampled_from([OVERLAP_BANDS, SEMANTIC_BANDS]))
def test_more_repetition_is_never_a_lower_level(one, other, bounds):
    """The bands rise."""
    assert band(min(one, other), bounds) <= band(max(one, other), bounds)


@pytest.mark.req("DPE-7")
@settings(max_examples=60)
@given(WORDS, st.lists(WORDS, max_size=3), WORDS)
def test_overlap_laws(current, windows, more):
    """A share; one more window never lowers it; a text that was there before is all overlap."""
    known = [frozenset(grams([window])) for window in windows]
    share = overlap(grams([current]), known)

    assert 0.0 <= share <= overlap(grams([current]), [*known, frozenset(grams([more]))]) <= 1.0
    assert overlap(grams([current]), [frozenset(grams([f"x {current} y"]))]) == float(len(current.split()) >= 4)


@pytest.mark.req("DPE-8")
@given(RATIOS, RATIOS)
def test_more_coverage_is_never_a_lower_band(one, other):
    """COMPLETE over MOSTLY_COMPLETE over PARTIAL over INCOMPLETE."""
    order = ["INCOMPLETE", *(name for name, _ in reversed(completeness.BANDS))]

    assert order.index(completeness.level(min(one, other))) <= order.index(completeness.level(max(one, other)))


@pytest.mark.req("DPE-9")
@given(*[st.floats(-1.0, 1.0)] * 4)
def test_flow_is_a_weighted_mean_of_what_is_clamped(opening, topic, register, transition):
    """Between 0.0 and 1.0, and the signals are reported as they were weighed."""
    found = flow.flow(flow.FlowSignals(opening, topic, register, transition))

    assert 0.0 <= found.score <= 1.0
    assert found.signals == flow.FlowSignals(*(max(0.0, value) for value in (opening, topic, register, transition)))


@pytest.mark.req("DPE-9")
@given(st.floats(1.0, 60.0), st.floats(2.0, 12.0), RATIOS, st.frozensets(st.sampled_from(["I", "we", "you"])))
def test_a_text_is_written_like_itself(length, letters, passive, persons):
    """Every register agrees with itself."""
    register = Register(length, letters, passive, persons)

    assert consistency(register, register) == 1.0


@pytest.mark.req("DPE-8")
@given(st.integers(0, 5), st.integers(1, 4))
def test_a_sentence_more_never_uncovers_a_need_by_the_plain_reading(said, needs):
    """Coverage is cumulative over the session."""
    rng = np.random.default_rng(said * 10 + needs)
    vectors, sentences = rng.normal(size=(needs, 4)), rng.normal(size=(said + 1, 4))
    names = [Need(f"need {n}", str(n)) for n in range(needs)]
    texts = [f"s{n}" for n in range(said + 1)]
    less = completeness.completeness(names, vectors, texts[:said], sentences[:said], method="cosine")
    more = completeness.completeness(names, vectors, texts, sentences, method="cosine")

    assert less.score <= more.score
