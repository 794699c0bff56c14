"""Claims of which one cannot tell: the evidence neither shows them nor speaks against them (docs/adr/0020-cannot-tell.md).

A model that reads sentence pairs is unsure about advice, explanations and merged facts, whoever is right. Such a claim is not
grounded, and it accuses nobody: it is counted in the report, and what it costs is a setting. Something speaks against a claim
when a value, a name or a binding of it is not the source's, when it contradicts another one, when its best premise surely
denies it, and when a source is about it and yet gives it next to no support.
"""

from __future__ import annotations

from enum import StrEnum

from interlock.dpe.comparison.denials import is_negator
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import read


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

ALIKE = 0.70
"""Cosine from which a source sentence is all but a claim."""

_TURNING = word_set("alone except excluding excepting same")
_UNDOING = ("unchang", "unalter", "unaffect", "unlimit", "undecid")

ABOUT = 0.50
"""Cosine from which a source is so much about a claim that it would support it."""


def is_denied(evidence: ClaimEvidence, *, above: float = SURELY_DENIED) -> bool:
    """Whether a source denies a claim. The model also calls texts contradictory that share no subject."""
    return evidence.plain_scores.contradiction > above and evidence.similarity >= NEAR


def cannot_tell(evidence: ClaimEvidence, *, text: str = "") -> bool:
    """Whether the evidence on a claim that is not grounded, and in which nothing was found, speaks neither for nor against it.

    *text* is the claim's.
    """
    # A model that reads sentences cannot reckon, nor read across rows: that it gives a result no support says nothing.
    across = evidence.tabular and not evidence.moved
    low = evidence.scores.entailment < LEAST_SUPPORT and evidence.similarity >= ABOUT
    unsupported = low and not evidence.reckoned and not across
    faint = evidence.scores.entailment < FAINT_SUPPORT or evidence.reckoned or evidence.tabular
    unheard = _is_misheard(evidence, text) or (across and _is_settled(evidence, text))
    return not unsupported and not (is_denied(evidence) and faint and not unheard)


def _is_settled(evidence: ClaimEvidence, text: str) -> bool:
    """Whether calculation accounts for every figure of a claim."""
    figures = [value for value in read(text).values if not value.vague and any(map(str.isdigit, value.text))]
    return bool(figures) and all(value.text in evidence.settled for value in figures)


def _is_misheard(evidence: ClaimEvidence, text: str) -> bool:
    """Whether a claim denies or restricts what it says, so that the model's denial of it says nothing.

    The model hears *not paid out* against *there is no pay for it*, and denies such paraphrases as often as false sentences of that
    form. It is heard where a sentence of the sources that denies nothing is all but the claim, and where the claim has results
    that nobody states. Which other sentences turn their source is for the comparison of their words (stage 3b).
    """
    if not _is_turned(text) or evidence.reckoned:
        return False
    return evidence.similarity < ALIKE or _is_turned(evidence.source)


def _is_turned(text: str) -> bool:
    words = (token.low for token in read(text).tokens)
    return any(is_negator(word) or word in _TURNING or word.startswith(_UNDOING) for word in words)
