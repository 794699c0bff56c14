"""Claims of which one cannot tell: the evidence neither shows them nor speaks against them (docs/adr/0020-cannot-tell.md).

A model that reads sentence pairs is unsure about advice, explanations and merged facts, whoever is right. Such a claim is not
grounded, and it accuses nobody: it is counted in the report, and what it costs is a setting. Something speaks against a claim
when a value, a name or a binding of it is not the source's, when it contradicts another one, when its best premise surely
denies it, and when a source is about it and yet gives it next to no support.
"""

from __future__ import annotations

from enum import StrEnum

from interlock.dpe.grounding.attribution import ClaimEvidence


class Doubts(StrEnum):
    """What claims of which one cannot tell do to the risk of an answer."""

    FREE = "free"
    """Nothing: they are counted."""
    RAISE = "medium"
    """They prevent LOW."""
    COUNT = "count"
    """They are measured like any claim without a source: the policy or the mode asks for proof."""


NEAR = 0.40
"""Cosine from which a source is about what a claim says, so that it can deny it."""

SURELY_DENIED = 0.90
"""P(contradiction) of the best premise above which a source denies a claim. Below it the model denies true paraphrases as often."""

FAINT_SUPPORT = 0.30
"""P(supported) from which the model's denial of a sentence says nothing: it denies true paraphrases in such words as often as false ones.

It counts where figures were read otherwise: in a row of a table, or among results that nobody states.
"""

LEAST_SUPPORT = 0.10
"""P(supported) below which a claim that a source is about counts as unsupported."""

ABOUT = 0.50
"""Cosine from which a source is so much about a claim that it would support it."""


def is_denied(evidence: ClaimEvidence, *, above: float = SURELY_DENIED) -> bool:
    """Whether a source denies a claim. The model also calls texts contradictory that share no subject."""
    return evidence.plain_scores.contradiction > above and evidence.similarity >= NEAR


def cannot_tell(evidence: ClaimEvidence) -> bool:
    """Whether the evidence on a claim that is not grounded, and in which nothing was found, speaks neither for nor against it."""
    # A model that reads sentences cannot reckon: that it gives a result no support says nothing.
    low = evidence.scores.entailment < LEAST_SUPPORT and evidence.similarity >= ABOUT
    unsupported = low and not evidence.reckoned
    faint = evidence.scores.entailment < FAINT_SUPPORT or evidence.reckoned or evidence.tabular
    denied = is_denied(evidence) and faint
    return not unsupported and not denied
