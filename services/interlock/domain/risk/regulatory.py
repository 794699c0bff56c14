"""Regulatory classification: the EU AI Act class of a registered domain, and the controls that a call evidences.

Tables only (SPEC-005 §14, SPEC-010). Each control names the evidence that it needs, and is met when all of it is present.
Evidence that this product never produces (an impact report, erasure, data residency) is in the tables too: a control that
needs it is counted and is not met.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum, auto


class AiActClass(IntEnum):
    """Risk class of the EU AI Act, in rising order."""

    MINIMAL = 1
    LIMITED = 2
    HIGH = 3
    UNACCEPTABLE = 4


NIST_TIERS = {
    AiActClass.MINIMAL: "TIER-1",
    AiActClass.LIMITED: "TIER-2",
    AiActClass.HIGH: "TIER-3",
    AiActClass.UNACCEPTABLE: "TIER-4",
}
"""SPEC-002 §7.2 has four tiers and no rule. §14.3 shows LIMITED with TIER-2, so the tiers follow the classes."""

DOMAINS = {
    "biometric-identification": AiActClass.UNACCEPTABLE,
    "employment": AiActClass.HIGH,
    "education": AiActClass.HIGH,
    "critical-infrastructure": AiActClass.HIGH,
    "essential-services": AiActClass.HIGH,
    "law-enforcement": AiActClass.HIGH,
    "migration": AiActClass.HIGH,
    "justice": AiActClass.HIGH,
    "financial": AiActClass.LIMITED,
    "medical": AiActClass.LIMITED,
    "general": AiActClass.LIMITED,
    "creative": AiActClass.MINIMAL,
}
"""§14.2, and the other areas of Annex III. Financial and medical are not in §14.2: they are treated as general, and §17
raises their stakes with an amplifier of their own."""

ALIASES = {
    "biometric": "biometric-identification",
    "biometrics": "biometric-identification",
    "recruitment": "employment",
    "employment/recruitment": "employment",
    "education-access": "education",
    "finance": "financial",
    "banking": "financial",
    "insurance": "financial",
    "health": "medical",
    "healthcare": "medical",
    "general-information": "general",
    "entertainment": "creative",
    "creative/entertainment": "creative",
}
_UPGRADED = frozenset({"", "general", "financial", "medical"})


def canonical_domain(name: str) -> str | None:
    """Return the registered domain that *name* means, "" for an empty name, ``None`` for an unknown one."""
    folded = "-".join(name.strip().lower().replace("_", " ").replace("-", " ").split())
    folded = ALIASES.get(folded, folded)
    return folded if folded in DOMAINS or not folded else None


def ai_act_class(domain: str, *, personal_data_in_decision: bool) -> AiActClass:
    """Return the class of a canonical domain. An unregistered system ("") counts as general information (§14.2)."""
    base = DOMAINS[domain or "general"]
    if personal_data_in_decision and domain in _UPGRADED:
        return max(base, AiActClass.HIGH)
    return base


class ControlEvidence(Enum):
    """A kind of evidence that a call can produce."""

    ATTRIBUTED = auto()
    FIDELITY_CHECKED = auto()
    OMISSIONS_CHECKED = auto()
    PERSONAL_DATA_CHECKED = auto()
    RISK_SCORED = auto()
    QUALITY_SCORED = auto()
    TIERED = auto()
    MODELS_PINNED = auto()
    CLASSIFIED = auto()
    REGISTERED = auto()
    NOT_PROHIBITED = auto()
    GOVERNED = auto()  # a policy and an oversight mode bind the window, and the report is sealed before release
    DOCUMENTS = auto()  # technical documentation, impact assessments: not produced here
    INCIDENT_REPORTED = auto()  # a webhook to an authority: not produced here
    TESTED = auto()  # a run of the conformance suite: not evidence of a call
    MINIMISED = auto()  # personal data kept out of what is stored: not done here
    RESIDENCY = auto()  # not produced here
    ERASURE = auto()  # not produced here
    ENCRYPTION = auto()  # unknown here: it depends on the deployment
    REPRODUCIBLE = auto()  # a seed of the model: unknown here


@dataclass(frozen=True)
class Control:
    """One control of SPEC-010 with the evidence that meets it."""

    framework: str
    id: str
    needs: frozenset[ControlEvidence]
    classes: frozenset[AiActClass] = frozenset(AiActClass)
    personal_data_only: bool = False


@dataclass(frozen=True)
class Controls:
    """The controls that applied to a call, and the ones that were met."""

    met: tuple[Control, ...]
    total: int

    @property
    def iso_42001(self) -> tuple[str, ...]:
        """The met controls of Annex A that a header may list (SPEC-002 §7.4)."""
        return tuple(c.id for c in self.met if c.framework == ISO_42001 and c.id.startswith("A."))


EU_AI_ACT, GDPR, ISO_42001, NIST = "EU AI Act", "GDPR", "ISO 42001", "NIST AI RMF"
_HIGH = frozenset({AiActClass.HIGH, AiActClass.UNACCEPTABLE})
_REGULATED = frozenset({AiActClass.LIMITED}) | _HIGH


def _controls(
    framework: str,
    table: str,
    *,
    classes: frozenset[AiActClass] = frozenset(AiActClass),
    personal_data_only: bool = False,
) -> Iterator[Control]:
    """Yield the controls of a table. Each line has an id and the evidence that the control needs."""
    for line in table.strip().splitlines():
        name, _, needs = line.strip().partition(": ")
        evidence = frozenset(ControlEvidence[each] for each in needs.split())
        yield Control(framework, name, evidence, classes, personal_data_only)


CONTROLS = (
    *_controls(
        EU_AI_ACT,
        """
        Art. 5: CLASSIFIED NOT_PROHIBITED
        Art. 6: CLASSIFIED REGISTERED
        """,
    ),
    *_controls(EU_AI_ACT, "Art. 52: CLASSIFIED", classes=_REGULATED),
    *_controls(
        EU_AI_ACT,
        """
        Art. 9(1): RISK_SCORED
        Art. 9(2)(a): FIDELITY_CHECKED OMISSIONS_CHECKED
        Art. 9(4): GOVERNED
        Art. 10: PERSONAL_DATA_CHECKED ATTRIBUTED
        Art. 11: DOCUMENTS
        Art. 12: GOVERNED
        Art. 13: ATTRIBUTED
        Art. 14(1): GOVERNED
        Art. 14(3)(a): ATTRIBUTED GOVERNED
        Art. 14(4)(a): RISK_SCORED GOVERNED
        Art. 17: TIERED QUALITY_SCORED
        Art. 64: GOVERNED
        Art. 73: INCIDENT_REPORTED
        """,
        classes=_HIGH,
    ),
    *_controls(
        GDPR,
        """
        Art. 5(1)(a): ATTRIBUTED
        Art. 5(1)(c): PERSONAL_DATA_CHECKED MINIMISED
        Art. 5(1)(d): FIDELITY_CHECKED
        Art. 5(1)(f): GOVERNED ENCRYPTION
        Art. 13/14: ATTRIBUTED
        Art. 17: ERASURE
        Art. 22: GOVERNED REPRODUCIBLE
        Art. 25: PERSONAL_DATA_CHECKED RESIDENCY
        Art. 32: GOVERNED ENCRYPTION
        Art. 35: DOCUMENTS
        Art. 44: RESIDENCY
        """,
        personal_data_only=True,
    ),
    *_controls(
        ISO_42001,
        """
        A.5.2: GOVERNED
        A.5.4: GOVERNED
        A.6.1.2: DOCUMENTS
        A.6.2.2: RISK_SCORED
        A.8.2: TIERED
        A.8.4: TESTED
        A.9.2: RISK_SCORED ATTRIBUTED FIDELITY_CHECKED
        A.9.3: GOVERNED
        A.9.4: RISK_SCORED GOVERNED
        A.10.2: QUALITY_SCORED
        B.2.1: DOCUMENTS
        """,
    ),
    *_controls(
        NIST,
        """
        GOVERN 1.1: CLASSIFIED PERSONAL_DATA_CHECKED
        GOVERN 1.2: GOVERNED
        GOVERN 1.5: RISK_SCORED
        MAP 1.1: REGISTERED
        MAP 1.6: GOVERNED
        MEASURE 1.1: RISK_SCORED MODELS_PINNED
        MEASURE 2.3: TIERED QUALITY_SCORED
        MEASURE 2.5: RISK_SCORED
        MEASURE 2.6: TESTED
        MANAGE 1.1: RISK_SCORED
        MANAGE 2.2: RISK_SCORED
        MANAGE 3.2: INCIDENT_REPORTED
        MANAGE 4.1: ERASURE
        """,
    ),
)
"""Every control that SPEC-010 §1 to §4 maps. A.7.3 and MAP 3.5 are left out: according to SPEC-010, no protocol covers them."""


def controls(evidence: Collection[ControlEvidence], *, ai_class: AiActClass, personal_data: bool) -> Controls:
    """Return the controls that apply to a system of this class, and the ones that *evidence* meets (SPEC-002 §7.8).

    The articles for high-risk systems apply from HIGH, and the GDPR applies where personal data was found.
    """
    applying = [c for c in CONTROLS if ai_class in c.classes and (personal_data or not c.personal_data_only)]
    return Controls(tuple(c for c in applying if c.needs <= set(evidence)), len(applying))
