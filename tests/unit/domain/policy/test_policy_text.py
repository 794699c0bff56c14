"""Policy texts: what each directive reads as, how it is written, and where and why a text is refused."""

from __future__ import annotations

import hashlib

import pytest

from interlock.domain.errors import Kind, Refused
from interlock.domain.policy.directives import (
    NOTHING,
    Oversight,
    Policy,
    Repetition,
    Source,
    Strategy,
    Tier,
    canonical,
    directives,
    policy_hash,
)
from interlock.domain.policy.policy_text import PROFILES, parse
from interlock.domain.risk.risk import RiskLevel

pytestmark = pytest.mark.req("POL-1")


def refused(text: str) -> Refused:
    with pytest.raises(Refused) as caught:
        parse(text)
    assert caught.value.kind is Kind.INVALID
    return caught.value


def test_tv_020_reads_a_complex_policy():
    """TV-020: every directive of the vector is there with its value."""
    policy = parse(
        "default-src context; halt-on CRITICAL; warn-on HIGH; require-grounding 0.75; block-ungrounded; "
        "upgrade-on-risk reflexive; report-uri https://comply.crprotocol.io/reports"
    )

    assert policy == Policy(
        default_src=frozenset({Source.CONTEXT}),
        halt_on=RiskLevel.CRITICAL,
        warn_on=RiskLevel.HIGH,
        require_grounding=75,
        block_ungrounded=True,
        upgrade_on_risk=Strategy.REFLEXIVE,
        report_uri=frozenset({"https://comply.crprotocol.io/reports"}),
    )


def test_tv_021_refuses_an_unknown_directive():
    """TV-021: a directive that is not in the grammar is refused by name, not ignored."""
    error = refused("default-src context; halt-on CRITICAL; allow-hallucination")

    assert error.reason == "POLICY_UNKNOWN_DIRECTIVE"
    assert "unknown directive" in error.message
    assert error.metadata["got"] == "allow-hallucination"
    assert error.metadata["position"] == "39"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("default-src context parametric", Policy(default_src=frozenset({Source.CONTEXT, Source.PARAMETRIC}))),
        ("default-src ckf cross-session", Policy(default_src=frozenset({Source.CKF, Source.CROSS_SESSION}))),
        ("default-src 'none'", Policy(default_src=frozenset())),
        ("halt-on MEDIUM", Policy(halt_on=RiskLevel.MEDIUM)),
        ("warn-on CRITICAL", Policy(warn_on=RiskLevel.CRITICAL)),
        ("require-grounding 0.9", Policy(require_grounding=90)),
        ("require-entailment 1.0", Policy(require_entailment=100)),
        ("require-flow 0.0", Policy(require_flow=0)),
        ("require-completeness 000.05", Policy(require_completeness=5)),
        ("require-quality B S", Policy(require_quality=frozenset({Tier.S, Tier.B}))),
        ("require-oversight halt", Policy(oversight=Oversight.HALT)),
        ("oversight human-review", Policy(oversight=Oversight.HUMAN_REVIEW)),
        ("oversight log-only", Policy(oversight=Oversight.LOG_ONLY)),
        ("block-ungrounded", Policy(block_ungrounded=True)),
        ("block-parametric", Policy(block_parametric=True)),
        ("block-pii", Policy(block_pii=True)),
        ("block-fabrication", Policy(block_fabrication=True)),
        ("block-repetition", Policy(block_repetition=True)),
        ("max-repetition NONE", Policy(max_repetition=Repetition.NONE)),
        ("max-cannot-tell 0.2", Policy(max_cannot_tell=20)),
        ("max-spend-usd 5", Policy(max_spend_usd=5_000_000)),
        ("max-spend-usd 0.000001", Policy(max_spend_usd=1)),
        ("max-spend-tokens 200000", Policy(max_spend_tokens=200_000)),
        ("halt-on-action", Policy(halt_on_action=True)),
        ("upgrade-on-risk batch", Policy(upgrade_on_risk=Strategy.BATCH)),
        ("report-uri http://h:81/a%2Cb?c#d", Policy(report_uri=frozenset({"http://h:81/a%2Cb?c#d"}))),
        ("report-uri https://[2001:db8::1]", Policy(report_uri=frozenset({"https://[2001:db8::1]"}))),
        ("report-to My_group-1", Policy(report_to=frozenset({"My_group-1"}))),
    ],
)
def test_reads_each_directive(text, expected):
    """Every directive of the grammar has its value."""
    assert parse(text) == expected


