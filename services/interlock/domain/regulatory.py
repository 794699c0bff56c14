"""Regulatory classification: what a registered domain means under the EU AI Act, and which controls a call evidences.

Tables only (SPEC-005 §14, SPEC-010). Each control names the evidence that it needs; it is met when all of that evidence
was there. What nothing in this product produces (an impact report, erasure, data residency) is evidence too: a control
that needs it is counted and is not met.
"""

from __future__ import annotations

from collections.abc import Collection
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
raises their stakes by an amplifier of their own."""

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
    """Return the registered domain that *name* stands for, "" for none; ``None`` when it is not known."""
    folded = "-".join(name.strip().lower().replace("_", " ").replace("-", " ").split())
    folded = ALIASES.get(folded, folded)
    return folded if folded in DOMAINS or not folded else None


def ai_act_class(domain: str, *, personal_data_in_decision: bool) -> AiActClass:
    """Return the class of a canonical domain; an unregistered system ("") counts as general information (§14.2)."""
    base = DOMAINS[domain or "general"]
    if personal_data_in_decision and domain in _UPGRADED:
        return max(base, AiActClass.HIGH)
    return base


class Evidence(Enum):
    """Something that a call can leave behind as evidence."""

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
    ENCRYPTION = auto()  # not known here: it is the deployment's
    REPRODUCIBLE = auto()  # a seed of the model: not known here


@dataclass(frozen=True)
class Control:
    """One control of SPEC-010 with the evidence that meets it."""

    framework: str
    id: str
    needs: frozenset[Evidence]
    classes: frozenset[AiActClass] = frozenset(AiActClass)
    personal_data_only: bool = False


@dataclass(frozen=True)
class Controls:
    """What applied to a call, and what of it was met."""

    met: tuple[Control, ...]
    total: int

    @property
    def iso_42001(self) -> tuple[str, ...]:
        """The controls of Annex A that were met, as a header may list them (SPEC-002 §7.4)."""
        return tuple(c.id for c in self.met if c.framework == ISO_42001 and c.id.startswith("A."))


EU_AI_ACT, GDPR, ISO_42001, NIST = "EU AI Act", "GDPR", "ISO 42001", "NIST AI RMF"
_HIGH = frozenset({AiActClass.HIGH, AiActClass.UNACCEPTABLE})
_REGULATED = frozenset({AiActClass.LIMITED}) | _HIGH
_E = Evidence


def _all(framework: str, rows: dict[str, set[Evidence]], **applies: object) -> tuple[Control, ...]:
    return tuple(Control(framework, name, frozenset(needs), **applies) for name, needs in rows.items())  # type: ignore[arg-type]  # one keyword dict for three kinds of value


CONTROLS = (
    *_all(
        EU_AI_ACT,
        {
            "Art. 5": {_E.CLASSIFIED, _E.NOT_PROHIBITED},
            "Art. 6": {_E.CLASSIFIED, _E.REGISTERED},
        },
    ),
    *_all(EU_AI_ACT, {"Art. 52": {_E.CLASSIFIED}}, classes=_REGULATED),
    *_all(
        EU_AI_ACT,
        {
            "Art. 9(1)": {_E.RISK_SCORED},
            "Art. 9(2)(a)": {_E.FIDELITY_CHECKED, _E.OMISSIONS_CHECKED},
            "Art. 9(4)": {_E.GOVERNED},
            "Art. 10": {_E.PERSONAL_DATA_CHECKED, _E.ATTRIBUTED},
            "Art. 11": {_E.DOCUMENTS},
            "Art. 12": {_E.GOVERNED},
            "Art. 13": {_E.ATTRIBUTED},
            "Art. 14(1)": {_E.GOVERNED},
            "Art. 14(3)(a)": {_E.ATTRIBUTED, _E.GOVERNED},
            "Art. 14(4)(a)": {_E.RISK_SCORED, _E.GOVERNED},
            "Art. 17": {_E.TIERED, _E.QUALITY_SCORED},
            "Art. 64": {_E.GOVERNED},
            "Art. 73": {_E.INCIDENT_REPORTED},
        },
        classes=_HIGH,
    ),
    *_all(
        GDPR,
        {
            "Art. 5(1)(a)": {_E.ATTRIBUTED},
            "Art. 5(1)(c)": {_E.PERSONAL_DATA_CHECKED, _E.MINIMISED},
            "Art. 5(1)(d)": {_E.FIDELITY_CHECKED},
            "Art. 5(1)(f)": {_E.GOVERNED, _E.ENCRYPTION},
            "Art. 13/14": {_E.ATTRIBUTED},
            "Art. 17": {_E.ERASURE},
            "Art. 22": {_E.GOVERNED, _E.REPRODUCIBLE},
            "Art. 25": {_E.PERSONAL_DATA_CHECKED, _E.RESIDENCY},
            "Art. 32": {_E.GOVERNED, _E.ENCRYPTION},
            "Art. 35": {_E.DOCUMENTS},
            "Art. 44": {_E.RESIDENCY},
        },
        personal_data_only=True,
    ),
    *_all(
        ISO_42001,
        {
            "A.5.2": {_E.GOVERNED},
            "A.5.4": {_E.GOVERNED},
            "A.6.1.2": {_E.DOCUMENTS},
            "A.6.2.2": {_E.RISK_SCORED},
            "A.8.2": {_E.TIERED},
            "A.8.4": {_E.TESTED},
            "A.9.2": {_E.RISK_SCORED, _E.ATTRIBUTED, _E.FIDELITY_CHECKED},
            "A.9.3": {_E.GOVERNED},
            "A.9.4": {_E.RISK_SCORED, _E.GOVERNED},
            "A.10.2": {_E.QUALITY_SCORED},
            "B.2.1": {_E.DOCUMENTS},
        },
    ),
    *_all(
        NIST,
        {
            "GOVERN 1.1": {_E.CLASSIFIED, _E.PERSONAL_DATA_CHECKED},
            "GOVERN 1.2": {_E.GOVERNED},
            "GOVERN 1.5": {_E.RISK_SCORED},
            "MAP 1.1": {_E.REGISTERED},
            "MAP 1.6": {_E.GOVERNED},
            "MEASURE 1.1": {_E.RISK_SCORED, _E.MODELS_PINNED},
            "MEASURE 2.3": {_E.TIERED, _E.QUALITY_SCORED},
            "MEASURE 2.5": {_E.RISK_SCORED},
            "MEASURE 2.6": {_E.TESTED},
            "MANAGE 1.1": {_E.RISK_SCORED},
            "MANAGE 2.2": {_E.RISK_SCORED},
            "MANAGE 3.2": {_E.INCIDENT_REPORTED},
            "MANAGE 4.1": {_E.ERASURE},
        },
    ),
)
"""Every control that SPEC-010 §1 to §4 maps. A.7.3 and MAP 3.5 are left out: it says that no protocol covers them."""


def controls(evidence: Collection[Evidence], *, ai_class: AiActClass, personal_data: bool) -> Controls:
    """Return the controls that apply to a system of this class, and those that *evidence* meets (SPEC-002 §7.8).

    The articles for high-risk systems apply from HIGH on, the GDPR where personal data was found.
    """
    applying = [c for c in CONTROLS if ai_class in c.classes and (personal_data or not c.personal_data_only)]
    return Controls(tuple(c for c in applying if c.needs <= set(evidence)), len(applying))
