"""Grounding mode: what an answer may rest on, and what can be judged then (SPEC-002 §11.2, SPEC-003 §13, ATT-8).

Where nothing is given to rest on, attribution and entailment have nothing to measure. In the mode ``open`` they are left
out of the composite, and what can be judged without a source is judged. A policy that admits only grounded content is
stricter than any mode that a caller asks for: under it ``open`` does not apply.
"""

from __future__ import annotations

from enum import StrEnum

from interlock.domain.risk.risk import RiskLevel


class GroundingMode(StrEnum):
    """What an answer may rest on. The values are those of CRP-LLM-Grounding-Mode; ``auto`` is its absence."""

    STRICT = "context-strict"
    PREFERRED = "context-preferred"
    OPEN = "open"
    AUTO = "auto"


class Basis(StrEnum):
    """Whether a call gave anything that an answer can rest on."""

    SOURCES = "sources"
    NO_SOURCES = "no-sources"


def applied(asked: GroundingMode, *, basis: Basis, required: bool) -> GroundingMode:
    """Return the mode that applies: never ``auto``, and never ``open`` where a policy requires grounding."""
    mode = asked
    if asked is GroundingMode.AUTO:
        mode = GroundingMode.PREFERRED if basis is Basis.SOURCES else GroundingMode.OPEN
    return GroundingMode.PREFERRED if required and mode is GroundingMode.OPEN else mode


def meaning(level: RiskLevel, mode: GroundingMode, basis: Basis, *, cannot_tell: int = 0) -> str:
    """Return in words what *level* says of an answer that was judged in *mode* on *basis*.

    *cannot_tell* counts the statements that the sources neither show nor speak against.
    """
    if mode is not GroundingMode.OPEN:
        if basis is Basis.SOURCES:
            untold = f" They neither show nor speak against {cannot_tell} of its statements." if cannot_tell else ""
            return f"{level.name}: the answer was judged against the sources of the call.{untold}"
        return f"{level.name}: grounding is required and the call gave no source, so no statement has a basis."
    judged = (
        "contradictions within the answer and with earlier answers, invented citations and links, personal data and "
        "hidden text were looked for"
    )
    beside = "what distorts or denies a source, " if basis is Basis.SOURCES else ""
    found = "nothing was found" if level is RiskLevel.LOW else "something was found"
    given = "the call gave no source" if basis is Basis.NO_SOURCES else "content without a source was allowed"
    return f"{level.name}: {found}. As {given}, {beside}{judged}; whether its statements are true was not."
