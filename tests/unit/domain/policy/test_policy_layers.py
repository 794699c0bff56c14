"""The effective policy of a request: which layers count, and what is refused (SPEC-006 §4 and §5)."""

from __future__ import annotations

import json

import pytest

from interlock.domain.errors import Kind, Refused
from interlock.domain.policy.directives import NOTHING, canonical
from interlock.domain.policy.policy_layers import Layers, resolve
from interlock.domain.policy.policy_text import parse

STRICT = "halt-on CRITICAL; warn-on HIGH; require-grounding 0.75; block-ungrounded"


def layers(*lines: str, default: str = "", base: str | None = None, **said) -> Layers:
    return Layers(
        default=parse(default) if default else NOTHING,
        base=None if base is None else parse(base) if base else NOTHING,
        lines=lines,
        **{"mode": "", "oversight": "", "report_only_lines": (), "accept_risk": "", "accept_quality": (), **said},
    )


def effective(*lines: str, **said) -> str:
    return canonical(resolve(layers(*lines, **said))[0])


def refused(*lines: str, **said) -> Refused:
    with pytest.raises(Refused) as caught:
        resolve(layers(*lines, **said))
    return caught.value


def test_nothing_said_demands_nothing():
    """Without any layer there is no demand."""
    assert effective() == ""


@pytest.mark.req("POL-2")
@pytest.mark.parametrize(
    ("mode", "expected"), [("strict", STRICT), ("warn", "warn-on HIGH"), ("permissive", ""), ("STRICT", STRICT)]
)
def test_a_mode_is_its_policy(mode, expected):
    """CRP-Safety-Mode is a shorthand, in any case of letters."""
    assert effective(mode=mode) == expected


@pytest.mark.req("POL-2")
@pytest.mark.parametrize(
    ("mode", "line", "expected"),
    [
        ("strict", "warn-on CRITICAL", STRICT),
        ("permissive", "halt-on CRITICAL", "halt-on CRITICAL"),
        ("strict", "halt-on HIGH; require-grounding 0.50", STRICT.replace("CRITICAL", "HIGH")),
        ("warn", "warn-on MEDIUM", "warn-on MEDIUM"),
    ],
)
def test_mode_and_policy_together_give_the_tighter_directive(mode, line, expected):
    """Per directive the more restrictive one applies (SPEC-002 §12.1)."""
    assert effective(line, mode=mode) == expected


def test_all_lines_are_enforced():
    """A second field line cannot take away what the first demands (A-12)."""
    assert effective("halt-on HIGH", "halt-on CRITICAL; block-pii") == "halt-on HIGH; block-pii"


def test_the_deployments_default_tightens_every_root():
    """A request cannot go below the default, with or without a policy of its own."""
    assert effective(default="require-grounding 0.80") == "require-grounding 0.80"
    assert effective("require-grounding 0.50; block-pii", default="require-grounding 0.80") == (
        "require-grounding 0.80; block-pii"
    )


def test_the_oversight_header_tightens():
    """CRP-Safety-Oversight-Mode counts where it is the tighter one."""
    assert effective(oversight="human-review") == "oversight human-review"
    assert effective("oversight halt", oversight="log-only") == "oversight halt"


@pytest.mark.parametrize(
    ("line", "beside_another"),
    [
        ("default-src context ckf", "default-src context; block-pii"),
        ("oversight log-only", "block-pii; oversight auto"),
    ],
)
def test_only_a_layer_that_says_something_narrows(line, beside_another):
    """A root may choose what lies outside a directive's default, unless another layer speaks and has that default."""
    assert effective(line, mode="permissive") == line
    assert effective(line, default="block-pii") == beside_another


@pytest.mark.req("POL-5")
@pytest.mark.parametrize("base", [STRICT, "", "default-src context parametric ckf; oversight log-only"])
def test_without_a_policy_of_its_own_the_base_stands_verbatim(base):
    """Neither the default nor a permissive mode changes what was inherited."""
    assert effective(base=base, default="block-pii", mode="permissive") == base


def test_mode_and_oversight_tighten_the_base():
    """The shorthands need not repeat the base: they only tighten."""
    assert effective(base="halt-on HIGH", mode="strict", oversight="halt") == (
        STRICT.replace("halt-on CRITICAL", "halt-on HIGH") + "; oversight halt"
    )


def test_log_only_does_not_loosen_a_base_without_oversight():
    """The absent mode means auto, and the header cannot go below it."""
    assert effective(base="", oversight="log-only") == "oversight auto"


def test_a_tighter_policy_joins_the_base_and_inherits_the_rest():
    """TV-022: what is tighter counts, what is inherited stays."""
    assert (
        effective(
            "halt-on HIGH; require-grounding 0.85; block-fabrication",
            base="halt-on CRITICAL; require-grounding 0.75; upgrade-on-risk reflexive; report-to ops",
        )
        == "halt-on HIGH; require-grounding 0.85; block-fabrication; upgrade-on-risk reflexive; report-to ops"
    )


@pytest.mark.req("POL-6")
def test_a_relaxation_is_refused_with_both_values():
    """TV-023: 403 that names every directive with both values."""
    error = refused(
        "warn-on CRITICAL; require-grounding 0.50", base="halt-on CRITICAL; require-grounding 0.75; block-pii"
    )

    assert (error.kind, error.reason) == (Kind.FORBIDDEN, "SAFETY_POLICY_INHERITANCE_VIOLATION")
    assert [error.metadata[key] for key in ("directive", "parent", "child")] == ["halt-on", "CRITICAL", ""]
    assert json.loads(error.metadata["relaxations"]) == [
        {"directive": "halt-on", "parent": "CRITICAL", "child": ""},
        {"directive": "require-grounding", "parent": "0.75", "child": "0.50"},
        {"directive": "block-pii", "parent": "present", "child": ""},
    ]
    assert "require-grounding 0.75 is relaxed to 0.50" in error.message


