"""Remarks about policies: each trap is named, at its place, and a sound policy has none."""

from __future__ import annotations

import pytest

from interlock.domain.errors import Refused
from interlock.domain.policy.policy_text import PROFILES
from interlock.domain.policy.workbench.lint import lint
from interlock.domain.policy.workbench.rules import Gravity

pytestmark = pytest.mark.req("POL-1")

TRAPS = [
    ("halt-on HIGH; warn-on CRITICAL", "MOOT", "warn-on"),
    ("halt-on CRITICAL; oversight halt", "MOOT", "halt-on"),
    ("halt-on HIGH; oversight human-review", "MOOT", "oversight"),
    ("halt-on HIGH; oversight log-only", "MOOT", "oversight"),
    ("halt-on HIGH; oversight auto", "MOOT", "oversight"),
    ("halt-on HIGH; oversight halt", "NO_WAY_OUT", "oversight"),
    ("block-ungrounded; default-src context", "MOOT", "block-ungrounded"),
    ("block-parametric; default-src context", "MOOT", "block-parametric"),
    ("block-ungrounded; block-parametric", "MOOT", "block-ungrounded"),
    ("block-ungrounded; default-src context parametric", "MOOT", "default-src"),
    ("halt-on HIGH; default-src context parametric", "VACUOUS", "default-src"),
    ("default-src 'none'", "HALTS_ALL", "default-src"),
    ("default-src ckf cross-session", "HALTS_ALL", "default-src"),
    ("default-src parametric", "REFUSES_GROUNDED", "default-src"),
    ("default-src context ckf", "UNHEARD", "default-src"),
    ("require-grounding 0.00", "VACUOUS", "require-grounding"),
    ("require-completeness 0.00", "ASKS_ONLY", "require-completeness"),
    ("require-flow 1.00", "ONLY_PERFECT", "require-flow"),
    ("max-cannot-tell 1.00", "VACUOUS", "max-cannot-tell"),
    ("require-quality S A B C D", "VACUOUS", "require-quality"),
    ("require-quality S C", "GAP", "require-quality"),
    ("block-repetition; max-repetition SIGNIFICANT", "MOOT", "max-repetition"),
    ("halt-on HIGH; max-spend-usd 0", "NO_CALLS", "max-spend-usd"),
    ("halt-on HIGH; upgrade-on-risk batch", "STRATEGY", "upgrade-on-risk"),
    ("report-uri https://a.example/r", "REPORTS_NOTHING", ""),
    ("warn-on HIGH", "STOPS_NOTHING", ""),
    ("block-pii", "RISK_DELIVERED", ""),
    ("oversight auto; require-oversight halt", "TWICE", "oversight"),
    ("profile=medical; require-grounding 0.50", "UNDER_PROFILE", "require-grounding"),
    ("block-pii; profile=medical", "UNDER_PROFILE", "block-pii"),
]


@pytest.mark.parametrize(("text", "code", "directive"), TRAPS, ids=lambda value: value.replace(" ", "_"))
def test_each_trap_is_named_at_its_directive(text, code, directive):
    """The remark has its code, and its position is that of the directive that it is about."""
    found = [one for one in lint(text) if (one.code, one.directive) == (code, directive)]

    assert len(found) == 1
    names = (directive, "require-oversight")
    assert found[0].position == (next(text.index(name) for name in names if name in text) if directive else None)


@pytest.mark.parametrize(
    "text",
    [
        "halt-on CRITICAL; warn-on HIGH",
        "default-src context; halt-on HIGH; require-grounding 0.75",
        "halt-on CRITICAL; oversight human-review; block-pii; max-repetition MINOR; block-repetition",
        "halt-on MEDIUM; warn-on MEDIUM; upgrade-on-risk reflexive",
        "profile=medical; require-grounding 0.95",
    ],
)
def test_a_sound_policy_has_no_warning(text):
    """What says something with each directive is left alone."""
    assert [one for one in lint(text) if one.weight is Gravity.WARNING] == []


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_what_a_profile_brings_is_at_most_a_note(profile):
    """Nobody wrote the directives of a profile, so their author is not warned of them."""
    assert {one.weight for one in lint(f"profile={profile}")} <= {Gravity.NOTE}


def test_remarks_come_in_the_order_of_the_text():
    """A reader goes through the text once; what is about all of it comes last."""
    positions = [
        one.position for one in lint("require-flow 0.00; warn-on HIGH; default-src context parametric; halt-on HIGH")
    ]

    assert positions == sorted(positions)
    assert len(positions) == 3


def test_a_malformed_policy_is_refused_and_not_remarked_on():
    """Lint reads as the service reads: the mistake has its position."""
    with pytest.raises(Refused) as refused:
        lint("halt-on CRITCAL")

    assert (refused.value.reason, refused.value.metadata["position"]) == ("POLICY_BAD_VALUE", "8")
