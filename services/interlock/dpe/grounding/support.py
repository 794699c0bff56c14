"""Support: how surely a claim follows from the envelope, as one calibrated probability (SPEC-005 §6).

The NLI model was trained on pairs of which a third are entailed, and on natural answers it is unsure where a claim says
the same in other words. Its P(entailment) therefore is not the share of such claims that are supported. A logistic rule
of two inputs makes it one, and orders claims better than the model alone:

    logit(support) = SLOPE * logit(P(entailment)) - STRANGE * far(words that the envelope does not have) + BASE

Far is the root of their number, and a quarter of it from sixteen on: a claim of many strange words alone is supported
by nothing. It is monotone: a higher P(entailment) never lowers the support, another strange word never raises it. The
constants are what scripts/fit_judge.py --rows 250 prints: SLOPE and STRANGE fitted on licensed sets, held near a prior
because the model was trained on those sets; BASE puts nine of ten faithful answers of these sets above one half. The
price is that an unfaithful answer in the source's own words may pass as well: docs/quality.md says how often.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from interlock.dpe.document import NliScores
from interlock.dpe.values.figures import BEGINNINGS
from interlock.dpe.values.frames import DIRECTIONS, STOP, stem

SLOPE, STRANGE, BASE = 0.68, 0.49, 1.94
_SUREST = 0.997  # beyond this the model's own certainty says nothing more
_ALIKE = 5  # letters that two forms of a word have in common
_ENDLESS = 40  # letters from which a run is no word: it counts once more for each so many
_SIDE = "±"
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Vocabulary:
    """The words that the envelope and the query use, without their endings."""

    stems: frozenset[str]
    beginnings: frozenset[str]

    @staticmethod
    def of(texts: Iterable[str]) -> Vocabulary:
        """Read the words of texts."""
        stems = frozenset(stem for text in texts for stem in content_stems(text))
        return Vocabulary(stems, frozenset(each[:_ALIKE] for each in stems if each[0] != _SIDE))

    def strange(self, text: str) -> int:
        """Return how many content words of a text are not here in any form; figures are traced elsewhere."""
        return sum(1 + len(each) // _ENDLESS for each in content_stems(text) if not self._has(each))

    def _has(self, word: str) -> bool:
        return word in self.stems or (word[:_ALIKE] in self.beginnings and len(word) < _ENDLESS and not _named(word))


def content_stems(text: str) -> frozenset[str]:
    """Return the words of a text that mean something, without their endings; number words and units left out.

    A letter with figures behind it is a name, such as H100, and is taken whole; what begins with a figure is a value. Words of one direction are alike, those of the other direction are not: rose and grew, not rose and fell.
    """
    words = (word for word in _WORD.findall(text) if word[0].isalpha() and (len(word) > 1 or word.isupper()))
    return frozenset(_alike(low) for low in map(str.lower, words) if low not in STOP and low not in BEGINNINGS)


def _named(word: str) -> bool:
    return any(sign.isdigit() for sign in word)


def _alike(word: str) -> str:
    if _named(word):
        return word
    family, side = DIRECTIONS.get(word, ("", 0))
    return f"{_SIDE}{family}{side}" if family else stem(word)


def certainty(entailment: float) -> float:
    """Return the logit of P(entailment), as far as the model's certainty says anything."""
    sure = min(_SUREST, max(1.0 - _SUREST, entailment))
    return math.log(sure / (1.0 - sure))


def far(strange: int) -> float:
    """Return how far a claim with so many strange words is from the envelope."""
    return max(math.sqrt(strange), strange / 4)


def support(entailment: float, strange: int) -> float:
    """Return the probability that a claim is supported, given the best P(entailment) and its strange words."""
    return 1.0 / (1.0 + math.exp(-(SLOPE * certainty(entailment) - STRANGE * far(strange) + BASE)))


def calibrated(scores: NliScores, strange: int) -> NliScores:
    """Return scores with the support as entailment; neutral and contradiction share the rest as they did."""
    sure = support(scores.entailment, strange)
    rest = scores.neutral + scores.contradiction
    neutral = (1.0 - sure) * (scores.neutral / rest if rest > 0.0 else 1.0)
    return NliScores(sure, neutral, 1.0 - sure - neutral)
