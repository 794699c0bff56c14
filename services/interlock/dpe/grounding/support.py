"""Support: the calibrated probability that a claim follows from the envelope (SPEC-005 §6).

The NLI model was trained on pairs of which a third are entailed, and it is unsure about paraphrases in natural answers,
so its P(entailment) is not the share of such claims that are supported. A logistic rule of two inputs makes it so, and
orders claims better than the model alone:

    logit(support) = SLOPE * logit(P(entailment)) - STRANGE * far(words that the envelope does not have) + BASE

``far`` is the square root of their number, and a quarter of it from sixteen on: a claim of many strange words alone is
supported by nothing. The rule is monotone: a higher P(entailment) never lowers the support, another strange word never
raises it. The constants are those that scripts/fit_judge.py --rows 250 prints. SLOPE and STRANGE are fitted on licensed
sets, held near a prior because the model was trained on those sets. BASE puts nine of ten faithful answers of these
sets above one half. The price: an unfaithful answer in the source's own words may pass as well; docs/quality.md says
how often.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from interlock.dpe.document import NliScores
from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.values.figures import BEGINNINGS
from interlock.dpe.values.frames import DIRECTIONS, STOP, stem

SLOPE, STRANGE, BASE = 0.68, 0.49, 1.94
_SUREST = 0.997  # beyond this the model's certainty carries no information
_ALIKE = 5  # leading letters that two forms of a word share
_ENDLESS = 40  # letters from which a run is no word; each further run of this length counts once more
_SIDE = "±"
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Vocabulary:
    """The stems of the words in envelope and query."""

    stems: frozenset[str]
    beginnings: frozenset[str]

    @staticmethod
    def of(texts: Iterable[str]) -> Vocabulary:
        """Return the vocabulary of texts."""
        stems = frozenset(stem for text in texts for stem in content_stems(text))
        return Vocabulary(stems, frozenset(each[:_ALIKE] for each in stems if each[0] != _SIDE))

    def strange(self, text: str) -> int:
        """Return the number of content words without any form in this vocabulary. Figures are traced elsewhere."""
        return sum(1 + len(each) // _ENDLESS for each in content_stems(text) if not self._has(each))

    def _has(self, word: str) -> bool:
        return word in self.stems or (word[:_ALIKE] in self.beginnings and len(word) < _ENDLESS and not _named(word))


@remembered(bytes_a_character=10, from_length=60)
def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the content words of a text, without number words and units.

    A letter followed by figures is a name, such as H100, and is kept whole; what begins with a figure is a value. Words
    of one direction share a stem, those of opposite directions do not: rose and grew, not rose and fell.
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
    """Return the logit of P(entailment), clamped to where the model's certainty carries information."""
    sure = min(_SUREST, max(1.0 - _SUREST, entailment))
    return math.log(sure / (1.0 - sure))


def far(strange: int) -> float:
    """Return the distance from the envelope of a claim with this many strange words."""
    return max(math.sqrt(strange), strange / 4)


def support(entailment: float, strange: int) -> float:
    """Return the probability that a claim is supported, from its best P(entailment) and its number of strange words."""
    return 1.0 / (1.0 + math.exp(-(SLOPE * certainty(entailment) - STRANGE * far(strange) + BASE)))


def calibrated(scores: NliScores, strange: int) -> NliScores:
    """Return scores with the support as entailment. Neutral and contradiction share the rest in proportion."""
    sure = support(scores.entailment, strange)
    rest = scores.neutral + scores.contradiction
    neutral = (1.0 - sure) * (scores.neutral / rest if rest > 0.0 else 1.0)
    return NliScores(sure, neutral, 1.0 - sure - neutral)
