"""Causes: what a sentence says comes of what, whichever words say so (SPEC-005 §5.3).

*Lending fell because two branches were closed*, *two branches were closed, so lending fell* and *the closure of two branches led to
less lending* have one cause and one effect. Each side is a bag of senses, as in order.py; one that is empty stands in the sentence before:
*That is why lending fell*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from interlock.dpe.comparison.bindings.moods import SUBJECTS, has_subject
from interlock.dpe.comparison.bindings.predicates import REPORTING
from interlock.dpe.comparison.bindings.relations.named_causes import named_causes
from interlock.dpe.comparison.bindings.relations.order import (
    LONGEST,
    Order,
    bag,
    before_and_after,
    halves,
    start_of,
    written,
)
from interlock.dpe.text.wordlists import word_set

_BEHIND = frozenset(
    tuple(each.split())
    for each in (
        "because of", "because", "due to", "owing to", "thanks to", "result of", "as a result of", "as a consequence of",
        "in consequence of", "on account of", "in view of", "in light of", "in the light of", "in response to", "on the grounds that",
        "on the grounds of", "on the ground that", "on grounds of", "by reason of", "for fear of", "for fear that", "for the reason that", "ever since",
        "given that", "seeing that", "now that", "in the wake of", "the reason being", "the cause being", "out of concern for",
    )
)  # fmt: skip
"""What stands before a cause."""
_AHEAD = frozenset(
    tuple(each.split())
    for each in (
        "therefore", "thus", "hence", "consequently", "accordingly", "as a result", "as a consequence", "in consequence",
        "because of that", "because of this", "due to that", "due to this", "owing to this", "owing to that", "for that reason",
        "for this reason", "on that account", "on this account", "which is why", "that is why", "that 's why", "this is why",
        "that was why", "this was why", "which was why", "which explains why", "this explains why", "that explains why",
        "with the result that", "with the consequence that", "which means that", "which meant that", "this meant that", "this means that",
    )
)  # fmt: skip
"""What stands before an effect."""
_MOST_WORDS = 4
_LEADS = frozenset({("lead", "to"), ("result", "in"), ("give", "rise"), ("bring", "about")})
_CAUSES = word_set("cause trigger prompt provoke force compel oblige drive")
_COMES_OF = frozenset({("result", "from"), ("stem", "from"), ("come", "from"), ("arise", "from")})
_FILLERS = frozenset({"and", "which", "that", ","})
_DENYING = word_set("not n't never neither")
_COMPARING = word_set("as such same so just much far soon long well twice")
_POINTING = word_set("which that this it these what")
_BECOMES = frozenset({"VB", "VBP", "JJ", "JJR"})


def causes(sentence: Any) -> tuple[Order, ...]:
    """Return the causes, each before its effect, that a parsed sentence, a spaCy span, states."""
    tokens = [t for t in sentence if not t.is_space]
    if len(tokens) > LONGEST or sentence.text.rstrip().endswith("?"):
        return ()
    return tuple(dict.fromkeys(each for each in _causes(tokens) if each.first or each.second))


def _causes(tokens: Sequence[Any]) -> Iterator[Order]:
    yield from named_causes(tokens)
    free = 0
    for n in range(len(tokens)):
        if n < free:
            continue
        ahead, behind = _marked(tokens, n, _AHEAD), _marked(tokens, n, _BEHIND)
        size = max(ahead, behind)
        if size and not _is_denied(tokens, n):
            yield _after(tokens, n, size) if ahead == size else _before(tokens, n, size)
        elif not size:
            yield from _of_word(tokens, n)
        free = n + size


def _marked(tokens: Sequence[Any], n: int, marks: frozenset[tuple[str, ...]]) -> int:
    """Return how many words the longest of some marks has that stands at a token; none is 0."""
    lows = tuple(t.lower_ for t in tokens[n : n + _MOST_WORDS])
    return next((size for size in range(len(lows), 0, -1) if lows[:size] in marks), 0)


def _before(tokens: Sequence[Any], n: int, size: int) -> Order:
    effect, cause = halves(tokens, n, size)
    return Order(bag(cause), bag(effect), written(tokens[n : n + size]), written(cause))


def _after(tokens: Sequence[Any], n: int, size: int) -> Order:
    one, other = before_and_after(tokens, n, size)
    return Order(bag(one), bag(other), written(tokens[n : n + size]), written(one))


def _of_word(tokens: Sequence[Any], n: int) -> Iterator[Order]:
    token, lemma = tokens[n], tokens[n].lemma_.lower()
    after = tokens[n + 1].lower_ if n + 1 < len(tokens) else ""
    if _is_denied(tokens, n):
        return
    if token.lower_ == "for" and (end := _reasons(tokens, n)):
        yield Order(bag(tokens[n + 1 : end]), bag(tokens[start_of(tokens, n) : n]), "for", written(tokens[n + 1 : end]))
    if _opens_cause(tokens, n):
        yield _before(tokens, n, 1)
    elif token.lower_ == "so" and _joins(tokens, n):
        yield _after(tokens, n, 1)
    elif (lemma, after) in _LEADS or (lemma in _CAUSES and token.pos_ == "VERB" and after != "by") or _makes(token):
        if not any(c.dep_ == "auxpass" for c in token.children):
            yield _of_verb(tokens, n)
    elif (lemma, after) in _COMES_OF or (lemma in _CAUSES and after == "by"):
        effect, cause = before_and_after(tokens, n)
        yield Order(bag(cause), bag(effect), token.text, written(cause))


def _reasons(tokens: Sequence[Any], n: int) -> int:
    """Return where the reasons end that *for* opens, *for safety reasons*; 0 where it opens none."""
    for m in range(n + 2, min(n + 5, len(tokens))):
        if tokens[m].lower_ in {"reason", "reasons"}:
            return m
    return 0


def _of_verb(tokens: Sequence[Any], n: int) -> Order:
    """Return what a verb's subject brings about; *which* and *this* stand for the clause before."""
    _, effect = before_and_after(tokens, n)
    subject = next((c for c in tokens[n].children if c.dep_ in SUBJECTS), None)
    cause: Sequence[Any] = [t for t in subject.subtree if t.i < tokens[n].i] if subject is not None else []
    if subject is None or subject.lower_ in _POINTING:
        first = n if subject is None else next((m for m, t in enumerate(tokens) if t.i == subject.i), n)
        cause, _ = before_and_after(tokens, first)
    return Order(bag(cause), bag(effect), tokens[n].text, written(cause))


