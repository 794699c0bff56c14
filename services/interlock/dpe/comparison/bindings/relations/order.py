"""Order: what a sentence says comes before what, and the steps of a numbered list (SPEC-005 §5.3).

Each side is a bag of senses, so that *once you have been admitted, call the line* is compared with *call the line before any
admission* and with steps 1 and 2 of a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.dpe.comparison.bindings.clauses import sense
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import STOP

_BEFORE = word_set("before")
_AFTER = word_set("after once following")
_EARLIER = frozenset({("ahead", "of"), ("prior", "to"), ("advance", "of"), ("earlier", "than"), ("sooner", "than")})
_OVER = frozenset({("precedence", "over"), ("priority", "over"), ("precedence", "of")})
_THEN = word_set("then afterwards afterward subsequently thereafter")
_NOT = word_set("not n't never no nobody none nothing cannot neither")
_OMITTING = word_set("forget fail omit neglect hesitate")
"""Who must not forget to do a thing does it."""
_JOINING = word_set("and or but because since as so while although that whether")
_PLACED = word_set("until till by since from before")
"""*Until then* and *by then* name a time, and tell of no step after another."""
_OFTEN = word_set("a an per every each daily weekly monthly more again in")
_UNITS = word_set("second minute hour day week month year time moment first last straight away begin start")
_POINTING = word_set("that this which")
_MEASURES = word_set("second minute hour day week month year later long shortly soon")
_ENDS = frozenset({".", ";", "!", "?", ":"})
_STEP = re.compile(r"^[^\S\n]{0,8}(\d{1,2})[.)][^\S\n]{1,8}(\S[^\n]*)$", re.MULTILINE)
_LEAST_STEPS = 3
_MOST_STEPS = 40
LONGEST = 60


@dataclass(frozen=True)
class Order:
    """What comes first and what comes second, with the word that says so."""

    first: frozenset[str]
    second: frozenset[str]
    word: str


def orders(sentence: Any) -> tuple[Order, ...]:
    """Return what a parsed sentence, a spaCy span, says of an order."""
    tokens = [t for t in sentence if not t.is_space]
    if len(tokens) > LONGEST:
        return ()
    return tuple(each for each in _orders(tokens) if each.first and each.second)


def steps(text: str) -> tuple[str, ...]:
    """Return the steps of the one numbered list of a text, in order; none where the numbers do not run from 1."""
    found = [(int(match[1]), match[2].strip()) for match in _STEP.finditer(text)]
    runs = [number for number, _ in found] == list(range(1, len(found) + 1))
    return tuple(step for _, step in found) if runs and _LEAST_STEPS <= len(found) <= _MOST_STEPS else ()


def _orders(tokens: Sequence[Any]) -> Iterator[Order]:
    for n, token in enumerate(tokens):
        low = token.lower_
        following = tokens[n + 1].lower_ if n + 1 < len(tokens) else ""
        if (low, following) in _EARLIER | _OVER and n + 2 < len(tokens):
            main, sub = halves(tokens, n + 1)
            yield Order(bag(m for m in main if m.i != token.i), bag(sub), f"{token.text} {following}")
        elif _divides(token, following):
            yield _around(tokens, n)
        if n and tokens[n - 1].lemma_.lower() in _MEASURES:
            continue  # two days after: a time, which is compared with times
        if low in _AFTER and following in _POINTING and tokens[n + 1].pos_ == "PRON":
            yield sequence(tokens, n + 1)
        elif low in _BEFORE | _AFTER and not (low == "once" and following in _OFTEN):
            main, sub = halves(tokens, n)
            own = _last_clause(main)
            denied = any(t.lower_ in _NOT for t in own) and not any(t.lemma_.lower() in _OMITTING for t in own)
            if denied and (low in _AFTER or tokens[0] in sub or token is tokens[0]):
                continue  # not after the meal: any time but then
            earlier, later = (main, sub) if (low in _BEFORE) is not denied else (sub, main)
            yield Order(bag(earlier), bag(later), token.text)
        elif low in _THEN and not (n and tokens[n - 1].lower_ in _PLACED):
            yield sequence(tokens, n)


def _last_clause(tokens: Sequence[Any]) -> Sequence[Any]:
    """Return what stands behind the last word that joins clauses: *he had no debts and had paid before the trial*."""
    cut = next((m for m in range(len(tokens) - 1, -1, -1) if tokens[m].lower_ in _JOINING or tokens[m].text == ","), -1)
    return tokens[cut + 1 :]


def _divides(word: Any, following: str) -> bool:
    """Whether a word stands between what is first and what is second: *precedes*, and *first* at the end of a clause."""
    if word.lower_ == "first":
        return bool(following in {";", ","} and word.dep_ == "advmod" and word.head.pos_ in {"VERB", "AUX"})
    return bool(word.lemma_.lower() == "precede" and word.pos_ == "VERB")


def _around(tokens: Sequence[Any], n: int) -> Order:
    """Return what stands before a word as the first, and what stands behind it as the second; a passive turns them."""
    end = next((m for m in range(n + 2, len(tokens)) if tokens[m].text in _ENDS), len(tokens))
    one, other = bag(tokens[start_of(tokens, n) : n]), bag(tokens[n + 1 : end])
    passive = any(c.dep_ == "auxpass" for c in tokens[n].children)
    return Order(other, one, tokens[n].text) if passive else Order(one, other, tokens[n].text)


def halves(tokens: Sequence[Any], n: int) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return what stands outside and inside the phrase or clause that *before* or *after* opens."""
    end = next((m for m in range(n + 1, len(tokens)) if tokens[m].text in _ENDS), len(tokens))
    opens = n == 0 or tokens[n - 1].text in {",", ";", "—"} or tokens[n - 1].lower_ in {"and", "only", "but"}
    comma = next((m for m in range(n + 1, end) if tokens[m].text == ","), None)
    if opens and start_of(tokens, n) >= n - 1:
        if comma is not None:
            return tokens[comma + 1 : end], tokens[n + 1 : comma]
        inside = {t.i for t in (tokens[n].head if tokens[n].dep_ == "mark" else tokens[n]).subtree}
        return [t for t in tokens[n + 1 : end] if t.i not in inside], [t for t in tokens[n + 1 : end] if t.i in inside]
    return tokens[start_of(tokens, n) : n], tokens[n + 1 : comma or end]


def start_of(tokens: Sequence[Any], n: int) -> int:
    """Return where the clause before a token begins."""
    for m in range(n - 1, -1, -1):
        if tokens[m].text in _ENDS:
            return m + 1
    return 0


def sequence(tokens: Sequence[Any], n: int) -> Order:
    """Return what stands before and what stands after a word that says *and then*."""
    start = start_of(tokens, n)
    end = next((m for m in range(n + 1, len(tokens)) if tokens[m].text in _ENDS), len(tokens))
    if n + 1 < end:
        return Order(bag(tokens[start:n]), bag(tokens[n + 1 : end]), tokens[n].text)
    joined = next((m for m in range(n - 1, start, -1) if tokens[m].lower_ in {"and", "but", ","}), n)
    return Order(bag(tokens[start:joined]), bag(tokens[joined:n]), tokens[n].text)


def bag(tokens: Iterable[Any]) -> frozenset[str]:
    """Return the senses of the words that tell something."""
    return frozenset(
        sense(t)
        for t in tokens
        if t.pos_ in {"NOUN", "PROPN", "VERB", "ADJ", "ADV"}
        and t.lower_ not in STOP
        and t.lemma_.lower() not in _UNITS
        and t.is_alpha
    )
