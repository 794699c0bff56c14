"""The comparison of a child's policy with its parent's, directive by directive (SPEC-012 §4.2)."""

from __future__ import annotations

import pytest

from interlock.domain.policy.directives import NOTHING, canonical
from interlock.domain.policy.policy_order import Relaxation, merge, relaxations
from interlock.domain.policy.policy_text import parse

pytestmark = pytest.mark.req("POL-4")

TABLE = [  # directive, then its values from loosest to tightest
    ("halt-on", ["CRITICAL", "HIGH", "MEDIUM"]),
    ("warn-on", ["CRITICAL", "HIGH", "MEDIUM"]),
    ("require-grounding", ["0.00", "0.75", "0.76", "1.00"]),
    ("require-entailment", ["0.10", "0.85"]),
    ("require-flow", ["0.60", "0.80"]),
    ("require-completeness", ["0.70", "0.80"]),
    ("require-quality", ["S A B C D", "S A B", "S A", "S"]),
    ("default-src", ["context parametric ckf cross-session", "context parametric", "context", "'none'"]),
    ("max-cannot-tell", ["1.00", "0.20", "0.00"]),
    ("max-spend-usd", ["5.00", "0.000001", "0.00"]),
    ("max-spend-tokens", ["200000", "1000", "0"]),
    ("max-repetition", ["SIGNIFICANT", "MINOR", "NONE"]),
    ("oversight", ["log-only", "auto", "human-review", "halt"]),
]
STEPS = [(name, loose, tight) for name, values in TABLE for i, loose in enumerate(values) for tight in values[i + 1 :]]
COMPARED = [f"{name} {values[1]}" for name, values in TABLE] + [
    "block-ungrounded", "block-parametric", "block-pii", "block-fabrication", "block-repetition",
    "halt-on-action",
]  # fmt: skip


@pytest.mark.parametrize(("name", "loose", "tight"), STEPS)
def test_the_tighter_value_may_stand_below_the_looser_one_only(name, loose, tight):
    """Each row of the table: tightening is allowed, relaxing is named with both values."""
    looser, tighter = parse(f"{name} {loose}"), parse(f"{name} {tight}")

    assert relaxations(looser, tighter) == []
    assert relaxations(tighter, looser) == [Relaxation(name, tight, loose)]


@pytest.mark.parametrize("directive", COMPARED)
def test_leaving_out_a_directive_is_a_relaxation(directive):
    """Whatever the directive, a child that says something else leaves nothing of its parent's out (reading 6)."""
    name, _, value = directive.partition(" ")
    child = parse("warn-on MEDIUM" if name != "warn-on" else "halt-on MEDIUM")

    assert relaxations(parse(directive), child) == [Relaxation(name, value or "present", "")]


@pytest.mark.parametrize("directive", COMPARED)
def test_adding_a_directive_is_tightening(directive):
    """A directive that the parent lacks may be added."""
    assert relaxations(parse("report-to ops"), parse(directive)) == []


@pytest.mark.parametrize("directive", ["upgrade-on-risk reflexive", "report-uri https://h/", "report-to ops"])
def test_inherited_directives_may_be_left_out(directive):
    """What is inherited anyway cannot be relaxed, and the child has it (reading 6)."""
    parent, child = parse(f"halt-on CRITICAL; {directive}"), parse("halt-on HIGH")

    assert relaxations(parent, child) == []
    assert canonical(merge(parent, child)) == f"halt-on HIGH; {directive}"


@pytest.mark.parametrize(
    ("child", "shown"),
    [("default-src context ckf", "context parametric"), ("default-src cross-session", "context parametric")],
)
def test_a_source_outside_the_default_is_a_relaxation(child, shown):
    """A parent without default-src trusts `context parametric` (SPEC-006 §3.1)."""
    found = relaxations(parse("halt-on HIGH"), parse(f"halt-on HIGH; {child}"))

    assert found == [Relaxation("default-src", shown, child.removeprefix("default-src "))]


def test_log_only_is_a_relaxation_of_no_oversight():
    """A parent without oversight has `auto`."""
    assert relaxations(NOTHING, parse("oversight log-only")) == [Relaxation("oversight", "auto", "log-only")]


@pytest.mark.req("POL-4")
def test_tv_022_accepts_a_tightening():
    """TV-022: every directive tighter, one more added."""
    parent, child = (
        "halt-on CRITICAL; require-grounding 0.75",
        "halt-on HIGH; require-grounding 0.85; block-fabrication",
    )

    assert relaxations(parse(parent), parse(child)) == []


@pytest.mark.req("POL-6")
def test_tv_023_names_each_relaxation():
    """TV-023: the directive left out and the threshold lowered are both named with both values."""
    found = relaxations(
        parse("halt-on CRITICAL; require-grounding 0.75"), parse("warn-on CRITICAL; require-grounding 0.50")
    )

    assert found == [Relaxation("halt-on", "CRITICAL", ""), Relaxation("require-grounding", "0.75", "0.50")]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("halt-on CRITICAL; warn-on HIGH", "halt-on HIGH", "halt-on HIGH; warn-on HIGH"),
        ("require-grounding 0.75", "require-grounding 0.80; block-pii", "require-grounding 0.80; block-pii"),
        ("require-quality S A", "require-quality A B", "require-quality A"),
        ("default-src context parametric", "default-src context ckf", "default-src context"),
        ("default-src context", "default-src parametric", "default-src 'none'"),
        ("default-src context ckf", "halt-on HIGH", "default-src context; halt-on HIGH"),
        ("oversight log-only", "halt-on HIGH", "halt-on HIGH; oversight auto"),
        ("max-repetition MINOR", "max-repetition NONE", "max-repetition NONE"),
        ("upgrade-on-risk batch", "upgrade-on-risk reflexive", "upgrade-on-risk reflexive"),
        ("report-uri https://b/", "report-uri https://a/", "report-uri https://a/; report-uri https://b/"),
    ],
)
def test_the_join_is_the_loosest_that_is_as_strict_as_both(one, other, expected):
    """Directive by directive, the tighter value; endpoints add up."""
    assert canonical(merge(parse(one), parse(other))) == expected
