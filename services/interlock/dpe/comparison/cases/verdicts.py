"""Verdicts: what a sentence says of a case: that something may be, must be, need not be, may not be, or just is so (SPEC-005 §5.3).

Two sentences can be compared only on one scale: *must be put back* and *has to be returned* are on one, *may be kept* is on another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interlock.dpe.comparison.denials import EXCLUDING, NEGATORS
from interlock.dpe.text.lexing import Lexeme, at
from interlock.dpe.text.wordlists import word_set

MAY, MUST, IS = "may", "must", "is"
_PERMITS = word_set(
    "may can could able allow allows allowed permit permits permitted entitled entitles entitle eligible qualify qualifies accept accepts accepted"
    " tolerated lets let possible recommended advised admitted admits enough sufficient suffices valid"
)
_REQUIRES = word_set(
    "must shall require requires required obligatory compulsory mandatory obliged need needs needed demand demands demanded due"
)
_RELEASES = word_set("exempt exempted optional voluntary unnecessary voluntarily")
_REFUSES = (EXCLUDING - _RELEASES) | word_set(
    "refused rejected refuse reject rejects refuses discarded discard thrown closed close barred disqualified unsuitable stop abort invalid inadmissible unlawful illegal"
)
_DEEDS = word_set("refuse reject discard stop close abort")
"""What a rule may let somebody do as well as what it says of a case."""
_TOO = word_set(
    "early late old young long short big small large heavy light high low far hot cold warm wide deep many much few little fast slow"
)
_BACK = word_set("turned sent")
_ARTICLES = word_set("the a an its their his her")
_NEAR = 3
_SUBJECTS = word_set("no nobody none neither nothing")


def verdicts(tokens: Sequence[Lexeme]) -> frozenset[tuple[str, bool]]:
    """Return what tokens say, each with its scale and whether they affirm it. Where they have no such word, they say that it is so or not."""
    found = set(_worded(tokens))
    if found:
        return frozenset(found)
    denied = sum(_is_negator(token.low) or _spares(tokens, n) for n, token in enumerate(tokens))
    return frozenset({(IS, denied == 0)}) if denied <= 1 else frozenset()


def _worded(tokens: Sequence[Lexeme]) -> Iterator[tuple[str, bool]]:
    refused = any(_refuses(tokens, n) for n in range(len(tokens)))
    opening = bool(tokens) and any(token.low in _SUBJECTS for token in tokens[:2])
    for n, token in enumerate(tokens):
        low = token.low
        if token.text == "May" or at(tokens, n - 1).low in _ARTICLES:
            continue  # the month; the recommended dose
        denied = _is_denied(tokens, n) or (opening and low not in _REFUSES)
        if low == "cannot" or low.startswith(("can't", "couldn't")):
            yield MAY, False
        elif _refuses(tokens, n):
            yield MAY, denied
        elif low in _RELEASES:
            yield MUST, denied
        elif refused and low in _REQUIRES | {"have", "has"}:
            continue  # has to be thrown away
        elif low in _REQUIRES or (low in {"have", "has"} and at(tokens, n + 1).low == "to"):
            yield MUST, not denied and at(tokens, n + 1).low not in _SUBJECTS
        elif low in _PERMITS:
            yield MAY, not denied
        elif low == "without" and any(t.low in _PERMITS for t in tokens[:n]):
            yield MUST, False  # may enter without a pilot


def _refuses(tokens: Sequence[Lexeme], n: int) -> bool:
    low, after = tokens[n].low, at(tokens, n + 1).low
    if low in _DEEDS and any(token.low in _PERMITS for token in tokens):
        return False  # the buyer may refuse it
    return (
        low in _REFUSES
        or (low == "break" and after == "off")
        or (low == "too" and after in _TOO)
        or (low in _BACK and after in {"back", "away"})
        or (low == "falls" and after == "short")
    )


def _is_denied(tokens: Sequence[Lexeme], n: int) -> bool:
    """Whether a negator stands right behind a word, or shortly before it."""
    if at(tokens, n + 1).low in {"not", "never", "n't"} or tokens[n].low.endswith("n't"):
        return True
    return any(_is_negator(at(tokens, place).low) for place in range(max(0, n - _NEAR), n))


def _spares(tokens: Sequence[Lexeme], n: int) -> bool:
    return tokens[n].low == "without" and at(tokens, n + 1).low.endswith("ing")


def _is_negator(low: str) -> bool:
    return (low in NEGATORS or low.endswith("n't")) and low != "without"
