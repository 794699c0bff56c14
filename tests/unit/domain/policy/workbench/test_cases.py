"""Cases of a policy: what they may say, how they are decided, and how a bad one is refused."""

from __future__ import annotations

import pytest

from interlock.domain.errors import Refused
from interlock.domain.policy.policy_text import parse
from interlock.domain.policy.workbench.cases import Case, read_cases, run

pytestmark = pytest.mark.req("POL-3")

POLICY = "halt-on CRITICAL; warn-on HIGH; require-grounding 0.75"


def one_case(**given: object) -> Case:
    [case] = read_cases({"policy": POLICY, "cases": [{"expect": "delivered", **given}]})
    return case


def decided(**given: object) -> dict[str, object]:
    return dict(run(one_case(**given)).decided)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"outcome": "delivered", "cause": "none"}),
        ({"report": {"risk": "high"}}, {"outcome": "delivered", "warned": True, "broken": []}),
        ({"report": {"risk": "CRITICAL"}}, {"outcome": "halted", "cause": "halt-on", "releasable": True, "broken": ["halt-on"]}),
        ({"report": {"grounding": 0.5}}, {"outcome": "halted", "cause": "require-grounding", "releasable": False}),
        ({"report": {"grounding": None}}, {"outcome": "halted", "reason": "SIGNAL_NOT_AVAILABLE"}),
        ({"report": {"grounding": "undefined"}}, {"outcome": "delivered"}),
        ({"report": {"risk": "HIGH"}, "session": {"budget": 0.4}}, {"outcome": "held", "releasable": True}),
        ({"report": {"risk": "HIGH"}, "session": {"budget": 0.6, "charge": 0.15}}, {"outcome": "held"}),
        ({"report": {"risk": "HIGH"}, "session": {"breaker": "half_open"}, "reviewer": False}, {"outcome": "halted"}),
        ({"session": {"budget": 0.1}}, {"outcome": "halted", "cause": "budget"}),
        ({"report": {"risk": "MEDIUM"}, "accept": {"risk": "LOW"}}, {"outcome": "halted", "cause": "CRP-Accept-Risk"}),
        ({"report": {"tier": "C"}, "accept": {"quality": ["S", "A"]}}, {"outcome": "refused"}),
        ({"policy": "require-flow 0.50", "report": {"flow": 0.1}, "remedies": True}, {"outcome": "retried"}),
        ({"policy": "block-pii", "report": {"pii": True}}, {"outcome": "halted", "reason": "PII_DETECTED"}),
        ({"policy": "default-src context", "report": {"attributions": ["PARAMETRIC"]}}, {"outcome": "halted"}),
    ],
)  # fmt: skip
def test_a_case_is_decided_as_a_call_is(given, expected):
    """Figures, session, caller and reviewers reach the decision."""
    found = decided(**given)

    assert {name: found[name] for name in expected} == expected


def test_only_what_is_expected_is_compared():
    """A case names what matters to it, and each difference is told by its name."""
    failing = run(one_case(report={"risk": "CRITICAL"}, expect={"outcome": "held", "releasable": True}))

    assert failing.wrong == ("outcome",)
    assert run(one_case(report={"risk": "CRITICAL"}, expect={"outcome": "halted"})).wrong == ()


def test_another_policy_takes_the_place_of_the_files():
    """The same cases are run under a candidate; a case with a policy of its own keeps it."""
    document = {"policy": POLICY, "cases": [{"expect": "halted", "report": {"risk": "HIGH"}}, {"expect": "delivered", "policy": "block-pii"}]}  # fmt: skip

    assert [run(case).wrong for case in read_cases(document, parse("halt-on HIGH"))] == [(), ()]
    assert [run(case).wrong for case in read_cases(document)] == [("outcome",), ()]


@pytest.mark.parametrize(
    ("document", "place", "said"),
    [
        ([], "the file", "names with values"),
        ({"policy": POLICY}, "cases", "a list of 1 to"),
        ({"policy": POLICY, "cases": []}, "cases", "a list of 1 to"),
        ({"cases": [{"expect": "held"}]}, "case 1: policy", "a policy"),
        ({"policy": POLICY, "cases": [{}]}, "case 1: expect", "what is to be decided"),
        ({"policy": POLICY, "cases": [{"expect": "delivrd"}]}, "case 1: expect.outcome", "did you mean delivered?"),
        ({"policy": POLICY, "cases": [{"expect": {"outcom": "held"}}]}, "case 1: expect: outcom", "did you mean outcome?"),
        ({"policy": POLICY, "cases": [{"expect": "held", "report": {"risk": "HIHG"}}]}, "case 1: report.risk", "did you mean HIGH?"),
        ({"policy": POLICY, "cases": [{"expect": "held", "report": {"groundin": 1}}]}, "case 1: report: groundin", "did you mean grounding?"),
        ({"policy": POLICY, "cases": [{"expect": "held", "report": {"grounding": 2}}]}, "case 1: report.grounding", "from 0 to 1"),
        ({"policy": POLICY, "cases": [{"expect": "held", "report": {"grounding": True}}]}, "case 1: report.grounding", "a number"),
        ({"policy": POLICY, "cases": [{"expect": "held", "report": {"risk": None}}]}, "case 1: report.risk", "a value"),
        ({"policy": POLICY, "cases": [{"expect": "held", "report": {"fabrications": -1}}]}, "case 1: report.fabrications", "whole number"),
        ({"policy": POLICY, "cases": [{"expect": "held", "reviewer": "yes"}]}, "case 1: reviewer", "true or false"),
        ({"policy": POLICY, "cases": [{"expect": "held", "accept": {"quality": "S"}}]}, "case 1: accept.quality", "a list"),
        ({"policy": POLICY, "cases": [{"expect": {}}]}, "case 1: expect", "one of"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_at_its_place(document, place, said):
    """One stable reason; the message names the place and what is expected there."""
    with pytest.raises(Refused) as refused:
        read_cases(document)

    assert (refused.value.reason, refused.value.metadata["place"]) == ("CASES_INVALID", place)
    assert said in refused.value.message


def test_a_malformed_policy_in_a_file_keeps_its_own_reason():
    """The position is that in the policy, and the place in the file is told before it."""
    with pytest.raises(Refused) as refused:
        read_cases({"policy": "halt-on HIHG", "cases": [{"expect": "held"}]})

    assert (refused.value.reason, refused.value.metadata["position"]) == ("POLICY_BAD_VALUE", "8")
    assert refused.value.message.startswith("policy: ")
