"""Stage 12: the class of a registered domain, and the controls that a call evidences (SPEC-005 §14, SPEC-010)."""

from __future__ import annotations

import re

import pytest

from interlock.domain.risk.regulatory import (
    ALIASES,
    CONTROLS,
    DOMAINS,
    NIST_TIERS,
    AiActClass,
    ControlEvidence,
    ai_act_class,
    canonical_domain,
    controls,
)
from interlock.dpe.document import PiiFinding
from interlock.dpe.regulatory import classify, evidenced_controls
from interlock.dpe.request import Output, Request
from interlock.dpe.risk import amplifiers_for

MINIMAL, LIMITED, HIGH, UNACCEPTABLE = AiActClass


def found(where: str = "response", output: int | None = 0) -> PiiFinding:
    return PiiFinding("PERSON", "direct", where, 0, 4, 0.9, output if where == "response" else None)


def asked(*texts: str, domain: str = "", kind: str = "content") -> Request:
    return Request(outputs=tuple(Output(0, text, kind) for text in texts), domain=domain)


@pytest.mark.req("DPE-12")
@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ("Biometric identification", UNACCEPTABLE), ("Employment/recruitment", HIGH), ("Education access", HIGH),
        ("Critical infrastructure", HIGH), ("General information", LIMITED), ("Creative/entertainment", MINIMAL),
        ("", LIMITED), ("employment", HIGH), ("RECRUITMENT", HIGH), ("critical_infrastructure", HIGH),
    ],
)  # fmt: skip
def test_the_table_of_the_text(domain, expected):
    """Each row of §14.2 as it is printed there, spellings of it, and an unregistered system."""
    canonical = canonical_domain(domain)

    assert canonical is not None
    assert ai_act_class(canonical, personal_data_in_decision=False) is expected


@pytest.mark.req("DPE-12")
def test_an_unknown_domain_is_not_taken_for_general():
    """A misspelt registration must not lower a class."""
    assert canonical_domain("recruting") is None
    assert all(canonical_domain(alias) in DOMAINS for alias in ALIASES)


@pytest.mark.req("DPE-12")
@pytest.mark.parametrize(
    ("request_", "personal", "expected"),
    [
        (asked("Jane's application is rejected.", domain="general"), [found()], HIGH),
        (asked("Jane's application is rejected."), [found()], HIGH),
        (asked('{"customer": "Jane"}', kind="tool_call"), [found()], HIGH),
        (asked("Jane lives in Leeds.", domain="general"), [found()], LIMITED),
        (asked("The application is rejected.", domain="general"), [found("prompt")], LIMITED),
        (asked("The application is rejected.", "Jane lives in Leeds."), [found(output=1)], LIMITED),
        (asked("The application is rejected.", "Jane lives in Leeds."), [found(output=None)], HIGH),
        (asked("Jane's application is rejected.", domain="creative"), [found()], MINIMAL),
        (asked("Jane's application is rejected.", domain="biometrics"), [found()], UNACCEPTABLE),
    ],
)
def test_personal_data_in_a_decision_makes_general_information_high_risk(request_, personal, expected):
    """§14.2: in the output that decides, and a tool call always does."""
    assert classify(request_, personal).ai_class is expected


@pytest.mark.req("DPE-12")
def test_tiers_follow_the_classes():
    """The example of §14.3 is LIMITED with TIER-2."""
    assert NIST_TIERS == {MINIMAL: "TIER-1", LIMITED: "TIER-2", HIGH: "TIER-3", UNACCEPTABLE: "TIER-4"}


@pytest.mark.req("DPE-12", "DPE-14")
@pytest.mark.parametrize("domain", sorted(DOMAINS))
def test_the_class_of_the_domain_amplifies_the_risk(domain):
    """What is HIGH by the table amplifies, however the domain is written; finance and medicine do besides."""
    found = classify(asked("An answer.", domain=domain.upper()), [])
    names = {
        amplifier.value
        for amplifier in amplifiers_for(
            personal_data=False, loop_depth=0, domain=found.domain, high_risk=found.high_risk
        )
    }

    assert ("EU_AI_ACT_HIGH_RISK" in names) == (DOMAINS[domain] >= HIGH)
    assert ("FINANCIAL_OR_MEDICAL" in names) == (domain in {"financial", "medical"})


@pytest.mark.req("DPE-12")
@pytest.mark.parametrize("evidence", list(ControlEvidence))
def test_every_control_depends_on_its_evidence(evidence):
    """Taking one piece of evidence away takes exactly the controls away that need it."""
    without = set(ControlEvidence) - {evidence}
    found_ = controls(without, ai_class=HIGH, personal_data=True)
    lost = {c for c in CONTROLS if evidence in c.needs}

    assert set(found_.met) == set(CONTROLS) - lost
    assert found_.total == len(CONTROLS)


@pytest.mark.req("DPE-12")
def test_what_applies_depends_on_class_and_personal_data():
    """Articles for high-risk systems from HIGH on, GDPR with personal data, transparency not for MINIMAL."""
    total = {
        (kind, pii): controls((), ai_class=kind, personal_data=pii).total
        for kind in AiActClass
        for pii in (False, True)
    }
    assert total[MINIMAL, False] == 2 + 11 + 13
    assert total[LIMITED, False] == 3 + 11 + 13
    assert total[HIGH, False] == 16 + 11 + 13
    assert all(total[kind, True] == total[kind, False] + 11 for kind in AiActClass)


@pytest.mark.req("DPE-12")
def test_controls_of_a_governed_call():
    """A whole, governed analysis meets more than a bare one, and never what this product does not produce."""
    ran = ["1", "2", "3a", "5", "10", "11", "12"]
    classification = classify(asked("x", domain="employment"), [])
    whole = evidenced_controls(
        classification, ran=ran, tiered=True, scored=True, pinned=True, governed=True, personal=False
    )
    bare = evidenced_controls(
        classification, ran=ran, tiered=True, scored=False, pinned=True, governed=False, personal=False
    )

    assert set(bare.met) < set(whole.met)
    assert len(whole.met) < whole.total
    assert {"A.5.2", "A.6.2.2", "A.9.3", "A.9.4", "A.10.2"} <= set(whole.iso_42001)
    assert not {"A.5.2", "A.9.3", "A.10.2", "A.6.1.2"} & set(bare.iso_42001)
    assert all(re.fullmatch(r"A\.\d+\.\d+(\.\d+)?", name) for name in whole.iso_42001)
