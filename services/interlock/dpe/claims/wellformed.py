"""Well-formedness: whether a verb can carry a clause, by itself or by its neighbour's auxiliary (SPEC-005 §3.4).

A parser sometimes tags a noun as a verb ("monitoring, and yield optimization"). Such a clause would be no proposition,
so it is not split off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.dpe.claims.wording import SUBJECTS

_SINGULAR = frozenset({"is", "was", "has", "does", "'s"})
_PLURAL = frozenset({"are", "were", "have", "do", "'re", "'ve"})


def is_verb(token: Any) -> bool:
    """Whether a token is a verb that can assert. An -ing form needs a form of be."""
    helped = any(c.dep_ == "aux" and c.lemma_.lower() == "be" for c in token.children)
    return token.pos_ in {"VERB", "AUX"} and (token.tag_ != "VBG" or helped)


def has_subject(token: Any, *, besides: Sequence[int] = ()) -> bool:
    """Whether a verb has a subject of its own, apart from the tokens at *besides*."""
    return any(c.dep_ in SUBJECTS and c.i not in besides for c in token.children)


def is_finite(token: Any) -> bool:
    """Whether a verb is finite, or has an auxiliary that is."""
    if token.tag_ in {"VBD", "VBZ", "VBP", "MD"}:
        return True
    return any(c.dep_ in {"aux", "auxpass"} and c.lower_ != "to" for c in token.children)


def is_phrase(token: Any) -> bool:
    """Whether an apparent clause is a noun with a participle: "circumstances and evidence presented"."""
    modifiers = [c for c in token.children if c.dep_ not in SUBJECTS | {"punct", "cc"}]
    bare = all(c.pos_ == "NOUN" and not any(True for _ in c.children) for c in token.children if c.dep_ in SUBJECTS)
    return token.tag_ in {"VBD", "VBN"} and not modifiers and bare


def grammatical_number(token: Any) -> str:
    """Return the grammatical number of a verb's form, or "" when the form does not show it."""
    inflected = next((c for c in token.children if c.dep_ in {"aux", "auxpass"}), token)
    if inflected.lower_ in _SINGULAR or (inflected is token and token.tag_ == "VBZ"):
        return "singular"
    if inflected.lower_ in _PLURAL or (inflected is token and token.tag_ == "VBP"):
        return "plural"
    return ""


def agrees(noun: Any, verb: Any) -> bool:
    """Whether a noun agrees in number with a verb, as far as both show it."""
    verb_number = grammatical_number(verb)
    noun_number = {"NN": "singular", "NNP": "singular", "NNS": "plural", "NNPS": "plural"}.get(noun.tag_, "")
    return not verb_number or not noun_number or verb_number == noun_number


def shares_form(child: Any) -> bool:
    """Whether a coordinated verb without a subject can share its neighbour's auxiliaries and number."""
    first = child.head
    auxiliaries = {c.lemma_.lower() for c in first.children if c.dep_ in {"aux", "auxpass"}}
    own = any(c.dep_ in {"aux", "auxpass"} for c in child.children)
    if own or child.tag_ in {"VBD", "MD"}:
        return True
    if child.tag_ in {"VBZ", "VBP"}:
        return not (grammatical_number(first) and grammatical_number(first) != grammatical_number(child))
    if child.tag_ == "VBN":
        return bool(auxiliaries & {"be", "have", "get"}) or first.lemma_.lower() == "be" or first.tag_ == "VBD"
    if child.tag_ == "VB":
        return bool(auxiliaries - {"be", "have"}) or first.tag_ in {"VB", "VBP"}
    return False


def is_alternative(head: Any) -> bool:
    """Whether the coordinated items are alternatives."""
    return any(c.dep_ in {"cc", "preconj"} and c.lower_ in {"or", "nor", "either", "neither"} for c in head.children)
