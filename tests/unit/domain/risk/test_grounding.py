"""Which grounding mode applies, and which policies require grounding (SPEC-003 §13, SPEC-006 §3, ATT-8)."""

from __future__ import annotations

import pytest

from interlock.domain.policy.enforcement import requires_grounding
from interlock.domain.policy.policy_text import parse
from interlock.domain.risk.grounding import Basis, GroundingMode, applied, meaning
from interlock.domain.risk.risk import RiskLevel
from interlock.dpe.document import Fact
from interlock.dpe.grounding.given.basis import basis

STRICT, PREFERRED, OPEN, AUTO = GroundingMode
SOURCES, NONE = Basis


@pytest.mark.req("ATT-8")
@pytest.mark.parametrize(
    ("asked", "given", "required", "mode"),
    [
        (AUTO, SOURCES, False, PREFERRED),
        (AUTO, NONE, False, OPEN),
        (AUTO, NONE, True, PREFERRED),
        (OPEN, NONE, True, PREFERRED),
        (OPEN, SOURCES, True, PREFERRED),
        (OPEN, SOURCES, False, OPEN),
        (STRICT, NONE, False, STRICT),
        (PREFERRED, NONE, False, PREFERRED),
        (STRICT, SOURCES, True, STRICT),
    ],
)
def test_the_mode_that_applies(asked, given, required, mode):
    """Auto follows the sources. What a policy requires, no caller undoes."""
    assert applied(asked, basis=given, required=required) is mode


@pytest.mark.req("ATT-8")
@pytest.mark.parametrize(
    ("policy", "required"),
    [
        ("default-src context", True),
        ("default-src context ckf", True),
        ("default-src 'none'", True),
        ("require-grounding 0.75", True),
        ("require-entailment 0.50", True),
        ("block-ungrounded", True),
        ("block-parametric", True),
        ("default-src context parametric", False),
        ("halt-on CRITICAL; warn-on HIGH; block-fabrication", False),
    ],
)
def test_which_policies_require_grounding(policy, required):
    """The default is ``default-src context parametric`` (SPEC-006 §3.1)."""
    assert requires_grounding(parse(policy)) is required


@pytest.mark.req("ATT-8")
@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ((), NONE),
        (("You are a helpful assistant.",), NONE),
        (("You are a helpful assistant. Answer in one sentence. Be concise.",), NONE),
        (("The current date is 2026-03-02.",), NONE),
        (("You are a helpful assistant.", "The shop closes at six."), SOURCES),
        (("You are a helpful assistant. The shop closes at six.",), SOURCES),
        (("You are entitled to a refund within 30 days.",), SOURCES),
        (("Use the blue valve first.",), SOURCES),
        (("Today, the museum reopened after two years.",), SOURCES),
    ],
)
def test_what_only_instructs_is_no_source(texts, found):
    """What states anything is one, also in the words of an instruction."""
    assert basis([Fact(f"f{number}", text, 0.5) for number, text in enumerate(texts)]) is found


@pytest.mark.req("ATT-8")
def test_low_without_sources_says_what_it_does_not_mean():
    """Nothing was found is not the same as true."""
    assert "whether its statements are true was not" in meaning(RiskLevel.LOW, OPEN, NONE)
    assert meaning(RiskLevel.LOW, PREFERRED, SOURCES) == "LOW: the answer was judged against the sources of the call."


@pytest.mark.req("DPE-2")
def test_low_says_of_how_many_statements_one_cannot_tell():
    """LOW is no proof of what the sources say nothing of."""
    assert "speak against 2 of its statements" in meaning(RiskLevel.LOW, PREFERRED, SOURCES, cannot_tell=2)
