"""Verbatim claims: what copies a sentence of the sources follows from it without a model (SPEC-005 §4).

A copy may differ in case, marks and citation marks, and may put the subject of the sentence before it for a pronoun. A clause of a
sentence is a copy of it only where nothing that it leaves out limits it: no condition, hedge, negation or report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from interlock.dpe.claims.wording import unanswered
from interlock.dpe.comparison.denials import is_negator
from interlock.dpe.comparison.hedges import HEDGES, group_at
from interlock.dpe.grounding.envelope import EvidenceUnit
from interlock.dpe.text.folding import fold
from interlock.dpe.text.lexing import SYMBOL, Lexeme, at, lex
from interlock.dpe.text.wordlists import word_set

_SIGNS = frozenset("%$€£¥°+<>=≤≥/?&@#×÷")
_EDGES = frozenset({",", ";", ":", ".", "!", "(", ")", "–", "—", '"', "“", "”"})
_JOINS = frozenset({"and", "but"})
_PRONOUNS = word_set("it he she they this these we i")
_MOST_IN_SUBJECT = 5
_LEAST_WORDS = 2
_LEAST_IN_CLAUSE = 4
_LIMITING = HEDGES.keys() | word_set(
    "when while whenever where only before after unless without or either neither instead than because so that said says say"
    " claims claimed claim believes believe believed thinks denied denies according would should could can must will whether"
    " who which whose during within once as for than least most every all per each respectively"
)
"""Words that may limit the clause beside them."""


@dataclass(frozen=True)
class Copies:
    """The units of an envelope by their words."""

    units: Sequence[EvidenceUnit]
    by_words: dict[tuple[str, ...], int]
    joined: Sequence[str]

    @staticmethod
    def of(units: Sequence[EvidenceUnit]) -> Copies:
        """Index the units. Of equal ones the first counts."""
        words = [_words(unit.text) for unit in units]
        found: dict[tuple[str, ...], int] = {}
        for number, each in enumerate(words):
            found.setdefault(each, number)
        return Copies(units, found, [f" {' '.join(each)} " for each in words])

    def of_claim(self, text: str, sentence: str) -> int | None:
        """Return the unit that a claim copies, or that the sentence copies which it was cut from; ``None`` without one."""
        for written in dict.fromkeys((text, sentence)):
            words = _words(unanswered(written))
            if len(words) >= _LEAST_WORDS and (unit := self._copied(words)) is not None:
                return unit
        return self._with_subject(_words(unanswered(text)), text)

    def _copied(self, words: tuple[str, ...]) -> int | None:
        if (unit := self.by_words.get(words)) is not None:
            return unit
        if len(words) < _LEAST_IN_CLAUSE:
            return None
        clause = f" {' '.join(words)} "
        holding = (n for n, joined in enumerate(self.joined) if clause in joined)
        return next((n for n in holding if _is_whole(words, self.units[n].text)), None)

    def _with_subject(self, words: tuple[str, ...], text: str) -> int | None:
        """Return the unit that a claim copies with the subject of the unit before it in the place of its pronoun."""
        for size in range(1, min(_MOST_IN_SUBJECT, len(words) - _LEAST_WORDS) + 1):
            subject, rest = words[:size], words[size:]
            for pronoun in _PRONOUNS:
                unit = self.by_words.get((pronoun, *rest))
                if unit and self._opens_before(unit, subject) and text[:1].isupper():
                    return unit
        return None

    def _opens_before(self, unit: int, subject: tuple[str, ...]) -> bool:
        before = self.units[unit - 1]
        return before.fact == self.units[unit].fact and _words(before.text)[: len(subject)] == subject


@lru_cache(maxsize=2048)
def _words(text: str) -> tuple[str, ...]:
    """Return the words, figures and signs of a text in lower case, without marks. The minus of a figure is a sign."""
    tokens = lex(fold(text))
    return tuple(
        token.low
        for n, token in enumerate(tokens)
        if token.kind != SYMBOL or token.text in _SIGNS or (token.text == "-" and _is_minus(tokens, n))
    )


def _is_minus(tokens: Sequence[Lexeme], place: int) -> bool:
    return at(tokens, place + 1).glued and not tokens[place].glued


def _is_whole(words: tuple[str, ...], source: str) -> bool:
    """Whether words are a clause of a source that nothing beside them limits."""
    tokens = lex(fold(source))
    kept = [
        n
        for n, t in enumerate(tokens)
        if t.kind != SYMBOL or t.text in _SIGNS or (t.text == "-" and _is_minus(tokens, n))
    ]
    lows = [tokens[n].low for n in kept]
    for start in range(len(lows) - len(words) + 1):
        if tuple(lows[start : start + len(words)]) != words:
            continue
        first, last = kept[start], kept[start + len(words) - 1]
        before = tokens[first - 1] if first else None
        after = tokens[last + 1] if last + 1 < len(tokens) else None
        opened = before is None or before.text in _EDGES or before.low in _JOINS
        closed = after is None or after.text in _EDGES or after.low in _JOINS
        rest = [n for n in kept if n < first or n > last]
        if (
            opened
            and closed
            and not any(tokens[n].low in _LIMITING or is_negator(tokens[n].low) or group_at(tokens, n) for n in rest)
        ):
            return True
    return False