@pytest.mark.req("POL-6")
def test_lines_that_together_are_as_strict_relax_nothing():
    """The lines of one request are one policy, whatever the split."""
    assert effective("halt-on HIGH", "block-pii", base="halt-on HIGH; block-pii") == "halt-on HIGH; block-pii"


@pytest.mark.req("POL-6")
def test_a_default_does_not_hide_a_relaxation():
    """A policy below its base is refused, even where the deployment's default would have lifted it."""
    error = refused(
        "require-grounding 0.50; block-pii", base="require-grounding 0.75", default="require-grounding 0.75"
    )

    assert error.reason == "SAFETY_POLICY_INHERITANCE_VIOLATION"


@pytest.mark.req("POL-8")
@pytest.mark.parametrize(
    ("default", "line", "said"),
    [
        ("require-grounding 0.80", "halt-on HIGH", {}),
        ("require-grounding 0.80; warn-on HIGH", "require-grounding 0.50; oversight log-only", {}),
        ("", "halt-on HIGH", {"mode": "strict", "oversight": "log-only"}),
        ("block-pii", "default-src context ckf", {"mode": "warn"}),
        ("", "profile=medical; report-uri https://h/", {}),
    ],
)
def test_the_same_request_again_relaxes_nothing(default, line, said):
    """A client that sends the same headers with every call of a session is not refused for the layers added to them."""
    first = effective(line, default=default, **said)

    assert effective(line, default=default, base=first, **said) == first


@pytest.mark.req("POL-8")
def test_after_a_tightening_the_earlier_policy_is_a_relaxation():
    """What a session has tightened stays tightened."""
    error = refused("halt-on CRITICAL", base="halt-on HIGH")

    assert error.metadata["relaxations"] == '[{"directive":"halt-on","parent":"HIGH","child":"CRITICAL"}]'


@pytest.mark.req("POL-2")
def test_report_only_lines_are_joined_apart():
    """The report-only policy is its own, and takes nothing from the enforced one."""
    enforced, reported = resolve(layers("halt-on HIGH", report_only_lines=("require-grounding 0.8", "block-pii")))

    assert canonical(enforced) == "halt-on HIGH"
    assert canonical(reported) == "require-grounding 0.80; block-pii"


@pytest.mark.parametrize(
    ("said", "reason", "metadata"),
    [
        ({"mode": "stict"}, "SAFETY_MODE_UNKNOWN", {"header": "CRP-Safety-Mode", "did_you_mean": "strict"}),
        ({"mode": "strict "}, "SAFETY_MODE_UNKNOWN", {"expected": "one of strict warn permissive"}),
        ({"oversight": "off"}, "OVERSIGHT_MODE_UNKNOWN", {"header": "CRP-Safety-Oversight-Mode", "got": "off"}),
        ({"accept_risk": "NONE"}, "ACCEPT_RISK_UNKNOWN", {"expected": "one of LOW MEDIUM HIGH CRITICAL"}),
        ({"accept_quality": ("S", "E")}, "ACCEPT_QUALITY_UNKNOWN", {"header": "CRP-Accept-Quality", "got": "E"}),
        ({"accept_quality": ("S", "")}, "ACCEPT_QUALITY_UNKNOWN", {}),
        ({"mode": "\x00\u241f"}, "SAFETY_MODE_UNKNOWN", {"got": "\\x00\\u241f"}),
    ],
)
def test_an_unknown_keyword_is_refused(said, reason, metadata):
    """A header that would otherwise be ignored is refused, naming it and what was expected."""
    error = refused(**said)

    assert (error.kind, error.reason) == (Kind.INVALID, reason)
    assert metadata.items() <= error.metadata.items()


def test_acceptance_of_the_call_is_no_part_of_the_policy():
    """What a caller accepts for one call does not bind the session."""
    assert effective(accept_risk="low", accept_quality=("s", "A")) == ""


@pytest.mark.req("POL-1")
def test_a_malformed_line_is_named():
    """With several lines the refusal tells which header and which line, from 0."""
    enforced = refused("halt-on HIGH", "halt-on LOW")
    reported = refused(report_only_lines=("nonsense",))

    assert {"header": "CRP-Safety-Policy", "line": "1", "position": "8"}.items() <= enforced.metadata.items()
    assert {"header": "CRP-Safety-Policy-Report-Only", "line": "0"}.items() <= reported.metadata.items()


def test_layers_without_a_common_tier_are_refused():
    """A request that the default leaves no tier is told so, rather than refused at every call."""
    assert refused("require-quality C", default="require-quality S A").reason == "POLICY_UNSATISFIABLE"


def test_layers_that_do_not_fit_together_are_refused():
    """A join that is longer than the language allows could not be read back (fails closed)."""
    lines = [f"report-uri https://h/{i}".ljust(5000, "a") for i in range(2)]

    assert effective(lines[0]).startswith("report-uri https://h/0a")
    assert refused(*lines).reason == "POLICY_TOO_LONG"


def test_more_lines_than_are_read_are_refused():
    """No line is dropped in silence: too many are refused."""
    assert effective(*["halt-on HIGH"] * 32) == "halt-on HIGH"
    assert refused(*["halt-on HIGH"] * 33).reason == "POLICY_TOO_LONG"