def _opens_cause(tokens: Sequence[Any], n: int) -> bool:
    """Whether *as* or *since* opens a clause that tells a cause: *as he had lost the receipt*, but not *as the report says*."""
    word = tokens[n]
    if word.lower_ not in {"as", "since"} or word.dep_ != "mark" or word.head.pos_ not in {"VERB", "AUX"}:
        return False
    compared = word.lower_ == "as" and n > 0 and tokens[n - 1].lower_ in _COMPARING
    return not compared and has_subject(word.head) and word.head.lemma_.lower() not in REPORTING


def _joins(tokens: Sequence[Any], n: int) -> bool:
    """Whether *so* opens the clause that says what came of the one before: *…, so lending fell*."""
    following = tokens[n + 1] if n + 1 < len(tokens) else None
    if following is None or following.lower_ in {"that", "far", "long"} or following.pos_ in {"ADJ", "ADV"}:
        return False
    return n == 0 or tokens[n - 1].lower_ in {*_FILLERS, ";"}


def _makes(verb: Any) -> bool:
    """Whether a verb tells what its subject brings about: *which made the pump fail*, *led her to resign*."""
    lemma = verb.lemma_.lower()
    if lemma == "lead":
        return any(c.dep_ == "xcomp" and c.tag_ == "VB" for c in verb.children)
    if lemma != "make" or verb.pos_ != "VERB":
        return False
    return any(c.dep_ in {"ccomp", "xcomp"} and c.i > verb.i and c.tag_ in _BECOMES for c in verb.children)


def _is_denied(tokens: Sequence[Any], n: int) -> bool:
    """Whether it is said that this is not the cause: *not because of the frost*, *did not cause the fire*."""
    if n and tokens[n - 1].lower_ in _DENYING:
        return True
    return tokens[n].pos_ == "VERB" and any(c.lower_ in _DENYING for c in tokens[n].children)