def test_names_and_keywords_match_in_any_case():
    """ABNF strings have no case (RFC 5234 §2.3); the canonical text has one."""
    assert canonical(parse("HALT-ON critical;\t Default-Src CONTEXT; Profile=DEVELOPER; require-quality s")) == (
        "default-src context; halt-on CRITICAL; warn-on CRITICAL; require-quality S; oversight auto"
    )


def test_alias_and_directive_together_give_the_tighter_one():
    """require-oversight is oversight by another name."""
    assert parse("oversight halt; require-oversight auto").oversight is Oversight.HALT
    assert parse("oversight log-only; require-oversight human-review").oversight is Oversight.HUMAN_REVIEW


def test_canonical_text_has_one_order_and_two_decimals():
    """Whatever order and spelling, equal policies have equal texts, and so equal hashes."""
    one = canonical(parse("require-grounding 0.8;default-src parametric context; block-pii"))
    other = canonical(parse("block-pii; default-src context parametric; require-grounding 00.80"))

    assert one == other == "default-src context parametric; require-grounding 0.80; block-pii"
    assert policy_hash(one) == "sha256:" + hashlib.sha256(one.encode()).hexdigest()


def test_the_policy_that_demands_nothing_is_an_empty_text():
    """Nothing is demanded by nothing, and its hash is that of no bytes."""
    assert canonical(NOTHING) == ""
    assert policy_hash("") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_several_endpoints_are_all_kept():
    """Different endpoints contradict nothing: each is a directive of its own."""
    policy = parse("report-uri https://b/; report-to x; report-uri https://a/")

    assert directives(policy) == [
        ("report-uri", ("https://a/",)),
        ("report-uri", ("https://b/",)),
        ("report-to", ("x",)),
    ]


@pytest.mark.req("POL-2")
@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_its_expansion(name):
    """A profile says what SPEC-006 §6.1 expands it to."""
    assert parse(f"profile={name}") == parse(PROFILES[name])


@pytest.mark.req("POL-2")
def test_directives_beside_a_profile_only_tighten_it():
    """A looser directive beside a profile changes nothing, a tighter one counts, wherever it stands."""
    policy = parse("require-grounding 0.50; profile=medical; halt-on MEDIUM")

    assert (policy.require_grounding, policy.halt_on) == (90, RiskLevel.MEDIUM)


