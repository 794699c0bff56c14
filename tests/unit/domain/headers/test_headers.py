"""Request headers by allow-list, response headers by grammar."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain.budget import Micros
from interlock.domain.dag.dag import lineage_text
from interlock.domain.errors import Kind, Refused
from interlock.domain.headers import headers
from interlock.domain.headers.header_syntax import RESPONSE_SYNTAX, TOPICS
from interlock.domain.risk.risk import RiskLevel

SESSION = "crp_sess_" + "0a" * 16
CONTINUATION = "crp_cont_" + "0b" * 16
WINDOW = "crp_win_" + "0c" * 16


def refusal(*fields: tuple[str, str]) -> Refused:
    with pytest.raises(Refused) as caught:
        headers.read(fields)
    return caught.value


@pytest.mark.req("HDR-6")
@pytest.mark.parametrize(
    ("name", "value", "field", "expected"),
    [
        ("CRP-Session-Token", "abc.def", "session_token", "abc.def"),
        ("CRP-Context-Continuation-Id", CONTINUATION, "continuation_id", CONTINUATION),
        ("CRP-Safety-Nonce", "base64:AAAA==", "nonce", "base64:AAAA=="),
        ("CRP-Safety-Policy", "halt-on HIGH", "policies", ("halt-on HIGH",)),
        ("CRP-Safety-Policy-Report-Only", "halt-on HIGH", "report_only", ("halt-on HIGH",)),
        ("CRP-Safety-Mode", "STRICT", "safety_mode", "strict"),
        ("CRP-Safety-Oversight-Mode", "human-review", "oversight_mode", "human-review"),
        ("CRP-Accept-Risk", "medium", "accept_risk", RiskLevel.MEDIUM),
        ("CRP-Accept-Quality", "S, a", "accept_quality", ("S", "A")),
        ("CRP-Safety-Report-URI", "https://e.example/r", "report_uri", "https://e.example/r"),
        ("CRP-Agent-Safety-Budget", "0.63", "ceiling", 630_000),
        ("CRP-Context-Cache", "no-store, max-age=60", "no_store", True),
        ("CRP-LLM-Grounding-Mode", "context-strict", "grounding_mode", "context-strict"),
        ("CRP-LLM-Reproducibility-Seed", "42", "seed", 42),
        ("CRP-Session-Action", "terminate", "terminate", True),
        ("CRP-Session-Action", "branch", "branch", True),
        ("CRP-Context-Continuation-Id", CONTINUATION, "continuation_ids", (CONTINUATION,)),
        ("CRP-Context-Strategy", "Fan-Out", "strategy", "fan-out"),
        ("CRP-Agent-Dispatch-Strategy", "reflexive", "strategy", "reflexive"),
        ("CRP-Accept-Strategy", "pull, reflexive, push", "strategy", "pull"),
        ("CRP-Accept-Strategy", "streaming, reflexive, push", "preferred", ("reflexive", "push")),
        ("CRP-Accept-Strategy", "agentic", "strategy", None),
        ("CRP-Context-Strategy", "agentic", "strategy", "agentic"),
        ("CRP-Context-If-Match", "*", "if_match", "*"),
        ("CRP-Context-Cache", "max-age=60, MAX-AGE=30", "max_age_s", 30),
        ("CRP-Context-Cache", "only-if-ckf", "only_if_known", True),
        ("CRP-Agent-Fan-In-Policy", "partial", "fan_in_policy", "partial"),
        ("CRP-Agent-Session-Parent", SESSION, "session_parent", SESSION),
        ("CRP-Agent-Delegation-Grant", "eyJ2.mac-_", "grant", "eyJ2.mac-_"),
        ("CRP-Agent-Loop-Depth", "2", "loop_depth", 2),
        ("CRP-Agent-Loop-Depth", "0", "loop_depth", 0),
        ("CRP-Compliance-Data-Residency", "eu", "data_residency", "EU"),
    ],
)
def test_each_request_header_is_read(name, value, field, expected):
    """A header on the allow-list says what it says, whatever the case of its name."""
    assert getattr(headers.read([(name, value)]), field) == expected
    assert getattr(headers.read([(name.lower(), value)]), field) == expected


def test_what_is_not_ours_is_left_alone():
    """Other headers are no business of this protocol, whatever they hold."""
    asked = headers.read([("content-type", "application/json"), ("x-crp-note", "\x00"), ("crpx", "y")])

    assert asked == headers.read([])


@pytest.mark.req("HDR-6")
@pytest.mark.parametrize("name", sorted(headers.RESPONSE_ONLY))
def test_a_response_header_in_a_request_is_refused(name):
    """Only the gateway writes response headers (SPEC-002 §14.1)."""
    refused = refusal((name, "LOW"))

    assert refused.kind is Kind.INVALID
    assert refused.reason == "RESPONSE_HEADER_IN_REQUEST"
    assert refused.metadata["header"] == name


@pytest.mark.req("HDR-6")
def test_every_response_header_is_response_only_or_says_so():
    """No header that we write may be sent to us, except those that SPEC-002 marks BOTH."""
    both = {
        "CRP-Context-Session-Id", "CRP-Context-Continuation-Id", "CRP-Context-Strategy", "CRP-Safety-Oversight-Mode",
        "CRP-Safety-Nonce", "CRP-Agent-Safety-Budget", "CRP-Agent-Loop-Depth", "CRP-Agent-Session-Parent",
        "CRP-Agent-Dispatch-Strategy", "CRP-Compliance-Data-Residency", "CRP-LLM-Grounding-Mode",
    }  # fmt: skip

    assert {name for name in RESPONSE_SYNTAX if name.lower() not in headers.RESPONSE_ONLY} == both


@pytest.mark.parametrize("name", sorted(headers.NOT_SUPPORTED))
def test_a_header_of_a_missing_feature_is_refused_by_name(name):
    """Ignoring delegation or residency would lose the protection that was asked for."""
    refused = refusal((name, "anything"))

    assert (refused.reason, refused.metadata["header"]) == ("HEADER_NOT_SUPPORTED", name)


@pytest.mark.req("OVR-4")
def test_an_approval_is_read_for_a_delegation_alone():
    """An oversight token opens nothing but what it is for: elsewhere it is refused by name, never passed over."""
    approval = ("CRP-Oversight-Token", "approved:sha256:eyJhIjoxfQ.c2ln")
    refused = refusal(approval)

    assert (refused.reason, refused.metadata["header"]) == ("HEADER_NOT_SUPPORTED", "crp-oversight-token")
    assert headers.read([approval], delegating=True).oversight_token == approval[1]


@pytest.mark.req("DAG-3")
def test_several_windows_are_continued_by_a_fan_in_alone():
    """A comma-separated list is a fan-in, and only with its strategy (SPEC-004 §14.4)."""
    other = "crp_cont_" + "0d" * 16
    several = ("crp-context-continuation-id", f"{CONTINUATION}, {other}")
    asked = headers.read([several, ("crp-context-strategy", "fan-in")])

    assert (asked.continuation_id, asked.continuation_ids) == (None, (CONTINUATION, other))
    assert refusal(several).reason == "INVALID_HEADER"
    assert refusal(several, ("crp-context-strategy", "fan-out")).reason == "INVALID_HEADER"


@pytest.mark.req("HDR-6")
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ([("CRP-Unheard-Of", "1")], "UNKNOWN_CRP_HEADER"),
        ([("crp_session_token", "a.b")], "UNKNOWN_CRP_HEADER"),
        ([("crp-safety_mode", "strict")], "UNKNOWN_CRP_HEADER"),
        ([("crp-\u212aelvin", "1")], "UNKNOWN_CRP_HEADER"),
        ([("crp-safety-mode", "strict"), ("CRP-Safety-Mode", "strict")], "DUPLICATE_HEADER"),
        ([("crp-session-token", "a.b"), ("crp-session-token", "a.b")], "DUPLICATE_HEADER"),
        ([("crp-safety-mode", "")], "INVALID_HEADER"),
        ([("crp-safety-policy", " ")], "INVALID_HEADER"),
        ([("crp-safety-mode", "lenient")], "INVALID_HEADER"),
        ([("crp-safety-policy", "halt-on\tHIGH")], "INVALID_HEADER"),
        ([("crp-safety-policy", "halt-on HIGH\r\nx: y")], "INVALID_HEADER"),
        ([("crp-safety-policy", "halt-on HIGH\u241fLOW")], "INVALID_HEADER"),
        ([("crp-safety-policy", "halt-on H\u0130GH")], "INVALID_HEADER"),
        ([("crp-safety-policy", "x" * 8193)], "HEADER_TOO_LARGE"),
        ([("crp-session-token", "x" * 8193)], "HEADER_TOO_LARGE"),
        ([("crp-safety-nonce", "base64:" + "A" * 1024)], "HEADER_TOO_LARGE"),
        ([("crp-session-token", "a b")], "INVALID_HEADER"),
        ([("crp-context-continuation-id", "crp_cont_x")], "INVALID_HEADER"),
        ([("crp-context-continuation-id", f"{CONTINUATION}, {CONTINUATION}")], "INVALID_HEADER"),
        ([("crp-context-session-id", "crp_sess_';--")], "INVALID_HEADER"),
        ([("crp-context-cache", "no-store;only-if-ckf")], "INVALID_HEADER"),
        ([("crp-accept-quality", "S, E")], "INVALID_HEADER"),
        ([("crp-accept-risk", "SEVERE")], "INVALID_HEADER"),
        ([("crp-accept-strategy", "push, shove")], "INVALID_HEADER"),
        ([("crp-context-if-match", "sha256:short")], "INVALID_HEADER"),
        ([("crp-safety-report-uri", "http://plain.example/")], "INVALID_HEADER"),
        ([("crp-safety-report-uri", "https://e.example/;halt-on")], "INVALID_HEADER"),
        ([("crp-session-action", "resurrect")], "INVALID_HEADER"),
        ([("crp-session-action", "branch"), ("crp-context-strategy", "fan-out")], "CONFLICTING_HEADERS"),
        ([("crp-context-strategy", "push"), ("crp-agent-dispatch-strategy", "reflexive")], "CONFLICTING_HEADERS"),
        ([("crp-context-strategy", "shove")], "INVALID_HEADER"),
        ([("crp-context-strategy", "streaming")], "HEADER_NOT_SUPPORTED"),
        ([("crp-agent-fan-in-policy", "some")], "INVALID_HEADER"),
        ([("crp-agent-session-parent", "crp_sess_")], "INVALID_HEADER"),
        ([("crp-agent-session-parent", CONTINUATION)], "INVALID_HEADER"),
        ([("crp-agent-delegation-grant", "a b")], "INVALID_HEADER"),
        ([("crp-agent-delegation-grant", "a" * 2049)], "HEADER_TOO_LARGE"),
        ([("crp-agent-delegation-grant", "a"), ("crp-agent-delegation-grant", "b")], "DUPLICATE_HEADER"),
        ([("crp-agent-loop-depth", "-1")], "INVALID_HEADER"),
        ([("crp-agent-loop-depth", "1e3")], "INVALID_HEADER"),
        ([("crp-agent-loop-depth", "1.0")], "INVALID_HEADER"),
        ([("crp-agent-loop-depth", "9" * 10)], "INVALID_HEADER"),
        ([("crp-compliance-data-residency", "EUR")], "INVALID_HEADER"),
        ([("crp-compliance-data-residency", "E1")], "INVALID_HEADER"),
        ([("crp-llm-reproducibility-seed", "-1")], "INVALID_HEADER"),
        ([("crp-llm-reproducibility-seed", "9" * 19)], "INVALID_HEADER"),
    ],
)
def test_what_cannot_be_read_one_way_is_refused(fields, reason):
    """A malformed, doubled, unknown or oversized header ends the call with its constant reason."""
    assert refusal(*fields).reason == reason


@pytest.mark.req("BUD-4")
@pytest.mark.parametrize(
    "value",
    ["NaN", "nan", "inf", "-0.1", "-0", "1e308", "1e-3", "1.01", "1.5", "2", "0x1", ".5", "1.", "\u0661.0", "0,5", ""],
)
def test_a_budget_that_is_no_fraction_is_refused(value):
    """NaN, negative and oversized budgets are no ceilings (reliability.md A-40)."""
    assert refusal(("crp-agent-safety-budget", value)).reason == "INVALID_HEADER"


@pytest.mark.req("BUD-4")
@given(st.integers(0, 10**18))
def test_a_budget_in_a_request_is_never_rounded_up(digits):
    """Digits past the sixth are cut, so that a ceiling is never above what was written."""
    text = f"0.{digits:018d}"[:20]
    ceiling = headers.read([("crp-agent-safety-budget", text)]).ceiling

    assert ceiling is not None
    assert ceiling * 10**12 <= int(text[2:].ljust(18, "0"))


def test_several_policy_lines_are_all_kept_in_order():
    """Every field line is a policy of its own; none replaces another (A-12)."""
    asked = headers.read([("crp-safety-policy", "halt-on HIGH"), ("CRP-Safety-Policy", "block-pii")])

    assert asked.policies == ("halt-on HIGH", "block-pii")


@pytest.mark.req("HDR-6")
@given(name=st.sampled_from(sorted(RESPONSE_SYNTAX)), value=st.text(min_size=1, max_size=60))
def test_no_text_of_a_model_becomes_a_header(name, value):
    """Whatever a value holds, a header line never gets a control character, a non-ASCII one or free text."""
    for hostile in (value, f"LOW\r\n{value}", f"0\n{value}", f"{value}\x00", f"1/2\u2028{value}"):
        kept = headers.admissible({name: hostile})
        assert all(re.fullmatch(r"[\x20-\x7e]+", text) for text in kept.values())
        if name != "CRP-Safety-Policy-Applied":  # our own canonical text of directives that we parsed
            assert not kept or re.fullmatch(r"[A-Za-z0-9 ._:/;,=>+%\[\]~-]+", hostile)


@pytest.mark.req("HDR-4")
def test_an_absent_value_has_no_header():
    """A signal that was not computed is left out; it never reads as a good value."""
    assert headers.admissible({"CRP-Safety-Fabrications": None, "CRP-Safety-Entailment-Score": None}) == {}


@pytest.mark.req("HDR-4")
@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, "0.000"), (0.9126, "0.913"), (1.0, "1.000"), (float("nan"), None), (1.01, None), (-0.01, None),
     (float("inf"), None)],
)  # fmt: skip
def test_scores_have_three_decimals_or_are_absent(value, expected):
    """A score is a fraction; what is none is absent."""
    assert headers.fraction(value) == expected


@pytest.mark.req("HDR-4")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CRP-Safety-Distortions", headers.distortions(0, [])),
        ("CRP-Safety-Distortions", headers.distortions(3, ["NUMBER_CHANGED", "DATE_SHIFTED"])),
        ("CRP-Safety-Contradictions", headers.contradictions(0, "")),
        ("CRP-Safety-Contradictions", headers.contradictions(2, "intra")),
        ("CRP-Safety-Omissions", headers.omissions({"HIGH": 1})),
        ("CRP-Provenance-Window-Lineage", lineage_text([WINDOW, WINDOW])),
        ("CRP-Provenance-Window-Lineage", f"{WINDOW} -> [{WINDOW} -> {WINDOW}, {WINDOW}, {WINDOW}] -> {WINDOW}"),
        ("CRP-Provenance-Window-Lineage", f"{WINDOW} -> [{WINDOW} -> [{WINDOW}, {WINDOW}], {WINDOW}] -> {WINDOW}"),
        ("CRP-Agent-Session-Parent", SESSION),
        ("CRP-Agent-Dispatch-Strategy", "fan-in"),
        ("CRP-Compliance-Data-Residency", "EU"),
        ("CRP-Quality-Completeness", headers.agents_completeness(0.8333, ["financial-detail"])),
        (
            "CRP-Set-Session",
            headers.set_session("a.b", max_age_s=1, window=4, quality="AAABBB", quality_text="A, [A,A,B], [B], B"),
        ),
        ("CRP-Set-Session", headers.set_session("a.b", max_age_s=3600, window=3, quality=["A", "B"])),
        ("CRP-Set-Session", headers.set_session("a.b", max_age_s=None, window=None, quality=[])),
    ],
)
def test_composed_values_match_their_grammar(name, value):
    """What we compose is what SPEC-002 writes."""
    assert headers.admissible({name: value}) == {name: value}


@pytest.mark.req("HDR-4")
def test_composed_values_read_as_the_specification_writes_them():
    """The examples of SPEC-002 §5.6 to §5.8, §6.9 and §10.1."""
    assert headers.distortions(1, ["NUMBER_CHANGED"]) == "1; types=NUMBER_CHANGED"
    assert headers.contradictions(2, "cross-window") == "2; scope=cross-window"
    assert headers.omissions({"HIGH": 1, "MEDIUM": 2}) == "CRITICAL:0, HIGH:1, MEDIUM:2"
    assert lineage_text(["crp_win_a", "crp_win_b"]) == "crp_win_a -> crp_win_b"
    assert headers.set_session("t", max_age_s=3600, window=3, quality=["A", "A", "B"]) == (
        "token=t; Path=/; Max-Age=3600; Signed; SameSite=Strict; Window=3; QualityHistory=A,A,B"
    )


@pytest.mark.req("DAG-8", "DPE-19")
def test_parallel_windows_and_agents_read_as_the_specification_writes_them():
    """SPEC-004 Appendix A and SPEC-012 §9.2."""
    session = headers.set_session("t", max_age_s=None, window=4, quality="AAABBB", quality_text="A, [A,A,B], [B], B")

    assert session.endswith("; Window=4; QualityHistory=A, [A,A,B], [B], B")
    assert headers.agents_completeness(5 / 6, ["financial-detail"]) == "0.83; uncovered=financial-detail"
    assert headers.agents_completeness(1.0, []) == "1.00"
    assert headers.agents_completeness(float("nan"), []) is None


def test_an_unknown_distortion_type_is_not_repeated():
    """Only the six types of SPEC-005 §5.3 are words of the header."""
    assert headers.distortions(1, ["set-cookie: x"]) == "1"


def test_a_long_session_does_not_make_long_headers():
    """A lineage of thousands of windows is left out, and only the end of a history is shown."""
    lineage = lineage_text([WINDOW] * 65)
    session = headers.set_session("t", max_age_s=1, window=1, quality=["A"] * 10_000)

    assert headers.admissible({"CRP-Provenance-Window-Lineage": lineage}) == {}
    assert len(session) < 256


def test_a_ceiling_is_an_exact_number_of_millionths():
    """0.1 is 100,000, not a float near it."""
    assert headers.read([("crp-agent-safety-budget", "0.1")]).ceiling == Micros(100_000)


@pytest.mark.req("HDR-4", "DPE-7", "DPE-8", "DPE-9")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CRP-Quality-Repetition", headers.repetition("NONE", "0.010")),
        ("CRP-Quality-Repetition", headers.repetition("SIGNIFICANT", "0.280")),
        ("CRP-Quality-Completeness", headers.completeness("COMPLETE", covered=5, total=5, uncovered=[])),
        ("CRP-Quality-Completeness",
         headers.completeness("PARTIAL", covered=3, total=5, uncovered=["eu-ai-act-requirements", "gdpr-requirements"])),
        ("CRP-Quality-Flow", headers.flow("0.820", "")),
        ("CRP-Quality-Flow", headers.flow("0.340", "prompt-augmented")),
        ("CRP-Quality-Flow", headers.flow("0.340", "stitched")),
        ("CRP-Quality-Score", "0.910"),
        ("CRP-Compliance-NIST-Tier", "TIER-2"),
        ("CRP-Compliance-ISO-42001", "A.6.2.4, A.9.4"),
        ("CRP-Compliance-Controls-Met", "7/9"),
        ("CRP-Agent-Revision-Round", "2/3"),
    ],
)  # fmt: skip
def test_the_headers_of_the_later_stages_are_written_as_printed(name, value):
    """SPEC-005 §9.4, §10.4, §11.6, §18.3 and SPEC-002 §7, §8.7."""
    assert headers.admissible({name: value}) == {name: value}


def test_the_printed_examples_are_written():
    """The examples of SPEC-005 §9.4 and §10.4, but for their number of decimals."""
    assert headers.repetition("SIGNIFICANT", "0.280") == "SIGNIFICANT; overlap=0.280"
    assert headers.completeness("PARTIAL", covered=3, total=5, uncovered=["eu-ai-act-requirements"]) == (
        "PARTIAL; sub-queries=3/5; uncovered=eu-ai-act-requirements"
    )
    assert headers.flow("0.340", "prompt-augmented") == "0.340; remediation=prompt-augmented"


@pytest.mark.req("HDR-6")
def test_topics_outside_the_alphabet_reach_no_header():
    """What a user asked cannot become a header, split one or grow past its bound (A-16)."""
    hostile = ["a\r\nset-cookie: x", "A B", "", "-a", "é", "x" * 49, "a,b", "ok"]
    text = headers.completeness("PARTIAL", covered=0, total=8, uncovered=[*hostile, *(f"t{n}" for n in range(99))])

    assert text.startswith("PARTIAL; sub-queries=0/8; uncovered=ok,t0,")
    assert text.count(",") == TOPICS - 1
    assert headers.admissible({"CRP-Quality-Completeness": text})


@pytest.mark.req("HDR-6")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CRP-Quality-Repetition", "LOTS"), ("CRP-Quality-Flow", "0.500; remediation=prayed"),
        ("CRP-Quality-Completeness", "PARTIAL; sub-queries=1/2; uncovered=a b"), ("CRP-Compliance-NIST-Tier", "TIER-5"),
        ("CRP-Compliance-ISO-42001", "A.9.4\r\nx: y"), ("CRP-Compliance-Controls-Met", "1 of 2"),
        ("CRP-Agent-Revision-Round", "9/9"), ("CRP-Provenance-Window-Lineage", f"{WINDOW} -> x"),
        ("CRP-Provenance-Window-Lineage", f"{WINDOW},{WINDOW}"), ("CRP-Compliance-Data-Residency", "eu"),
        ("CRP-Set-Session", "token=a.b; QualityHistory=A,[E]"),
    ],
)  # fmt: skip
def test_values_outside_the_grammar_of_a_later_stage_are_left_out(name, value):
    """A header is absent rather than odd."""
    assert headers.admissible({name: value}) == {}
