"""Denying: the words by which a clause denies what it tells, or a phrase of it (SPEC-005 §5.3).

*Has no*, *lacks*, *is without* and *does not have* deny one thing, and *did not fail to pay* denies twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.moods import PASSIVE_SUBJECTS, SUBJECTS, contrasts
from interlock.dpe.text.wordlists import lines, word_set

NO = word_set("no neither nor none nothing nobody not zero")
_NEVER = word_set("not n't never neither hardly scarcely barely nowhere no")
_NOTHING = word_set("none nothing nobody neither")
CARRYING = word_set(
    "keep continue go remain stay manage get use tend come proceed happen have need be able about begin start"
)
"""Verbs and adjectives that leave what they govern as it is told: *keeps running*, *manages to pay*, *is able to see*."""
UNDOING = word_set(
    "stop cease quit fail refuse decline neglect omit forget unable impossible avoid unwilling discontinue unlikely"
)
"""Those that deny what they govern: *stopped working*, *failed to pay*, *refuses to sign*."""
_ALLOWING = word_set("allow permit let enable entitle authorise authorize able free possible welcome admit")
ALLOWING_ALONE = word_set("allow permit let welcome entitle authorise authorize admit")
"""Those that say so of a thing or a person without naming an act: *dogs are welcome*."""
_FORBIDDING = word_set("forbid prohibit ban bar prevent disallow")
_REQUIRING = word_set("require oblige have need compel necessary must")
NORMING = _ALLOWING | _FORBIDDING | _REQUIRING
_ROLES = SUBJECTS | PASSIVE_SUBJECTS | frozenset({"dobj", "attr"})
_LEAVING_OUT = {"without": None, "excluding": None, "minus": None, "except": None, "sans": None}
_INSTEAD = frozenset({("instead", "of"), ("rather", "than")})
_LOSING = word_set("lose forfeit")
_HELD = word_set(
    "right claim entitlement access cover protection licence license permit seat job place pay status eligibility benefit discount"
)
TAKEN_AWAY = frozenset({"", "keep", "charge"})
"""What the verbs deny that say of a thing that it is not there, or no more."""
_PRICES = word_set("price rate fee cost charge fine rent")
_LEVELS = _PRICES | word_set("temperature speed pressure dose level")
_DISPUTING = word_set("deny dispute disprove refute")
_CLEFT = frozenset({"it", "this", "that"})
_STAYING = word_set("be stay keep remain put leave")
_NOT_THERE = word_set("waive drop abandon scrap discontinue phase retire")
"""Verbs whose subject in the passive is what is not there."""


@cache
def _bases() -> dict[str, str]:
    """Read the verbs that deny another: each with that one, or with nothing where they only say that a thing is not there."""
    found: dict[str, str] = {}
    for line in lines("predicates.txt"):
        kind, _, words = line.partition("|")
        if kind == "denying":
            for pair in words.split():
                one, _, other = pair.partition("=")
                found[one.replace("_", " ")] = other
    return found


def base_of(verb: Any) -> str | None:
    """Return what a verb denies: the verb *accept* of *refuse*, the empty string of *lack*; ``None`` where it denies nothing."""
    lemma = verb.lemma_.lower()
    bases = _bases()
    for child in verb.children:
        if child.i > verb.i and child.dep_ in {"prt", "prep", "advmod"} and f"{lemma} {child.lower_}" in bases:
            return bases[f"{lemma} {child.lower_}"]
    base = bases.get(lemma)
    if lemma in _LOSING and any(c.dep_ == "dobj" and c.lemma_.lower() in _HELD for c in verb.children):
        return ""  # loses the right to it
    if base in TAKEN_AWAY and not any(_is_left_out(c, lemma) for c in verb.children):
        return None  # *the data was lost* is an event
    return base


def _is_left_out(child: Any, lemma: str) -> bool:
    """Whether a thing is what a verb says to be no more: the object of *drop*, but not where a price drops."""
    role = child.dep_ == "dobj" or (child.dep_ == "nsubjpass" and lemma in _NOT_THERE)
    return role and not (lemma == "drop" and child.lemma_.lower() in _LEVELS)


def loses(verb: Any) -> bool:
    """Whether a verb tells that its object is gone: *without losing pay*."""
    return base_of(verb) == "" or verb.lemma_.lower() in _LOSING


def governs_denial(verb: Any, child: Any) -> bool:
    """Whether a phrase is the very one by which a verb denies: *do without a car*."""
    return f"{verb.lemma_.lower()} {child.lower_}" in _bases()


def denials_of(verb: Any) -> int:
    """Return how many words by a verb deny it: *not*, *never*, *no longer*, *in no way*, and a subject or an object with *no*."""
    found = 0
    for child in verb.children:
        if child.lower_ in _NEVER and child.dep_ in {"neg", "advmod", "preconj", "cc", "dep"}:
            found += not (child.i > verb.i and contrasts(child)) and not _belittles(child)
        elif child.lower_ in {"longer", "more"} and any(c.lower_ == "no" for c in child.children):
            found += 1
        elif child.dep_ in _ROLES:
            found += denies_thing(child)
        elif child.dep_ == "prep" and (any(is_no_way(c) for c in child.children) or _is_off(child)):
            found += 1
    return found


def _is_off(prep: Any) -> bool:
    """Whether a phrase says that something is not to be had: *off the menu*, *stays out of the draw*."""
    return prep.lower_ in {"off", "out"} and prep.head.lemma_ in _STAYING and any(prep.children)


def _belittles(token: Any) -> bool:
    """Whether a *not* only belittles: *not only*, *no later than*."""
    return bool(
        token.i + 1 < len(token.doc) and token.nbor().lower_ in {"only", "just", "merely", "simply", "later", "least"}
    )


def is_no_way(token: Any) -> bool:
    return token.lower_ in {"way", "circumstances", "case", "account", "means"} and any(
        c.lower_ == "no" for c in token.children
    )


def denials_above(verb: Any) -> int:
    """Return how often what a clause hangs on denies it: *denies that it leaks*, *it was not the mayor who called*."""
    head = verb.head
    if verb.dep_ == "ccomp" and verb.i > head.i and head.lemma_.lower() in _DISPUTING:
        return 1 + denials_of(head)
    above = head.head
    judged = [c for c in (head, *head.children) if c.lemma_.lower() in {"true", "case", "correct"}]
    if verb.dep_ in {"ccomp", "acl"} and verb.i > head.i and judged:
        return denials_of(head if head.pos_ in {"VERB", "AUX"} else above)
    if (
        verb.dep_ == "relcl"
        and head.dep_ == "attr"
        and any(c.lower_ in _CLEFT and c.dep_ == "nsubj" for c in above.children)
    ):
        return denials_of(above)
    return 0


def is_open(verb: Any, main: Any) -> bool:
    """Whether a clause may say the one or the other: what somebody did not say, and a fee that is dropped or drops."""
    if main.lemma_ == "drop" and any(c.lemma_.lower() in _PRICES for c in main.children):
        return True
    return bool(
        verb.dep_ == "ccomp"
        and verb.i > verb.head.i
        and verb.head.lemma_.lower() in predicates.REPORTING - _DISPUTING
        and denials_of(verb.head)
    )


def denies_thing(noun: Any) -> bool:
    """Whether a noun phrase says of its thing that there is none: *no crane*, *none of the cranes*, *not a single crane*."""
    if noun.lower_ in _NOTHING:
        return True
    if any(c.lower_ == "even" and any(g.lower_ == "not" for g in c.children) for c in noun.children):
        return True  # not even the ferry
    return any(
        c.lower_ in NO
        and c.i < noun.i
        and c.dep_ in {"det", "neg", "preconj", "advmod", "cc", "dep"}
        and not _belittles(c)
        and not (c.lower_ == "not" and any(g.lower_ in {"all", "every", "each", "many", "much"} for g in noun.children))
        for c in noun.children
    )


def denies_phrase(token: Any) -> bool:
    """Whether a word denies the phrase that it opens, and nothing else: *without a crane*, *instead of a crane*, *but not a crane*."""
    low = token.lower_
    if token.pos_ == "ADP" and any(c.lower_ == "not" for c in token.children):
        return True  # at night, but not at noon
    if low in {"of", "from"} and token.head.lower_ == "free" and token.head.dep_ not in {"acomp", "ROOT"}:
        return True  # free of charge
    if low in _LEAVING_OUT:
        return token.dep_ in {"prep", "pcomp", "mark", "dep", "cc", "advcl", "prt"}
    if low in {"of", "than"} and token.i and (token.nbor(-1).lower_, low) in _INSTEAD:
        return True
    return bool(low == "exception" and any(c.lower_ == "of" for c in token.children) and token.head.lower_ == "with")


def norm_of(word: Any) -> tuple[str, bool] | None:
    """Return the modality that a word gives what it governs, with whether it denies it: *is forbidden to* is *may*, denied."""
    lemma = word.lemma_.lower()
    if lemma in _ALLOWING:
        return "may", False
    if lemma in _FORBIDDING:
        return "may", True
    return ("must", False) if lemma in _REQUIRING else None


def modals(verb: Any) -> Iterator[str]:
    """Yield what the auxiliaries of a verb make of it: *may* or *must*."""
    for child in verb.children:
        if child.dep_ == "aux":
            if child.lower_ in {"may", "might", "can", "could", "ca"}:
                yield "may"
            elif child.lower_ in {"must", "shall", "should", "need"}:
                yield "must"


def is_operator(verb: Any) -> bool:
    """Whether a verb only says how far what it governs holds."""
    lemma = verb.lemma_.lower()
    return lemma in CARRYING | UNDOING | NORMING or lemma in predicates.REFUSING