@pytest.mark.req("POL-2")
def test_an_endpoint_of_ones_own_replaces_the_profiles():
    """A hospital that names its own endpoint does not send its reports to the profile's."""
    policy = parse("profile=medical; report-uri https://my-hospital.com/ai-audit")

    assert policy.report_uri == {"https://my-hospital.com/ai-audit"}
    assert parse("profile=medical").report_uri == {"https://comply.crprotocol.io/reports"}


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("", "POLICY_EMPTY", 0),
        (" \t ", "POLICY_EMPTY", 0),
        (";", "POLICY_BAD_SYNTAX", 0),
        ("halt-on HIGH;", "POLICY_BAD_SYNTAX", 13),
        ("halt-on HIGH; ", "POLICY_BAD_SYNTAX", 14),
        ("halt-on HIGH;; warn-on HIGH", "POLICY_BAD_SYNTAX", 13),
        ("; halt-on HIGH", "POLICY_BAD_SYNTAX", 0),
        (" halt-on HIGH", "POLICY_BAD_SYNTAX", 0),
        ("halt-on HIGH ", "POLICY_BAD_SYNTAX", 12),
        ("halt-on HIGH ; warn-on HIGH", "POLICY_BAD_SYNTAX", 12),
        ("halt-on  HIGH", "POLICY_BAD_SYNTAX", 8),
        ("halt-on\tHIGH", "POLICY_BAD_SYNTAX", 7),
        ("halt-on HIGH;\nwarn-on HIGH", "POLICY_BAD_SYNTAX", 13),
        ("halt-on HIGH\x00", "POLICY_BAD_SYNTAX", 12),
        ("halt-on HIGH\x7f", "POLICY_BAD_SYNTAX", 12),
        ("hаlt-on HIGH", "POLICY_NOT_ASCII", 1),  # a Cyrillic a
        ("halt-on HIGH\u00a0", "POLICY_NOT_ASCII", 12),
        ("halt-on HIGH\u241f", "POLICY_NOT_ASCII", 12),
        ("halt-on HIGH\uff1b warn-on HIGH", "POLICY_NOT_ASCII", 12),
        ("halt_on HIGH", "POLICY_UNKNOWN_DIRECTIVE", 0),
        ("halt-on HIGH; wanr-on HIGH", "POLICY_UNKNOWN_DIRECTIVE", 14),
        ("halt-on=HIGH", "POLICY_UNKNOWN_DIRECTIVE", 0),
        ("profile medical", "POLICY_UNKNOWN_DIRECTIVE", 0),
        ("profile=", "POLICY_BAD_VALUE", 8),
        ("profile=vet", "POLICY_BAD_VALUE", 8),
        ("profile=medical extra", "POLICY_BAD_VALUE", 8),
        ("profile=medical; profile=medical", "POLICY_DUPLICATE_DIRECTIVE", 17),
        ("profile=medical; profile=financial", "POLICY_DUPLICATE_DIRECTIVE", 17),
        ("halt-on HIGH; halt-on HIGH", "POLICY_DUPLICATE_DIRECTIVE", 14),
        ("halt-on HIGH; warn-on HIGH; HALT-ON CRITICAL", "POLICY_DUPLICATE_DIRECTIVE", 28),
        ("warn-on CRITICAL; warn-on HIGH", "POLICY_DUPLICATE_DIRECTIVE", 18),
        ("block-pii; block-pii", "POLICY_DUPLICATE_DIRECTIVE", 11),
        ("report-to a; report-to a", "POLICY_DUPLICATE_DIRECTIVE", 13),
        ("halt-on", "POLICY_BAD_VALUE", 7),
        ("halt-on LOW", "POLICY_BAD_VALUE", 8),
        ("halt-on HIGH MEDIUM", "POLICY_BAD_VALUE", 8),
        ("halt-on CRITICAL, warn-on HIGH", "POLICY_BAD_VALUE", 8),
        ("default-src", "POLICY_BAD_VALUE", 11),
        ("default-src none", "POLICY_BAD_VALUE", 12),
        ("default-src context web", "POLICY_BAD_VALUE", 20),
        ("default-src 'none' context", "POLICY_BAD_VALUE", 12),
        ("require-quality S E", "POLICY_BAD_VALUE", 18),
        ("require-quality SA", "POLICY_BAD_VALUE", 16),
        ("require-grounding", "POLICY_BAD_VALUE", 17),
        ("require-grounding 1", "POLICY_BAD_VALUE", 18),
        ("require-grounding .75", "POLICY_BAD_VALUE", 18),
        ("require-grounding 0.750", "POLICY_BAD_VALUE", 18),
        ("require-grounding 1.01", "POLICY_BAD_VALUE", 18),
        ("require-grounding 9.99", "POLICY_BAD_VALUE", 18),
        ("require-grounding -0.5", "POLICY_BAD_VALUE", 18),
        ("require-grounding 0,75", "POLICY_BAD_VALUE", 18),
        ("require-grounding NaN", "POLICY_BAD_VALUE", 18),
        ("require-grounding 1e0", "POLICY_BAD_VALUE", 18),
        (f"require-grounding {'9' * 5000}.0", "POLICY_BAD_VALUE", 18),  # more digits than int() takes
        ("block-pii true", "POLICY_BAD_VALUE", 10),
        ("max-repetition SEVERE", "POLICY_BAD_VALUE", 15),
        ("upgrade-on-risk push", "POLICY_BAD_VALUE", 16),
        ("oversight off", "POLICY_BAD_VALUE", 10),
        ("report-to", "POLICY_BAD_VALUE", 9),
        ("report-to a.b", "POLICY_BAD_VALUE", 10),
        ("report-uri", "POLICY_BAD_URI", 10),
        ("report-uri /reports", "POLICY_BAD_URI", 11),
        ("report-uri //h/reports", "POLICY_BAD_URI", 11),
        ("report-uri ftp://h/", "POLICY_BAD_URI", 11),
        ("report-uri javascript:alert(1)", "POLICY_BAD_URI", 11),
        ("report-uri https://", "POLICY_BAD_URI", 19),
        ("report-uri https:///a", "POLICY_BAD_URI", 19),
        ("report-uri https://:80/", "POLICY_BAD_URI", 19),
        ("report-uri https://user@h/", "POLICY_BAD_URI", 19),
        ("report-uri https://user:pw@h/", "POLICY_BAD_URI", 19),
        ("report-uri https://h:0/", "POLICY_BAD_URI", 21),
        ("report-uri https://h:65536/", "POLICY_BAD_URI", 21),
        ("report-uri https://h:/", "POLICY_BAD_URI", 20),
        ("report-uri https://[::g]/", "POLICY_BAD_URI", 19),
        ("report-uri https://[1::2::3]/", "POLICY_BAD_URI", 19),
        ("report-uri https://h/a,b", "POLICY_BAD_URI", 22),
        ("report-uri https://h/%4", "POLICY_BAD_URI", 21),
        ("report-uri https://h/%zz", "POLICY_BAD_URI", 21),
        ("report-uri https://h/a\\b", "POLICY_BAD_URI", 22),
        ('report-uri https://h/"', "POLICY_BAD_URI", 21),
        ("report-uri https://h/#a#b", "POLICY_BAD_URI", 23),
        ("report-uri https://h/a https://h/b", "POLICY_BAD_URI", 22),
        ("report-uri https://h/a;b", "POLICY_UNKNOWN_DIRECTIVE", 23),
        ("report-uri https://h/a\r\nX: y", "POLICY_BAD_SYNTAX", 22),
    ],
)
def test_a_malformed_text_is_refused_at_its_place(text, reason, position):
    """Each flaw has its reason and the place where it starts."""
    error = refused(text)

    assert (error.reason, int(error.metadata["position"])) == (reason, position)
    assert error.metadata["expected"]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("halt-on CRITCAL", "CRITICAL"),
        ("halton HIGH", "halt-on"),
        ("default-src contxt", "context"),
        ("default-src none", "'none'"),
        ("oversight human_review", "human-review"),
        ("profile=medicine", "profile=medical"),
        ("block-ungroundd", "block-ungrounded"),
    ],
)
def test_a_near_miss_is_named(text, meant):
    """A typing error is answered with what was probably meant."""
    error = refused(text)

    assert error.metadata["did_you_mean"] in {meant, meant.removeprefix("profile=")}


def test_nothing_near_is_no_suggestion():
    """Without a near name nothing is suggested."""
    assert "did_you_mean" not in refused("zzzz").metadata


def test_a_profile_without_a_common_tier_is_refused_at_the_directive():
    """A tier list that the profile leaves nothing of is refused: no text could say it."""
    error = refused("profile=developer; require-quality C D")

    assert (error.reason, error.metadata["position"]) == ("POLICY_UNSATISFIABLE", "19")


def test_the_longest_text_is_read_and_one_more_byte_is_not():
    """8,192 bytes are read, 8,193 are refused."""
    longest = "report-uri https://h/".ljust(8192, "a")

    assert parse(longest).report_uri == {longest.removeprefix("report-uri ")}
    assert refused(longest + "a").reason == "POLICY_TOO_LONG"


def test_what_was_got_is_cut_and_escaped():
    """A refusal repeats the start of the text only, and no control character of it."""
    error = refused("x" * 5000)
    assert error.metadata["got"] == "x" * 64

    assert refused("halt-on \x1b[31m").metadata["got"] == "\\x1b"
