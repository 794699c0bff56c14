"""Stage 12, regulatory classification: the AI Act class of the system, and the controls that this call evidences.

The class comes from the registered domain, not from the answer (SPEC-005 §14.2). One exception: personal data in a
decision makes a general-information system high-risk. An answer is a decision when it says that someone is approved,
rejected, hired or the like. A tool call always is one, because it acts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from interlock.domain.risk.regulatory import (
    NIST_TIERS,
    AiActClass,
    ControlEvidence,
    Controls,
    ai_act_class,
    canonical_domain,
    controls,
)
from interlock.dpe.document import PiiFinding
from interlock.dpe.request import Output, Request
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.text import normalised

_DECIDES = pattern(
    r"\b(?:approv(?:e[sd]?|ing|al)|reject(?:s|ed|ing|ion)?|den(?:y|ies|ied|ying|ial)|declin(?:e[sd]?|ing)|grant(?:s|ed|ing)?"
    r"|refus(?:e[sd]?|al|ing)|accept(?:ed|s)|admit(?:s|ted)|hir(?:e[sd]?|ing)|dismiss(?:es|ed|al)?|terminat(?:e[sd]?|ion)"
    r"|promot(?:e[sd]?|ion)|shortlist(?:s|ed)?|(?:in|dis)?eligib(?:le|ility)|(?:dis)?qualif(?:y|ies|ied)|entitled"
    r"|suspend(?:s|ed)?|expel(?:s|led)?|select(?:s|ed)|evict(?:s|ed)?|deport(?:s|ed)?|diagnos(?:e[sd]?|is)|prescrib(?:e[sd]?)"
    r"|credit ?worth(?:y|iness)|scored?|risk score|should not (?:be|receive|get)|must not be)\b",
    ignore_case=True,
)
_STAGES = {
    "2": ControlEvidence.ATTRIBUTED,
    "3a": ControlEvidence.FIDELITY_CHECKED,
    "5": ControlEvidence.RISK_SCORED,
    "10": ControlEvidence.OMISSIONS_CHECKED,
    "11": ControlEvidence.PERSONAL_DATA_CHECKED,
    "12": ControlEvidence.CLASSIFIED,
}


@dataclass(frozen=True)
class Classification:
    """Classification of the registered system, for the report."""

    domain: str
    ai_class: AiActClass

    @property
    def told_class(self) -> str:
        """The class as it is told: UNKNOWN for a system that is not registered (SPEC-002 §12.5)."""
        return self.ai_class.name if self.domain else "UNKNOWN"

    @property
    def high_risk(self) -> bool:
        """Whether the class is high-risk or prohibited (§17)."""
        return self.ai_class >= AiActClass.HIGH

    @property
    def nist_tier(self) -> str:
        """NIST tier of the class."""
        return NIST_TIERS[self.ai_class]


def classify(request: Request, personal: Sequence[PiiFinding]) -> Classification:
    """Return the class of the registered domain, given the personal data found in the call."""
    domain = canonical_domain(request.domain) or ""
    return Classification(domain, ai_act_class(domain, personal_data_in_decision=_in_decision(request, personal)))


def evidenced_controls(
    classification: Classification,
    *,
    ran: Collection[str],
    tiered: bool,
    scored: bool,
    pinned: bool,
    governed: bool,
    personal: bool,
) -> Controls:
    """Return the controls that this call evidences, by the stages that *ran* and by the deployment.

    *pinned*: every model was verified by its hash. *governed*: the call is a window of a session, so a policy and an
    oversight mode apply to it, and its report is sealed before its answer is released.
    """
    conditions = {
        ControlEvidence.TIERED: tiered,
        ControlEvidence.QUALITY_SCORED: scored,
        ControlEvidence.MODELS_PINNED: pinned,
        ControlEvidence.REGISTERED: bool(classification.domain),
        ControlEvidence.NOT_PROHIBITED: classification.ai_class is not AiActClass.UNACCEPTABLE,
        ControlEvidence.GOVERNED: governed,
    }
    evidence = {found for stage, found in _STAGES.items() if stage in ran}
    evidence |= {found for found, holds in conditions.items() if holds}
    return controls(evidence, ai_class=classification.ai_class, personal_data=personal)


def _in_decision(request: Request, personal: Sequence[PiiFinding]) -> bool:
    """Whether an output that decides contains personal data."""
    named = {found.output_index for found in personal if found.where == "response"}
    outputs = request.outputs if None in named else [o for n, o in enumerate(request.outputs) if n in named]
    return bool(named) and any(map(_decides, outputs))


def _decides(output: Output) -> bool:
    return output.kind == "tool_call" or bool(_DECIDES.search(normalised(output.text)[0].chars))
