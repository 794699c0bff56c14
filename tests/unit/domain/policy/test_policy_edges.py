"""What a refused policy says, word for word: people fix their policies by it, and clients read its metadata."""

from __future__ import annotations

import pytest

from interlock.domain.errors import Kind, Refused
from interlock.domain.policy.directives import Policy, Tier
from interlock.domain.policy.policy_order import merge, relaxations
from interlock.domain.policy.policy_text import parse

SPACING = "one space between words, none before ';' or at the end"
MISPLACED = "misplaced white space or control character at character"
PROFILES = "medical financial developer public-facing"
QUALITY = "require-quality S A B and require-quality D accept no tier in common"

CASES = [
    ("", "EMPTY", "the policy is empty", "0", "a directive", "", ""),
    ("\t ", "EMPTY", "the policy is empty", "0", "a directive", "", ""),
    ("a" * 8193, "TOO_LONG", "a policy has at most 8192 bytes, this one has 8193 characters", "8192", "at most 8192 bytes",
     "8193 characters", ""),
    ("halt-on HIGH\u00e9", "NOT_ASCII", "a policy is ASCII only; character 12 is not", "12", "ASCII", "U+00E9", ""),
    ("halt-on HIGH; HALT-ON medium", "DUPLICATE_DIRECTIVE", "duplicate directive halt-on at character 14", "14",
     "each directive once", "halt-on", ""),
    ("profile=medical;profile=medical", "DUPLICATE_DIRECTIVE", "duplicate directive profile at character 16", "16",
     "each directive once", "profile=", ""),
    ("report-to a; report-to a", "DUPLICATE_DIRECTIVE", "duplicate directive report-to at character 13", "13",
     "each directive once", "report-to a", ""),
    ("halt-on  HIGH", "BAD_SYNTAX", f"{MISPLACED} 8", "8", SPACING, " ", ""),
    ("halt-on HIGH ;warn-on HIGH", "BAD_SYNTAX", f"{MISPLACED} 12", "12", SPACING, " ", ""),
    (" halt-on HIGH", "BAD_SYNTAX", f"{MISPLACED} 0", "0", SPACING, " ", ""),
    ("block-pii; halt-on\x01HIGH", "BAD_SYNTAX", f"{MISPLACED} 18", "18", SPACING, "\\x01", ""),
    ("halt-on HIGH;", "BAD_SYNTAX", "empty directive at character 13", "13", "a directive", "", ""),
    ("warn-on HIGH;  halt-0n HIGH", "UNKNOWN_DIRECTIVE", "unknown directive 'halt-0n' at character 15", "15",
     "a directive of SPEC-006", "halt-0n", "halt-on"),
    ("zzzz", "UNKNOWN_DIRECTIVE", "unknown directive 'zzzz' at character 0", "0", "a directive of SPEC-006", "zzzz", ""),
    ("profile=medica", "BAD_VALUE", f"'medica' is not one of {PROFILES} at character 8", "8", f"one of {PROFILES}", "medica",
     "medical"),
    ("warn-on HIGH; profile=", "BAD_VALUE", f"a value is missing, one of {PROFILES} at character 22", "22",
     f"one of {PROFILES}", "", ""),
    ("halt-on LOW", "BAD_VALUE", "halt-on: 'LOW' is not one of CRITICAL HIGH MEDIUM at character 8", "8",
     "one of CRITICAL HIGH MEDIUM", "LOW", ""),
    ("block-pii yes", "BAD_VALUE", "block-pii: it takes no value at character 10", "10", "no value", "yes", ""),
    ("report-uri https://a,b", "BAD_URI", "report-uri: ',' and ';' must be percent-encoded in the URI at character 20", "20",
     "a URI of RFC 3986 with ',' and ';' percent-encoded", ",b", ""),
]  # fmt: skip


@pytest.mark.req("POL-1", "SVC-3")
@pytest.mark.parametrize(("text", "reason", "message", "position", "expected", "got", "meant"), CASES)
def test_a_refused_text_says_what_where_and_what_was_expected(text, reason, message, position, expected, got, meant):
    """Reason, message and metadata, complete."""
    with pytest.raises(Refused) as caught:
        parse(text)
    refused = caught.value

    assert (refused.kind, refused.reason, refused.message) == (Kind.INVALID, f"POLICY_{reason}", message)
    near = {"did_you_mean": meant} if meant else {}
    assert refused.metadata == {"position": position, "expected": expected, "got": got, **near}


@pytest.mark.req("POL-2")
@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("require-quality D; profile=developer", "0"), ("profile=developer;\t require-quality D", "20"),
        ("halt-on HIGH;profile=developer; REQUIRE-QUALITY D", "32"),
    ],
)  # fmt: skip
def test_a_profile_that_a_directive_contradicts_points_at_the_directive(text, position):
    """Both lists of tiers are named, the profile's first."""
    with pytest.raises(Refused) as caught:
        parse(text)

    assert (caught.value.reason, caught.value.message) == ("POLICY_UNSATISFIABLE", QUALITY)
    assert caught.value.metadata == {
        "directive": "require-quality", "first": "S A B", "second": "D", "position": position,
    }  # fmt: skip


@pytest.mark.req("POL-4")
def test_two_policies_without_a_common_tier_are_named_in_their_order():
    """The first is the first, and nothing but the tiers stands between them."""
    one, other = Policy(require_quality=frozenset({Tier.S})), Policy(require_quality=frozenset({Tier.C, Tier.D}))
    with pytest.raises(Refused) as caught:
        merge(one, other)

    assert caught.value.message == "require-quality S and require-quality C D accept no tier in common"
    assert caught.value.metadata == {"directive": "require-quality", "first": "S", "second": "C D"}
    assert caught.value.reason == "POLICY_UNSATISFIABLE"


@pytest.mark.req("POL-1")
@pytest.mark.parametrize(
    "text", ["x" * 64 + " a", "require-quality S A B C D; default-src context parametric ckf cross-session"]
)
def test_texts_on_both_sides_of_the_cached_length_are_read_alike(text):
    """A directive is read the same whether it is short enough to be kept or not, the second time as the first."""
    outcomes = []
    for _ in range(2):
        try:
            outcomes.append(str(parse(text)))
        except Refused as refused:
            outcomes.append((refused.reason, refused.metadata["position"]))

    assert outcomes[0] == outcomes[1]


@pytest.mark.req("POL-6")
@pytest.mark.parametrize(
    ("parent", "child", "expected"),
    [
        ("halt-on HIGH", "block-pii", [("halt-on", "HIGH", "")]),
        ("block-pii", "halt-on HIGH", [("block-pii", "present", "")]),
        ("warn-on HIGH", "warn-on HIGH; oversight log-only", [("oversight", "auto", "log-only")]),
        (
            "warn-on HIGH",
            "warn-on HIGH; default-src context ckf",
            [("default-src", "context parametric", "context ckf")],
        ),
        ("default-src 'none'", "default-src context", [("default-src", "'none'", "context")]),
        ("report-uri https://a.example; block-pii", "block-pii", []),
        ("upgrade-on-risk reflexive; block-pii", "upgrade-on-risk batch; block-pii", []),
    ],
)
def test_what_a_child_loosens_is_shown_with_both_values(parent, child, expected):
    """An absent default-src or oversight is shown as what its absence means, and an inherited directive is none."""
    assert [tuple(one) for one in relaxations(parse(parent), parse(child))] == expected
