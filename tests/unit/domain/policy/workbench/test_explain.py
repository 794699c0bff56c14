"""Policies in sentences and differences between two: what is said is what is decided."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.domain.policy.directives import DIRECTIVES, Policy
from interlock.domain.policy.policy_text import PROFILES, parse
from interlock.domain.policy.workbench.difference import difference
from interlock.domain.policy.workbench.explain import at_each_risk, sentences
from interlock.domain.policy.workbench.trial import CLEAN, Trial, tried, word
from interlock.domain.risk.risk import RiskLevel

pytestmark = pytest.mark.req("POL-3")

ALL = (
    "default-src context; halt-on CRITICAL; warn-on HIGH; require-grounding 0.75; require-entailment 0.80; require-quality S A; "
    "require-flow 0.50; require-completeness 0.60; block-ungrounded; block-parametric; block-pii; block-fabrication; "
    "block-repetition; max-repetition MINOR; max-cannot-tell 0.20; max-spend-usd 5.00; max-spend-tokens 1000; halt-on-action; "
    "upgrade-on-risk reflexive; oversight human-review; report-uri https://a.example/r; report-to ops"
)


def test_every_directive_has_a_sentence():
    """A directive that is added to the language and has no sentence fails here."""
    told = sentences(parse(ALL))

    assert [one.directive.partition(" ")[0] for one in told] == list(DIRECTIVES)
    assert all(one.does.endswith(".") and one.does[0].isupper() for one in told)


def test_what_is_said_at_a_risk_is_what_is_decided():
    """At each risk level the word is the decision's own, with and without a reviewer."""
    for text in (*PROFILES.values(), ALL, "oversight halt", "halt-on HIGH; oversight halt", "block-pii"):
        policy = parse(text)
        for reviewed in (True, False):
            for said in at_each_risk(policy, reviewed=reviewed):
                outcome = tried(policy, Trial(findings=replace(CLEAN, risk=said.risk), reviewed=reviewed)).outcome
                assert word(outcome) in said.closed
                assert ("(releasable)" in said.closed) == (outcome.oversight_required and word(outcome) == "halted")


def test_without_a_reviewer_what_would_be_held_is_halted():
    """The half-open column says so too."""
    [_, _, high, _] = at_each_risk(parse("halt-on CRITICAL"), reviewed=False)
    [_, _, reviewed, _] = at_each_risk(parse("halt-on CRITICAL"))

    assert (high.closed, high.half_open) == ("delivered", "halted by oversight")
    assert reviewed.half_open == "held for a reviewer"


@pytest.mark.parametrize(
    ("before", "after", "changed", "loosens"),
    [
        ("halt-on CRITICAL", "halt-on HIGH", {"halt-on": "stricter"}, False),
        ("halt-on HIGH; block-pii", "halt-on HIGH", {"block-pii": "looser"}, True),
        ("default-src context", "default-src parametric", {"default-src": "neither"}, True),
        ("halt-on HIGH", "halt-on HIGH; oversight auto", {"oversight": "same"}, False),
        ("halt-on HIGH; report-to ops", "halt-on HIGH; report-to dev", {"report-to": "neither"}, True),
        ("block-pii", "block-pii", {}, False),
    ],
)
def test_each_change_has_its_direction(before, after, changed, loosens):
    """Stricter, looser, neither, or the same in effect."""
    found = difference(parse(before), parse(after))

    assert {one.directive: str(one.direction) for one in found.changes} == changed
    assert found.loosens is loosens


def test_the_risk_levels_that_move_are_named():
    """Those at which the same happens are left out."""
    found = difference(parse("halt-on CRITICAL"), parse("halt-on HIGH"))

    assert [one.before.risk for one in found.moved] == [RiskLevel.HIGH]
    assert (found.moved[0].before.closed, found.moved[0].after.closed) == (
        "delivered",
        "halted by halt-on (releasable)",
    )
    assert difference(Policy(), Policy()).moved == []
